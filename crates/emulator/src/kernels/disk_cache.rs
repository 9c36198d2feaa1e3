//! Compiled kernels on disk, for later processes.
//!
//! An entry is the compiler's library with what it was made from behind it: the name finds it,
//! these bytes and a checksum decide. An entry appears whole or not at all, and is never changed.
//! One process at a time makes an entry; the others wait for it. A process that is killed leaves
//! at most files that the next one with the same lock removes.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use rustix::fs::{FlockOperation, flock};
use rustix::io::retry_on_intr;

use super::elf::CodeSize;

/// The variable that names the directory; `off` keeps nothing beyond the process.
pub(super) const VARIABLE: &str = "TELLTALE_KERNEL_CACHE";
/// Locks; entries that share one wait for each other.
const LOCKS: u64 = 64;
/// Entries that are kept; beyond this the oldest are removed.
const MAX_ENTRIES: usize = 4_096;
/// Entries that are removed at a time.
const REMOVED: usize = 512;
/// An entry beyond this is no kernel.
const MAX_ENTRY_BYTES: u64 = 16 << 20;
/// Marks the end of a whole entry, and its format.
const MAGIC: u64 = u64::from_le_bytes(*b"ttkernl1");
/// Lengths of library and key, checksum, magic.
const FOOTER_BYTES: usize = 32;

/// A directory of compiled kernels.
#[derive(Debug)]
pub(crate) struct DiskCache {
    directory: PathBuf,
    /// Removed with this value.
    private: bool,
}

/// A compiled kernel on disk that was checked.
#[derive(Debug)]
pub(crate) struct CachedKernel {
    pub(crate) path: PathBuf,
    pub(crate) code: CodeSize,
    /// Whether it was made just now.
    pub(crate) fresh: bool,
}

/// The files of one compilation.
#[derive(Debug)]
pub(crate) struct Workshop {
    pub(crate) source: File,
    pub(crate) log: File,
    pub(crate) library: PathBuf,
    used: [PathBuf; 3],
}

/// Why the directory cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KernelCacheError {
    /// It cannot be made or written.
    #[error("cannot keep compiled kernels in {path}: name another directory in {VARIABLE}")]
    Unusable {
        /// The directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Others could put code there that this process would run.
    #[error(
        "others than this user can write to {path}, so kernels from there are not run: make it \
         yours alone, or name another directory in {VARIABLE}"
    )]
    NotPrivate {
        /// The directory.
        path: PathBuf,
    },
}

// === impl DiskCache ===

impl DiskCache {
    /// The directory that `explicit` or the environment names, which must work; else one in the
    /// user's cache directory; else one that is removed at the end.
    pub(crate) fn open(explicit: Option<&Path>) -> Result<Self, KernelCacheError> {
        let variable = std::env::var_os(VARIABLE).filter(|value| !value.is_empty());
        let named = explicit.map(Path::to_path_buf).or(variable.map(PathBuf::from));
        match named {
            Some(named) if named.as_os_str() == "off" => Self::private(),
            Some(named) => Self::at(named),
            None => user_directory().map_or_else(Self::private, |directory| {
                Self::at(directory).or_else(|_| Self::private())
            }),
        }
    }

