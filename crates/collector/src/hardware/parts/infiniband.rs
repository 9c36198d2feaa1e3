//! Ports of InfiniBand and RoCE adapters, from `/sys/class/infiniband` (the kernel's
//! `Documentation/ABI/stable/sysfs-class-infiniband`).

pub(super) mod gids;

use telltale_schema::clock::Timestamp;
use telltale_schema::reading::{Absence, Reading};

use super::HostPartKind;
use super::entry::{Answer, Found, cleaned};
use super::value::PartFiles;
use crate::tree::{Directory, Unreadable};
use gids::GidTable;

const NAMES: &[&str] = &[
    "up",
    "physical_state",
    "has_been_up",
    "rate_bits_per_second",
    "link_recoveries_total",
    "link_downs_total",
    "symbol_errors_total",
    "receive_errors_total",
    "gids",
    "routable_gids",
    "is_infiniband",
];

/// The state of a port that carries data.
const ACTIVE: f64 = 4.0;
/// Ports of one adapter that are looked for.
const MAX_PORTS: usize = 16;
/// No port is faster, in gigabits a second.
const MAX_GIGABITS: f64 = 100_000.0;

/// The ports of the adapter of this name; virtual functions have none of their own.
pub(super) fn survey(directory: &Directory, name: &str) -> Result<Vec<Found>, Unreadable> {
    if directory.stat("device/physfn").is_ok() {
        return Ok(Vec::new());
    }
    let names = directory.directory("ports")?.names_up_to(MAX_PORTS)?;
    let mut ports: Vec<u32> = names.iter().filter_map(|port| port.parse().ok()).collect();
    ports.retain(|port| (1..=255).contains(port));
    ports.sort_unstable();
    let port = |port| Found {
        kind: HostPartKind::InfinibandPort,
        item: port,
        owner: cleaned(name),
        place: None,
        channel: Some(port.to_string()),
        gids: None,
        names: NAMES,
        read,
    };
    Ok(ports.into_iter().map(port).collect())
}

fn read(directory: &Directory, found: &Found, now: Timestamp) -> Answer {
    let port = match directory.directory(&format!("ports/{}", found.item)) {
        Ok(port) => port,
        Err(error) => return found.absent(error.absence(), &error.to_string()).into(),
    };
    let files = PartFiles { directory: &port, now };
    let up = files.parsed("state", state).map(|state| f64::from(u8::from(state == ACTIVE)));
    let downs = files.counter("counters/link_downed");
    let has_been_up = match (up.value(), downs.value()) {
        (Some(up), _) if *up > 0.0 => files.is(true),
        (_, Some(downs)) => files.is(*downs > 0.0),
        (_, None) => downs.clone(),
    };
    let rate = match up.value() {
        // A port that is down shows the rate that it would begin with.
        Some(up) if *up == 0.0 => Reading::absent(Absence::Unknown, "the port is down"),
        _ => files.parsed("rate", rate),
    };
    let gids = GidTable::read(&port, found.gids.as_ref(), now);
    let count = |of: fn(&GidTable) -> u16| match &gids {
        Ok(table) => Reading::new(f64::from(of(table)), table.read_at),
        Err(absent) => absent.clone(),
    };
    let readings = [
        ("up", up),
        ("physical_state", files.parsed("phys_state", state)),
        ("has_been_up", has_been_up),
        ("rate_bits_per_second", rate),
        ("link_recoveries_total", files.counter("counters/link_error_recovery")),
        ("link_downs_total", downs),
        ("symbol_errors_total", files.counter("counters/symbol_error")),
        ("receive_errors_total", files.counter("counters/port_rcv_errors")),
        ("gids", count(|table| table.set)),
        ("routable_gids", count(|table| table.routable)),
        ("is_infiniband", files.parsed("link_layer", is_infiniband)),
    ];
    Answer { readings: readings.into(), gids: gids.ok() }
}

/// The number of a state: `4: ACTIVE` is 4.
fn state(text: &str) -> Option<f64> {
    let (number, _) = text.split_once(':')?;
    number.parse::<u8>().ok().map(f64::from)
}

/// `200 Gb/sec (4X HDR)`, `2.5 Gb/sec (1X SDR)`.
fn rate(text: &str) -> Option<f64> {
    let (number, _) = text.split_once(" Gb/sec")?;
    let gigabits: f64 = number.parse().ok()?;
    (0.0..=MAX_GIGABITS).contains(&gigabits).then_some(gigabits * 1e9)
}

fn is_infiniband(text: &str) -> Option<f64> {
    match text {
        "InfiniBand" => Some(1.0),
        "Ethernet" => Some(0.0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{rate, state};

    #[test]
    fn states_and_rates_are_numbers_with_words() {
        for (text, expected) in
            [("4: ACTIVE", Some(4.0)), ("1: DOWN", Some(1.0)), ("ACTIVE", None), ("999: X", None)]
        {
            assert_eq!(state(text), expected, "{text}");
        }
        for (text, expected) in [
            ("200 Gb/sec (4X HDR)", Some(200e9)),
            ("2.5 Gb/sec (1X SDR)", Some(2.5e9)),
            ("-1 Gb/sec", None),
            ("NaN Gb/sec", None),
            ("1e300 Gb/sec", None),
            ("200", None),
        ] {
            assert_eq!(rate(text), expected, "{text}");
        }
    }
}
