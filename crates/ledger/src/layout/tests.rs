//! docs/ledger.md says what the code says.

use std::collections::BTreeMap;

use super::{device, header};
use crate::cell;

const PAGE: &str = include_str!("../../../../docs/ledger.md");

/// The fields in the tables under a heading: name to first column, and whether each is there once.
fn documented(heading: &str) -> BTreeMap<&'static str, usize> {
    let (_, section) = PAGE.split_once(heading).expect("the heading is in the page");
    let section = section.split("\n## ").next().expect("a split has a first part");
    fields(section)
}

fn fields(section: &'static str) -> BTreeMap<&'static str, usize> {
    let rows = section.lines().filter_map(|line| {
        let columns: Vec<&str> = line.split('|').map(str::trim).collect();
        let number = columns.get(1)?.parse().ok()?;
        // Tables of bytes have a column for the type, tables of words have none.
        let name = if columns.len() == 6 { columns[3] } else { columns[2] };
        Some((name, number))
    });
    let all: Vec<_> = rows.collect();
    let distinct: BTreeMap<_, _> = all.iter().copied().collect();
    assert_eq!(distinct.len(), all.len(), "a field is documented once");
    distinct
}

fn expect(found: &BTreeMap<&str, usize>, expected: &[(&'static str, usize)]) {
    let expected: BTreeMap<&str, usize> = expected.iter().copied().collect();
    assert_eq!(found, &expected);
}

#[test]
fn the_header_is_as_documented() {
    let fields = [
        ("magic", header::MAGIC),
        ("layout_version", header::LAYOUT_VERSION),
        ("readable_since", header::READABLE_SINCE),
        ("ready", header::READY),
        ("header_bytes", header::HEADER_BYTES),
        ("file_bytes", header::FILE_BYTES),
        ("boot_id", header::BOOT_ID),
        ("pid_namespace", header::PID_NAMESPACE),
        ("start_time_ticks", header::START_TIME_TICKS),
        ("pid", header::PID),
        ("uid", header::UID),
        ("started_at_ns", header::STARTED_AT_NS),
        ("cells_offset", header::CELLS_OFFSET),
        ("cell_bytes", header::CELL_BYTES),
        ("cells_capacity", header::CELLS_CAPACITY),
        ("devices_offset", header::DEVICES_OFFSET),
        ("device_bytes", header::DEVICE_BYTES),
        ("devices_capacity", header::DEVICES_CAPACITY),
        ("kinds_count", header::KINDS_COUNT),
        ("header_flags", header::FLAGS),
        ("name", header::NAME),
        ("runtime", header::RUNTIME),
        ("cells_used", header::CELLS_USED),
        ("devices_used", header::DEVICES_USED),
        ("double_frees", header::DOUBLE_FREES),
        ("unknown_frees", header::UNKNOWN_FREES),
        ("reused_live_addresses", header::REUSED_LIVE_ADDRESSES),
        ("unrecorded_events", header::UNRECORDED_EVENTS),
    ];
    expect(&documented("\n## Header\n"), &fields);
}

#[test]
fn the_device_entry_is_as_documented() {
    let fields = [
        ("tag", device::TAG),
        ("flags", device::FLAGS),
        ("pci", device::PCI),
        ("asic_id", device::ASIC_ID),
        ("board_id", device::BOARD_ID),
        ("driver_ordinal", device::DRIVER_ORDINAL),
        ("logical_id", device::LOGICAL_ID),
        ("location", device::LOCATION),
        ("board_type", device::BOARD_TYPE),
        ("architecture", device::ARCHITECTURE),
        ("galaxy_tray", device::GALAXY_TRAY),
        ("galaxy_nibble", device::GALAXY_NIBBLE),
        ("dram_capacity_bytes", device::DRAM_CAPACITY_BYTES),
        ("l1_capacity_bytes", device::L1_CAPACITY_BYTES),
        ("dram_channels", device::DRAM_CHANNELS),
        ("worker_cores", device::WORKER_CORES),
    ];
    expect(&documented("\n## Device entry\n"), &fields);
}

#[test]
fn the_cells_are_as_documented() {
    let (_, cells) = PAGE.split_once("\nType 1, ").expect("thread cells are documented");
    let (thread, rest) = cells.split_once("\nType 2, ").expect("shared cells are documented");
    let shared = rest.split("\n## ").next().expect("a split has a first part");
    expect(
        &fields(thread),
        &[
            ("tag", cell::TAG),
            ("allocations", cell::ALLOCATIONS),
            ("allocated_bytes", cell::ALLOCATED_BYTES),
            ("frees", cell::FREES),
            ("freed_bytes", cell::FREED_BYTES),
            ("own_peak", cell::OWN_PEAK),
            ("check", cell::CHECK),
            ("taken_peak", cell::TAKEN_PEAK),
        ],
    );
    expect(
        &fields(shared),
        &[
            ("tag", cell::TAG),
            ("posted_live", cell::POSTED_LIVE),
            ("peak", cell::PEAK),
            ("failed", cell::FAILED),
            ("overflow_allocations", cell::OVERFLOW_ALLOCATIONS),
            ("overflow_allocated_bytes", cell::OVERFLOW_ALLOCATED_BYTES),
            ("overflow_frees", cell::OVERFLOW_FREES),
            ("overflow_freed_bytes", cell::OVERFLOW_FREED_BYTES),
        ],
    );
}

#[test]
fn sizes_limits_and_constants_are_as_documented() {
    let sentences = [
        format!("| header | 0 | {} |", super::HEADER_BYTES),
        format!(
            "| cells | {} | {} cells of {} |",
            super::CELLS_OFFSET,
            super::CELLS_CAPACITY,
            super::CELL_BYTES
        ),
        format!(
            "| device entries | {} | {} entries of {} |",
            super::DEVICES_OFFSET,
            super::DEVICES_CAPACITY,
            super::DEVICE_BYTES
        ),
        format!("| end | {} | |", super::FILE_BYTES),
        format!("version of the writer's layout: {} |", super::LAYOUT_VERSION),
        format!("readers can read the file: {} |", super::READABLE_SINCE),
        format!("| ready | 0x{:X}, ", super::READY),
        format!("| tag | 0x{:X}, ", device::READY),
        format!("0x{:X} × allocations + ", cell::ALLOCATIONS_WEIGHT),
        format!("0x{:X} × allocated_bytes + ", cell::ALLOCATED_BYTES_WEIGHT),
        format!("0x{:X} × frees + ", cell::FREES_WEIGHT),
        format!("0x{:X} × freed_bytes`", cell::FREED_BYTES_WEIGHT),
        format!("exceeds {} bytes either way", super::POSTING_THRESHOLD_BYTES),
        format!(
            "{} devices, {} cells and {} shards",
            super::DEVICES_CAPACITY,
            super::CELLS_CAPACITY,
            super::SHARDS_CAPACITY
        ),
        format!(
            "{} cells and {} devices, in a file of up to {} bytes",
            super::MOST_CELLS_READ,
            super::MOST_DEVICES_READ,
            super::LARGEST_FILE_BYTES
        ),
        format!(
            "Header: {} to {} bytes.",
            super::SHORTEST_HEADER_BYTES,
            super::LONGEST_HEADER_BYTES
        ),
        format!("Cell: {} to {}.", super::SHORTEST_CELL_BYTES, super::LONGEST_ENTRY_BYTES),
        format!(
            "Device entry: {} to {}.",
            super::SHORTEST_DEVICE_BYTES,
            super::LONGEST_ENTRY_BYTES
        ),
    ];
    for sentence in sentences {
        assert!(PAGE.contains(&sentence), "docs/ledger.md lacks: {sentence}");
    }
    for kind in telltale_schema::memory::MemoryKind::ALL {
        let said = format!("{} {}", kind.code(), kind.name());
        assert!(PAGE.replace('\n', " ").contains(&said), "docs/ledger.md lacks: {said}");
    }
}
