//! Random work of several recorders against a plain model: totals and counts are exact; the peak is
//! exact for one recorder and within its documented bound for several.

use std::collections::BTreeMap;

use crate::ledger::machine::{Place, device};
use proptest::prelude::*;
use telltale_harness::rounds;
use telltale_ledger::{POSTING_THRESHOLD_BYTES, Recorder};
use telltale_schema::memory::{MemoryKind, MemoryUsage};

const DEVICES: usize = 3;

#[derive(Debug, Clone)]
enum Step {
    Allocate { recorder: usize, device: usize, kind: usize, bytes: u64 },
    Free { recorder: usize, which: usize },
    Fail { recorder: usize, device: usize, kind: usize },
    Replace { recorder: usize },
}

fn steps(recorders: usize) -> impl Strategy<Value = Vec<Step>> {
    let recorder = 0..recorders;
    let bytes = prop_oneof![0..200_000u64, Just(4096), Just(1 << 30), Just(1 << 40)];
    let place = (recorder.clone(), 0..DEVICES, 0..MemoryKind::ALL.len());
    let step = prop_oneof![
        6 => (place.clone(), bytes).prop_map(|((recorder, device, kind), bytes)| {
            Step::Allocate { recorder, device, kind, bytes }
        }),
        5 => (recorder.clone(), any::<prop::sample::Index>()).prop_map(|(recorder, which)| {
            Step::Free { recorder, which: which.index(1 << 16) }
        }),
        1 => place.prop_map(|(recorder, device, kind)| Step::Fail { recorder, device, kind }),
        1 => recorder.prop_map(|recorder| Step::Replace { recorder }),
    ];
    prop::collection::vec(step, 0..120)
}

fn check(recorders: usize, steps: &[Step]) {
    let place = Place::new();
    let ledger = place.ledger();
    let slots: Vec<_> = (0..3).map(|number| ledger.add_device(&device(number)).unwrap()).collect();
    let mut at_work: Vec<Recorder> = (0..recorders).map(|_| ledger.recorder()).collect();
    let mut expected: BTreeMap<(usize, usize), MemoryUsage> = BTreeMap::new();
    let mut live = Vec::new();
    for step in steps {
        match *step {
            Step::Allocate { recorder, device, kind, bytes } => {
                at_work[recorder].allocated(slots[device], MemoryKind::ALL[kind], bytes);
                live.push((device, kind, bytes));
                let usage = expected.entry((device, kind)).or_default();
                usage.allocations += 1;
                usage.live_buffers += 1;
                usage.allocated_bytes += bytes;
                usage.live_bytes += bytes;
                usage.peak_bytes = usage.peak_bytes.max(usage.live_bytes);
            }
            Step::Free { recorder, which } => {
                if live.is_empty() {
                    continue;
                }
                let (device, kind, bytes) = live.swap_remove(which % live.len());
                at_work[recorder].freed(slots[device], MemoryKind::ALL[kind], bytes);
                let usage = expected.entry((device, kind)).or_default();
                usage.live_buffers -= 1;
                usage.live_bytes -= bytes;
            }
            Step::Fail { recorder, device, kind } => {
                at_work[recorder].failed(slots[device], MemoryKind::ALL[kind]);
                expected.entry((device, kind)).or_default().failed_allocations += 1;
            }
            Step::Replace { recorder } => {
                drop(at_work.swap_remove(recorder));
                at_work.push(ledger.recorder());
            }
        }
    }
    let mut reader = place.reader(ledger.file_name());
    let reading = reader.read().unwrap();
    assert!(!reading.torn && !reading.implausible);
    assert_eq!(reading, &ledger.usage());
    let bound = if recorders == 1 { 0 } else { POSTING_THRESHOLD_BYTES * recorders as u64 };
    assert_eq!(reading.usage.len(), expected.len());
    for ((slot, kind, found), ((device, kind_index), model)) in reading.usage.iter().zip(expected) {
        assert_eq!((slot.index(), *kind), (device, MemoryKind::ALL[kind_index]));
        assert!(
            found.peak_bytes.abs_diff(model.peak_bytes) <= bound,
            "peak {} is not within {bound} of {}",
            found.peak_bytes,
            model.peak_bytes
        );
        assert_eq!(*found, MemoryUsage { peak_bytes: found.peak_bytes, ..model });
    }
}

fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(rounds(60, 3_000)) }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn one_recorder_is_exact(steps in steps(1)) {
        check(1, &steps);
    }

    #[test]
    fn several_recorders_are_exact_but_for_the_peak_s_bound(steps in steps(4)) {
        check(4, &steps);
    }
}
