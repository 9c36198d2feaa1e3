//! What was seen is found again: series, the machine at a moment, and what became of a process.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use telltale_harness::rounds;
use telltale_node::access::Visibility;
use telltale_node::history::{HistoryOptions, HistoryReader, ReadHistoryError};
use telltale_schema::history::{Ending, HistoryQuery, Subjects};
use telltale_schema::memory::MemoryKind;
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::{Accounting, ProcessState};

use crate::history::machine::{Kept, after, device, identity, process, series};

#[test]
fn a_minute_is_found_again_second_by_second() {
    let mut kept = Kept::new();
    for second in 0..60 {
        let celsius = (second != 30).then_some(40.0 + second as f64);
        let job = process(11, second << 20, &[0]);
        kept.see(&[device(0, second << 20, celsius)], &[job]);
        kept.settle();
    }
    kept.stop();
    let query = HistoryQuery { step_ms: Some(1_000), ..HistoryQuery::over(after(0), after(59)) };
    let answer = kept.query(&query);
    assert_eq!((answer.from, answer.points, answer.series_left_out), (after(0), 60, 0));
    let heat = series(&answer, "temperature", "asic");
    let expected: Vec<_> =
        (0..60).map(|second| (second != 30).then_some(40.0 + f64::from(second))).collect();
    assert_eq!((&heat.mean, &heat.least, &heat.greatest), (&expected, &expected, &expected));
    assert_eq!(heat.absent[29..32], [None, Some(Absence::TimedOut), None]);
    let live = series(&answer, "process_memory_live_bytes", "dram");
    assert_eq!(live.process.as_ref().map(|process| process.identity), Some(identity(11)));
    assert_eq!(live.mean[59], Some(f64::from(59 << 20)));
    assert!(answer.series.iter().all(|one| one.unit != "ratio"));

    let ten = HistoryQuery { step_ms: Some(10_000), ..query };
    let answer = kept.query(&ten);
    let heat = series(&answer, "temperature", "asic");
    assert_eq!(heat.greatest[..2], [Some(49.0), Some(59.0)]);
    assert_eq!(heat.mean[..2], [Some(44.5), Some(54.5)]);
    assert_eq!(heat.least[3], Some(71.0), "absent values are not counted");
}

#[test]
fn the_machine_is_as_it_was_and_what_is_not_kept_reports_it() {
    let mut kept = Kept::new();
    let devices = [device(0, 700, Some(36.5)), device(1, 0, None)];
    let mut job = process(11, 700, &[0]);
    job.faults.double_frees = 3;
    job.uptime_seconds = Reading::new(5.0, after(0));
    kept.see_for(30, &devices, &[job.clone()]);
    kept.see_for(5, &[device(0, 1, Some(30.0)), device(1, 0, None)], &[]);
    kept.stop();
    let past = kept.reader().snapshot_at(after(20)).unwrap();
    assert_eq!((past.snapshot.taken_at, past.resolution_ms), (after(20), 0));
    let [first, second] = &past.snapshot.devices[..] else { panic!("{past:?}") };
    assert_eq!((&first.id, &first.identity), (&devices[0].id, &devices[0].identity));
    assert_eq!(first.facts, devices[0].facts);
    assert_eq!(first.telemetry.temperature_celsius.value(), Some(&36.5));
    assert_eq!(first.telemetry.firmware, devices[0].telemetry.firmware);
    assert_eq!(first.kinds, devices[0].kinds);
    let lost = first.telemetry.heartbeat_total.absence().map(|(reason, _)| reason);
    assert_eq!(lost, Some(Absence::NotKept));
    let hot = second.telemetry.temperature_celsius.absence().map(|(reason, _)| reason);
    assert_eq!(hot, Some(Absence::TimedOut));
    let [found] = &past.snapshot.processes[..] else { panic!("{past:?}") };
    assert_eq!((found.identity, found.pid, &found.name), (job.identity, job.pid, &job.name));
    assert_eq!((found.command.value(), found.uid.value()), (job.command.value(), job.uid.value()));
    assert_eq!(found.user.absence().map(|(reason, _)| reason), Some(Absence::Unknown));
    assert_eq!((found.state, found.faults), (ProcessState::Alive, job.faults));
    assert!(found.uptime_seconds.value().is_some_and(|up| (24.9..25.1).contains(up)));
    let held = &found.devices[0];
    assert_eq!((held.accounting, held.live_buffers), (Accounting::Recorded, Some(1)));
    assert_eq!(held.spaces[0].live_bytes, 700);

    let later = kept.reader().snapshot_at(after(33)).unwrap().snapshot;
    assert!(later.processes.is_empty());
    assert_eq!(later.devices[0].kinds[0].total_bytes, 1);
    let newest = kept.reader().snapshot_at(after(9_999)).unwrap().snapshot;
    assert_eq!(newest.taken_at, after(34), "the last moment there is");
    let before = kept
        .reader()
        .snapshot_at(after(0).0.checked_sub(1).map(telltale_schema::clock::Timestamp).unwrap());
    let Err(ReadHistoryError::NothingThen(words)) = before else { panic!("{before:?}") };
    assert!(words.contains("begins at 2026-11-21T10:00:00Z"), "{words}");
}

