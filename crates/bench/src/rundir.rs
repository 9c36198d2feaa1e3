//! The directory of one benchmark run: sockets and pid lists, gone when the run is.
//!
//! It removes nothing that does not carry its own prefix.

use std::fs::{DirBuilder, remove_dir_all};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

const PREFIX: &str = "telltale-bench-";
const IN_MEMORY: &str = "/dev/shm";

/// A private directory, removed with all it holds when dropped.
#[derive(Debug)]
pub struct RunDirectory(PathBuf);

impl RunDirectory {
    /// Makes a fresh directory, mode 0700, in memory where there is such a place, as `/run` is; else
    /// under the system's temporary one.
    ///
    /// # Errors
    /// What the kernel answers; a name that exists already is one such answer.
    pub fn create() -> io::Result<Self> {
        static SERIAL: AtomicU32 = AtomicU32::new(0);
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let memory = Path::new(IN_MEMORY);
        let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let path = parent.join(format!("{PREFIX}{}-{serial}", process::id()));
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
        remove(&self.0);
    }
}

/// Removes a run's directory if it is one by its name. Also called by workers that outlive their
/// parent, perhaps several at once, so what is already gone is no error.
pub fn remove(path: &Path) {
    let ours = path.file_name().and_then(|n| n.to_str()).is_some_and(|n| n.starts_with(PREFIX));
    if ours {
        let _ = remove_dir_all(path);
    }
}

#[cfg(test)]
mod tests {
    use super::{RunDirectory, remove};

    #[test]
    fn goes_with_its_contents_and_nothing_else_does() {
        let run = RunDirectory::create().expect("a temporary directory");
        let inner = run.path().join("someone-else");
        std::fs::create_dir(&inner).expect("an inner directory");
        remove(&inner);
        assert!(inner.exists(), "a directory without the prefix stays");
        let path = run.path().to_owned();
        drop(run);
        assert!(!path.exists());
    }
}
