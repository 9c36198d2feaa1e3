//! The header of a new ledger.

use crate::cell::CELL_WORDS;
use crate::layout::{
    CELL_BYTES, CELLS_CAPACITY, CELLS_OFFSET, DEVICE_BYTES, DEVICES_CAPACITY, DEVICES_OFFSET,
    FILE_BYTES, HEADER_BYTES, LAYOUT_VERSION, MAGIC, READABLE_SINCE, READY, header as at,
};
use crate::mapping::Mapping;
use crate::owner::LedgerOwner;
use crate::sync::Ordering;
use telltale_schema::memory::MemoryKind;

/// Writes the header into a fresh, zeroed file, whose lock is held or not; the ready word last.
pub(crate) fn write_header(mapping: &Mapping, owner: &LedgerOwner, held: bool) {
    let bytes = encode(owner, held);
    for (index, chunk) in bytes.chunks_exact(8).enumerate() {
        let word = u64::from_le_bytes(chunk.try_into().expect("a chunk of eight bytes"));
        mapping.word(index * 8).store(word, Ordering::Relaxed);
    }
    // SYNC: header
    mapping.word(at::READY).store(READY, Ordering::Release);
}

fn encode(owner: &LedgerOwner, held: bool) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    let mut put = |offset: usize, field: &[u8]| {
        bytes[offset..offset + field.len()].copy_from_slice(field);
    };
    put(at::MAGIC, &MAGIC);
    let identity = &owner.identity;
    put(at::BOOT_ID, &identity.boot_id);
    put(at::PID_NAMESPACE, &identity.pid_namespace.to_le_bytes());
    put(at::START_TIME_TICKS, &identity.start_time_ticks.to_le_bytes());
    put(at::STARTED_AT_NS, &owner.started_at.0.to_le_bytes());
    put(at::NAME, cut(&owner.name).as_bytes());
    put(at::RUNTIME, cut(&owner.runtime).as_bytes());
    let small = |size: usize| u32::try_from(size).expect("sizes of the layout are small");
    let fields = [
        (at::LAYOUT_VERSION, LAYOUT_VERSION),
        (at::READABLE_SINCE, READABLE_SINCE),
        (at::HEADER_BYTES, small(HEADER_BYTES)),
        (at::FILE_BYTES, small(FILE_BYTES)),
        (at::PID, identity.pid),
        (at::UID, owner.uid),
        (at::CELLS_OFFSET, small(CELLS_OFFSET)),
        (at::CELL_BYTES, small(CELL_BYTES)),
        (at::CELLS_CAPACITY, small(CELLS_CAPACITY)),
        (at::DEVICES_OFFSET, small(DEVICES_OFFSET)),
        (at::DEVICE_BYTES, small(DEVICE_BYTES)),
        (at::DEVICES_CAPACITY, small(DEVICES_CAPACITY)),
        (at::KINDS_COUNT, small(MemoryKind::ALL.len())),
        (at::FLAGS, if held { at::FLAG_HELD } else { 0 }),
    ];
    for (offset, value) in fields {
        put(offset, &value.to_le_bytes());
    }
    bytes
}

/// As much of a text as fits, cut between characters.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(at::TEXT_BYTES)]
}

const _: () = assert!(CELL_WORDS * 8 == CELL_BYTES);
