//! The pane of the topology: which devices share a board or a Galaxy, how each is reached, and one
//! value of each.

use ratatui_core::layout::Rect;
use telltale_schema::chip::BoardType;
use telltale_schema::device::DeviceIdentity;
use telltale_schema::snapshot::{Device, LinkState, Snapshot};

use super::canvas::{Canvas, cells};
use super::lines::{Lines, Scroll, Span};
use super::theme::Role;
use super::topology::{CHIPS_OF_A_TRAY, DeviceGroup, TRAYS, Trays, units};
use super::view::{Focus, View};
use crate::{links, text};

/// Cells of board, serial number, device at least, PCI address, path and value.
const CELLS: [u16; 6] = [9, 16, 12, 12, 15, 6];
/// Cells of a tray's name.
const TRAY: u16 = 3;
/// Cells of a chip in a tray at least and at most, the one after it not counted.
const CHIP: [u16; 2] = [8, 16];

const LINKS: &str = "Ethernet links between boards and trays are not known: no file of the driver \
                     tells of them.";
const ABOUT_N300: &str = "The two chips of an n300 are linked on their board.";

type Line = Vec<Span>;

/// Paints the pane.
pub(super) fn paint(
    view: &View,
    scroll: &mut Scroll,
    canvas: &mut Canvas<'_>,
    area: Rect,
    shown: &Snapshot,
) {
    if shown.devices.is_empty() {
        return scroll.reason(canvas, area, "No device is to be seen, so there is no topology.");
    }
    let mut lines: Vec<Line> = Vec::new();
    let several = view.fleet.is_some();
    let id = room_of_ids(shown, area.width);
    let mut has_boards = false;
    for (host, places) in view.machines.devices(shown.devices.len()) {
        if several && !places.is_empty() {
            lines.push(vec![Span::rest(host, Role::Group)]);
        }
        for unit in units(&shown.devices, places) {
            match unit {
                DeviceGroup::Galaxy { board, trays, others } => {
                    galaxy(view, &mut lines, shown, (board, &trays), area.width);
                    others
                        .iter()
                        .for_each(|at| lines.push(device_line(view, shown, *at, None, id)));
                }
                DeviceGroup::Board(devices) => {
                    has_boards = true;
                    let first = devices.first().copied();
                    for at in devices {
                        let below = first.filter(|first| *first != at);
                        lines.push(device_line(view, shown, at, below, id));
                    }
                }
            }
        }
    }
    lines.extend(
        links::reduced(&shown.devices)
            .into_iter()
            .map(|words| vec![Span::rest(words, Role::Warning)]),
    );
    let chips = || shown.devices.iter().filter_map(|device| device.identity.chip());
    if chips().any(|chip| chip.remote && chip.board_type == BoardType::N300) {
        lines.push(vec![Span::rest(ABOUT_N300, Role::Faint)]);
    }
    if chips().next().is_some() {
        lines.extend(
            super::lines::wrapped(LINKS, area.width)
                .into_iter()
                .map(|words| vec![Span::rest(words, Role::Faint)]),
        );
    }
    let heading = if has_boards { heading(view, id) } else { Vec::new() };
    let line = |at: usize| lines[at].clone();
    scroll.lines(canvas, area, &Lines { heading, count: lines.len(), line: &line });
}

fn heading(view: &View, id: u16) -> Line {
    let shown_metric = view.settings.shown_metric.heading();
    let titles = ["BOARD", "SERIAL", "DEVICE", "PCI", "REACHED"].into_iter().zip(with(id));
    let left = titles.map(|(title, cells)| Span::left(title, cells, Role::Heading));
    left.chain([Span::right(shown_metric, CELLS[5], Role::Heading)]).collect()
}

