//! The cache is bounded, what makes room is what was not used, and nothing in use is dropped.

use std::sync::atomic::Ordering;

use telltale_program_cache::{
    Argument, CacheMode, CacheOptions, FactoryError, OperandSpecs, Operation, ProgramCache,
    ProgramDescriptor,
};

use crate::cache::operations::{address_of, at, kernel, program, spec, with};
use crate::cache::paper::{PROGRAM_BYTES, Paper, cache, run};

/// A program for each number.
struct Numbered;

impl Operation for Numbered {
    const NAME: &'static str = "numbered";
    type Attributes = u32;

    fn create(_: &u32, _: OperandSpecs<'_>) -> Result<ProgramDescriptor<Argument>, FactoryError> {
        Ok(program([kernel("numbered", 1, [address_of(0)])]))
    }
}

fn bounded(limit_bytes: u64) -> ProgramCache<Paper> {
    ProgramCache::new(Paper::default(), CacheOptions { limit_bytes, ..CacheOptions::default() })
}

/// The number of the compilation whose program was run.
fn serial(cache: &ProgramCache<Paper>, number: u32) -> u64 {
    let shape = spec(&[32]);
    let operands = [at(&shape, number)];
    let ran = run::<Numbered>(cache, &number, &with(&operands)).expect("it can run");
    assert_eq!(ran.words, [number]);
    ran.serial
}

fn alive(cache: &ProgramCache<Paper>) -> usize {
    cache.backend().alive.load(Ordering::Relaxed)
}

/// A limit that three programs fit in, and not four.
const THREE: u64 = PROGRAM_BYTES * 6;

#[test]
fn weight_stays_below_the_limit_and_dropped_programs_are_gone() {
    let cache = bounded(THREE);
    for number in 0..100 {
        serial(&cache, number);
        let counts = cache.counts();
        assert!(counts.weight_bytes <= THREE, "{counts:?}");
        assert_eq!(usize::try_from(counts.entries), Ok(alive(&cache)));
    }
    let counts = cache.counts();
    assert_eq!(counts.entries, 3);
    assert_eq!(counts.evictions, 97);
}

#[test]
fn what_was_used_is_spared() {
    let cache = bounded(THREE);
    for number in 0..3 {
        serial(&cache, number);
    }
    // The hand passes all three and takes the first.
    serial(&cache, 3);
    let kept = serial(&cache, 2);
    serial(&cache, 4);
    assert_eq!(serial(&cache, 2), kept);
    assert_eq!(cache.counts().evictions, 2);
}

#[test]
fn a_program_heavier_than_the_limit_is_used_once() {
    let cache = bounded(PROGRAM_BYTES / 2);
    assert_eq!((serial(&cache, 0), serial(&cache, 0)), (0, 1));
    assert_eq!((cache.entries(), alive(&cache)), (0, 0));
}

#[test]
fn no_program_in_use_is_dropped() {
    let cache = bounded(THREE);
    let shape = spec(&[32]);
    let operands = [at(&shape, 7)];
    for _ in 0..2 {
        let kept = cache.dispatch::<Numbered, _>(&7, &with(&operands), |sheet| {
            for number in 100..110 {
                serial(&cache, number);
            }
            cache.clear();
            assert_eq!((cache.entries(), alive(&cache)), (0, 1));
            sheet.arguments.words().to_vec()
        });
        assert_eq!(kept.expect("it can run"), [7]);
        assert_eq!(alive(&cache), 0);
        serial(&cache, 7);
    }
}

#[test]
fn clear_drops_and_disable_keeps() {
    let cache = cache(CacheMode::On);
    assert_eq!((serial(&cache, 1), serial(&cache, 1)), (0, 0));
    cache.disable();
    assert_eq!((serial(&cache, 1), serial(&cache, 1)), (1, 2));
    assert_eq!((cache.entries(), alive(&cache)), (1, 1));
    cache.enable();
    assert_eq!(serial(&cache, 1), 0);
    assert_eq!(cache.names(), ["numbered"]);
    cache.clear();
    assert_eq!((cache.entries(), alive(&cache), cache.counts().weight_bytes), (0, 0, 0));
    assert_eq!(serial(&cache, 1), 3);
}

#[test]
fn a_cache_that_is_off_stays_off() {
    let cache = cache(CacheMode::Off);
    cache.enable();
    assert!(!cache.is_enabled());
    assert_eq!((serial(&cache, 1), serial(&cache, 1)), (0, 1));
    let counts = cache.counts();
    assert_eq!((counts.misses, counts.compiles, counts.entries), (2, 2, 0));
}
