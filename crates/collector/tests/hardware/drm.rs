//! Cards of the DRM and accel classes: files as amdgpu, i915 and ivpu write them, and descriptors as
//! the kernel's `drm-usage-stats.rst` documents them.

use std::sync::Arc;
use std::time::Duration;

use telltale_collector::clock::SystemClock;
use telltale_collector::hardware::DrmSource;
use telltale_collector::source::{HardwareSource, SourceReading};
use telltale_collector::{CollectOptions, Collector};
use telltale_schema::clock::ManualClock;
use telltale_schema::device::DeviceClass;
use telltale_schema::memory::{MemoryKind, MemorySpace};
use telltale_schema::reading::Absence;
use telltale_schema::snapshot::{Accounting, ProcessSource};

use crate::hardware::conformance::{Hardware, TIMEOUT};
use crate::hardware::tree::Machine;

const MIB: u64 = 1 << 20;
const AMD: &str = "sys/devices/pci0000:00/0000:03:00.0";
const INTEL: &str = "sys/devices/pci0000:00/0000:00:02.0";
const NPU: &str = "sys/devices/pci0000:00/0000:00:0b.0";

fn source(machine: &Machine) -> DrmSource {
    DrmSource::new(machine.tree(), Arc::new(SystemClock), (TIMEOUT, Duration::from_secs(20)))
}

/// A card: its function's files, and the class that lists it.
fn card(machine: &Machine, function: &str, class: &str, driver: &str, files: &[(&str, &str)]) {
    for (file, text) in files {
        machine.write(&format!("{function}/{file}"), text);
    }
    machine.write(&format!("sys/bus/pci/drivers/{driver}/.keep"), "");
    machine.link(&format!("{function}/driver"), &format!("../../../bus/pci/drivers/{driver}"));
    let device = format!("../../../../{function}");
    machine.link(&format!("sys/class/{class}/device"), &device);
}

fn furnish(machine: &Machine) {
    let files = [
        ("vendor", "0x1002\n"),
        ("device", "0x74a1\n"),
        ("drm/card1/.keep", ""),
        ("drm/renderD129/.keep", ""),
        ("product_name", "AMD Instinct MI300X\n"),
        ("unique_id", "a1b2c3d4e5f60718\n"),
        ("vbios_version", "113-M3000100-102\n"),
        ("power/runtime_status", "active\n"),
        ("mem_info_vram_total", "206141652992\n"),
        ("mem_info_vram_used", "104857600\n"),
        ("gpu_busy_percent", "37\n"),
        ("mem_busy_percent", "5\n"),
        ("hwmon/hwmon4/name", "amdgpu\n"),
        ("hwmon/hwmon4/temp1_input", "41000\n"),
        ("hwmon/hwmon4/temp1_crit", "100000\n"),
        ("hwmon/hwmon4/power1_average", "150000000\n"),
        ("hwmon/hwmon4/power1_cap", "750000000\n"),
        ("hwmon/hwmon4/freq1_input", "1300000000\n"),
        ("hwmon/hwmon4/freq2_input", "900000000\n"),
    ];
    card(machine, AMD, "drm/card1", "amdgpu", &files);
    machine.write("sys/class/drm/card1-DP-1/status", "disconnected\n");
    let files = [
        ("vendor", "0x8086\n"),
        ("device", "0x56a0\n"),
        ("drm/card0/.keep", ""),
        ("drm/renderD128/.keep", ""),
        ("hwmon/hwmon2/energy1_input", "5000000\n"),
    ];
    card(machine, INTEL, "drm/card0", "i915", &files);
    machine.write("sys/class/drm/card0/gt/gt0/rps_act_freq_mhz", "2050\n");
    let files = [("vendor", "0x8086\n"), ("device", "0x7d1d\n"), ("npu_busy_time_us", "1000000\n")];
    card(machine, NPU, "accel/accel0", "intel_vpu", &files);
    // The server's own display has no render node.
    let files = [("vendor", "0x1a03\n"), ("drm/card2/.keep", "")];
    card(machine, "sys/devices/pci0000:00/0000:06:00.0", "drm/card2", "ast", &files);
    client(machine, 70, 5, "dri/renderD129", AMD_CLIENT);
}

const AMD_CLIENT: &str = "pos:\t0\ndrm-driver:\tamdgpu\ndrm-client-id:\t7\ndrm-pdev:\t0000:03:00.0\n\
    drm-memory-vram:\t65536 KiB\ndrm-memory-gtt:\t2048 KiB\n";

/// An open descriptor of a process.
fn client(machine: &Machine, pid: u32, descriptor: u32, node: &str, text: &str) {
    machine.link(&format!("proc/{pid}/fd/{descriptor}"), &format!("/dev/{node}"));
    machine.write(&format!("proc/{pid}/fdinfo/{descriptor}"), text);
}

fn devices(reading: &SourceReading) -> Vec<String> {
    reading.devices.iter().map(|device| device.identity.display_id()).collect()
}

