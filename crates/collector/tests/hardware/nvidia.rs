//! GPUs of a library that stands in for NVIDIA's (`nvml.c`): what is made of its answers, its errors,
//! its silence and its absurdities. Nothing here needs a GPU.

mod captured;
mod counters;
mod events;
pub(crate) mod health;
mod process_use;
mod traffic;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use telltale_collector::clock::SystemClock;
use telltale_collector::hardware::NvidiaSource;
use telltale_collector::source::{DeviceReading, DriverUsage, HardwareSource, SourceReading};
use telltale_collector::tree::Tree;
use telltale_collector::{CollectOptions, Collector, NvmlUse};
use telltale_harness::compile_c;
use telltale_schema::clock::Clock;
use telltale_schema::device::DeviceClass;
use telltale_schema::memory::{MemoryKind, MemorySpace};
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::ProcessSource;

use crate::hardware::conformance::{Hardware, TIMEOUT};
use crate::hardware::tree::Machine;

const MIB: u64 = 1 << 20;
const LIBRARY: &str = "nvml/libnvidia-ml.so.1";
/// Starting the library, and all of a scan, may take this long.
const DEADLINE: Duration = Duration::from_millis(1500);

/// The library, compiled once for all tests of this program.
fn compiled() -> &'static Path {
    static COMPILED: OnceLock<PathBuf> = OnceLock::new();
    COMPILED.get_or_init(|| compile("nvml", &[]))
}

fn compile(name: &str, more: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hardware/nvml.c");
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    compile_c(&source, &out, &[&["-shared", "-fPIC", "-O1", "-ldl"], more].concat())
}

fn of_tree(tree: Arc<Tree>, clock: Arc<dyn Clock>) -> NvidiaSource {
    let library = tree.path().join(LIBRARY);
    NvidiaSource::new(tree, clock, NvmlUse::At(library), (TIMEOUT, DEADLINE))
}

fn source(machine: &Machine) -> NvidiaSource {
    of_tree(machine.tree(), Arc::new(SystemClock))
}

/// Two GPUs of which the second one draws as well.
fn furnish(machine: &Machine) {
    machine.write("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX 580.95.05\n");
    machine.write("nvml/count", "2\n");
    machine.write("nvml/driver_version", "580.95.05\n");
    // A copy: the loader takes links to one file for one library.
    fs::copy(compiled(), machine.path().join(LIBRARY)).unwrap();
    gpu(machine, 0, "00000000:41:00.0", "NVIDIA H200");
    gpu(machine, 1, "00000000:C1:00.0", "NVIDIA GeForce RTX 4090");
    machine.write("nvml/gpu1/mig_mode", "0\n");
    machine.write("nvml/gpu1/graphics", "70 104857600\n72 18446744073709551615\n");
    machine.remove("nvml/gpu1/serial");
    for pid in [70, 71, 72] {
        let name = format!("proc/{pid}");
        let stat = format!("{pid} (train) S 1 70 70 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 500 0 0\n");
        machine.write(&format!("{name}/stat"), stat);
        let status = format!("Name:\ttrain\nUid:\t0\t0\t0\t0\nNSpid:\t{pid}\n");
        machine.write(&format!("{name}/status"), status);
        machine.write(&format!("{name}/cmdline"), "train\0--fast\0");
    }
}

fn gpu(machine: &Machine, index: u32, pci: &str, name: &str) {
    let uuid = format!("GPU-6f4d1a0e-0000-4000-8000-00000000000{index}\n");
    let files: [(&str, &str); 22] = [
        ("handle", "1\n"),
        ("pci", pci),
        ("name", name),
        ("uuid", &uuid),
        ("serial", "1650123456789\n"),
        ("vbios", "96.00.74.00.01\n"),
        ("memory", "1073741824 85899345920\n"),
        ("utilization", "37 5\n"),
        ("temperature", "41\n"),
        ("slowdown", "89\n"),
        ("power", "119500\n"),
        ("power_limit", "700000\n"),
        ("sm_clock", "1980\n"),
        ("memory_clock", "3201\n"),
        ("fan", "1400\n"),
        ("fan_percent", "57\n"),
        ("throttled_by", "36\n"),
        ("corrected", "12\n"),
        ("uncorrected", "0\n"),
        ("pcie_rx", "81604378624\n"),
        ("pcie_tx", "17179869184\n"),
        ("compute", "70 104857600\n71 524288000\n"),
    ];
    for (file, text) in files {
        machine.write(&format!("nvml/gpu{index}/{file}"), text);
    }
}