    /// Where it is.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    fn at(path: PathBuf) -> Result<Self, KernelCacheError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&path);
        let found = made.and_then(|()| fs::canonicalize(&path)).and_then(|directory| {
            let metadata = fs::metadata(&directory)?;
            Ok((directory, metadata))
        });
        let (directory, metadata) = match found {
            Ok(found) => found,
            Err(source) => return Err(KernelCacheError::Unusable { path, source }),
        };
        let mine = metadata.uid() == rustix::process::geteuid().as_raw();
        if !mine || metadata.mode() & 0o022 != 0 {
            return Err(KernelCacheError::NotPrivate { path });
        }
        Ok(Self { directory, private: false })
    }

    fn private() -> Result<Self, KernelCacheError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let parent = std::env::temp_dir();
        let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
        for _ in 0..1_000 {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!("telltale-kernels-{}-{number}", std::process::id());
            let directory = parent.join(name);
            match DirBuilder::new().mode(0o700).create(&directory) {
                Ok(()) => return Ok(Self { directory, private: true }),
                Err(error) => last = error,
            }
            if last.kind() != io::ErrorKind::AlreadyExists {
                break;
            }
        }
        Err(KernelCacheError::Unusable { path: parent, source: last })
    }

    /// The entry for `key`, made by `make` if there is none.
    ///
    /// # Errors
    /// What `make` says, or what `unusable` makes of a file that cannot be read or written.
    pub(crate) fn obtain<E>(
        &self,
        key: &[u8],
        unusable: impl Fn(io::Error) -> E,
        make: impl FnOnce(&mut Workshop) -> Result<(), E>,
    ) -> Result<CachedKernel, E> {
        let name = name_of(key);
        let path = self.directory.join(format!("{:016x}{:016x}.so", name[0], name[1]));
        if let Some(code) = check(&path, key) {
            return Ok(CachedKernel { path, code, fresh: false });
        }
        let lock = name[0] % LOCKS;
        let locked = self.lock(lock).map_err(&unusable)?;
        if let Some(code) = check(&path, key) {
            return Ok(CachedKernel { path, code, fresh: false });
        }
        let mut workshop = self.workshop(lock).map_err(&unusable)?;
        make(&mut workshop)?;
        let code = workshop.finish(key, &path).map_err(&unusable)?;
        // More than the limit for a while does no harm; the next entry tries again.
        let _ = self.remove_oldest();
        drop(locked);
        Ok(CachedKernel { path, code, fresh: true })
    }

    /// What `take` makes of a library that `make` makes and that is removed afterwards.
    ///
    /// # Errors
    /// As [`Self::obtain`], and what `take` says.
    pub(crate) fn make_once<R, E>(
        &self,
        unusable: impl Fn(io::Error) -> E,
        make: impl FnOnce(&mut Workshop) -> Result<(), E>,
        take: impl FnOnce(&Path, CodeSize) -> Result<R, E>,
    ) -> Result<R, E> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let lock = NEXT.fetch_add(1, Ordering::Relaxed) % LOCKS;
        let _locked = self.lock(lock).map_err(&unusable)?;
        let mut workshop = self.workshop(lock).map_err(&unusable)?;
        make(&mut workshop)?;
        let size = CodeSize::of(&read(&workshop.library).map_err(&unusable)?);
        take(&workshop.library, size)
    }

    fn lock(&self, lock: u64) -> io::Result<File> {
        let path = self.directory.join(format!("{lock:02}.lock"));
        let file =
            OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
        retry_on_intr(|| flock(&file, FlockOperation::LockExclusive))?;
        Ok(file)
    }

    /// Files for a compilation. The lock is held, so files of the same lock are of a process
    /// that was killed, or of its compiler, which may still run: so the names are new ones.
    fn workshop(&self, lock: u64) -> io::Result<Workshop> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let prefix = format!("{lock:02}.work.");
        for entry in fs::read_dir(&self.directory)?.flatten() {
            if entry.file_name().to_string_lossy().starts_with(&prefix) {
                let _ = fs::remove_file(entry.path());
            }
        }
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let stem = format!("{prefix}{}.{number}.{}", std::process::id(), now.as_nanos());
        let used = ["c", "log", "so"].map(|end| self.directory.join(format!("{stem}.{end}")));
        let open = |path: &Path| {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create_new(true).mode(0o600).open(path)
        };
        let library = used[2].clone();
        Ok(Workshop { source: open(&used[0])?, log: open(&used[1])?, library, used })
    }

    fn remove_oldest(&self) -> io::Result<()> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let path = entry?.path();
            let is_entry = path.extension().is_some_and(|end| end == "so");
            if is_entry && !path.to_string_lossy().contains(".work.") {
                entries.push(path);
            }
        }
        if entries.len() <= MAX_ENTRIES {
            return Ok(());
        }
        entries.sort_by_key(|path| fs::metadata(path).and_then(|found| found.modified()).ok());
        for path in entries.iter().take(REMOVED) {
            fs::remove_file(path)?;
        }
        Ok(())
    }
}

impl Drop for DiskCache {
    fn drop(&mut self) {
        if self.private {
            // No one is left to notify; it is in the directory for temporary files.
            let _ = fs::remove_dir_all(&self.directory);
        }
    }
}

// === impl Workshop ===

impl Workshop {
    /// Puts the library where the next process searches for it, and gives its code's size.
    fn finish(self, key: &[u8], path: &Path) -> io::Result<CodeSize> {
        let mut whole = read(&self.library)?;
        let library_bytes = whole.len() as u64;
        let code = CodeSize::of(&whole);
        whole.extend_from_slice(key);
        let checksum = checksum(&whole);
        for number in [library_bytes, key.len() as u64, checksum, MAGIC] {
            whole.extend_from_slice(&number.to_le_bytes());
        }
        // The name of the log is free to be used: no process has it open.
        fs::remove_file(&self.used[1])?;
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o600).open(&self.used[1])?;
        file.write_all(&whole)?;
        fs::rename(&self.used[1], path)?;
        Ok(code)
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        for path in &self.used {
            // Some are gone already; the rest go with the next compilation of this lock.
            let _ = fs::remove_file(path);
        }
    }
}

/// The size of the code in the entry at `path`, if it is whole and was made from `key`.
fn check(path: &Path, key: &[u8]) -> Option<CodeSize> {
    let whole = read(path).ok()?;
    let (rest, footer) = whole.split_at_checked(whole.len().checked_sub(FOOTER_BYTES)?)?;
    let number = |place: usize| -> Option<u64> {
        footer.get(place * 8..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
    };
    let library_bytes = usize::try_from(number(0)?).ok()?;
    let (library, found) = rest.split_at_checked(library_bytes)?;
    let whole = number(3)? == MAGIC && number(2)? == checksum(rest) && found == key;
    whole.then(|| CodeSize::of(library))
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut whole = Vec::new();
    File::open(path)?.take(MAX_ENTRY_BYTES + 1).read_to_end(&mut whole)?;
    if whole.len() as u64 > MAX_ENTRY_BYTES {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(whole)
}

/// Finds half-written and damaged entries; it need not withstand anybody, for the directory is
/// the user's own.
fn checksum(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

fn name_of(key: &[u8]) -> [u64; 2] {
    [0u8, 1].map(|half| {
        let mut hasher = DefaultHasher::new();
        (half, key).hash(&mut hasher);
        hasher.finish()
    })
}

fn user_directory() -> Option<PathBuf> {
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    cache.map(|cache| cache.join("telltale/kernels"))
}
