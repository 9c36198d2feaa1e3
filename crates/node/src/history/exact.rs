//! Whatever happens, what the packed series of a process come to over time is its total, to the
//! byte-millisecond and at every resolution.

use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, any, prop_assert_eq, proptest};
use rusqlite::Connection;
use serde_json::json;
use telltale_harness::Scratch;
use telltale_schema::memory::MemoryKind;
use telltale_schema::snapshot::Snapshot;

use super::blocks;
use super::buckets::Buckets;
use super::part;
use super::reader::chosen_blocks;
use super::series_kind::SeriesKind;
use super::store::Store;
use super::stored;

const BEGIN_MS: u64 = 1_795_255_200_000;

/// A snapshot with a process for each value, which is what it has on the one device.
fn snapshot(wall_ms: u64, live: &[Option<u64>]) -> Snapshot {
    let absent = json!({ "absent": "unknown" });
    let process = |(place, bytes): (usize, u64)| {
        json!({
            "identity": {
                "boot_id": "0f8fad5b-d9cb-469f-a165-70867728950e",
                "pid_namespace": 1, "pid": place, "start_time_ticks": place,
            },
            "pid": place, "name": "job", "command": absent, "uid": absent, "user": absent,
            "container": null, "state": "alive", "known_by": "region", "uptime_seconds": absent,
            "devices": [{
                "device": 0, "open_descriptors": 1, "accounting": "bytes_only",
                "kinds": [{ "kind": "dram", "live_bytes": bytes }],
            }],
            "faults": {
                "double_frees": 0, "unknown_frees": 0, "reused_live_addresses": 0,
                "unrecorded_events": 0,
            },
            "metrics": [],
        })
    };
    let live = live.iter().enumerate().filter_map(|(place, live)| Some((place, (*live)?)));
    let mut telemetry = json!({ "firmware": {}, "pcie": [] });
    for sensor in [
        "temperature_celsius",
        "temperature_limit_celsius",
        "power_watts",
        "power_limit_watts",
        "current_amperes",
        "current_limit_amperes",
        "voltage_volts",
        "voltage_limit_volts",
        "aiclk_hertz",
        "axiclk_hertz",
        "arcclk_hertz",
        "fan_revolutions_per_minute",
        "heartbeat_total",
        "thermal_trips_total",
    ] {
        telemetry[sensor] = absent.clone();
    }
    serde_json::from_value(json!({
        "schema_version": 1, "taken_at": wall_ms * 1_000_000, "collected_in_ns": 1,
        "devices": [{
            "id": "d", "facts": absent, "telemetry": telemetry, "spaces": [], "kinds": [],
            "identity": { "board_type": "n150", "location": 0, "remote": false },
            "holders": absent,
        }],
        "processes": live.map(process).collect::<Vec<_>>(),
        "sources": [],
    }))
    .expect("it is a snapshot")
}

/// Byte-milliseconds of every process by its series, from blocks for this step, and by its totals.
fn sums(path: &Path, step_ms: u64) -> Vec<(i128, i128)> {
    let connection = &Connection::open(path).unwrap();
    let ends_ms = BEGIN_MS.cast_signed() * 2;
    let chosen = chosen_blocks(connection, 0, ends_ms, step_ms).unwrap();
    let text = format!("SELECT {} FROM process", stored::PROCESS_COLUMNS);
    let mut statement = connection.prepare(&text).unwrap();
    let rows = statement.query_map([], stored::process).unwrap();
    let mut rows: Vec<_> = rows.map(Result::unwrap).collect();
    rows.iter_mut().for_each(|row| stored::fill(connection, row).unwrap());
    rows.iter()
        .flat_map(|row| row.held.iter().map(|held| (held, &held.usages[0])))
        .map(|(held, usage)| {
            let mut all = Buckets::new(0, ends_ms.unsigned_abs(), 1);
            for block in &chosen {
                let bytes = blocks::part(connection, block.id, held.track.subject).unwrap();
                let bytes = bytes.unwrap_or_default();
                let mut rest = bytes.as_slice();
                while let Some((code, series)) = part::take(&mut rest) {
                    if SeriesKind::from_code(code) == Some(SeriesKind::Live(MemoryKind::Dram)) {
                        block.add_to(series, &mut all);
                    }
                }
            }
            (all.all()[0].sum, usage.byte_milliseconds)
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn series_come_to_the_totals(
        steps in vec((1u64..9_000, vec(any::<Option<u32>>(), 3), 0u8..60), 1..400),
    ) {
        let scratch = Scratch::new();
        let path = scratch.join("history.db");
        std::fs::write(&path, "").unwrap();
        let mut store = Store::open(&path, 1 << 28).unwrap();
        let mut recorder = store.recorder(10_000, 5_000, None).unwrap();
        let (mut wall_ms, mut monotonic_ms) = (BEGIN_MS, 0);
        for (passed_ms, live, event) in steps {
            // Half of the steps are short ones.
            let passed_ms = if event % 2 == 0 { passed_ms } else { passed_ms % 1_200 };
            wall_ms += passed_ms;
            monotonic_ms += passed_ms;
            let live: Vec<_> = live.into_iter().map(|live| live.map(u64::from)).collect();
            let seen = snapshot(wall_ms, &live);
            let block = recorder.record(&seen, monotonic_ms * 1_000_000, |id| store.find(id));
            if let Some(block) = block {
                store.write([&block], &mut recorder).unwrap();
                while store.make_coarser().unwrap() {}
            }
            match event {
                // The clock is set back or forward.
                0 => wall_ms -= 500_000,
                1 => wall_ms += 5_000_000,
                // The service ends and is started again.
                2 => {
                    let last = recorder.finish();
                    store.write(&last, &mut recorder).unwrap();
                    recorder = store.recorder(10_000, 5_000, None).unwrap();
                }
                // The service is killed and started again.
                3 => {
                    drop(store);
                    store = Store::open(&path, 1 << 28).unwrap();
                    recorder = store.recorder(10_000, 5_000, None).unwrap();
                }
                _ => {}
            }
        }
        let last = recorder.finish();
        store.write(&last, &mut recorder).unwrap();
        for step_ms in [1_000, 10_000, 60_000] {
            for (series, total) in sums(&path, step_ms) {
                prop_assert_eq!(series, total, "step {}", step_ms);
            }
        }
    }
}
