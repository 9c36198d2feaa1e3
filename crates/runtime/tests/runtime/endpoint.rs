//! Answers, their parts, the ledger's descriptor, and the socket's name.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;

use crate::runtime::asking::{Asked, ask, connect, endpoints, exchange, numbered, started};
use telltale_harness::Scratch;
use telltale_ledger::LedgerReader;
use telltale_runtime::{
    KernelCache, MemoryKind, MemorySpace, Programs, Quota, RingBuffer, Traffic,
};
use telltale_schema::snapshot::MetricValue;
use telltale_wire::{DeviceSelector, Query, QueryKind, RefusalReason, Reply};

#[test]
fn files_are_there_while_a_device_is_open_and_only_then() {
    let scratch = Scratch::new();
    let runtime = started(&scratch);
    assert!(endpoints(&scratch).is_empty());
    for _ in 0..3 {
        let first = runtime.open_device(numbered(0));
        let second = runtime.open_device(numbered(1));
        drop(first);
        let names = endpoints(&scratch);
        assert_eq!(names, [format!("metrics_{}.sock", std::process::id())]);
        let mode = std::fs::metadata(scratch.join(&names[0])).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        drop(second);
        assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
    }
    assert_eq!(runtime.problems(), []);
}

#[test]
fn each_query_type_answers_its_part() {
    let scratch = Scratch::new();
    let runtime = started(&scratch);
    let device = runtime.open_device(numbered(4));
    device.allocate(MemoryKind::Dram, 64, 1000);
    device.allocation_failed(MemoryKind::L1);
    device.count_operations(7);
    device.count_traffic(Traffic { host_to_device_bytes: 10, device_to_host_bytes: 0 });
    device.report_ring_buffer(RingBuffer { total_bytes: 100, used_bytes: 50, programs: 2 });
    device.report_quota(Quota { space: MemorySpace::Dram, limit_bytes: 5000 });
    device.report_throttled(true);
    device.report_throttled(true);
    runtime.report_programs(Programs { cached: 3, hits: Some(1), ..Programs::default() });
    runtime.report_kernel_cache(KernelCache { bytes: 9, evictions: None });
    runtime.registry().counter("steps").help("Training steps.").register().add(5);

    let all = ask(&scratch, Query::of(QueryKind::All));
    assert_eq!(all.identity.pid, std::process::id());
    assert_eq!(all.runtime, "test 1");
    assert!(all.uptime_ns > Some(0));
    let [seen] = &all.devices[..] else { panic!("one device is open") };
    assert_eq!(seen.logical_id, Some(4));
    let dram = seen.kinds.iter().find(|kind| kind.kind == MemoryKind::Dram).unwrap();
    assert_eq!((dram.usage.live_bytes, dram.usage.peak_bytes), (1000, 1000));
    let l1 = seen.kinds.iter().find(|kind| kind.kind == MemoryKind::L1).unwrap();
    assert_eq!(l1.usage.failed_allocations, 1);
    assert_eq!(seen.operations, Some(7));
    assert_eq!(seen.traffic.map(|traffic| traffic.host_to_device_bytes), Some(10));
    assert_eq!(seen.ring_buffer.map(|ring| ring.used_bytes), Some(50));
    assert_eq!(seen.quotas, [Quota { space: MemorySpace::Dram, limit_bytes: 5000 }]);
    assert_eq!(seen.throttling.map(|state| (state.active, state.events)), Some((true, 1)));
    assert_eq!(all.programs.as_ref().map(|programs| programs.cached), Some(3));
    assert_eq!(all.kernel_cache.map(|cache| cache.bytes), Some(9));
    let steps = all.metrics.iter().find(|metric| metric.name == "steps").unwrap();
    assert_eq!(steps.value, MetricValue::Counter(5));

    let memory = ask(&scratch, Query::of(QueryKind::Memory));
    assert_eq!(memory.devices[0].kinds, seen.kinds);
    assert_eq!((memory.programs, memory.metrics.len()), (None, 0));
    let uptime = ask(&scratch, Query::of(QueryKind::Uptime));
    assert!(uptime.devices[0].kinds.is_empty() && uptime.uptime_ns > Some(0));
    let kernels = ask(&scratch, Query::of(QueryKind::Kernels));
    assert!(kernels.programs.is_some() && kernels.devices[0].ring_buffer.is_some());
    assert_eq!(kernels.devices[0].operations, None);
    let performance = ask(&scratch, Query::of(QueryKind::Performance));
    assert!(performance.metrics.len() > 1 && performance.devices[0].operations.is_some());
    assert!(performance.devices[0].kinds.is_empty());
}

