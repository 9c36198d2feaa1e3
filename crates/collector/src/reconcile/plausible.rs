//! What a process cannot have: more than a device has, or numbers that no counting reaches. Pure.
//!
//! Each claim, of one process for one device, is judged alone. Claims that could all be true may
//! still not be true together; then the sum says so, and each process's part says whose it is.

use telltale_schema::memory::{MemorySpace, MemoryUsage};
use telltale_schema::quantity;
use telltale_schema::snapshot::KindUsage;

use crate::limits::MAX_DEVICE_BYTES;

/// More buffers, allocations or failures than a process can have counted: 2^56 of them, one each
/// nanosecond, take two years.
const MAX_PLAUSIBLE_COUNT: u64 = 1 << 56;

/// More bytes than a process can have allocated in all its life, most of which were freed again.
const MAX_PLAUSIBLE_FLOW_BYTES: u64 = 1 << 62;

/// The capacity that a process claims, where it can be. A chip has at most what its board's table
/// says, and of cores and banks that do not work at most half.
pub(super) fn capacity_of(claim: Option<u64>, table: Option<u64>) -> Option<u64> {
    let least = table.map_or(1, |table| (table / 2).max(1));
    let most = table.unwrap_or(MAX_DEVICE_BYTES);
    claim.filter(|bytes| (least..=most).contains(bytes))
}

/// Why a process cannot have these on a device with so much DRAM, in words; none where it can. What
/// is not possible in one value discredits all: the others come from the same ledger.
pub(super) fn implausible(kinds: &[KindUsage], dram_bytes: Option<u64>) -> Option<String> {
    let claims = |bytes: u64, had: &str| {
        let (claimed, there) = (quantity::bytes(bytes), quantity::bytes(dram_bytes?));
        Some(format!("claims {had}{claimed} of DRAM where there are {there}"))
    };
    if !kinds.iter().all(|one| is_plausible(&one.usage)) {
        return Some(String::from("claims numbers that no process can have counted"));
    }
    let capacity = dram_bytes?;
    let of_dram = || kinds.iter().filter(|one| one.kind.space() == MemorySpace::Dram);
    let live = of_dram().fold(0u64, |sum, one| sum.saturating_add(one.usage.live_bytes));
    // Kinds peak at different times, so that peaks have no sum.
    let peak = of_dram().map(|one| one.usage.peak_bytes).max().unwrap_or(0);
    match (live > capacity, peak > capacity) {
        (true, _) => claims(live, ""),
        (false, true) => claims(peak, "to have had "),
        (false, false) => None,
    }
}

/// Whether a process can have counted this; what has wrapped below zero is not.
fn is_plausible(usage: &MemoryUsage) -> bool {
    let MemoryUsage {
        live_bytes,
        live_buffers,
        peak_bytes,
        allocations,
        allocated_bytes,
        failed_allocations,
    } = *usage;
    let counts = [live_buffers, allocations, failed_allocations];
    live_bytes.max(peak_bytes) <= MAX_DEVICE_BYTES
        && allocated_bytes <= MAX_PLAUSIBLE_FLOW_BYTES
        && counts.into_iter().all(|count| count <= MAX_PLAUSIBLE_COUNT)
}

#[cfg(test)]
mod tests {
    use super::{capacity_of, implausible};
    use telltale_schema::memory::{MemoryKind, MemoryUsage};
    use telltale_schema::snapshot::KindUsage;

    #[test]
    fn a_capacity_is_at_most_the_boards_and_at_least_half_of_it() {
        let cases = [
            (Some(12), Some(12), Some(12)),
            (Some(6), Some(12), Some(6)),
            (Some(5), Some(12), None),
            (Some(13), Some(12), None),
            (Some(0), Some(1), None),
            (Some(u64::MAX), None, None),
            (Some(0), None, None),
            (Some(13), None, Some(13)),
            (None, Some(12), None),
        ];
        for (claim, table, expected) in cases {
            assert_eq!(capacity_of(claim, table), expected, "{claim:?} of {table:?}");
        }
    }

    #[test]
    fn what_a_process_has_of_dram_fits_into_it() {
        let kind = |kind, live_bytes, peak_bytes| KindUsage {
            kind,
            usage: MemoryUsage { live_bytes, peak_bytes, ..MemoryUsage::default() },
        };
        let (dram, trace, l1) = (MemoryKind::Dram, MemoryKind::Trace, MemoryKind::L1);
        let cases = [
            (vec![kind(dram, 10, 10)], true),
            (vec![kind(dram, 11, 11)], false),
            (vec![kind(dram, 1, 11)], false),
            (vec![kind(dram, 6, 9), kind(trace, 4, 9)], true),
            (vec![kind(dram, 6, 9), kind(trace, 5, 9)], false),
            (vec![kind(dram, 1 << 47, 0), kind(trace, 1 << 47, 0)], false),
            (vec![kind(dram, 6, 6), kind(l1, 50, 50)], true),
        ];
        for (kinds, expected) in cases {
            assert_eq!(implausible(&kinds, Some(10)).is_none(), expected, "{kinds:?}");
            assert_eq!(implausible(&kinds, None), None);
        }
        let words = |live: u64, peak: u64| {
            implausible(&[kind(dram, live << 30, peak << 30)], Some(12 << 30))
        };
        let there = "of DRAM where there are 12.0 GiB";
        assert_eq!(words(13, 13), Some(format!("claims 13.0 GiB {there}")));
        assert_eq!(words(1, 14), Some(format!("claims to have had 14.0 GiB {there}")));
        let wrapped = implausible(&[kind(l1, u64::MAX, 0)], None);
        assert_eq!(wrapped.as_deref(), Some("claims numbers that no process can have counted"));
    }
}
