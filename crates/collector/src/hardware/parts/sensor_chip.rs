//! Fans, voltages and power supplies of chips of sensors, from `/sys/class/hwmon` (the kernel's
//! `Documentation/hwmon/sysfs-interface.rst`).

mod alarm;
mod supply;

use std::collections::BTreeSet;

use telltale_schema::clock::Timestamp;
use telltale_schema::reading::Reading;

use super::HostPartKind;
use super::entry::{Answer, Found, cleaned};
use super::value::PartFiles;
use crate::hardware::bus;
use crate::tree::{Directory, Unreadable};

/// Files of one chip that are looked at.
const MAX_FILES: usize = 2048;
/// The highest number of a channel: no chip has more.
const MAX_CHANNEL: u32 = 99;
/// Between the numbers of parts of different kinds.
const KIND_ITEMS: u32 = 1000;

/// A lower minimum of a fan was not set: it is what a chip's registers have when it starts up, 10 where all
/// bits are set. No fan of a server turns so slowly.
const MIN_SET_REVOLUTIONS: f64 = 300.0;

const FAN: &[&str] =
    &["revolutions_per_minute", "minimum_revolutions_per_minute", "is_used", "alarm"];
const VOLTAGE: &[&str] = &["alarm", "volts", "minimum_volts", "maximum_volts"];

/// A channel of a chip: what it measures, and its number.
type Channel<'a> = (&'a str, u32);

/// The parts of one chip. Those of an accelerator belong to its device.
pub(super) fn survey(directory: &Directory, name: &str) -> Result<Vec<Found>, Unreadable> {
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
    // Chips on an I2C bus are often several of one kind, and all are known by where they are.
    let by_place = device.as_deref().filter(|device| is_on_i2c(device));
    let owner = by_place.map_or_else(|| driver.clone(), |place| format!("{driver}-{place}"));
    let place = by_place.is_none().then(|| device.clone().unwrap_or_else(|| cleaned(name)));
    let part = |kind, item, channel, names, read| Found {
        kind,
        item,
        owner: owner.clone(),
        place: place.clone(),
        channel,
        gids: None,
        names,
        read,
    };
    let mut found = Vec::new();
    for number in numbers(&files, "fan", |suffix| suffix == "input") {
        let channel = Some(format!("fan{number}"));
        found.push(part(HostPartKind::Fan, KIND_ITEMS + number, channel, FAN, read_fan));
    }
    if supply::is_supply(&driver, &files) {
        found.push(part(HostPartKind::PowerSupply, 1, None, supply::NAMES, supply::read));
    } else {
        for number in numbers(&files, "in", |suffix| alarm::ALARMS.contains(&suffix)) {
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

/// `7-0058`: a bus and an address.
fn is_on_i2c(device: &str) -> bool {
    device.split_once('-').is_some_and(|(bus, address)| {
        let is_bus = !bus.is_empty() && bus.bytes().all(|byte| byte.is_ascii_digit());
        is_bus && address.len() == 4 && address.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

fn read_fan(directory: &Directory, found: &Found, now: Timestamp) -> Answer {
    let files = PartFiles { directory, now };
    let channel = found.channel.as_deref().unwrap_or_default();
    let speed = |what: &str| files.number(&format!("{channel}_{what}"), 1.0, 0.0..=1e6);
    let (turns, minimum) = (speed("input"), speed("min"));
    let is_used = is_used(&files, &turns, &minimum);
    [
        ("revolutions_per_minute", turns),
        ("minimum_revolutions_per_minute", minimum),
        ("is_used", is_used),
        ("alarm", alarm::of_channel(&files, channel)),
    ]
    .into()
}

/// Whether a fan is there: it turns, or it must by a minimum that was set.
fn is_used(files: &PartFiles<'_>, turns: &Reading<f64>, minimum: &Reading<f64>) -> Reading<f64> {
    let is_set = minimum.value().is_some_and(|minimum| *minimum >= MIN_SET_REVOLUTIONS);
    match turns.value() {
        Some(turns) if *turns > 0.0 => files.is(true),
        _ if is_set && alarm::are_set(files) => files.is(true),
        _ => turns.clone().map(|_| 0.0),
    }
}

fn read_voltage(directory: &Directory, found: &Found, now: Timestamp) -> Answer {
    let files = PartFiles { directory, now };
    let channel = found.channel.as_deref().unwrap_or_default();
    let volts = |what: &str| files.number(&format!("{channel}_{what}"), 1e3, -1e4..=1e4);
    [
        ("alarm", alarm::of_channel(&files, channel)),
        ("volts", volts("input")),
        ("minimum_volts", volts("min")),
        ("maximum_volts", volts("max")),
    ]
    .into()
}

#[cfg(test)]
mod tests {
    use super::{channel, is_on_i2c};

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
    fn an_i2c_device_is_known_by_bus_and_address() {
        assert!(is_on_i2c("7-0058") && is_on_i2c("12-00aF"));
        assert!(!is_on_i2c("0000:00:18.3") && !is_on_i2c("-0058") && !is_on_i2c("a-b"));
    }
}
