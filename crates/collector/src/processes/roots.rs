//! What cannot be seen at our own places: runtime directories of other users, and those and
//! `/dev/shm` of containers that share nothing with us, through `/proc/<pid>/root` of the
//! processes that the driver lists.
//!
//! That takes root or CAP_SYS_PTRACE; without it nothing is found here, and nothing is said:
//! such a holder is shown as one whose memory is not known. Where a directory is found decides
//! nothing: each file in it is judged by its own owner.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use telltale_ledger::directory::{INSTALLED_DIRECTORY, RuntimeDirectory};

use super::status::{Procfs, StatusLookup};
use crate::timeout::{CallLimits, TaskName, Timeout};

/// Pairs of a mount namespace and a user that are checked.
const MAX_PLACES: usize = 256;

/// Holders of one such pair whose environments are read: each may name another directory.
const MAX_ENVIRONMENTS: usize = 32;

/// Directories that are searched for at one place.
const MAX_DIRECTORIES: usize = 64;

/// The most of a process's map of user ids that is read: the kernel takes 340 lines.
const MAX_UID_MAP_BYTES: usize = 16 * 1024;

/// The most of a process's environment that is read for the name of its runtime directory.
const MAX_ENVIRONMENT_BYTES: usize = 64 * 1024;

/// What a container, or another user outside all containers, has.
#[derive(Debug)]
pub(crate) struct ContainerFiles {
    /// Runtime directories, those that are known otherwise left out.
    pub(crate) directories: Vec<Arc<RuntimeDirectory>>,
    /// The user whose processes led there: what cannot be checked there is of that user's making.
    pub(crate) user: u32,
    /// A container's `/dev/shm`.
    shared_memory: Option<OwnedFd>,
}

/// A place: what the processes of one user in one mount namespace see, by the eyes of the first.
struct Viewpoint {
    process: PathBuf,
    uids: [u32; 4],
    contained: bool,
    /// Those processes, of which a bounded number is kept.
    pids: Vec<u32>,
    /// What their environments name.
    named: Vec<PathBuf>,
}

/// From where a process sees: the number of its mount namespace, and its users.
pub(crate) type Outlook = (u64, [u32; 4]);

/// Scans what these processes see, each with its outlook where that is known. `known`
/// has device and inode of the directories that were seen before, and takes up those found here.
pub(crate) fn scan(
    procfs: &Procfs,
    pids: impl Iterator<Item = (u32, Option<Outlook>)>,
    known: &mut BTreeSet<(u64, u64)>,
    (timeout, limits): (&Timeout, CallLimits),
) -> Vec<ContainerFiles> {
    let own = mount_namespace(Path::new("/proc/self"));
    let own_uid = rustix::process::geteuid().as_raw();
    let mut viewpoints: BTreeMap<(u64, u32), Viewpoint> = BTreeMap::new();
    for (pid, outlook) in pids {
        let Some((namespace, uids)) = outlook.or_else(|| outlook_of(pid, procfs)) else { continue };
        let (contained, uid) = (Some(namespace) != own, uids[1]);
        // Our own user's places are those that were checked first.
        if !contained && uid == own_uid {
            continue;
        }
        let room = viewpoints.len() < MAX_PLACES;
        match viewpoints.entry((namespace, uid)) {
            Entry::Occupied(mut known) if known.get().pids.len() < MAX_ENVIRONMENTS => {
                known.get_mut().pids.push(pid);
            }
            Entry::Vacant(place) if room => {
                let process = PathBuf::from(format!("/proc/{pid}"));
                let (pids, named) = (vec![pid], Vec::new());
                place.insert(Viewpoint { process, uids, contained, pids, named });
            }
            Entry::Occupied(_) | Entry::Vacant(_) => {}
        }
    }
    let mut viewpoints: Vec<Viewpoint> = viewpoints.into_values().collect();
    // An environment lies in the process's memory, as its command line does, and a path of its
    // choice may lead to a dead file server: either may hang.
    let readers = viewpoints.iter().flat_map(|one| &one.pids);
    let tasks = readers.map(|pid| (TaskName { group: *pid, item: 1 }, *pid)).collect();
    let mut environments = timeout.run(tasks, |pid| environment(*pid), limits).into_iter();
    for one in &mut viewpoints {
        for environment in environments.by_ref().take(one.pids.len()).flatten() {
            one.named.extend(named(&environment));
        }
    }
    let tasks = viewpoints.into_iter().map(|one| (TaskName { group: one.pids[0], item: 2 }, one));
    let seen = timeout.run(tasks.collect(), Viewpoint::scan, limits);
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
    fn scan(&self) -> Option<ContainerFiles> {
        let shown_root = self.process.join("root");
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(&shown_root, flags, Mode::empty()).ok()?;
        let directories = candidates(&self.named, self.uids[1], self.inner_uid())
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
        Some(ContainerFiles { directories, user: self.uids[1], shared_memory })
    }

    /// The user as the process itself knows it, where it has a user namespace of its own.
    fn inner_uid(&self) -> Option<u32> {
        let map = beginning(&self.process.join("uid_map"), MAX_UID_MAP_BYTES);
        inner_uid(std::str::from_utf8(&map).ok()?, self.uids[1])
    }

    /// Whether the directory is the process's user's own, or one that users share.
    fn may_use(&self, directory: &RuntimeDirectory) -> bool {
        let owner = directory.owner();
        // The group of an installed one is the service's.
        owner == 0 || self.uids.contains(&owner) || directory.is_installed()
    }
}

/// Device and inode of a directory.
pub(crate) fn identity(directory: &RuntimeDirectory) -> Option<(u64, u64)> {
    rustix::fs::fstat(directory).ok().map(|stat| (stat.st_dev, stat.st_ino))
}

