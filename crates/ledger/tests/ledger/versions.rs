//! Ledgers of a version before and after ours: what a reader does not know it steps over, what an
//! older writer did not write is absent.

use std::fs;

use crate::ledger::machine::Place;
use telltale_ledger::layout::{
    CELL_BYTES, CELLS_OFFSET, DEVICE_BYTES, DEVICES_OFFSET, FILE_BYTES, HEADER_BYTES,
    LAYOUT_VERSION, header,
};
use telltale_ledger::{LedgerReader, LedgerReading, OpenError};

const NAME: &str = "ledger_1_1.tt";

/// How another version lays out the same content.
struct Version {
    layout: u32,
    readable_since: u32,
    header_bytes: usize,
    cell_bytes: usize,
    device_bytes: usize,
    /// What it has in the parts that ours does not know.
    filler: u8,
}

const OURS: Version = Version {
    layout: LAYOUT_VERSION,
    readable_since: 1,
    header_bytes: HEADER_BYTES,
    cell_bytes: CELL_BYTES,
    device_bytes: DEVICE_BYTES,
    filler: 0,
};

fn relaid(sample: &[u8], version: &Version) -> Vec<u8> {
    let mut bytes = vec![version.filler; FILE_BYTES];
    let mut stretch = |from: usize, old: usize, to: usize, new: usize, count: usize| {
        for index in 0..count {
            let width = old.min(new);
            let source = &sample[from + index * old..][..width];
            bytes[to + index * new..][..width].copy_from_slice(source);
            // Unknown parts that follow are filler; beyond the used entries everything is zero.
        }
    };
    let devices_offset = FILE_BYTES - 64 * version.device_bytes;
    stretch(0, HEADER_BYTES, 0, version.header_bytes, 1);
    stretch(CELLS_OFFSET, CELL_BYTES, version.header_bytes, version.cell_bytes, 16);
    stretch(DEVICES_OFFSET, DEVICE_BYTES, devices_offset, version.device_bytes, 4);
    let fields = [
        (header::LAYOUT_VERSION, version.layout),
        (header::READABLE_SINCE, version.readable_since),
        (header::HEADER_BYTES, u32::try_from(version.header_bytes).unwrap()),
        (header::CELLS_OFFSET, u32::try_from(version.header_bytes).unwrap()),
        (header::CELL_BYTES, u32::try_from(version.cell_bytes).unwrap()),
        (header::CELLS_CAPACITY, 1024),
        (header::DEVICES_OFFSET, u32::try_from(devices_offset).unwrap()),
        (header::DEVICE_BYTES, u32::try_from(version.device_bytes).unwrap()),
        (header::DEVICES_CAPACITY, 64),
    ];
    for (offset, value) in fields {
        bytes[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
    }
    bytes
}

fn read(place: &Place, bytes: &[u8]) -> Result<LedgerReading, OpenError> {
    fs::write(place.path(NAME), bytes).unwrap();
    let mut reader = LedgerReader::open_at(&place.directory, NAME)?;
    Ok(reader.read().unwrap().clone())
}

#[test]
fn a_newer_version_with_longer_parts_reads_the_same() {
    let place = Place::new();
    let sample = place.sample();
    let ours = read(&place, &sample).unwrap();
    assert_eq!((ours.usage.len(), ours.devices.len()), (2, 2));
    assert_eq!(read(&place, &relaid(&sample, &OURS)).unwrap(), ours);
    for filler in [0, 0xFF] {
        let newer = Version {
            layout: LAYOUT_VERSION + 1,
            header_bytes: 1024,
            cell_bytes: 128,
            device_bytes: 256,
            filler,
            ..OURS
        };
        assert_eq!(read(&place, &relaid(&sample, &newer)).unwrap(), ours);
    }
}

#[test]
fn an_older_version_with_shorter_parts_reads_as_far_as_it_goes() {
    let place = Place::new();
    let sample = place.sample();
    let ours = read(&place, &sample).unwrap();
    let older = Version { header_bytes: 272, cell_bytes: 56, device_bytes: 64, ..OURS };
    let reading = read(&place, &relaid(&sample, &older)).unwrap();
    assert_eq!(reading.usage, ours.usage);
    assert_eq!(reading.devices, ours.devices, "nothing is set in the part that is missing");
    assert_eq!(ours.faults.unknown_frees, 1);
    assert_eq!(reading.faults, Default::default(), "an older header has no fault counters");
    assert!(!reading.torn && !reading.implausible);
}

#[test]
fn a_version_that_breaks_with_ours_reports_it() {
    let place = Place::new();
    let sample = place.sample();
    let next = LAYOUT_VERSION + 1;
    let broken = Version { layout: next, readable_since: next, ..OURS };
    assert!(matches!(
        read(&place, &relaid(&sample, &broken)),
        Err(OpenError::Version { written, since }) if written == next && since == next
    ));
    let absurd = Version { layout: 0, readable_since: 0, ..OURS };
    assert!(matches!(read(&place, &relaid(&sample, &absurd)), Err(OpenError::Version { .. })));
}

#[test]
fn cells_of_unknown_kind_type_or_device_are_stepped_over_and_counted() {
    let place = Place::new();
    let sample = place.sample();
    let ours = read(&place, &sample).unwrap();
    assert_eq!(ours.unknown_cells, 0);
    let used = usize::from(sample[header::CELLS_USED]);
    // device, kind, shard, type: each u16
    for tag in [[0, 9, 0, 1], [0, 15, 0, 2], [0, 0, 0, 3], [0, 0, 0, 0xFFFF], [2, 0, 0, 1]] {
        let mut bytes = sample.clone();
        bytes[header::CELLS_USED] += 1;
        let cell = CELLS_OFFSET + used * CELL_BYTES;
        bytes[cell..cell + CELL_BYTES].fill(0x5A);
        for (offset, part) in (cell..).step_by(2).zip(tag) {
            bytes[offset..offset + 2].copy_from_slice(&u16::to_le_bytes(part));
        }
        let reading = read(&place, &bytes).unwrap();
        assert_eq!(reading.unknown_cells, 1, "{tag:?}");
        assert_eq!(reading.usage, ours.usage, "{tag:?}");
    }
}
