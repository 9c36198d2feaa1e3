//! What is wrong with chips as a whole, as one scan after another shows it: a heartbeat that stands
//! still, and a chip that the driver listed and does not any more. Pure: times come in.

use std::collections::BTreeMap;

use telltale_schema::chip::{ChipFacts, ChipIdentity, PciAddress};
use telltale_schema::clock::Timestamp;
use telltale_schema::health::{Evidence, Fault, FaultKind};
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::{Device, Telemetry};

use super::ChipReading;

/// How long a heartbeat must stand still: the firmware counts it ten times a second, and the slowest
/// that is known five times.
pub const HEARTBEAT_TIMEOUT_NS: u64 = 3_000_000_000;

/// How long a chip that vanished keeps its row.
pub const VANISHED_KEPT_NS: u64 = 3600 * 1_000_000_000;

/// When a scan is: on the monotonic clock and on the wall's.
pub(crate) type Moment = (u64, Timestamp);

/// What earlier scans have seen, by the place on the bus, which no reset changes.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    beats: BTreeMap<PciAddress, Beat>,
    seen: BTreeMap<PciAddress, ListedChip>,
}

/// A heartbeat.
#[derive(Debug, Clone, Copy)]
struct Beat {
    value: u64,
    /// When that was read.
    read_at: Timestamp,
    /// Since when it has been so.
    since: Moment,
    /// When it was checked last, on the monotonic clock.
    scanned_ns: u64,
    has_moved: bool,
}

/// A chip that the driver listed.
#[derive(Debug, Clone)]
struct ListedChip {
    identity: ChipIdentity,
    facts: Reading<ChipFacts>,
    /// Since when the driver has not listed it.
    gone: Option<Moment>,
}

/// What the driver lists at this scan.
#[derive(Clone, Copy)]
pub(crate) struct DriverListing<'a> {
    /// The numbers of chips that it lists; none where that could not be read.
    pub(crate) ordinals: Option<&'a [u32]>,
    /// Why there is no driver, if there is none.
    pub(crate) no_driver: bool,
    /// Whether another driver has the chip at an address, as for a virtual machine: that is no fault.
    pub(crate) has_other_driver: &'a dyn Fn(PciAddress) -> bool,
}

impl Faults {
    /// Adds to these chips what is wrong with them, and those that have vanished.
    pub(crate) fn annotate(
        &mut self,
        chips: &mut Vec<ChipReading>,
        listing: DriverListing<'_>,
        now: Moment,
    ) {
        for chip in chips.iter_mut() {
            chip.faults.extend(self.beat(chip, now));
        }
        let here: Vec<PciAddress> = chips.iter().filter_map(|chip| chip.identity.pci).collect();
        let numbers: Vec<u32> =
            chips.iter().filter_map(|chip| chip.identity.driver_ordinal).collect();
        for chip in chips.iter() {
            if let Some(pci) = chip.identity.pci {
                let (identity, facts) = (chip.identity.clone(), chip.facts.clone());
                self.seen.insert(pci, ListedChip { identity, facts, gone: None });
            }
        }
        let Some(listed) = listing.ordinals else { return };
        self.seen.retain(|pci, seen| {
            // One that is listed and could not be opened is another's to report.
            let unread = |number| listed.contains(&number) && !numbers.contains(&number);
            if here.contains(pci) || seen.identity.driver_ordinal.is_some_and(unread) {
                return true;
            }
            if (listing.has_other_driver)(*pci) {
                return false;
            }
            let since = *seen.gone.get_or_insert(now);
            if now.0.saturating_sub(since.0) > VANISHED_KEPT_NS {
                return false;
            }
            chips.push(seen.vanished(since, listing.no_driver, &numbers));
            true
        });
        self.beats.retain(|pci, _| here.contains(pci));
    }

