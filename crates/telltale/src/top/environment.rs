//! Reads the environment of a process for the view, with the rights of its user, on a thread of its own:
//! the read waits for the process's memory, which one that hangs in a driver may hold.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::thread;

use telltale_collector::environment;
use telltale_schema::text::with_causes;
use telltale_smi::screen::EnvironmentOwner;

use super::Wake;

/// Who reads environments, one at a time.
pub(super) struct Environments {
    root: PathBuf,
    wakes: SyncSender<Wake>,
    reads: Arc<AtomicBool>,
}

impl Environments {
    /// Of processes of the machine under `root`.
    pub(super) fn new(root: PathBuf, wakes: SyncSender<Wake>) -> Self {
        Self { root, wakes, reads: Arc::default() }
    }

    /// Reads that of a process, and sends it.
    ///
    /// # Errors
    /// Why it is not read.
    pub(super) fn ask(&self, of: EnvironmentOwner) -> Result<(), String> {
        if self.reads.swap(true, Ordering::AcqRel) {
            return Err(String::from("another process has not let its environment be read yet."));
        }
        let (root, wakes, reads) = (self.root.clone(), self.wakes.clone(), Arc::clone(&self.reads));
        let read = move || {
            let found = environment(&root, of.pid, of.started_at);
            reads.store(false, Ordering::Release);
            let found = found.map_err(|error| with_causes(&error));
            // A view that has ended need not be notified.
            let _ = wakes.send(Wake::Environment(of, found));
        };
        let started = thread::Builder::new().name(String::from("environment")).spawn(read);
        started.map(|_| ()).map_err(|error| {
            self.reads.store(false, Ordering::Release);
            with_causes(&error)
        })
    }
}
