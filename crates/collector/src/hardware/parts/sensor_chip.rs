//! Fans, voltages and power supplies of chips of sensors, from `/sys/class/hwmon` (the kernel's
//! `Documentation/hwmon/sysfs-interface.rst`, and `pmbus-core.rst` for supplies).

use std::collections::BTreeSet;

use telltale_schema::clock::Timestamp;
use telltale_schema::reading::Reading;

use super::HostPartKind;
use super::entry::{Found, Readings, cleaned};
use super::value::PartFiles;
use crate::hardware::bus;
use crate::tree::{Directory, Unreadable};

/// Files of one chip that are looked at.
const MAX_FILES: usize = 2048;
/// The highest number of a channel: no chip has more.
const MAX_CHANNEL: u32 = 99;
/// Between the numbers of parts of different kinds.
const KIND_ITEMS: u32 = 1000;

/// How the drivers of power supplies begin; others are known by an alarm of their power.
const SUPPLY_DRIVERS: [&str; 9] =
    ["acbel", "bel-pfe", "cffps", "crps", "dps", "fsp", "ipsps", "pfe", "pmbus"];

/// What a channel may say to raise an alarm, after its name.
const ALARMS: [&str; 8] = [
    "alarm",
    "min_alarm",
    "max_alarm",
    "crit_alarm",
    "lcrit_alarm",
    "cap_alarm",
    "rated_max_alarm",
    "fault",
];

const FAN: &[&str] = &["revolutions_per_minute", "minimum_revolutions_per_minute", "alarm"];
const VOLTAGE: &[&str] = &["alarm", "volts"];
const SUPPLY: &[&str] = &["alarm", "watts"];

/// A channel of a chip: what it measures, and its number.
type Channel<'a> = (&'a str, u32);

