//! The directory that the history is in: ours alone, with a lock for the one who writes.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, FlockOperation, OFlags, accessat, flock};
use rustix::io::Errno;

/// The database's name in the directory.
const DATABASE: &str = "history.db";
/// What it is called until it is closed to others.
const NEW_DATABASE: &str = "history.db.new";
/// The name of the file whose lock the writer holds.
const LOCK: &str = "history.lock";
/// Bytes of a pid in that file, with the end of its line.
const MAX_PID_BYTES: u64 = 11;
/// Databases that were moved aside because they could not be read; with so many there, no other is
/// made, so that a disk that breaks files does not fill up with them.
const MAX_BROKEN: usize = 3;

/// Why the directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// It cannot be made or checked.
    #[error("cannot use the state directory {path}; name another one with --state-dir")]
    Use {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Another user could read or change what is in it.
    #[error(
        "the state directory {path} belongs to user {owner}, not to the user of this process; run \
         as that user, or name another directory with --state-dir"
    )]
    Owner {
        /// The directory.
        path: PathBuf,
        /// Its owner.
        owner: u32,
    },
    /// It has another use, so closing it would take it from others.
    #[error(
        "the state directory {path} is open to others and holds more than a history; name a \
         directory of its own with --state-dir"
    )]
    Shared {
        /// The directory.
        path: PathBuf,
    },
    /// Another service has it.
    #[error("{} has the state directory {path}; end it, or name another directory with --state-dir",
        holder(*pid))]
    Taken {
        /// The directory.
        path: PathBuf,
        /// The process that has it, as it knows itself; none when it has not said so yet.
        pid: Option<u32>,
    },
    /// Too many files were moved aside.
    #[error(
        "{MAX_BROKEN} databases in {path} were moved aside as broken; look at the disk, and remove \
         {DATABASE}.broken.*"
    )]
    Broken {
        /// The directory.
        path: PathBuf,
    },
}

/// The directory of the one who writes, as long as this lives.
#[derive(Debug)]
pub(super) struct OwnDirectory {
    path: PathBuf,
    lock: File,
}

/// Which files a database consists of. While a connection that writes is open, they stay the same
/// unless another process removes or replaces them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DatabaseFiles {
    database: Option<(u64, u64)>,
    log: Option<(u64, u64)>,
    index: Option<(u64, u64)>,
}

/// Where the state of the service of a machine is: as configured; below the root of an emulated or recorded
/// machine, so that no two machines share a history; else in [`default_directory`].
#[must_use]
pub fn directory_for(reported: Option<&Path>, root: &Path) -> Option<PathBuf> {
    match reported {
        Some(reported) => Some(reported.to_owned()),
        None if root != Path::new("/") => Some(root.join("var/lib/telltale")),
        None => default_directory(),
    }
}

/// Where the service keeps its state by default: `$STATE_DIRECTORY` (which systemd
/// sets), `/var/lib/telltale` for root, else `$XDG_STATE_HOME/telltale` or
/// `~/.local/state/telltale`. None where a user has no home.
#[must_use]
pub fn default_directory() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(given) = set("STATE_DIRECTORY") {
        // systemd separates several by colons; the first is the unit's own.
        let first = given.to_str().and_then(|text| text.split(':').next()).map(PathBuf::from);
        return Some(first.unwrap_or_else(|| PathBuf::from(&given)));
    }
    if rustix::process::geteuid().is_root() {
        return Some(PathBuf::from("/var/lib/telltale"));
    }
    let state = set("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || set("HOME").map(|home| Path::new(&home).join(".local/state"));
    Some(state.or_else(home)?.join("telltale"))
}

/// Where the database of a directory is.
#[must_use]
pub fn database_in(directory: &Path) -> PathBuf {
    directory.join(DATABASE)
}

// === impl OwnDirectory ===

