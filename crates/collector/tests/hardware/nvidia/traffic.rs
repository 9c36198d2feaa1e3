//! PCIe rates of GPUs: what is made of the two counters that the library in `nvml.c` has of each.

use std::sync::Arc;
use std::time::Duration;

use telltale_collector::hardware::NvidiaSource;
use telltale_collector::source::{DeviceReading, HardwareSource, SourceReading};
use telltale_collector::{CollectOptions, Collector, NvmlUse};
use telltale_schema::clock::ManualClock;
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::{PcieLink, Snapshot};

use super::{LIBRARY, divide, furnished, names, of_tree, reasons};
use crate::hardware::tree::Machine;

const SECOND: Duration = Duration::from_secs(1);
/// So short that a counter of 32 bits wraps at most once.
const MOMENT: Duration = Duration::from_millis(10);

/// The library's files of what a GPU receives and what it sends.
const FILES: [&str; 2] = ["pcie_rx", "pcie_tx"];

/// NVML's types of values.
const DOUBLE: u32 = 0;
const BITS_32: u32 = 1;
const BITS_64: u32 = 3;

/// Two GPUs that are read at times which a test decides.
struct Watched {
    machine: Machine,
    clock: Arc<ManualClock>,
    source: NvidiaSource,
}

impl Watched {
    fn new() -> Self {
        let machine = furnished();
        let clock = Arc::new(ManualClock::default());
        let source = of_tree(machine.tree(), Arc::clone(&clock) as _);
        Self { machine, clock, source }
    }

    fn read_after(&mut self, time: Duration) -> SourceReading {
        self.clock.advance_ns(u64::try_from(time.as_nanos()).unwrap());
        self.source.read()
    }
}

/// Says what the first GPU has received and sent since it was made.
fn count(machine: &Machine, bytes: [u64; 2], kind: u32) {
    for (file, bytes) in FILES.into_iter().zip(bytes) {
        machine.write(&format!("nvml/gpu0/{file}"), format!("{bytes} {kind}\n"));
    }
}

/// What the library has counted of the first GPU.
fn counted(machine: &Machine) -> [u64; 2] {
    FILES.map(|file| {
        let text = String::from_utf8(machine.text(&format!("nvml/gpu0/{file}"))).unwrap();
        text.split_whitespace().next().unwrap().parse().unwrap()
    })
}

/// Lets the first GPU receive and send so much more.
fn carry(machine: &Machine, more: [u64; 2]) {
    let [received, sent] = counted(machine);
    count(machine, [received + more[0], sent + more[1]], BITS_64);
}

fn rates(link: Option<&PcieLink>) -> [Reading<u64>; 2] {
    let link = link.unwrap();
    [&link.pcie_received_bytes_per_second, &link.pcie_sent_bytes_per_second].map(Clone::clone)
}

fn of_source(device: &DeviceReading) -> [Reading<u64>; 2] {
    rates(device.telemetry.link.as_deref())
}

fn absences(rates: &[Reading<u64>; 2]) -> [Option<Absence>; 2] {
    rates.each_ref().map(|rate| rate.absence().map(|(reason, _)| reason))
}

/// What both counters gained in a time, as a rate.
fn gained(before: [u64; 2], after: [u64; 2], time: Duration) -> [Option<u64>; 2] {
    let rate = |place: usize| {
        let bytes = u128::from(after[place] - before[place]);
        u64::try_from(bytes * SECOND.as_nanos() / time.as_nanos()).ok()
    };
    [rate(0), rate(1)]
}

fn values(rates: &[Reading<u64>; 2]) -> [Option<u64>; 2] {
    rates.each_ref().map(|rate| rate.value().copied())
}

#[test]
fn rates_are_those_of_the_counters_in_each_direction_from_the_second_collection_on() {
    let mut watched = Watched::new();
    let first = watched.read_after(SECOND);
    assert_eq!(first.status.errors, []);
    for device in &first.devices {
        assert_eq!(absences(&of_source(device)), [Some(Absence::NotYet); 2]);
    }
    for (more, time) in [
        ([31_000_000_000, 7_000_000], SECOND),
        ([5, 48_000_000_000], 2 * SECOND),
        ([0, 1 << 40], 3600 * SECOND),
    ] {
        let before = counted(&watched.machine);
        carry(&watched.machine, more);
        let reading = watched.read_after(time);
        assert_eq!(reading.status.errors, []);
        let expected = gained(before, counted(&watched.machine), time);
        assert_eq!(values(&of_source(&reading.devices[0])), expected);
        assert_eq!(values(&of_source(&reading.devices[1])), [Some(0); 2], "it did nothing");
    }
}

