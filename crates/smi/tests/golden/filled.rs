//! Graphs that begin with what a service recorded.

use std::sync::Arc;

use telltale_schema::clock::Timestamp;
use telltale_schema::history::{DenseSeries, HistoryAnswer, PastProcess, Series};

use crate::golden::device_rows::{galaxy, screen};
use crate::golden::screens::page;

/// What a history has of one series.
fn series(metric: &str, device: &str, mean: &[Option<f64>]) -> Series {
    Series {
        metric: metric.to_owned(),
        unit: String::new(),
        label: Some((String::from("space"), String::from("dram"))),
        device: Some(device.to_owned()),
        process: None,
        whole: DenseSeries::default(),
        least: Vec::new(),
        mean: mean.to_vec(),
        greatest: Vec::new(),
        absent: Vec::new(),
    }
}

#[test]
fn graphs_are_filled_with_what_was_before_and_gaps_stay() {
    const SECOND: u64 = 1_000_000_000;
    let mut snapshot = galaxy();
    snapshot.taken_at = Timestamp(100 * SECOND);
    snapshot.devices.drain(12..);
    let identity = snapshot.processes[0].identity.unwrap();
    let gib = |count: f64| Some(count * f64::from(1 << 30));
    let mut process = series("telltale_process_memory_live_bytes", "T2:N3", &[gib(1.0); 4]);
    process.process = Some(PastProcess {
        identity,
        key: String::new(),
        pid: None,
        name: String::new(),
        command: None,
        uid: None,
        user: None,
    });
    let elsewhere = Series { device: Some(String::from("T1:N0")), ..process.clone() };
    let device = [gib(12.0), gib(6.0), None, Some(f64::NAN), gib(1.0)];
    let device = series("telltale_device_memory_used_bytes", "T2:N3", &device);
    let answer = HistoryAnswer {
        from: Timestamp(95 * SECOND),
        step_ms: 1_000,
        points: 5,
        series: vec![device, process, elsewhere],
        series_left_out: 0,
        faults: Vec::new(),
        faults_left_out: 0,
    };
    let mut screen = screen(snapshot.clone());
    screen.fill(&answer);
    let filled = page(&mut screen, 120, 40);
    let row = filled.lines().find(|line| line.starts_with("\"T2:N3 ")).unwrap();
    assert!(row.ends_with("█▄  ▁▂\""), "{filled}");
    // Four samples of two devices, a gap, and the one of the snapshot; two in a cell.
    assert!(filled.contains("⣿⣿⢸\""), "{filled}");
    // What is known stays, and an answer that makes no sense changes nothing.
    screen.fill(&HistoryAnswer { step_ms: 0, ..answer.clone() });
    screen.fill(&HistoryAnswer { from: Timestamp(u64::MAX), ..answer });
    assert_eq!(page(&mut screen, 120, 40), filled);
    snapshot.taken_at = Timestamp(101 * SECOND);
    screen.update(Arc::new(snapshot), Timestamp(101 * SECOND));
    let next = page(&mut screen, 120, 40);
    let row = next.lines().find(|line| line.starts_with("\"T2:N3 ")).unwrap();
    assert!(row.ends_with("█▄  ▁▂▂\""), "{next}");
}
