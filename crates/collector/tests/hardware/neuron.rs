//! Neuron devices in trees of the form that AWS's driver writes.

use std::sync::Arc;
use std::time::Duration;

use telltale_collector::clock::SystemClock;
use telltale_collector::hardware::NeuronSource;
use telltale_collector::source::{DeviceReading, HardwareSource, SourceReading};
use telltale_collector::{CollectOptions, Collector};
use telltale_schema::device::DeviceClass;
use telltale_schema::memory::MemorySpace;
use telltale_schema::reading::Absence;

use crate::hardware::conformance::{Hardware, TIMEOUT};
use crate::hardware::tree::Machine;

const DEVICES: &str = "sys/devices/virtual/neuron_device";
const FIRST_CYCLES: &str = "xrow_grp,mm_active,wl_active,idle\n0,100,100,800\n1,100,100,800\n";
const LATER_CYCLES: &str = "xrow_grp,mm_active,wl_active,idle\n0,700,200,1100\n1,700,200,1100\n";

fn source(machine: &Machine) -> NeuronSource {
    NeuronSource::new(machine.tree(), Arc::new(SystemClock), (TIMEOUT, Duration::from_secs(20)))
}

/// A Trainium with two cores, and one whose second core was never used.
fn furnish(machine: &Machine) {
    machine.write("sys/module/neuron/version", "2.24.7.0\n");
    for device in [0, 10] {
        let place = format!("{DEVICES}/neuron{device}");
        let files = [
            ("core_count", "2"),
            ("reset", "0\n"),
            ("info/notify_delay", "-1\n"),
            ("info/serial_number", "\n"),
            ("info/architecture/arch_type", "NDv2\n"),
            ("info/architecture/instance_type", "Trn1\n"),
            ("info/architecture/device_name", "Trainium1\n"),
            ("stats/memory_usage/host_mem/tensors/total", "4096\n"),
            ("stats/hardware/mem_ecc_uncorrected", "2\n"),
            ("stats/hardware/sram_ecc_uncorrected", "1\n"),
            ("stats/power/utilization", "POWER_STATUS_VALID,1700000000,0.86,25.00,18.86\n"),
        ];
        for (file, text) in files {
            machine.write(&format!("{place}/{file}"), text);
        }
        for core in 0..2 {
            let place = format!("{place}/neuron_core{core}");
            let memory = format!("{place}/stats/memory_usage/device_mem");
            machine.write(&format!("{place}/info/architecture/arch_type"), "NCv2\n");
            machine.write(&format!("{place}/stats/tensor_engine/pe_cntrs"), FIRST_CYCLES);
            // `present` is the size of the last allocation, and no gauge.
            machine.write(&format!("{memory}/total"), "1500000000\n");
            machine.write(&format!("{memory}/present"), "64\n");
            machine.write(&format!("{memory}/peak"), "9000000000\n");
            let categories = [("tensors", 1_000_000_000), ("model_code", 300_000_000)];
            for (category, bytes) in categories {
                machine.write(&format!("{memory}/{category}/total"), format!("{bytes}\n"));
                machine.write(&format!("{memory}/{category}/present"), "64\n");
            }
        }
    }
    machine.write(&format!("{DEVICES}/neuron0/info/serial_number"), "a1b2c3d4e5f60718\n");
}

fn names(reading: &SourceReading) -> Vec<String> {
    reading.devices.iter().map(|device| device.identity.display_id()).collect()
}

fn used(device: &DeviceReading) -> Option<u64> {
    device.memory.as_ref().unwrap().used_bytes.value().copied()
}

fn busy(reading: &SourceReading, place: usize) -> Option<f64> {
    reading.devices[place].telemetry.load.as_ref().unwrap().busy_ratio.value().copied()
}