#[test]
fn drm_conforms() {
    Hardware {
        source: |tree, clock| {
            Box::new(DrmSource::new(tree, clock, (TIMEOUT, Duration::from_secs(20))))
        },
        furnish,
        files: &[
            "sys/devices/pci0000:00/0000:03:00.0/vendor",
            "sys/devices/pci0000:00/0000:03:00.0/mem_info_vram_total",
            "sys/devices/pci0000:00/0000:03:00.0/mem_info_vram_used",
            "sys/devices/pci0000:00/0000:03:00.0/gpu_busy_percent",
            "sys/devices/pci0000:00/0000:03:00.0/hwmon/hwmon4/temp1_input",
            "sys/devices/pci0000:00/0000:00:02.0/hwmon/hwmon2/energy1_input",
            "sys/devices/pci0000:00/0000:00:0b.0/npu_busy_time_us",
            "sys/class/drm/card0/gt/gt0/rps_act_freq_mhz",
            "proc/70/fdinfo/5",
        ],
    }
    .conforms();
}

#[test]
fn cards_that_compute_are_read_and_displays_are_not() {
    let machine = Machine::new();
    furnish(&machine);
    let reading = source(&machine).read();
    assert_eq!(devices(&reading), ["0000:00:02.0", "0000:03:00.0", "0000:00:0b.0"]);
    let amd = &reading.devices[1];
    let identity = amd.identity.other().unwrap();
    assert_eq!((identity.vendor.as_str(), identity.class), ("amd", DeviceClass::Gpu));
    assert_eq!(identity.model.as_deref(), Some("AMD Instinct MI300X"));
    assert_eq!(identity.driver.as_deref(), Some("amdgpu"));
    assert_eq!(identity.uuid.as_deref(), Some("a1b2c3d4e5f60718"));
    assert_eq!(identity.driver_ordinal, Some(1));
    let telemetry = &amd.telemetry;
    assert_eq!(telemetry.temperature_celsius.value(), Some(&41.0));
    assert_eq!(telemetry.temperature_limit_celsius.value(), Some(&100.0));
    assert_eq!(telemetry.power_watts.value(), Some(&150.0));
    assert_eq!(telemetry.aiclk_hertz.value(), Some(&1_300_000_000));
    let load = telemetry.load.as_ref().unwrap();
    assert_eq!(load.busy_ratio.value(), Some(&0.37));
    assert_eq!(load.memory_clock_hertz.value(), Some(&900_000_000));
    assert_eq!(telemetry.firmware["vbios_version"], "113-M3000100-102");
    let memory = amd.memory.as_ref().unwrap();
    assert_eq!(memory.used_bytes.value(), Some(&(100 * MIB)));
    assert_eq!(memory.capacity_bytes.value(), Some(&206_141_652_992));
    let intel = &reading.devices[0];
    assert_eq!(intel.identity.product(), "intel 0x56a0");
    assert_eq!(intel.telemetry.aiclk_hertz.value(), Some(&2_050_000_000));
    let used = &intel.memory.as_ref().unwrap().used_bytes;
    assert_eq!(used.absence().unwrap().0, Absence::Unsupported);
    let npu = reading.devices[2].identity.other().unwrap();
    assert_eq!((npu.vendor.as_str(), npu.class), ("intel", DeviceClass::Accelerator));
}

#[test]
fn counters_are_rates_from_one_sample_to_the_next() {
    let machine = Machine::new();
    furnish(&machine);
    let clock = Arc::new(ManualClock::default());
    let limits = (TIMEOUT, Duration::from_secs(20));
    let mut source = DrmSource::new(machine.tree(), Arc::clone(&clock) as Arc<_>, limits);
    let first = source.read();
    assert_eq!(first.devices[0].telemetry.power_watts.absence().unwrap().0, Absence::NotYet);
    clock.advance_ns(2_000_000_000);
    machine.write(&format!("{INTEL}/hwmon/hwmon2/energy1_input"), "65000000\n");
    machine.write(&format!("{NPU}/npu_busy_time_us"), "1500000\n");
    let second = source.read();
    assert_eq!(second.devices[0].telemetry.power_watts.value(), Some(&30.0));
    let busy = |reading: &SourceReading| {
        reading.devices[2].telemetry.load.as_ref().unwrap().busy_ratio.clone()
    };
    assert_eq!(busy(&second).value(), Some(&0.25));
    // A driver that was reloaded counts from the beginning.
    clock.advance_ns(2_000_000_000);
    machine.write(&format!("{NPU}/npu_busy_time_us"), "10\n");
    assert_eq!(busy(&source.read()).absence().unwrap().0, Absence::NotYet);
}

#[test]
fn a_device_that_sleeps_is_not_woken_up() {
    let machine = Machine::new();
    furnish(&machine);
    machine.write(&format!("{AMD}/power/runtime_status"), "suspended\n");
    // A reader of this file would hang.
    let hang = machine.hang(&format!("{AMD}/gpu_busy_percent"));
    let reading = source(&machine).read();
    assert_eq!(reading.status.errors, []);
    let telemetry = &reading.devices[1].telemetry;
    let (reason, detail) = telemetry.temperature_celsius.absence().unwrap();
    assert_eq!(reason, Absence::NotAsked);
    assert!(detail.contains("wake it up"), "{detail}");
    drop(hang);
}

