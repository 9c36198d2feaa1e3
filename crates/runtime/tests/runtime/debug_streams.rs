//! What became of the events of each logical core is on the endpoint.

use crate::runtime::asking::{ask, numbered, started};
use telltale_debug_stream::{Published, TensorEvent, cores};
use telltale_harness::Scratch;
use telltale_schema::metric::DEFINITIONS;
use telltale_schema::snapshot::MetricValue;
use telltale_wire::{Query, QueryKind};

#[test]
fn streams_are_shown_once_they_are_used() {
    let scratch = Scratch::new();
    let runtime = started(&scratch);
    let _device = runtime.open_device(numbered(0));
    cores::ensure(3);
    let stream = cores::stream(2).expect("it was asked for");
    let publisher = stream.publisher();
    let mut consumer = stream.connect().expect("nobody reads");
    for number in 0..3_u32 {
        let event = TensorEvent {
            prefix: "x",
            dtype: "uint32",
            shape: &[1],
            data: &number.to_le_bytes(),
            pipe: 0,
        };
        assert_eq!(publisher.tensor(&event), Published::Queued);
    }
    let _ = consumer.try_next().expect("this process connected");
    stream.count_unsaved(1);

    let all = ask(&scratch, Query::of(QueryKind::All));
    let of_streams = all.metrics.iter().filter(|one| one.name.contains("_debug_"));
    let found: Vec<(String, String, f64)> = of_streams
        .map(|one| {
            let name = one.name.trim_start_matches("telltale_process_debug_").to_owned();
            let labels: Vec<String> =
                one.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
            assert!(DEFINITIONS.iter().any(|known| known.name == one.name));
            let value = match one.value {
                MetricValue::Counter(count) => count as f64,
                MetricValue::Gauge(value) => value,
                MetricValue::Histogram { .. } => panic!("{name} is a number"),
            };
            (name, labels.join(","), value)
        })
        .collect();
    let bytes = found.iter().find(|(name, ..)| name == "waiting_bytes").map_or(0.0, |one| one.2);
    assert!(bytes > 2.0 * 96.0, "{bytes} bytes wait");
    let expected = [
        ("connected", "core=2", 1.0),
        ("events_waiting", "core=2", 2.0),
        ("waiting_bytes", "core=2", bytes),
        ("events_published_total", "core=2", 3.0),
        ("events_delivered_total", "core=2", 1.0),
        ("events_filtered_total", "core=2", 0.0),
        ("events_unread_total", "core=2", 0.0),
        ("events_unsaved_total", "core=2", 1.0),
        ("events_lost_total", "cause=events,core=2", 0.0),
        ("events_lost_total", "cause=bytes,core=2", 0.0),
        ("events_lost_total", "cause=memory,core=2", 0.0),
    ];
    let expected =
        expected.map(|(name, labels, value)| (name.to_owned(), labels.to_owned(), value));
    assert_eq!(found, expected);
}