#[test]
fn neuron_conforms() {
    Hardware {
        source: |tree, clock| {
            Box::new(NeuronSource::new(tree, clock, (TIMEOUT, Duration::from_secs(20))))
        },
        furnish,
        files: &[
            "sys/devices/virtual/neuron_device/neuron0/info/architecture/device_name",
            "sys/devices/virtual/neuron_device/neuron0/info/serial_number",
            "sys/devices/virtual/neuron_device/neuron0/neuron_core0/info/architecture/arch_type",
            "sys/devices/virtual/neuron_device/neuron0/neuron_core1/stats/memory_usage/device_mem/total",
            "sys/devices/virtual/neuron_device/neuron0/neuron_core1/stats/memory_usage/device_mem/tensors/total",
            "sys/devices/virtual/neuron_device/neuron10/stats/hardware/mem_ecc_uncorrected",
            "sys/devices/virtual/neuron_device/neuron10/neuron_core0/stats/tensor_engine/pe_cntrs",
        ],
    }
    .conforms();
}

#[test]
fn devices_and_cores_are_reported_and_what_no_file_has_is_absent() {
    let machine = Machine::new();
    furnish(&machine);
    let reading = source(&machine).read();
    let expected = ["neuron0", "neuron0/0", "neuron0/1", "neuron10", "neuron10/0", "neuron10/1"];
    assert_eq!(names(&reading), expected);
    let device = reading.devices[0].identity.other().unwrap();
    assert_eq!((device.vendor.as_str(), device.class), ("aws", DeviceClass::Accelerator));
    assert_eq!(device.model.as_deref(), Some("Trainium1"));
    assert_eq!(device.serial.as_deref(), Some("a1b2c3d4e5f60718"));
    assert_eq!(reading.devices[3].identity.other().unwrap().serial, None, "an empty line");
    assert_eq!(reading.devices[0].telemetry.firmware["driver_version"], "2.24.7.0");
    let core = reading.devices[2].identity.other().unwrap();
    assert_eq!((core.class, core.model.as_deref()), (DeviceClass::Partition, Some("NCv2")));
    assert_eq!((core.parent.as_deref(), core.driver_ordinal), (Some("neuron0"), Some(1)));
    for device in &reading.devices {
        let telemetry = &device.telemetry;
        assert_eq!(telemetry.temperature_celsius.absence().unwrap().0, Absence::Unsupported);
        assert_eq!(telemetry.power_watts.absence().unwrap().0, Absence::Unsupported);
        let is_core = device.identity.other().unwrap().parent.is_some();
        assert_eq!(device.holders.value().is_none(), is_core, "{:?}", device.holders);
    }
}

#[test]
fn memory_is_the_gauge_of_each_core_and_the_devices_are_their_sum() {
    let machine = Machine::new();
    furnish(&machine);
    machine.write("run/.keep", "");
    let reading = source(&machine).read();
    assert_eq!(used(&reading.devices[1]), Some(1_500_000_000));
    assert_eq!(used(&reading.devices[0]), None, "it is counted for each core");
    let counts = |reading: &SourceReading, place: usize| {
        reading.devices[place].telemetry.memory_counts.clone().unwrap()
    };
    let categories = counts(&reading, 1).category_bytes;
    let reported: Vec<_> = categories.iter().map(|(name, bytes)| (name.as_str(), *bytes)).collect();
    let expected =
        [("model_code", 300_000_000), ("other", 200_000_000), ("tensors", 1_000_000_000)];
    assert_eq!(reported, expected);
    assert_eq!(categories.values().sum::<u64>(), 1_500_000_000, "the parts add up");
    assert_eq!(counts(&reading, 0).uncorrected_errors_total.value(), Some(&3));
    let corrected = counts(&reading, 0).corrected_errors_total;
    assert_eq!(corrected.absence().unwrap().0, Absence::Unsupported);
    let options = CollectOptions {
        root: machine.path().to_owned(),
        runtime_dir: Some(machine.path().join("run")),
        ..CollectOptions::default()
    };
    let snapshot = Collector::new(options).unwrap().collect();
    assert!(snapshot.sources.iter().any(|source| source.name == "neuron"));
    let spaces = snapshot.devices.iter().filter_map(|one| one.space(MemorySpace::Dram));
    let used: u64 = spaces.filter_map(|space| space.used_bytes.value()).sum();
    assert_eq!(used, 4 * 1_500_000_000);
    // A gauge from which more was subtracted than added.
    let total = "neuron0/neuron_core0/stats/memory_usage/device_mem/total";
    machine.write(&format!("{DEVICES}/{total}"), "18446744073709550592\n");
    let wrapped = &source(&machine).read().devices[1];
    let reading = &wrapped.memory.as_ref().unwrap().used_bytes;
    assert_eq!(reading.absence().unwrap().0, Absence::Implausible);
}

