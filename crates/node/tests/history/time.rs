//! Restarts, clocks that are set, and what days leave behind.

use rusqlite::Connection;
use telltale_node::access::Visibility;
use telltale_schema::clock::Timestamp;
use telltale_schema::history::{Ending, HistoryQuery, MAX_POINTS};

use crate::history::machine::{BEGIN, Kept, SECOND, after, device, integrity, process, series};

/// The sum of bytes over time that an answer's spans come to, where each is known all the time.
fn byte_seconds(mean: &[Option<f64>], step_ms: u64) -> f64 {
    mean.iter().flatten().sum::<f64>() * step_ms as f64 / 1e3
}

#[test]
fn a_restart_continues_series_and_totals_and_counts_nothing_twice() {
    let mut kept = Kept::new();
    let devices = [device(0, 100, Some(50.0))];
    kept.see_for(25, &devices, &[process(11, 100, &[0])]);
    kept.start();
    kept.see_for(25, &devices, &[process(11, 100, &[0])]);
    kept.stop();
    let report = kept.report("11");
    assert_eq!((report.first_seen, report.last_seen), (after(0), after(49)));
    assert_eq!(report.ending, None);
    // The second between the two services was not observed.
    assert_eq!(report.usage[0].byte_seconds, 24 * 100 + 24 * 100);
    let query = HistoryQuery { step_ms: Some(1_000), ..HistoryQuery::over(after(0), after(49)) };
    let answer = kept.query(&query);
    let live: Vec<_> = answer.series.iter().filter(|one| one.process.is_some()).collect();
    assert_eq!(live.len(), 1, "one series before and after");
    assert_eq!(live[0].mean, vec![Some(100.0); 50]);
}

/// How process 11 is reported to have ended, which lived when one service ended and is gone when the next
/// begins. Its boot id is another than the machine's. `between` changes the history meanwhile.
fn ending(between: &str) -> Option<Ending> {
    let mut kept = Kept::new();
    let devices = [device(0, 100, None)];
    kept.see_for(12, &devices, &[process(11, 100, &[0])]);
    kept.stop();
    Connection::open(kept.path()).unwrap().execute_batch(between).unwrap();
    kept.start();
    kept.see_for(12, &devices, &[]);
    kept.stop();
    assert_eq!(kept.report("11").ended, None);
    kept.report("11").ending
}

#[test]
fn who_ended_while_nobody_looked_is_distinguished() {
    // A system container has a boot id of its own: the machine was not started again for that.
    assert_eq!(ending(""), Some(Ending::Unseen));
    let another = "UPDATE machine SET boot_id = '0f8fad5b-d9cb-469f-a165-70867728950e'";
    assert_eq!(ending(another), Some(Ending::Restart));
    // A history that is older than this goes by the process's own.
    assert_eq!(ending("DELETE FROM machine"), Some(Ending::Restart));
    assert_eq!(ending("UPDATE machine SET boot_id = 'nonsense'"), Some(Ending::Restart));
}

#[test]
fn a_service_that_is_started_again_and_again_takes_nobody_for_ended_by_a_restart() {
    let mut kept = Kept::new();
    let devices = [device(0, 100, None)];
    let jobs = [process(11, 100, &[0]), process(12, 100, &[0])];
    kept.see_for(3, &devices, &jobs);
    for _ in 0..3 {
        kept.start();
        kept.see_for(3, &devices, &jobs);
    }
    kept.start();
    kept.see_for(3, &devices, &jobs[..1]);
    kept.stop();
    let endings = ["11", "12"].map(|process| kept.report(process).ending);
    assert_eq!(endings, [None, Some(Ending::Unseen)]);
}

#[test]
fn a_process_that_is_missed_once_goes_on() {
    let mut kept = Kept::new();
    let devices = [device(0, 100, None)];
    kept.see_for(5, &devices, &[process(11, 100, &[0])]);
    kept.see(&devices, &[]);
    kept.see_for(5, &devices, &[process(11, 100, &[0])]);
    kept.stop();
    let report = kept.report("11");
    assert_eq!((report.ending, report.usage[0].byte_seconds), (None, 5 * 100 + 4 * 100));
}

