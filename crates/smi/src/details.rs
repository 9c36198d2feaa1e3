//! Everything the tables leave out: per process, device and kind with peaks, the parts of each
//! device's total, and the reason for each absence.

use telltale_schema::calendar;
use telltale_schema::chip::ChipIdentity;
use telltale_schema::device::{DeviceIdentity, OtherIdentity};
use telltale_schema::health::{Fault, Health};
use telltale_schema::memory::MemorySpace;
use telltale_schema::quantity;
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::sensor::{SENSORS, SensorValue};
use telltale_schema::snapshot::{
    Container, Device, HeldDevice, Holder, LinkState, MetricSample, PcieLink, Process,
    ProcessState, ProcessUsage, ProgramUse, Snapshot, SourceNote, SourceStatus, Telemetry,
};
use telltale_schema::text::printable;

use crate::machine::Machine;
use crate::style::{Style, Tone};
use crate::table::{Cell, Column, Table};
use crate::text::{cut, painted, width, wrapped};
use crate::{faults, links, metrics, rows, usage};

/// The pages that `telltale smi --details` adds after the overview. Processes come first: they are
/// what one searches for, and the sensors of a few devices fill a screen.
pub fn details(snapshot: &Snapshot, style: &Style) -> String {
    let mut page = DetailsPage { text: String::new(), style };
    for process in &snapshot.processes {
        process_section(snapshot, process, &mut page);
    }
    for device in &snapshot.devices {
        device_section(device, &mut page);
    }
    if snapshot.host.is_some() || !snapshot.faults.is_empty() {
        host_section(snapshot, &mut page);
    }
    notes(snapshot, &mut page);
    page.text
}

/// How a device or the machine is, and since when.
fn health_line(health: Health<'_>, not_kept: bool, page: &mut DetailsPage) {
    let more = match health.cause {
        Some(cause) => format!(" since {}", calendar::format(cause.since)),
        None if not_kept => String::from(" (not kept)"),
        None => String::new(),
    };
    page.line("health", &format!("{}{more}", health.state.name()));
}

/// What is wrong and what ends it, and events.
fn fault_lines(faults: &[Fault], page: &mut DetailsPage) {
    for fault in faults {
        let part = if fault.part.is_empty() { "" } else { &format!("{}: ", fault.part) };
        let label = if fault.is_wrong() { "cause" } else { "event" };
        page.line(label, &printable(&format!("{part}{}", fault.detail)));
        if fault.is_wrong() {
            page.line("ends when", fault.kind.rule().ends);
        }
    }
}

/// How the parts of the machine are, what all processes use in one line, and why the rest cannot be read.
fn host_section(snapshot: &Snapshot, page: &mut DetailsPage) {
    page.heading("Host");
    health_line(snapshot.host_health(), false, page);
    fault_lines(&snapshot.faults, page);
    let Some(used) = snapshot.host.as_deref() else { return };
    let known = usage::of_host(used);
    if !known.is_empty() {
        page.line("all processes", &known.join(", "));
    }
    absent("CPU", &used.cpu_ratio, page);
    absent("RAM", &used.used_bytes, page);
    absent("load", &used.load_1, page);
}

/// A line for what cannot be read, and none for what can.
fn absent<T>(name: &str, reading: &Reading<T>, page: &mut DetailsPage) {
    if let Reading::Absent { .. } = reading {
        page.reading(name, reading, |_| String::new());
    }
}

/// What sources noticed and is no failure of theirs.
fn notes(snapshot: &Snapshot, page: &mut DetailsPage) {
    let with_notes = snapshot.sources.iter().filter(|source| !source.notes.is_empty());
    for (number, source) in with_notes.enumerate() {
        if number == 0 {
            page.heading("Noticed");
        }
        for note in &source.notes {
            let SourceNote { subject, count, detail } = note;
            let (subject, detail) = (printable(subject), printable(detail));
            page.line(&source.name, &format!("{count} of {subject}: {detail}"));
        }
    }
}

