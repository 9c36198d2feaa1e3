//! From the text of one chip's files to its identity, telemetry and holders. Pure.

use std::collections::BTreeMap;

use telltale_schema::chip::{AsicId, BoardId, BoardType, ChipIdentity, GalaxyPosition, PciAddress};
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::{Holder, PcieLink, PcieTraffic, Telemetry, TrafficDirection};

use super::chip::{ChipFacts, FileOutcome, FileSlot, OpenChip};
use super::fields::{
    COUNTERS, COUNTERS_AT, COUNTS, COUNTS_AT, FIRMWARE, FIRMWARE_AT, IDENTITY, Item, LABELS,
    LABELS_AT, MEASURES, MEASURES_AT, PIDS_AT,
};
use super::pids;
use super::traffic::{WRAP_BYTES, fastest};
use crate::report::SourceReport;
use crate::traffic_rate::{NoSum, TrafficSum};

/// The longest firmware version that is shown.
const MAX_VERSION_BYTES: usize = 64;

/// What could not be read of one chip, gathered by reason: a chip in reset must not fill the list.
#[derive(Debug, Default)]
pub(super) struct Complaints {
    by_reason: BTreeMap<Absence, (String, String, u32)>,
}

impl Complaints {
    fn add(&mut self, file: &str, reason: Absence, detail: &str) {
        let entry = self.by_reason.entry(reason);
        entry.or_insert_with(|| (file.to_owned(), detail.to_owned(), 0)).2 += 1;
    }

    /// Hands them over, one error for each reason.
    pub(super) fn report(self, chip: &str, report: &mut SourceReport) {
        for (reason, (file, detail, count)) in self.by_reason {
            let words = if detail.is_empty() { reason.words() } else { &detail };
            let more =
                if count > 1 { format!("; {} more files", count - 1) } else { String::new() };
            report.error(format!("{chip}/{file}"), reason, format!("{words}{more}"));
        }
    }
}

/// The text of a slot, or why there is none.
fn text(slot: &FileSlot) -> Reading<&str> {
    match &slot.outcome {
        FileOutcome::Text { text, at } => match std::str::from_utf8(text) {
            Ok(text) => Reading::new(text.trim(), *at),
            Err(_) => Reading::absent(Absence::Implausible, "not text"),
        },
        FileOutcome::Unreadable(unreadable) => unreadable.reading(),
        FileOutcome::TimedOut => Reading::absent(Absence::TimedOut, "the driver did not answer"),
        FileOutcome::NotAsked => Reading::absent(Absence::NotAsked, ""),
    }
}

/// `reading` with its text parsed; what does not parse is implausible.
fn parsed<T>(reading: Reading<&str>, parse: impl FnOnce(&str) -> Option<T>) -> Reading<T> {
    match reading {
        Reading::Value { value, at } => match parse(value) {
            Some(found) => Reading::new(found, at),
            None => Reading::absent(Absence::Implausible, excerpt(value)),
        },
        Reading::Absent { absent, detail } => Reading::Absent { absent, detail },
    }
}

/// The first characters of a text that was refused, made printable.
fn excerpt(text: &str) -> String {
    text.chars().take(40).flat_map(char::escape_default).collect()
}

/// Notes why `reading` is absent, unless the file merely does not exist or is not wanted.
fn complain<T>(complaints: &mut Complaints, item: Item, slot: &FileSlot, reading: &Reading<T>) {
    if slot.timed_out {
        complaints.add(item.file, Absence::TimedOut, "the driver did not answer");
    } else if let Some((reason, detail)) = reading.absence()
        && !matches!(reason, Absence::Unsupported | Absence::NotAsked)
    {
        complaints.add(item.file, reason, detail);
    }
}

/// Who the chip is, by its files, and where they say nothing just now, by what they said before.
pub(super) fn identity(chip: &mut OpenChip, complaints: &mut Complaints) -> ChipIdentity {
    let mut id = |index: usize| {
        let (slot, item) = (&chip.slots[index], IDENTITY[index]);
        let reading = text(slot);
        complain(complaints, item, slot, &reading);
        reading.value().map(|found| (*found).to_owned())
    };
    let (serial, asic, card, vendor) = (id(0), id(1), id(2), id(3));
    let board_id = serial.as_deref().and_then(|text| text.parse::<BoardId>().ok());
    let asic_id = asic.as_deref().and_then(|text| text.parse::<AsicId>().ok());
    for (text, well, item) in
        [(&serial, board_id.is_some(), IDENTITY[0]), (&asic, asic_id.is_some(), IDENTITY[1])]
    {
        if let (Some(text), false) = (text, well) {
            complaints.add(item.file, Absence::Implausible, &excerpt(text));
        }
    }
    if let Some(vendor) = vendor.filter(|vendor| vendor != "0x1e52") {
        complaints.add("vendor", Absence::Implausible, &excerpt(&vendor));
    }
    let board_type = match board_id.map_or(BoardType::Unknown, BoardId::board_type) {
        BoardType::Unknown => {
            card.map_or(BoardType::Unknown, |card| BoardType::from_card_type(&card))
        }
        known => known,
    };
    let known = chip.known.updated(ChipFacts { board_id, asic_id, board_type });
    chip.known = known;
    let ChipFacts { board_id, asic_id, board_type } = known;
    let galaxy = chip.pci.and_then(|pci: PciAddress| GalaxyPosition::from_bus(board_type, pci.bus));
    ChipIdentity {
        driver_ordinal: Some(chip.ordinal),
        pci: chip.pci,
        asic_id,
        board_id,
        board_type,
        location: galaxy.map_or(0, GalaxyPosition::location),
        galaxy,
        remote: false,
    }
}

