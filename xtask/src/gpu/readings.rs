//! Every value of every GPU beside `nvidia-smi`'s, which is asked before and after.

use std::collections::{BTreeMap, BTreeSet};

use telltale_schema::chip::PciAddress;
use telltale_schema::memory::MemorySpace;
use telltale_schema::sensor::SENSORS;
use telltale_schema::snapshot::{Accounting, Snapshot};

use super::fields::{Comparison, FIELDS, Field, Ours, REASONS, Seen, Theirs, Tolerance, known};
use super::nvidia_smi::{self, ADDRESS, GpuText, Look};
use super::report::{ComparedValue, Verdict};

/// How often all is read again while a row differs: what moves may move back between two looks.
const ATTEMPTS: u32 = 3;

/// Processes whose bytes a row shows.
const SHOWN_PROCESSES: usize = 4;

/// A process's bytes are whole MiB there.
const PROCESS_TOLERANCE_BYTES: u64 = 1 << 20;

/// What one side says.
#[derive(Debug, Clone, PartialEq)]
enum Said {
    Text(String),
    Number(f64),
    Names(BTreeSet<&'static str>),
    /// There is no such thing, in its words.
    None(String),
}

/// Compares until all rows agree, a few times at most.
pub(super) fn compare(
    snapshot: impl Fn() -> Result<Snapshot, String>,
) -> Result<Vec<ComparedValue>, String> {
    let fields = fields();
    let mut rows: Vec<ComparedValue> = Vec::new();
    for _ in 0..ATTEMPTS {
        let before = nvidia_smi::look(&fields)?;
        let between = snapshot()?;
        let after = nvidia_smi::look(&fields)?;
        rows = better(rows, rows_of(&before, &between, &after));
        if !rows.iter().any(|row| matches!(row.verdict, Verdict::Differs(_))) {
            break;
        }
    }
    Ok(rows)
}

/// Every field that some row needs.
fn fields() -> Vec<&'static str> {
    let of_rows = FIELDS.iter().flat_map(|field| match &field.theirs {
        Theirs::Field(names) | Theirs::Sum(names) => names.iter().copied(),
        Theirs::Tag(_) | Theirs::LinksUp => [].iter().copied(),
    });
    let mut fields: Vec<&'static str> = of_rows.collect();
    fields.sort_unstable();
    fields.dedup();
    debug_assert!(fields.contains(&ADDRESS));
    fields
}

/// The new rows, but the earlier ones where those agreed.
fn better(earlier: Vec<ComparedValue>, new: Vec<ComparedValue>) -> Vec<ComparedValue> {
    let key = |row: &ComparedValue| (row.gpu, row.theirs.clone(), row.ours.clone());
    let agreed = earlier.into_iter().filter(|row| row.verdict == Verdict::Agrees);
    let mut agreed: BTreeMap<_, ComparedValue> = agreed.map(|row| (key(&row), row)).collect();
    new.into_iter().map(|row| agreed.remove(&key(&row)).unwrap_or(row)).collect()
}

/// The rows of all GPUs, those of one field side by side.
fn rows_of(before: &Look, snapshot: &Snapshot, after: &Look) -> Vec<ComparedValue> {
    let gpus: Vec<(Option<u64>, &PciAddress, &GpuText)> = before
        .gpus
        .iter()
        .map(|(address, text)| {
            let index = text.fields.get("index").and_then(|index| index.parse().ok());
            (index, address, text)
        })
        .collect();
    let mut rows = Vec::new();
    for field in FIELDS {
        rows.extend(gpus.iter().map(|(index, address, text)| {
            let later = after.gpus.get(address);
            let seen = seen(snapshot, **address);
            let (their_value, our_value, verdict) = match (later, seen) {
                (Some(later), Some(seen)) => row(field, (text, later), &seen, &before.unknown),
                (None, _) => missing("nvidia-smi no longer shows this GPU"),
                (_, None) => missing("Telltale does not show this GPU"),
            };
            let (theirs, ours) = (field.theirs.name(), field.ours.name().to_owned());
            ComparedValue { gpu: *index, theirs, their_value, ours, our_value, verdict }
        }));
    }
    rows.extend(gpus.iter().filter_map(|(index, address, text)| {
        let later = after.gpus.get(address)?;
        Some(ComparedValue { gpu: *index, ..processes((text, later), &seen(snapshot, **address)?) })
    }));
    rows
}

