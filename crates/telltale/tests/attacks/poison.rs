//! Mallory's values cannot be true.

use serde_json::json;
use telltale_harness::exposition::{parse, promtool};
use telltale_harness::{skip, wait_until};
use telltale_schema::memory::MemorySpace;
use telltale_schema::snapshot::{MetricSample, MetricValue};

use crate::attacks::fixture::{
    ADAS_BYTES, Fixture, MALLORY, TIMEOUT, complaints, no_source_fails, used,
};

/// What the board has.
const CAPACITY: u64 = 12 << 30;

/// Metrics that no program has.
pub(crate) fn metrics() -> Vec<MetricSample> {
    let sample = |name: String, labels: Vec<(String, String)>, value| MetricSample {
        name,
        help: String::new(),
        unit: String::new(),
        labels,
        value,
    };
    let histogram = |bounds: &[f64], counts: &[u64], sum| MetricValue::Histogram {
        bounds: bounds.to_vec(),
        counts: counts.to_vec(),
        sum,
    };
    let odd = [
        MetricValue::Gauge(f64::NAN),
        MetricValue::Gauge(f64::INFINITY),
        MetricValue::Gauge(f64::NEG_INFINITY),
        MetricValue::Gauge(f64::MAX),
        MetricValue::Gauge(-0.0),
        MetricValue::Gauge(5e-324),
        MetricValue::Counter(u64::MAX),
        histogram(&[1.0, 2.0], &[u64::MAX, u64::MAX, u64::MAX], f64::NAN),
    ];
    let odd = (0..).zip(odd).map(|(number, value)| sample(format!("odd_{number}"), vec![], value));
    // As many as an answer may have, each with many labels.
    let many = (0..2000).map(|number: u32| {
        let labels = (0..8).map(|label| (format!("label_{label}"), format!("{number}-{label}")));
        sample(format!("many_{}", number % 500), labels.collect(), MetricValue::Gauge(1.0))
    });
    odd.chain(many).collect()
}

#[test]
fn memory_that_the_device_does_not_have_is_in_no_sum() {
    let Some(fixture) = Fixture::set("memory_that_the_device_does_not_have_is_in_no_sum") else {
        return;
    };
    // All of it and a byte; so much that sums would wrap; numbers that have gone below zero.
    for bytes in [CAPACITY + 1, 1 << 47, 1 << 63, u64::MAX] {
        for role in ["ledger", "endpoint"] {
            let mut liar = fixture.mallory(json!({ "role": role, "bytes": bytes }));
            let pid = liar.id();
            liar.says();
            wait_until("the claim to be refused", TIMEOUT, || {
                let whole = fixture.whole();
                let shown = whole.processes.iter().any(|one| one.pid == Some(pid));
                no_source_fails(&whole);
                let whys = ["of DRAM where there are", "that no process can have counted"];
                let is_why = |text: &String| whys.iter().any(|why| text.contains(why));
                shown && complaints(&whole).iter().any(is_why)
            });
            fixture.still_serves();
            liar.kill();
            clear(&fixture);
        }
    }
    fixture.metric_reaches("telltale_source_notes_total", &[("source", "processes")], 8.0);
    // What could be true is believed: no more than all of it.
    let mut greedy = fixture.mallory(json!({ "role": "ledger", "bytes": CAPACITY }));
    greedy.says();
    // Together they have more than there is: the sum says so, and each part says whose it is.
    fixture.serves_beside(CAPACITY);
    greedy.kill();
    clear(&fixture);
    fixture.still_serves();
}

/// Removes what Mallory's ended processes left.
fn clear(fixture: &Fixture) {
    use std::os::unix::fs::MetadataExt;
    for entry in std::fs::read_dir(&fixture.stage.run).unwrap().flatten() {
        if entry.metadata().is_ok_and(|found| found.uid() == MALLORY) {
            std::fs::remove_file(entry.path()).unwrap();
        }
    }
}

#[test]
fn a_capacity_that_the_board_does_not_have_is_not_believed() {
    let Some(fixture) = Fixture::set("a_capacity_that_the_board_does_not_have") else { return };
    for capacity in [1, 4096, CAPACITY / 4, CAPACITY * 2, u64::MAX] {
        let part = json!({ "role": "ledger", "bytes": 0, "capacity": capacity });
        let mut liar = fixture.mallory(part);
        liar.says();
        let pid = liar.id();
        wait_until("him to be shown", TIMEOUT, || {
            fixture.whole().processes.iter().any(|one| one.pid == Some(pid))
        });
        let whole = fixture.whole();
        let space = whole.devices[0].space(MemorySpace::Dram).unwrap();
        assert_eq!(space.capacity_bytes.value(), Some(&CAPACITY), "{capacity}");
        liar.kill();
        clear(&fixture);
    }
    fixture.still_serves();
}

#[test]
fn devices_that_one_user_invents_are_few_and_push_nobody_out() {
    let Some(fixture) = Fixture::set("devices_that_one_user_invents_are_few") else { return };
    let mut liars: Vec<_> = (0..12)
        .map(|_| {
            fixture.mallory(json!({ "role": "ledger", "bytes": 1, "invented": 60, "chips": [] }))
        })
        .collect();
    let pids: Vec<u32> = liars.iter().map(crate::attacks::actor::Actor::id).collect();
    liars.iter_mut().for_each(|one| drop(one.says()));
    wait_until("all of them to be read", TIMEOUT, || {
        let whole = fixture.whole();
        pids.iter().all(|pid| whole.processes.iter().any(|one| one.pid == Some(*pid)))
    });
    let devices = fixture.whole().devices.len();
    assert!((2..=1 + 64).contains(&devices), "{devices}");
    assert!(complaints(&fixture.whole()).iter().any(|text| text.contains("names more devices")));
    fixture.metric_reaches("telltale_source_notes_total", &[("source", "processes")], 1.0);
    fixture.still_serves();
}

#[test]
fn metrics_without_sense_or_number_are_bounded_and_counted() {
    let Some(fixture) = Fixture::set("metrics_without_sense_or_number_are_bounded") else { return };
    let mut liar =
        fixture.mallory(json!({ "role": "endpoint", "bytes": 0, "metrics": "poisoned" }));
    liar.says();
    fixture.metric_reaches("telltale_series_dropped_total", &[("reason", "application")], 1.0);
    let text = fixture.get_all("/metrics").body;
    let families = parse(&text, false).unwrap();
    let user = MALLORY.to_string();
    let his = families.iter().flat_map(|family| &family.samples);
    let his = his.filter(|one| one.name.starts_with("telltale_application_"));
    let his = his.filter(|one| one.labels.get("user") == Some(&user)).count();
    assert!((1..=200).contains(&his), "{his} series of one process");
    let open = "Accept: application/openmetrics-text;version=1.0.0";
    let token = format!("Authorization: Bearer {}", crate::attacks::fixture::TOKEN);
    let open =
        crate::attacks::asking::get(fixture.service.http.unwrap(), "/metrics", &[open, &token]);
    parse(&open.body, true).unwrap();
    match promtool(&text) {
        None => skip("attacks::metrics_without_sense_or_number", "there is no promtool"),
        Some(said) => assert_eq!(said, ""),
    }
    assert!(text.contains("project=\"adas-project\""), "hers are there");
    let json = fixture.get_all("/api/v1/snapshot").body;
    serde_json::from_str::<serde_json::Value>(&json).unwrap();
    fixture.still_serves();
    assert_eq!(used(&fixture.whole()), Some(ADAS_BYTES));
}
