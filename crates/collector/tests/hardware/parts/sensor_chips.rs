//! What alarms of chips of sensors mean: boards as they ship, chips that measure power, and fans that are
//! not there or do not turn.

use telltale_collector::hardware::HostPartKind;
use telltale_schema::reading::Absence;

use super::{BOARD, SUPPLY, Value, hwmon, names, part, parts_of, values};
use crate::hardware::tree::Machine;

/// A board whose chip has these files.
fn board(files: &[(&str, &str)]) -> Machine {
    let machine = Machine::new();
    hwmon(&machine, BOARD, "nct6798\n");
    write(&machine, BOARD, files);
    machine
}

fn write(machine: &Machine, chip: &str, files: &[(&str, &str)]) {
    for (file, text) in files {
        machine.write(&format!("{chip}/{file}"), format!("{text}\n"));
    }
}

/// A reading of a board's fan or voltage.
fn of(machine: &Machine, kind: HostPartKind, channel: &str, reading: &str) -> Value {
    let all = parts_of(machine).read();
    values(part(&all, kind, &format!("nct6798/{channel}")))[reading]
}

fn voltage(machine: &Machine, channel: &str) -> Value {
    of(machine, HostPartKind::Voltage, channel, "alarm")
}

#[test]
fn an_alarm_about_limits_that_were_not_set_is_none() {
    let with = |input, min, max| [("in1_input", input), ("in1_min", min), ("in1_max", max)];
    for alarm in ["alarm", "min_alarm", "max_alarm"] {
        for (files, expected) in [
            (with("1020", "0", "0"), 0.0),
            (with("3300", "2970", "0"), 0.0),
            (with("2010", "0", "2010"), 0.0),
            (with("2500", "2970", "3630"), 1.0),
        ] {
            let machine = board(&files);
            write(&machine, BOARD, &[(&format!("in1_{alarm}"), "1")]);
            assert_eq!(voltage(&machine, "in1"), Ok(expected), "{alarm} {files:?}");
        }
    }
    let machine = board(&with("1020", "0", "0"));
    write(&machine, BOARD, &[("in1_crit_alarm", "1")]);
    assert_eq!(voltage(&machine, "in1"), Ok(1.0), "it is about another limit");
}

#[test]
fn limits_that_are_reversed_for_one_input_were_set_for_none() {
    let low = [("in5_input", "33"), ("in5_min", "670"), ("in5_max", "2050"), ("in5_alarm", "1")];
    let machine = board(&low);
    assert_eq!(voltage(&machine, "in5"), Ok(1.0));
    write(&machine, BOARD, &[("in4_input", "33"), ("in4_min", "2730"), ("in4_max", "1820")]);
    assert_eq!(voltage(&machine, "in5"), Ok(0.0));
}

#[test]
fn a_limit_that_cannot_be_read_leaves_an_alarm_open_that_is_on() {
    let limits = [("in1_min", "2970"), ("in1_max", "3630")];
    let machine = board(&limits);
    write(&machine, BOARD, &[("in1_input", "0"), ("in1_alarm", "1")]);
    machine.fail(&format!("{BOARD}/in1_min"), "EIO");
    assert_eq!(voltage(&machine, "in1"), Err(Absence::Failed));
    write(&machine, BOARD, &[("in1_alarm", "0")]);
    assert_eq!(voltage(&machine, "in1"), Ok(0.0));
}

#[test]
fn a_fan_is_used_that_turns_or_must_by_a_minimum_that_was_set() {
    let fan = HostPartKind::Fan;
    for (input, min, alarm, used) in [
        ("0", "0", 0.0, 0.0),
        // What registers have when the chip starts up.
        ("0", "10", 1.0, 0.0),
        ("0", "-1", 0.0, 0.0),
        ("0", "1500", 1.0, 1.0),
        ("900", "1500", 1.0, 1.0),
        ("900", "0", 0.0, 1.0),
    ] {
        let machine = board(&[("fan1_input", input), ("fan1_min", min), ("fan1_alarm", "1")]);
        let found = ["alarm", "is_used"].map(|reading| of(&machine, fan, "fan1", reading));
        assert_eq!(found, [Ok(alarm), Ok(used)], "{input} {min}");
    }
    let machine = board(&[("fan1_input", "0"), ("fan1_min", "1500"), ("fan1_alarm", "1")]);
    write(&machine, BOARD, &[("in0_input", "33"), ("in0_min", "2730"), ("in0_max", "1820")]);
    assert_eq!(of(&machine, fan, "fan1", "is_used"), Ok(0.0), "no limit of the chip was set");
}

#[test]
fn a_chip_that_measures_power_is_no_supply() {
    for (driver, file) in [
        ("power_meter", "power1_alarm"),
        ("ina226", "power1_crit_alarm"),
        ("x", "power1_cap_alarm"),
    ] {
        let machine = Machine::new();
        hwmon(&machine, BOARD, driver);
        write(&machine, BOARD, &[(file, "1"), ("power1_average", "330000000")]);
        assert_eq!(names(&parts_of(&machine).read()), [], "{driver}");
    }
}

#[test]
fn a_supply_that_is_held_to_its_cap_does_what_it_should() {
    let machine = Machine::new();
    hwmon(&machine, SUPPLY, "intel_crps185\n");
    let files = [("power1_input", "330000000"), ("power1_alarm", "0"), ("power1_cap_alarm", "1")];
    write(&machine, SUPPLY, &files);
    let alarm = || {
        let all = parts_of(&machine).read();
        values(part(&all, HostPartKind::PowerSupply, "intel_crps185-7-0058"))["alarm"]
    };
    assert_eq!(alarm(), Ok(0.0));
    // What it says of its input is its own judgement, whatever limits it shows.
    write(&machine, SUPPLY, &[("in1_input", "0"), ("in1_min", "0"), ("in1_min_alarm", "1")]);
    assert_eq!(alarm(), Ok(1.0));
}
