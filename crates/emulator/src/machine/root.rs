//! The root directory: who may use it, what is ours in it, and its removal.
//!
//! A hidden directory in it says that an emulator made it, and is locked while one runs. A later
//! start on the root of one that crashed finds the lock free and clears what was left; one that ended
//! takes the hidden directory with it. `dev/shm` and `run/tt` are made but hold other programs' files,
//! which are never removed: a root that has nothing but these, or what a service kept of the machine,
//! can be taken again.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// The directory that marks a root as ours.
const MARKER: &str = ".telltale-emulator";
/// Trees that hold nothing but ours.
const OWN_TREES: [&str; 3] = ["sys", "proc", "dev/tenstorrent"];
/// Directories in which others may have files, the inner ones first.
const SHARED_DIRECTORIES: [&str; 4] = ["dev/shm", "dev", "run/tt", "run"];

/// Places of files that programs leave on a machine, each directory with what it may have.
const REMAINS: [(&str, &[&str]); 5] = [
    ("", &["dev", "run", "var"]),
    ("dev", &["shm"]),
    ("run", &["tt"]),
    ("var", &["lib"]),
    ("var/lib", &["telltale"]),
];

/// Files of others that are named when they keep a root from being removed; the rest is not looked
/// at.
pub const MAX_LEFTOVERS: usize = 4;

/// Why a machine's root could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// The directory has files that no emulator made.
    #[error("{0} is not empty and was not made by an emulator: choose a new or an empty directory")]
    NotEmpty(PathBuf),
    /// Another emulator runs there.
    #[error("an emulator is running in {0}: stop it or choose another directory")]
    InUse(PathBuf),
    /// The tree could not be written.
    #[error(transparent)]
    Tree(#[from] TreeError),
}

/// Why a part of the tree could not be written or removed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {step} {path}: check its permissions and the free space there")]
pub struct TreeError {
    step: &'static str,
    path: PathBuf,
    #[source]
    source: io::Error,
}

impl TreeError {
    pub(crate) fn new(step: &'static str, path: &Path, source: impl Into<io::Error>) -> Self {
        Self { step, path: path.to_path_buf(), source: source.into() }
    }
}

/// A root that is ours until it is removed or this process ends.
#[derive(Debug)]
pub(crate) struct Root {
    path: PathBuf,
    /// The directory itself is ours too.
    created: bool,
    /// Removed already: what is there now may be another emulator's.
    removed: bool,
    _lock: File,
}

