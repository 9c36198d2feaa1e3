//! Parts whose files are garbage, forbidden, hanging, missing or too many.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use telltale_collector::clock::SystemClock;
use telltale_collector::hardware::{HostPartKind, HostParts, PartsReading};
use telltale_harness::wait_until;
use telltale_schema::reading::Absence;

use super::{
    BOARD, CONTROLLER, NIC, PORT, SUPPLY, Value, furnished, hwmon, interface, names, part,
    parts_of, values,
};
use crate::hardware::conformance::{GARBAGE, TIMEOUT};
use crate::hardware::tree::Machine;

/// Files that were only slow, for want of a processor, are read by then.
const SOON: Duration = Duration::from_secs(60);

/// What reads a machine of which a file hangs.
fn hasty_parts_of(machine: &Machine) -> HostParts {
    HostParts::new(machine.tree(), Arc::new(SystemClock), (TIMEOUT, 20 * TIMEOUT))
}

/// Reads until all is as it should be: a file that was only slow is read the next time.
fn read_until(
    parts: &mut HostParts,
    what: &str,
    is_so: impl Fn(&PartsReading) -> bool,
) -> PartsReading {
    let mut last = parts.read();
    wait_until(what, SOON, || {
        is_so(&last) || {
            last = parts.read();
            is_so(&last)
        }
    });
    last
}

/// Files, and the part of each.
fn files() -> Vec<(String, HostPartKind, &'static str)> {
    let (fan, nic) = (HostPartKind::Fan, HostPartKind::NetworkInterface);
    let port = HostPartKind::InfinibandPort;
    let of = |directory: &str, name: &str, kind, part| (format!("{directory}/{name}"), kind, part);
    let interface = format!("{NIC}/net/eth0");
    vec![
        of(BOARD, "fan1_input", fan, "nct6798/fan1"),
        of(BOARD, "fan1_alarm", fan, "nct6798/fan1"),
        of(BOARD, "in0_min_alarm", HostPartKind::Voltage, "nct6798/in0"),
        of(SUPPLY, "power2_input", HostPartKind::PowerSupply, "pmbus-7-0058"),
        of(SUPPLY, "power2_alarm", HostPartKind::PowerSupply, "pmbus-7-0058"),
        of(&interface, "carrier", nic, "eth0"),
        of(&interface, "flags", nic, "eth0"),
        of(&interface, "speed", nic, "eth0"),
        of(NIC, "aer_dev_fatal", nic, "eth0"),
        of(NIC, "current_link_width", nic, "eth0"),
        of(PORT, "state", port, "mlx5_0/1"),
        of(PORT, "rate", port, "mlx5_0/1"),
        of(PORT, "gids/2", port, "mlx5_0/1"),
        of(PORT, "counters/link_downed", port, "mlx5_0/1"),
        of(CONTROLLER, "ue_count", HostPartKind::MemoryController, "mc0"),
    ]
}

/// The values of all parts but this one.
fn others(
    reading: &PartsReading,
    (kind, name): (HostPartKind, &str),
) -> BTreeMap<(HostPartKind, String), BTreeMap<&'static str, Value>> {
    let others = reading.parts.iter().filter(|part| (part.kind, &*part.name) != (kind, name));
    others.map(|part| ((part.kind, part.name.clone()), values(part))).collect()
}

fn check(reading: &PartsReading) {
    for part in &reading.parts {
        assert!(!part.name.contains(char::is_control) && part.name.len() < 512, "{part:?}");
        for reading in part.readings.values() {
            assert!(reading.value().is_none_or(|value| value.is_finite()), "{part:?}");
        }
    }
}

#[test]
fn garbage_in_a_file_costs_a_value_and_no_part() {
    for (file, kind, name) in files() {
        let machine = furnished();
        let mut parts = parts_of(&machine);
        let sound = parts.read();
        for garbage in GARBAGE {
            machine.write(&file, garbage);
            let reading = parts.read();
            check(&reading);
            assert_eq!(names(&reading), names(&sound), "{file}");
            assert_eq!(others(&reading, (kind, name)), others(&sound, (kind, name)), "{file}");
        }
        for error in ["EIO", "EACCES", "ENODEV", "EINVAL"] {
            machine.fail(&file, error);
            let reading = parts.read();
            check(&reading);
            assert_eq!(names(&reading), names(&sound), "{file} {error}");
            assert_eq!(others(&reading, (kind, name)), others(&sound, (kind, name)), "{file}");
        }
    }
}

#[test]
fn a_file_that_hangs_costs_its_own_part_which_keeps_its_place() {
    for (file, kind, name) in files() {
        for is_known in [true, false] {
            let machine = furnished();
            let sound = parts_of(&machine).read();
            let mut parts = hasty_parts_of(&machine);
            if is_known {
                read_until(&mut parts, "all parts", |reading| names(reading) == names(&sound));
            }
            let hang = machine.hang(&file);
            let reading = read_until(&mut parts, "all other parts", |reading| {
                names(reading) == names(&sound)
                    && others(reading, (kind, name)) == others(&sound, (kind, name))
            });
            let hung = values(part(&reading, kind, name));
            let expected: Vec<_> = values(part(&sound, kind, name)).into_keys().collect();
            assert_eq!(hung.keys().copied().collect::<Vec<_>>(), expected, "{file}");
            assert!(
                hung.values().all(|value| *value == Err(Absence::TimedOut)),
                "{file}: {hung:?}"
            );
            assert!(reading.status.errors.iter().any(|it| it.reason == Absence::TimedOut));
            drop(hang);
        }
    }
}

