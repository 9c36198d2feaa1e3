//! A thread that waits for another one's compilation or use of a program can be interrupted.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use telltale_program_cache::{
    Argument, CacheOptions, Dispatch, DispatchError, FactoryError, OperandSpecs, Operation,
    ProgramCache, ProgramDescriptor,
};

use crate::cache::operations::{kernel, program};
use crate::cache::paper::{Paper, run};

/// How long anything may take here.
const TIMEOUT: Duration = Duration::from_secs(20);

thread_local! {
    /// Whether this thread is to stop waiting.
    static PENDING: Cell<bool> = const { Cell::new(false) };
}

/// How far the thread is that another one waits for.
#[derive(Default)]
struct Progress {
    begun: AtomicBool,
    released: AtomicBool,
}

impl Progress {
    const fn new() -> Self {
        Self { begun: AtomicBool::new(false), released: AtomicBool::new(false) }
    }

    /// Says that it has begun, and goes on once it is released.
    fn hold(&self) {
        self.begun.store(true, Ordering::Relaxed);
        wait_until(&self.released);
    }
}

fn wait_until(reached: &AtomicBool) {
    let deadline = Instant::now() + TIMEOUT;
    while !reached.load(Ordering::Relaxed) && Instant::now() < deadline {
        std::thread::yield_now();
    }
}

fn cache() -> ProgramCache<Paper> {
    let paper = Paper { interrupt_check: Some(|| PENDING.replace(false)), ..Paper::default() };
    ProgramCache::new(paper, CacheOptions::default())
}

static COMPILING: Progress = Progress::new();

/// An operation whose program takes as long to make as the test wants.
struct Slow;

impl Operation for Slow {
    const NAME: &'static str = "slow";
    type Attributes = ();

    fn create((): &(), _: OperandSpecs<'_>) -> Result<ProgramDescriptor<Argument>, FactoryError> {
        COMPILING.hold();
        Ok(program([kernel("slow", 1, [Argument::Word(7)])]))
    }
}

#[test]
fn waiting_for_a_compilation_ends_and_the_compilation_goes_on() {
    let cache = cache();
    std::thread::scope(|scope| {
        let compiling = scope.spawn(|| run::<Slow>(&cache, &(), &Dispatch::default()));
        wait_until(&COMPILING.begun);
        PENDING.set(true);
        let interrupted = run::<Slow>(&cache, &(), &Dispatch::default());
        let is_compiling = !compiling.is_finished();
        COMPILING.released.store(true, Ordering::Relaxed);
        let error = interrupted.expect_err("the check returned true");
        assert!(matches!(error, DispatchError::Interrupted) && is_compiling, "{error}");
        let compiled = compiling.join().expect("it did not panic").expect("it can run");
        assert_eq!((compiled.serial, compiled.words), (0, vec![7]));
    });
    assert_eq!(run::<Slow>(&cache, &(), &Dispatch::default()).expect("it can run").serial, 0);
}

/// An operation that is there at once.
struct Quick;

impl Operation for Quick {
    const NAME: &'static str = "quick";
    type Attributes = ();

    fn create((): &(), _: OperandSpecs<'_>) -> Result<ProgramDescriptor<Argument>, FactoryError> {
        Ok(program([kernel("quick", 1, [Argument::Word(8)])]))
    }
}

#[test]
fn waiting_for_a_use_ends_and_other_threads_wait_on() {
    let (cache, progress) = (cache(), Progress::default());
    run::<Quick>(&cache, &(), &Dispatch::default()).expect("it can run");
    std::thread::scope(|scope| {
        let using = scope
            .spawn(|| cache.dispatch::<Quick, _>(&(), &Dispatch::default(), |_| progress.hold()));
        wait_until(&progress.begun);
        let waiting = scope.spawn(|| run::<Quick>(&cache, &(), &Dispatch::default()));
        PENDING.set(true);
        let interrupted = run::<Quick>(&cache, &(), &Dispatch::default());
        let are_waiting = !using.is_finished() && !waiting.is_finished();
        progress.released.store(true, Ordering::Relaxed);
        let error = interrupted.expect_err("the check returned true");
        assert!(matches!(error, DispatchError::Interrupted) && are_waiting, "{error}");
        using.join().expect("it did not panic").expect("it can run");
        let waited = waiting.join().expect("it did not panic").expect("nothing interrupts it");
        assert_eq!((waited.serial, waited.words), (0, vec![8]));
    });
}
