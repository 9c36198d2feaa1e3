//! What is made of snapshots, read back from the text.

pub(crate) mod fixture;
mod holders;

use std::collections::BTreeMap;
use std::sync::Arc;

use telltale_harness::exposition::{ParsedFamily, parse, promtool};
use telltale_harness::skip;
use telltale_schema::metric::DEFINITIONS;
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::{
    HeldUsage, MetricValue, Process, ProcessState, Snapshot, Telemetry,
};
use telltale_wire::exposition::Format;

use super::{APPLICATION_PREFIX, Dropped, OTHER, SampleOptions, Sampler, Writing};
use fixture::{device, everything, http, metric, process, published, snapshot};

/// What a sampler makes, in the text of 0.0.4, after both texts were read strictly.
fn text(sampler: &mut Sampler, snapshot: &Arc<Snapshot>) -> (String, Dropped) {
    let published = published(1, Arc::clone(snapshot));
    let samples = sampler.sample(&published, snapshot, Some(&http()));
    let mut text = String::new();
    samples.encode(Format::OpenMetrics, &mut text);
    parse(&text, true).unwrap_or_else(|reason| panic!("{reason}\n{text}"));
    samples.encode(Format::Text, &mut text);
    (text, samples.dropped())
}

#[test]
fn parts_of_any_size_come_to_the_same_text() {
    let published = published(1, everything());
    let mut sampler = Sampler::default();
    let samples = sampler.sample(&published, &published.snapshot, Some(&http()));
    for format in Format::ALL {
        let (mut whole, mut part) = (String::new(), String::new());
        samples.encode(format, &mut whole);
        for enough in [1, 100, 4096] {
            let (mut together, mut parts) = (String::new(), 0);
            let mut writing = Writing::new(&samples, format);
            loop {
                let more = writing.next_part(enough, &mut part);
                (together, parts) = (together + &part, parts + 1);
                if !more {
                    break;
                }
            }
            assert_eq!(together, whole, "{enough}");
            assert!(parts > 1, "{enough}");
            assert!(!writing.next_part(1, &mut part) && part.is_empty(), "it is over once");
        }
    }
}

fn families(snapshot: &Arc<Snapshot>, options: SampleOptions) -> Vec<ParsedFamily> {
    let (text, _) = text(&mut Sampler::new(options), snapshot);
    parse(&text, false).unwrap_or_else(|reason| panic!("{reason}\n{text}"))
}

/// The values of one metric by the values of these labels.
fn values(families: &[ParsedFamily], name: &str, labels: &[&str]) -> BTreeMap<String, f64> {
    let Some(family) = families.iter().find(|family| family.name == name) else {
        return BTreeMap::new();
    };
    let key = |sample: &telltale_harness::exposition::ParsedSample| {
        let value = |label: &&str| sample.labels.get(*label).cloned().unwrap_or_default();
        labels.iter().map(value).collect::<Vec<_>>().join("/")
    };
    family.samples.iter().map(|sample| (key(sample), sample.value)).collect()
}

fn small(process_series: usize) -> SampleOptions {
    SampleOptions { process_series, ..SampleOptions::default() }
}

#[test]
fn every_definition_is_reported_and_nothing_else() {
    let pids = SampleOptions { process_pids: true, ..SampleOptions::default() };
    let families = families(&everything(), pids);
    let reported: Vec<&str> = families
        .iter()
        .map(|family| family.name.as_str())
        .filter(|name| !name.starts_with(APPLICATION_PREFIX))
        .collect();
    let defined: Vec<&str> = DEFINITIONS.iter().map(|definition| definition.name).collect();
    assert_eq!(reported, defined);
    for definition in DEFINITIONS {
        let family = families.iter().find(|family| family.name == definition.name).unwrap();
        assert_eq!(family.help, definition.help);
        for label in family.samples.iter().flat_map(|sample| sample.labels.keys()) {
            let known = definition.labels.contains(&label.as_str()) || label == "pid";
            assert!(known, "{} has the label {label}", definition.name);
        }
    }
}