#[test]
fn a_core_is_busy_as_far_as_its_engine_multiplied_since_the_look_before() {
    let machine = Machine::new();
    furnish(&machine);
    let mut source = source(&machine);
    assert_eq!(busy(&source.read(), 1), None, "there was no look before");
    let counters = format!("{DEVICES}/neuron0/neuron_core0/stats/tensor_engine/pe_cntrs");
    machine.write(&counters, LATER_CYCLES);
    let reading = source.read();
    assert_eq!(busy(&reading, 1), Some(0.6));
    assert_eq!(busy(&reading, 0), None);
    machine.write(&counters, FIRST_CYCLES);
    assert_eq!(busy(&source.read(), 1), None, "the device was reset");
}

#[test]
fn nothing_is_written_and_no_file_but_those_of_values_is_opened() {
    let machine = Machine::new();
    furnish(&machine);
    // A write would clear or reset; opening these would hang.
    let hangs = [
        machine.hang(&format!("{DEVICES}/neuron0/reset")),
        machine.hang(&format!("{DEVICES}/neuron0/info/notify_delay")),
        machine.hang(&format!("{DEVICES}/neuron0/core_count")),
    ];
    let reading = source(&machine).read();
    assert_eq!(reading.status.errors, []);
    assert_eq!(reading.devices.len(), 6);
    drop(hangs);
}

#[test]
fn a_driver_of_another_version_shows_what_it_has() {
    let machine = Machine::new();
    machine
        .write(&format!("{DEVICES}/neuron3/neuron_core0/stats/memory_usage/device_mem/total"), "7");
    machine.write(&format!("{DEVICES}/neuron3/neuron_core_x/total"), "7");
    machine.write(&format!("{DEVICES}/power/control"), "auto");
    let reading = source(&machine).read();
    assert_eq!(names(&reading), ["neuron3", "neuron3/0"]);
    assert_eq!(reading.status.errors, []);
    assert_eq!(used(&reading.devices[1]), Some(7));
    assert_eq!(reading.devices[0].identity.product(), "neuron");
    let load = reading.devices[1].telemetry.load.as_ref().unwrap();
    assert_eq!(load.busy_ratio.absence().unwrap().0, Absence::Unsupported);
}

#[test]
fn processes_that_have_a_device_open_hold_it_with_memory_that_nobody_reports() {
    let machine = Machine::new();
    furnish(&machine);
    let opens = [
        ("77/fd/3", "/dev/neuron0"),
        ("77/fd/4", "/dev/neuron0"),
        ("78/fd/0", "/dev/neuron10"),
        ("78/fd/1", "/dev/neuron1"),
        ("78/fd/2", "/dev/neuron"),
        ("78/fd/5", "/dev/neuron00"),
        ("78/fd/6", "/dev/neuron0/x"),
        ("79/fd/1", "/dev/null"),
    ];
    for (path, target) in opens {
        machine.link(&format!("proc/{path}"), target);
    }
    let holders = |reading: &SourceReading, place: usize| {
        let holders = reading.devices[place].holders.value().unwrap().clone();
        holders.iter().map(|one| (one.pid.unwrap(), one.open_descriptors)).collect::<Vec<_>>()
    };
    let reading = source(&machine).read();
    assert_eq!(reading.status.errors, []);
    assert_eq!(holders(&reading, 0), [(77, 2)]);
    assert_eq!(holders(&reading, 3), [(78, 1)]);
    assert!(reading.devices[0].holders.value().unwrap().iter().all(|one| !one.memory_known));
    // A process whose descriptors are closed to us: visible ones are reported, absence is not.
    std::fs::create_dir_all(machine.path().join("proc/80")).unwrap();
    machine.link("proc/80/fd", "errno:EACCES");
    std::fs::remove_dir_all(machine.path().join("proc/78")).unwrap();
    let reading = source(&machine).read();
    assert_eq!(holders(&reading, 0), [(77, 2)]);
    assert_eq!(reading.devices[3].holders.absence().unwrap().0, Absence::Permission);
}
