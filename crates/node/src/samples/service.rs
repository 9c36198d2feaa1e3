//! Samples of the sources and of the service itself.

use telltale_schema::metric::MetricDefinition;
use telltale_schema::metric::definitions::{
    BUILD_INFO, CLOSED_PROCESSES, COLLECTION_DURATION_SECONDS, COLLECTION_SECONDS_TOTAL,
    COLLECTIONS_TOTAL, CONFIGURATION_RELOADS_TOTAL, HISTORY_FAILURES_TOTAL, HISTORY_SIZE_BYTES,
    HISTORY_UP, HTTP_CONNECTIONS, HTTP_REFUSED_CONNECTIONS_TOTAL, HTTP_REQUESTS_TOTAL,
    LAST_COLLECTION_TIMESTAMP_SECONDS, LEGACY_CONNECTIONS, LEGACY_MESSAGES_TOTAL,
    LEGACY_REFUSED_TOTAL, QUEUE_DROPPED_TOTAL, SCRAPE_DURATION_SECONDS, SCRAPES_TOTAL,
    SERIES_DROPPED_TOTAL, SERVICE_CPU_SECONDS_TOTAL, SERVICE_RESIDENT_MEMORY_BYTES,
    SERVICE_START_TIME_SECONDS, SOURCE_DURATION_SECONDS, SOURCE_ERRORS_TOTAL, SOURCE_NOTES_TOTAL,
    SOURCE_UP, TRUNCATED_DIRECTORIES,
};
use telltale_wire::exposition::Number;

use super::label_sets::SetId;
use super::{Dropped, Samples, place};
use crate::service::Published;

/// What the HTTP server says of itself.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HttpMetrics {
    /// Times that metrics were asked for.
    pub scrapes: u64,
    /// How long the last text took to make, in seconds.
    pub text_seconds: Option<f64>,
    /// Series left out of texts so far.
    pub dropped: Dropped,
    /// Requests by the status code of their answer.
    pub requests: Vec<(u16, u64)>,
    /// Connections that are open.
    pub connections: u64,
    /// Connections closed before their time, by reason.
    pub refused: Vec<(&'static str, u64)>,
}

/// Counters that count from the service's start.
const OF_SERVICE: [&MetricDefinition; 14] = [
    COLLECTIONS_TOTAL,
    COLLECTION_SECONDS_TOTAL,
    SERVICE_CPU_SECONDS_TOTAL,
    QUEUE_DROPPED_TOTAL,
    SOURCE_ERRORS_TOTAL,
    SOURCE_NOTES_TOTAL,
    CONFIGURATION_RELOADS_TOTAL,
    SCRAPES_TOTAL,
    SERIES_DROPPED_TOTAL,
    HISTORY_FAILURES_TOTAL,
    HTTP_REQUESTS_TOTAL,
    HTTP_REFUSED_CONNECTIONS_TOTAL,
    LEGACY_MESSAGES_TOTAL,
    LEGACY_REFUSED_TOTAL,
];

