//! Reads a process's whole command line and its environment for the view, with the rights of its user, on a thread of its own:
//! the read waits for the process's memory, which one that hangs in a driver may hold.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::thread;

use telltale_collector::process_texts;
use telltale_schema::text::with_causes;
use telltale_smi::screen::{ProcessTexts, TextsOwner};

use super::Wake;

/// Who reads them, of one process at a time.
pub(super) struct TextReader {
    root: PathBuf,
    wakes: SyncSender<Wake>,
    reads: Arc<AtomicBool>,
}

impl TextReader {
    /// Of processes of the machine under `root`.
    pub(super) fn new(root: PathBuf, wakes: SyncSender<Wake>) -> Self {
        Self { root, wakes, reads: Arc::default() }
    }

    /// Reads those of a process, and sends them.
    ///
    /// # Errors
    /// Why they are not read.
    pub(super) fn ask(&self, of: TextsOwner) -> Result<(), String> {
        if self.reads.swap(true, Ordering::AcqRel) {
            return Err(String::from("another process has not let its memory be read yet."));
        }
        let (root, wakes, reads) = (self.root.clone(), self.wakes.clone(), Arc::clone(&self.reads));
        let read = move || {
            let found = process_texts(&root, of.pid, of.started_at);
            reads.store(false, Ordering::Release);
            let (command, environment) = match found {
                Ok(found) => (found.command, found.environment),
                Err(error) => (None, Err(error)),
            };
            let environment = environment.map_err(|error| with_causes(&error));
            let texts = ProcessTexts { command, environment };
            // A view that has ended need not be notified.
            let _ = wakes.send(Wake::Texts(of, texts));
        };
        let started = thread::Builder::new().name(String::from("texts")).spawn(read);
        started.map(|_| ()).map_err(|error| {
            self.reads.store(false, Ordering::Release);
            with_causes(&error)
        })
    }
}