#[test]
fn clocks_that_are_set_corrupt_nothing_and_integrate_nothing() {
    let mut kept = Kept::new();
    let devices = [device(0, 100, Some(20.0))];
    let jobs = [process(11, 100, &[0])];
    for wall in [BEGIN - 7_200 * SECOND, BEGIN + 86_400 * 365 * SECOND, 5, BEGIN + 40 * SECOND] {
        kept.see_for(30, &devices, &jobs);
        kept.clock.set_wall(Timestamp(wall));
    }
    kept.see_for(30, &devices, &jobs);
    kept.stop();
    assert_eq!(integrity(&kept.path()), "ok");
    let report = kept.report("11");
    assert_eq!(report.usage[0].byte_seconds, 5 * 29 * 100);
    assert_eq!(report.usage[0].watched_seconds, 145.0);
    let reader = kept.reader();
    for moment in [after(10), Timestamp(BEGIN - 7_190 * SECOND), after(86_400 * 365 + 3)] {
        let past = reader.snapshot_at(moment).unwrap();
        assert_eq!((past.snapshot.taken_at, past.snapshot.processes.len()), (moment, 1));
    }
    let query = HistoryQuery::over(after(0), after(70));
    let answer = reader.query(&query, Visibility::Everything).unwrap();
    let heat = series(&answer, "temperature", "asic");
    assert_eq!(heat.mean.iter().flatten().count(), 60);
}

#[test]
fn a_gap_is_no_value_and_in_no_sum() {
    let mut kept = Kept::new();
    let devices = [device(0, 100, Some(20.0))];
    kept.see_for(10, &devices, &[process(11, 100, &[0])]);
    kept.clock.advance_ns(600 * SECOND);
    kept.see_for(10, &devices, &[process(11, 100, &[0])]);
    kept.stop();
    let query = HistoryQuery { step_ms: Some(10_000), ..HistoryQuery::over(after(0), after(619)) };
    let answer = kept.query(&query);
    let heat = series(&answer, "temperature", "asic");
    let known: Vec<_> = (0..62).filter(|place| heat.mean[*place].is_some()).collect();
    assert_eq!(known, [0, 61]);
    assert_eq!(kept.report("11").usage[0].byte_seconds, 2 * 9 * 100);
}

#[test]
fn days_are_kept_ever_more_coarsely_and_lose_no_peak_and_no_byte_second() {
    let mut kept = Kept::new();
    let mut total = 0u128;
    // Each ten seconds, so that a day is over quickly; one peak, of a single sample.
    for step in 0..12_000u64 {
        let bytes = if step == 700 { 1 << 33 } else { (step * 7_919) % 100_000 };
        kept.writer().offer(std::sync::Arc::new(crate::history::machine::snapshot(
            telltale_schema::clock::Clock::now(&*kept.clock),
            &[device(0, bytes, Some(20.0))],
            &[process(11, bytes, &[0])],
        )));
        kept.count_offer();
        kept.clock.advance_ns(4 * SECOND);
        if step + 1 < 12_000 {
            total += u128::from(bytes) * 4;
        }
        if step % 8 == 7 {
            kept.settle();
        }
    }
    kept.stop();
    assert_eq!(integrity(&kept.path()), "ok");
    let report = kept.report("11");
    assert_eq!(u128::from(report.usage[0].byte_seconds), total);
    assert_eq!(report.usage[0].peak_bytes, 1 << 33);
    let blocks = |resolution: i64| -> i64 {
        let connection = rusqlite::Connection::open(kept.path()).unwrap();
        let text = "SELECT count(*) FROM block WHERE resolution_ms = ?";
        connection.query_row(text, [resolution], |row| row.get(0)).unwrap()
    };
    assert!(blocks(0) < 4_900 / 8, "an hour as sampled: {}", blocks(0));
    assert!((78..=82).contains(&blocks(10_000)), "{}", blocks(10_000));
    assert_eq!(blocks(60_000), 13);
    for step_ms in [60_000, 600_000, 3_600_000] {
        let query =
            HistoryQuery { step_ms: Some(step_ms), ..HistoryQuery::over(after(0), after(48_000)) };
        let answer = kept.query(&query);
        assert!(answer.points <= MAX_POINTS);
        let live = series(&answer, "live_bytes", "dram");
        let most = live.greatest.iter().flatten().copied().fold(0.0, f64::max);
        assert_eq!(most, (1u64 << 33) as f64, "step {step_ms}");
        let whole = &live.mean[..live.mean.len() - 2];
        let last_ms = whole.len() as u64 * step_ms;
        let expected: u64 = (0..last_ms / 4_000)
            .map(|step| if step == 700 { 1 << 33 } else { (step * 7_919) % 100_000 } * 4)
            .sum();
        let found = byte_seconds(whole, step_ms);
        assert!((found - expected as f64).abs() < 1.0, "step {step_ms}: {found} {expected}");
    }
    let hours_ago = kept.reader().snapshot_at(after(10_000)).unwrap();
    assert_eq!(hours_ago.resolution_ms, 10_000);
}

/// What was so between two settings of the wall clock.
struct Stretch {
    begins: Timestamp,
    ends: Timestamp,
    least: u64,
    greatest: u64,
}