#[test]
fn a_finished_process_has_its_peak_its_byte_seconds_and_its_end() {
    let mut kept = Kept::new();
    let idle = [device(0, 0, None), device(1, 0, None)];
    kept.see_for(4, &idle, &[process(11, 1_000, &[0, 1])]);
    let mut peak = process(11, 500, &[0, 1]);
    if let telltale_schema::snapshot::HeldUsage::Recorded(usage) =
        &mut peak.devices[0].kinds[0].usage
    {
        usage.peak_bytes = 9_000;
    }
    kept.see_for(6, &idle, &[peak]);
    kept.see_for(3, &idle, &[]);
    let mut killed = process(12, 77, &[1]);
    kept.see(&idle, &[killed.clone()]);
    killed.state = ProcessState::Dead;
    kept.see_for(3, &idle, &[killed]);
    kept.stop();
    let report = kept.report("job11");
    assert_eq!((report.ending, report.ended), (Some(Ending::Gone), Some(after(10))));
    assert_eq!((report.first_seen, report.last_seen), (after(0), after(9)));
    assert_eq!(report.lifetime_seconds, 9.0);
    let [one, two] = &report.usage[..] else { panic!("{report:?}") };
    assert_eq!((one.kind, one.peak_bytes, one.peak_at), (MemoryKind::Dram, 9_000, after(4)));
    assert_eq!((two.peak_bytes, two.peak_at), (1_000, after(0)));
    assert_eq!((one.byte_seconds, one.watched_seconds), (4 * 1_000 + 6 * 500, 10.0));
    assert_eq!((one.mean_bytes, one.live_bytes), (Some(700.0), 500));
    let report = kept.report("12");
    assert_eq!((report.ending, report.ended), (Some(Ending::Killed), Some(after(14))));
    assert_eq!((report.usage[0].byte_seconds, report.usage[0].peak_bytes), (77, 77));
    let live = HistoryQuery {
        processes: vec!["job12".parse().unwrap()],
        step_ms: Some(1_000),
        ..HistoryQuery::over(after(13), after(17))
    };
    let answer = kept.query(&live);
    let live = series(&answer, "live_bytes", "dram");
    assert_eq!(live.mean, [Some(77.0), None, None, None, None], "the dead are in no series");
}

#[test]
fn a_report_is_of_one_moment_while_the_history_is_written() {
    let mut kept = Kept::with(HistoryOptions { write_seconds: 1, ..HistoryOptions::default() });
    let idle = [device(0, 0, None)];
    kept.see_for(10, &idle, &[process(11, 1_000, &[0])]);
    kept.stop();
    kept.start();
    let (choice, path) = ("job11".parse().unwrap(), kept.path());
    let (is_over, reports) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| {
            let reader = HistoryReader::open(&path).unwrap();
            while !is_over.load(Ordering::Relaxed) {
                let report = reader.report(&choice, Visibility::Everything).unwrap().remove(0);
                let lived = report.last_seen.since_ns(report.first_seen) as f64 / 1e9;
                assert!(report.usage[0].watched_seconds <= lived, "{report:?}");
                reports.fetch_add(1, Ordering::Relaxed);
            }
        });
        let enough = rounds(20_000, 40_000);
        while reports.load(Ordering::Relaxed) < enough && !reading.is_finished() {
            kept.see_for(10, &idle, &[process(11, 1_000, &[0])]);
        }
        is_over.store(true, Ordering::Relaxed);
        reading.join().unwrap();
    });
}

#[test]
fn a_pid_that_was_used_again_is_two_processes() {
    let mut kept = Kept::new();
    let devices = [device(0, 0, None)];
    kept.see_for(3, &devices, &[process(11, 10, &[0])]);
    let mut second = process(11, 20, &[0]);
    second.identity.as_mut().unwrap().start_time_ticks = 9_999;
    kept.see_for(3, &devices, &[second]);
    kept.stop();
    let reader = kept.reader();
    let find = |text: &str| {
        let found = reader.find(&text.parse().unwrap(), Visibility::Everything).unwrap();
        found.iter().map(|process| process.identity.start_time_ticks).collect::<Vec<_>>()
    };
    assert_eq!(
        (find("11"), find("11@1100"), find("job11")),
        (vec![9_999, 1_100], vec![1_100], vec![9_999, 1_100])
    );
    let key = telltale_schema::history::identity_text(&identity(11));
    assert_eq!(find(&key), [1_100]);
    assert_eq!(find("job11.py"), [9_999, 1_100], "a word of the command line");
}