#[test]
fn what_tells_a_chip_apart_may_hang_once_it_is_known() {
    let machine = furnished();
    let sound = parts_of(&machine).read();
    let mut parts = hasty_parts_of(&machine);
    read_until(&mut parts, "all parts", |reading| names(reading) == names(&sound));
    let hang = machine.hang(&format!("{BOARD}/name"));
    read_until(&mut parts, "all values", |reading| {
        assert_eq!(names(reading), names(&sound));
        let fan = values(part(reading, HostPartKind::Fan, "nct6798/fan1"));
        fan["revolutions_per_minute"] == Ok(6200.0)
    });
    drop(hang);
}

#[test]
fn a_chip_that_never_said_what_it_is_has_no_parts_and_others_have_theirs() {
    let machine = furnished();
    let hang = machine.hang(&format!("{BOARD}/name"));
    let mut parts = hasty_parts_of(&machine);
    let reading = read_until(&mut parts, "the others", |reading| reading.parts.len() == 4);
    assert!(reading.status.errors.iter().any(|error| error.reason == Absence::TimedOut));
    drop(hang);
}

#[test]
fn all_steps_of_a_read_have_one_deadline() {
    let machine = furnished();
    let chips = [5, 6, 7, 8].map(|it| format!("sys/devices/platform/chip.{it}/hwmon/hwmon{it}"));
    chips.iter().for_each(|chip| hwmon(&machine, chip, "nct6798\n"));
    let sound = parts_of(&machine).read();
    let limits = (TIMEOUT, 3 * TIMEOUT);
    let mut parts = HostParts::new(machine.tree(), Arc::new(SystemClock), limits);
    read_until(&mut parts, "all parts", |reading| {
        reading.parts.iter().map(values).eq(sound.parts.iter().map(values))
    });
    // These hang for longer than all of a read may take.
    let hangs = chips.map(|chip| machine.hang(&format!("{chip}/name")));
    let hung = parts.read();
    assert_eq!(names(&hung), names(&sound), "parts keep their places");
    let all = hung.parts.iter().flat_map(|part| values(part).into_values());
    assert_eq!(all.filter(|value| *value != Err(Absence::TimedOut)).count(), 0, "no time was left");
    read_until(&mut parts, "all parts, for which there is time again", |reading| {
        reading.parts.iter().map(values).eq(sound.parts.iter().map(values))
    });
    drop(hangs);
}

#[test]
fn a_failing_alarm_is_no_silent_one() {
    let machine = furnished();
    let alarm = |machine: &Machine| {
        let reading = parts_of(machine).read();
        values(part(&reading, HostPartKind::Voltage, "nct6798/in0"))["alarm"]
    };
    machine.fail(&format!("{BOARD}/in0_min_alarm"), "EIO");
    assert_eq!(alarm(&machine), Err(Absence::Failed));
    machine.write(&format!("{BOARD}/in0_max_alarm"), "1\n");
    assert_eq!(alarm(&machine), Ok(1.0), "another one says so");
}

#[test]
fn names_from_outside_are_one_line_and_differ() {
    let machine = Machine::new();
    hwmon(&machine, BOARD, "a\u{1b}[31mb\n\n\0c");
    for fan in 1..4 {
        machine.write(&format!("{BOARD}/fan{fan}_input"), "1\n");
    }
    interface(&machine, NIC, "eth\u{1b}0");
    interface(&machine, &format!("{NIC}.1"), "eth\u{7}0");
    let reading = parts_of(&machine).read();
    check(&reading);
    assert_eq!(reading.parts.len(), 5, "{:?}", names(&reading));
    let all: std::collections::BTreeSet<_> = names(&reading).into_iter().collect();
    assert_eq!(all.len(), 5, "{all:?}");
}

#[test]
fn only_so_many_of_a_kind_are_read() {
    let machine = Machine::new();
    hwmon(&machine, BOARD, "nct6798\n");
    for fan in 1..=99 {
        machine.write(&format!("{BOARD}/fan{fan}_input"), "1\n");
    }
    for number in 0..300 {
        interface(&machine, &format!("{NIC}{number}"), &format!("eth{number}"));
    }
    let reading = parts_of(&machine).read();
    for kind in HostPartKind::ALL {
        let count = reading.parts.iter().filter(|part| part.kind == kind).count();
        let is_full = matches!(kind, HostPartKind::Fan | HostPartKind::NetworkInterface);
        assert_eq!(count, if is_full { kind.most() } else { 0 }, "{}", kind.name());
    }
    let errors: Vec<_> =
        reading.status.errors.iter().map(|error| (&*error.subject, &*error.detail)).collect();
    let expected = [
        ("fan", "there are 99, of which 64 are read"),
        ("network_interface", "there are 300, of which 256 are read"),
    ];
    assert_eq!(errors, expected);
}

#[test]
fn what_goes_away_is_no_part_and_what_comes_is_one() {
    let machine = furnished();
    let mut parts = parts_of(&machine);
    let first = parts.read();
    machine.remove("sys/class/net/eth0");
    machine.remove(&format!("{BOARD}/fan1_input"));
    let left = parts.read();
    assert_eq!(left.status.errors, []);
    // The machine has no PCI function of the interface any more: that one is gone, not renamed.
    assert_eq!(left.parts.len(), first.parts.len() - 1, "{:?}", names(&left));
    let gone = left.parts.iter().find(|part| part.name == "eth0").unwrap();
    assert_eq!(gone.readings["is_there"].value(), Some(&0.0));
    machine.write("sys/bus/pci/devices/0000:41:00.0/vendor", "0x15b3\n");
    assert_eq!(parts.read().parts.len(), first.parts.len() - 2, "renamed, or in a container");
    machine.link("sys/class/net/eth0", &format!("../../../{NIC}/net/eth0"));
    machine.write(&format!("{BOARD}/fan1_input"), "6200\n");
    assert_eq!(names(&parts.read()), names(&first));
}