    /// Takes over the faults that another reader has found by watching this machine for longer, as its
    /// snapshot has them. The next scan confirms or refutes each.
    pub(super) fn learn(&mut self, devices: &[Device], now: Moment) {
        for device in devices {
            let Some((chip, pci)) = device.identity.chip().and_then(|it| Some((it, it.pci?)))
            else {
                continue;
            };
            if let Some(fault) = device.fault(FaultKind::HeartbeatStopped)
                && let Reading::Value { value, at } = device.telemetry.heartbeat_total
            {
                // Far enough back that one reading of the same value is enough.
                let since = (now.0.saturating_sub(2 * HEARTBEAT_TIMEOUT_NS), fault.since);
                let known =
                    Beat { value, read_at: at, since, scanned_ns: since.0, has_moved: false };
                let beat = self.beats.entry(pci).or_insert(known);
                match beat.value == value {
                    true => beat.since = since,
                    // It counted between their reading and ours.
                    false => beat.has_moved = true,
                }
            }
            if let Some(fault) = device.fault(FaultKind::Vanished) {
                let since = now.0.saturating_sub(now.1.since_ns(fault.since));
                let (identity, facts) = (chip.clone(), device.facts.clone());
                let gone = Some((since, fault.since));
                self.seen.entry(pci).or_insert(ListedChip { identity, facts, gone });
            }
        }
    }

    /// Whether a heartbeat has not been seen to count and is not given up.
    pub(super) fn awaits_heartbeats(&self) -> bool {
        self.beats.values().any(|beat| !beat.has_moved && !beat.stands_still())
    }

    fn beat(&mut self, chip: &ChipReading, now: Moment) -> Option<Fault> {
        let pci = chip.identity.pci?;
        let (value, read_at) = match &chip.telemetry.heartbeat_total {
            Reading::Value { value, at } => (*value, *at),
            // It is asked again; what was seen before still holds.
            Reading::Absent { absent: Absence::TimedOut, .. } => return None,
            Reading::Absent { .. } => {
                self.beats.remove(&pci);
                return None;
            }
        };
        let new = Beat { value, read_at, since: now, scanned_ns: now.0, has_moved: false };
        let beat = self.beats.entry(pci).or_insert(new);
        if beat.read_at != read_at {
            if beat.value != value {
                *beat = Beat { has_moved: true, ..new };
            }
            (beat.read_at, beat.scanned_ns) = (read_at, now.0);
        }
        beat.stands_still().then(|| {
            let number = chip.identity.driver_ordinal.unwrap_or_default();
            let detail = format!(
                "its heartbeat stands still at {value}: the firmware has stopped, and the sensors \
                 show what was last; reset it with `tt-smi -r {number}`"
            );
            let seen = |at| Evidence { reading: "heartbeat_total".into(), value: value as f64, at };
            Fault {
                evidence: vec![seen(beat.since.1), seen(beat.read_at)],
                ..Fault::new(FaultKind::HeartbeatStopped, beat.since.1, detail)
            }
        })
    }
}

impl Beat {
    fn stands_still(&self) -> bool {
        self.scanned_ns.saturating_sub(self.since.0) >= HEARTBEAT_TIMEOUT_NS
    }
}