#[test]
fn users_see_their_own_and_strangers_see_devices() {
    let mut kept = Kept::new();
    kept.see_for(12, &[device(0, 30, None)], &[process(10, 10, &[0]), process(11, 20, &[0])]);
    kept.stop();
    let reader = kept.reader();
    let query = HistoryQuery::over(after(0), after(12));
    let seen = |visibility, subjects| {
        let answer = reader.query(&HistoryQuery { subjects, ..query.clone() }, visibility).unwrap();
        let owners = answer.series.iter().map(|one| one.process.as_ref().and_then(|p| p.uid));
        owners.collect::<std::collections::BTreeSet<_>>().into_iter().collect::<Vec<_>>()
    };
    assert_eq!(seen(Visibility::Everything, Subjects::All), [None, Some(1000), Some(1001)]);
    assert_eq!(seen(Visibility::Own { uid: 1001 }, Subjects::All), [None, Some(1001)]);
    assert_eq!(seen(Visibility::DevicesOnly, Subjects::All), [None]);
    assert_eq!(seen(Visibility::Everything, Subjects::Processes), [Some(1000), Some(1001)]);
    assert_eq!(seen(Visibility::Everything, Subjects::Devices), [None]);
    let job10 = "job10".parse().unwrap();
    assert!(reader.report(&job10, Visibility::Own { uid: 1000 }).is_ok());
    for visibility in [Visibility::Own { uid: 1001 }, Visibility::DevicesOnly] {
        let refused = reader.report(&job10, visibility);
        assert!(matches!(refused, Err(ReadHistoryError::NoProcess { .. })), "{visibility:?}");
    }
}

#[test]
fn metrics_are_found_by_name_part_and_label_and_others_are_refused() {
    let mut kept = Kept::new();
    kept.see_for(12, &[device(0, 30, Some(1.0))], &[process(10, 10, &[0])]);
    kept.stop();
    let reader = kept.reader();
    let found = |name: &str| {
        let metrics = vec![name.to_owned()];
        let query = HistoryQuery { metrics, ..HistoryQuery::over(after(0), after(12)) };
        reader.query(&query, Visibility::Everything).map(|answer| answer.series.len())
    };
    assert_eq!(found("telltale_device_temperature_celsius").unwrap(), 1);
    assert_eq!(found("memory_capacity").unwrap(), 2);
    assert_eq!(found("kind").unwrap(), 5);
    assert_eq!(found("telltale_device_memory_space_used_bytes").unwrap(), 2, "as /metrics has it");
    for (name, words) in [
        (
            "temper",
            "it keeps telltale_device_temperature_celsius, telltale_device_temperature_limit",
        ),
        ("powr", "no metric powr; did you mean power?"),
        ("temperature_celcius", "did you mean temperature_celsius?"),
        ("aicllk", "did you mean aiclk?"),
        ("qqqq", "no metric qqqq; it keeps device_busy_ratio, "),
        ("", "it keeps device_busy_ratio, "),
    ] {
        let refused = found(name).unwrap_err();
        assert!(matches!(refused, ReadHistoryError::NoMetric { .. }), "{refused:?}");
        assert!(refused.to_string().contains(words), "{refused}");
    }
}

#[test]
fn devices_and_processes_that_never_were_are_refused_and_those_of_another_time_are_not() {
    let mut kept = Kept::new();
    let devices = [device(0, 30, Some(1.0))];
    kept.see_for(12, &devices, &[process(10, 10, &[0])]);
    kept.see_for(12, &devices, &[]);
    kept.stop();
    let reader = kept.reader();
    let of = |device: Option<&str>, process: Option<&str>, visibility| {
        let devices = device.into_iter().map(str::to_owned).collect();
        let processes = process.into_iter().map(|text| text.parse().unwrap()).collect();
        let query = HistoryQuery { devices, processes, ..HistoryQuery::over(after(18), after(24)) };
        reader.query(&query, visibility).map(|answer| answer.series.len())
    };
    let refused = of(Some("7"), None, Visibility::Everything).unwrap_err();
    let words = format!("the history has no device 7; it has {}", devices[0].id);
    assert_eq!(refused.to_string(), words);
    assert!(of(Some(&devices[0].id), None, Visibility::DevicesOnly).unwrap() > 0);
    // It was there, at another time.
    assert!(of(None, Some("job10"), Visibility::Everything).is_ok());
    for (name, visibility) in
        [("job11", Visibility::Everything), ("job10", Visibility::Own { uid: 1 })]
    {
        let refused = of(None, Some(name), visibility).unwrap_err();
        assert!(matches!(refused, ReadHistoryError::NoProcess { .. }), "{refused:?}");
    }
}
