//! A program cache is shown on the endpoint while it exists.

use std::convert::Infallible;
use std::sync::Arc;

use crate::runtime::asking::{ask, numbered, started};
use telltale_harness::Scratch;
use telltale_program_cache::{
    Backend, CacheOptions, ProgramArguments, ProgramCache, ProgramDescriptor, UpdateError, Updates,
};
use telltale_runtime::Programs;
use telltale_schema::metric::DEFINITIONS;
use telltale_schema::snapshot::MetricValue;
use telltale_wire::{Query, QueryKind};

/// Keeps arguments and compiles nothing.
struct Paper;

impl Backend for Paper {
    type Program = ProgramArguments;
    type Error = Infallible;

    fn compile(&self, descriptor: &ProgramDescriptor) -> Result<ProgramArguments, Infallible> {
        Ok(ProgramArguments::of(descriptor).expect("it has no words"))
    }

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

    fn weight_bytes(&self, _: &ProgramArguments) -> u64 {
        10_000
    }
}

#[test]
fn caches_are_shown_as_sums_while_they_exist() {
    let scratch = Scratch::new();
    let runtime = started(&scratch);
    let _device = runtime.open_device(numbered(0));
    let caches = [(); 2].map(|()| Arc::new(ProgramCache::new(Paper, CacheOptions::default())));
    for cache in &caches {
        runtime.show_program_cache(cache);
        for _ in 0..3 {
            let ran = cache.dispatch_described(&ProgramDescriptor::default(), |_| ());
            ran.expect("an empty program can run");
        }
    }
    runtime.report_programs(Programs { cached: 1, hits: Some(5), ..Programs::default() });

    let all = ask(&scratch, Query::of(QueryKind::All));
    let programs = all.programs.expect("there are caches");
    assert_eq!((programs.cached, programs.hits, programs.misses), (3, Some(9), Some(2)));
    assert_eq!(programs.loaded_omitted, 2, "what is cached is on the device, without a name");
    let value = |name: &str, phase: Option<&str>| {
        let phase = phase.map(|phase| ("phase".to_owned(), phase.to_owned()));
        let labels: Vec<_> = phase.into_iter().collect();
        let found = |one: &&telltale_schema::snapshot::MetricSample| {
            one.name == format!("telltale_process_program_cache_{name}") && one.labels == labels
        };
        all.metrics.iter().find(found).map(|one| one.value.clone())
    };
    assert_eq!(value("compiles_total", None), Some(MetricValue::Counter(2)));
    assert_eq!(value("failed_checks_total", None), Some(MetricValue::Counter(0)));
    for (name, phase) in [("weight_bytes", None), ("phase_seconds", Some("compile"))] {
        let Some(MetricValue::Gauge(value)) = value(name, phase) else { panic!("{name} is shown") };
        assert!(value > 0.0, "{name} is {value}");
    }

    // Hits and misses are among what is reported of programs.
    let reported = ["hits_total", "misses_total"];
    for definition in DEFINITIONS {
        let name = definition.name.strip_prefix("telltale_process_program_cache_");
        if let Some(name) = name.filter(|name| !reported.contains(name)) {
            assert!(all.metrics.iter().any(|one| one.name.ends_with(name)), "{name} is missing");
        }
    }

    drop(caches);
    let all = ask(&scratch, Query::of(QueryKind::All));
    assert_eq!(all.programs.map(|programs| programs.cached), Some(1));
    assert!(all.metrics.iter().all(|one| !one.name.starts_with("telltale_process_program_cache_")));
}
