//! Memory and users of a GPU and of its parts, so that they add up: what a part has, the GPU has not.

use std::collections::BTreeMap;

use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::MemoryInfo;
use telltale_schema::clock::Timestamp;
use telltale_schema::device::{DeviceClass, DeviceIdentity, OtherIdentity};
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::{Load, Telemetry};

use super::complaints::Complaints;
use super::instances::Instance;
use super::library::{Said, absence_of};
use super::process_use::ProcessUse;
use super::question::Question;
use super::users::{User, holders, usage};
use crate::limits::MAX_DEVICE_BYTES;
use crate::source::{DeviceReading, DriverMemory};

/// What stands in the place of a part's sensors.
const OF_THE_WHOLE: &str = "measured of the whole GPU alone";

/// The parts that a GPU is divided into.
pub(super) fn parts(
    found: Vec<Instance>,
    whole: &DeviceIdentity,
    now: Timestamp,
    complaints: &mut Complaints<'_>,
) -> BTreeMap<u32, DeviceReading> {
    let mut parts = BTreeMap::new();
    for Instance { id, model, uuid, memory: said, users } in found {
        let parent = whole.display_id();
        let identity = OtherIdentity {
            model,
            driver: Some(String::from("nvidia")),
            pci: whole.pci(),
            uuid,
            parent: Some(parent.clone()),
            ..OtherIdentity::new(format!("{parent}/{id}"), "nvidia", DeviceClass::Partition)
        };
        let memory = memory(Question::Instances, said, now, complaints);
        let unsaid = Absence::Unsupported;
        let mut part = DeviceReading {
            telemetry: Telemetry {
                load: Some(Box::new(Load::absent(unsaid, OF_THE_WHOLE))),
                ..Telemetry::absent(unsaid, OF_THE_WHOLE)
            },
            memory: Some(DriverMemory {
                used_bytes: memory.clone().map(|(used, _)| used),
                capacity_bytes: memory.map(|(_, total)| total),
                processes: Vec::new(),
            }),
            ..DeviceReading::new(identity)
        };
        let users = complaints.reading(Question::Instances, users, now, |_| true);
        // NVML does not count it of instances.
        take_users(&mut part, &users, None, complaints);
        parts.insert(id, part);
    }
    parts
}

/// What stays of the parts when NVML does not report them: those that were there, without values.
pub(super) fn unknown(
    known: &mut BTreeMap<u32, DeviceReading>,
    error: &NvmlError,
    complaints: &mut Complaints<'_>,
) -> BTreeMap<u32, DeviceReading> {
    let (reason, detail) = (absence_of(error), error.to_string());
    complaints.add(reason, format!("NVML does not tell {}: {detail}", Question::Instances.words()));
    let mut parts = std::mem::take(known);
    for part in parts.values_mut() {
        part.memory = Some(no_memory(reason, &detail));
        forget_users(part, reason, &detail);
    }
    parts
}

/// Bytes in use and bytes in all, where both can be true.
pub(super) fn memory(
    question: Question,
    said: Said<MemoryInfo>,
    now: Timestamp,
    complaints: &mut Complaints<'_>,
) -> Reading<(u64, u64)> {
    let said = said.map(|info| (info.used, info.total));
    let memory = complaints.reading(question, said, now, |(used, total)| {
        *total > 0 && *total <= MAX_DEVICE_BYTES && used <= total
    });
    if let Some((reason @ Absence::Implausible, values)) = memory.absence() {
        complaints.add(reason, format!("used and total memory cannot be so: {values}"));
    }
    memory
}

/// What a GPU has in use and in all that none of its parts has. The parts were asked later than the
/// GPU, so that they may have a little more in use than it had.
pub(super) fn rest(
    whole: &Reading<(u64, u64)>,
    parts: &BTreeMap<u32, DeviceReading>,
    complaints: &mut Complaints<'_>,
) -> (Reading<u64>, Reading<u64>) {
    let (mut used, mut total) = (0u64, 0u64);
    for part in parts.values().filter_map(|part| part.memory.as_ref()) {
        let numbers = (part.used_bytes.value(), part.capacity_bytes.value());
        let (Some(part_used), Some(part_total)) = numbers else {
            let unknown =
                || Reading::absent(Absence::Unknown, "what its instances have is not known");
            return (unknown(), unknown());
        };
        used = used.saturating_add(*part_used);
        total = total.saturating_add(*part_total);
    }
    if let Some((_, all)) = whole.value().filter(|(_, all)| total > *all) {
        let detail = format!("its instances have {total} bytes of memory and it has {all}");
        complaints.add(Absence::Implausible, detail.as_str());
        let refused = || Reading::absent(Absence::Implausible, detail.as_str());
        return (refused(), refused());
    }
    let capacity = whole.clone().map(|(_, all)| all - total);
    let most = capacity.value().copied().unwrap_or(0);
    (whole.clone().map(|(all, _)| all.saturating_sub(used).min(most)), capacity)
}

/// Says who uses a device, as far as each can have what NVML says.
pub(super) fn take_users(
    device: &mut DeviceReading,
    users: &Reading<Vec<User>>,
    process_use: Option<&ProcessUse>,
    complaints: &mut Complaints<'_>,
) {
    device.holders = users.clone().map(|users| holders(&users));
    let Some(memory) = &mut device.memory else { return };
    let most = memory.capacity_bytes.value().copied().unwrap_or(MAX_DEVICE_BYTES);
    memory.processes = usage(users.value().map_or(&[][..], Vec::as_slice), process_use);
    let is_possible = |bytes: u64| bytes <= most;
    let first =
        memory.processes.iter().find(|one| one.kinds.iter().any(|(_, it)| !is_possible(*it)));
    if let Some(first) = first {
        let detail = format!("NVML says that pid {} has more memory than there is", first.pid);
        complaints.add(Absence::Implausible, detail);
    }
    memory.processes.retain(|one| one.kinds.iter().all(|(_, bytes)| is_possible(*bytes)));
}

/// Who used a device a while ago may be another process by now.
pub(super) fn forget_users(device: &mut DeviceReading, reason: Absence, detail: &str) {
    device.holders = Reading::absent(reason, detail);
    if let Some(memory) = &mut device.memory {
        memory.processes.clear();
    }
}

/// Memory of which nothing is known.
pub(super) fn no_memory(reason: Absence, detail: &str) -> DriverMemory {
    DriverMemory {
        used_bytes: Reading::absent(reason, detail),
        capacity_bytes: Reading::absent(reason, detail),
        processes: Vec::new(),
    }
}