impl ListedChip {
    /// The row of a chip that the driver has not listed since then. `numbers` are those of the
    /// others, one of which may have its number by now.
    fn vanished(&self, since: Moment, no_driver: bool, numbers: &[u32]) -> ChipReading {
        let detail = if no_driver {
            "the driver is not loaded any more; load it with `modprobe tenstorrent`"
        } else {
            "the driver does not list it any more; `sudo dmesg | grep -i tenstorrent` may say why"
        };
        let number = self.identity.driver_ordinal.filter(|number| !numbers.contains(number));
        ChipReading {
            identity: ChipIdentity { driver_ordinal: number, ..self.identity.clone() },
            facts: self.facts.clone(),
            telemetry: Telemetry::absent(Absence::Gone, detail),
            holders: Reading::absent(Absence::Gone, detail),
            faults: vec![Fault::new(FaultKind::Vanished, since.1, detail.to_owned())],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{DriverListing, Faults, HEARTBEAT_TIMEOUT_NS, Moment, VANISHED_KEPT_NS};
    use crate::tenstorrent::ChipReading;
    use telltale_schema::chip::ChipIdentity;
    use telltale_schema::clock::Timestamp;
    use telltale_schema::health::FaultKind;
    use telltale_schema::reading::{Absence, Reading};
    use telltale_schema::snapshot::{Device, Telemetry};

    const SECOND: u64 = 1_000_000_000;

    fn chip(number: u32, heartbeat: Reading<u64>) -> ChipReading {
        let pci = Some(format!("0000:0{number}:00.0").parse().unwrap());
        let mut telemetry = Telemetry::absent(Absence::Unsupported, "");
        telemetry.heartbeat_total = heartbeat;
        ChipReading {
            identity: ChipIdentity { driver_ordinal: Some(number), pci, ..ChipIdentity::default() },
            facts: Reading::absent(Absence::Unknown, ""),
            telemetry,
            holders: Reading::new(Vec::new(), Timestamp(1)),
            faults: Vec::new(),
        }
    }

    const LISTING: DriverListing<'_> =
        DriverListing { ordinals: None, no_driver: false, has_other_driver: &|_| false };

    fn moment(seconds: u64) -> Moment {
        (seconds * SECOND, Timestamp((1000 + seconds) * SECOND))
    }

    fn annotate(faults: &mut Faults, chips: &[ChipReading], seconds: u64) -> Vec<ChipReading> {
        let numbers: Vec<u32> =
            chips.iter().filter_map(|chip| chip.identity.driver_ordinal).collect();
        let mut chips = chips.to_vec();
        let listing = DriverListing { ordinals: Some(&numbers), ..LISTING };
        faults.annotate(&mut chips, listing, moment(seconds));
        chips
    }

    #[test]
    fn a_heartbeat_that_stands_still_is_reported_and_one_that_counts_is_not() {
        let mut faults = Faults::default();
        let mut kinds = |seconds, value: Option<u64>| {
            let reading = match value {
                Some(value) => Reading::new(value, moment(seconds).1),
                None => Reading::absent(Absence::Resetting, ""),
            };
            let chips = annotate(&mut faults, &[chip(1, reading)], seconds);
            (
                chips[0].faults.iter().map(|fault| (fault.kind, fault.since)).collect::<Vec<_>>(),
                faults.awaits_heartbeats(),
            )
        };
        assert_eq!(kinds(0, Some(7)), (vec![], true));
        assert_eq!(kinds(2, Some(7)), (vec![], true));
        let stopped = (FaultKind::HeartbeatStopped, moment(0).1);
        assert_eq!(kinds(HEARTBEAT_TIMEOUT_NS / SECOND, Some(7)), (vec![stopped], false));
        assert_eq!(kinds(100, Some(7)), (vec![stopped], false));
        assert_eq!(kinds(101, Some(8)), (vec![], false), "it counts again");
        assert_eq!(kinds(103, Some(8)), (vec![], false));
        assert_eq!(kinds(104, None), (vec![], false), "a chip in reset has none");
        assert_eq!(kinds(200, Some(8)), (vec![], true), "and begins anew");
    }

    #[test]
    fn what_was_not_read_again_proves_nothing() {
        let mut faults = Faults::default();
        let old = chip(1, Reading::new(7, Timestamp(5)));
        for seconds in [0, 10, 1000] {
            assert_eq!(annotate(&mut faults, std::slice::from_ref(&old), seconds)[0].faults, []);
        }
        let none = chip(1, Reading::absent(Absence::Unsupported, ""));
        annotate(&mut faults, std::slice::from_ref(&none), 1001);
        assert!(!faults.awaits_heartbeats(), "a chip without one is no fault");
        assert_eq!(annotate(&mut faults, &[none], 2000)[0].faults, []);
    }

    /// A device of a snapshot, as its node found it at second 0.
    fn device(reading: ChipReading) -> Device {
        Device {
            id: String::new(),
            identity: reading.identity.into(),
            facts: reading.facts,
            telemetry: reading.telemetry,
            spaces: Vec::new(),
            kinds: Vec::new(),
            holders: reading.holders,
            faults: reading.faults,
            health_not_kept: false,
        }
    }

    #[test]
    fn what_another_has_found_is_confirmed_or_refuted_by_one_sample() {
        let beating = |value| chip(1, Reading::new(value, moment(50).1));
        let mut other = Faults::default();
        annotate(&mut other, &[chip(1, Reading::new(7, moment(0).1))], 0);
        let found = annotate(&mut other, &[chip(1, Reading::new(7, moment(9).1))], 9);
        let stopped: Vec<Device> = found.into_iter().map(device).collect();
        let kinds = |faults: &mut Faults, chips: &[ChipReading]| {
            let all = annotate(faults, chips, 50).into_iter().flat_map(|chip| chip.faults);
            all.map(|fault| (fault.kind, fault.since)).collect::<Vec<_>>()
        };
        let still = (FaultKind::HeartbeatStopped, moment(0).1);
        // Taught before the first scan, and after it.
        for annotated in [false, true] {
            for (value, expected) in [(7, vec![still]), (8, vec![])] {
                let mut faults = Faults::default();
                if annotated {
                    assert_eq!(kinds(&mut faults, &[beating(value)]), []);
                }
                faults.learn(&stopped, moment(50));
                assert_eq!(kinds(&mut faults, &[beating(value)]), expected);
                assert!(!faults.awaits_heartbeats(), "it is known which it is");
            }
        }

        let gone = annotate(&mut other, &[], 20).into_iter().map(device).collect::<Vec<_>>();
        let vanished = (FaultKind::Vanished, moment(20).1);
        for (chips, expected) in [(vec![], vec![vanished]), (vec![beating(9)], vec![])] {
            let mut faults = Faults::default();
            faults.learn(&gone, moment(50));
            assert_eq!(kinds(&mut faults, &chips), expected);
        }
    }

    #[test]
    fn a_chip_that_vanishes_keeps_its_row_for_a_while() {
        let mut faults = Faults::default();
        let chips = [1, 2].map(|number| chip(number, Reading::absent(Absence::Unsupported, "")));
        assert_eq!(annotate(&mut faults, &chips, 0).len(), 2);
        let left = annotate(&mut faults, &chips[..1], 10);
        assert_eq!((left.len(), left[1].identity.pci), (2, chips[1].identity.pci));
        let fault = &left[1].faults[0];
        assert_eq!((fault.kind, fault.since), (FaultKind::Vanished, moment(10).1));
        let (reason, _) = left[1].telemetry.temperature_celsius.absence().unwrap();
        assert_eq!(reason, Absence::Gone);
        assert_eq!(annotate(&mut faults, &chips, 20)[1].faults, [], "it is back");
        annotate(&mut faults, &chips[..1], 30);
        let hour = VANISHED_KEPT_NS / SECOND;
        assert_eq!(annotate(&mut faults, &chips[..1], 30 + hour).len(), 2);
        assert_eq!(annotate(&mut faults, &chips[..1], 31 + hour).len(), 1);

        // Where the driver's list cannot be read, or the chip is in it, nothing is said.
        let mut faults = Faults::default();
        annotate(&mut faults, &chips, 0);
        for listing in [LISTING, DriverListing { ordinals: Some(&[1, 2]), ..LISTING }] {
            let mut found = chips[..1].to_vec();
            faults.annotate(&mut found, listing, moment(1));
            assert_eq!(found.len(), 1);
        }
    }
}
