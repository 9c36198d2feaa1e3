//! Everything the tables leave out: per process, device and kind with peaks, the parts of each
//! device's total, and the reason for each absence.

use std::fmt::Write;

use telltale_schema::reading::Reading;
use telltale_schema::snapshot::{Device, Process, ProcessState, Snapshot, Telemetry};

use crate::quantity;
use crate::style::{Style, Tone};
use crate::table::{Cell, Column, Table};

/// The pages that `telltale smi --details` adds after the overview.
pub fn details(snapshot: &Snapshot, style: &Style) -> String {
    let mut page = String::new();
    for device in &snapshot.devices {
        device_section(device, style, &mut page);
    }
    for process in &snapshot.processes {
        process_section(snapshot, process, style, &mut page);
    }
    page
}

/// One line for each thing a source could not read.
pub(crate) fn complaints(snapshot: &Snapshot, style: &Style) -> String {
    let mut page = String::new();
    for source in &snapshot.sources {
        for error in &source.errors {
            let line = format!(
                "{}: {}: {} ({})",
                source.name,
                quantity::printable(&error.subject),
                error.reason.words(),
                quantity::printable(&error.detail)
            );
            page.push_str(&Tone::Warning.paint(&line, style));
            page.push('\n');
        }
        if source.errors_dropped > 0 {
            let line = format!("{}: {} more errors", source.name, source.errors_dropped);
            page.push_str(&Tone::Warning.paint(&line, style));
            page.push('\n');
        }
    }
    match page.is_empty() {
        true => page,
        false => format!("\n{page}"),
    }
}

fn heading(text: &str, style: &Style, page: &mut String) {
    let _ = writeln!(page, "\n{}", Tone::Heading.paint(text, style));
}

fn line(name: &str, value: &str, page: &mut String) {
    let _ = writeln!(page, "  {name:<22}{value}");
}

fn reading<T>(name: &str, reading: &Reading<T>, show: impl Fn(&T) -> String, page: &mut String) {
    match reading {
        Reading::Value { value, .. } => line(name, &show(value), page),
        Reading::Absent { absent, detail } if detail.is_empty() => {
            line(name, &format!("not available: {}", absent.words()), page);
        }
        Reading::Absent { absent, detail } => {
            let detail = quantity::printable(detail);
            line(name, &format!("not available: {} ({detail})", absent.words()), page);
        }
    }
}

fn device_section(device: &Device, style: &Style, page: &mut String) {
    heading(&format!("Device {}", quantity::printable(&device.id)), style, page);
    let identity = &device.identity;
    line("board", identity.board_type.name(), page);
    if let Some(board) = identity.board_id {
        line("board id", &board.to_string(), page);
    }
    if let Some(pci) = identity.pci {
        line("PCI address", &pci.to_string(), page);
    }
    if let Some(ordinal) = identity.driver_ordinal {
        line("driver ordinal", &ordinal.to_string(), page);
    }
    if let Some(galaxy) = identity.galaxy {
        line("tray, chip (driver)", &format!("{}, {}", galaxy.tray, galaxy.nibble), page);
    }
    telemetry_section(&device.telemetry, page);
    for space in &device.spaces {
        reading(
            &format!("{} used", space.space.name()),
            &space.used_bytes,
            |b| quantity::bytes(*b),
            page,
        );
        reading(
            &format!("{} capacity", space.space.name()),
            &space.capacity_bytes,
            |bytes| match space.capacity_source {
                Some(source) => format!("{} ({})", quantity::bytes(*bytes), source.words()),
                None => quantity::bytes(*bytes),
            },
            page,
        );
    }
    parts_table(device, style, page);
    if let Reading::Absent { .. } = device.holders {
        reading("open by", &device.holders, |_| String::new(), page);
    }
}