#[test]
fn promtool_has_nothing_to_say() {
    let (text, dropped) = text(&mut Sampler::default(), &everything());
    // What a runtime may not tell: the metrics of the snapshot's own fields.
    assert_eq!(dropped, Dropped { malformed: 18, ..Dropped::default() });
    match promtool(&text) {
        None => skip("samples::promtool_has_nothing_to_say", "there is no promtool"),
        Some(said) => assert_eq!(said, "", "{text}"),
    }
}

#[test]
fn values_are_in_base_units_with_their_labels() {
    let (text, _) = text(&mut Sampler::default(), &everything());
    let rows = format!("process=\"serve\",user=\"bob\",container_id=\"{}\"", "c".repeat(64));
    for line in [
        "telltale_device_temperature_celsius{device=\"1001\",sensor=\"asic\"} 48.5",
        "telltale_device_clock_hertz{device=\"1001\",clock=\"ai\"} 1000000000",
        "telltale_device_memory_capacity_bytes{device=\"1001\",space=\"dram\"} 12884901888",
        "telltale_device_pcie_received_bytes_total{device=\"1001\",noc=\"1\"} 96",
        "telltale_device_processes{device=\"1001\"} 2",
        "telltale_source_up{source=\"endpoints\"} 0",
        "telltale_source_errors_total{source=\"endpoints\"} 12",
        "telltale_queue_dropped_total{queue=\"stream\"} 4",
        "telltale_collection_duration_seconds 0.002",
        &format!(
            "telltale_process_memory_live_bytes{{{rows},pod_uid=\"0b5e-1\",device=\"1001\",kind=\"dram\"}} 400"
        ),
        &format!(
            "telltale_process_pod_info{{{rows},pod_uid=\"0b5e-1\",pod_namespace=\"research\",pod_name=\"gpt-0\"}} 1"
        ),
        "telltale_application_steps_total{process=\"train\",user=\"ada\",phase=\"warm \\\"up\\\"\\n\"} 3",
    ] {
        assert!(text.lines().any(|it| it == line), "{line} is not in\n{text}");
    }
    for absent in ["--secret", "telltale_process_info", "instance", "NaN"] {
        assert!(!text.contains(absent), "{absent} is in\n{text}");
    }
    let with_pid = text.lines().filter(|line| line.contains(",pid="));
    assert_eq!(with_pid.filter(|line| !line.starts_with("telltale_holder_")).count(), 0, "{text}");
}

#[test]
fn what_is_not_known_is_not_there() {
    let mut silent = device(1);
    silent.telemetry = Telemetry::absent(Absence::Resetting, "");
    silent.holders = Reading::absent(Absence::Unsupported, "");
    silent.kinds.clear();
    silent.spaces.clear();
    let families = families(&snapshot(vec![silent], Vec::new()), SampleOptions::default());
    let reported: Vec<&str> = families
        .iter()
        .map(|family| family.name.as_str())
        .filter(|name| name.starts_with("telltale_device") || name.starts_with("telltale_process"))
        .collect();
    let known = ["telltale_device_health", "telltale_device_info", "telltale_device_up"];
    assert_eq!(reported, known);
    assert_eq!(values(&families, "telltale_device_up", &["device"])["1001"], 0.0);
    let health = values(&families, "telltale_device_health", &["state"]);
    assert_eq!(health.into_iter().filter(|(_, value)| *value == 1.0).count(), 1);
}

#[test]
fn processes_that_are_alike_are_one_row_and_bytes_alone_hide_no_bytes() {
    let mut other = process(8, "train", "ada", 200);
    other.devices[0].kinds[0].usage = HeldUsage::BytesOnly { live_bytes: 200 };
    let mut dead = process(9, "train", "ada", 5000);
    dead.state = ProcessState::Dead;
    let machine = snapshot(vec![device(1)], vec![process(7, "train", "ada", 500), other, dead]);
    let families = families(&machine, SampleOptions::default());
    let live = values(&families, "telltale_process_memory_live_bytes", &["process", "kind"]);
    assert_eq!(live, BTreeMap::from([("train/dram".to_owned(), 700.0)]));
    // One of the two does not say how many buffers it has.
    assert_eq!(values(&families, "telltale_process_memory_buffers", &["process"]).len(), 0);
    let states = values(&families, "telltale_processes", &["state"]);
    assert_eq!(states, BTreeMap::from([("alive".to_owned(), 2.0), ("dead".to_owned(), 1.0)]));
    let uptime = values(&families, "telltale_process_uptime_seconds", &["process"]);
    assert_eq!(uptime["train"], 8.0, "the longest");
}

