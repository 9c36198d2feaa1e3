//! Random files: whatever they hold, opening and reading ends, without a panic, and with values
//! that fit together.

use std::fs;

use crate::ledger::machine::Place;
use proptest::prelude::*;
use telltale_harness::rounds;
use telltale_ledger::layout::{DEVICES_OFFSET, header};
use telltale_ledger::{LedgerReader, LedgerSweep};

const NAME: &str = "ledger_1_1.tt";

fn survive(place: &Place, content: &[u8]) {
    fs::write(place.path(NAME), content).unwrap();
    let Ok(mut reader) = LedgerReader::open_at(&place.directory, NAME) else { return };
    if let Ok(reading) = reader.read() {
        assert!(reading.devices.len() <= 1024);
        for (slot, _, usage) in &reading.usage {
            assert!(slot.index() < reading.devices.len());
            assert!(usage.peak_bytes >= usage.live_bytes);
        }
    }
    let mut sweep = LedgerSweep::new();
    sweep.insert(reader);
    sweep.read_all();
}

fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(rounds(200, 5_000)) }
}

#[test]
fn changed_bytes_of_a_ledger_do_no_harm() {
    let place = Place::new();
    let sample = place.sample();
    let interesting = prop_oneof![0..512usize, 0..1024usize, DEVICES_OFFSET..DEVICES_OFFSET + 256];
    let value = prop_oneof![any::<u8>(), Just(0), Just(0xFF), Just(0x7F)];
    let changes = prop::collection::vec((interesting, value), 1..12);
    let length = prop_oneof![4 => Just(sample.len()), 1 => 0..sample.len()];
    let mut runner = proptest::test_runner::TestRunner::new(config());
    runner
        .run(&(changes, length), |(changes, length)| {
            let mut bytes = sample.clone();
            for (offset, value) in changes {
                bytes[offset] = value;
            }
            survive(&place, &bytes[..length]);
            Ok(())
        })
        .unwrap();
}

#[test]
fn changed_fields_of_a_header_do_no_harm() {
    let place = Place::new();
    let sample = place.sample();
    let field =
        (header::HEADER_BYTES / 4..header::UNRECORDED_EVENTS / 4 + 2).prop_map(|word| word * 4);
    let value = prop_oneof![
        any::<u32>(),
        0..4096u32,
        prop::sample::select(vec![0, 8, 56, 64, 128, 272, 512, 1024, 4096, 16_384, u32::MAX]),
    ];
    let changes = prop::collection::vec((field, value), 1..4);
    let mut runner = proptest::test_runner::TestRunner::new(config());
    runner
        .run(&changes, |changes| {
            let mut bytes = sample.clone();
            for (offset, value) in changes {
                bytes[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
            }
            survive(&place, &bytes);
            Ok(())
        })
        .unwrap();
}

#[test]
fn random_bytes_behind_a_right_start_do_no_harm() {
    let place = Place::new();
    let sample = place.sample();
    let noise = prop::collection::vec(any::<u8>(), 0..4096);
    let mut runner = proptest::test_runner::TestRunner::new(config());
    runner
        .run(&(noise, 0..600usize), |(noise, start)| {
            let mut bytes = sample.clone();
            bytes[start..start + noise.len()].copy_from_slice(&noise);
            survive(&place, &bytes);
            Ok(())
        })
        .unwrap();
}