fn furnished() -> Machine {
    let machine = Machine::new();
    furnish(&machine);
    machine
}

fn names(reading: &SourceReading) -> Vec<String> {
    reading.devices.iter().map(|device| device.identity.display_id()).collect()
}

fn reasons(reading: &SourceReading) -> Vec<(&str, Absence)> {
    let errors = reading.status.errors.iter();
    errors.map(|error| (error.subject.as_str(), error.reason)).collect()
}

fn busy(device: &DeviceReading) -> &Reading<f64> {
    &device.telemetry.load.as_ref().unwrap().busy_ratio
}

fn users(device: &DeviceReading) -> Vec<(u32, u64)> {
    let memory = device.memory.as_ref().unwrap();
    let counted = |usage: &DriverUsage| Some((usage.pid, usage.kinds.first()?.1));
    memory.processes.iter().filter_map(counted).collect()
}

#[test]
fn nvidia_conforms() {
    Hardware {
        source: |tree, clock| Box::new(of_tree(tree, clock)),
        furnish: |machine| {
            furnish(machine);
            counters::furnish_both(machine);
        },
        files: &[
            "nvml/count",
            "nvml/gpu0/handle",
            "nvml/gpu0/pci",
            "nvml/gpu0/memory",
            "nvml/gpu0/compute",
            "nvml/gpu1/graphics",
            "nvml/gpu0/utilization",
            "nvml/gpu0/temperature",
            "nvml/gpu1/power_limit",
            "nvml/gpu1/memory_clock",
            "nvml/gpu1/fan",
            "nvml/gpu1/throttled_by",
            "nvml/gpu1/mig_mode",
            "nvml/gpu0/corrected",
            "nvml/gpu0/pcie_rx",
            "nvml/gpu1/pcie_tx",
            "nvml/gpu0/corrected_lifetime",
            "nvml/gpu0/sram_uncorrected",
            "nvml/gpu0/sram_uncorrected_lifetime",
            "nvml/gpu0/energy",
            "nvml/gpu0/power_range",
            "nvml/gpu0/encoder",
            "nvml/gpu0/remapped_rows",
            "nvml/gpu0/pcie_replays",
            "nvml/gpu1/nvlink_links",
            "nvml/gpu1/nvlink_up",
            "nvml/gpu0/process_use",
        ],
    }
    .conforms();
}