/// Many processes, each with a name of its own.
fn crowd(count: u32) -> Vec<Process> {
    let mut all: Vec<Process> = (1..=count)
        .map(|pid| process(pid, &format!("p{pid}"), "ada", 1000 * u64::from(pid)))
        .collect();
    for process in &mut all {
        process.metrics = [metric("steps", &[], MetricValue::Counter(1))].into();
    }
    all
}

#[test]
fn series_are_bounded_and_sums_stay_exact() {
    let machine = snapshot(vec![device(1)], crowd(100));
    let of_one = 6 + 7;
    for rows in [0, 1, 10, 99, 100] {
        let mut sampler = Sampler::new(small(rows * of_one));
        let (text, dropped) = text(&mut sampler, &machine);
        let families = parse(&text, false).unwrap();
        let live = values(&families, "telltale_process_memory_live_bytes", &["process"]);
        assert_eq!(live.values().sum::<f64>(), 1000.0 * 5050.0);
        let more = usize::from(rows < 100);
        assert_eq!(live.len(), rows + more);
        assert_eq!(live.contains_key(OTHER), rows < 100);
        // Those with most memory are shown.
        assert!((0..rows).all(|rank| live.contains_key(&format!("p{}", 100 - rank))));
        assert_eq!(dropped.process, ((100 - rows) * of_one) as u64);
        assert_eq!(dropped.application, 100 - rows as u64);
        let count = values(&families, "telltale_processes", &["process"]);
        assert_eq!(count.values().sum::<f64>(), 100.0);
    }
}

#[test]
fn a_counter_never_goes_down_while_its_row_is_there() {
    let name = "telltale_process_memory_allocations_total";
    let mut sampler = Sampler::new(small(13 * 2));
    let mut allocations = |processes: Vec<Process>| {
        let (text, _) = text(&mut sampler, &snapshot(vec![device(1)], processes));
        values(&parse(&text, false).unwrap(), name, &["process"])
    };
    let row = |name: &str, count: f64| (name.to_owned(), count);
    let one = |pid, name: &str, bytes| process(pid, name, "ada", bytes);
    // Two of one row, and two that share the row of the others.
    let start = vec![one(1, "a", 900), one(2, "a", 900), one(3, "b", 20), one(4, "c", 10)];
    assert_eq!(allocations(start), BTreeMap::from([row("a", 20.0), row(OTHER, 20.0)]));
    // One of the row ends; one of the others grows and gets a row, where its own count begins.
    let next = vec![one(2, "a", 900), one(3, "b", 2000), one(4, "c", 10)];
    let expected = BTreeMap::from([row("a", 20.0), row("b", 10.0), row(OTHER, 20.0)]);
    assert_eq!(allocations(next), expected);
    // It shrinks: what it did in its own row is not counted once more.
    let next = vec![one(2, "a", 900), one(5, "a", 1), one(3, "b", 5), one(4, "c", 50)];
    assert_eq!(allocations(next)[OTHER], 20.0);
    // The row of the others goes on by what is new.
    let mut busy = one(4, "c", 10);
    let HeldUsage::Recorded(usage) = &mut busy.devices[0].kinds[0].usage else { panic!() };
    usage.allocations += 7;
    let next = vec![one(2, "a", 900), one(5, "a", 1), one(3, "b", 5), busy];
    let now = allocations(next);
    assert_eq!((now["a"], now[OTHER]), (30.0, 27.0));
    // All of a row end: it restarts with the next process of its kind.
    assert!(!allocations(vec![one(4, "c", 10)]).contains_key("a"));
    assert_eq!(allocations(vec![one(6, "a", 900), one(4, "c", 10)])["a"], 10.0);
}