fn telemetry_section(telemetry: &Telemetry, page: &mut String) {
    let celsius = |value: &f64| format!("{value:.1} C");
    let watts = |value: &f64| format!("{value:.1} W");
    let amperes = |value: &f64| format!("{value:.1} A");
    let volts = |value: &f64| format!("{value:.3} V");
    let megahertz = |value: &u64| format!("{} MHz", value / 1_000_000);
    reading("temperature", &telemetry.temperature_celsius, celsius, page);
    reading("temperature limit", &telemetry.temperature_limit_celsius, celsius, page);
    reading("power (ASIC core)", &telemetry.power_watts, watts, page);
    reading("power limit", &telemetry.power_limit_watts, watts, page);
    reading("current", &telemetry.current_amperes, amperes, page);
    reading("voltage", &telemetry.voltage_volts, volts, page);
    reading("AICLK", &telemetry.aiclk_hertz, megahertz, page);
    reading("AXICLK", &telemetry.axiclk_hertz, megahertz, page);
    reading("ARCCLK", &telemetry.arcclk_hertz, megahertz, page);
    reading("fan", &telemetry.fan_revolutions_per_minute, |rpm| format!("{rpm} rpm"), page);
    reading("heartbeat", &telemetry.heartbeat_total, u64::to_string, page);
    reading("thermal trips", &telemetry.thermal_trips_total, u64::to_string, page);
    for (name, version) in &telemetry.firmware {
        line(&quantity::printable(name), &quantity::printable(version), page);
    }
}

fn parts_table(device: &Device, style: &Style, page: &mut String) {
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
            Cell::new(quantity::count(parts.live_buffers)),
        ]);
    }
    page.push_str(&table.render(style));
}

fn process_section(snapshot: &Snapshot, process: &Process, style: &Style, page: &mut String) {
    let pid = process.pid.map_or_else(|| String::from("hidden"), |pid| pid.to_string());
    let state = match process.state {
        ProcessState::Alive => "",
        ProcessState::Dead => " (ended: last known figures, in no total)",
        ProcessState::Hidden => " (not visible from this PID namespace)",
    };
    heading(&format!("Process {pid} {}{state}", quantity::printable(&process.name)), style, page);
    reading("command", &process.command, |text| quantity::printable(text), page);
    reading("user", &process.user, |text| quantity::printable(text), page);
    if let Some(inner) = process.namespace_pid {
        line("pid in its container", &inner.to_string(), page);
    }
    if let Some(container) = &process.container {
        line("container", &format!("{} ({})", container.id, container.engine), page);
    }
    match process.known_by {
        Some(source) => line("memory known by", source.words(), page),
        None => line("memory", "not available: the process records nothing that can be read", page),
    }
    reading("up", &process.uptime_seconds, |seconds| quantity::span(*seconds), page);
    kinds_table(snapshot, process, style, page);
    let faults = process.faults;
    for (name, count) in [
        ("double frees", faults.double_frees),
        ("unknown frees", faults.unknown_frees),
        ("reused live addresses", faults.reused_live_addresses),
        ("unrecorded events", faults.unrecorded_events),
    ] {
        if count > 0 {
            line(name, &quantity::count(count), page);
        }
    }
}

fn kinds_table(snapshot: &Snapshot, process: &Process, style: &Style, page: &mut String) {
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
    let mut rows = 0;
    for held in &process.devices {
        let id = snapshot.devices.get(held.device).map_or("unknown", |device| &device.id);
        for kind in &held.kinds {
            let usage = kind.usage;
            rows += 1;
            table.push(vec![
                Cell::new(format!("  {}", quantity::printable(id))),
                Cell::new(kind.kind.name()),
                Cell::new(quantity::bytes(usage.live_bytes)),
                Cell::new(quantity::bytes(usage.peak_bytes)),
                Cell::new(quantity::count(usage.live_buffers)),
                Cell::new(quantity::count(usage.allocations)),
                Cell::new(quantity::bytes(usage.allocated_bytes)),
                Cell::new(quantity::count(usage.failed_allocations)),
            ]);
        }
    }
    if rows > 0 {
        page.push_str(&table.render(style));
    }
}
