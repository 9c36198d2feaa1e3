//! The pane of details: the parts of what is selected, by kind, beside its history.

use ratatui_core::layout::Rect;
use telltale_schema::clock::Timestamp;
use telltale_schema::quantity;
use telltale_schema::reading::Reading;
use telltale_schema::snapshot::{Device, LinkState, Process, Snapshot};

use super::canvas::{Canvas, cells};
use super::column;
use super::device_pane;
use super::device_rows::{DeviceRow, IdleDevices};
use super::graph;
use super::lines::wrapped;
use super::row::Who;
use super::series::GraphSeries;
use super::theme::Role;
use super::view::{Focus, View};
use crate::text::width;
use crate::{faults, links, usage};

/// Columns of the parts; the graph has what is left.
const PARTS_WIDTH: u16 = 60;

/// Where the values of a line are, and how wide.
const SHOWN_METRICS: [(u16, u16); 4] = [(18, 10), (28, 10), (38, 9), (48, 12)];

/// A line of parts: its name, then values.
type Part = (String, [String; 4]);

/// Paints the pane.
pub(super) fn paint(view: &View, canvas: &mut Canvas<'_>, area: Rect, shown: &Snapshot) {
    match view.focus {
        Focus::Devices => match view.device_rows.get(view.device.at()) {
            Some(DeviceRow::Device(place)) => device_details(view, canvas, area, shown, *place),
            Some(DeviceRow::Idle(idle)) => idle_details(canvas, area, shown, idle),
            None => {}
        },
        Focus::Processes | Focus::Pane => match view.selected_process() {
            Some((who, place)) => {
                process_details(view, canvas, area, shown, (who, &shown.processes[place]));
            }
            None => {
                let words = "Select a process, or press Tab for the devices.";
                canvas.text(area.x, area.y, area.width, words, Role::Faint);
            }
        },
    }
}

fn process_details(
    view: &View,
    canvas: &mut Canvas<'_>,
    area: Rect,
    shown: &Snapshot,
    (who, process): (Who, &Process),
) {
    let mut parts = Vec::new();
    for held in &process.devices {
        let device = shown.devices.get(held.device).map_or("", |device| &device.id);
        for one in &held.kinds {
            let recorded = one.usage.recorded();
            let bytes = |of: Option<u64>| of.map_or_else(absent, quantity::bytes);
            let buffers = recorded.map_or_else(absent, |it| quantity::count(it.live_buffers));
            let live = bytes(Some(one.usage.live_bytes()));
            let peak = bytes(recorded.map(|usage| usage.peak_bytes));
            let shown_metrics = [live, peak, buffers, device.to_owned()];
            parts.push((one.kind.name().to_owned(), shown_metrics));
        }
    }
    let headings = ["LIVE", "PEAK", "BUFFERS", "DEVICE"];
    let nothing = process.known_by.map_or("no source reports what it has", |_| "it has nothing");
    about(canvas, area, process_words(process).into_iter().map(heading));
    let inside = table(canvas, area, "KIND", headings, &parts, nothing);
    match view.history.process(who) {
        Some(series) => {
            let most = graph::largest(series, graph::room(canvas, plot_area(inside)));
            let top = quantity::bytes(whole(most));
            let space = view.history.space.name().to_uppercase();
            history(canvas, inside, series, most, &format!("{space} to {top}"));
        }
        None if view.history.left_out > 0 => {
            let left_out = u64::try_from(view.history.left_out).unwrap_or(u64::MAX);
            let words = ["No history here;", &quantity::count(left_out), "are left out."];
            for (y, words) in (inside.top()..inside.bottom()).zip(words) {
                canvas.text(inside.x, y, inside.width, words, Role::Faint);
            }
        }
        None => {}
    }
}