/// Adds all of them.
pub(super) fn add<'a>(
    samples: &mut Samples<'a>,
    published: &'a Published,
    http: Option<&HttpMetrics>,
) {
    for definition in OF_SERVICE {
        samples.families[place(definition)].created = Some(published.service.started_at);
    }
    sources(samples, published);
    let version = samples.sets.one("version", env!("CARGO_PKG_VERSION"));
    samples.put(BUILD_INFO, [version, SetId::default(), SetId::default()], Number::Whole(1));
    let (snapshot, service) = (&published.snapshot, &published.service);
    let metrics = [
        (COLLECTION_DURATION_SECONDS, seconds(snapshot.collected_in_ns)),
        (COLLECTIONS_TOTAL, Number::Whole(service.collections)),
        (COLLECTION_SECONDS_TOTAL, Number::Float(service.collection_seconds)),
        (LAST_COLLECTION_TIMESTAMP_SECONDS, seconds(snapshot.taken_at.0)),
        (CLOSED_PROCESSES, Number::Whole(snapshot.closed_processes)),
        (TRUNCATED_DIRECTORIES, Number::Whole(service.truncated_directories)),
        (SERVICE_START_TIME_SECONDS, seconds(service.started_at.0)),
        (SERVICE_CPU_SECONDS_TOTAL, Number::Float(service.cpu_seconds)),
    ];
    for (definition, value) in metrics {
        samples.put(definition, [SetId::default(); 3], value);
    }
    if let Some(bytes) = service.resident_bytes.value() {
        samples.put(SERVICE_RESIDENT_MEMORY_BYTES, [SetId::default(); 3], Number::Whole(*bytes));
    }
    let taken = service.reloads.saturating_sub(service.refused_reloads);
    for (outcome, count) in [("taken", taken), ("refused", service.refused_reloads)] {
        labelled(samples, CONFIGURATION_RELOADS_TOTAL, ("outcome", outcome), count);
    }
    for drops in &service.drops {
        labelled(samples, QUEUE_DROPPED_TOTAL, ("queue", drops.queue), drops.total);
    }
    if let Some(history) = &service.history {
        let is_up = u64::from(history.problem.is_none());
        for (definition, number) in [
            (HISTORY_UP, is_up),
            (HISTORY_FAILURES_TOTAL, history.failures),
            (HISTORY_SIZE_BYTES, history.bytes),
        ] {
            samples.put(definition, [SetId::default(); 3], Number::Whole(number));
        }
    }
    if let Some(legacy) = &service.legacy {
        let connections = Number::Whole(legacy.connections);
        samples.put(LEGACY_CONNECTIONS, [SetId::default(); 3], connections);
        for (kind, count) in &legacy.messages {
            labelled(samples, LEGACY_MESSAGES_TOTAL, ("type", kind), *count);
        }
        for (reason, count) in &legacy.refused {
            labelled(samples, LEGACY_REFUSED_TOTAL, ("reason", reason), *count);
        }
    }
    if let Some(http) = http {
        of_http(samples, http);
    }
}

fn sources<'a>(samples: &mut Samples<'a>, published: &'a Published) {
    for status in &published.snapshot.sources {
        let source = samples.sets.one("source", status.name.as_str());
        let sets = [source, SetId::default(), SetId::default()];
        let failed = !status.errors.is_empty() || status.errors_dropped > 0;
        samples.put(SOURCE_UP, sets, Number::Whole(u64::from(!failed)));
        samples.put(SOURCE_DURATION_SECONDS, sets, seconds(status.duration_ns));
    }
    for source in &published.service.sources {
        let set = samples.sets.one("source", source.name.as_str());
        let sets = [set, SetId::default(), SetId::default()];
        samples.put(SOURCE_ERRORS_TOTAL, sets, Number::Whole(source.errors));
        samples.put(SOURCE_NOTES_TOTAL, sets, Number::Whole(source.notes));
    }
}

fn of_http(samples: &mut Samples<'_>, http: &HttpMetrics) {
    samples.put(SCRAPES_TOTAL, [SetId::default(); 3], Number::Whole(http.scrapes));
    samples.put(HTTP_CONNECTIONS, [SetId::default(); 3], Number::Whole(http.connections));
    if let Some(took) = http.text_seconds {
        samples.put(SCRAPE_DURATION_SECONDS, [SetId::default(); 3], Number::Float(took));
    }
    for (reason, count) in http.dropped.by_reason() {
        labelled(samples, SERIES_DROPPED_TOTAL, ("reason", reason), count);
    }
    for (reason, count) in &http.refused {
        labelled(samples, HTTP_REFUSED_CONNECTIONS_TOTAL, ("reason", reason), *count);
    }
    for (code, count) in &http.requests {
        let code = samples.sets.one("code", code.to_string());
        let sets = [code, SetId::default(), SetId::default()];
        samples.put(HTTP_REQUESTS_TOTAL, sets, Number::Whole(*count));
    }
}

fn labelled(
    samples: &mut Samples<'_>,
    definition: &MetricDefinition,
    (label, value): (&'static str, &'static str),
    count: u64,
) {
    let set = samples.sets.one(label, value);
    samples.put(definition, [set, SetId::default(), SetId::default()], Number::Whole(count));
}

/// Nanoseconds as seconds; a point in time keeps its microsecond.
#[allow(clippy::cast_precision_loss)]
fn seconds(nanoseconds: u64) -> Number {
    Number::Float(nanoseconds as f64 / 1e9)
}