impl OwnDirectory {
    /// Makes the directory if it is not there, closes it to others, and takes its lock.
    pub(super) fn take(path: &Path) -> Result<Self, DirectoryError> {
        let failed = |source| DirectoryError::Use { path: path.to_owned(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
        let path = owned(path)?;
        if fs::metadata(&path).map_err(failed)?.mode() & 0o077 != 0 {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).map_err(failed)?;
        }
        let lock = private_file(&path.join(LOCK)).map_err(failed)?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                // The lock is what holds; without room on the disk it holds without a name.
                let _ = note_holder(&lock);
                Ok(Self { path, lock })
            }
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let pid = noted_holder(&lock);
                Err(DirectoryError::Taken { path, pid })
            }
            Err(error) => Err(failed(error.into())),
        }
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is still there: removing it leaves a lock that cannot be found.
    pub(super) fn is_there(&self) -> bool {
        let held = self.lock.metadata().ok().map(|held| (held.dev(), held.ino()));
        held.is_some() && held == identity(&self.path.join(LOCK))
    }

    /// The database's file, there and closed to others. It is not opened here: a reader of this
    /// process may have it open, whose locks would be dropped with our descriptor.
    pub(super) fn database(&self) -> Result<PathBuf, DirectoryError> {
        let failed = |source| DirectoryError::Use { path: self.path.clone(), source };
        let path = self.path.join(DATABASE);
        match fs::symlink_metadata(&path) {
            Ok(found) => close_to_others(&path, &found).map_err(failed)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // An empty file of another name, closed before it gets this one, so that no process can
                // have it open when it is closed.
                let new = self.path.join(NEW_DATABASE);
                drop(private_file(&new).map_err(failed)?);
                fs::rename(&new, &path).map_err(failed)?;
            }
            Err(error) => return Err(failed(error)),
        }
        Ok(path)
    }

    /// Moves the database aside, as it is; gives its new place.
    pub(super) fn set_aside(&self) -> Result<PathBuf, DirectoryError> {
        let failed = |source| DirectoryError::Use { path: self.path.clone(), source };
        let free = (1..=MAX_BROKEN)
            .map(|number| format!("{DATABASE}.broken.{number}"))
            .find(|name| !self.path.join(name).exists());
        let Some(name) = free else {
            return Err(DirectoryError::Broken { path: self.path.clone() });
        };
        // The log first: without its database it is nothing, and the other way round the new
        // database would take it for its own.
        for suffix in ["-wal", "-shm", ""] {
            let from = self.path.join(format!("{DATABASE}{suffix}"));
            match fs::rename(&from, self.path.join(format!("{name}{suffix}"))) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
                _ => {}
            }
        }
        Ok(self.path.join(name))
    }
}

impl Drop for OwnDirectory {
    /// A process that is just being started has copies of all descriptors until it executes its program:
    /// closing ours would not give the lock back until then.
    fn drop(&mut self) {
        // What cannot be unlocked is so once the last copy is closed.
        let _ = flock(&self.lock, FlockOperation::Unlock);
    }
}

// === impl DatabaseFiles ===

impl DatabaseFiles {
    /// Those of the database at `path`, by their names.
    pub(super) fn of(path: &Path) -> Self {
        let named = |suffix| identity(&beside(path, suffix));
        Self { database: identity(path), log: named("-wal"), index: named("-shm") }
    }

    /// Removes those of these files that still have the names of the log of the database at `path`: with
    /// another database there, SQLite would take their pages for pages of that one.
    pub(super) fn remove_log(self, path: &Path) -> io::Result<()> {
        for (suffix, open) in [("-wal", self.log), ("-shm", self.index)] {
            let name = beside(path, suffix);
            if open.is_some() && open == identity(&name) {
                fs::remove_file(name)?;
            }
        }
        Ok(())
    }

    /// Whether the database is the same, whatever its log is.
    pub(super) fn is_same_database(self, other: Self) -> bool {
        self.database.is_some() && self.database == other.database
    }
}

/// The file of the database at `path` with this suffix.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.to_owned().into_os_string();
    name.push(suffix);
    PathBuf::from(name)
}

