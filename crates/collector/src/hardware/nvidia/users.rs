//! Who uses a GPU, and what NVML counts for each.
//!
//! NVML lists compute, MPS and graphics contexts apart; a process that has several is in several
//! lists with the same value, and counts once. Its pids are those of the driver: of the machine,
//! or of our PID namespace, depending on the driver's version. So one that cannot be seen to use a
//! GPU from here is unknown, and its memory is unattributed.

use std::collections::BTreeMap;
use std::sync::Arc;

use nvml_wrapper::Device;
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::ProcessInfo;
use telltale_schema::memory::MemoryKind;
use telltale_schema::snapshot::Holder;

use super::library::Said;
use super::process_use::ProcessUse;
use crate::source::DriverUsage;
use crate::tree::{Directory, Tree};

/// Processes of one GPU that are kept.
const MAX_USERS: usize = 16 * 1024;
/// Descriptors of one process that are checked.
const MAX_DESCRIPTORS: usize = 4096;
/// The machine's own PID namespace (`PROC_PID_INIT_INO` of the kernel's `proc_ns.h`).
const FIRST_NAMESPACE: &str = "pid:[4026531836]";

/// A process that has a context on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct User {
    /// Its pid in our PID namespace; none where it is not known from here.
    pub(super) pid: Option<u32>,
    /// Its bytes in the GPU's memory; none where the driver does not say.
    pub(super) bytes: Option<u64>,
    /// The instance of the GPU that it is in.
    pub(super) instance: Option<u32>,
}

/// Which processes can be seen from here.
#[derive(Debug, Clone)]
pub(super) struct Visibility {
    tree: Arc<Tree>,
    /// We are in the machine's own PID namespace, where every pid means what NVML means.
    everything: bool,
}

// === impl Visibility ===

impl Visibility {
    pub(super) fn of(tree: Arc<Tree>) -> Self {
        let namespace = tree.root().link("proc/self/ns/pid");
        // A kernel without namespaces has one for all.
        let everything = namespace.map_or(true, |name| name.as_os_str() == FIRST_NAMESPACE);
        Self { tree, everything }
    }

    /// Whether this pid is, here, that of a process which may use a GPU.
    fn sees(&self, pid: u32) -> bool {
        let Ok(process) = self.tree.root().directory(&format!("proc/{pid}")) else { return false };
        pid != 0 && (self.everything || has_gpu_open(&process))
    }
}

fn has_gpu_open(process: &Directory) -> bool {
    let Ok(descriptors) = process.directory("fd") else { return false };
    let names = descriptors.names().unwrap_or_default();
    names.iter().take(MAX_DESCRIPTORS).any(|name| {
        let target = descriptors.link(name).ok();
        target.is_some_and(|target| target.to_string_lossy().starts_with("/dev/nvidia"))
    })
}

/// The users of a GPU, or of a part of one.
pub(super) fn users(device: &Device<'_>, visibility: &Visibility) -> Said<Vec<User>> {
    let mut all = device.running_compute_processes()?;
    for more in [device.mps_running_compute_processes(), device.running_graphics_processes()] {
        match more {
            Ok(more) => all.extend(more),
            // Not every GPU draws, and not every driver knows the call.
            Err(NvmlError::NotSupported | NvmlError::FailedToLoadSymbol(_)) => {}
            Err(error) => return Err(error),
        }
    }
    all.truncate(MAX_USERS);
    Ok(merged(&all, |pid| visibility.sees(pid)))
}

/// Each process once.
fn merged(all: &[ProcessInfo], sees: impl Fn(u32) -> bool) -> Vec<User> {
    let mut users: BTreeMap<u32, User> = BTreeMap::new();
    for one in all {
        let bytes = match one.used_gpu_memory {
            UsedGpuMemory::Used(bytes) => Some(bytes),
            UsedGpuMemory::Unavailable => None,
        };
        let new =
            || User { pid: sees(one.pid).then_some(one.pid), bytes, instance: one.gpu_instance_id };
        let known = users.entry(one.pid).or_insert_with(new);
        known.bytes = known.bytes.max(bytes);
    }
    users.into_values().collect()
}

/// The users as holders: NVML does not say how often each has the GPU open, so each once.
pub(super) fn holders(users: &[User]) -> Vec<Holder> {
    let holder = |pid, open_descriptors| Holder { pid, open_descriptors, memory_known: false };
    let seen = users.iter().filter_map(|user| user.pid);
    let mut holders: Vec<Holder> = seen.map(|pid| holder(Some(pid), 1)).collect();
    let hidden = users.iter().filter(|user| user.pid.is_none()).count();
    if hidden > 0 {
        holders.push(holder(None, u32::try_from(hidden).unwrap_or(u32::MAX)));
    }
    holders
}

/// What is counted for those who are seen.
pub(super) fn usage(users: &[User], process_use: Option<&ProcessUse>) -> Vec<DriverUsage> {
    let counted = users.iter().filter_map(|user| {
        let pid = user.pid?;
        let kinds: Vec<(MemoryKind, u64)> =
            user.bytes.map(|bytes| (MemoryKind::Dram, bytes)).into_iter().collect();
        let busy_ratio = process_use.and_then(|all| all.get(&pid).copied().unwrap_or(Some(0.0)));
        let is_counted = !kinds.is_empty() || busy_ratio.is_some();
        is_counted.then_some(DriverUsage { pid, kinds, busy_ratio })
    });
    counted.collect()
}

#[cfg(test)]
mod tests {
    use super::{User, holders, merged, usage};
    use nvml_wrapper::enums::device::UsedGpuMemory;
    use nvml_wrapper::struct_wrappers::device::ProcessInfo;

    fn process(pid: u32, used_gpu_memory: UsedGpuMemory) -> ProcessInfo {
        ProcessInfo { pid, used_gpu_memory, gpu_instance_id: None, compute_instance_id: None }
    }

    #[test]
    fn a_process_in_several_lists_counts_once_and_unknown_memory_is_no_zero() {
        let all = [
            process(9, UsedGpuMemory::Used(70)),
            process(7, UsedGpuMemory::Unavailable),
            process(9, UsedGpuMemory::Used(70)),
            process(8, UsedGpuMemory::Unavailable),
            process(8, UsedGpuMemory::Used(5)),
            process(6, UsedGpuMemory::Used(1)),
        ];
        let users = merged(&all, |pid| pid != 6);
        let user = |pid, bytes| User { pid, bytes, instance: None };
        let expected = [
            user(None, Some(1)),
            user(Some(7), None),
            user(Some(8), Some(5)),
            user(Some(9), Some(70)),
        ];
        assert_eq!(users, expected);
        let pids: Vec<_> =
            holders(&users).iter().map(|one| (one.pid, one.open_descriptors)).collect();
        assert_eq!(pids, [(Some(7), 1), (Some(8), 1), (Some(9), 1), (None, 1)]);
        let counted: Vec<u32> = usage(&users, None).iter().map(|usage| usage.pid).collect();
        assert_eq!(counted, [8, 9]);
    }
}