/// The parts of one chip. Those of an accelerator belong to its device.
pub(super) fn survey(directory: &Directory, _: &str) -> Result<Vec<Found>, Unreadable> {
    if directory.directory("device").is_ok_and(|device| bus::is_accelerator(&device)) {
        return Ok(Vec::new());
    }
    let names = directory.names_up_to(MAX_FILES)?;
    let driver = match directory.attribute("name") {
        Ok(driver) => cleaned(&String::from_utf8_lossy(&driver)),
        Err(error) if error.is_missing() => String::from("hwmon"),
        Err(error) => return Err(error),
    };
    let device = directory.link("device").ok();
    let device = device.and_then(|path| Some(cleaned(path.file_name()?.to_str()?)));
    let files: Vec<(Channel<'_>, &str)> = names.iter().filter_map(|name| channel(name)).collect();
    let is_supply = is_supply(&driver, &files);
    // Chips on an I2C bus are often several of one kind, and all are known by where they are.
    let by_place = device.as_deref().filter(|device| is_on_i2c(device));
    let owner = by_place.map_or_else(|| driver.clone(), |place| format!("{driver}-{place}"));
    let place = device.clone().filter(|_| by_place.is_none());
    let part = |kind, item, channel, names, read| Found {
        kind,
        item,
        owner: owner.clone(),
        place: place.clone(),
        channel,
        label: None,
        names,
        read,
    };
    let mut found = Vec::new();
    for number in numbers(&files, "fan", |suffix| suffix == "input") {
        let channel = Some(format!("fan{number}"));
        found.push(part(HostPartKind::Fan, KIND_ITEMS + number, channel, FAN, read_fan));
    }
    if is_supply {
        found.push(part(HostPartKind::PowerSupply, 1, None, SUPPLY, read_supply));
    } else {
        for number in numbers(&files, "in", |suffix| ALARMS.contains(&suffix)) {
            let (channel, item) = (Some(format!("in{number}")), 2 * KIND_ITEMS + number);
            found.push(part(HostPartKind::Voltage, item, channel, VOLTAGE, read_voltage));
        }
    }
    Ok(found)
}

/// A file's channel, and what it says of it: `fan1_min_alarm` is the `min_alarm` of fan 1.
fn channel(name: &str) -> Option<(Channel<'_>, &str)> {
    let (channel, suffix) = name.split_once('_')?;
    let digits = channel.find(|letter: char| letter.is_ascii_digit())?;
    let (kind, number) = channel.split_at(digits);
    let number = number.parse().ok().filter(|number| *number <= MAX_CHANNEL)?;
    // A number has one form, so that a name can be made of it again.
    (channel == format!("{kind}{number}")).then_some(((kind, number), suffix))
}

/// The numbers of the channels of a kind that have such a file.
fn numbers(
    files: &[(Channel<'_>, &str)],
    kind: &str,
    is_wanted: impl Fn(&str) -> bool,
) -> BTreeSet<u32> {
    let wanted = files.iter().filter(|((of, _), suffix)| *of == kind && is_wanted(suffix));
    wanted.map(|((_, number), _)| *number).collect()
}

/// Whether a chip is a power supply's: it says if its power is wrong, or its driver is for supplies.
fn is_supply(driver: &str, files: &[(Channel<'_>, &str)]) -> bool {
    let has = |kinds: &[&str]| files.iter().any(|((kind, _), _)| kinds.contains(kind));
    let is_known = SUPPLY_DRIVERS.iter().any(|known| driver.starts_with(known));
    let says_so =
        files.iter().any(|((kind, _), suffix)| *kind == "power" && ALARMS.contains(suffix));
    says_so || (is_known && has(&["power", "curr"]))
}

/// `7-0058`: a bus and an address.
fn is_on_i2c(device: &str) -> bool {
    device.split_once('-').is_some_and(|(bus, address)| {
        let is_bus = !bus.is_empty() && bus.bytes().all(|byte| byte.is_ascii_digit());
        is_bus && address.len() == 4 && address.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

fn read_fan(directory: &Directory, found: &Found, now: Timestamp) -> Readings {
    let files = PartFiles { directory, now };
    let channel = found.channel.as_deref().unwrap_or_default();
    let speed = |what: &str| files.number(&format!("{channel}_{what}"), 1.0, 0.0..=1e6);
    [
        ("revolutions_per_minute", speed("input")),
        ("minimum_revolutions_per_minute", speed("min")),
        ("alarm", alarm(&files, channel)),
    ]
    .into()
}

fn read_voltage(directory: &Directory, found: &Found, now: Timestamp) -> Readings {
    let files = PartFiles { directory, now };
    let channel = found.channel.as_deref().unwrap_or_default();
    let volts = files.number(&format!("{channel}_input"), 1e3, -1e4..=1e4);
    [("alarm", alarm(&files, channel)), ("volts", volts)].into()
}

/// A supply's alarms are those of its power, its currents and its voltages; its watts are what it takes,
/// or what it gives where it does not say.
fn read_supply(directory: &Directory, found: &Found, now: Timestamp) -> Readings {
    let files = PartFiles { directory, now };
    let names = match directory.names_up_to(MAX_FILES) {
        Ok(names) => names,
        Err(error) => return found.absent(error.absence(), &error.to_string()),
    };
    let alarms = names.iter().filter(|name| {
        channel(name).is_some_and(|((kind, _), suffix)| {
            ["power", "curr", "in"].contains(&kind) && ALARMS.contains(&suffix)
        })
    });
    let alarm = files.any(alarms.map(String::as_str));
    [("alarm", alarm), ("watts", watts(&files, &names))].into()
}

/// The power of the channel that is called the input, or of the first.
fn watts(files: &PartFiles<'_>, names: &[String]) -> Reading<f64> {
    let channels: Vec<_> = names.iter().filter_map(|name| channel(name)).collect();
    let measured = numbers(&channels, "power", |what| ["input", "average"].contains(&what));
    let is_input = |number: &&u32| {
        let label = files.text(&format!("power{number}_label"));
        label.is_ok_and(|label| label.starts_with("pin"))
    };
    let number = measured.iter().find(is_input).or(measured.first()).copied().unwrap_or(1);
    let has_input = names.contains(&format!("power{number}_input"));
    let what = if has_input { "input" } else { "average" };
    files.number(&format!("power{number}_{what}"), 1e6, 0.0..=1e6)
}

/// Whether any of a channel's alarms is on.
fn alarm(files: &PartFiles<'_>, channel: &str) -> Reading<f64> {
    let names = ALARMS.map(|alarm| format!("{channel}_{alarm}"));
    files.any(names.iter().map(String::as_str))
}

#[cfg(test)]
mod tests {
    use super::{channel, is_on_i2c, is_supply};

    #[test]
    fn a_file_is_of_a_channel() {
        for (name, expected) in [
            ("fan1_min_alarm", Some((("fan", 1), "min_alarm"))),
            ("in0_input", Some((("in", 0), "input"))),
            ("pwm1", None),
            ("fan01_input", None),
            ("fan100_input", None),
            ("fan_input", None),
            ("fan99999999999_input", None),
            ("name", None),
        ] {
            assert_eq!(channel(name), expected, "{name}");
        }
    }

    #[test]
    fn a_supply_says_what_is_wrong_with_its_power_or_has_a_driver_for_supplies() {
        let is = |driver, names: &[&str]| {
            is_supply(driver, &names.iter().filter_map(|name| channel(name)).collect::<Vec<_>>())
        };
        assert!(is("x", &["power1_alarm"]) && is("x", &["power2_cap_alarm"]));
        assert!(is("pmbus", &["curr1_input"]) && is("dps920ab", &["power1_input"]));
        assert!(!is("pmbus", &["temp1_input"]) && !is("x", &["power1_input", "curr1_alarm"]));
    }

    #[test]
    fn an_i2c_device_is_known_by_bus_and_address() {
        assert!(is_on_i2c("7-0058") && is_on_i2c("12-00aF"));
        assert!(!is_on_i2c("0000:00:18.3") && !is_on_i2c("-0058") && !is_on_i2c("a-b"));
    }
}
