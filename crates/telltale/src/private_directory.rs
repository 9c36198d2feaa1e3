//! A directory for one run of a command, such as a demo's machine or a job's sockets: private, in memory where there
//! is such a place with room, held by a lock, and removed by the next one if its own process was
//! killed.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock, fstatvfs};

use crate::exit::Failure;

/// Room for an emulated machine and two ledgers, which need most, with plenty to spare: about a hundred small files,
/// of which each takes a block of up to 64 KiB.
const NEEDED_BYTES: u64 = 8 << 20;
/// Of a path in which directories are made: the 108 bytes of a socket's path (unix(7)) without the names below it.
const MAX_PARENT_BYTES: usize = 64;
/// Files, directories and links, several times over.
const NEEDED_FILES: u64 = 500;

/// A directory of our own, which [`Self::remove`] removes.
pub(crate) struct PrivateDirectory {
    path: PathBuf,
    /// Locked as long as this lives, in whatever PID namespace that is.
    _lock: File,
}

// === impl PrivateDirectory ===

impl PrivateDirectory {
    /// Makes a directory whose name begins with `prefix`, before the pid, and removes those of
    /// killed processes.
    pub(crate) fn make(prefix: &str) -> Result<Self, Failure> {
        let candidates = [
            std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from),
            Some(PathBuf::from("/dev/shm")),
            Some(std::env::temp_dir()),
            // Where TMPDIR names something that will not do.
            Some(PathBuf::from("/tmp")),
        ];
        let mut candidates: Vec<PathBuf> = candidates.into_iter().flatten().collect();
        candidates.dedup();
        let mut tried = String::new();
        for parent in candidates.into_iter().filter(|parent| parent.is_absolute()) {
            let bytes = parent.as_os_str().as_bytes();
            if bytes.len() > MAX_PARENT_BYTES || bytes.contains(&b':') {
                let parent = parent.display();
                tried.push_str(&format!("; {parent}: too long for sockets, or has a ':'"));
                continue;
            }
            remove_abandoned(&parent, prefix);
            let path = parent.join(format!("{prefix}{}", std::process::id()));
            match make_with_room(&path) {
                Ok(lock) => return Ok(Self { path, _lock: lock }),
                Err(error) => tried.push_str(&format!("; {}: {error}", path.display())),
            }
        }
        Err(Failure::Message(format!(
            "no directory of our own can be made, set TMPDIR to one with room that \
             you may write{tried}"
        )))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the directory with all its content; nothing when it is gone already.
    pub(crate) fn remove(&self) -> io::Result<()> {
        match fs::remove_dir_all(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// A new directory, locked; none is left when that fails or there is no room in it.
fn make_with_room(path: &Path) -> io::Result<File> {
    DirBuilder::new().mode(0o700).create(path)?;
    let directory = lock_with_room(path);
    if directory.is_err() {
        let _ = fs::remove_dir(path);
    }
    directory
}

fn lock_with_room(path: &Path) -> io::Result<File> {
    let directory = File::open(path)?;
    flock(&directory, FlockOperation::NonBlockingLockExclusive)?;
    let found = fstatvfs(&directory)?;
    // File systems without a limit of their own say 0 in all.
    let free_bytes = found.f_bavail.saturating_mul(found.f_frsize);
    if found.f_blocks != 0 && free_bytes < NEEDED_BYTES {
        return Err(io::Error::other(format!(
            "{} KiB are free there, {} are needed",
            free_bytes >> 10,
            NEEDED_BYTES >> 10
        )));
    }
    if found.f_files != 0 && found.f_favail < NEEDED_FILES {
        let free = found.f_favail;
        return Err(io::Error::other(format!(
            "{free} more files are possible there, {NEEDED_FILES} are needed"
        )));
    }
    Ok(directory)
}

/// Removes the directories in `parent` that are ours and whose process is dead: no process has its pid
/// and its lock is free. Either alone may mislead: pids are used again, and a process in
/// another PID namespace is invisible.
fn remove_abandoned(parent: &Path, prefix: &str) {
    let me = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(prefix));
        let Some(pid) = pid.and_then(|pid| pid.parse::<u32>().ok()) else { continue };
        let ours = entry.metadata().is_ok_and(|found| {
            found.is_dir() && found.uid() == me && found.mode() & 0o777 == 0o700
        });
        if !ours || Path::new(&format!("/proc/{pid}")).exists() {
            continue;
        }
        let unlocked = File::open(entry.path()).is_ok_and(|directory| {
            flock(&directory, FlockOperation::NonBlockingLockExclusive).is_ok()
        });
        if unlocked {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
