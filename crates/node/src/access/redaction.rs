//! A snapshot without what its reader may not see. Sums and counts stay exact, so that no reader
//! mistakes another user's memory for free memory.

use std::collections::BTreeSet;
use std::sync::Arc;

use telltale_schema::reading::Reading;
use telltale_schema::snapshot::{Device, Process, Snapshot, SourceStatus};

use super::Visibility;

/// The sources whose errors are about devices alone.
const DEVICE_SOURCES: [&str; 5] = ["tenstorrent", "drm", "neuron", "nvidia", "host"];

/// Stands where an error named a file, a socket or a process.
const WITHHELD_SUBJECT: &str = "withheld";
const WITHHELD_DETAIL: &str = "shown to root and to the service's user and group";
/// Stands where the use of a device is not known and the reason names its holders.
const WITHHELD_HOLDER: &str =
    "held by processes of other users, whose memory cannot be read from here";

/// The part of `snapshot` that `visibility` covers; the snapshot itself where that is all of it.
#[must_use]
pub fn visible(snapshot: &Arc<Snapshot>, visibility: Visibility) -> Arc<Snapshot> {
    let own = match visibility {
        Visibility::Everything => return Arc::clone(snapshot),
        Visibility::Own { uid } => Some(uid),
        Visibility::DevicesOnly => None,
    };
    let is_own = |process: &&Process| own.is_some() && process.uid.value() == own.as_ref();
    let processes: Vec<Process> = snapshot.processes.iter().filter(is_own).cloned().collect();
    let pids: BTreeSet<u32> = processes.iter().filter_map(|process| process.pid).collect();
    let left_out = snapshot.processes.len() - processes.len();
    Arc::new(Snapshot {
        schema_version: snapshot.schema_version,
        taken_at: snapshot.taken_at,
        collected_in_ns: snapshot.collected_in_ns,
        devices: snapshot.devices.iter().map(|device| without_others(device, &pids)).collect(),
        processes,
        host: own.and_then(|_| snapshot.host.clone()),
        closed_processes: snapshot.closed_processes,
        withheld_processes: u64::try_from(left_out).unwrap_or(u64::MAX),
        left_out: None,
        faults: snapshot.faults.clone(),
        sources: snapshot.sources.iter().map(without_names).collect(),
    })
}

/// A device whose holders have a pid only if it is in `pids`. How many there are stays.
fn without_others(device: &Device, pids: &BTreeSet<u32>) -> Device {
    let mut device = device.clone();
    let mut withheld = false;
    if let Reading::Value { value: holders, .. } = &mut device.holders {
        for holder in holders {
            if holder.pid.is_some_and(|pid| !pids.contains(&pid)) {
                holder.pid = None;
                withheld = true;
            }
        }
    }
    for usage in &mut device.spaces {
        if let Reading::Absent { detail, .. } = &mut usage.used_bytes
            && (withheld || detail.contains("pid "))
        {
            WITHHELD_HOLDER.clone_into(detail);
        }
    }
    device
}

/// How a source did, without the names in its errors: they are paths and pids.
fn without_names(source: &SourceStatus) -> SourceStatus {
    let mut source = source.clone();
    if !DEVICE_SOURCES.contains(&source.name.as_str()) {
        for error in &mut source.errors {
            WITHHELD_SUBJECT.clone_into(&mut error.subject);
            WITHHELD_DETAIL.clone_into(&mut error.detail);
        }
        for note in &mut source.notes {
            WITHHELD_SUBJECT.clone_into(&mut note.subject);
            WITHHELD_DETAIL.clone_into(&mut note.detail);
        }
    }
    source
}
