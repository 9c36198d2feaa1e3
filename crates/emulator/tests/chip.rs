//! A chip's allocators against a plain list of buffers.
#![allow(clippy::unwrap_used, reason = "a failed step is the report of a test")]

use std::collections::BTreeMap;

use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use telltale_emulator::{AllocateError, Chip, ChipDescription, KindUsage};
use telltale_schema::chip::{BoardType, ChipFacts, ChipIdentity};
use telltale_schema::memory::{MemoryKind, MemorySpace};

fn chip(board_type: BoardType) -> Chip {
    let facts = ChipFacts::of_board(board_type).unwrap();
    Chip::new(ChipDescription {
        identity: ChipIdentity { board_type, ..Default::default() },
        facts,
    })
}

#[derive(Debug, Clone)]
enum Step {
    Allocate { owner: u64, kind: MemoryKind, bytes: u64 },
    Free { index: usize },
    FreeUnknown { owner: u64, kind: MemoryKind, address: u64 },
    Release { owner: u64 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let kind = || proptest::sample::select(MemoryKind::ALL.to_vec());
    let bytes = prop_oneof![1u64..5_000, 1u64..20_000_000, 1u64..6_000_000_000];
    let step = prop_oneof![
        8 => (0u64..3, kind(), bytes)
            .prop_map(|(owner, kind, bytes)| Step::Allocate { owner, kind, bytes }),
        5 => any::<usize>().prop_map(|index| Step::Free { index }),
        1 => (0u64..3, kind(), any::<u64>())
            .prop_map(|(owner, kind, address)| Step::FreeUnknown { owner, kind, address }),
        1 => (0u64..3).prop_map(|owner| Step::Release { owner }),
    ];
    proptest::collection::vec(step, 1..120)
}

/// A live buffer of the plain list.
#[derive(Debug, Clone, Copy)]
struct Plain {
    owner: u64,
    kind: MemoryKind,
    address: u64,
    bytes: u64,
}

fn sums(live: &[Plain], owner: Option<u64>) -> BTreeMap<MemoryKind, (u64, u64)> {
    let mut sums = BTreeMap::new();
    for buffer in live.iter().filter(|buffer| owner.is_none_or(|owner| owner == buffer.owner)) {
        let sum = sums.entry(buffer.kind).or_insert((0, 0));
        sum.0 += buffer.bytes;
        sum.1 += 1;
    }
    sums
}

proptest! {
    #[test]
    fn sums_and_addresses_agree_with_a_plain_list(steps in steps(), blackhole in any::<bool>()) {
        let board = if blackhole { BoardType::P150 } else { BoardType::N300 };
        let mut chip = chip(board);
        let facts = chip.description().facts;
        let mut live: Vec<Plain> = Vec::new();
        for step in steps {
            match step {
                Step::Allocate { owner, kind, bytes } => {
                    let Ok(address) = chip.allocate(owner, kind, bytes) else {
                        continue;
                    };
                    let (alignment, banks) = match kind.space() {
                        MemorySpace::Dram => (if blackhole { 64 } else { 32 }, facts.dram_channels),
                        MemorySpace::L1 => (16, facts.worker_cores),
                        MemorySpace::Host => (4_096, 1),
                    };
                    prop_assert_eq!(address % alignment, 0);
                    let extent = bytes.div_ceil(u64::from(banks));
                    for other in live.iter().filter(|other| other.kind.space() == kind.space()) {
                        let other_extent = other.bytes.div_ceil(u64::from(banks));
                        prop_assert!(
                            address + extent <= other.address
                                || other.address + other_extent <= address,
                            "{kind:?} at {address:#x} overlaps {other:?}"
                        );
                    }
                    live.push(Plain { owner, kind, address, bytes });
                }
                Step::Free { .. } if live.is_empty() => {}
                Step::Free { index } => {
                    let buffer = live.swap_remove(index % live.len());
                    let freed = chip.free(buffer.owner, buffer.kind, buffer.address);
                    prop_assert_eq!(freed, Ok(buffer.bytes));
                    prop_assert!(chip.free(buffer.owner, buffer.kind, buffer.address).is_err());
                }
                Step::FreeUnknown { owner, kind, address } => {
                    let known = live.iter().any(|buffer| {
                        (buffer.owner, buffer.kind, buffer.address) == (owner, kind, address)
                    });
                    if !known {
                        prop_assert!(chip.free(owner, kind, address).is_err());
                    }
                }
                Step::Release { owner } => {
                    let expected = live.iter().filter(|buffer| buffer.owner == owner).count();
                    prop_assert_eq!(chip.release(owner), u64::try_from(expected).unwrap());
                    live.retain(|buffer| buffer.owner != owner);
                }
            }
            for owner in [None, Some(0), Some(1), Some(2)] {
                let usage = owner.map_or_else(|| chip.usage(), |owner| chip.usage_of(owner));
                let counted: BTreeMap<_, _> = usage
                    .kinds()
                    .map(|(kind, usage)| (kind, (usage.requested_bytes, usage.buffers)))
                    .collect();
                prop_assert_eq!(counted, sums(&live, owner));
                for (_, KindUsage { requested_bytes, reserved_bytes, .. }) in usage.kinds() {
                    prop_assert!(reserved_bytes >= requested_bytes);
                }
            }
        }
        (0..3).for_each(|owner| { chip.release(owner); });
        for space in MemorySpace::ALL {
            let kind = *MemoryKind::ALL.iter().find(|kind| kind.space() == space).unwrap();
            let all = chip.allocatable_bytes(space);
            prop_assert!(chip.allocate(9, kind, all).is_ok(), "{space:?} is in one piece again");
        }
    }
}

#[test]
fn a_full_memory_says_what_was_asked_and_what_there_is() {
    let mut chip = chip(BoardType::N300);
    let all = chip.allocatable_bytes(MemorySpace::Dram);
    let banks = 6;
    assert_eq!(all, 12 * (1 << 30) - banks * (2 << 20));
    let first = chip.allocate(1, MemoryKind::Dram, all / 2).unwrap();
    let error = chip.allocate(1, MemoryKind::Dram, all).unwrap_err();
    let AllocateError::OutOfMemory { space, requested_bytes, free_bytes, largest_bytes } = error
    else {
        panic!("{error}");
    };
    assert_eq!((space, requested_bytes), (MemorySpace::Dram, all));
    assert_eq!(free_bytes, all - chip.usage().of(MemoryKind::Dram).reserved_bytes);
    assert_eq!(largest_bytes, free_bytes);
    assert!(error.to_string().contains(&all.to_string()));
    chip.allocate(1, MemoryKind::Trace, largest_bytes).unwrap();
    assert!(chip.allocate(2, MemoryKind::Dram, 1).is_err(), "not one byte is left");
    chip.free(1, MemoryKind::Dram, first).unwrap();
    assert_eq!(chip.allocate(2, MemoryKind::Dram, 64), Ok(first), "a freed address is reused");
    assert!(chip.allocate(2, MemoryKind::Dram, u64::MAX).is_err());
    assert_eq!(chip.allocate(2, MemoryKind::L1, 0), Err(AllocateError::Empty));
}

#[test]
fn a_buffer_takes_the_same_pages_of_every_bank() {
    // (kind, bytes asked for, bytes taken on a chip of six banks and 64 cores)
    let cases = [
        (MemoryKind::Dram, 1, 6 * 32),
        (MemoryKind::Dram, 100, 6 * 128),
        (MemoryKind::Dram, 6 * 2_048, 6 * 2_048),
        (MemoryKind::Dram, 6 * 2_048 + 1, 2 * 6 * 2_048),
        (MemoryKind::L1, 2_048, 64 * 2_048),
        (MemoryKind::L1, 17, 64 * 32),
        (MemoryKind::SystemMemory, 1, 4_096),
    ];
    for (kind, asked, taken) in cases {
        let mut chip = chip(BoardType::N300);
        chip.allocate(1, kind, asked).unwrap();
        let usage = chip.usage().of(kind);
        let expected = KindUsage { requested_bytes: asked, reserved_bytes: taken, buffers: 1 };
        assert_eq!(usage, expected, "{kind:?} {asked}");
    }
    let mut chip = chip(BoardType::N300);
    let high = chip.allocate(1, MemoryKind::L1, 100).unwrap();
    let low = chip.allocate(1, MemoryKind::Cb, 100).unwrap();
    assert!(high > 1_400 << 10, "L1 buffers grow down from the top: {high:#x}");
    assert!(low < 200 << 10, "program memory grows up from the bottom: {low:#x}");
}
