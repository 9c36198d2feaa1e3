//! What the models have in common: a table of programs that take up memory of a device, and
//! threads that dispatch as the cache does.

use std::cell::Cell;
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::counters::ThreadNumber;
use crate::entry::{Made, Using, WantedKey};
use crate::missing::Refusal;
use crate::table::ProgramTable;
use crate::waiting::CannotWait;

/// What an entry weighs here: its own overhead and one byte of key.
pub(crate) const ENTRY_BYTES: u64 = 513;

/// The device's memory: what was compiled and what was given back. It orders nothing between
/// threads, so it is not loom's.
#[derive(Default)]
pub(crate) struct ModelDevice {
    compiled: AtomicUsize,
    refused: AtomicUsize,
    freed: Mutex<HashSet<usize>>,
}

/// A program.
pub(crate) struct Program {
    device: Arc<ModelDevice>,
    /// Which compilation it came from, from 0.
    pub(crate) serial: usize,
    /// A user panicked halfway.
    pub(crate) spoilt: bool,
}

/// Why a dispatch got nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoProgram {
    /// The compilation was refused, for all with the same key.
    Refused,
    /// This dispatch lacks something.
    Lacking,
    /// This thread is using it already.
    Reentered,
    /// Its check ended the waiting.
    Interrupted,
}

/// A table, and what became of its programs.
pub(crate) struct Fixture {
    pub(crate) table: ProgramTable<Program, (), NoProgram>,
    device: Arc<ModelDevice>,
}

impl Refusal for NoProgram {
    fn concerns_all(&self) -> bool {
        *self == Self::Refused
    }
}

impl From<CannotWait> for NoProgram {
    fn from(cause: CannotWait) -> Self {
        match cause {
            CannotWait::Reentered => Self::Reentered,
            CannotWait::Interrupted => Self::Interrupted,
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.device.free(self.serial);
    }
}

/// A key of one byte; all have the same hash.
pub(crate) fn wanted(key: &[u8; 1]) -> WantedKey<'_> {
    WantedKey { hash: 7, operation: None, bytes: key, collided: Cell::new(false) }
}

impl Fixture {
    /// An empty table with room for this many programs.
    pub(crate) fn with_room_for(programs: u64) -> Arc<Self> {
        let device = Arc::default();
        Arc::new(Self { table: ProgramTable::new(programs * ENTRY_BYTES), device })
    }

    /// Compiles.
    pub(crate) fn made(&self) -> Made<Program, ()> {
        let serial = self.device.compiled.fetch_add(1, Ordering::Relaxed);
        let program = Program { device: Arc::clone(&self.device), serial, spoilt: false };
        Made { program, side: (), weight_bytes: 0 }
    }

    /// Refuses to compile.
    pub(crate) fn refuse(&self) -> Result<Made<Program, ()>, NoProgram> {
        self.device.refused.fetch_add(1, Ordering::Relaxed);
        Err(NoProgram::Refused)
    }

    /// Finds the program or obtains it, and uses it.
    pub(crate) fn dispatch<R>(
        &self,
        key: [u8; 1],
        thread: usize,
        make: impl FnOnce() -> Result<Made<Program, ()>, NoProgram>,
        use_it: impl FnOnce(Using<'_, Program, ()>) -> R,
    ) -> Result<R, NoProgram> {
        let (wanted, thread) = (wanted(&key), ThreadNumber(thread));
        if let Some(entry) = self.table.index.get(&wanted)
            && let Some(mut in_use) = entry.enter(thread, || None)?
        {
            let program = in_use.program();
            return Ok(use_it(Using { side: &(), program, is_fresh: false }));
        }
        self.table.obtain(&wanted, thread, None, make, |using| Ok(use_it(using)))
    }

    /// The same, for which compilation's program was used.
    pub(crate) fn serial(&self, key: [u8; 1], thread: usize) -> Result<usize, NoProgram> {
        self.dispatch(key, thread, || Ok(self.made()), |using| using.program.serial)
    }

    /// Frees what a program has on the device.
    pub(crate) fn free(&self, serial: usize) {
        self.device.free(serial);
    }

    /// Whether a program is still on the device.
    pub(crate) fn has(&self, serial: usize) -> bool {
        !self.device.freed.lock().unwrap().contains(&serial)
    }

    /// How often a compilation was refused.
    pub(crate) fn refused(&self) -> usize {
        self.device.refused.load(Ordering::Relaxed)
    }

    /// How often was compiled.
    pub(crate) fn compiled(&self) -> usize {
        self.device.compiled.load(Ordering::Relaxed)
    }

    /// How many programs are on the device.
    pub(crate) fn alive(&self) -> usize {
        self.compiled() - self.device.freed.lock().unwrap().len()
    }
}

impl ModelDevice {
    fn free(&self, serial: usize) {
        self.freed.lock().unwrap().insert(serial);
    }
}