#[test]
fn a_histogram_never_goes_down_while_its_row_is_there() {
    let with = |pid, name: &str, bounds: &[f64], counts: &[u64], sum| {
        let mut process = process(pid, name, "ada", 1);
        let (bounds, counts) = (bounds.to_vec(), counts.to_vec());
        process.metrics =
            [metric("wait", &[], MetricValue::Histogram { bounds, counts, sum })].into();
        process
    };
    let one = |pid, counts: &[u64], sum| with(pid, "train", &[1.0], counts, sum);
    let mut sampler = Sampler::default();
    // Both buckets, sum, count.
    let mut wait = |processes: Vec<Process>| -> Vec<f64> {
        let (text, _) = text(&mut sampler, &snapshot(vec![device(1)], processes));
        let families = parse(&text, false).unwrap();
        let found = families.iter().find(|family| family.name.ends_with("wait"));
        found.into_iter().flat_map(|it| &it.samples).map(|sample| sample.value).collect()
    };
    let both = vec![one(1, &[60, 40], 0.1), one(2, &[30, 70], 0.2)];
    let together = wait(both);
    assert_eq!(together[..2], [90.0, 200.0]);
    // One ends; another comes; its own observations are counted on top.
    assert_eq!(wait(vec![one(2, &[30, 70], 0.2)]), together);
    let next = wait(vec![one(2, &[31, 70], 0.2), one(3, &[1, 1], 1.0)]);
    assert_eq!((next[0], next[1], next[3]), (92.0, 203.0, 203.0));
    // All that observed anything end, the row goes on, and so does what comes back into it.
    let idle = || process(4, "train", "ada", 1);
    assert!(wait(vec![idle()]).is_empty());
    assert_eq!(wait(vec![idle(), one(5, &[1, 0], 1.0)])[..2], [93.0, 204.0]);
    // Other buckets cannot be added.
    assert_eq!(wait(vec![idle(), with(6, "train", &[2.0], &[1, 0], 1.0)])[1], 1.0);
    assert!(wait(Vec::new()).is_empty());
}

#[test]
fn what_one_process_says_twice_is_one_series() {
    let mut one = process(1, "train", "ada", 1);
    let twice = metric("steps", &[("phase", "a")], MetricValue::Counter(2));
    let ours =
        metric("telltale_process_operations_total", &[("device", "1001")], MetricValue::Counter(5));
    one.metrics = [twice.clone(), ours.clone(), twice, ours].into();
    let families = families(&snapshot(vec![device(1)], vec![one]), SampleOptions::default());
    for (name, expected) in
        [("telltale_application_steps_total", 4.0), ("telltale_process_operations_total", 10.0)]
    {
        assert_eq!(values(&families, name, &["process"])["train"], expected);
    }
}