/// Why the files do not tell the board, where that is not because there is nothing to read.
pub(super) fn why_no_board(chip: &OpenChip) -> Option<Absence> {
    let (reason, _) = text(&chip.slots[0]).map(|_| ()).absence()?;
    (reason != Absence::Unsupported).then_some(reason)
}

impl ChipFacts {
    /// What is known after the files said `now`: another board is another chip.
    fn updated(self, now: Self) -> Self {
        let before = match (self.board_id, now.board_id) {
            (Some(before), Some(now)) if before != now => Self::default(),
            _ => self,
        };
        Self {
            board_id: now.board_id.or(before.board_id),
            asic_id: now.asic_id.or(before.asic_id),
            board_type: match now.board_type {
                BoardType::Unknown => before.board_type,
                known => known,
            },
        }
    }
}

/// What the chip's sensors say.
pub(super) fn telemetry(chip: &mut OpenChip, complaints: &mut Complaints) -> Telemetry {
    let mut telemetry = Telemetry::absent(Absence::Unsupported, "");
    for (measure, slot) in MEASURES.iter().zip(&chip.slots[MEASURES_AT..]) {
        let reading = match mislabelled(chip, measure.item.file) {
            Some(label) => Reading::absent(Absence::Implausible, format!("labelled {label}")),
            None => parsed(text(slot), |text| {
                text.parse::<i32>().ok().map(f64::from).or_else(|| large(text))
            })
            .map(|raw| raw / measure.divisor)
            .keep_if(|value| (measure.least..=measure.most).contains(value)),
        };
        complain(complaints, measure.item, slot, &reading);
        (measure.put)(&mut telemetry, reading);
    }
    for (count, slot) in COUNTS.iter().zip(&chip.slots[COUNTS_AT..]) {
        let scaled = |text: &str| text.parse::<u64>().ok()?.checked_mul(count.scale);
        let reading =
            parsed(text(slot), scaled).keep_if(|value| (count.least..=count.most).contains(value));
        complain(complaints, count.item, slot, &reading);
        (count.put)(&mut telemetry, reading);
    }
    for (item, slot) in FIRMWARE.iter().zip(&chip.slots[FIRMWARE_AT..]) {
        let reading = parsed(text(slot), version);
        complain(complaints, *item, slot, &reading);
        if let Reading::Value { value, .. } = reading {
            telemetry.firmware.insert(item.file.to_owned(), value);
        }
    }
    telemetry.pcie = traffic(chip, complaints);
    telemetry.link = Some(Box::new(rates(chip, &telemetry.pcie)));
    telemetry
}

/// An integer beyond 32 bits: power in microwatts may have one (above 2,147 W, implausible but
/// worth showing). Exact up to 2⁵³, which is more than enough to refuse it.
fn large(text: &str) -> Option<f64> {
    let clean = text.len() <= 20 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    clean.then(|| text.parse().ok()).flatten()
}

/// The label of the channel that `file` belongs to, where it is not one of ours.
fn mislabelled(chip: &OpenChip, file: &str) -> Option<String> {
    let index = LABELS.iter().position(|label| file.starts_with(label.channel))?;
    match &chip.slots[LABELS_AT + index].outcome {
        FileOutcome::Text { text, .. } => {
            let label = String::from_utf8_lossy(text.trim_ascii());
            let ours = LABELS[index].accepted.contains(&label.as_ref());
            (!ours).then(|| excerpt(&label))
        }
        FileOutcome::Unreadable(_) | FileOutcome::TimedOut | FileOutcome::NotAsked => None,
    }
}

fn version(text: &str) -> Option<String> {
    let printable = text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
    (printable && !text.is_empty() && text.len() <= MAX_VERSION_BYTES).then(|| text.to_owned())
}