/// The line of a device; `first` is that of its board, if that is another one.
fn device_line(view: &View, shown: &Snapshot, at: usize, first: Option<usize>, id: u16) -> Line {
    let device = &shown.devices[at];
    let (board, serial) = match (&device.identity, first) {
        (_, Some(_)) => (String::from("same"), String::new()),
        (DeviceIdentity::Chip(chip), None) => {
            let serial = chip.board_id.map_or_else(absent, |board| board.to_string());
            (chip.board_type.name().to_owned(), serial)
        }
        (DeviceIdentity::Other(_), None) if device.identity.is_host() => {
            (String::from("machine"), String::new())
        }
        (DeviceIdentity::Other(other), None) => {
            (other.vendor.clone(), other.serial.clone().unwrap_or_else(absent))
        }
    };
    let first_id = first.map(|first| shown.devices[first].id.as_str());
    let is_part = device.identity.other().is_some_and(|other| other.parent.is_some());
    let reached = match (device.identity.is_remote(), device.identity.pci(), first_id) {
        _ if is_part => String::from("a part of it"),
        (true, _, Some(gateway)) => format!("by {gateway}"),
        (true, _, None) => String::from("by another chip"),
        (false, Some(_), _) => by_pci(device),
        (false, None, _) if device.identity.is_host() => String::new(),
        (false, None, _) => absent(),
    };
    let pci = device.identity.pci().map_or_else(String::new, |pci| pci.to_string());
    let (shown_metric, role) = shown_value_text(view, device);
    let parts = [board, serial, device.id.clone(), pci, reached.clone()];
    let mut line: Line = parts
        .into_iter()
        .zip(with(id))
        .map(|(part, cells)| Span::left(part, cells, Role::Plain))
        .collect();
    if let Some((_, LinkState::Reduced)) = links::words(device) {
        line[4] = Span::left(reached, CELLS[4], Role::Warning);
    }
    line[2] = Span::left(device.id.as_str(), id, role_of_device(view, at)).of_device(at);
    line.push(Span::right(shown_metric, CELLS[5], role));
    line
}

/// How a device is reached by PCI: what its link is, without what it could be, for which there is no
/// room.
fn by_pci(device: &Device) -> String {
    let now = links::words(device)
        .and_then(|(words, _)| words.split(" of ").next().map(|now| format!("PCIe {now}")));
    now.unwrap_or_else(|| String::from("by PCI"))
}

fn galaxy(
    view: &View,
    lines: &mut Vec<Line>,
    shown: &Snapshot,
    (board, trays): (BoardType, &Trays),
    width: u16,
) {
    let seen = trays.iter().flatten().flatten().count();
    let all = usize::from(TRAYS) * usize::from(CHIPS_OF_A_TRAY);
    let unseen = if seen < all { "; -: none is seen" } else { "" };
    let shown_metric = view.settings.shown_metric.name();
    let words =
        format!("{}: {seen} of {all} chips, each by PCI; {shown_metric}{unseen}", board.name());
    lines.push(vec![Span::rest(words, Role::Heading)]);
    let chips = u16::from(CHIPS_OF_A_TRAY);
    let room = (width.saturating_sub(TRAY + chips) / chips).clamp(CHIP[0], CHIP[1]);
    for (tray, places) in (1..).zip(trays) {
        let mut line = vec![Span::left(format!("T{tray}"), TRAY - 1, Role::Group)];
        for (at, place) in places.iter().enumerate() {
            let name = format!("N{at}");
            let Some(device) = *place else {
                line.push(Span::left(format!("{name} -"), room, Role::Faint));
                continue;
            };
            let (shown_metric, role) = shown_value_text(view, &shown.devices[device]);
            let role = match role_of_device(view, device) {
                Role::Plain => role,
                selected => selected,
            };
            line.push(Span::left(format!("{name} {shown_metric}"), room, role).of_device(device));
        }
        lines.push(line);
    }
}

/// The metric that graphs show too, in few cells.
fn shown_value_text(view: &View, device: &Device) -> (String, Role) {
    let shown_metric = view.settings.shown_metric;
    let Some(value) = shown_metric.value(device) else { return (absent(), Role::Faint) };
    let (number, unit) = shown_metric.parts(value);
    let words = number + &unit.chars().take(1).collect::<String>();
    (words, shown_metric.tone(value, device).into())
}

fn role_of_device(view: &View, at: usize) -> Role {
    match (Some(at) == view.selected_device(), view.focus) {
        (false, _) => Role::Plain,
        (true, Focus::Devices) => Role::Selected,
        (true, _) => Role::Remembered,
    }
}

/// Cells of the longest id, as far as the line has them.
fn room_of_ids(shown: &Snapshot, width: u16) -> u16 {
    let longest = shown.devices.iter().map(|device| text::width(&device.id)).max().unwrap_or(0);
    let others: u16 = CELLS.iter().map(|cells| cells + 1).sum();
    let most = width.saturating_sub(others - CELLS[2]).max(CELLS[2]);
    cells(longest).clamp(CELLS[2], most)
}

/// The cells of a line in which ids have so many.
fn with(id: u16) -> [u16; 6] {
    let mut cells = CELLS;
    cells[2] = id;
    cells
}

fn absent() -> String {
    String::from("n/a")
}
