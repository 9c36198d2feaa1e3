//! The program caches of the process, as its endpoint shows them.
//!
//! A cache is read when a client asks, without a lock that a dispatch could hold; nothing is
//! copied without a client, and a cache that is gone is shown no more.

use std::sync::{Arc, Weak};
use std::time::Duration;

use telltale_program_cache::{Backend, CacheCounts, PHASES, Phase, ProgramCache};
use telltale_schema::metric::MetricDefinition;
use telltale_schema::metric::definitions::{
    PROCESS_PROGRAM_CACHE_CHECKS_TOTAL, PROCESS_PROGRAM_CACHE_COLLISIONS_TOTAL,
    PROCESS_PROGRAM_CACHE_COMPILES_TOTAL, PROCESS_PROGRAM_CACHE_EVICTIONS_TOTAL,
    PROCESS_PROGRAM_CACHE_FAILED_CHECKS_TOTAL, PROCESS_PROGRAM_CACHE_FAILED_COMPILES_TOTAL,
    PROCESS_PROGRAM_CACHE_PHASE_SECONDS, PROCESS_PROGRAM_CACHE_WEIGHT_BYTES,
};
use telltale_schema::snapshot::{MetricSample, MetricValue};
use telltale_wire::Programs;

/// Program caches that one runtime shows at a time.
pub const MAX_PROGRAM_CACHES: usize = 64;

/// A program cache, whatever its back end.
pub(crate) trait CountsPrograms: Send + Sync {
    fn counts(&self) -> CacheCounts;
}

impl<B: Backend + Send + Sync> CountsPrograms for ProgramCache<B> {
    fn counts(&self) -> CacheCounts {
        ProgramCache::counts(self)
    }
}

/// There are too many caches.
#[derive(Debug, thiserror::Error)]
#[error("this process shows {MAX_PROGRAM_CACHES} program caches already")]
pub(crate) struct TooManyCaches;

/// The caches to show.
#[derive(Clone, Default)]
pub(crate) struct ProgramCaches(Vec<Weak<dyn CountsPrograms>>);

impl ProgramCaches {
    /// Shows one more, in the place of one that is gone.
    pub(crate) fn add(&mut self, cache: Weak<dyn CountsPrograms>) -> Result<(), TooManyCaches> {
        self.0.retain(|one| one.strong_count() > 0);
        if self.0.len() >= MAX_PROGRAM_CACHES {
            return Err(TooManyCaches);
        }
        self.0.push(cache);
        Ok(())
    }

    /// The sums over all caches; none if there is no cache.
    pub(crate) fn counts(&self) -> Option<CacheCounts> {
        let alive = self.0.iter().filter_map(Weak::upgrade);
        alive.map(|cache| cache.counts()).reduce(CacheCounts::plus)
    }
}

/// Weakens a cache to what is kept of it.
pub(crate) fn weak<B>(cache: &Arc<ProgramCache<B>>) -> Weak<dyn CountsPrograms>
where
    B: Backend + Send + Sync + 'static,
{
    let cache: Weak<ProgramCache<B>> = Arc::downgrade(cache);
    cache
}

/// What the runtime knows of its programs, and what its caches hold.
pub(crate) fn programs(
    reported: Option<Programs>,
    counts: Option<&CacheCounts>,
) -> Option<Programs> {
    let Some(counts) = counts else { return reported };
    let mut programs = reported.unwrap_or_default();
    programs.cached = programs.cached.saturating_add(counts.entries);
    // A cached program is kept on its device, and has no name to tell.
    programs.loaded_omitted = programs.loaded_omitted.saturating_add(counts.entries);
    programs.hits = Some(programs.hits.unwrap_or(0).saturating_add(counts.hits));
    programs.misses = Some(programs.misses.unwrap_or(0).saturating_add(counts.misses));
    Some(programs)
}

/// The caches' metrics. Those that [`programs`] has are not among them.
pub(crate) fn samples(counts: &CacheCounts) -> Vec<MetricSample> {
    let counters = [
        (PROCESS_PROGRAM_CACHE_COMPILES_TOTAL, counts.compiles),
        (PROCESS_PROGRAM_CACHE_FAILED_COMPILES_TOTAL, counts.failed_compiles),
        (PROCESS_PROGRAM_CACHE_EVICTIONS_TOTAL, counts.evictions),
        (PROCESS_PROGRAM_CACHE_COLLISIONS_TOTAL, counts.collisions),
        (PROCESS_PROGRAM_CACHE_CHECKS_TOTAL, counts.checks),
        (PROCESS_PROGRAM_CACHE_FAILED_CHECKS_TOTAL, counts.failed_checks),
    ];
    let counters =
        counters.map(|(definition, count)| sample(definition, None, MetricValue::Counter(count)));
    // A sum of bytes is far below 2^53, where a float starts to leave numbers out.
    let weight = MetricValue::Gauge(counts.weight_bytes as f64);
    let weight = sample(PROCESS_PROGRAM_CACHE_WEIGHT_BYTES, None, weight);
    let phases = PHASES.map(|phase| phase_sample(phase, counts));
    counters.into_iter().chain([weight]).chain(phases).collect()
}

fn phase_sample(phase: Phase, counts: &CacheCounts) -> MetricSample {
    let seconds = Duration::from_nanos(counts.phase_ns(phase)).as_secs_f64();
    sample(PROCESS_PROGRAM_CACHE_PHASE_SECONDS, Some(phase.name()), MetricValue::Gauge(seconds))
}

/// A sample without the label that says which process it is of: the reader knows that.
fn sample(definition: &MetricDefinition, phase: Option<&str>, value: MetricValue) -> MetricSample {
    let labels = phase.map(|phase| ("phase".to_owned(), phase.to_owned()));
    MetricSample {
        name: definition.name.to_owned(),
        help: definition.help.to_owned(),
        unit: String::new(),
        labels: labels.into_iter().collect(),
        value,
    }
}
