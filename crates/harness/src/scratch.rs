//! A private directory for one test, removed when the test lets go of it.
//!
//! Paths are kept short, because a Unix socket's path may have 107 bytes only.

use std::fs::{DirBuilder, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Names tried before giving up: more than any killed test run leaves behind.
const MAX_NAMES: u32 = 100_000;

/// A temporary directory of mode 0700, removed with all its content on drop.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// A new directory under `$TMPDIR`, else `/dev/shm` where that can be written, else `/tmp`.
    ///
    /// # Panics
    /// When none of them can be written.
    #[must_use]
    pub fn new() -> Self {
        if let Some(chosen) = std::env::var_os("TMPDIR").filter(|value| !value.is_empty()) {
            return Self::within(Path::new(&chosen));
        }
        let memory = Path::new("/dev/shm");
        create_under(memory).or_else(|_| create_under(Path::new("/tmp"))).unwrap_or_else(|error| {
            panic!("cannot create a directory in /dev/shm or /tmp: {error}")
        })
    }

    /// A new directory under `parent`.
    ///
    /// # Panics
    /// When `parent` cannot be written.
    #[must_use]
    pub fn within(parent: &Path) -> Self {
        create_under(parent).unwrap_or_else(|error| {
            panic!("cannot create a directory in {}: {error}", parent.display())
        })
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A path inside the directory; nothing is created.
    #[must_use]
    pub fn join(&self, inside: impl AsRef<Path>) -> PathBuf {
        self.path.join(inside)
    }

    /// Sets the directory's permission bits, for tests in which other users must reach it.
    ///
    /// # Panics
    /// When the mode cannot be set.
    pub fn set_mode(&self, mode: u32) {
        std::fs::set_permissions(&self.path, Permissions::from_mode(mode)).unwrap_or_else(
            |error| panic!("cannot set mode {mode:o} on {}: {error}", self.path.display()),
        );
    }
}

impl Default for Scratch {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.path) {
            eprintln!("left behind {}: {error}", self.path.display());
        }
    }
}

fn create_under(parent: &Path) -> std::io::Result<Scratch> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    for _ in 0..MAX_NAMES {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("tt-{}-{number}", std::process::id()));
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(Scratch { path }),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(std::io::Error::new(ErrorKind::AlreadyExists, "every scratch name is taken"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scratch_directory_is_private_distinct_and_gone_afterwards() {
        let first = Scratch::new();
        let second = Scratch::new();
        assert_ne!(first.path(), second.path());
        let mode = std::fs::metadata(first.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        std::fs::create_dir_all(first.join("a/b")).unwrap();
        std::fs::write(first.join("a/b/file"), "content").unwrap();
        let path = first.path().to_path_buf();
        drop(first);
        assert!(!path.exists());
        assert!(second.path().exists());
    }

    #[test]
    fn set_mode_opens_the_directory_to_others() {
        let scratch = Scratch::new();
        scratch.set_mode(0o755);
        let mode = std::fs::metadata(scratch.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o755);
    }
}
