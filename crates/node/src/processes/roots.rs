//! Containers that share nothing with us: their runtime directories and `/dev/shm`, seen through
//! `/proc/<pid>/root` of the processes that the driver lists.
//!
//! That takes root or CAP_SYS_PTRACE; without it nothing is found here, and nothing is said:
//! such a holder is shown as one whose memory is not known.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use telltale_ledger::directory::{INSTALLED_DIRECTORY, Purpose, RuntimeDirectory};

use super::status::{Found, Procfs};
use crate::patience::{Limits, Patience, TaskName};

/// Containers that are looked into.
const MAX_CONTAINERS: usize = 256;

/// The most of a process's environment that is read for the name of its runtime directory.
const MAX_ENVIRONMENT_BYTES: usize = 64 * 1024;

/// What a container has.
#[derive(Debug)]
pub(crate) struct ContainerFiles {
    /// Runtime directories, those of the host left out.
    pub(crate) directories: Vec<Arc<RuntimeDirectory>>,
    /// Where its `/dev/shm` is.
    pub(crate) shared_memory: PathBuf,
}

/// Looks into the containers of these processes. `known` has device and inode of the directories
/// that were seen before, and takes up those found here.
pub(crate) fn look(
    procfs: &Procfs,
    pids: impl Iterator<Item = u32>,
    known: &mut BTreeSet<(u64, u64)>,
    (patience, limits): (&Patience, Limits),
) -> Vec<ContainerFiles> {
    let own = mount_namespace(Path::new("/proc/self"));
    let mut namespaces = BTreeSet::new();
    let mut found = Vec::new();
    for pid in pids {
        if found.len() == MAX_CONTAINERS {
            break;
        }
        let process = PathBuf::from(format!("/proc/{pid}"));
        let Some(namespace) = mount_namespace(&process) else { continue };
        if Some(namespace) == own || !namespaces.insert(namespace) {
            continue;
        }
        let Found::Process(_, status) = procfs.find(pid) else { continue };
        let root = process.join("root");
        let mut directories = Vec::new();
        // An environment lies in the process's memory, as its command line does: it may hang.
        let task = vec![(TaskName { group: pid, item: 1 }, process.clone())];
        let environment =
            patience.run(task, |process| environment(process), limits).pop().flatten();
        for path in candidates(&environment.unwrap_or_default(), status.uids[1]) {
            let Ok(inside) = path.strip_prefix("/") else { continue };
            let Ok(directory) = RuntimeDirectory::open(&root.join(inside), Purpose::Reading) else {
                continue;
            };
            if identity(&directory).is_some_and(|identity| known.insert(identity)) {
                directories.push(Arc::new(directory));
            }
        }
        found.push(ContainerFiles { directories, shared_memory: root.join("dev/shm") });
    }
    found
}

/// Device and inode of a directory.
pub(crate) fn identity(directory: &RuntimeDirectory) -> Option<(u64, u64)> {
    rustix::fs::fstat(directory).ok().map(|stat| (stat.st_dev, stat.st_ino))
}

fn mount_namespace(process: &Path) -> Option<u64> {
    rustix::fs::stat(process.join("ns/mnt")).ok().map(|stat| stat.st_ino)
}

/// Where a process of this user may have its runtime directory, as its own root has it.
fn candidates(environment: &[u8], uid: u32) -> Vec<PathBuf> {
    let mut paths = vec![PathBuf::from(INSTALLED_DIRECTORY)];
    let value = |key: &str| {
        environment.split(|byte| *byte == 0).find_map(|entry| {
            let text = std::str::from_utf8(entry).ok()?.strip_prefix(key)?;
            let path = PathBuf::from(text);
            let plain = path.is_absolute()
                && !path.components().any(|part| part == std::path::Component::ParentDir);
            plain.then_some(path)
        })
    };
    paths.extend(value("TT_METRICS_SOCKET_DIR="));
    paths.extend(value("XDG_RUNTIME_DIR=").map(|path| path.join("telltale")));
    paths.push(PathBuf::from(format!("/tmp/telltale-{uid}")));
    paths
}

fn environment(process: &Path) -> Vec<u8> {
    use std::io::Read;
    let mut bytes = Vec::new();
    let limit = u64::try_from(MAX_ENVIRONMENT_BYTES).unwrap_or(u64::MAX);
    // Unreadable is the same as empty: only the usual places are left.
    let _ = std::fs::File::open(process.join("environ"))
        .and_then(|file| file.take(limit).read_to_end(&mut bytes));
    bytes
}
