//! A device that has no memory left for a program: unused programs make room, and no more is tried
//! than that can help.

use std::error::Error;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use telltale_program_cache::{
    Argument, Backend, CacheOptions, Dispatch, DispatchError, FactoryError, OperandSpecs,
    Operation, ProgramArguments, ProgramCache, ProgramDescriptor, UpdateError, Updates,
};

use crate::cache::operations::kernel;
use crate::cache::paper::{PROGRAM_BYTES, Paper, Refused, Sheet};

/// A device with room for a few programs. What is dropped is free once it was reclaimed, as where
/// enqueued dispatches still need it.
struct Small {
    paper: Paper,
    room: usize,
    /// Programs whose memory is not free.
    taken: AtomicUsize,
    tries: AtomicU64,
}

/// Why the device refused.
#[derive(Debug, thiserror::Error)]
enum SmallError {
    #[error(transparent)]
    Refused(Refused),
    #[error("asked for {PROGRAM_BYTES} bytes of kernel memory; {free_bytes} bytes are free")]
    OutOfMemory { free_bytes: u64 },
}

impl Small {
    fn with_room_for(room: usize) -> ProgramCache<Self> {
        let (taken, tries) = (AtomicUsize::new(0), AtomicU64::new(0));
        let small = Self { paper: Paper::default(), room, taken, tries };
        ProgramCache::new(small, CacheOptions::default())
    }
}

impl Backend for Small {
    type Program = Sheet;
    type Error = SmallError;

    fn compile(&self, descriptor: &ProgramDescriptor) -> Result<Sheet, SmallError> {
        self.tries.fetch_add(1, Ordering::Relaxed);
        let free = self.room - self.taken.load(Ordering::Relaxed);
        if free == 0 || descriptor.kernels.len() > self.room {
            let free_bytes = PROGRAM_BYTES * u64::try_from(free).expect("there are few");
            return Err(SmallError::OutOfMemory { free_bytes });
        }
        self.taken.fetch_add(1, Ordering::Relaxed);
        self.paper.compile(descriptor).map_err(SmallError::Refused)
    }

    fn lacking_bytes(&self, error: &SmallError) -> Option<u64> {
        matches!(error, SmallError::OutOfMemory { .. }).then_some(PROGRAM_BYTES)
    }

    fn reclaim(&self) {
        self.taken.store(self.paper.alive.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    fn apply(&self, program: &mut Sheet, updates: Updates<'_>) -> Result<(), UpdateError> {
        self.paper.apply(program, updates)
    }

    fn arguments<'a>(&self, program: &'a Sheet) -> &'a ProgramArguments {
        self.paper.arguments(program)
    }

    fn weight_bytes(&self, program: &Sheet) -> u64 {
        self.paper.weight_bytes(program)
    }
}

/// A program for each number, with as many kernels as the number says.
struct Kernels;

impl Operation for Kernels {
    const NAME: &'static str = "kernels";
    type Attributes = (u32, usize);

    fn create(
        (_, kernels): &(u32, usize),
        _: OperandSpecs<'_>,
    ) -> Result<ProgramDescriptor<Argument>, FactoryError> {
        let kernels = (0..*kernels).map(|_| kernel("one", 1, [])).collect();
        Ok(ProgramDescriptor { kernels, ..ProgramDescriptor::default() })
    }
}

fn serial(cache: &ProgramCache<Small>, number: u32) -> Result<u64, DispatchError<SmallError>> {
    cache.dispatch::<Kernels, _>(&(number, 1), &Dispatch::default(), |sheet| sheet.serial)
}

fn tries(cache: &ProgramCache<Small>) -> u64 {
    cache.backend().tries.swap(0, Ordering::Relaxed)
}

#[test]
fn programs_that_nobody_uses_make_room() {
    let cache = Small::with_room_for(3);
    for number in 0..10 {
        assert_eq!(serial(&cache, number).expect("there is room"), u64::from(number));
        assert!(tries(&cache) <= 2, "one program is enough");
    }
    let counts = cache.counts();
    assert_eq!((counts.entries, counts.evictions), (3, 7));
    assert_eq!((counts.compiles, counts.failed_compiles), (10, 0));
    assert_eq!(serial(&cache, 9).expect("it is there"), 9);
}

#[test]
fn programs_in_use_make_no_room_and_the_error_says_what_was_needed() {
    let cache = Small::with_room_for(1);
    let inner = cache.dispatch::<Kernels, _>(&(0, 1), &Dispatch::default(), |_| serial(&cache, 1));
    let refused = inner.expect("the outer one is in order").expect_err("there is no room");
    assert_eq!(
        refused.source().map(ToString::to_string),
        Some("asked for 1000 bytes of kernel memory; 0 bytes are free".to_owned())
    );
    let counts = cache.counts();
    assert_eq!((counts.entries, counts.evictions, counts.failed_compiles), (1, 0, 1));
    assert_eq!(tries(&cache), 3, "the outer one, and the inner one twice");
    assert_eq!(serial(&cache, 1).expect("nobody uses the other one"), 1);
}

#[test]
fn a_program_that_never_fits_is_tried_as_often_as_making_room_can_help() {
    let cache = Small::with_room_for(3);
    for number in 0..3 {
        serial(&cache, number).expect("there is room");
    }
    assert_eq!(tries(&cache), 3);
    let huge = || cache.dispatch::<Kernels, _>(&(0, 4), &Dispatch::default(), |sheet| sheet.serial);
    assert!(matches!(huge(), Err(DispatchError::Compile { .. })));
    assert_eq!((tries(&cache), cache.entries()), (3, 0), "all others made room in vain");
    assert!(matches!(huge(), Err(DispatchError::Compile { .. })));
    assert_eq!(tries(&cache), 2, "there was nothing to drop");
    serial(&cache, 0).expect("there is room");
}

#[test]
fn what_was_dropped_before_is_reclaimed_first() {
    let cache = Small::with_room_for(1);
    serial(&cache, 0).expect("there is room");
    cache.clear();
    assert_eq!(serial(&cache, 1).expect("there is room"), 1);
    assert_eq!(cache.counts().evictions, 0);
}
