//! A program whose files have changed is dropped and recompiled, whatever the mode.

use std::sync::atomic::Ordering;

use telltale_program_cache::{
    Argument, CacheMode, Dispatch, DynamicIndex, FactoryError, OperandSpecs, Operation,
    ProgramDescriptor,
};

use crate::cache::operations::{kernel, program};
use crate::cache::paper::{Ran, cache, run};

struct Scale;

impl Operation for Scale {
    const NAME: &'static str = "scale";
    type Attributes = ();

    fn create((): &(), _: OperandSpecs<'_>) -> Result<ProgramDescriptor<Argument>, FactoryError> {
        Ok(program([kernel("scale", 1, [Argument::Dynamic(DynamicIndex(0))])]))
    }
}

#[test]
fn a_program_that_is_not_current_is_compiled_again() {
    for mode in [CacheMode::On, CacheMode::Check] {
        let cache = cache(mode);
        let dispatch = |word: u32| {
            let dynamics = &[word];
            let dispatch = Dispatch { operands: &[], dynamics, semaphores: &[] };
            run::<Scale>(&cache, &(), &dispatch).expect("it is described rightly")
        };
        assert_eq!(dispatch(5), Ran { serial: 0, words: vec![5] });
        assert_eq!(dispatch(6), Ran { serial: 0, words: vec![6] });
        cache.backend().first_current.store(1, Ordering::Relaxed);
        assert_eq!(dispatch(7), Ran { serial: 1, words: vec![7] });
        assert_eq!(dispatch(8), Ran { serial: 1, words: vec![8] });
        let counts = cache.counts();
        assert_eq!((counts.hits, counts.misses, counts.compiles), (2, 2, 2), "{mode}");
        assert_eq!((counts.entries, counts.evictions), (1, 0));
        assert_eq!(cache.backend().alive.load(Ordering::Relaxed), 1, "the old one is dropped");
    }
}
