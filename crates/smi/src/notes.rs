//! What the tables alone would hide: memory that no row explains, and holders that no row shows.

use telltale_schema::quantity;
use telltale_schema::snapshot::{Device, Holder, KindMemory, Snapshot};
use telltale_schema::text::printable;

use crate::machine::Machine;
use crate::style::{Style, Tone};
use crate::text;

/// Holders that are named in one line.
const MOST_NAMED: usize = 8;

/// A line for each thing, after an empty one; nothing if the tables say it all.
pub(crate) fn section(machines: &[Machine<'_>], style: &Style) -> String {
    let mut page = String::new();
    for machine in machines {
        let snapshot = machine.snapshot;
        let others = closed(snapshot).into_iter().chain(withheld(snapshot));
        let withholds = snapshot.withheld_processes > 0;
        let of_devices = snapshot.devices.iter().flat_map(|device| of_device(device, withholds));
        for line in of_devices.chain(others) {
            page.push_str(&text::painted(&machine.line(&line), Tone::Warning, style));
        }
    }
    if page.is_empty() { page } else { format!("\n{page}") }
}

/// Those that belong to other users, in one line however many they are.
fn closed(snapshot: &Snapshot) -> Option<String> {
    let (whose, verb) = match snapshot.closed_processes {
        0 => return None,
        1 => (String::from("1 process of another user"), "is"),
        many => (format!("{} processes of other users", quantity::count(many)), "are"),
    };
    Some(format!(
        "{whose} cannot be read and {verb} not counted; run as root, or as the user telltale where \
         its directory is installed"
    ))
}

/// Those that the service keeps from this client.
fn withheld(snapshot: &Snapshot) -> Option<String> {
    let (whose, verb) = match snapshot.withheld_processes {
        0 => return None,
        1 => (String::from("1 process of another user"), "is"),
        many => (format!("{} processes of other users", quantity::count(many)), "are"),
    };
    Some(format!(
        "{whose} {verb} in the devices' values and not shown to you; ask at the service's Unix socket as \
         root or a member of its group, or with its token"
    ))
}

fn of_device(device: &Device, withholds: bool) -> Vec<String> {
    let holders = device.holders.value().map_or(&[][..], Vec::as_slice);
    let found = [
        silent(holders),
        hidden(holders, withholds),
        parts(device, |parts| parts.ghost_bytes, "in use by rows of dead processes in a region"),
        // Another vendor's driver counts what is not recorded; that is no fault.
        device.identity.chip().and_then(|_| {
            let words = "in use and in no process's row";
            parts(device, |parts| parts.unattributed_bytes, words)
        }),
    ];
    let id = printable(&device.id);
    found.into_iter().flatten().map(|text| format!("{id}: {text}")).collect()
}

/// Those that hold the device and whose memory is unknown.
fn silent(holders: &[Holder]) -> Option<String> {
    let silent = holders.iter().filter(|holder| !holder.memory_known);
    let mut pids: Vec<String> =
        silent.filter_map(|holder| holder.pid).map(|pid| pid.to_string()).collect();
    let (first, more) = (pids.first()?.clone(), pids.len().saturating_sub(MOST_NAMED));
    let one = pids.len() == 1;
    pids.truncate(MOST_NAMED);
    let named = match (one, more) {
        (true, _) => format!("process {first}"),
        (_, 0) => format!("processes {}", pids.join(", ")),
        _ => format!("processes {} and {more} more", pids.join(", ")),
    };
    let (verb, whose) = if one { ("holds", "its") } else { ("hold", "their") };
    Some(format!("{named} {verb} it, and {whose} memory is unknown and not counted"))
}

/// Those that cannot be seen from here. A service that withholds processes tells no pid of anybody,
/// so which of the two it is cannot be known.
fn hidden(holders: &[Holder], withholds: bool) -> Option<String> {
    let hidden = holders.iter().any(|holder| holder.pid.is_none() && !holder.memory_known);
    let why = match withholds {
        true => "not shown to you",
        false => "not visible from this PID namespace",
    };
    hidden.then(|| format!("held by a process that is {why}; its memory is not counted"))
}

/// One part of each kind's total, for the kinds that have any of it.
fn parts(device: &Device, part: impl Fn(&KindMemory) -> u64, words: &str) -> Option<String> {
    let kinds = device.kinds.iter().filter(|kind| part(kind) > 0);
    let listed: Vec<String> =
        kinds.map(|kind| format!("{} {}", quantity::bytes(part(kind)), kind.kind.name())).collect();
    (!listed.is_empty()).then(|| format!("{} {words}", listed.join(", ")))
}