#[test]
fn a_hostile_process_steers_no_series_but_its_own() {
    let mut hostile = process(7, "x\",user=\"root\"} 1\n# EOF", "eve", 1);
    let histogram =
        |bounds: Vec<f64>, counts| MetricValue::Histogram { bounds, counts, sum: f64::NAN };
    let mut reported = vec![
        // Ours, which it may not tell, or not so.
        metric("telltale_device_up", &[("device", "1001")], MetricValue::Gauge(0.0)),
        metric("telltale_process_memory_live_bytes", &[], MetricValue::Gauge(1e18)),
        metric(
            "telltale_process_operations_total",
            &[("device", "other")],
            MetricValue::Counter(1),
        ),
        metric("telltale_process_throttled", &[("device", "1001")], MetricValue::Gauge(f64::NAN)),
        metric("telltale_problems_total", &[("step", "A b\"")], MetricValue::Counter(1)),
        metric("telltale_application_steps_total", &[], MetricValue::Counter(1)),
        metric("telltale_no_such_thing", &[], MetricValue::Counter(1)),
        // Names and labels that cannot be.
        metric("up{}\nup", &[], MetricValue::Gauge(1.0)),
        metric("", &[], MetricValue::Gauge(1.0)),
        metric("good", &[("__name__", "up")], MetricValue::Gauge(1.0)),
        metric("good", &[("a", "1"), ("a", "2")], MetricValue::Gauge(1.0)),
        metric("good", &[("b}", "1")], MetricValue::Gauge(1.0)),
        // Names that another family's lines have.
        metric("wait", &[], histogram(vec![1.0], vec![1, 1])),
        metric("wait_count", &[], MetricValue::Gauge(1.0)),
        metric("steps", &[], MetricValue::Counter(1)),
        metric("steps_created", &[], MetricValue::Gauge(1.0)),
        metric("steps_total", &[], MetricValue::Counter(2)),
    ];
    reported.push(metric(
        "kept",
        &[("user", "root"), ("pid", "1"), ("le", "2"), ("text", "\u{202e}\"\\\0")],
        MetricValue::Gauge(f64::INFINITY),
    ));
    hostile.metrics = reported.into();
    let machine = snapshot(vec![device(1)], vec![hostile]);
    let (text, dropped) = text(&mut Sampler::default(), &machine);
    let families = parse(&text, false).unwrap_or_else(|reason| panic!("{reason}\n{text}"));
    assert_eq!(dropped.malformed, 15);
    let own: Vec<&str> =
        families.iter().filter_map(|family| family.name.strip_prefix(APPLICATION_PREFIX)).collect();
    assert_eq!(own, ["kept", "steps_total", "wait"]);
    let kept = families.iter().find(|family| family.name.ends_with("kept")).unwrap();
    let labels = &kept.samples[0].labels;
    assert_eq!(labels["user"], "eve");
    assert_eq!(labels["process"], "x\",user=\"root\"} 1\n# EOF");
    assert_eq!(labels["application_user"], "root");
    assert_eq!(labels["application_le"], "2");
    assert_eq!(labels["text"], "\u{202e}\"\\\u{fffd}");
    let live = values(&families, "telltale_process_memory_live_bytes", &["user"]);
    assert_eq!(live, BTreeMap::from([("eve".to_owned(), 1.0)]));
    assert_eq!(values(&families, "telltale_device_up", &["device"])["1001"], 1.0);
}

#[test]
fn what_processes_register_is_bounded() {
    let greedy = |pid: u32| {
        let mut process = process(pid, &format!("p{pid}"), "ada", 1);
        let value = |place: usize| MetricValue::Counter(place as u64);
        let label = |place: usize| place.to_string();
        process.metrics =
            (0..300).map(|place| metric("n", &[("k", &label(place))], value(place))).collect();
        process
    };
    let machine = snapshot(vec![device(1)], (1..=20).map(greedy).collect());
    let (text, dropped) = text(&mut Sampler::default(), &machine);
    let series = text.lines().filter(|line| line.starts_with("telltale_application_n_total{"));
    assert_eq!(series.count(), SampleOptions::default().application_series);
    assert_eq!(dropped.application, 20 * 300 - 2000);
}

/// A process that registers counters of these names, each with its pid as the value.
fn registering(pid: u32, name: &str, live_bytes: u64, counters: &[String]) -> Process {
    let mut process = process(pid, name, "ada", live_bytes);
    let counter = |name: &String| metric(name, &[], MetricValue::Counter(pid.into()));
    process.metrics = counters.iter().map(counter).collect();
    process
}