#[test]
fn a_gpu_is_reported_with_everything_that_its_library_reports() {
    let machine = furnished();
    let reading = source(&machine).read();
    assert_eq!(reading.status.errors, []);
    assert_eq!(names(&reading), ["0000:41:00.0", "0000:c1:00.0"]);
    let first = &reading.devices[0];
    let identity = first.identity.other().unwrap();
    assert_eq!((identity.vendor.as_str(), identity.class), ("nvidia", DeviceClass::Gpu));
    assert_eq!(identity.model.as_deref(), Some("NVIDIA H200"));
    assert_eq!((identity.driver.as_deref(), identity.driver_ordinal), (Some("nvidia"), Some(0)));
    assert_eq!(identity.uuid.as_deref(), Some("GPU-6f4d1a0e-0000-4000-8000-000000000000"));
    assert_eq!(identity.serial.as_deref(), Some("1650123456789"));
    let telemetry = &first.telemetry;
    assert_eq!(telemetry.temperature_celsius.value(), Some(&41.0));
    assert_eq!(telemetry.temperature_limit_celsius.value(), Some(&89.0));
    assert_eq!(telemetry.power_watts.value(), Some(&119.5));
    assert_eq!(telemetry.power_limit_watts.value(), Some(&700.0));
    assert_eq!(telemetry.aiclk_hertz.value(), Some(&1_980_000_000));
    assert_eq!(telemetry.fan_revolutions_per_minute.value(), Some(&1400));
    assert_eq!(telemetry.fan_ratio.value(), Some(&0.57));
    assert_eq!(telemetry.voltage_volts.absence().unwrap().0, Absence::Unsupported);
    assert_eq!(telemetry.firmware["vbios_version"], "96.00.74.00.01");
    assert_eq!(telemetry.firmware["driver_version"], "580.95.05");
    let load = telemetry.load.as_ref().unwrap();
    assert_eq!(load.busy_ratio.value(), Some(&0.37));
    assert_eq!(load.memory_busy_ratio.value(), Some(&0.05));
    assert_eq!(load.memory_clock_hertz.value(), Some(&3_201_000_000));
    let held: Vec<&str> = load.throttled_by.value().unwrap().iter().map(String::as_str).collect();
    assert_eq!(held, ["sw_power_cap", "sw_thermal_slowdown"]);
    let counts = telemetry.memory_counts.as_ref().unwrap();
    assert_eq!(counts.corrected_errors_total.value(), Some(&12));
    assert_eq!(counts.uncorrected_errors_total.value(), Some(&0));
    let memory = first.memory.as_ref().unwrap();
    assert_eq!(memory.used_bytes.value(), Some(&(1024 * MIB)));
    assert_eq!(memory.capacity_bytes.value(), Some(&(80 << 30)));
    assert_eq!(users(first), [(70, 100 * MIB), (71, 500 * MIB)]);
}

#[test]
fn a_process_in_two_lists_counts_once_and_one_without_a_value_only_holds() {
    let machine = furnished();
    // 99 is of another PID namespace: it is not in /proc.
    machine.write("nvml/gpu1/compute", "70 104857600\n99 524288000\n98 1\n");
    let reading = source(&machine).read();
    let second = &reading.devices[1];
    assert_eq!(users(second), [(70, 100 * MIB)]);
    let holders = second.holders.value().unwrap();
    let held: Vec<_> = holders.iter().map(|one| (one.pid, one.open_descriptors)).collect();
    assert_eq!(held, [(Some(70), 1), (Some(72), 1), (None, 2)]);
    assert!(second.identity.other().unwrap().serial.is_none());
}

#[test]
fn in_a_pid_namespace_only_who_has_a_gpu_open_is_believed_to_be_meant() {
    let machine = furnished();
    machine.link("proc/self/ns/pid", "pid:[4026532999]");
    machine.link("proc/70/fd/3", "/dev/nvidia0");
    machine.link("proc/71/fd/3", "/dev/null");
    let reading = source(&machine).read();
    assert_eq!(users(&reading.devices[0]), [(70, 100 * MIB)]);
    machine.remove("proc/self/ns/pid");
    machine.link("proc/self/ns/pid", "pid:[4026531836]");
    assert_eq!(users(&source(&machine).read().devices[0]).len(), 2);
}

