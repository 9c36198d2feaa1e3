//! Many threads at one cache.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use telltale_program_cache::{
    Argument, Backend, CacheOptions, Dispatch, DispatchError, DynamicIndex, FactoryError,
    OperandSpecs, Operation, ProgramArguments, ProgramCache, ProgramDescriptor, UpdateError,
    Updates,
};

use crate::cache::operations::{address_of, at, kernel, program, spec, with};
use crate::cache::paper::{PROGRAM_BYTES, Paper, Refused, run};

const THREADS: usize = 4;

/// A back end whose compilations wait until every thread has missed.
struct Gathering {
    paper: Paper,
    refuse: bool,
    compiles: AtomicU32,
}

impl Backend for Gathering {
    type Program = <Paper as Backend>::Program;
    type Error = Refused;

    fn compile(&self, descriptor: &ProgramDescriptor) -> Result<Self::Program, Refused> {
        self.compiles.fetch_add(1, Ordering::Relaxed);
        match self.refuse {
            true => Err(Refused { kernel: "any".to_owned() }),
            false => self.paper.compile(descriptor),
        }
    }

    fn apply(&self, program: &mut Self::Program, updates: Updates<'_>) -> Result<(), UpdateError> {
        self.paper.apply(program, updates)
    }

    fn arguments<'a>(&self, program: &'a Self::Program) -> &'a ProgramArguments {
        self.paper.arguments(program)
    }

    fn weight_bytes(&self, program: &Self::Program) -> u64 {
        self.paper.weight_bytes(program)
    }
}

static MISSED: AtomicU64 = AtomicU64::new(0);

/// Its factory waits until as many threads as configured have missed.
struct Slow;

/// How long anything may take here.
const TIMEOUT: std::time::Duration = std::time::Duration::from_secs(60);

impl Operation for Slow {
    const NAME: &'static str = "slow";
    type Attributes = u64;

    fn create(
        threads: &u64,
        _: OperandSpecs<'_>,
    ) -> Result<ProgramDescriptor<Argument>, FactoryError> {
        let deadline = std::time::Instant::now() + TIMEOUT;
        while MISSED.load(Ordering::Relaxed) < *threads && std::time::Instant::now() < deadline {
            std::thread::yield_now();
        }
        Ok(program([kernel("slow", 1, [Argument::Dynamic(DynamicIndex(0))])]))
    }
}

/// Dispatches the same from all threads, each with a value of its own, while none of them has a
/// program yet. The factory's wait ends when the cache has counted a miss for each thread.
fn all_at_once(refuse: bool) -> (ProgramCache<Gathering>, Vec<Result<u32, String>>) {
    let backend = Gathering { paper: Paper::default(), refuse, compiles: AtomicU32::new(0) };
    let cache = ProgramCache::new(backend, CacheOptions::default());
    MISSED.store(0, Ordering::Relaxed);
    let results = std::thread::scope(|scope| {
        let cache = &cache;
        let dispatching: Vec<_> = (0..4u32)
            .map(|number| {
                scope.spawn(move || {
                    let dispatch = Dispatch { dynamics: &[number], ..Dispatch::default() };
                    let got = cache
                        .dispatch::<Slow, _>(&4, &dispatch, |sheet| sheet.arguments.words()[0]);
                    got.map_err(|error| match error {
                        DispatchError::Compile { source, .. } => source.to_string(),
                        other => other.to_string(),
                    })
                })
            })
            .collect();
        let deadline = std::time::Instant::now() + TIMEOUT;
        while cache.counts().misses < 4 && std::time::Instant::now() < deadline {
            std::thread::yield_now();
        }
        MISSED.store(cache.counts().misses, Ordering::Relaxed);
        dispatching.into_iter().map(|one| one.join().expect("it did not panic")).collect()
    });
    (cache, results)
}

#[test]
fn concurrent_misses_compile_once_and_share_an_error() {
    let (cache, results) = all_at_once(false);
    assert_eq!(results, [0, 1, 2, 3].map(Ok));
    assert_eq!(cache.backend().compiles.load(Ordering::Relaxed), 1);
    assert_eq!((cache.counts().misses, cache.counts().compiles), (4, 1));

    let (cache, results) = all_at_once(true);
    // A thread that missed may come to the flight after it has failed, and then tries itself.
    assert!(cache.backend().compiles.load(Ordering::Relaxed) <= 4);
    assert!(results.iter().all(|one| one == &Err("kernel `any` is refused".to_owned())));
    assert_eq!(cache.entries(), 0);
}

/// A program for each number.
struct Numbered;

impl Operation for Numbered {
    const NAME: &'static str = "numbered";
    type Attributes = u32;

    fn create(
        number: &u32,
        _: OperandSpecs<'_>,
    ) -> Result<ProgramDescriptor<Argument>, FactoryError> {
        let number = Argument::Word(*number);
        Ok(program([kernel("numbered", 3, [number, address_of(0), address_of(1)])]))
    }
}

#[test]
fn threads_that_dispatch_evict_and_clear_run_what_they_asked_for() {
    let limit_bytes = PROGRAM_BYTES * 20;
    let options = CacheOptions { limit_bytes, ..CacheOptions::default() };
    let cache = ProgramCache::new(Paper::default(), options);
    let barrier = Barrier::new(THREADS);
    let rounds = 4000u32;
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (cache, barrier) = (&cache, &barrier);
            scope.spawn(move || {
                let mut random = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(thread as u64 + 1);
                let shape = spec(&[32]);
                barrier.wait();
                for round in 0..rounds {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let number = u32::try_from(random >> 33).expect("31 bits") % 30;
                    let operands = [at(&shape, round), at(&shape, number)];
                    let ran = run::<Numbered>(cache, &number, &with(&operands));
                    let words = ran.expect("it can run").words;
                    assert_eq!(words, [[number, round, number]; 3].concat());
                    if number == 0 && thread == 0 {
                        cache.clear();
                    }
                }
            });
        }
    });
    let counts = cache.counts();
    assert!(counts.weight_bytes <= limit_bytes, "{counts:?}");
    assert!(counts.evictions > 0, "{counts:?}");
    assert_eq!(counts.hits + counts.misses, 4 * u64::from(rounds));
    cache.clear();
    assert_eq!(cache.backend().alive.load(Ordering::Relaxed), 0);
}