fn outlook_of(pid: u32, procfs: &Procfs) -> Option<Outlook> {
    let namespace = mount_namespace_of(pid)?;
    match procfs.find(pid) {
        StatusLookup::Process(_, status) => Some((namespace, status.uids)),
        _ => None,
    }
}

/// The number of the mount namespace of a process, where we may know it.
pub(crate) fn mount_namespace_of(pid: u32) -> Option<u64> {
    mount_namespace(Path::new(&format!("/proc/{pid}")))
}

fn mount_namespace(process: &Path) -> Option<u64> {
    rustix::fs::stat(process.join("ns/mnt")).ok().map(|stat| stat.st_ino)
}

/// Where processes of this user, who has another id in its own user namespace, may have their
/// runtime directories, as their root has them.
fn candidates(named: &[PathBuf], uid: u32, inner_uid: Option<u32>) -> Vec<PathBuf> {
    let mut paths = vec![PathBuf::from(INSTALLED_DIRECTORY)];
    for uid in [Some(uid), inner_uid.filter(|inner| *inner != uid)].into_iter().flatten() {
        // Where the session of a user has it (pam_systemd), for one whose environment is closed.
        paths.push(PathBuf::from(format!("/run/user/{uid}/telltale")));
        paths.push(PathBuf::from(format!("/tmp/telltale-{uid}")));
    }
    for path in named {
        if paths.len() < MAX_DIRECTORIES && !paths.contains(path) {
            paths.push(path.clone());
        }
    }
    paths
}

/// The id that the user `outer` has inside, by lines of the first id inside, the first outside and
/// how many there are.
fn inner_uid(map: &str, outer: u32) -> Option<u32> {
    map.lines().find_map(|line| {
        let mut numbers = line.split_ascii_whitespace().map(|word| word.parse::<u32>().ok());
        let (inside, outside, count) = (numbers.next()??, numbers.next()??, numbers.next()??);
        let offset = outer.checked_sub(outside).filter(|offset| *offset < count)?;
        inside.checked_add(offset)
    })
}

/// The runtime directories that an environment names.
fn named(environment: &[u8]) -> impl Iterator<Item = PathBuf> {
    let value = |key: &str| {
        environment.split(|byte| *byte == 0).find_map(|entry| {
            let text = std::str::from_utf8(entry).ok()?.strip_prefix(key)?;
            let path = PathBuf::from(text);
            let plain = path.is_absolute()
                && !path.components().any(|part| part == std::path::Component::ParentDir);
            plain.then_some(path)
        })
    };
    let own = value("TT_METRICS_SOCKET_DIR=");
    let of_session = value("XDG_RUNTIME_DIR=").map(|path| path.join("telltale"));
    own.into_iter().chain(of_session)
}

fn environment(pid: u32) -> Vec<u8> {
    beginning(Path::new(&format!("/proc/{pid}/environ")), MAX_ENVIRONMENT_BYTES)
}

/// The first bytes of a file of `/proc`. Unreadable is the same as empty: only the usual places
/// are left.
fn beginning(path: &Path, limit: usize) -> Vec<u8> {
    use std::io::Read;
    let mut bytes = Vec::new();
    let limit = u64::try_from(limit).unwrap_or(u64::MAX);
    let _ = std::fs::File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes));
    bytes
}

#[cfg(test)]
mod tests {
    use super::{MAX_DIRECTORIES, candidates, inner_uid, named};
    use std::path::{Path, PathBuf};

    #[test]
    fn every_place_a_writer_may_fall_back_to_is_checked() {
        let usual = ["/run/tt", "/run/user/7/telltale", "/tmp/telltale-7"].map(Path::new);
        assert_eq!(candidates(&[], 7, None), usual);
        assert_eq!(candidates(&[], 7, Some(7)), usual);
        let inner = candidates(&[], 7, Some(0));
        assert_eq!(inner[..3], usual);
        assert_eq!(inner[3..], ["/run/user/0/telltale", "/tmp/telltale-0"].map(Path::new));
        let twice: Vec<PathBuf> = ["/a", "/b", "/a"].map(PathBuf::from).into();
        assert_eq!(candidates(&twice, 7, None)[3..], ["/a", "/b"].map(Path::new));
        let many: Vec<PathBuf> = (0..500).map(|n| PathBuf::from(format!("/{n}"))).collect();
        assert_eq!(candidates(&many, 7, None).len(), MAX_DIRECTORIES);
    }

    #[test]
    fn an_environment_names_plain_paths() {
        let paths = |environment: &[u8]| named(environment).collect::<Vec<_>>();
        assert_eq!(paths(b""), [""; 0].map(PathBuf::from));
        assert_eq!(
            paths(b"TT_METRICS_SOCKET_DIR=../up\0XDG_RUNTIME_DIR=/a/../b"),
            [""; 0].map(PathBuf::from),
            "a path that is not plain is nobody's"
        );
        let found = paths(b"A=1\0XDG_RUNTIME_DIR=/x\0TT_METRICS_SOCKET_DIR=/named\0");
        assert_eq!(found, ["/named", "/x/telltale"].map(Path::new));
    }

    #[test]
    fn a_user_has_another_id_in_its_own_user_namespace() {
        let map = "         0       1000          1\n         1     100000      65536\n";
        assert_eq!(inner_uid(map, 1000), Some(0));
        assert_eq!(inner_uid(map, 100_007), Some(8));
        assert_eq!(inner_uid(map, 7), None);
        assert_eq!(inner_uid("0 0 4294967295\n", 7), Some(7));
        for junk in ["", "x", "0 7", "0 7 x", "4294967295 0 9"] {
            assert_eq!(inner_uid(junk, 7), None, "{junk:?}");
        }
    }
}