#[test]
fn what_a_gpu_does_not_support_is_absent_and_no_error() {
    let machine = furnished();
    for file in ["utilization", "slowdown", "memory", "compute", "power_limit"] {
        machine.write(&format!("nvml/gpu0/{file}"), "!NOT_SUPPORTED");
    }
    // As an H200 says it, which has no fan.
    machine.write("nvml/gpu0/fan", "!INVALID_ARGUMENT");
    machine.write("nvml/gpu0/fan_percent", "!INVALID_ARGUMENT");
    machine.write("nvml/gpu0/power", "!NO_PERMISSION");
    machine.write("nvml/gpu0/gpu_max", "95\n");
    let reading = source(&machine).read();
    assert_eq!(reading.status.errors, []);
    let first = &reading.devices[0];
    assert_eq!(busy(first).absence().unwrap().0, Absence::Unsupported);
    let telemetry = &first.telemetry;
    assert_eq!(telemetry.temperature_limit_celsius.value(), Some(&95.0), "the next best limit");
    assert_eq!(telemetry.power_watts.absence().unwrap().0, Absence::Permission);
    let memory = first.memory.as_ref().unwrap();
    assert_eq!(memory.used_bytes.absence().unwrap().0, Absence::Unsupported);
    assert_eq!(first.holders.absence().unwrap().0, Absence::Unsupported);
    assert_eq!(telemetry.temperature_celsius.value(), Some(&41.0));
    let unsupported = [
        telemetry.fan_revolutions_per_minute.absence(),
        telemetry.fan_ratio.absence(),
        telemetry.axiclk_hertz.absence(),
        telemetry.heartbeat_total.absence(),
    ];
    let reasons = unsupported.map(|absence| absence.map(|(reason, _)| reason));
    assert_eq!(reasons, [Some(Absence::Unsupported); 4]);
}

#[test]
fn a_gpu_that_fell_off_the_bus_is_shown_as_gone_and_complains_once() {
    let machine = furnished();
    let mut source = source(&machine);
    source.read();
    let calls = ["handle", "pci", "memory", "utilization", "temperature", "power", "compute"];
    for lost in [&calls[..1], &calls[1..]] {
        for file in lost {
            machine.write(&format!("nvml/gpu0/{file}"), "!GPU_IS_LOST");
        }
        let reading = source.read();
        assert_eq!(names(&reading), ["0000:41:00.0", "0000:c1:00.0"], "it is still known");
        assert_eq!(reasons(&reading), [("0000:41:00.0", Absence::Gone)]);
        let first = &reading.devices[0];
        assert_eq!(first.identity.product(), "NVIDIA H200");
        assert_eq!(first.telemetry.temperature_celsius.absence().unwrap().0, Absence::Gone);
        assert!(first.holders.value().is_none() && users(first).is_empty());
        assert_eq!(reading.devices[1].telemetry.temperature_celsius.value(), Some(&41.0));
        machine.write("nvml/gpu0/handle", "1\n");
    }
    gpu(&machine, 0, "00000000:41:00.0", "NVIDIA H200");
    assert_eq!(source.read().status.errors, []);
}

#[test]
fn absurd_values_are_refused_and_the_parts_still_add_up() {
    let machine = furnished();
    machine.write("run/.keep", "");
    machine.write("nvml/gpu0/memory", "90000000000 85899345920\n");
    machine.write("nvml/gpu0/utilization", "4294967295 101\n");
    machine.write("nvml/gpu0/temperature", "4294967295\n");
    machine.write("nvml/gpu0/power", "4294967295\n");
    machine.write("nvml/gpu1/compute", "70 104857600\n71 99999999999999\n");
    machine.write("nvml/gpu1/graphics", "");
    machine.fail("nvml/gpu1/graphics", "NOT_SUPPORTED");
    let reading = source(&machine).read();
    let first = &reading.devices[0];
    let implausible = |reading: &Reading<f64>| reading.absence().unwrap().0 == Absence::Implausible;
    assert!(implausible(busy(first)) && implausible(&first.telemetry.power_watts));
    assert!(implausible(&first.telemetry.temperature_celsius));
    let memory = first.memory.as_ref().unwrap();
    assert_eq!(memory.used_bytes.absence().unwrap().0, Absence::Implausible);
    let expected = [("0000:41:00.0", Absence::Implausible), ("0000:c1:00.0", Absence::Implausible)];
    assert_eq!(reasons(&reading), expected);
    let snapshot = collect(&machine, NvmlUse::At(machine.path().join(LIBRARY))).0;
    let second = snapshot.devices.iter().find(|one| one.id == "0000:c1:00.0").unwrap();
    let parts = second.kind(MemoryKind::Dram).unwrap();
    assert_eq!((parts.total_bytes, parts.processes_bytes), (1024 * MIB, 100 * MIB));
    assert_eq!((parts.unattributed_bytes, parts.ghost_bytes), (924 * MIB, 0));
    assert_eq!(second.space(MemorySpace::Dram).unwrap().used_bytes.value(), Some(&(1024 * MIB)));
    let train = snapshot.processes.iter().find(|process| process.pid == Some(70)).unwrap();
    assert_eq!((train.name.as_str(), train.known_by), ("train", Some(ProcessSource::Driver)));
}

