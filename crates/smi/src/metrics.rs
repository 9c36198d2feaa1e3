//! What a process's endpoint reports besides memory, a line for each value.

use telltale_schema::metric::definitions::{
    PROCESS_DEBUG_CONNECTED, PROCESS_DEBUG_EVENTS_PUBLISHED_TOTAL,
};
use telltale_schema::quantity;
use telltale_schema::snapshot::{MetricSample, MetricValue, ProgramUse};
use telltale_schema::text::printable;

/// The beginnings of the names of what is shown only when it has happened: what an endpoint counts of
/// itself, refusals and errors; and what became of the events of each core.
const QUIET: [&str; 2] = ["telltale_endpoint_", "telltale_process_debug_"];

/// Whether the value is one of those, and nothing has happened yet. That a core's events have a reader
/// is shown once there are some among `all`.
pub(crate) fn is_quiet(sample: &MetricSample, all: &[MetricSample]) -> bool {
    if sample.name == PROCESS_DEBUG_CONNECTED.name {
        let published = PROCESS_DEBUG_EVENTS_PUBLISHED_TOTAL.name;
        let has_events = |one: &MetricSample| {
            one.name == published && one.labels == sample.labels && !is_zero(one)
        };
        return !all.iter().any(has_events);
    }
    is_zero(sample) && QUIET.iter().any(|start| sample.name.starts_with(start))
}

fn is_zero(sample: &MetricSample) -> bool {
    matches!(sample.value, MetricValue::Counter(0) | MetricValue::Gauge(0.0))
}

/// The name of a value, with its labels, and the value as text.
pub(crate) fn line(sample: &MetricSample) -> (String, String) {
    let mut name = printable(&sample.name);
    if !sample.labels.is_empty() {
        let labels = sample.labels.iter().map(|(label, value)| format!("{label}={value:?}"));
        let labels = labels.collect::<Vec<_>>().join(",");
        name.push_str(&format!("{{{}}}", printable(&labels)));
    }
    let value = match &sample.value {
        MetricValue::Counter(count) => quantity::count(*count),
        MetricValue::Gauge(value) => value.to_string(),
        MetricValue::Histogram { sum, .. } => {
            let observations = sample.value.observations();
            format!("{} observations, sum {sum}", quantity::count(observations))
        }
    };
    (name, value)
}

/// How a process's program cache did, in a line.
pub(crate) fn programs(programs: &ProgramUse) -> String {
    let ProgramUse { cached, hits, dispatches } = *programs;
    let [cached, hits, of] = [cached, hits, dispatches].map(quantity::count);
    // Cut, not rounded: 100 % are all of them.
    let share =
        programs.hit_ratio().map(|ratio| format!(" ({:.1} %)", (ratio * 1e3).floor() / 10.0));
    let share = share.unwrap_or_default();
    format!("{cached} cached, found by {hits} of {of} dispatches{share}")
}

#[cfg(test)]
mod tests {
    use telltale_schema::snapshot::{MetricSample, MetricValue, ProgramUse};

    use super::{is_quiet, line, programs};

    #[test]
    fn a_share_is_cut_and_absent_before_the_first_dispatch() {
        let cases = [
            ((0, 0, 0), "0 cached, found by 0 of 0 dispatches"),
            ((57, 12_345, 12_402), "57 cached, found by 12,345 of 12,402 dispatches (99.5 %)"),
            ((1, 99_999, 100_000), "1 cached, found by 99,999 of 100,000 dispatches (99.9 %)"),
        ];
        for ((cached, hits, dispatches), text) in cases {
            assert_eq!(programs(&ProgramUse { cached, hits, dispatches }), text);
        }
    }

    #[test]
    fn what_has_not_happened_is_quiet_unless_the_application_reports_it() {
        for (name, value, expected) in [
            ("telltale_process_debug_events_lost_total", MetricValue::Counter(0), true),
            ("telltale_process_debug_events_lost_total", MetricValue::Counter(1), false),
            ("telltale_process_debug_waiting_bytes", MetricValue::Gauge(0.0), true),
            ("telltale_endpoint_errors_total", MetricValue::Counter(0), true),
            ("jobs_total", MetricValue::Counter(0), false),
        ] {
            let sample = of_core(name, 0, value);
            assert_eq!(is_quiet(&sample, &[]), expected, "{sample:?}");
        }
        let published = |core, count| {
            let name = "telltale_process_debug_events_published_total";
            of_core(name, core, MetricValue::Counter(count))
        };
        let all = [published(0, 1), published(1, 0)];
        for (core, expected) in [(0, false), (1, true), (2, true)] {
            let connected =
                of_core("telltale_process_debug_connected", core, MetricValue::Gauge(1.0));
            assert_eq!(is_quiet(&connected, &all), expected, "{core}");
        }
    }

    fn of_core(name: &str, core: u32, value: MetricValue) -> MetricSample {
        MetricSample {
            name: name.to_owned(),
            help: String::new(),
            unit: String::new(),
            labels: vec![("core".to_owned(), core.to_string())],
            value,
        }
    }

    #[test]
    fn values_of_each_kind_read_well_and_steer_nothing() {
        let sample = |labels: &[(&str, &str)], value| MetricSample {
            name: String::from("jobs"),
            help: String::new(),
            unit: String::new(),
            labels: labels.iter().map(|(l, v)| ((*l).to_owned(), (*v).to_owned())).collect(),
            value,
        };
        let histogram =
            MetricValue::Histogram { bounds: vec![1.0], counts: vec![u64::MAX, 1], sum: 2.5 };
        let cases = [
            (sample(&[], MetricValue::Counter(1234)), "jobs 1,234"),
            (sample(&[("device", "0")], MetricValue::Gauge(0.5)), "jobs{device=\"0\"} 0.5"),
            (
                sample(&[("a", "\u{202e}x")], histogram),
                "jobs{a=\"\\u{202e}x\"} 18,446,744,073,709,551,615 observations, sum 2.5",
            ),
        ];
        for (sample, text) in cases {
            let (name, value) = line(&sample);
            assert_eq!(format!("{name} {value}"), text);
        }
    }
}
