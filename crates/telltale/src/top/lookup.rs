//! Finds past moments for the view, on a thread of its own: a history may take its time.

use std::io;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use telltale_schema::clock::Timestamp;
use telltale_schema::text::with_causes;
use telltale_sources::{PastPlace, PastSource};

use super::Wake;

/// The moment that is wanted; the one before is not wanted any more.
#[derive(Debug, Default)]
pub(super) struct Lookup {
    wanted: Mutex<Option<Timestamp>>,
    wake_up: Condvar,
}

impl Lookup {
    /// Starts the thread that finds what is wanted.
    pub(super) fn start(place: PastPlace, wakes: SyncSender<Wake>) -> io::Result<Arc<Self>> {
        let lookup = Arc::new(Self::default());
        let asked = Arc::clone(&lookup);
        thread::Builder::new().name(String::from("past")).spawn(move || {
            loop {
                let sought = asked.next();
                let found = PastSource::find(&place);
                let wake = match found.and_then(|source| source.snapshot_at(sought)) {
                    Ok(past) => Wake::Past(sought, Arc::new(past.snapshot)),
                    Err(error) => Wake::NoPast(with_causes(&error)),
                };
                if wakes.send(wake).is_err() {
                    return;
                }
            }
        })?;
        Ok(lookup)
    }

    /// Asks for a moment.
    pub(super) fn ask(&self, moment: Timestamp) {
        *self.wanted.lock().unwrap_or_else(PoisonError::into_inner) = Some(moment);
        self.wake_up.notify_one();
    }

    fn next(&self) -> Timestamp {
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(moment) = wanted.take() {
                return moment;
            }
            wanted = self.wake_up.wait(wanted).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