#[test]
fn a_call_that_hangs_costs_its_own_answer() {
    let machine = furnished();
    let mut source = source(&machine);
    let before = source.read();
    let hang = machine.hang("nvml/gpu0/temperature");
    let users_hang = machine.hang("nvml/gpu1/compute");
    for _ in 0..2 {
        let reading = source.read();
        let expected = [("0000:41:00.0", Absence::TimedOut), ("0000:c1:00.0", Absence::TimedOut)];
        assert_eq!(reasons(&reading), expected);
        let (now, then) = (&reading.devices[0], &before.devices[0]);
        let temperature = |device: &DeviceReading| device.telemetry.temperature_celsius.clone();
        assert_eq!(temperature(now), temperature(then), "the old value with its old time");
        assert_ne!(busy(now), busy(then), "the others are asked");
        assert_eq!(users(now).len(), 2);
        // Pids of a while ago may be others' by now.
        let second = &reading.devices[1];
        assert_eq!(second.holders.absence().unwrap().0, Absence::TimedOut);
        assert!(users(second).is_empty());
    }
    drop((hang, users_hang));
}

#[test]
fn a_library_that_hangs_when_it_starts_is_given_up_and_tried_again() {
    let machine = furnished();
    machine.write("nvml/init", "1\n");
    let hang = machine.hang("nvml/init");
    let mut source = source(&machine);
    for _ in 0..2 {
        let reading = source.read();
        assert!(reading.devices.is_empty() && reading.absent.is_none());
        assert_eq!(reasons(&reading), [("nvml", Absence::TimedOut)]);
    }
    drop(hang);
    machine.write("nvml/init", "1\n");
    telltale_harness::wait_until("the library to start", Duration::from_secs(20), || {
        source.read().devices.len() == 2
    });
}

#[test]
fn what_is_not_here_is_no_error_and_what_is_forbidden_is_one() {
    let machine = furnished();
    let cases = [
        ("!DRIVER_NOT_LOADED", None, "no driver"),
        ("!NO_PERMISSION", Some(Absence::Permission), "/dev/nvidiactl"),
        ("!LIB_RM_VERSION_MISMATCH", Some(Absence::Failed), "restart the machine"),
    ];
    for (text, error, words) in cases {
        machine.write("nvml/init", text);
        let reading = source(&machine).read();
        assert!(reading.devices.is_empty());
        let reported = match error {
            None => reading.absent.clone().unwrap(),
            Some(reason) => {
                assert_eq!(reasons(&reading), [("nvml", reason)]);
                reading.status.errors[0].detail.clone()
            }
        };
        assert!(reported.contains(words), "{reported}");
        assert_eq!(error.is_none(), reading.status.errors.is_empty());
    }
    machine.remove(LIBRARY);
    let reading = source(&machine).read();
    assert_eq!(reading.status.errors, []);
    assert!(reading.absent.unwrap().contains("there is no libnvidia-ml.so.1"));
    machine.write(LIBRARY, "no library at all");
    assert!(source(&machine).read().absent.is_some());
}