/// Offers a sample each 4 s and sets the wall clock after each 150 of them, by `jump` in seconds.
/// Gives the byte-seconds that can be known, and each stretch.
fn see_with_jumps(
    kept: &mut Kept,
    jumps: usize,
    jump: impl Fn(usize) -> i64,
) -> (u64, Vec<Stretch>) {
    const SAMPLES: u64 = 150;
    let now = |kept: &Kept| telltale_schema::clock::Clock::now(&*kept.clock);
    let (mut total, mut stretches) = (0, Vec::new());
    for number in 0..jumps {
        let (begins, mut least, mut greatest) = (now(kept), u64::MAX, 0);
        for step in 0..SAMPLES {
            let bytes = 1_000 * (number as u64 + 1) + step * 7_919 % 997;
            (least, greatest) = (least.min(bytes), greatest.max(bytes));
            kept.writer().offer(std::sync::Arc::new(crate::history::machine::snapshot(
                now(kept),
                &[device(0, bytes, Some(20.0))],
                &[process(11, bytes, &[0])],
            )));
            kept.count_offer();
            // The last of a stretch stands for no time: how much has passed is unknown.
            total += if step + 1 < SAMPLES { bytes * 4 } else { 0 };
            if step + 1 < SAMPLES {
                kept.clock.advance_ns(4 * SECOND);
            }
            if step % 8 == 7 {
                kept.settle();
            }
        }
        stretches.push(Stretch { begins, ends: now(kept), least, greatest });
        kept.clock.advance_ns(4 * SECOND);
        let wall = now(kept).0.saturating_add_signed(jump(number) * SECOND.cast_signed());
        kept.clock.set_wall(Timestamp(wall));
        if number == jumps / 2 {
            kept.start();
        }
    }
    kept.settle();
    (total, stretches)
}

#[test]
fn a_clock_that_goes_a_day_on_and_an_hour_back_again_and_again_costs_no_peak() {
    let mut kept = Kept::new();
    let (total, stretches) =
        see_with_jumps(&mut kept, 20, |number| if number % 2 == 0 { 86_400 } else { -3_600 });
    kept.stop();
    assert_eq!(integrity(&kept.path()), "ok");
    let report = kept.report("11");
    assert_eq!(report.usage[0].byte_seconds, total);
    assert_eq!(report.usage[0].watched_seconds, 20.0 * 149.0 * 4.0);
    // Ages go by recorded time: of these three hours and a third the last one is as sampled, whatever
    // day the wall clock says, and the rest is coarser.
    let connection = rusqlite::Connection::open(kept.path()).unwrap();
    let recorded = |resolution: i64| -> i64 {
        let text = "SELECT coalesce(sum(end_ms - start_ms), 0) FROM block WHERE resolution_ms = ?";
        connection.query_row(text, [resolution], |row| row.get(0)).unwrap()
    };
    assert!((3_000_000..=4_800_000).contains(&recorded(0)), "{}", recorded(0));
    assert!(recorded(10_000) >= 6_600_000, "{}", recorded(10_000));
    for stretch in &stretches {
        let query = HistoryQuery {
            metrics: vec![String::from("live_bytes")],
            ..HistoryQuery::over(stretch.begins, stretch.ends)
        };
        let answer = kept.query(&query);
        let live = series(&answer, "live_bytes", "dram");
        let least = live.least.iter().flatten().copied().fold(f64::INFINITY, f64::min);
        let greatest = live.greatest.iter().flatten().copied().fold(0.0, f64::max);
        assert_eq!((least, greatest), (stretch.least as f64, stretch.greatest as f64));
        assert!(kept.reader().snapshot_at(stretch.ends).unwrap().snapshot.processes.len() == 1);
    }
}

#[test]
fn hours_that_come_again_and_again_are_kept_and_answered() {
    let mut kept = Kept::new();
    let (total, stretches) = see_with_jumps(&mut kept, 20, |_| -900);
    kept.stop();
    assert_eq!(integrity(&kept.path()), "ok");
    assert_eq!(kept.report("11").usage[0].byte_seconds, total);
    let (first, last) = (stretches[0].ends, stretches[19].begins);
    assert!(last < first, "time only went back");
    let query = HistoryQuery {
        step_ms: Some(10_000),
        metrics: vec![String::from("live_bytes")],
        ..HistoryQuery::over(last, first)
    };
    let answer = kept.query(&query);
    assert!(answer.points <= MAX_POINTS);
    let live = series(&answer, "live_bytes", "dram");
    let known: Vec<f64> = live.mean.iter().flatten().copied().collect();
    assert!(known.len() >= 300, "{}", known.len());
    assert!(known.iter().all(|mean| (1_000.0..21_000.0).contains(mean)), "{known:?}");
}
