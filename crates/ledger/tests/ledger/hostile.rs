//! Files that are no ledgers, and ledgers that someone changes under their reader: each is one
//! error, never a signal, a hang or a wrong size of memory.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::process::Command;

use crate::ledger::machine::{Place, device};
use telltale_ledger::layout::{FILE_BYTES, LARGEST_FILE_BYTES, header};
use telltale_ledger::{LedgerReader, OpenError, ReadError};
use telltale_schema::memory::MemoryKind;

const NAME: &str = "ledger_1_1.tt";

fn open(place: &Place, content: &[u8]) -> Result<LedgerReader, OpenError> {
    fs::write(place.path(NAME), content).unwrap();
    LedgerReader::open_at(&place.directory, NAME)
}

fn with_u32(sample: &[u8], offset: usize, value: u32) -> Vec<u8> {
    let mut bytes = sample.to_vec();
    bytes[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
    bytes
}

#[test]
fn what_is_not_a_regular_file_is_refused_without_waiting() {
    let place = Place::new();
    let pipe = Command::new("mkfifo").arg(place.path("pipe")).status().unwrap();
    assert!(pipe.success());
    fs::create_dir(place.path("directory")).unwrap();
    symlink("/dev/zero", place.path("link")).unwrap();
    let open = |name| LedgerReader::open_at(&place.directory, name);
    assert!(matches!(open("pipe"), Err(OpenError::NotAFile)));
    assert!(matches!(open("directory"), Err(OpenError::NotAFile)));
    assert!(matches!(open("link"), Err(OpenError::NotAFile)));
    assert!(matches!(open("absent"), Err(OpenError::Open { .. })));
    assert!(matches!(open("../link"), Err(OpenError::Open { .. })));
    let device = OwnedFd::from(fs::File::open("/dev/zero").unwrap());
    assert!(matches!(LedgerReader::from_descriptor(device), Err(OpenError::NotAFile)));
}

#[test]
fn files_of_impossible_sizes_are_refused() {
    let place = Place::new();
    assert!(matches!(open(&place, b""), Err(OpenError::Size(0))));
    assert!(matches!(open(&place, b"TELLTALE"), Err(OpenError::Size(8))));
    let file = fs::File::create(place.path(NAME)).unwrap();
    file.set_len(LARGEST_FILE_BYTES + 1).unwrap();
    assert!(matches!(
        LedgerReader::open_at(&place.directory, NAME),
        Err(OpenError::Size(size)) if size == LARGEST_FILE_BYTES + 1
    ));
    file.set_len(LARGEST_FILE_BYTES).unwrap();
    assert!(matches!(LedgerReader::open_at(&place.directory, NAME), Err(OpenError::Magic)));
}

#[test]
fn headers_that_contradict_themselves_are_refused() {
    let place = Place::new();
    let sample = place.sample();
    assert!(open(&place, &sample).is_ok());
    assert!(matches!(open(&place, &vec![0; FILE_BYTES]), Err(OpenError::Magic)));
    let mut unready = sample.clone();
    unready[header::READY] ^= 1;
    assert!(matches!(open(&place, &unready), Err(OpenError::NotReady)));
    let cut = &sample[..FILE_BYTES / 2];
    assert!(matches!(open(&place, cut), Err(OpenError::Header(_))));
    let fields = [
        (header::HEADER_BYTES, vec![0, 8, 264, 273, 1 << 20, u32::MAX]),
        (header::CELLS_OFFSET, vec![0, 504, 513, 1 << 20, u32::MAX]),
        (header::CELL_BYTES, vec![0, 48, 60, 2048, u32::MAX]),
        (header::CELLS_CAPACITY, vec![16_384, 16_385, u32::MAX]),
        (header::DEVICES_OFFSET, vec![u32::MAX, 512 * 1024]),
        (header::DEVICE_BYTES, vec![0, 32, 130, 2048, u32::MAX]),
        (header::DEVICES_CAPACITY, vec![257, 1025, u32::MAX]),
    ];
    for (offset, values) in fields {
        for value in values {
            let opened = open(&place, &with_u32(&sample, offset, value));
            assert!(matches!(opened, Err(OpenError::Header(_))), "{offset}: {value}: {opened:?}");
        }
    }
}

#[test]
fn counts_beyond_the_room_there_is_are_flagged() {
    let place = Place::new();
    let sample = place.sample();
    for offset in [header::CELLS_USED, header::DEVICES_USED] {
        for count in [100_000, u64::MAX] {
            let mut bytes = sample.clone();
            bytes[offset..offset + 8].copy_from_slice(&u64::to_le_bytes(count));
            let mut reader = open(&place, &bytes).unwrap();
            let reading = reader.read().unwrap();
            assert!(reading.implausible);
            assert_eq!(reading.devices.len(), 2);
            assert_eq!(reading.usage[0].2.live_bytes, 4096 + (1 << 20));
        }
    }
}

#[test]
fn a_ledger_cut_under_its_reader_is_an_error_and_no_signal() {
    let place = Place::new();
    let ledger = place.ledger();
    let slot = ledger.add_device(&device(0)).unwrap();
    let mut reader = place.reader(ledger.file_name());
    assert!(reader.read().unwrap().usage.is_empty());
    // The map of a writer whose file is cut cannot be used any more, so a copy is cut.
    ledger.recorder().allocated(slot, MemoryKind::Dram, 1);
    fs::copy(place.path(ledger.file_name()), place.path(NAME)).unwrap();
    let mut reader_of_copy = place.reader(NAME);
    assert_eq!(reader_of_copy.read().unwrap().usage.len(), 1);
    let file = fs::File::options().write(true).open(place.path(NAME)).unwrap();
    for length in [512, 300, 100, 0] {
        file.set_len(length).unwrap();
        assert!(matches!(reader_of_copy.read(), Err(ReadError::Truncated)), "{length}");
    }
    file.set_len(4096).unwrap();
    assert!(matches!(reader_of_copy.read(), Err(ReadError::Changed)));
    assert_eq!(reader.read().unwrap().usage.len(), 1);
}

#[test]
fn more_freed_than_allocated_is_cut_to_zero_and_flagged() {
    let place = Place::new();
    let ledger = place.ledger();
    let slot = ledger.add_device(&device(0)).unwrap();
    let recorder = ledger.recorder();
    recorder.freed(slot, MemoryKind::Dram, 4096);
    let mut reader = place.reader(ledger.file_name());
    let reading = reader.read().unwrap();
    assert!(reading.implausible);
    let usage = reading.usage[0].2;
    assert_eq!((usage.live_bytes, usage.live_buffers, usage.peak_bytes), (0, 0, 0));
    recorder.allocated(slot, MemoryKind::Dram, 4096);
    assert!(!reader.read().unwrap().implausible);
}

#[test]
fn a_torn_cell_is_reported_after_bounded_copies() {
    let place = Place::new();
    let mut sample = place.sample();
    // The count of allocations of the first cell, as if its process had died just after it.
    sample[512 + 8] += 1;
    let mut reader = open(&place, &sample).unwrap();
    let reading = reader.read().unwrap();
    assert!(reading.torn && !reading.implausible);
    assert_eq!(reading.usage[0].2.live_buffers, 3);
}