#[test]
fn a_driver_without_the_counters_has_no_rate_and_is_no_error() {
    let [received, both] = [[true, false], [true, true]];
    // As a driver before R550 refuses each field, and as one refuses the call.
    for (refused, text, expected) in [
        ("pcie_rx", "!NOT_SUPPORTED", received),
        ("pcie_rx", "!INVALID_ARGUMENT", received),
        ("fields", "!INVALID_ARGUMENT", both),
    ] {
        let mut watched = Watched::new();
        watched.read_after(SECOND);
        watched.machine.write(&format!("nvml/gpu0/{refused}"), text);
        for _ in 0..2 {
            let reading = watched.read_after(SECOND);
            assert_eq!(reading.status.errors, [], "{text} of {refused}");
            let found = of_source(&reading.devices[0]);
            let unsupported = expected.map(|it| it.then_some(Absence::Unsupported));
            assert_eq!(absences(&found), unsupported, "{text} of {refused}");
            assert!(found[0].absence().unwrap().1.contains("older than R550"), "{found:?}");
            assert_eq!(values(&of_source(&reading.devices[1])), [Some(0); 2]);
        }
    }
}

#[test]
fn a_counter_that_goes_back_is_unknown_for_that_time_alone() {
    let mut watched = Watched::new();
    watched.read_after(SECOND);
    for after in [[7, 9], [u64::from(u32::MAX), 1 << 33], [0, 0]] {
        let before = counted(&watched.machine);
        count(&watched.machine, after, BITS_64);
        let reading = watched.read_after(SECOND);
        assert_eq!(reading.status.errors, []);
        let went_back = [0, 1].map(|place| after[place] < before[place]);
        let unknown = absences(&of_source(&reading.devices[0]));
        assert_eq!(unknown, went_back.map(|it| it.then_some(Absence::Unknown)));
        carry(&watched.machine, [300, 40_000]);
        let reading = watched.read_after(SECOND);
        let expected = gained(after, counted(&watched.machine), SECOND);
        assert_eq!(values(&of_source(&reading.devices[0])), expected);
    }
    // What no link carries is no rate either.
    count(&watched.machine, [u64::MAX; 2], BITS_64);
    let reading = watched.read_after(SECOND);
    assert_eq!(absences(&of_source(&reading.devices[0])), [Some(Absence::Implausible); 2]);
}

#[test]
fn a_counter_of_32_bits_counts_only_while_it_cannot_have_wrapped_unseen() {
    let mut watched = Watched::new();
    let wrap = u64::from(u32::MAX) + 1;
    let before = [wrap - 20_000, 3_000];
    count(&watched.machine, before, BITS_32);
    watched.read_after(SECOND);
    count(&watched.machine, [70_000, 9_000], BITS_32);
    let reading = watched.read_after(MOMENT);
    assert_eq!(reading.status.errors, []);
    let expected = gained(before, [wrap + 70_000, 9_000], MOMENT);
    assert_eq!(values(&of_source(&reading.devices[0])), expected);
    // In a second it could have wrapped many times.
    count(&watched.machine, [80_000, 10_000], BITS_32);
    let reading = watched.read_after(SECOND);
    assert_eq!(reading.status.errors, []);
    let found = of_source(&reading.devices[0]);
    assert_eq!(absences(&found), [Some(Absence::Unknown); 2]);
    assert!(found[0].absence().unwrap().1.contains("wrap unseen"), "{found:?}");
    // One of 64 bits that takes its place is another counter.
    count(&watched.machine, [1 << 40; 2], BITS_64);
    let reading = watched.read_after(MOMENT);
    assert_eq!(absences(&of_source(&reading.devices[0])), [Some(Absence::Unknown); 2]);
    count(&watched.machine, [1; 2], DOUBLE);
    let reading = watched.read_after(SECOND);
    assert_eq!(absences(&of_source(&reading.devices[0])), [Some(Absence::NotUnderstood); 2]);
    assert_eq!(reasons(&reading), [("0000:41:00.0", Absence::NotUnderstood)], "once");
}

