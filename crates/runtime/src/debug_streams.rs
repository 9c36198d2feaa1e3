//! The debug streams of the process's logical cores, as its endpoint shows them.
//!
//! They are read when a client asks, those of another library through the function that it gave. A core
//! that was never connected to is not shown, and of many cores those with the most events are: the others
//! appear as one sum.

use std::sync::OnceLock;

use telltale_debug_stream::{Losses, StreamCounters, cores};
use telltale_schema::metric::MetricDefinition;
use telltale_schema::metric::definitions::{
    PROCESS_DEBUG_CONNECTED, PROCESS_DEBUG_EVENTS_DELIVERED_TOTAL,
    PROCESS_DEBUG_EVENTS_FILTERED_TOTAL, PROCESS_DEBUG_EVENTS_LOST_TOTAL,
    PROCESS_DEBUG_EVENTS_PUBLISHED_TOTAL, PROCESS_DEBUG_EVENTS_UNREAD_TOTAL,
    PROCESS_DEBUG_EVENTS_UNSAVED_TOTAL, PROCESS_DEBUG_EVENTS_WAITING, PROCESS_DEBUG_WAITING_BYTES,
};
use telltale_schema::snapshot::{MetricSample, MetricValue};

/// Logical cores that an endpoint shows one by one.
pub const MAX_SHOWN_CORES: usize = 64;
/// The label's value for the sum of the others.
const OTHERS: &str = "others";

/// What knows the streams that another library of this process has: each core with its counters.
pub type OtherStreams = fn() -> Vec<(u32, StreamCounters)>;

static OTHERS_SOURCE: OnceLock<OtherStreams> = OnceLock::new();

/// Shows the streams of another library of this process, too; the first call counts. The function
/// is called on the endpoint's thread, whenever a client asks.
pub fn show_other_debug_streams(source: OtherStreams) {
    let _ = OTHERS_SOURCE.set(source);
}

/// The streams' metrics.
pub(crate) fn samples() -> Vec<MetricSample> {
    let streams = (0..cores::count()).filter_map(cores::stream);
    let ours = streams.map(|stream| (stream.core(), stream.counters()));
    let others = OTHERS_SOURCE.get().map(|source| source()).unwrap_or_default();
    of(ours.chain(others).collect())
}

fn of(mut found: Vec<(u32, StreamCounters)>) -> Vec<MetricSample> {
    found.retain(|(_, counters)| counters.is_used());
    // Stable: of those with as many events the first ones stay.
    found.sort_by_key(|(_, counters)| std::cmp::Reverse(counters.produced));
    let others = found.split_off(found.len().min(MAX_SHOWN_CORES));
    found.sort_by_key(|(core, _)| *core);
    let others = others.into_iter().map(|(_, counters)| counters).reduce(plus);
    let shown = found.into_iter().map(|(core, counters)| (core.to_string(), counters));
    let others = others.map(|sum| (OTHERS.to_owned(), sum));
    shown.chain(others).flat_map(|(core, counters)| of_core(&core, &counters)).collect()
}

fn plus(one: StreamCounters, other: StreamCounters) -> StreamCounters {
    let lost = Losses {
        events: one.lost.events + other.lost.events,
        bytes: one.lost.bytes + other.lost.bytes,
        memory: one.lost.memory + other.lost.memory,
    };
    StreamCounters {
        connected: one.connected || other.connected,
        produced: one.produced + other.produced,
        delivered: one.delivered + other.delivered,
        unread: one.unread + other.unread,
        waiting: one.waiting + other.waiting,
        waiting_bytes: one.waiting_bytes + other.waiting_bytes,
        high_water: one.high_water.max(other.high_water),
        lost,
        filtered: one.filtered + other.filtered,
        unsaved: one.unsaved + other.unsaved,
        idle_bytes: one.idle_bytes + other.idle_bytes,
        descriptor_writes: one.descriptor_writes + other.descriptor_writes,
    }
}

fn of_core(core: &str, counters: &StreamCounters) -> impl Iterator<Item = MetricSample> + use<> {
    let gauges = [
        (PROCESS_DEBUG_CONNECTED, u64::from(counters.connected)),
        (PROCESS_DEBUG_EVENTS_WAITING, counters.waiting),
        (PROCESS_DEBUG_WAITING_BYTES, counters.waiting_bytes),
    ];
    let counts = [
        (PROCESS_DEBUG_EVENTS_PUBLISHED_TOTAL, counters.produced),
        (PROCESS_DEBUG_EVENTS_DELIVERED_TOTAL, counters.delivered),
        (PROCESS_DEBUG_EVENTS_FILTERED_TOTAL, counters.filtered),
        (PROCESS_DEBUG_EVENTS_UNREAD_TOTAL, counters.unread),
        (PROCESS_DEBUG_EVENTS_UNSAVED_TOTAL, counters.unsaved),
    ];
    let losses = [
        ("events", counters.lost.events),
        ("bytes", counters.lost.bytes),
        ("memory", counters.lost.memory),
    ];
    // Neither is anywhere near 2^53, where a float starts to leave numbers out.
    let gauges = gauges.map(|(definition, value)| {
        sample(definition, core, None, MetricValue::Gauge(value as f64))
    });
    let counts = counts
        .map(|(definition, count)| sample(definition, core, None, MetricValue::Counter(count)));
    let losses = losses.map(|(cause, count)| {
        let value = MetricValue::Counter(count);
        sample(PROCESS_DEBUG_EVENTS_LOST_TOTAL, core, Some(cause), value)
    });
    gauges.into_iter().chain(counts).chain(losses)
}

/// A sample without the labels that say which process it is of: the reader knows that.
fn sample(
    definition: &MetricDefinition,
    core: &str,
    cause: Option<&str>,
    value: MetricValue,
) -> MetricSample {
    let cause = cause.map(|cause| ("cause".to_owned(), cause.to_owned()));
    MetricSample {
        name: definition.name.to_owned(),
        help: definition.help.to_owned(),
        unit: definition.unit.suffix().unwrap_or_default().to_owned(),
        labels: cause.into_iter().chain([("core".to_owned(), core.to_owned())]).collect(),
        value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(produced: u64) -> StreamCounters {
        StreamCounters { produced, delivered: produced, ..StreamCounters::default() }
    }

    #[test]
    fn of_many_cores_the_busiest_are_shown_and_the_rest_is_one_sum() {
        let mut all: Vec<(u32, StreamCounters)> =
            (0..80).map(|core| (core, counters(u64::from(core)))).collect();
        all[1].1.connected = true;
        let samples = of(all);
        let published: Vec<(&str, &MetricValue)> = samples
            .iter()
            .filter(|sample| sample.name == PROCESS_DEBUG_EVENTS_PUBLISHED_TOTAL.name)
            .map(|sample| (sample.labels[0].1.as_str(), &sample.value))
            .collect();
        assert_eq!(published.len(), MAX_SHOWN_CORES + 1);
        assert_eq!(published[0], ("16", &MetricValue::Counter(16)));
        assert_eq!(published[MAX_SHOWN_CORES], (OTHERS, &MetricValue::Counter((1..16).sum())));
        assert_eq!(of(vec![(0, counters(0))]), [], "a core that nobody used");
    }
}