fn device_details(
    view: &View,
    canvas: &mut Canvas<'_>,
    area: Rect,
    shown: &Snapshot,
    place: usize,
) {
    let device = &shown.devices[place];
    let part = |kind: &telltale_schema::snapshot::KindMemory| {
        let shown_metrics =
            [kind.total_bytes, kind.processes_bytes, kind.unattributed_bytes, kind.ghost_bytes];
        (kind.kind.name().to_owned(), shown_metrics.map(quantity::bytes))
    };
    let parts: Vec<Part> = device.kinds.iter().map(part).collect();
    let holders = holder_words(view, shown, place);
    about(canvas, area, device_words(device, holders));
    let wrong = wrong_words(device, shown.taken_at);
    let area = match wrong.is_empty() || area.height < 2 {
        true => area,
        false => {
            let below = Rect { y: area.y + 1, height: area.height - 1, ..area };
            about(canvas, below, wrong);
            below
        }
    };
    let headings = ["TOTAL", "PROCESSES", "UNATTR.", "GHOST"];
    let inside = table(canvas, area, "KIND", headings, &parts, &in_use(device));
    let shown_metric = view.settings.shown_metric;
    if let Some(series) = view.history.device(&device.id, shown_metric) {
        let most =
            device_pane::most(device, shown_metric, series, graph::room(canvas, plot_area(inside)));
        let now = shown_metric.value(device).map(|now| shown_metric.text(now));
        let top = shown_metric.text(f64::from(most));
        let name = shown_metric.name();
        let words = match now {
            Some(now) => vec![
                format!("{name} {now}, to {top}"),
                format!("{now}, to {top}"),
                format!("{name} {now}"),
                now,
            ],
            None => vec![format!("{name} {}", absent()), absent()],
        };
        let fits = |words: &&String| cells(width(words)) <= inside.width;
        let words = words.iter().find(fits).unwrap_or(&words[0]);
        history(canvas, inside, series, most, words);
    }
}

/// Which devices a row of idle ones stands for.
fn idle_details(canvas: &mut Canvas<'_>, area: Rect, shown: &Snapshot, idle: &IdleDevices) {
    let hint = "no process has them open, and nothing is in use; Return or a shows each";
    let words = [heading(idle.name()), (hint.to_owned(), Role::Faint)];
    about(canvas, area, words);
    let ids: Vec<&str> = idle.places.iter().map(|at| shown.devices[*at].id.as_str()).collect();
    let lines = wrapped(&ids.join("  "), area.width);
    for (y, line) in (area.top() + 1..area.bottom()).zip(&lines) {
        canvas.text(area.x, y, area.width, line, Role::Plain);
    }
}

fn absent() -> String {
    String::from("n/a")
}

/// What to say of a device without parts: that nothing is in use, or why it is unknown.
fn in_use(device: &Device) -> String {
    let unknown = device.spaces.iter().find_map(|usage| match &usage.used_bytes {
        Reading::Value { .. } => None,
        Reading::Absent { absent, detail } if detail.is_empty() => Some(absent.words().to_owned()),
        Reading::Absent { absent, detail } => Some(format!("{}: {detail}", absent.words())),
    });
    unknown.unwrap_or_else(|| String::from("nothing is in use"))
}

/// A level of a graph as a number of bytes; it has seven digits.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn whole(level: f32) -> u64 {
    level.max(0.0) as u64
}

fn about(canvas: &mut Canvas<'_>, area: Rect, words: impl IntoIterator<Item = (String, Role)>) {
    let mut x = area.x;
    for (words, role) in words {
        let room = area.right().saturating_sub(x);
        x = canvas.text(x, area.y, room, &words, role).saturating_add(2);
    }
}

fn heading(words: String) -> (String, Role) {
    (words, Role::Heading)
}

fn process_words(process: &Process) -> Vec<String> {
    let pid = crate::processes::pid(process.pid);
    let inner = process.namespace_pid.map(|pid| format!("({pid} in its container)"));
    let programs = process.programs().map(|programs| {
        let hits = programs
            .hit_ratio()
            .map_or(String::new(), |hits| format!(", {:.1} % hits", hits * 100.0));
        format!("{} programs{hits}", quantity::count(programs.cached))
    });
    let started = usage::started(process).map(|started| format!("started {started}"));
    let used = process.usage.as_deref().and_then(usage::of_process);
    let user = crate::processes::owner(process).text().to_owned();
    let command = crate::processes::command(process).text().to_owned();
    let words = [Some(pid), inner, Some(user), column::container(process), started, used, programs];
    words.into_iter().flatten().chain([command]).collect()
}