/// What distinguishes a file from another one that has its name later; none where it is not there.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let found = fs::symlink_metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

/// Whether the directory could be taken, or made, by a service of this user; its present owner is no
/// reason against it. Makes and changes nothing.
///
/// # Errors
/// Why it could not.
pub fn check_directory(path: &Path) -> Result<(), DirectoryError> {
    let failed = |source: io::Error| DirectoryError::Use { path: path.to_owned(), source };
    let mut place = path;
    loop {
        match fs::metadata(place) {
            Ok(found) if !found.is_dir() => return Err(failed(Errno::NOTDIR.into())),
            Ok(_) if place == path => return owned(path).and_then(|path| changeable(&path)),
            Ok(_) => {
                let access = Access::WRITE_OK | Access::EXEC_OK;
                return accessat(CWD, place, access, AtFlags::EACCESS)
                    .map_err(|error| failed(error.into()));
            }
            // What is missing is made, up to the first that is there.
            Err(error) if error.kind() == io::ErrorKind::NotFound => match place.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => place = parent,
                Some(_) => place = Path::new("."),
                None => return Err(failed(error)),
            },
            Err(error) => return Err(failed(error)),
        }
    }
}

/// Whether the file system lets anybody write there. A mode that does not is changed at the beginning.
fn changeable(path: &Path) -> Result<(), DirectoryError> {
    match accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS) {
        Err(Errno::ROFS) => {
            Err(DirectoryError::Use { path: path.to_owned(), source: Errno::ROFS.into() })
        }
        _ => Ok(()),
    }
}

/// Whether a directory that is there belongs to this process's user alone, or can be closed to others;
/// and its path without links.
fn owned(path: &Path) -> Result<PathBuf, DirectoryError> {
    let failed = |source| DirectoryError::Use { path: path.to_owned(), source };
    // A link that another user made leads where that user likes.
    let named = fs::symlink_metadata(path).map_err(failed)?;
    if ![0, rustix::process::geteuid().as_raw()].contains(&named.uid()) {
        return Err(DirectoryError::Owner { path: path.to_owned(), owner: named.uid() });
    }
    // SQLite refuses links on the way to its file, and /var may be one.
    let path = path.canonicalize().map_err(failed)?;
    let found = fs::metadata(&path).map_err(failed)?;
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Err(DirectoryError::Owner { path, owner: found.uid() });
    }
    if found.mode() & 0o077 != 0 && !is_for_history(&path).map_err(failed)? {
        return Err(DirectoryError::Shared { path });
    }
    Ok(path)
}

/// Whether nothing is in a directory but a history of ours, or what an empty file system has.
fn is_for_history(path: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_ours = name.to_str().is_some_and(|name| name.starts_with("history."))
            && entry.metadata()?.uid() == rustix::process::geteuid().as_raw();
        if !is_ours && name != "lost+found" {
            return Ok(false);
        }
    }
    Ok(true)
}

fn holder(pid: Option<u32>) -> String {
    pid.map_or_else(
        || String::from("another service"),
        |pid| format!("another service, process {pid},"),
    )
}

/// Writes down who holds the lock. What a holder that was killed wrote there is replaced: the lock
/// went with it, whatever the file says.
fn note_holder(mut lock: &File) -> io::Result<()> {
    lock.set_len(0)?;
    writeln!(lock, "{}", std::process::id())
}

/// Who wrote that it holds the lock.
fn noted_holder(lock: &File) -> Option<u32> {
    let mut text = String::new();
    lock.take(MAX_PID_BYTES).read_to_string(&mut text).ok()?;
    text.strip_suffix('\n')?.parse().ok()
}

/// Lets only its owner read a file that is there, by its name. Refuses what is no file of this user.
fn close_to_others(path: &Path, found: &Metadata) -> io::Result<()> {
    if !found.is_file() {
        return Err(io::Error::other("there is something that is not a regular file"));
    }
    is_own(found)?;
    if found.mode() & 0o077 != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    }
    Ok(())
}

