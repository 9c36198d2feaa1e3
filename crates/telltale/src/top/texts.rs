//! Reads a process's whole command line and its environment for the view, with the rights of its user, on a thread of its own:
//! the read waits for the process's memory, which one that hangs in a driver may hold.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::sync::{Mutex, PoisonError};
use std::thread;

use telltale_collector::process_texts;
use telltale_schema::text::with_causes;
use telltale_smi::screen::{ProcessTarget, ProcessTexts};

use super::Wake;

/// Who reads them, of one process at a time.
pub(super) struct TextReader {
    root: PathBuf,
    wakes: SyncSender<Wake>,
    reads: Arc<Mutex<Option<ProcessTarget>>>,
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
    pub(super) fn ask(&self, of: ProcessTarget) -> Result<(), String> {
        let mut reading = self.reads.lock().unwrap_or_else(PoisonError::into_inner);
        match *reading {
            // The answer is under way.
            Some(other) if other == of => return Ok(()),
            Some(ProcessTarget { pid, .. }) => {
                return Err(format!("process {pid} has not let its memory be read yet."));
            }
            None => {}
        }
        let (root, wakes, reads) = (self.root.clone(), self.wakes.clone(), Arc::clone(&self.reads));
        let read = move || {
            let found = process_texts(&root, of.pid, of.identity.start_time_ticks);
            *reads.lock().unwrap_or_else(PoisonError::into_inner) = None;
            let texts = match found {
                Ok(found) => ProcessTexts {
                    command: found.command,
                    environment: found.environment.map_err(|error| with_causes(&error)),
                    is_environment_cut: found.is_environment_cut,
                },
                Err(error) => ProcessTexts {
                    command: None,
                    environment: Err(with_causes(&error)),
                    is_environment_cut: false,
                },
            };
            // A view that has ended need not be notified.
            let _ = wakes.send(Wake::Texts(of, texts));
        };
        let started = thread::Builder::new().name(String::from("texts")).spawn(read);
        started.map_err(|error| with_causes(&error))?;
        *reading = Some(of);
        Ok(())
    }
}
