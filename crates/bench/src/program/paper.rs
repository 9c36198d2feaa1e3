//! A back end without a device: a program is its words, so that what is timed is the cache alone.

use std::convert::Infallible;

use telltale_program_cache::{
    Backend, CacheMode, CacheOptions, ProgramArguments, ProgramCache, ProgramDescriptor,
    UpdateError, Updates,
};

/// The back end.
#[derive(Debug)]
pub(super) struct Paper;

/// The most that a cache of the benchmarks may weigh: nothing is ever dropped.
const LIMIT_BYTES: u64 = 64 << 30;

impl Backend for Paper {
    type Program = ProgramArguments;
    type Error = Infallible;

    fn compile(&self, descriptor: &ProgramDescriptor) -> Result<ProgramArguments, Infallible> {
        Ok(ProgramArguments::of(descriptor).expect("a benchmark's program has few words"))
    }

    #[inline]
    fn apply(
        &self,
        program: &mut ProgramArguments,
        updates: Updates<'_>,
    ) -> Result<(), UpdateError> {
        updates.write_to(program)
    }

    fn arguments<'a>(&self, program: &'a ProgramArguments) -> &'a ProgramArguments {
        program
    }

    fn weight_bytes(&self, program: &ProgramArguments) -> u64 {
        size_of_val(program.words()) as u64
    }
}

/// An empty cache, in its usual mode whatever the environment says.
pub(super) fn cache() -> ProgramCache<Paper> {
    ProgramCache::new(Paper, CacheOptions { mode: CacheMode::On, limit_bytes: LIMIT_BYTES })
}