/// Who holds a device, those with most memory there by name and in the colours of their parts of the bar.
fn holder_words(view: &View, shown: &Snapshot, device: usize) -> Vec<(String, Role)> {
    const NAMED: usize = 3;
    let holders = shown.holders(device);
    if holders.known.is_empty() && holders.others == 0 {
        let is_known = shown.devices.get(device).is_some_and(|it| it.holders.value().is_some());
        let words = is_known.then(|| heading(String::from("no process has it open")));
        return words.into_iter().collect();
    }
    let named = holders.known.iter().take(NAMED).map(|(process, held)| {
        let pid = crate::processes::pid(process.pid);
        let owner = crate::processes::owner(process);
        let bytes = held.total_bytes().map_or_else(absent, quantity::bytes);
        let words = format!("{pid} {} ({}) {bytes}", process.name, owner.text());
        let place = shown.processes.iter().position(|it| std::ptr::eq(it, *process));
        let who = Who::of(process, place.unwrap_or_default(), &view.machines);
        (words, view.stacks.role(who))
    });
    let more = holders.known.len().saturating_sub(NAMED) + holders.others;
    let more = (more > 0).then(|| match holders.known.len() {
        0 => format!("{more} not shown"),
        _ => format!("{more} more"),
    });
    let first = heading(String::from("held by"));
    std::iter::once(first).chain(named).chain(more.map(heading)).collect()
}

fn device_words(device: &Device, holders: Vec<(String, Role)>) -> Vec<(String, Role)> {
    let firmware = device.telemetry.firmware.get("tt_fw_bundle_ver");
    let words = [
        Some(device.id.clone()),
        Some(device.identity.product().to_owned()),
        device.architecture().map(|it| it.name().to_owned()),
    ];
    let firmware = firmware.map(|version| heading(format!("firmware {version}")));
    let link = link_words(device);
    let rates = links::rates(device).map(|rates| heading(format!("PCIe {rates}")));
    let near = links::near(device).map(heading);
    let words = words.into_iter().flatten().map(heading).chain(link);
    words.chain(holders).chain(rates).chain(near).chain(firmware).collect()
}

/// What is wrong with a device, and for how long.
fn wrong_words(device: &Device, now: Timestamp) -> Vec<(String, Role)> {
    let wrong = device.faults.iter().filter(|fault| fault.is_wrong());
    let words = wrong.map(|fault| {
        let span = quantity::span(now.since_ns(fault.since) as f64 / 1e9);
        let role = faults::tone(fault.kind.state()).into();
        (format!("{} for {span}", fault.kind.words()), role)
    });
    words.collect()
}

/// What a device's link is, as a warning where it is less than device and slot can do.
fn link_words(device: &Device) -> Option<(String, Role)> {
    let (words, state) = links::words(device)?;
    let role = if state == LinkState::Reduced { Role::Warning } else { Role::Heading };
    Some((format!("PCIe {words}"), role))
}

/// The parts at the left; gives the area that is left for the graph.
fn table(
    canvas: &mut Canvas<'_>,
    area: Rect,
    title: &str,
    headings: [&str; 4],
    parts: &[Part],
    nothing: &str,
) -> Rect {
    let mut y = area.y + 1;
    let mut line = |canvas: &mut Canvas<'_>, name: &str, shown_metrics: [&str; 4], role: Role| {
        // Text without values has the whole line.
        let room = if shown_metrics == [""; 4] { PARTS_WIDTH } else { SHOWN_METRICS[0].0 };
        canvas.text(area.x, y, room, name, role);
        for ((x, room), shown_metric) in SHOWN_METRICS.into_iter().zip(shown_metrics) {
            canvas.right(area.x + x, y, room, shown_metric, role);
        }
        y += 1;
    };
    line(canvas, title, headings, Role::Faint);
    let room = usize::from(area.height.saturating_sub(2));
    let fitting = if parts.len() > room { room.saturating_sub(1) } else { parts.len() };
    for (name, shown_metrics) in &parts[..fitting] {
        line(canvas, name, shown_metrics.each_ref().map(String::as_str), Role::Plain);
    }
    if parts.is_empty() {
        for row in wrapped(nothing, PARTS_WIDTH).iter().take(room) {
            line(canvas, row, [""; 4], Role::Faint);
        }
    }
    if fitting < parts.len() {
        let more = format!("{} more", parts.len() - fitting);
        line(canvas, &more, [""; 4], Role::Faint);
    }
    let left = PARTS_WIDTH + 2;
    Rect::new(area.x + left, area.y + 1, area.width - left, area.height.saturating_sub(1))
}

fn history(canvas: &mut Canvas<'_>, area: Rect, series: &GraphSeries, most: f32, words: &str) {
    canvas.text(area.x, area.y, area.width, words, Role::Faint);
    graph::paint(canvas, plot_area(area), series, most);
}

/// Below the words.
fn plot_area(area: Rect) -> Rect {
    Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area }
}