/// Refuses a file of another user, who may have it open.
fn is_own(found: &Metadata) -> io::Result<()> {
    if found.uid() == rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    let words = format!("the file belongs to user {}", found.uid());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, words))
}

/// Opens a file that only its owner may read, and makes it if it is not there. Never follows a link.
fn private_file(path: &Path) -> io::Result<File> {
    let no_links = i32::try_from(OFlags::NOFOLLOW.bits()).expect("a flag of open(2) is an int");
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let file = options.custom_flags(no_links).open(path)?;
    let found = file.metadata()?;
    is_own(&found)?;
    if found.mode() & 0o077 != 0 {
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::{DirectoryError, MAX_BROKEN, OwnDirectory};
    use telltale_harness::Scratch;

    #[test]
    fn the_directory_is_closed_to_others_and_has_one_writer() {
        let scratch = Scratch::new();
        let path = scratch.join("a/b");
        fs::create_dir_all(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let own = OwnDirectory::take(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        let taken = OwnDirectory::take(&path).unwrap_err();
        let words = format!("another service, process {}, has the", std::process::id());
        assert!(taken.to_string().starts_with(&words), "{taken}");
        let database = own.database().unwrap();
        assert_eq!(fs::metadata(&database).unwrap().mode() & 0o777, 0o600);
        drop(own);
        // As a holder leaves it that was killed, and one that is no pid.
        for stale in ["1\n", "4294967296 and more than fits\n"] {
            fs::write(path.join(super::LOCK), stale).unwrap();
            let own = OwnDirectory::take(&path).unwrap();
            let taken = OwnDirectory::take(&path).unwrap_err();
            assert!(taken.to_string().starts_with(&words), "{taken}");
            fs::write(path.join(super::LOCK), stale).unwrap();
            let named = OwnDirectory::take(&path).unwrap_err().to_string();
            assert_eq!(named.contains("process 1,"), stale == "1\n", "{named}");
            drop(own);
        }
    }

    #[test]
    fn a_directory_with_another_use_stays_as_it_is() {
        let scratch = Scratch::new();
        for (name, mode) in [("data", 0o755), ("tmp", 0o1777)] {
            let path = scratch.join(name);
            fs::create_dir(&path).unwrap();
            fs::write(path.join("theirs"), "").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert!(matches!(OwnDirectory::take(&path), Err(DirectoryError::Shared { .. })));
            assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, mode);
            assert_eq!(fs::read_dir(&path).unwrap().count(), 1);
        }
    }

    #[test]
    fn a_link_is_not_followed() {
        let scratch = Scratch::new();
        let target = scratch.join("target");
        fs::write(&target, "precious").unwrap();
        let path = scratch.join("state");
        fs::create_dir(&path).unwrap();
        symlink(&target, path.join("history.db")).unwrap();
        let own = OwnDirectory::take(&path).unwrap();
        assert!(matches!(own.database(), Err(DirectoryError::Use { .. })));
        assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
    }

    #[test]
    fn broken_files_are_moved_aside_whole_and_not_without_end() {
        let scratch = Scratch::new();
        let own = OwnDirectory::take(scratch.path()).unwrap();
        for number in 1..=MAX_BROKEN {
            fs::write(scratch.join("history.db"), format!("{number}")).unwrap();
            fs::write(scratch.join("history.db-wal"), "log").unwrap();
            let aside = own.set_aside().unwrap();
            assert_eq!(fs::read_to_string(&aside).unwrap(), format!("{number}"));
            assert!(!scratch.join("history.db-wal").exists());
        }
        fs::write(scratch.join("history.db"), "kept").unwrap();
        assert!(matches!(own.set_aside(), Err(DirectoryError::Broken { .. })));
        assert_eq!(fs::read_to_string(scratch.join("history.db")).unwrap(), "kept");
    }
}