/// Divides GPU 0: an instance that one process has, and one that two compute instances share.
fn divide(machine: &Machine) {
    machine.write("nvml/gpu0/mig_mode", "1\n");
    machine.write("nvml/gpu0/mig_most", "7\n");
    machine.write("nvml/gpu0/utilization", "!NOT_SUPPORTED");
    machine.write("nvml/gpu0/memory", "12884901888 85899345920\n");
    machine.write("nvml/gpu0/compute", "70 104857600 1\n71 524288000 5\n72 1048576 5\n");
    let instances = [
        (0, "5", "NVIDIA H200 MIG 1c.2g.35gb", "4294967296 21474836480", "71 524288000 5\n"),
        (2, "5", "NVIDIA H200 MIG 1c.2g.35gb", "4294967296 21474836480", "72 1048576 5\n"),
        (3, "1", "NVIDIA H200 MIG 1g.18gb", "1073741824 10737418240", "70 104857600 1\n"),
    ];
    for (index, id, name, memory, compute) in instances {
        let files = [("instance", id), ("name", name), ("memory", memory), ("compute", compute)];
        for (file, text) in files {
            machine.write(&format!("nvml/gpu0/mig{index}/{file}"), text);
        }
        machine.write(&format!("nvml/gpu0/mig{index}/uuid"), format!("MIG-{index}\n"));
    }
}

#[test]
fn the_instances_of_a_divided_gpu_are_devices_and_the_parts_add_up() {
    let machine = furnished();
    machine.write("run/.keep", "");
    divide(&machine);
    let reading = source(&machine).read();
    assert_eq!(reading.status.errors, []);
    let expected = ["0000:41:00.0", "0000:41:00.0/1", "0000:41:00.0/5", "0000:c1:00.0"];
    assert_eq!(names(&reading), expected);
    let memory = |place: usize| {
        let memory = reading.devices[place].memory.as_ref().unwrap();
        let number = |reading: &Reading<u64>| reading.value().map(|bytes| bytes / MIB);
        (number(&memory.used_bytes), number(&memory.capacity_bytes))
    };
    // Two compute instances of one GPU instance have its memory once.
    assert_eq!(memory(1), (Some(1024), Some(10 << 10)));
    assert_eq!(memory(2), (Some(4096), Some(20 << 10)));
    assert_eq!(memory(0), (Some(12288 - 1024 - 4096), Some(50 << 10)), "what no instance has");
    let part = reading.devices[2].identity.other().unwrap();
    assert_eq!(
        (part.class, part.model.as_deref()),
        (DeviceClass::Partition, Some("NVIDIA H200 MIG 2g.35gb"))
    );
    assert_eq!((part.parent.as_deref(), part.uuid.as_deref()), (Some("0000:41:00.0"), None));
    assert_eq!(reading.devices[1].identity.other().unwrap().uuid.as_deref(), Some("MIG-3"));
    assert!(users(&reading.devices[0]).is_empty());
    assert_eq!(users(&reading.devices[1]), [(70, 100 * MIB)]);
    assert_eq!(users(&reading.devices[2]), [(71, 500 * MIB), (72, MIB)]);
    let sensor = &reading.devices[1].telemetry.temperature_celsius;
    assert_eq!(sensor.absence(), Some((Absence::Unsupported, "measured of the whole GPU alone")));
    let snapshot = collect(&machine, NvmlUse::At(machine.path().join(LIBRARY))).0;
    let used = snapshot.devices.iter().filter(|one| one.id.starts_with("0000:41"));
    let used: u64 = used.filter_map(|one| one.space(MemorySpace::Dram)?.used_bytes.value()).sum();
    assert_eq!(used, 12288 * MIB, "the GPU and its instances have what NVML says of all of it");
    let held = |pid: u32| {
        let process = snapshot.processes.iter().find(|process| process.pid == Some(pid)).unwrap();
        let ids = process.devices.iter().map(|held| snapshot.devices[held.device].id.as_str());
        ids.collect::<Vec<_>>()
    };
    assert_eq!(held(71), ["0000:41:00.0/5", "0000:c1:00.0"]);
}

