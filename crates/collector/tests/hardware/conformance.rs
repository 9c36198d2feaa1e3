//! What every source keeps to, whatever hardware it is of.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use telltale_collector::clock::SystemClock;
use telltale_collector::source::{DeviceReading, HardwareSource, SourceReading};
use telltale_collector::tree::Tree;
use telltale_schema::clock::Clock;
use telltale_schema::reading::{Absence, Reading};

use crate::hardware::tree::Machine;

/// How long one file may take in these tests.
pub(crate) const TIMEOUT: Duration = Duration::from_millis(150);
/// A source that hangs is back long before this.
const SOON: Duration = Duration::from_secs(20);

/// Makes the source of a machine.
type MakeSource = fn(Arc<Tree>, Arc<dyn Clock>) -> Box<dyn HardwareSource>;

/// A kind of hardware, and how its files look.
pub(crate) struct Hardware {
    /// The source of a machine.
    pub(crate) source: MakeSource,
    /// Writes the files of a healthy machine.
    pub(crate) furnish: fn(&Machine),
    /// The files that are read of it.
    pub(crate) files: &'static [&'static str],
}

/// Contents that no driver should have written.
pub(crate) const GARBAGE: [&[u8]; 9] = [
    b"",
    b"\n",
    b"-1\n",
    b"18446744073709551615\n",
    b"99999999999999999999999999\n",
    b"1e308\n",
    b"\xff\xfe\0\x01",
    b"no number\nMemTotal: x kB\ndrm-client-id:\t\ndrm-total-vram: - KiB\n",
    &[b'7'; 5000],
];

impl Hardware {
    fn of(&self, machine: &Machine) -> Box<dyn HardwareSource> {
        (self.source)(machine.tree(), Arc::new(SystemClock))
    }

    fn furnished(&self) -> Machine {
        let machine = Machine::new();
        (self.furnish)(&machine);
        machine
    }

    /// The whole suite.
    pub(crate) fn conforms(&self) {
        self.is_silent_where_nothing_is();
        self.finds_the_same_devices_each_time();
        self.survives_each_file();
        self.comes_back_from_each_file_that_hangs();
    }

    fn is_silent_where_nothing_is(&self) {
        let reading = self.of(&Machine::new()).read();
        assert!(reading.devices.is_empty(), "{:?}", reading.devices);
        assert_eq!(reading.status.errors, [], "absence is no error");
        let why = reading.absent.expect("it says why there is none");
        assert!(why.contains("no "), "{why}");
    }

    fn finds_the_same_devices_each_time(&self) {
        let machine = self.furnished();
        let mut source = self.of(&machine);
        let first = source.read();
        assert_eq!(first.status.errors, []);
        assert!(!first.devices.is_empty() && first.absent.is_none());
        assert_eq!(first.status.name, source.name());
        check(&first);
        let second = source.read();
        assert_eq!(names(&first), names(&second));
        let fresh = self.of(&machine).read();
        assert_eq!(names(&first), names(&fresh));
    }

    fn survives_each_file(&self) {
        for file in self.files {
            let machine = self.furnished();
            let mut source = self.of(&machine);
            source.read();
            let before = machine.text(file);
            for garbage in GARBAGE {
                machine.write(file, garbage);
                check(&source.read());
                check(&self.of(&machine).read());
            }
            for error in ["EIO", "EACCES", "ENODEV", "EAGAIN"] {
                machine.fail(file, error);
                check(&source.read());
                check(&self.of(&machine).read());
            }
            machine.remove(file);
            check(&source.read());
            machine.write(file, before);
            let after = source.read();
            assert_eq!(after.status.errors, [], "{file}: it is as it was");
            assert_eq!(names(&after), names(&self.of(&machine).read()));
        }
    }

    fn comes_back_from_each_file_that_hangs(&self) {
        for file in self.files {
            let machine = self.furnished();
            let mut source = self.of(&machine);
            source.read();
            let hang = machine.hang(file);
            let started = Instant::now();
            let reading = source.read();
            assert!(started.elapsed() < SOON, "{file}: {:?}", started.elapsed());
            check(&reading);
            let errors = &reading.status.errors;
            let reported = errors.iter().any(|error| error.reason == Absence::TimedOut);
            assert!(reported, "{file}: {errors:?}");
            drop(hang);
        }
    }
}

fn names(reading: &SourceReading) -> Vec<String> {
    reading.devices.iter().map(|device| device.identity.display_id()).collect()
}

/// What is true of any reading.
fn check(reading: &SourceReading) {
    let all = names(reading);
    let unlike: BTreeSet<&String> = all.iter().collect();
    assert_eq!(unlike.len(), all.len(), "devices are told apart: {all:?}");
    for device in &reading.devices {
        check_device(device);
    }
}

fn check_device(device: &DeviceReading) {
    let identity = device.identity.other().expect("it is no Tenstorrent chip");
    assert!(!identity.name.is_empty() && !identity.vendor.is_empty());
    let telemetry = &device.telemetry;
    let finite = |reading: &Reading<f64>| reading.value().is_none_or(|value| value.is_finite());
    assert!(finite(&telemetry.temperature_celsius) && finite(&telemetry.power_watts));
    assert!(telemetry.power_watts.value().is_none_or(|watts| *watts >= 0.0));
    let load = telemetry.load.as_ref().expect("its driver tells how busy it is, or why not");
    for ratio in [&load.busy_ratio, &load.memory_busy_ratio] {
        let ratio = ratio.value();
        assert!(ratio.is_none_or(|ratio| (0.0..=1.0).contains(ratio)), "{ratio:?}");
    }
    if let Some(memory) = &device.memory {
        let pids: BTreeSet<u32> = memory.processes.iter().map(|usage| usage.pid).collect();
        assert_eq!(pids.len(), memory.processes.len(), "each process once");
        let holders = device.holders.value().into_iter().flatten();
        let holders: BTreeSet<u32> = holders.filter_map(|holder| holder.pid).collect();
        assert!(pids.is_subset(&holders), "who has memory there holds the device");
    }
}
