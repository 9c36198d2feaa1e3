//! What the library says of a sick GPU becomes what its rule says within two seconds.

use std::sync::Arc;
use std::time::{Duration, Instant};

use telltale_collector::{CollectOptions, Collector, NvmlUse};
use telltale_harness::wait_until;
use telltale_schema::clock::{Clock, ManualClock, Timestamp};
use telltale_schema::health::{FaultKind, HealthState};
use telltale_schema::snapshot::{Device, Snapshot};

use super::events::raise;
use super::{DEADLINE, LIBRARY, furnished};
use crate::hardware::tree::Machine;

const SECOND: u64 = 1_000_000_000;
const SOON: Duration = Duration::from_secs(20);

/// Files of the first GPU, what they say then, and what is found. Well is what comes last.
const SICK: [(&str, &str, &str, FaultKind); 7] = [
    ("uncorrected", "3\n", "0\n", FaultKind::MemoryUncorrected),
    ("corrected", "400\n", "400\n", FaultKind::MemoryCorrectedRising),
    ("sram_uncorrected", "2\n", "0\n", FaultKind::SramUncorrected),
    ("throttled_by", "64\n", "4\n", FaultKind::ThrottledByHardware),
    ("handle", "!GPU_IS_LOST", "1\n", FaultKind::DeviceLost),
    ("remapped_rows", "1 1 1 0\n", "1 1 0 0\n", FaultKind::RowRemapPending),
    ("remapped_rows", "1 1 0 1\n", "1 1 0 0\n", FaultKind::RowRemapFailed),
];

/// What is found in these tests.
pub(crate) const FOUND: [FaultKind; 5] =
    [SICK[0].3, SICK[1].3, FaultKind::DeviceLost, FaultKind::XidError, FaultKind::SourceHangs];

/// A GPU that is collected once a second, and is well at first.
struct Bench {
    machine: Machine,
    collector: Collector,
    clock: Arc<ManualClock>,
}

impl Bench {
    fn new() -> Self {
        Self::within((Duration::from_secs(1), DEADLINE))
    }

    /// One call may take the first of these, all together the second.
    fn within((timeout, deadline): (Duration, Duration)) -> Self {
        let machine = furnished();
        machine.write("nvml/gpu0/remapped_rows", "1 1 0 0\n");
        // Of long ago, which does not make it sick.
        machine.write("nvml/gpu0/sram_uncorrected_lifetime", "1\n");
        machine.write("nvml/gpu0/uncorrected_lifetime", "2\n");
        machine.write("nvml/gpu0/events", "1\n");
        machine.write("nvml/gpu0/xid", "8\n");
        let clock = Arc::new(ManualClock::starting_at(Timestamp(1_700_000_000 * SECOND)));
        let options = CollectOptions {
            root: machine.path().to_owned(),
            nvml: NvmlUse::At(machine.path().join(LIBRARY)),
            timeout,
            deadline,
            ..CollectOptions::default()
        };
        let shared = Arc::clone(&clock) as Arc<dyn Clock>;
        let collector = Collector::with_clock(options, shared).unwrap();
        let mut bench = Self { machine, collector, clock };
        assert_eq!((bench.wrong(), bench.wrong()), (vec![], vec![]));
        bench
    }

    fn next(&mut self) -> Snapshot {
        self.clock.advance_ns(SECOND);
        self.collector.collect()
    }

    fn wrong(&mut self) -> Vec<FaultKind> {
        self.next().wrong().map(|(_, fault)| fault.kind).collect()
    }
}

#[test]
fn what_the_driver_says_of_a_sick_gpu_is_found_in_time() {
    for (file, sick, well, kind) in SICK {
        let mut bench = Bench::new();
        bench.machine.write(&format!("nvml/gpu0/{file}"), sick);
        let within = kind.rule().thresholds.hold_seconds + 2;
        let found = (0..within).map(|_| bench.wrong()).find(|found| !found.is_empty());
        assert_eq!(found.as_deref(), Some(&[kind][..]), "{file}: {sick}");
        assert_eq!(bench.next().devices[0].health().state, kind.state());
        bench.machine.write(&format!("nvml/gpu0/{file}"), well);
        bench.clock.advance_ns(kind.rule().thresholds.quiet_seconds * SECOND);
        assert_eq!(bench.wrong(), [], "{file}: {well}");
    }
}

