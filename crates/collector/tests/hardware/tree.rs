//! A machine's files, made by a test under a directory of its own.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Arc;

use telltale_collector::tree::Tree;
use telltale_harness::Scratch;

/// A machine without any file.
pub(crate) struct Machine {
    scratch: Scratch,
}

/// A file that hangs its reader until this is dropped.
pub(crate) struct Hang {
    path: PathBuf,
}

impl Machine {
    pub(crate) fn new() -> Self {
        Self { scratch: Scratch::new() }
    }

    pub(crate) fn path(&self) -> &std::path::Path {
        self.scratch.path()
    }

    pub(crate) fn tree(&self) -> Arc<Tree> {
        Arc::new(Tree::open(self.scratch.path()).unwrap())
    }

    /// Writes a file; it replaces whatever has its name.
    pub(crate) fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.scratch.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _ = fs::remove_file(&path);
        fs::write(path, text).unwrap();
    }

    /// Reads a file back.
    pub(crate) fn text(&self, path: &str) -> Vec<u8> {
        fs::read(self.scratch.join(path)).unwrap()
    }

    /// Makes a link, as sysfs does to say which device and driver belong together.
    pub(crate) fn link(&self, path: &str, target: &str) {
        let path = self.scratch.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
    }

    pub(crate) fn remove(&self, path: &str) {
        fs::remove_file(self.scratch.join(path)).unwrap();
    }

    /// Replaces a file by what the kernel's error stands for.
    pub(crate) fn fail(&self, path: &str, error: &str) {
        self.remove(path);
        self.link(path, &format!("errno:{error}"));
    }

    /// Replaces a file by one that hangs its reader.
    pub(crate) fn hang(&self, path: &str) -> Hang {
        self.remove(path);
        let path = self.scratch.join(path);
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        Hang { path }
    }
}

impl Drop for Hang {
    /// Lets hung readers return, so that its thread ends.
    fn drop(&mut self) {
        let flags = rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::NONBLOCK;
        let _ = rustix::fs::open(&self.path, flags, rustix::fs::Mode::empty());
    }
}