/// A line for each thing that is wrong with a device or a part of the machine, and for each that a source could not
/// read.
pub(crate) fn complaints(machines: &[Machine<'_>], style: &Style) -> String {
    let mut page = String::new();
    for machine in machines {
        for (state, line) in faults::lines(machine.snapshot) {
            let tone = faults::tone(state);
            page.push_str(&painted(&machine.line(&printable(&line)), tone, style));
        }
        for source in &machine.snapshot.sources {
            for line in complaints_of(source) {
                page.push_str(&painted(&machine.line(&line), Tone::Warning, style));
            }
        }
    }
    match page.is_empty() {
        true => page,
        false => format!("\n{page}"),
    }
}

fn complaints_of(source: &SourceStatus) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for error in &source.errors {
        lines.push(format!(
            "{}: {}: {} ({})",
            source.name,
            printable(&error.subject),
            error.reason.words(),
            printable(&error.detail)
        ));
    }
    if source.errors_dropped > 0 {
        lines.push(format!("{}: {} more errors", source.name, source.errors_dropped));
    }
    lines
}

/// The columns that the names in the details take.
const NAME_COLUMNS: usize = 22;
/// The most columns that the names of a process's own metrics take together.
const METRIC_COLUMNS: usize = 60;
/// Holders of one device that are listed.
const MOST_HOLDERS: usize = 32;

/// A page of named values, made for one style.
struct DetailsPage<'a> {
    text: String,
    style: &'a Style,
}

impl DetailsPage<'_> {
    fn heading(&mut self, text: &str) {
        let room = self.style.width.unwrap_or(usize::MAX);
        let heading = Tone::Heading.paint(&cut(text, room, self.style), self.style);
        self.text.push_str(&format!("\n{heading}\n"));
    }

    fn line(&mut self, name: &str, value: &str) {
        self.aligned(name, value, NAME_COLUMNS);
    }

    /// A line whose value begins after `columns`, or after the name where that is wider.
    fn aligned(&mut self, name: &str, value: &str, columns: usize) {
        let room = " ".repeat(columns.saturating_sub(width(name)).max(1));
        self.text.push_str(&wrapped(&format!("  {name}{room}{value}"), columns + 2, self.style));
    }

    /// A line in a tone, which is not aligned where it is wrapped.
    fn toned(&mut self, name: &str, value: &str, tone: Tone) {
        let room = " ".repeat(NAME_COLUMNS.saturating_sub(width(name)).max(1));
        self.text.push_str(&painted(&format!("  {name}{room}{value}"), tone, self.style));
    }

    fn reading<T>(&mut self, name: &str, reading: &Reading<T>, show: impl Fn(&T) -> String) {
        let value = match reading {
            Reading::Value { value, .. } => show(value),
            Reading::Absent { absent, detail } if detail.is_empty() => {
                format!("not available: {}", absent.words())
            }
            Reading::Absent { absent, detail } => {
                format!("not available: {} ({})", absent.words(), printable(detail))
            }
        };
        self.line(name, &value);
    }

    fn table(&mut self, table: &Table) {
        self.text.push_str(&table.render(self.style));
    }
}

fn device_section(device: &Device, page: &mut DetailsPage) {
    page.heading(&format!("Device {}", printable(&device.id)));
    match &device.identity {
        DeviceIdentity::Chip(chip) => chip_lines(chip, page),
        DeviceIdentity::Other(other) => other_lines(other, page),
    }
    health_line(device.health(), device.health_not_kept, page);
    fault_lines(&device.faults, page);
    telemetry_section(&device.telemetry, page);
    if let Some(link) = &device.telemetry.link {
        link_lines(link, device, page);
    }
    for space in &device.spaces {
        let name = match space.space {
            MemorySpace::Dram => "DRAM",
            MemorySpace::L1 => "L1",
            MemorySpace::Host => "host memory",
        };
        page.reading(&format!("{name} used"), &space.used_bytes, |bytes| quantity::bytes(*bytes));
        page.reading(&format!("{name} capacity"), &space.capacity_bytes, |bytes| {
            match space.capacity_source {
                Some(source) => format!("{} ({})", quantity::bytes(*bytes), source.words()),
                None => quantity::bytes(*bytes),
            }
        });
    }
    page.reading("open by", &device.holders, |holders| listed(holders));
    parts_table(device, page);
}

