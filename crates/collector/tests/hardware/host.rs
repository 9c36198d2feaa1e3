//! The machine itself: files as `Documentation/filesystems/proc.rst` of the kernel shows them.

use std::sync::Arc;
use std::time::Duration;

use telltale_collector::clock::SystemClock;
use telltale_collector::hardware::HostSource;
use telltale_collector::source::HardwareSource;
use telltale_harness::wait_until;
use telltale_schema::reading::Absence;

use crate::hardware::conformance::{Hardware, TIMEOUT};
use crate::hardware::tree::Machine;

const KIB: u64 = 1024;
const SOON: Duration = Duration::from_secs(60);

/// A machine of two processors, whose hwmon is as the driver k10temp makes it.
pub(crate) fn furnish(machine: &Machine) {
    machine.write(
        "proc/meminfo",
        "MemTotal:       24684096 kB\nMemFree:         4222384 kB\nMemAvailable:   20011932 kB\n",
    );
    machine.write(
        "proc/stat",
        "cpu  1000 0 500 8000 500 0 0 0 0 0\ncpu0 500 0 250 4000 250 0 0 0 0 0\nintr 7\n",
    );
    machine.write("proc/cpuinfo", "processor\t: 0\nmodel name\t: AMD EPYC 7B13\nflags\t: fpu\n");
    machine.write("sys/class/hwmon/hwmon0/name", "nvme\n");
    machine.write("sys/class/hwmon/hwmon0/temp1_input", "91000\n");
    machine.write("sys/class/hwmon/hwmon1/name", "k10temp\n");
    machine.write("sys/class/hwmon/hwmon1/temp1_input", "48625\n");
}

pub(crate) const HOST: Hardware = Hardware {
    source: |tree, clock| Box::new(HostSource::new(tree, clock, TIMEOUT)),
    furnish,
    files: &[
        "proc/meminfo",
        "proc/stat",
        "proc/cpuinfo",
        "sys/class/hwmon/hwmon0/name",
        "sys/class/hwmon/hwmon1/temp1_input",
    ],
};

#[test]
fn the_host_conforms() {
    HOST.conforms();
}

#[test]
fn memory_that_programs_can_have_is_free_and_time_that_passed_is_a_share() {
    let machine = Machine::new();
    furnish(&machine);
    let mut source = HostSource::new(machine.tree(), Arc::new(SystemClock), TIMEOUT);
    let first = source.read();
    let [device] = first.devices.as_slice() else { panic!("{:?}", first.devices) };
    assert!(device.identity.is_host());
    assert_eq!(device.identity.product(), "AMD EPYC 7B13");
    let memory = device.memory.as_ref().unwrap();
    assert_eq!(memory.capacity_bytes.value(), Some(&(24_684_096 * KIB)));
    assert_eq!(memory.used_bytes.value(), Some(&((24_684_096 - 20_011_932) * KIB)));
    assert_eq!(device.telemetry.temperature_celsius.value(), Some(&48.625));
    let busy = |reading: &telltale_collector::source::SourceReading| {
        reading.devices[0].telemetry.load.as_ref().unwrap().busy_ratio.clone()
    };
    assert_eq!(busy(&first).absence().unwrap().0, Absence::NotYet, "one look tells no share");
    machine.write("proc/stat", "cpu  1030 0 510 8050 510 0 0 0 0 0\n");
    wait_until("the time that a share takes", SOON, || {
        busy(&source.read()).value().is_some_and(|share| *share == 0.4)
    });
    // No time has passed: the share is as it was.
    assert_eq!(busy(&source.read()).value(), Some(&0.4));
}