#[test]
fn a_card_that_hangs_keeps_what_it_said_and_stops_no_other() {
    let machine = Machine::new();
    furnish(&machine);
    let mut source = source(&machine);
    let before = source.read();
    let hang = machine.hang(&format!("{AMD}/gpu_busy_percent"));
    let reading = source.read();
    let subjects: Vec<_> =
        reading.status.errors.iter().map(|error| error.subject.clone()).collect();
    assert_eq!(subjects, [reading.devices[1].identity.display_id()]);
    let busy = |reading: &SourceReading, place: usize| {
        reading.devices[place].telemetry.load.as_ref().unwrap().busy_ratio.clone()
    };
    assert_eq!(busy(&reading, 1), busy(&before, 1), "the old value with its old time");
    assert_eq!(reading.devices[0].telemetry.aiclk_hertz.value(), Some(&2_050_000_000));
    assert_eq!(reading.devices[1].memory.as_ref().unwrap().processes.len(), 1, "still counted");
    drop(hang);
}

#[test]
fn a_client_that_several_processes_share_counts_once() {
    let machine = Machine::new();
    furnish(&machine);
    // The same open file, duplicated and inherited; another one of the same number elsewhere.
    client(&machine, 70, 6, "dri/renderD129", AMD_CLIENT);
    client(&machine, 71, 5, "dri/renderD129", AMD_CLIENT);
    let second = AMD_CLIENT.replace("client-id:\t7", "client-id:\t8");
    client(&machine, 71, 9, "dri/renderD129", &second);
    let elsewhere = AMD_CLIENT.replace("0000:03:00.0", "0000:00:02.0");
    client(&machine, 71, 10, "dri/renderD128", &elsewhere);
    // No device's, and another kind of file.
    client(&machine, 72, 0, "null", "");
    client(&machine, 72, 1, "dri/by-path/x", AMD_CLIENT);
    let reading = source(&machine).read();
    let of = |place: usize| {
        let memory = reading.devices[place].memory.as_ref().unwrap();
        let dram = |kinds: &[(MemoryKind, u64)]| {
            kinds.iter().find(|(kind, _)| *kind == MemoryKind::Dram).map_or(0, |(_, bytes)| *bytes)
        };
        memory.processes.iter().map(|one| (one.pid, dram(&one.kinds))).collect::<Vec<_>>()
    };
    assert_eq!(of(1), [(70, 64 * MIB), (71, 64 * MIB)]);
    assert_eq!(of(0), [(71, 64 * MIB)]);
    let holders = reading.devices[1].holders.value().unwrap();
    let opened: Vec<_> = holders.iter().map(|one| (one.pid, one.open_descriptors)).collect();
    assert_eq!(opened, [(Some(70), 2), (Some(71), 2)]);
}

#[test]
fn the_parts_of_a_snapshot_add_up_to_what_the_driver_counts() {
    let machine = Machine::new();
    furnish(&machine);
    machine.write("run/.keep", "");
    machine.write("proc/70/stat", "70 (train) S 1 70 70 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 500 0 0\n");
    machine.write("proc/70/status", "Name:\ttrain\nUid:\t0\t0\t0\t0\nNSpid:\t70\n");
    machine.write("proc/70/cmdline", "train\0--fast\0");
    let options = CollectOptions {
        root: machine.path().to_owned(),
        runtime_dir: Some(machine.path().join("run")),
        ..CollectOptions::default()
    };
    let mut collector = Collector::new(options).unwrap();
    let snapshot = collector.collect();
    assert!(snapshot.devices.iter().all(|device| !device.identity.is_host()));
    let amd = snapshot.devices.iter().find(|one| one.id == "0000:03:00.0").unwrap();
    let parts = amd.kind(MemoryKind::Dram).unwrap();
    assert_eq!((parts.total_bytes, parts.processes_bytes), (100 * MIB, 64 * MIB));
    assert_eq!((parts.unattributed_bytes, parts.ghost_bytes), (36 * MIB, 0));
    assert_eq!(amd.space(MemorySpace::Dram).unwrap().used_bytes.value(), Some(&(100 * MIB)));
    assert_eq!(amd.space(MemorySpace::Host).unwrap().used_bytes.value(), Some(&(2 * MIB)));
    let [process] = snapshot.processes.as_slice() else { panic!("{:?}", snapshot.processes) };
    assert_eq!((process.name.as_str(), process.known_by), ("train", Some(ProcessSource::Driver)));
    assert_eq!(process.devices[0].accounting, Accounting::BytesOnly);
    assert_eq!(process.devices[0].live_bytes(MemorySpace::Dram), Some(64 * MIB));
    assert!(amd.holders.value().unwrap().iter().all(|holder| holder.memory_known));
}
