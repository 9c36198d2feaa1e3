//! Power supplies among the chips of sensors: those of drivers that are for supplies (the kernel's
//! `Documentation/hwmon/pmbus-core.rst` and the pages of the drivers).
//!
//! Other chips measure power too: regulators on the board, monitors of a rail, the firmware's meter
//! (`power_meter`). Their alarms are about limits and caps, and say nothing of a supply.

use telltale_schema::clock::Timestamp;
use telltale_schema::reading::Reading;

use super::alarm::ALARMS;
use super::{Channel, MAX_FILES, channel, numbers};
use crate::hardware::parts::entry::{Answer, Found};
use crate::hardware::parts::value::{PartFiles, any, truth};
use crate::tree::Directory;

pub(super) const NAMES: &[&str] = &["alarm", "watts"];

/// How the names of chips begin that are power supplies. `pmbus` is the driver of those that have none
/// of their own.
const DRIVERS: [&str; 17] = [
    "acbel_fsg",
    "aps_379",
    "bpa_rs",
    "bpd_rs",
    "cffps",
    "corsairpsu",
    "d1u74t",
    "dps",
    "fsp",
    "hac300",
    "intel_crps",
    "ipsps",
    "lineage_pem",
    "pfe",
    "pmbus",
    "yh5151",
    "ym2151",
];

/// Whether a chip is a power supply.
pub(super) fn is_supply(driver: &str, files: &[(Channel<'_>, &str)]) -> bool {
    let measures = files.iter().any(|((kind, _), _)| ["power", "curr"].contains(kind));
    measures && DRIVERS.iter().any(|known| driver.starts_with(known))
}

/// A supply's alarms are those of its power, its currents and its voltages; its watts are what it takes,
/// or what it gives where it does not say.
pub(super) fn read(directory: &Directory, found: &Found, now: Timestamp) -> Answer {
    let files = PartFiles { directory, now };
    let names = match directory.names_up_to(MAX_FILES) {
        Ok(names) => names,
        Err(error) => return found.absent(error.absence(), &error.to_string()).into(),
    };
    let alarms = names.iter().filter(|name| {
        channel(name).is_some_and(|((kind, _), suffix)| {
            ["power", "curr", "in"].contains(&kind) && ALARMS.contains(&suffix)
        })
    });
    // The supply itself knows what is too much, whatever limits it shows.
    let alarm = any(alarms.map(|alarm| files.parsed(alarm, truth)));
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

#[cfg(test)]
mod tests {
    use super::{channel, is_supply};

    #[test]
    fn a_supply_has_a_driver_for_supplies_and_measures_what_it_gives() {
        let is = |driver, names: &[&str]| {
            is_supply(driver, &names.iter().filter_map(|name| channel(name)).collect::<Vec<_>>())
        };
        assert!(is("pmbus", &["curr1_input"]) && is("dps920ab", &["power1_input"]));
        assert!(is("intel_crps185", &["power1_alarm"]));
        assert!(!is("pmbus", &["temp1_input"]), "a sensor on the bus");
        for (other, file) in [
            ("power_meter", "power1_alarm"),
            ("ina226", "power1_crit_alarm"),
            ("amdgpu", "power1_cap_alarm"),
            ("xdpe12284", "power1_alarm"),
        ] {
            assert!(!is(other, &[file, "curr1_alarm", "in1_alarm"]), "{other}");
        }
    }
}
