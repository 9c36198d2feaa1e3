//! The biggest holders of devices, each with its pid.

use std::collections::BTreeMap;

use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::{HeldUsage, Process, ProcessState};

use super::fixture::{NOW, device, process, snapshot};
use super::{OTHER, SampleOptions, crowd, families, values};

const LIVE: &str = "telltale_holder_memory_live_bytes";
const PEAK: &str = "telltale_holder_memory_peak_bytes";
const START: &str = "telltale_holder_start_time_seconds";

fn at_most(holders_per_device: usize) -> SampleOptions {
    SampleOptions { holders_per_device, ..SampleOptions::default() }
}

fn expected(values: &[(&str, f64)]) -> BTreeMap<String, f64> {
    values.iter().map(|(key, value)| ((*key).to_owned(), *value)).collect()
}

/// Without pid, as one in another PID namespace is seen.
fn hidden(pid: u32, live_bytes: u64) -> Process {
    let mut process = process(pid, "train", "ada", live_bytes);
    process.pid = None;
    process.state = ProcessState::Hidden;
    process
}

#[test]
fn processes_that_are_alike_are_holders_of_their_own() {
    let twins = (1..=5).map(|pid| process(pid, "train", "ada", 100 * u64::from(pid)));
    let machine = snapshot(vec![device(1)], twins.collect());
    let families = families(&machine, SampleOptions::default());
    let live = values(&families, LIVE, &["process", "user", "pid", "device", "space"]);
    let of = |pid: u32| (format!("train/ada/{pid}/1001/dram"), 100.0 * f64::from(pid));
    assert_eq!(live, (1..=5).map(of).collect());
    assert_eq!(values(&families, PEAK, &["pid"])["3"], 301.0);
    let now = (NOW.0 / 1_000_000_000) as f64;
    assert_eq!(values(&families, START, &["pid"])["3"], now - 3.0, "it has recorded for 3 s");
    // The row that they share elsewhere is as it was.
    assert_eq!(values(&families, "telltale_process_memory_live_bytes", &["pid"])[""], 1500.0);
}

#[test]
fn each_device_has_so_many_and_sums_stay_exact() {
    let mut all = crowd(30);
    // A second device, where a process that is small on the first is the only one.
    let mut elsewhere = all[0].devices[0].clone();
    elsewhere.device = 1;
    all[0].devices.push(elsewhere);
    let machine = snapshot(vec![device(1), device(2)], all);
    for most in [1, 7, 29, 30, 100] {
        let families = families(&machine, at_most(most));
        let live = values(&families, LIVE, &["device", "process", "pid"]);
        let on_first: BTreeMap<&str, f64> = live
            .iter()
            .filter_map(|(key, bytes)| Some((key.strip_prefix("1001/")?, *bytes)))
            .collect();
        assert_eq!(on_first.values().sum::<f64>(), 1000.0 * 465.0, "{most}");
        assert_eq!(on_first.len(), most.min(30) + usize::from(most < 30));
        assert_eq!(on_first.contains_key(format!("{OTHER}/").as_str()), most < 30);
        assert!(
            (0..most.min(30)).all(|rank| on_first.contains_key(&*format!("p{0}/{0}", 30 - rank)))
        );
        assert_eq!(live["1002/p1/1"], 1000.0);
        let peaks = values(&families, PEAK, &["device", "process"]);
        assert_eq!(peaks.len(), most.min(30) + 1, "others have none");
        let starts = values(&families, START, &["process", "pid"]);
        assert_eq!(starts.len(), (most + 1).min(30));
    }
}

#[test]
fn none_is_a_number_too() {
    let machine = snapshot(vec![device(1)], crowd(3));
    let families = families(&machine, at_most(0));
    assert!(families.iter().all(|family| !family.name.starts_with("telltale_holder")));
}

#[test]
fn the_dead_hold_nothing_and_the_hidden_are_added_up() {
    let mut dead = process(1, "old", "ada", 5000);
    dead.state = ProcessState::Dead;
    let (mut one, other) = (hidden(2, 200), hidden(3, 300));
    one.devices[0].kinds[0].usage = HeldUsage::BytesOnly { live_bytes: 200 };
    let mut silent = process(4, "silent", "ada", 50);
    silent.uptime_seconds = Reading::absent(Absence::Unknown, "");
    let machine = snapshot(vec![device(1)], vec![dead, one, other, silent]);
    let families = families(&machine, SampleOptions::default());
    let live = values(&families, LIVE, &["process", "pid"]);
    assert_eq!(live, expected(&[("train/", 500.0), ("silent/4", 50.0)]));
    // One of the hidden has no peak: their sum has none.
    assert_eq!(values(&families, PEAK, &["process"]), expected(&[("silent", 51.0)]));
    let starts = values(&families, START, &["process"]);
    let now = (NOW.0 / 1_000_000_000) as f64;
    assert_eq!(starts, expected(&[("train", now - 3.0)]), "the earliest");
}