fn missing(why: &str) -> (String, String, Verdict) {
    (String::new(), String::new(), Verdict::Differs(why.to_owned()))
}

/// The GPU at this address, not one of its instances.
fn seen(snapshot: &Snapshot, address: PciAddress) -> Option<Seen<'_>> {
    let is_it = |device: &&telltale_schema::snapshot::Device| {
        let is_whole = device.identity.other().is_some_and(|other| other.parent.is_none());
        is_whole && device.identity.pci() == Some(address)
    };
    snapshot.devices.iter().find(is_it).map(|device| Seen { snapshot, device })
}

/// Their value, ours, and whether they agree.
fn row(
    field: &Field,
    (before, after): (&GpuText, &GpuText),
    seen: &Seen<'_>,
    unknown: &BTreeSet<String>,
) -> (String, String, Verdict) {
    let ours = ours(field, seen);
    let (Some(before), Some(after)) = (theirs(field, before), theirs(field, after)) else {
        let names: Vec<&str> = match field.theirs {
            Theirs::Field(names) | Theirs::Sum(names) => names.to_vec(),
            Theirs::Tag(_) | Theirs::LinksUp => Vec::new(),
        };
        let refused: Vec<&str> = names.into_iter().filter(|name| unknown.contains(*name)).collect();
        let why = match refused.is_empty() {
            true => String::from("nvidia-smi does not print it"),
            false => format!("this nvidia-smi does not know {}", refused.join(" and ")),
        };
        return (String::new(), shown(&ours), Verdict::Skipped(why));
    };
    let verdict = verdict(&field.comparison, &before, &ours, &after);
    let range = match before == after {
        true => shown(&before),
        false => format!("{} to {}", shown(&before), shown(&after)),
    };
    (range, shown(&ours), verdict)
}