fn chip_lines(chip: &ChipIdentity, page: &mut DetailsPage) {
    page.line("board", chip.board_type.name());
    if let Some(board) = chip.board_id {
        page.line("board id", &board.to_string());
    }
    if let Some(pci) = chip.pci {
        page.line("PCI address", &pci.to_string());
    }
    if let Some(ordinal) = chip.driver_ordinal {
        page.line("driver ordinal", &ordinal.to_string());
    }
    if let Some(galaxy) = chip.galaxy {
        page.line("tray, chip (driver)", &format!("{}, {} (from 1)", galaxy.tray, galaxy.nibble));
    }
}

fn other_lines(other: &OtherIdentity, page: &mut DetailsPage) {
    let pci = other.pci.map(|pci| pci.to_string());
    let ordinal = other.driver_ordinal.map(|ordinal| ordinal.to_string());
    let lines = [
        ("vendor", Some(other.vendor.as_str())),
        ("class", Some(other.class.name())),
        ("model", other.model.as_deref()),
        ("driver", other.driver.as_deref()),
        ("driver ordinal", ordinal.as_deref()),
        ("PCI address", pci.as_deref()),
        ("uuid", other.uuid.as_deref()),
        ("serial number", other.serial.as_deref()),
        ("partition of", other.parent.as_deref()),
    ];
    for (name, value) in lines {
        if let Some(value) = value {
            page.line(name, &printable(value));
        }
    }
}

/// Who has a device open, in one line.
fn listed(holders: &[Holder]) -> String {
    if holders.is_empty() {
        return String::from("no process");
    }
    let mut names: Vec<String> = holders
        .iter()
        .take(MOST_HOLDERS)
        .map(|holder| {
            let who = crate::processes::pid(holder.pid);
            match holder.open_descriptors {
                1 => who,
                several => format!("{who} ({several} times)"),
            }
        })
        .collect();
    if holders.len() > MOST_HOLDERS {
        names.push(format!("{} more", holders.len() - MOST_HOLDERS));
    }
    names.join(", ")
}

fn telemetry_section(telemetry: &Telemetry, page: &mut DetailsPage) {
    let others_than_links = SENSORS.iter().filter(|sensor| sensor.part != Some("link"));
    let readings = others_than_links.filter_map(|sensor| {
        let reading = sensor.read(telemetry)?;
        Some((sensor, reading.map(|value| sensor.text(value.as_f64(), sensor.decimals))))
    });
    let (own, others): (Vec<_>, Vec<_>) = readings.partition(|(sensor, _)| sensor.part.is_none());
    let first = &own[0].1;
    let one_reason = first.absence().is_some()
        && own.iter().all(|(_, reading)| reading.absence() == first.absence());
    if one_reason {
        page.reading("sensors", first, String::clone);
    } else {
        for (sensor, reading) in &own {
            page.reading(sensor.title, reading, String::clone);
        }
    }
    // Vendors' parts are long: what a device does not offer of one says nothing of the device.
    let is_offered = |reading: &Reading<String>| {
        reading.absence().is_none_or(|(reason, _)| reason != Absence::Unsupported)
    };
    for (sensor, reading) in others.iter().filter(|(_, reading)| is_offered(reading)) {
        page.reading(sensor.title, reading, String::clone);
    }
    if let Some(load) = &telemetry.load {
        page.reading("throttled by", &load.throttled_by, |reasons| match reasons.is_empty() {
            true => String::from("nothing"),
            false => printable(&reasons.join(", ")),
        });
    }
    if let Some(counts) = &telemetry.memory_counts {
        for (category, bytes) in &counts.category_bytes {
            page.line(&format!("  {}", printable(category)), &quantity::bytes(*bytes));
        }
    }
    for (name, version) in &telemetry.firmware {
        page.line(&printable(name), &printable(version));
    }
}

