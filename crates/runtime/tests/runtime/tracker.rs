//! The tracker against a plain model: what it reports equals what a map and some sums say.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::runtime::asking::{ask, numbered, started};
use proptest::prelude::{Just, Strategy, any, prop, prop_oneof};
use proptest::{prop_assert_eq, proptest};
use telltale_harness::Scratch;
use telltale_runtime::{Device, DeviceDescription, MemoryKind, Runtime};
use telltale_schema::chip::{BoardType, ChipFacts, FactSource};
use telltale_schema::memory::{MemorySpace, MemoryUsage};
use telltale_schema::snapshot::RecordingFaults;
use telltale_wire::{Query, QueryKind};

/// What a workload does.
#[derive(Debug, Clone)]
enum Event {
    Allocate { device: usize, kind: MemoryKind, address: u64, bytes: u64 },
    Free { device: usize, kind: MemoryKind, address: u64 },
    AllocateSized { device: usize, kind: MemoryKind, bytes: u64 },
    FreeSized { device: usize, kind: MemoryKind },
    Fail { device: usize, kind: MemoryKind },
}

type PerKind = BTreeMap<(usize, MemoryKind), MemoryUsage>;

/// The plain model.
#[derive(Default)]
struct Model {
    usage: PerKind,
    live: HashMap<(usize, MemorySpace, u64), (MemoryKind, u64)>,
    freed: HashSet<(usize, MemorySpace, u64)>,
    sized: HashMap<(usize, MemoryKind), Vec<u64>>,
    faults: RecordingFaults,
}

impl Model {
    fn allocated(&mut self, device: usize, kind: MemoryKind, bytes: u64) {
        let usage = self.usage.entry((device, kind)).or_default();
        usage.live_bytes += bytes;
        usage.live_buffers += 1;
        usage.peak_bytes = usage.peak_bytes.max(usage.live_bytes);
        usage.allocations += 1;
        usage.allocated_bytes += bytes;
    }

    fn freed(&mut self, device: usize, kind: MemoryKind, bytes: u64) {
        let usage = self.usage.entry((device, kind)).or_default();
        usage.live_bytes -= bytes;
        usage.live_buffers -= 1;
    }

    /// Applies an event to the model and to the device.
    fn apply(&mut self, devices: &[Device], event: &Event) {
        match *event {
            Event::Allocate { device, kind, address, bytes } => {
                let place = (device, kind.space(), address);
                if let Some((old_kind, old_bytes)) = self.live.insert(place, (kind, bytes)) {
                    self.freed(device, old_kind, old_bytes);
                    self.faults.reused_live_addresses += 1;
                }
                self.allocated(device, kind, bytes);
                devices[device].allocate(kind, address, bytes);
            }
            Event::Free { device, kind, address } => {
                let place = (device, kind.space(), address);
                match self.live.remove(&place) {
                    Some((kind, bytes)) => {
                        self.freed(device, kind, bytes);
                        self.freed.insert(place);
                    }
                    None if self.freed.contains(&place) => self.faults.double_frees += 1,
                    None => self.faults.unknown_frees += 1,
                }
                devices[device].free(kind, address);
            }
            Event::AllocateSized { device, kind, bytes } => {
                self.sized.entry((device, kind)).or_default().push(bytes);
                self.allocated(device, kind, bytes);
                devices[device].allocate_sized(kind, bytes);
            }
            Event::FreeSized { device, kind } => {
                let Some(bytes) = self.sized.entry((device, kind)).or_default().pop() else {
                    return;
                };
                self.freed(device, kind, bytes);
                devices[device].free_sized(kind, bytes);
            }
            Event::Fail { device, kind } => {
                self.usage.entry((device, kind)).or_default().failed_allocations += 1;
                devices[device].allocation_failed(kind);
            }
        }
    }
}

/// What the runtime says.
fn reported(scratch: &Scratch) -> (PerKind, RecordingFaults) {
    let report = ask(scratch, Query::of(QueryKind::Memory));
    let mut usage = PerKind::new();
    for (device, seen) in report.devices.iter().enumerate() {
        for kind in &seen.kinds {
            usage.insert((device, kind.kind), kind.usage);
        }
    }
    (usage, report.faults)
}

fn open(runtime: &Runtime, count: u32) -> Vec<Device> {
    (0..count).map(|logical_id| runtime.open_device(numbered(logical_id))).collect()
}

fn event() -> impl Strategy<Value = Event> {
    let place = || (0usize..3, prop::sample::select(MemoryKind::ALL.to_vec()));
    // Few addresses, so that reuse, double and unknown frees are frequent. No two of these places
    // take each other's spot among the freed ones that the index remembers, as others may.
    let address = || prop_oneof![0u64..6, Just(u64::MAX)];
    let bytes = || prop_oneof![0u64..100, Just(1 << 40)];
    prop_oneof![
        4 => (place(), address(), bytes()).prop_map(|((device, kind), address, bytes)| {
            Event::Allocate { device, kind, address, bytes }
        }),
        4 => (place(), address())
            .prop_map(|((device, kind), address)| Event::Free { device, kind, address }),
        2 => (place(), bytes())
            .prop_map(|((device, kind), bytes)| Event::AllocateSized { device, kind, bytes }),
        2 => place().prop_map(|(device, kind)| Event::FreeSized { device, kind }),
        1 => place().prop_map(|(device, kind)| Event::Fail { device, kind }),
    ]
}

proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

    #[test]
    fn the_tracker_agrees_with_a_plain_model(events in prop::collection::vec(event(), 0..200)) {
        let scratch = Scratch::new();
        let runtime = started(&scratch);
        let devices = open(&runtime, 3);
        let mut model = Model::default();
        for event in &events {
            model.apply(&devices, event);
        }
        let (usage, faults) = reported(&scratch);
        model.usage.retain(|_, usage| *usage != MemoryUsage::default());
        prop_assert_eq!(usage, model.usage);
        prop_assert_eq!(faults, model.faults);
    }

    #[test]
    fn threads_together_lose_nothing(seeds in prop::collection::vec(any::<u64>(), 2..5)) {
        let scratch = Scratch::new();
        let runtime = started(&scratch);
        let devices = open(&runtime, 2);
        let kept: Vec<u64> = std::thread::scope(|scope| {
            let start = |(thread, seed): (u64, &u64)| {
                let devices = &devices;
                let mut state = *seed | 1;
                scope.spawn(move || churn(devices, thread, &mut state))
            };
            let threads: Vec<_> = (0..).zip(&seeds).map(start).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let (usage, faults) = reported(&scratch);
        let live: u64 = usage.values().map(|usage| usage.live_bytes).sum();
        prop_assert_eq!(live, kept.iter().sum::<u64>());
        prop_assert_eq!(faults, RecordingFaults::default());
    }
}

/// Allocates and frees at addresses of this thread's own, and returns the bytes it keeps. Every
/// other buffer is freed by address, the others by size.
fn churn(devices: &[Device], thread: u64, state: &mut u64) -> u64 {
    let mut kept = 0;
    for round in 0..2_000u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let bytes = *state >> 48;
        let device = &devices[usize::from(round % 2 == 0)];
        let address = thread << 32 | round << 8;
        device.allocate(MemoryKind::Dram, address, bytes);
        device.allocate_sized(MemoryKind::Cb, bytes);
        device.free_sized(MemoryKind::Cb, bytes);
        if state.is_multiple_of(3) {
            kept += bytes;
        } else {
            device.free(MemoryKind::Dram, address);
        }
    }
    kept
}

#[test]
fn closing_a_device_gives_back_what_it_still_held() {
    let scratch = Scratch::new();
    let runtime = started(&scratch);
    let _other = runtime.open_device(numbered(1));
    let device = runtime.open_device(numbered(0));
    for address in 0..5 {
        device.allocate(MemoryKind::Dram, address, 100);
    }
    device.allocate_sized(MemoryKind::Cb, 7);
    drop(device);
    let device = runtime.open_device(numbered(0));
    let (usage, faults) = reported(&scratch);
    let dram = usage.values().find(|usage| usage.allocated_bytes == 500).unwrap();
    assert_eq!((dram.live_bytes, dram.live_buffers, dram.peak_bytes), (0, 0, 500));
    assert!(usage.values().all(|usage| usage.live_bytes == 0 && usage.live_buffers == 0));
    assert_eq!(faults, RecordingFaults::default());
    device.free(MemoryKind::Dram, 0);
    assert_eq!(reported(&scratch).1.unknown_frees, 1);
}

#[test]
fn closing_a_device_gives_back_nothing_that_another_description_of_it_holds() {
    let scratch = Scratch::new();
    let runtime = started(&scratch);
    let described = |source| {
        let facts = ChipFacts::of_board(BoardType::N150).map(|facts| ChipFacts { source, ..facts });
        runtime.open_device(DeviceDescription { facts, ..numbered(0) })
    };
    // A ledger has no place for what these two differ in.
    let first = described(FactSource::BoardTable);
    let second = described(FactSource::Ledger);
    first.allocate(MemoryKind::Dram, 0, 100);
    second.allocate(MemoryKind::Dram, 1, 400);
    drop(first);
    second.allocate(MemoryKind::Dram, 2, 3000);
    second.free(MemoryKind::Dram, 1);
    let (usage, faults) = reported(&scratch);
    assert_eq!(faults, RecordingFaults::default());
    let live: Vec<_> = usage.values().map(|usage| (usage.live_bytes, usage.live_buffers)).collect();
    // The device is open as long as either is, and its memory with it.
    assert_eq!(live, [(3100, 2)]);
}

#[test]
fn closing_one_device_leaves_the_peaks_exact() {
    let scratch = Scratch::new();
    let runtime = started(&scratch);
    let kept = runtime.open_device(numbered(1));
    kept.allocate(MemoryKind::Dram, 0, 3000);
    let allocate = |device: &Device| {
        device.allocate(MemoryKind::Dram, 0, 100);
        device.allocate(MemoryKind::Dram, 1, 400);
    };
    for _ in 0..3 {
        // What the round before left is no part of this one's peak.
        let device = runtime.open_device(numbered(0));
        allocate(&device);
    }
    kept.free(MemoryKind::Dram, 0);
    kept.allocate(MemoryKind::Dram, 0, 3001);
    let _open = runtime.open_device(numbered(0));
    let (usage, faults) = reported(&scratch);
    assert_eq!(faults, RecordingFaults::default());
    let peaks: Vec<_> = usage.values().map(|usage| (usage.live_bytes, usage.peak_bytes)).collect();
    assert_eq!(peaks.len(), 2);
    assert!(peaks.contains(&(0, 500)) && peaks.contains(&(3001, 3001)), "{peaks:?}");
}

#[test]
fn a_runtime_that_is_switched_off_leaves_no_trace() {
    let scratch = Scratch::new();
    let mut options = crate::runtime::asking::options(scratch.path());
    options.disabled = true;
    let runtime = Runtime::start(options);
    let device = runtime.open_device(numbered(0));
    device.allocate(MemoryKind::Dram, 0, 1);
    device.free(MemoryKind::Dram, 0);
    runtime.registry().counter("steps").register().add(1);
    assert!(!device.is_recorded());
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
}