#[test]
fn what_finds_room_depends_on_nobodys_memory() {
    let options = SampleOptions { application_series: 25, ..SampleOptions::default() };
    let mut sampler = Sampler::new(options);
    let counters: Vec<String> = (0..10).map(|number| format!("n{number}")).collect();
    let mut shown = |bytes: [u64; 3]| {
        let mut processes = Vec::new();
        for (pid, (name, bytes)) in (1..).zip(["a", "b", "c"].into_iter().zip(bytes)) {
            processes.push(registering(pid, name, bytes, &counters));
            processes.push(registering(pid + 10, name, bytes, &counters));
        }
        let (text, dropped) = text(&mut sampler, &snapshot(vec![device(1)], processes));
        let lines = text.lines().filter(|line| line.starts_with(APPLICATION_PREFIX));
        (lines.map(str::to_owned).collect::<Vec<_>>(), dropped.application)
    };
    let (before, dropped) = shown([1, 2, 3]);
    assert_eq!((before.len(), dropped), (25, 10));
    // Each line is of both processes of its row.
    let sums = [(10, "\"a\"", " 12"), (10, "\"b\"", " 14"), (5, "\"c\"", " 16")];
    for (count, row, sum) in sums {
        let of_row = before.iter().filter(|line| line.contains(row));
        assert_eq!(of_row.filter(|line| line.ends_with(sum)).count(), count, "{before:?}");
    }
    for bytes in [[3, 2, 1], [1, 9, 1], [0, 0, 0], [5, 0, 7]] {
        assert_eq!(shown(bytes), (before.clone(), dropped), "{bytes:?}");
    }
}

#[test]
fn a_series_beyond_the_limit_is_shown_with_none_of_its_processes() {
    let options = SampleOptions { application_series_per_process: 2, ..SampleOptions::default() };
    let mut sampler = Sampler::new(options);
    let mut shown = |processes: Vec<Process>| {
        let (text, _) = text(&mut sampler, &snapshot(vec![device(1)], processes));
        let lines = text.lines().filter_map(|line| line.strip_prefix(APPLICATION_PREFIX));
        lines.filter(|line| line.starts_with("last")).map(str::to_owned).collect::<Vec<_>>()
    };
    let all = ["a", "b", "c", "d", "last"].map(str::to_owned);
    let one = |pid, counters: &[String]| registering(pid, "train", 1, counters);
    let (few, many) = (&all[4..], &all[..]);
    let both = "last_total{process=\"train\",user=\"ada\"} 3";
    assert_eq!(shown(vec![one(1, few), one(2, few)]), [both]);
    assert!(shown(vec![one(1, few), one(2, many)]).is_empty());
    // What those had who ended is not shown alone either.
    assert!(shown(vec![one(2, many)]).is_empty());
    assert_eq!(shown(vec![one(2, few)]), [both]);
}

#[test]
fn registered_counters_and_histograms_of_one_row_add_up() {
    let with = |pid, bounds: &[f64], counts: &[u64]| {
        let mut process = process(pid, "train", "ada", 1);
        let (bounds, counts) = (bounds.to_vec(), counts.to_vec());
        process.metrics = [
            metric("steps", &[], MetricValue::Counter(2)),
            metric("wait", &[], MetricValue::Histogram { bounds, counts, sum: 1.5 }),
        ]
        .into();
        process
    };
    let alike = vec![with(1, &[1.0], &[1, 2]), with(2, &[1.0], &[10, 20])];
    let families = families(&snapshot(vec![device(1)], alike), SampleOptions::default());
    let steps = values(&families, "telltale_application_steps_total", &["process"]);
    assert_eq!(steps["train"], 4.0);
    let wait = families.iter().find(|family| family.name.ends_with("wait")).unwrap();
    let lines: Vec<f64> = wait.samples.iter().map(|sample| sample.value).collect();
    assert_eq!(lines, [11.0, 33.0, 3.0, 33.0]);
    let differ = vec![with(1, &[1.0], &[1, 2]), with(2, &[2.0], &[10, 20])];
    let families = self::families(&snapshot(vec![device(1)], differ), SampleOptions::default());
    assert!(families.iter().all(|family| !family.name.ends_with("wait")));
}

#[test]
fn the_row_of_the_others_has_no_names_of_pods() {
    let pids = SampleOptions { process_pids: true, ..small(0) };
    let families = families(&everything(), pids);
    for name in ["telltale_process_pod_info", "telltale_process_info"] {
        assert_eq!(values(&families, name, &["process"]), BTreeMap::new(), "{name}");
    }
    assert_eq!(values(&families, "telltale_processes", &["process"])[OTHER], 2.0);
}