fn traffic(chip: &mut OpenChip, complaints: &mut Complaints) -> Vec<PcieTraffic> {
    let mut pcie = Vec::new();
    let fastest = fastest(chip.known.board_type.architecture());
    let places = COUNTERS.iter().flat_map(|counter| [(counter, 0u8), (counter, 1u8)]);
    for (index, (counter, noc)) in places.enumerate() {
        let slot = &chip.slots[COUNTERS_AT + index];
        let raw_flits = parsed(text(slot), |text| text.parse::<u32>().ok());
        let file = counter.files[usize::from(noc)];
        if slot.timed_out {
            complaints.add(file, Absence::TimedOut, "the driver did not answer");
        }
        let bytes_total = match &raw_flits {
            Reading::Value { value, at } if !slot.timed_out => {
                match chip.counters[index].advance(*value, slot.read_ns, fastest) {
                    Some(bytes) => Reading::new(bytes, *at),
                    None => Reading::absent(Absence::NotYet, "first sample of this counter"),
                }
            }
            Reading::Value { .. } => Reading::absent(Absence::TimedOut, ""),
            // Drivers before May 2025 have no counters at all; nothing is listed then.
            Reading::Absent { absent: Absence::Unsupported | Absence::NotAsked, .. } => continue,
            Reading::Absent { absent, detail } => {
                if *absent == Absence::Resetting {
                    chip.counters[index].restart();
                }
                complaints.add(file, *absent, detail);
                Reading::absent(*absent, detail.clone())
            }
        };
        pcie.push(PcieTraffic {
            counter: counter.name.to_owned(),
            noc,
            direction: counter.direction,
            bytes_total,
            raw_flits,
        });
    }
    pcie
}

/// How fast data goes to and from the host; what the link is, is not among the chip's files.
fn rates(chip: &mut OpenChip, pcie: &[PcieTraffic]) -> PcieLink {
    let slots = &chip.slots[COUNTERS_AT..PIDS_AT];
    let read_ns = slots.iter().map(|slot| slot.read_ns).max().unwrap_or(0);
    let is_asked = !slots.iter().all(|slot| matches!(slot.outcome, FileOutcome::NotAsked));
    let sum = |direction: TrafficDirection| -> Result<TrafficSum, NoSum> {
        let counters = pcie.iter().filter(|counter| counter.direction == direction);
        let mut sum = None;
        for counter in counters {
            let (bytes, at) = match (&counter.bytes_total, &counter.raw_flits) {
                (Reading::Value { value, at }, _) => (*value, *at),
                // The first sample of a counter, which has counted nothing yet.
                (Reading::Absent { absent: Absence::NotYet, .. }, Reading::Value { at, .. }) => {
                    (0, *at)
                }
                (Reading::Absent { absent, detail }, _) => return Err((*absent, detail.clone())),
            };
            let wraps_after_bytes = Some(WRAP_BYTES);
            let none = TrafficSum { bytes: 0, wraps_after_bytes, read_ns, at };
            let before: TrafficSum = sum.unwrap_or(none);
            sum = Some(TrafficSum { bytes: before.bytes.saturating_add(bytes), ..before });
        }
        let uncounted = (Absence::Unsupported, String::from("the driver does not count it"));
        let not_asked = (Absence::NotAsked, String::new());
        sum.ok_or(if is_asked { uncounted } else { not_asked })
    };
    let fastest = fastest(chip.known.board_type.architecture());
    let [received, sent] = &mut chip.rates;
    PcieLink {
        pcie_received_bytes_per_second: received
            .follow(sum(TrafficDirection::HostToDevice), fastest),
        pcie_sent_bytes_per_second: sent.follow(sum(TrafficDirection::DeviceToHost), fastest),
        ..PcieLink::absent(Absence::Unknown, "the driver names no PCI address of it")
    }
}

/// Who has the chip open.
pub(super) fn holders(chip: &OpenChip, complaints: &mut Complaints) -> Reading<Vec<Holder>> {
    let slot = &chip.slots[PIDS_AT];
    if slot.timed_out {
        complaints.add("pids", Absence::TimedOut, "the driver did not answer");
    }
    match &slot.outcome {
        FileOutcome::Text { text, at } => {
            let openers = pids::parse(text);
            if openers.junk_lines > 0 {
                let detail = format!("{} lines are no pid", openers.junk_lines);
                complaints.add("pids", Absence::Implausible, &detail);
            }
            if openers.dropped > 0 {
                let detail = format!("{} more descriptors than are kept", openers.dropped);
                complaints.add("pids", Absence::Failed, &detail);
            }
            Reading::new(openers.holders, *at)
        }
        FileOutcome::Unreadable(unreadable) if unreadable.is_missing() => Reading::absent(
            Absence::Unsupported,
            "the driver lists no openers; update it to 2.7 or later",
        ),
        FileOutcome::Unreadable(unreadable) => {
            complaints.add("pids", unreadable.absence(), &unreadable.to_string());
            unreadable.reading()
        }
        FileOutcome::NotAsked => Reading::absent(Absence::NotAsked, ""),
        FileOutcome::TimedOut => Reading::absent(Absence::TimedOut, "the driver did not answer"),
    }
}