impl Root {
    /// Takes `path`, which must not exist, be empty, have nothing but what programs left on a machine,
    /// or be the root of an emulator that crashed.
    pub(crate) fn take(path: &Path) -> Result<Self, CreateError> {
        let created = match DirBuilder::new().mode(0o755).create(path) {
            Ok(()) => true,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => false,
            Err(error) => return Err(TreeError::new("make the directory", path, error).into()),
        };
        // Links inside the tree are relative, but its reader may have another directory.
        let path = path.canonicalize().map_err(|error| TreeError::new("resolve", path, error))?;
        let marker = path.join(MARKER);
        if !marker.is_dir() && !created && !has_only_remains(&path)? {
            return Err(CreateError::NotEmpty(path));
        }
        directory(&marker, 0o700)?;
        let lock_path = marker.join("lock");
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&lock_path)
            .map_err(|error| TreeError::new("open", &lock_path, error))?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(CreateError::InUse(path)),
            Err(error) => return Err(TreeError::new("lock", &lock_path, error).into()),
        }
        // The lock's holder may have removed the root before letting go of it: then this lock
        // is on a file that no other will ever find.
        if !same_file(&lock, &lock_path) {
            return Err(CreateError::InUse(path));
        }
        // A predecessor that crashed may have made the directory: then it is still ours to remove.
        let note = marker.join("made-root");
        if created {
            File::create(&note).map_err(|error| TreeError::new("write", &note, error))?;
        }
        let root = Self { created: note.exists(), removed: false, path, _lock: lock };
        root.clear()?;
        root.lay_out()?;
        Ok(root)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Where files are written before they are moved to their place.
    pub(crate) fn staging(&self) -> PathBuf {
        self.path.join(MARKER).join("staging")
    }

    /// Removes all that is ours, the mark included. The root stays if others have files in it; these
    /// are returned, up to [`MAX_LEFTOVERS`].
    pub(crate) fn remove(&mut self) -> Result<Vec<PathBuf>, TreeError> {
        if std::mem::replace(&mut self.removed, true) {
            return Ok(Vec::new());
        }
        self.clear()?;
        for inside in SHARED_DIRECTORIES {
            remove_if_empty(&self.path.join(inside))?;
        }
        let leftovers = self.leftovers()?;
        remove_tree(&self.path.join(MARKER))?;
        if self.created && leftovers.is_empty() {
            remove_if_empty(&self.path)?;
        }
        Ok(leftovers)
    }

    /// What is in the root and not ours.
    fn leftovers(&self) -> Result<Vec<PathBuf>, TreeError> {
        let ours = |path: &Path| {
            let inside = path.strip_prefix(&self.path).unwrap_or(path);
            inside == Path::new(MARKER)
                || SHARED_DIRECTORIES.iter().any(|one| inside == Path::new(one))
        };
        let mut leftovers = Vec::new();
        let directories = SHARED_DIRECTORIES.iter().map(|inside| self.path.join(inside));
        for directory in directories.chain([self.path.clone()]) {
            let entries = match std::fs::read_dir(&directory) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                entries => entries.map_err(|error| TreeError::new("list", &directory, error))?,
            };
            let paths = entries.flatten().map(|entry| entry.path()).filter(|path| !ours(path));
            leftovers.extend(paths.take(MAX_LEFTOVERS - leftovers.len()));
        }
        leftovers.sort();
        Ok(leftovers)
    }

    fn lay_out(&self) -> Result<(), TreeError> {
        for inside in ["sys", "proc", "dev", "dev/tenstorrent", "run"] {
            directory(&self.path.join(inside), 0o755)?;
        }
        for inside in ["dev/shm", "run/tt"] {
            directory(&self.path.join(inside), 0o1777)?;
        }
        directory(&self.staging(), 0o700)
    }

    fn clear(&self) -> Result<(), TreeError> {
        for inside in OWN_TREES {
            remove_tree(&self.path.join(inside))?;
        }
        remove_tree(&self.staging())
    }
}

/// Makes a directory with exactly this mode, whatever the umask, unless it is there.
pub(crate) fn directory(path: &Path, mode: u32) -> Result<(), TreeError> {
    match std::fs::create_dir(path) {
        Ok(()) => std::fs::set_permissions(path, Permissions::from_mode(mode))
            .map_err(|error| TreeError::new("set the mode of", path, error)),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(TreeError::new("make the directory", path, error)),
    }
}

/// Removes a directory with all that is in it, following no link; absent is fine.
pub(crate) fn remove_tree(path: &Path) -> Result<(), TreeError> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(TreeError::new("remove", path, error))
        }
        _ => Ok(()),
    }
}

fn same_file(open: &File, path: &Path) -> bool {
    match (open.metadata(), std::fs::metadata(path)) {
        (Ok(open), Ok(named)) => open.ino() == named.ino() && open.dev() == named.dev(),
        _ => false,
    }
}

fn remove_if_empty(path: &Path) -> Result<(), TreeError> {
    match std::fs::remove_dir(path) {
        Err(error)
            if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty) =>
        {
            Err(TreeError::new("remove", path, error))
        }
        _ => Ok(()),
    }
}

/// Whether there is nothing but [`REMAINS`], or nothing at all. No link is followed, and what is first
/// found to be something else ends the check.
fn has_only_remains(root: &Path) -> Result<bool, TreeError> {
    for (inside, names) in REMAINS {
        let path = root.join(inside);
        let failed = |error| TreeError::new("list", &path, error);
        let entries = match std::fs::read_dir(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            entries => entries.map_err(failed)?,
        };
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let is_known = names.iter().any(|name| entry.file_name() == *name);
            if !is_known || !entry.file_type().map_err(failed)?.is_dir() {
                return Ok(false);
            }
        }
    }
    Ok(true)
}
