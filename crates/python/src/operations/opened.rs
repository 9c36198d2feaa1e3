//! An open chip, shared by what Python has of it, and its end.

use std::collections::HashMap;
use std::fs::DirBuilder;
use std::io;
use std::mem::ManuallyDrop;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use telltale_emulator::Emulator;
use telltale_operations::{Session, Tensor};
use telltale_runtime::Runtime;

use super::interrupted;
use crate::error::ErrorClass;

/// Directories of machines that are tried: one of a process with the same pid that crashed may be there.
const MAX_DIRECTORIES: u64 = 1_000;

/// How long closing waits for calls of other threads that are under way.
const MAX_WAIT: Duration = Duration::from_secs(10);
const USERS_PERIOD: Duration = Duration::from_millis(1);

/// Chips that may be open, to be closed before the interpreter ends. Never locked without the interpreter, so no child of
/// `fork` inherits it locked.
static CHIPS: Mutex<Vec<Weak<SharedChip>>> = Mutex::new(Vec::new());

/// What a chip and its tensors in Python share.
pub(super) struct SharedChip {
    /// Whose it is: a child of `fork` has none of its threads.
    pid: u32,
    open: Mutex<Option<Arc<OpenChip>>>,
}

/// Everything that belongs to an open chip. It ends in the order of its fields.
pub(super) struct OpenChip {
    tensors: Mutex<Tensors>,
    pub(super) session: Session,
    /// What records the chip's memory.
    _runtime: Runtime,
    /// None for a machine that was there already.
    _machine: Option<OwnMachine>,
    pub(super) root: PathBuf,
}

#[derive(Default)]
struct Tensors {
    last: u64,
    by_number: HashMap<u64, Arc<Tensor>>,
}

/// A machine that this process emulates, in a directory of its own.
pub(super) struct OwnMachine {
    _emulator: Emulator,
    _directory: OwnDirectory,
}

/// A directory that is removed when this is dropped.
pub(super) struct OwnDirectory(pub(super) PathBuf);

impl OwnDirectory {
    pub(super) fn new() -> io::Result<Self> {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let mut attempts_left = MAX_DIRECTORIES;
        loop {
            let number = LAST.fetch_add(1, Ordering::Relaxed);
            let name = format!("telltale-chip-{}-{number}", std::process::id());
            let path = std::env::temp_dir().join(name);
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempts_left > 0 => {
                    attempts_left -= 1;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for OwnDirectory {
    fn drop(&mut self) {
        // What is left lies among temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl OwnMachine {
    pub(super) fn new(emulator: Emulator, directory: OwnDirectory) -> Self {
        Self { _emulator: emulator, _directory: directory }
    }
}

impl OpenChip {
    pub(super) fn new(
        session: Session,
        runtime: Runtime,
        machine: Option<OwnMachine>,
        root: &Path,
    ) -> Self {
        let tensors = Mutex::new(Tensors::default());
        let (_runtime, _machine, root) = (runtime, machine, root.to_path_buf());
        Self { tensors, session, _runtime, _machine, root }
    }

    /// Keeps a tensor, and returns the number by which it is found.
    pub(super) fn keep(&self, tensor: Tensor) -> u64 {
        let mut tensors = self.tensors();
        tensors.last += 1;
        let number = tensors.last;
        tensors.by_number.insert(number, Arc::new(tensor));
        number
    }

    pub(super) fn tensor(&self, number: u64) -> Option<Arc<Tensor>> {
        self.tensors().by_number.get(&number).cloned()
    }

    pub(super) fn free(&self, number: u64) -> Option<Arc<Tensor>> {
        self.tensors().by_number.remove(&number)
    }

    fn tensors(&self) -> MutexGuard<'_, Tensors> {
        self.tensors.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SharedChip {
    pub(super) fn new(open: OpenChip) -> Arc<Self> {
        let open = Mutex::new(Some(Arc::new(open)));
        let shared = Arc::new(Self { pid: std::process::id(), open });
        let mut chips = CHIPS.lock().unwrap_or_else(PoisonError::into_inner);
        chips.retain(|chip| chip.strong_count() > 0);
        chips.push(Arc::downgrade(&shared));
        shared
    }

    /// The chip, if it is open.
    pub(super) fn open(&self, py: Python<'_>) -> PyResult<Arc<OpenChip>> {
        if !self.is_own() {
            let message = "the chip was opened before this process was forked; open another one";
            return Err(ErrorClass::Operation.of(py, message, None));
        }
        let open = self.lock().clone();
        let closed = || ErrorClass::Operation.of(py, "the chip is closed; open another one", None);
        open.ok_or_else(closed)
    }

    pub(super) fn is_open(&self) -> bool {
        self.is_own() && self.lock().is_some()
    }

    /// Closes it: tensors are freed, and what was enqueued is done or given up.
    pub(super) fn close(&self, py: Python<'_>) -> PyResult<()> {
        if !self.is_own() {
            return Ok(());
        }
        let open = self.lock().take();
        py.detach(|| {
            // The last user ends it. That should be this thread, which the interpreter's end waits for.
            let start = Instant::now();
            let is_used = || open.as_ref().is_some_and(|open| Arc::strong_count(open) > 1);
            while is_used() && start.elapsed() < MAX_WAIT && !interrupted::is_pending() {
                std::thread::sleep(USERS_PERIOD);
            }
            drop(open);
        });
        interrupted::taken()
    }

    /// Frees a tensor.
    pub(super) fn free(&self, number: u64) {
        if self.is_own() {
            let open = self.lock().clone();
            drop(open.and_then(|open| open.free(number)));
        }
    }

    fn is_own(&self) -> bool {
        self.pid == std::process::id()
    }

    /// Only in the process that opened it: another thread may have had the lock at the time of a `fork`.
    fn lock(&self) -> MutexGuard<'_, Option<Arc<OpenChip>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for SharedChip {
    fn drop(&mut self) {
        let open = self.open.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if !self.is_own() {
            // Its threads are the parent's, and so are its files.
            let _never_dropped = ManuallyDrop::new(open);
        } else if let Some(open) = open {
            // It waits for what was enqueued.
            interrupted::drop_detached(open);
        }
    }
}

/// Closes all chips of this process.
///
/// # Errors
/// The first of what closing them raised; all are closed nevertheless.
pub(super) fn close_all(py: Python<'_>) -> PyResult<()> {
    let chips = std::mem::take(&mut *CHIPS.lock().unwrap_or_else(PoisonError::into_inner));
    let mut first = Ok(());
    for chip in chips.iter().filter_map(Weak::upgrade) {
        let closed = chip.close(py);
        first = first.and(closed);
    }
    first
}