fn shown(said: &Said) -> String {
    match said {
        Said::Text(text) => text.clone(),
        Said::Number(number) => {
            // Two digits are the most that nvidia-smi prints.
            let text = format!("{number:.2}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        Said::Names(names) if names.is_empty() => String::from("no reason"),
        Said::Names(names) => names.iter().copied().collect::<Vec<_>>().join(" "),
        Said::None(words) => words.clone(),
    }
}

/// What `nvidia-smi` says; nothing where it does not know the field.
fn theirs(field: &Field, gpu: &GpuText) -> Option<Said> {
    let texts: Vec<&str> = match field.theirs {
        Theirs::Field(names) => {
            vec![names.iter().find_map(|name| gpu.fields.get(name))?.as_str()]
        }
        Theirs::Sum(names) => names
            .iter()
            .map(|name| gpu.fields.get(name).map(String::as_str))
            .collect::<Option<_>>()?,
        Theirs::Tag(tags) => {
            let found = tags.iter().filter_map(|tag| nvidia_smi::tagged(&gpu.xml, tag));
            let found: Vec<&str> = found.collect();
            let first = found.iter().find(|text| nvidia_smi::value(text).is_some());
            vec![first.or(found.first()).copied()?]
        }
        Theirs::LinksUp => {
            let none = || Said::None(String::from("no links"));
            return Some(gpu.links_up.map_or_else(none, |up| Said::Number(as_number(up))));
        }
    };
    Some(understood(&field.comparison, &texts))
}

/// Their texts as what ours are compared with. What is not understood stays text, and differs.
fn understood(comparison: &Comparison, texts: &[&str]) -> Said {
    if let Some(none) = texts.iter().find(|text| nvidia_smi::value(text).is_none()) {
        return Said::None((*none).to_owned());
    }
    let first = texts.first().map_or("", |text| text.trim());
    let other = || Said::Text(first.to_owned());
    match comparison {
        Comparison::Text => other(),
        Comparison::Address => {
            first.parse::<PciAddress>().map_or_else(|_| other(), |pci| Said::Text(pci.to_string()))
        }
        Comparison::Reasons => {
            let bits = first.strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok());
            let names = |bits: u64| {
                let set = REASONS.iter().filter(|(bit, _)| bits & bit != 0);
                Said::Names(set.map(|(_, name)| *name).collect())
            };
            bits.map_or_else(other, names)
        }
        Comparison::Number(_) => {
            let numbers: Option<Vec<f64>> = texts.iter().map(|text| number(text)).collect();
            numbers.map_or_else(other, |numbers| Said::Number(numbers.iter().sum()))
        }
    }
}

/// A number as `nvidia-smi` prints it: with a unit in XML, `P0` of a state, `Yes` of what is pending.
fn number(text: &str) -> Option<f64> {
    let word = text.split_whitespace().next()?;
    match word {
        "Yes" => Some(1.0),
        "No" => Some(0.0),
        _ => word.strip_prefix('P').unwrap_or(word).parse().ok().filter(|it: &f64| it.is_finite()),
    }
}

/// What Telltale says, in their unit.
fn ours(field: &Field, seen: &Seen<'_>) -> Said {
    let telemetry = &seen.device.telemetry;
    let text = match field.ours {
        Ours::Reasons => {
            let load = telemetry.load.as_ref();
            let reasons = load.ok_or_else(|| String::from("not reported"));
            return match reasons.and_then(|load| known(&load.throttled_by)) {
                Ok(names) => {
                    let is_held =
                        |(_, name): &&(u64, &'static str)| names.iter().any(|it| it == name);
                    Said::Names(REASONS.iter().filter(is_held).map(|(_, name)| *name).collect())
                }
                Err(why) => Said::None(why),
            };
        }
        Ours::Sensor(name) => {
            let reading = SENSORS
                .iter()
                .find(|sensor| sensor.field == name)
                .and_then(|sensor| sensor.read(telemetry));
            let reading = reading.ok_or_else(|| String::from("not of this GPU"));
            reading.and_then(|reading| known(&reading).map(|value| value.as_f64().to_string()))
        }
        Ours::Other(_, path) => path(seen),
    };
    match (text, &field.comparison) {
        (Err(why), _) => Said::None(why),
        (Ok(text), Comparison::Number(Tolerance { unit, .. })) => match text.parse::<f64>() {
            Ok(number) => Said::Number(number / unit),
            Err(_) => Said::Text(text),
        },
        (Ok(text), _) => Said::Text(text),
    }
}

fn verdict(comparison: &Comparison, before: &Said, ours: &Said, after: &Said) -> Verdict {
    let differs = |how: String| Verdict::Differs(how);
    match (before, ours, after) {
        (Said::None(_), Said::None(_), Said::None(_)) => Verdict::Agrees,
        // `nvidia-smi` takes the card's own limit for that of the slot.
        (_, Said::None(why), _) if why.contains("as in a virtual machine") => {
            Verdict::Skipped(why.clone())
        }
        (_, Said::None(_), _) => differs(String::from("nvidia-smi has a value")),
        (Said::None(_), _, Said::None(_)) => differs(String::from("only Telltale has a value")),
        // It came or went between both looks.
        (Said::None(_), ours, known) | (known, ours, Said::None(_)) => {
            verdict(comparison, known, ours, known)
        }
        (Said::Number(before), Said::Number(ours), Said::Number(after)) => {
            let (tolerance, share, why) = match comparison {
                Comparison::Number(Tolerance { absolute: tolerance, share, why, .. }) => {
                    (tolerance, share, why)
                }
                Comparison::Text | Comparison::Address | Comparison::Reasons => (&0.0, &0.0, &""),
            };
            let (low, high) = (before.min(*after), before.max(*after));
            // A value that is divided by its unit may be off by a rounding.
            let allowed = tolerance + share * high.abs() + 1e-9 * high.abs();
            match (low - allowed..=high + allowed).contains(ours) {
                true => Verdict::Agrees,
                false if allowed > 1e-6 * high.abs() => {
                    differs(format!("by more than {} ({why})", shown(&Said::Number(allowed))))
                }
                false => differs(String::from("it must be the same")),
            }
        }
        (Said::Names(before), Said::Names(ours), Said::Names(after)) => {
            let always: BTreeSet<_> = before.intersection(after).copied().collect();
            let ever: BTreeSet<_> = before.union(after).copied().collect();
            match always.is_subset(ours) && ours.is_subset(&ever) {
                true => Verdict::Agrees,
                false => differs(String::from("other reasons")),
            }
        }
        (Said::Text(before), Said::Text(ours), Said::Text(after))
            if before == ours || after == ours =>
        {
            Verdict::Agrees
        }
        _ => differs(String::from("it must be the same")),
    }
}

/// The processes that compute on a GPU.
fn processes((before, after): (&GpuText, &GpuText), seen: &Seen<'_>) -> ComparedValue {
    let mut ours = Vec::new();
    let mut theirs = Vec::new();
    let mut verdict = Verdict::Agrees;
    let parts: Vec<usize> = seen.parts().map(|(place, _)| place).collect();
    let holders = seen.parts().filter_map(|(_, device)| device.holders.value()).flatten();
    let hides_some = holders.into_iter().any(|holder| holder.pid.is_none());
    for (pid, first) in &before.processes {
        // One that came or went meanwhile is no difference.
        let Some(last) = after.processes.get(pid) else { continue };
        let process = seen.snapshot.processes.iter().find(|process| process.pid == Some(*pid));
        let held =
            process.and_then(|it| it.devices.iter().find(|held| parts.contains(&held.device)));
        let mebibytes =
            |bytes: Option<u64>| bytes.map_or(String::from("?"), |it| (it >> 20).to_string());
        theirs.push(format!("{pid}: {} MiB", mebibytes(*first)));
        let Some(held) = held else {
            ours.push(format!("{pid}: unknown"));
            verdict = match (verdict, hides_some) {
                (Verdict::Agrees, true) => {
                    Verdict::Skipped(format!("{pid} is of another PID namespace"))
                }
                (known @ Verdict::Differs(_), _) | (known, true) => known,
                (_, false) => Verdict::Differs(format!("Telltale does not show {pid}")),
            };
            continue;
        };
        let bytes = held.live_bytes(MemorySpace::Dram);
        ours.push(format!("{pid}: {} MiB", mebibytes(bytes)));
        // What a process records itself is without what the driver keeps for it.
        if held.accounting != Accounting::BytesOnly {
            continue;
        }
        if let (Some(first), Some(last), Some(bytes)) = (first, last, bytes) {
            let low = first.min(last).saturating_sub(PROCESS_TOLERANCE_BYTES);
            let high = first.max(last).saturating_add(PROCESS_TOLERANCE_BYTES);
            if !(low..=high).contains(&bytes) {
                verdict = Verdict::Differs(format!("{pid} by more than 1 MiB"));
            }
        }
    }
    ComparedValue {
        gpu: None,
        theirs: String::from("compute-apps: pid, used_gpu_memory"),
        their_value: list(theirs),
        ours: String::from("processes"),
        our_value: list(ours),
        verdict,
    }
}

fn list(mut lines: Vec<String>) -> String {
    let all = lines.len();
    lines.truncate(SHOWN_PROCESSES);
    if all > SHOWN_PROCESSES {
        lines.push(format!("{} more", all - SHOWN_PROCESSES));
    }
    if lines.is_empty() { String::from("none") } else { lines.join(", ") }
}

/// Exact up to 2⁵³, which no count here reaches.
#[allow(clippy::cast_precision_loss)]
fn as_number(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use telltale_schema::clock::Timestamp;
    use telltale_schema::device::{DeviceClass, OtherIdentity};
    use telltale_schema::memory::{MemoryKind, MemorySpace};
    use telltale_schema::reading::Reading;
    use telltale_schema::snapshot::{
        Accounting, Device, HeldDevice, HeldKind, HeldUsage, Holder, Process, Snapshot, SpaceUsage,
    };

    use super::super::fields::{Comparison, FIELDS, Field, Tolerance};
    use super::{
        ComparedValue, GpuText, Look, Said, Verdict, better, processes, rows_of, seen, understood,
        verdict,
    };

    const PCI: &str = "0000:41:00.0";
    const MIB: u64 = 1 << 20;

    fn number(tolerance: f64, share: f64) -> Comparison {
        Comparison::Number(Tolerance { unit: 1.0, absolute: tolerance, share, why: "a test" })
    }

    #[test]
    fn texts_are_understood_as_nvidia_smi_writes_them() {
        let number = number(0.0, 0.0);
        for (comparison, texts, expected) in [
            (&number, vec!["89 C"], Said::Number(89.0)),
            (&number, vec!["P8"], Said::Number(8.0)),
            (&number, vec!["Yes"], Said::Number(1.0)),
            (&number, vec!["No"], Said::Number(0.0)),
            (&number, vec!["10", "20"], Said::Number(30.0)),
            (&number, vec!["10", "[N/A]"], Said::None(String::from("[N/A]"))),
            (&number, vec!["nan"], Said::Text(String::from("nan"))),
            (
                &Comparison::Address,
                vec!["00000000:C1:00.0"],
                Said::Text(String::from("0000:c1:00.0")),
            ),
            (&Comparison::Reasons, vec!["0x0000000000000001"], Said::Names([].into())),
            (
                &Comparison::Reasons,
                vec!["0x84"],
                Said::Names(["sw_power_cap", "hw_power_brake_slowdown"].into()),
            ),
            (&Comparison::Reasons, vec!["Active"], Said::Text(String::from("Active"))),
        ] {
            assert_eq!(understood(comparison, &texts), expected, "{texts:?}");
        }
    }

    #[test]
    fn ours_must_be_between_before_and_after() {
        let none = || Said::None(String::from("[N/A]"));
        let names = |names: &[&'static str]| Said::Names(names.iter().copied().collect());
        let exact = number(0.0, 0.0);
        for (comparison, before, ours, after, agrees) in [
            (&exact, Said::Number(1.0), Said::Number(1.0), Said::Number(1.0), true),
            (&exact, Said::Number(3.0), Said::Number(2.0), Said::Number(1.0), true),
            (&exact, Said::Number(1.0), Said::Number(4.0), Said::Number(3.0), false),
            (&number(1.0, 0.0), Said::Number(1.0), Said::Number(4.0), Said::Number(3.0), true),
            (&number(0.0, 0.1), Said::Number(90.0), Said::Number(110.0), Said::Number(100.0), true),
            (
                &number(0.0, 0.1),
                Said::Number(90.0),
                Said::Number(111.0),
                Said::Number(100.0),
                false,
            ),
            (&exact, none(), none(), none(), true),
            (&exact, Said::Number(0.0), none(), Said::Number(0.0), false),
            (&exact, none(), Said::Number(0.0), none(), false),
            (&exact, none(), Said::Number(2.0), Said::Number(2.0), true),
            (&exact, Said::Number(2.0), Said::Number(3.0), none(), false),
            (&exact, Said::Text(String::from("x")), Said::Number(0.0), Said::Number(0.0), false),
            (&Comparison::Reasons, names(&["a"]), names(&["a", "b"]), names(&["a", "b"]), true),
            (&Comparison::Reasons, names(&["a"]), names(&[]), names(&["a"]), false),
            (&Comparison::Reasons, names(&["a"]), names(&["a", "c"]), names(&["a", "b"]), false),
        ] {
            let found = verdict(comparison, &before, &ours, &after);
            assert_eq!(
                found == Verdict::Agrees,
                agrees,
                "{before:?} {ours:?} {after:?}: {found:?}"
            );
        }
    }

    #[test]
    fn a_row_that_agreed_once_stays() {
        let row = |value: &str, verdict| ComparedValue {
            gpu: Some(0),
            theirs: String::from("x"),
            their_value: value.to_owned(),
            ours: String::from("y"),
            our_value: String::new(),
            verdict,
        };
        let differs = || Verdict::Differs(String::new());
        let first = vec![row("1", Verdict::Agrees)];
        assert_eq!(better(first.clone(), vec![row("2", differs())]), first);
        let second = vec![row("2", Verdict::Agrees)];
        assert_eq!(better(vec![row("1", differs())], second.clone()), second);
    }

    fn device(name: &str, parent: Option<&str>, used: u64, capacity: u64) -> Device {
        let identity = OtherIdentity {
            pci: PCI.parse().ok(),
            parent: parent.map(str::to_owned),
            driver_ordinal: Some(0),
            ..OtherIdentity::new(name, "nvidia", DeviceClass::Gpu)
        };
        let mut device = Device::unread(name, identity);
        device.spaces = vec![SpaceUsage {
            space: MemorySpace::Dram,
            used_bytes: Reading::new(used * MIB, Timestamp(1)),
            capacity_bytes: Reading::new(capacity * MIB, Timestamp(1)),
            capacity_source: None,
        }];
        device
    }

    /// A GPU with an instance that has a part of its memory, and a process in the instance.
    fn divided(bytes: u64) -> Snapshot {
        let mut snapshot = Snapshot::empty(Timestamp(1));
        let part = format!("{PCI}/1");
        snapshot.devices = vec![device(PCI, None, 10, 1000), device(&part, Some(PCI), 20, 3000)];
        let mut process = Process::hidden(None, "train");
        process.pid = Some(70);
        let usage = HeldUsage::BytesOnly { live_bytes: bytes };
        let mut held = HeldDevice {
            device: 1,
            accounting: Accounting::BytesOnly,
            kinds: vec![HeldKind { kind: MemoryKind::Dram, usage }],
            ..HeldDevice::default()
        };
        held.add_up();
        process.devices = vec![held];
        snapshot.processes = vec![process];
        snapshot
    }

    fn text(fields: &[(&'static str, &str)], processes: &[(u32, Option<u64>)]) -> GpuText {
        GpuText {
            fields: fields.iter().map(|(name, text)| (*name, (*text).to_owned())).collect(),
            processes: processes.iter().copied().collect(),
            ..GpuText::default()
        }
    }

    #[test]
    fn memory_of_instances_is_the_gpus_and_what_is_gone_differs() {
        let look = |used| Look {
            gpus: BTreeMap::from([(
                PCI.parse().unwrap(),
                text(&[("memory.total", "4000"), ("memory.used", used)], &[]),
            )]),
            unknown: ["index".to_owned()].into(),
        };
        let of = |rows: &[ComparedValue], name: &str| {
            rows.iter().find(|row| row.theirs == name).unwrap().verdict.clone()
        };
        let rows = rows_of(&look("30"), &divided(0), &look("30"));
        assert_eq!(of(&rows, "memory.total"), Verdict::Agrees);
        assert_eq!(of(&rows, "memory.used"), Verdict::Agrees);
        let unknown = Verdict::Skipped(String::from("this nvidia-smi does not know index"));
        assert_eq!(of(&rows, "index"), unknown);
        assert_eq!(
            of(&rows, "pstate"),
            Verdict::Skipped(String::from("nvidia-smi does not print it"))
        );
        let rows = rows_of(&look("30"), &Snapshot::empty(Timestamp(1)), &look("30"));
        assert_eq!(rows.len(), FIELDS.len());
        assert!(rows.iter().all(|row| matches!(row.verdict, Verdict::Differs(_))));
        assert!(FIELDS.iter().all(|Field { theirs, .. }| !theirs.name().contains('|')));
    }

    #[test]
    fn processes_are_compared_by_pid_and_one_of_another_namespace_is_skipped() {
        let pci = PCI.parse().unwrap();
        let of =
            |snapshot: &Snapshot, before: &[(u32, Option<u64>)], after: &[(u32, Option<u64>)]| {
                let seen = seen(snapshot, pci).unwrap();
                processes((&text(&[], before), &text(&[], after)), &seen).verdict
            };
        let mebibytes = |count: u64| Some(count * MIB);
        let mut snapshot = divided(100 * MIB);
        let is_hidden = |verdict: &Verdict| matches!(verdict, Verdict::Skipped(_));
        let differs = |verdict: &Verdict| matches!(verdict, Verdict::Differs(_));
        let near = [(70, mebibytes(101))];
        assert_eq!(of(&snapshot, &near, &near), Verdict::Agrees);
        assert_eq!(of(&snapshot, &[(70, None)], &[(70, None)]), Verdict::Agrees);
        let far = [(70, mebibytes(102))];
        assert!(differs(&of(&snapshot, &far, &far)));
        let other = [(71, mebibytes(5))];
        assert_eq!(of(&snapshot, &other, &[]), Verdict::Agrees, "it has ended");
        assert!(differs(&of(&snapshot, &other, &other)));
        let holder = Holder { pid: None, open_descriptors: 1, memory_known: false };
        snapshot.devices[0].holders = Reading::new(vec![holder], Timestamp(1));
        assert!(is_hidden(&of(&snapshot, &other, &other)));
        let both = [other[0], far[0]];
        assert!(differs(&of(&snapshot, &both, &both)), "one that is skipped hides no difference");
    }
}
