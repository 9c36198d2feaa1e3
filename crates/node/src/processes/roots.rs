//! What cannot be seen at our own places: runtime directories of other users, and those and
//! `/dev/shm` of containers that share nothing with us, through `/proc/<pid>/root` of the
//! processes that the driver lists.
//!
//! That takes root or CAP_SYS_PTRACE; without it nothing is found here, and nothing is said:
//! such a holder is shown as one whose memory is not known. Where a directory is found decides
//! nothing: each file in it is judged by its own owner.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use telltale_ledger::directory::{INSTALLED_DIRECTORY, RuntimeDirectory};

use super::status::{Found, Procfs};
use crate::patience::{Limits, Patience, TaskName};

/// Pairs of a mount namespace and a user that are looked into.
const MAX_PLACES: usize = 256;

/// The most of a process's environment that is read for the name of its runtime directory.
const MAX_ENVIRONMENT_BYTES: usize = 64 * 1024;

/// What a container, or another user outside all containers, has.
#[derive(Debug)]
pub(crate) struct ContainerFiles {
    /// Runtime directories, those that are known otherwise left out.
    pub(crate) directories: Vec<Arc<RuntimeDirectory>>,
    /// A container's `/dev/shm`.
    shared_memory: Option<OwnedFd>,
}

/// A process through whose eyes to look.
struct Viewpoint {
    process: PathBuf,
    uids: [u32; 4],
    contained: bool,
    environment: Vec<u8>,
}

/// Looks through the eyes of these processes. `known` has device and inode of the directories
/// that were seen before, and takes up those found here.
pub(crate) fn look(
    procfs: &Procfs,
    pids: impl Iterator<Item = u32>,
    known: &mut BTreeSet<(u64, u64)>,
    (patience, limits): (&Patience, Limits),
) -> Vec<ContainerFiles> {
    let own = mount_namespace(Path::new("/proc/self"));
    let own_uid = rustix::process::geteuid().as_raw();
    let mut places = BTreeSet::new();
    let mut viewpoints = Vec::new();
    for pid in pids {
        if viewpoints.len() == MAX_PLACES {
            break;
        }
        let process = PathBuf::from(format!("/proc/{pid}"));
        let Some(namespace) = mount_namespace(&process) else { continue };
        let Found::Process(_, status) = procfs.find(pid) else { continue };
        let (contained, uid) = (Some(namespace) != own, status.uids[1]);
        // Our own user's places are those that were looked at first.
        if (contained || uid != own_uid) && places.insert((namespace, uid)) {
            let (uids, environment) = (status.uids, Vec::new());
            viewpoints.push((pid, Viewpoint { process, uids, contained, environment }));
        }
    }
    // An environment lies in the process's memory, as its command line does, and a path of its
    // choice may lead to a dead file server: either may hang.
    let task =
        |(pid, one): &(u32, Viewpoint)| (TaskName { group: *pid, item: 1 }, one.process.clone());
    let tasks = viewpoints.iter().map(task).collect();
    let environments = patience.run(tasks, |process| environment(process), limits);
    let tasks = viewpoints.into_iter().zip(environments).map(|((pid, one), environment)| {
        let environment = environment.unwrap_or_default();
        (TaskName { group: pid, item: 2 }, Viewpoint { environment, ..one })
    });
    let seen = patience.run(tasks.collect(), Viewpoint::look, limits);
    let mut found: Vec<ContainerFiles> = seen.into_iter().flatten().flatten().collect();
    for files in &mut found {
        files.directories.retain(|one| identity(one).is_some_and(|it| known.insert(it)));
    }
    found
}

// === impl ContainerFiles ===

impl ContainerFiles {
    /// A path to its `/dev/shm`, good while this lives.
    pub(crate) fn shared_memory(&self) -> Option<PathBuf> {
        let descriptor = self.shared_memory.as_ref()?.as_raw_fd();
        // With the dot, the last part is no link.
        Some(PathBuf::from(format!("/proc/self/fd/{descriptor}/.")))
    }
}

// === impl Viewpoint ===

impl Viewpoint {
    fn look(&self) -> Option<ContainerFiles> {
        let shown_root = self.process.join("root");
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(&shown_root, flags, Mode::empty()).ok()?;
        let directories = candidates(&self.environment, self.uids[1])
            .iter()
            .filter_map(|path| {
                let inside = path.strip_prefix("/").ok()?;
                let shown = shown_root.join(inside);
                RuntimeDirectory::open_beneath(root.as_fd(), inside, &shown).ok()
            })
            .filter(|one| self.may_use(one))
            .map(Arc::new)
            .collect();
        let within = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let shared = || openat2(&root, "dev/shm", flags, Mode::empty(), within).ok();
        let shared_memory = self.contained.then(shared).flatten();
        Some(ContainerFiles { directories, shared_memory })
    }

    /// Whether the directory is the process's user's own, or one that users share.
    fn may_use(&self, directory: &RuntimeDirectory) -> bool {
        let owner = directory.owner();
        // An installed directory, whose group is the service's.
        let shared = directory.ledger_mode() & 0o040 != 0;
        owner == 0 || self.uids.contains(&owner) || shared
    }
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
    // Where the session of a user has it (pam_systemd), for one whose environment is closed.
    paths.push(PathBuf::from(format!("/run/user/{uid}/telltale")));
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

#[cfg(test)]
mod tests {
    use super::candidates;
    use std::path::Path;

    #[test]
    fn every_place_a_writer_may_fall_back_to_is_looked_at() {
        let usual = ["/run/tt", "/run/user/7/telltale", "/tmp/telltale-7"].map(Path::new);
        assert_eq!(candidates(b"", 7), usual);
        assert_eq!(
            candidates(b"TT_METRICS_SOCKET_DIR=../up\0XDG_RUNTIME_DIR=/a/../b", 7),
            usual,
            "a path that is not plain is nobody's"
        );
        let named = candidates(b"A=1\0XDG_RUNTIME_DIR=/x\0TT_METRICS_SOCKET_DIR=/named\0", 7);
        let all = ["/run/tt", "/named", "/x/telltale", "/run/user/7/telltale", "/tmp/telltale-7"];
        assert_eq!(named, all.map(Path::new));
    }
}