#[test]
fn a_gpu_that_was_away_is_measured_from_its_return_on() {
    let mut watched = Watched::new();
    watched.read_after(SECOND);
    watched.machine.write("nvml/gpu0/handle", "!GPU_IS_LOST");
    let reading = watched.read_after(SECOND);
    assert_eq!(absences(&of_source(&reading.devices[0])), [Some(Absence::Gone); 2]);
    watched.machine.write("nvml/gpu0/handle", "1\n");
    carry(&watched.machine, [1_000, 1_000]);
    let reading = watched.read_after(SECOND);
    assert_eq!(absences(&of_source(&reading.devices[0])), [Some(Absence::NotYet); 2]);
}

/// The function of the first GPU, with its link.
fn wire(machine: &Machine) {
    let files = [
        ("vendor", "0x10de\n"),
        ("current_link_speed", "32.0 GT/s PCIe\n"),
        ("current_link_width", "16\n"),
        ("max_link_speed", "32.0 GT/s PCIe\n"),
        ("max_link_width", "16\n"),
    ];
    for (file, text) in files {
        machine.write(&format!("sys/bus/pci/devices/0000:41:00.0/{file}"), text);
    }
}

#[test]
fn a_divided_gpu_has_the_link_and_its_instances_have_none() {
    let machine = furnished();
    machine.write("run/.keep", "");
    divide(&machine);
    wire(&machine);
    let clock = Arc::new(ManualClock::default());
    let options = CollectOptions {
        root: machine.path().to_owned(),
        runtime_dir: Some(machine.path().join("run")),
        nvml: NvmlUse::At(machine.path().join(LIBRARY)),
        ..CollectOptions::default()
    };
    let mut collector = Collector::with_clock(options, Arc::clone(&clock) as _).unwrap();
    let link = |snapshot: &Snapshot, id: &str| {
        let device = snapshot.devices.iter().find(|device| device.id == id).unwrap();
        device.telemetry.link.clone()
    };
    let first = collector.collect();
    let before = counted(&machine);
    carry(&machine, [900_000, 40_000_000]);
    clock.advance_ns(1_000_000_000);
    let second = collector.collect();
    let whole = link(&second, "0000:41:00.0");
    let found = rates(whole.as_deref());
    assert_eq!(values(&found), gained(before, counted(&machine), SECOND));
    assert_eq!(whole.unwrap().words().value().map(String::as_str), Some("5.0 x16"));
    for part in ["0000:41:00.0/1", "0000:41:00.0/5"] {
        assert_eq!([link(&first, part), link(&second, part)], [None, None], "{part}");
    }
    let mut source = of_tree(machine.tree(), clock as _);
    let reading = source.read();
    assert_eq!(names(&reading).len(), 4);
    assert_eq!(reading.status.errors, []);
}

#[test]
fn nvlink_rates_follow_from_the_kib_that_are_counted_and_start_again_with_the_counters() {
    let mut watched = Watched::new();
    let count = |machine: &Machine, kib: [u64; 2]| {
        machine.write("nvml/gpu0/nvlink_links", "18 1\n");
        for (file, kib) in ["nvlink_rx", "nvlink_tx"].into_iter().zip(kib) {
            machine.write(&format!("nvml/gpu0/{file}"), format!("{kib}\n"));
        }
    };
    let rates = |reading: &SourceReading| {
        let links = reading.devices[0].telemetry.nvlink.clone().unwrap();
        let rates = [links.nvlink_received_bytes_per_second, links.nvlink_sent_bytes_per_second];
        rates.map(|rate| rate.value().copied().ok_or(rate.absence().map(|(reason, _)| reason)))
    };
    count(&watched.machine, [1000, 1000]);
    assert_eq!(rates(&watched.read_after(SECOND)), [Err(Some(Absence::NotYet)); 2]);
    count(&watched.machine, [1000, 3000]);
    assert_eq!(rates(&watched.read_after(2 * SECOND)), [Ok(0), Ok(1000 * 1024)]);
    // The driver was loaded again.
    count(&watched.machine, [5, 3000]);
    let expected = [Err(Some(Absence::Unknown)), Ok(0)];
    assert_eq!(rates(&watched.read_after(SECOND)), expected);
    count(&watched.machine, [6, 3000]);
    assert_eq!(rates(&watched.read_after(SECOND)), [Ok(1024), Ok(0)]);
    // More than any link carries.
    count(&watched.machine, [1 << 40, 3000]);
    assert_eq!(rates(&watched.read_after(SECOND))[0], Err(Some(Absence::Implausible)));
}