/// What the link is, in one line, and what goes over it.
fn link_lines(link: &PcieLink, device: &Device, page: &mut DetailsPage) {
    match links::words(device) {
        Some((words, LinkState::Reduced)) => {
            page.toned("PCIe link", &format!("{words}: it can do more"), Tone::Warning);
        }
        _ => page.reading("PCIe link", &link.words(), String::clone),
    }
    for sensor in SENSORS.iter().filter(|sensor| sensor.part == Some("link")) {
        if let Some(reading) = sensor.read(&device.telemetry)
            && sensor.metric.rate_of.is_some()
        {
            let show = |value: &SensorValue| sensor.text(value.as_f64(), sensor.decimals);
            page.reading(sensor.title, &reading, show);
        }
    }
    page.reading("NUMA node", &link.numa_node, ToString::to_string);
}

fn parts_table(device: &Device, page: &mut DetailsPage) {
    if device.kinds.is_empty() {
        return;
    }
    let mut table = Table::new(vec![
        Column::left("  KIND", 0),
        Column::right("TOTAL", 0),
        Column::right("PROCESSES", 1),
        Column::right("UNATTRIBUTED", 2),
        Column::right("GHOST", 2),
        Column::right("BUFFERS", 3),
    ]);
    for parts in &device.kinds {
        table.push(vec![
            Cell::new(format!("  {}", parts.kind.name())),
            Cell::new(quantity::bytes(parts.total_bytes)),
            Cell::new(quantity::bytes(parts.processes_bytes)),
            Cell::new(quantity::bytes(parts.unattributed_bytes)),
            Cell::new(quantity::bytes(parts.ghost_bytes)),
            Cell::count(parts.live_buffers),
        ]);
    }
    page.table(&table);
}

/// What Kubernetes calls the container's pod, and what it gave it.
fn pod(container: &Container, page: &mut DetailsPage) {
    match (&container.pod, &container.pod_uid) {
        (Some(pod), _) => {
            let mut names = format!("{}/{}", pod.namespace, pod.name);
            if let Some(container) = &pod.container {
                names.push_str(&format!(", container {container}"));
            }
            page.line("pod", &printable(&names));
            for one in &pod.allocated {
                let text = format!("{}: {}", one.resource, one.ids.join(", "));
                page.line("allocated", &printable(&text));
            }
        }
        (None, Some(uid)) => {
            page.line("pod", &printable(&format!("{uid} (its name is not known)")))
        }
        (None, None) => {}
    }
}

fn process_section(snapshot: &Snapshot, process: &Process, page: &mut DetailsPage) {
    let pid = crate::processes::pid(process.pid);
    let state = match process.state {
        ProcessState::Alive => "",
        ProcessState::Dead => " (ended: last known values, in no total)",
        ProcessState::Hidden if process.pid.is_some() => {
            " (/proc hides it from this user: hidepid)"
        }
        ProcessState::Hidden => " (not visible from this PID namespace)",
    };
    let name = printable(&process.name);
    let gap = if name.is_empty() { "" } else { " " };
    page.heading(&format!("Process {pid}{gap}{name}{state}"));
    page.reading("command", &process.command, |text| printable(text));
    match (&process.user, process.uid.value()) {
        (Reading::Absent { .. }, Some(uid)) => {
            page.line("user", &format!("{uid} (a user id without a name in /etc/passwd)"));
        }
        (user, _) => page.reading("user", user, |text| printable(text)),
    }
    if let Some(inner) = process.namespace_pid {
        page.line("pid in its container", &inner.to_string());
    }
    if let Some(container) = &process.container {
        let text = format!("{} ({})", container.id, container.engine);
        page.line("container", &printable(&text));
        pod(container, page);
    }
    match process.known_by {
        Some(source) => page.line("memory known by", source.words()),
        None if process.state == ProcessState::Hidden => {
            page.line("memory", "not available: what the process records is not visible from here");
        }
        None => page.line("memory", "not available: the process records nothing that can be read"),
    }
    if let Some(started) = usage::started(process) {
        page.line("started", &started);
    }
    page.reading("recording for", &process.uptime_seconds, |seconds| quantity::span(*seconds));
    if let Some(used) = process.usage.as_deref() {
        usage_lines(used, page);
    }
    let faults = process.faults;
    for (name, count) in [
        ("double frees", faults.double_frees),
        ("unknown frees", faults.unknown_frees),
        ("reused live addresses", faults.reused_live_addresses),
        ("unrecorded events", faults.unrecorded_events),
    ] {
        if count > 0 {
            page.line(name, &quantity::count(count));
        }
    }
    kinds_table(snapshot, process, page);
    let programs = process.programs();
    if let Some(programs) = &programs {
        page.line("programs", &metrics::programs(programs));
    }
    let is_reported = |sample: &MetricSample| {
        let of_programs = ProgramUse::METRICS.iter().any(|metric| metric.name == sample.name);
        metrics::is_quiet(sample, &process.metrics) || (of_programs && programs.is_some())
    };
    let worth_telling = process.metrics.iter().filter(|sample| !is_reported(sample));
    let reported: Vec<(String, String)> = worth_telling.map(metrics::line).collect();
    let widest = reported.iter().map(|(name, _)| width(name) + 1).max().unwrap_or(0);
    for (name, value) in &reported {
        page.aligned(name, value, widest.clamp(NAME_COLUMNS, METRIC_COLUMNS));
    }
}

