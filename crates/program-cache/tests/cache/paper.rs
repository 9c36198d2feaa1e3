//! A back end that compiles nothing: a program is its arguments.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use telltale_program_cache::{
    Backend, CacheMode, CacheOptions, Dispatch, DispatchError, InterruptCheck, Operation,
    ProgramArguments, ProgramCache, ProgramDescriptor, UpdateError, Updates,
};

/// What a program weighs.
pub(crate) const PROGRAM_BYTES: u64 = 1000;

/// Counts what it is asked for.
#[derive(Default)]
pub(crate) struct Paper {
    pub(crate) compiled: AtomicU64,
    /// Programs that are not dropped yet.
    pub(crate) alive: std::sync::Arc<AtomicUsize>,
    /// Writes nothing into this slot, as a careless back end would.
    pub(crate) forgets_slot: Option<usize>,
    /// Compilations before this one are of files that have changed since.
    pub(crate) first_current: AtomicU64,
    /// What interrupts waiting threads.
    pub(crate) interrupt_check: Option<InterruptCheck>,
}

/// A program on paper.
pub(crate) struct Sheet {
    /// Which compilation it came from, from 0.
    pub(crate) serial: u64,
    pub(crate) arguments: ProgramArguments,
    alive: std::sync::Arc<AtomicUsize>,
}

/// Why a program was refused.
#[derive(Debug, thiserror::Error)]
#[error("kernel `{kernel}` is refused")]
pub(crate) struct Refused {
    pub(crate) kernel: String,
}

impl Backend for Paper {
    type Program = Sheet;
    type Error = Refused;

    fn compile(&self, descriptor: &ProgramDescriptor) -> Result<Sheet, Refused> {
        let refused = descriptor.kernels.iter().find(|kernel| kernel.name.contains("refused"));
        if let Some(kernel) = refused {
            return Err(Refused { kernel: kernel.name.clone().into_owned() });
        }
        self.alive.fetch_add(1, Ordering::Relaxed);
        Ok(Sheet {
            serial: self.compiled.fetch_add(1, Ordering::Relaxed),
            arguments: ProgramArguments::of(descriptor).expect("tests have few arguments"),
            alive: self.alive.clone(),
        })
    }

    fn interrupt_check(&self) -> Option<InterruptCheck> {
        self.interrupt_check
    }

    fn apply(&self, sheet: &mut Sheet, updates: Updates<'_>) -> Result<(), UpdateError> {
        let before = self.forgets_slot.map(|slot| sheet.arguments.words()[slot]);
        updates.write_to(&mut sheet.arguments)?;
        if let (Some(slot), Some(word)) = (self.forgets_slot, before) {
            sheet.arguments.words_mut()[slot] = word;
        }
        Ok(())
    }

    fn is_current(&self, sheet: &mut Sheet) -> bool {
        sheet.serial >= self.first_current.load(Ordering::Relaxed)
    }

    fn arguments<'a>(&self, sheet: &'a Sheet) -> &'a ProgramArguments {
        &sheet.arguments
    }

    fn weight_bytes(&self, _: &Sheet) -> u64 {
        PROGRAM_BYTES
    }
}

impl Drop for Sheet {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A cache on paper that works in this mode.
pub(crate) fn cache(mode: CacheMode) -> ProgramCache<Paper> {
    ProgramCache::new(Paper::default(), CacheOptions { mode, ..CacheOptions::default() })
}

/// What was run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ran {
    /// Which compilation.
    pub(crate) serial: u64,
    /// With which words.
    pub(crate) words: Vec<u32>,
}

/// Dispatches and says what was run.
pub(crate) fn run<O: Operation>(
    cache: &ProgramCache<Paper>,
    attributes: &O::Attributes,
    dispatch: &Dispatch<'_>,
) -> Result<Ran, DispatchError<Refused>> {
    cache.dispatch::<O, _>(attributes, dispatch, |sheet| Ran {
        serial: sheet.serial,
        words: sheet.arguments.words().to_vec(),
    })
}