#[test]
fn instances_that_cannot_be_read_or_true_leave_the_rest_unknown() {
    let machine = furnished();
    divide(&machine);
    let mut source = source(&machine);
    source.read();
    let capacity = |reading: &SourceReading, place: usize| {
        reading.devices[place].memory.as_ref().unwrap().capacity_bytes.clone()
    };
    machine.write("nvml/gpu0/mig3/memory", "1 99999999999\n");
    let reading = source.read();
    assert_eq!(reasons(&reading), [("0000:41:00.0", Absence::Implausible)]);
    assert_eq!(capacity(&reading, 0).absence().unwrap().0, Absence::Implausible);
    machine.write("nvml/gpu0/mig3/memory", "!NO_PERMISSION");
    let reading = source.read();
    assert_eq!(capacity(&reading, 0).absence().unwrap().0, Absence::Unknown);
    assert_eq!(capacity(&reading, 1).absence().unwrap().0, Absence::Permission);
    machine.write("nvml/gpu0/mig3/memory", "1073741824 10737418240\n");
    // One that hangs leaves what was known of memory, and no holder.
    let hang = machine.hang("nvml/gpu0/mig0/compute");
    let reading = source.read();
    assert_eq!(reasons(&reading), [("0000:41:00.0", Absence::TimedOut)]);
    assert_eq!(names(&reading).len(), 4);
    assert_eq!(reading.devices[1].holders.absence().unwrap().0, Absence::TimedOut);
    drop(hang);
    machine.write("nvml/gpu0/mig0/compute", "");
    machine.fail("nvml/gpu0/mig0/compute", "NOT_SUPPORTED");
    machine.write("nvml/gpu0/mig_mode", "!GPU_IS_LOST");
    telltale_harness::wait_until("the call to come back", Duration::from_secs(20), || {
        let reading = source.read();
        names(&reading).len() == 4 && reasons(&reading) == [("0000:41:00.0", Absence::Gone)]
    });
    machine.write("nvml/gpu0/mig_mode", "0\n");
    let reading = source.read();
    assert_eq!(names(&reading).len(), 2, "it is whole again");
    assert_eq!(capacity(&reading, 0).value(), Some(&(80 << 30)));
}

#[test]
fn gpus_that_all_sleep_are_not_woken_up() {
    let machine = furnished();
    let functions = "sys/bus/pci/drivers/nvidia";
    for pci in ["0000:41:00.0", "0000:c1:00.0"] {
        machine.write(&format!("{functions}/{pci}/power/runtime_status"), "suspended\n");
    }
    machine.write(&format!("{functions}/new_id"), "");
    // A reader would hang.
    let hang = machine.hang("nvml/count");
    let reading = source(&machine).read();
    assert!(reading.devices.is_empty() && reading.status.errors.is_empty());
    assert!(reading.absent.unwrap().contains("would wake them up"));
    drop(hang);
    machine.write("nvml/count", "2\n");
    machine.write(&format!("{functions}/0000:41:00.0/power/runtime_status"), "active\n");
    assert_eq!(source(&machine).read().devices.len(), 2);
}

fn collect(
    machine: &Machine,
    nvml: NvmlUse,
) -> (telltale_schema::snapshot::Snapshot, Vec<(&'static str, String)>) {
    let options = CollectOptions {
        root: machine.path().to_owned(),
        runtime_dir: Some(machine.path().join("run")),
        nvml,
        ..CollectOptions::default()
    };
    let mut collector = Collector::new(options).unwrap();
    let snapshot = collector.collect();
    (snapshot, collector.absent_sources())
}

#[test]
fn under_another_root_this_machines_library_is_not_asked() {
    let machine = furnished();
    machine.write("run/.keep", "");
    let (snapshot, absent) = collect(&machine, NvmlUse::OfThisMachine);
    assert!(!snapshot.devices.iter().any(|device| device.identity.vendor() == "nvidia"));
    let (_, why) = absent.iter().find(|(name, _)| *name == "nvidia").unwrap();
    assert!(why.contains("not asked, as NVML reports this machine"), "{why}");
    let (_, absent) = collect(&machine, NvmlUse::Never);
    assert!(absent.iter().any(|(name, why)| *name == "nvidia" && why.contains("not asked")));
}