/// What can be read in one line, and why the rest cannot.
fn usage_lines(used: &ProcessUsage, page: &mut DetailsPage) {
    if let Some(words) = usage::of_process(used) {
        page.line("on the host", &words);
    }
    absent("CPU", &used.cpu_ratio, page);
    absent("storage", &used.read_bytes_per_second, page);
}

fn kinds_table(snapshot: &Snapshot, process: &Process, page: &mut DetailsPage) {
    let mut table = Table::new(vec![
        Column::left("  DEVICE", 0),
        Column::left("KIND", 0),
        Column::right("LIVE", 0),
        Column::right("PEAK", 1),
        Column::right("BUFFERS", 2),
        Column::right("ALLOCATIONS", 3),
        Column::right("ALLOCATED", 4),
        Column::right("FAILED", 5),
    ]);
    for held in rows::devices(&process.devices).into_iter().flatten() {
        for line in rows::lines(Some(held)) {
            table.push(vec![
                Cell::new(format!("  {}", id(snapshot, held))),
                match (line.kind, line.live_bytes()) {
                    (Some(kind), _) => Cell::new(kind.name()),
                    (None, Some(_)) => Cell::toned("none", Tone::Faint),
                    (None, None) => Cell::absent(),
                },
                Cell::bytes(line.live_bytes()),
                Cell::bytes(line.recorded(|usage| usage.peak_bytes)),
                Cell::count(line.recorded(|usage| usage.live_buffers)),
                Cell::count(line.recorded(|usage| usage.allocations)),
                Cell::bytes(line.recorded(|usage| usage.allocated_bytes)),
                Cell::count(line.recorded(|usage| usage.failed_allocations)),
            ]);
        }
    }
    if !process.devices.is_empty() {
        page.table(&table);
    }
    for held in &process.devices {
        if let Some(why) = &held.refused {
            page.line("refused", &format!("{}: it {}", id(snapshot, held), printable(why)));
        }
    }
    for held in &process.devices {
        if let Some(ratio) = held.busy_ratio {
            page.line("busy", &format!("{}: {:.0} %", id(snapshot, held), ratio * 100.0));
        }
    }
    let beside = rows::beside(&process.devices);
    if !beside.is_empty() {
        let ids: Vec<String> = beside.into_iter().map(|held| id(snapshot, held)).collect();
        page.line("open, nothing there", &ids.join(", "));
    }
}

fn id(snapshot: &Snapshot, held: &HeldDevice) -> String {
    let device = snapshot.devices.get(held.device);
    device.map_or_else(|| String::from("unknown"), |device| printable(&device.id))
}