#[test]
fn who_has_the_ledger_is_spared_memory_and_devices_that_have_nothing_else() {
    let scratch = Scratch::new();
    let runtime = started(&scratch);
    let devices = [2, 3].map(|logical_id| runtime.open_device(numbered(logical_id)));
    for (address, device) in (1..).zip(&devices) {
        device.allocate(MemoryKind::Dram, address, 10);
    }
    devices[1].count_operations(5);
    let all = ask(&scratch, Query::of(QueryKind::All));
    assert!(all.devices.len() == 2 && all.devices.iter().all(|one| !one.kinds.is_empty()));
    let spared = ask(&scratch, Query { knows_memory: true, ..Query::of(QueryKind::All) });
    let [operating] = &spared.devices[..] else { panic!("{:?}", spared.devices) };
    assert_eq!((operating.logical_id, operating.operations), (Some(3), Some(5)));
    assert_eq!(operating.kinds, []);
    assert_eq!(spared.metrics.len(), all.metrics.len());
}

#[test]
fn one_device_can_be_asked_for_and_one_that_is_not_open_is_refused() {
    let scratch = Scratch::new();
    let runtime = started(&scratch);
    let _devices = [2, 3].map(|logical_id| runtime.open_device(numbered(logical_id)));
    let mut query = Query::of(QueryKind::All);
    query.device = DeviceSelector::One(3);
    let report = ask(&scratch, query);
    assert_eq!(report.devices.len(), 1);
    assert_eq!(report.devices[0].logical_id, Some(3));
    query.device = DeviceSelector::One(9);
    let Asked { reply: Reply::Refused(refusal), .. } =
        exchange(&mut connect(&scratch), &query.encode())
    else {
        panic!("device 9 is not open")
    };
    assert_eq!(refusal.reason, RefusalReason::NoSuchDevice);
}

#[test]
fn the_ledger_comes_with_the_answer_and_goes_on_counting() {
    let scratch = Scratch::new();
    let runtime = started(&scratch);
    let device = runtime.open_device(numbered(0));
    let query = Query { want_ledger: true, ..Query::of(QueryKind::Uptime) };
    let mut stream = connect(&scratch);
    let asked = exchange(&mut stream, &query.encode());
    let Reply::Report(report) = asked.reply else { panic!("refused") };
    assert!(report.ledger_follows);
    let descriptor = asked.descriptor.expect("a descriptor came along");
    assert!(rustix::io::write(&descriptor, b"x").is_err(), "the descriptor is read-only");
    let mut reader = LedgerReader::from_descriptor(descriptor).unwrap();
    for round in 1..4u64 {
        device.allocate(MemoryKind::Dram, round, 10);
        let usage = reader.read().unwrap().usage[0].2;
        assert_eq!(usage.live_bytes, 10 * round);
    }
    // The same connection serves again, this time without a descriptor.
    let again = exchange(&mut stream, &Query::of(QueryKind::Memory).encode());
    assert!(again.descriptor.is_none() && matches!(again.reply, Reply::Report(_)));
}

#[test]
fn a_stale_socket_is_replaced_and_a_live_one_is_left_alone() {
    let scratch = Scratch::new();
    let plain = format!("metrics_{}.sock", std::process::id());
    drop(UnixListener::bind(scratch.join(&plain)).unwrap());
    let runtime = started(&scratch);
    let device = runtime.open_device(numbered(0));
    assert_eq!(endpoints(&scratch), [plain.as_str()]);
    ask(&scratch, Query::of(QueryKind::Uptime));
    drop(device);

    let _other = UnixListener::bind(scratch.join(&plain)).unwrap();
    let device = runtime.open_device(numbered(0));
    let names = endpoints(&scratch);
    assert_eq!(names.len(), 2);
    assert!(names.iter().any(|name| name.starts_with(&format!("metrics_{}-", std::process::id()))));
    drop(device);
    assert_eq!(endpoints(&scratch), [plain.as_str()]);
    assert_eq!(runtime.problems(), []);
}

#[test]
fn a_program_that_is_executed_inherits_nothing() {
    let scratch = Scratch::new();
    let runtime = started(&scratch);
    let _device = runtime.open_device(numbered(0));
    let _connection = connect(&scratch);
    let mut list = std::process::Command::new("ls");
    list.args(["-l", "/proc/self/fd"]).stdin(std::process::Stdio::null());
    let output = list.output().unwrap();
    let listing = String::from_utf8(output.stdout).unwrap();
    let inherited = ["metrics_", "ledger_", "socket:", "eventfd"];
    assert!(!inherited.iter().any(|word| listing.contains(word)), "{listing}");
}