#[test]
fn a_library_that_does_not_answer_is_found_and_holds_nothing_up() {
    let handles = ["gpu0/handle", "gpu1/handle"];
    for (calls, kind) in
        [(&["gpu0/power"][..], FaultKind::CallHangs), (&handles[..], FaultKind::SourceHangs)]
    {
        let mut bench = Bench::new();
        let hangs: Vec<_> =
            calls.iter().map(|call| bench.machine.hang(&format!("nvml/{call}"))).collect();
        let within = kind.rule().thresholds.hold_seconds + 2;
        let started = Instant::now();
        let found: Vec<_> = (0..within).map(|_| bench.wrong()).collect();
        let bound = 3 * DEADLINE * u32::try_from(within).unwrap();
        assert!(started.elapsed() < bound + SOON, "{calls:?}");
        assert_eq!(found.last().map(Vec::as_slice), Some(&[kind][..]), "{calls:?}: {found:?}");
        drop(hangs);
    }
}

#[test]
fn an_error_of_the_hardware_is_found_and_one_of_a_program_is_not() {
    let mut bench = Bench::new();
    let total = |snapshot: &Snapshot| {
        let errors = snapshot.devices[0].telemetry.errors.as_ref().unwrap();
        errors.xid_errors_total.value().copied()
    };
    wait_until("errors to be followed", SOON, || total(&bench.next()) == Some(0));
    raise(&bench.machine, 0, &[31]);
    wait_until("the error of a program", SOON, || total(&bench.next()) == Some(1));
    assert_eq!(bench.wrong(), []);
    // Programs that had it open fail at once, and the last error is theirs.
    raise(&bench.machine, 0, &[79, 45]);
    wait_until("the error of the hardware", SOON, || bench.wrong() == [FaultKind::XidError]);
    let device = bench.next().devices.remove(0);
    let health = device.health();
    let cause = health.cause.unwrap();
    assert_eq!(health.state, HealthState::Failed);
    assert!(cause.detail.contains("79"), "{}", cause.detail);
    // Lost and read again: it was reset.
    bench.machine.write("nvml/gpu0/handle", "!GPU_IS_LOST");
    assert_eq!(bench.wrong(), [FaultKind::DeviceLost, FaultKind::XidError]);
    bench.machine.write("nvml/gpu0/handle", "1\n");
    wait_until("its errors to be followed again", SOON, || total(&bench.next()) == Some(3));
    assert_eq!(bench.wrong(), []);
}

/// What each question to a GPU reads first; the list of GPUs is answered.
const CALLS: [&str; 17] = [
    "pci",
    "memory",
    "compute",
    "utilization",
    "temperature",
    "power",
    "sm_clock",
    "fan",
    "throttled_by",
    "corrected",
    "pcie_rx",
    "mig_mode",
    "encoder",
    "energy",
    "remapped_rows",
    "nvlink_links",
    "process_use",
];

#[test]
fn a_gpu_that_hangs_in_every_call_is_found_while_the_other_one_answers() {
    // As many calls in a row may hang in one collection, and the other GPU still has its turn.
    let mut bench = Bench::within((Duration::from_millis(250), Duration::from_secs(10)));
    let more =
        [("mig_mode", "0\n"), ("encoder", "0\n"), ("energy", "1\n"), ("nvlink_links", "0\n")];
    for (call, text) in [&more[..], &[("process_use", "70 1 0\n")]].concat() {
        bench.machine.write(&format!("nvml/gpu0/{call}"), text);
    }
    let well = CALLS.map(|call| (call, bench.machine.text(&format!("nvml/gpu0/{call}"))));
    bench.next();
    let hangs = CALLS.map(|call| bench.machine.hang(&format!("nvml/gpu0/{call}")));
    let kind = FaultKind::DriverHangs;
    let within = kind.rule().thresholds.hold_seconds + 1;
    let found = (0..within).map(|_| bench.next()).last().unwrap();
    let kinds = |device: &Device| device.faults.iter().map(|one| one.kind).collect::<Vec<_>>();
    assert_eq!(kinds(&found.devices[0]), [kind]);
    let [sick, other] = [0, 1].map(|gpu| &found.devices[gpu]);
    assert!(sick.is_read(), "what was known of it stays");
    assert_eq!((sick.health().state, other.health().state), (HealthState::Failed, HealthState::Ok));
    assert_eq!(found.faults, [], "the device explains it");
    // However long it lasts.
    for _ in 0..CALLS.len() {
        let snapshot = bench.next();
        assert_eq!(snapshot.wrong().map(|(_, one)| one.kind).collect::<Vec<_>>(), [kind]);
    }
    drop(hangs);
    for (call, text) in well {
        bench.machine.write(&format!("nvml/gpu0/{call}"), text);
    }
    wait_until("it to answer", SOON, || bench.wrong().is_empty());
}
