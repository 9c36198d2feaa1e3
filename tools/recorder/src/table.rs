//! The addresses that were recorded and not yet freed.
//!
//! Every `free` of the program asks here, so a look-up costs two cache lines whatever the history:
//! an address lies in one of two buckets of eight slots, there are no chains and no markers for
//! deleted entries. It never locks, never allocates and never grows; a full table says so.

use std::sync::atomic::{AtomicU64, Ordering};

const WAYS: usize = 8;

/// One cache line of addresses; 0 is an empty slot.
#[repr(align(64))]
struct Bucket([AtomicU64; WAYS]);

/// What became of a new address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inserted {
    /// It is noted.
    Fresh,
    /// It was noted already, with so many bytes.
    Replaced(u64),
    /// Both its buckets are full, and it is not noted.
    Full,
}

/// A set of addresses with a size each. `BUCKETS` is a power of two.
pub(crate) struct AddressTable<const BUCKETS: usize> {
    addresses: [Bucket; BUCKETS],
    sizes: [[AtomicU64; WAYS]; BUCKETS],
}

impl<const BUCKETS: usize> AddressTable<BUCKETS> {
    /// An empty table; as a static it takes no memory until used.
    pub(crate) const fn new() -> Self {
        assert!(BUCKETS.is_power_of_two() && BUCKETS > 1);
        AddressTable {
            addresses: [const { Bucket([const { AtomicU64::new(0) }; WAYS]) }; BUCKETS],
            sizes: [const { [const { AtomicU64::new(0) }; WAYS] }; BUCKETS],
        }
    }

    /// Notes that `address` has `size_bytes`.
    ///
    /// An address already noted (its free was hidden from us) gets the new size.
    pub(crate) fn insert(&self, address: u64, size_bytes: u64) -> Inserted {
        let buckets = Self::buckets(address);
        let [first, second] = buckets.map(|bucket| (bucket, self.look(bucket, address)));
        for (bucket, (found, _)) in [first, second] {
            if found != 0 {
                let way = found.trailing_zeros() as usize;
                let old = self.sizes[bucket][way].swap(size_bytes, Ordering::Relaxed);
                return Inserted::Replaced(old);
            }
        }
        let vacancies = |(_, (_, empty)): (usize, (u32, u32))| empty.count_ones();
        let emptier =
            if vacancies(second) > vacancies(first) { [second, first] } else { [first, second] };
        for (bucket, (_, mut empty)) in emptier {
            while empty != 0 {
                let way = empty.trailing_zeros() as usize;
                empty &= empty - 1;
                let slot = &self.addresses[bucket].0[way];
                // SYNC: slot reuse. Acquires what `remove` released: its read of the old size
                // comes before our write of the new one.
                let claimed =
                    slot.compare_exchange(0, address, Ordering::Acquire, Ordering::Relaxed);
                if claimed.is_ok() {
                    // The code that frees this address got it from this thread, so it sees the size.
                    self.sizes[bucket][way].store(size_bytes, Ordering::Relaxed);
                    return Inserted::Fresh;
                }
            }
        }
        Inserted::Full
    }

    /// Forgets `address` and returns its size, or `None` if it is not there.
    pub(crate) fn remove(&self, address: u64) -> Option<u64> {
        let (bucket, way) = self.find(address)?;
        let size_bytes = self.sizes[bucket][way].load(Ordering::Relaxed);
        // SYNC: slot reuse. A compare-exchange, because a program that frees twice at once must
        // not clear a slot that already belongs to another address.
        self.addresses[bucket].0[way]
            .compare_exchange(address, 0, Ordering::Release, Ordering::Relaxed)
            .is_ok()
            .then_some(size_bytes)
    }

    fn find(&self, address: u64) -> Option<(usize, usize)> {
        if address == 0 {
            // An empty slot looks like this; no block does.
            return None;
        }
        Self::buckets(address).into_iter().find_map(|bucket| {
            let slots = &self.addresses[bucket].0;
            let way = slots.iter().position(|slot| slot.load(Ordering::Relaxed) == address)?;
            Some((bucket, way))
        })
    }

    /// The slots of a bucket that have `address`, and those that are empty, a bit for each. Without
    /// a branch, because where they are cannot be foreseen.
    fn look(&self, bucket: usize, address: u64) -> (u32, u32) {
        let slots = self.addresses[bucket].0.iter().enumerate();
        slots.fold((0, 0), |(found, empty), (way, slot)| {
            let there = slot.load(Ordering::Relaxed);
            (found | u32::from(there == address) << way, empty | u32::from(there == 0) << way)
        })
    }

    /// The two buckets of an address: the high bits of two multiplicative hashes.
    fn buckets(address: u64) -> [usize; 2] {
        let bits = BUCKETS.trailing_zeros();
        // Fractions of the golden ratio and of the square root of two, made odd.
        [0x9E37_79B9_7F4A_7C15_u64, 0x6A09_E667_F3BC_C909]
            .map(|factor| (address.wrapping_mul(factor) >> (64 - bits)) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::{AddressTable, Inserted};

    #[test]
    fn an_address_is_found_until_removed() {
        static TABLE: AddressTable<4> = AddressTable::new();
        assert_eq!(TABLE.remove(4096), None);
        assert_eq!(TABLE.remove(0), None, "a null pointer is never noted");
        assert_eq!(TABLE.insert(4096, 7), Inserted::Fresh);
        assert_eq!(TABLE.insert(4096, 8), Inserted::Replaced(7), "one entry, not two");
        assert_eq!(TABLE.remove(4096), Some(8));
        assert_eq!(TABLE.remove(4096), None);
    }

    #[test]
    fn it_fills_almost_to_the_last_slot_and_says_when_full() {
        static TABLE: AddressTable<1024> = AddressTable::new();
        let inserted: Vec<u64> = (1..)
            .map(|n| n * 4096)
            .take_while(|n| TABLE.insert(*n, 1) == Inserted::Fresh)
            .collect();
        assert!(inserted.len() > 1024 * 8 * 3 / 4, "full after {}", inserted.len());
        for address in &inserted {
            assert_eq!(TABLE.remove(*address), Some(1));
        }
        // Churn leaves nothing behind that a later look-up would stumble over.
        assert!(inserted.iter().all(|address| TABLE.insert(*address, 2) == Inserted::Fresh));
    }

    #[test]
    fn threads_keep_their_own_addresses() {
        static TABLE: AddressTable<64> = AddressTable::new();
        std::thread::scope(|scope| {
            for thread in 1..=4u64 {
                scope.spawn(move || {
                    for round in 0..20_000 {
                        let address = (thread << 32) + (round % 50) * 64 + 64;
                        assert_eq!(TABLE.insert(address, thread), Inserted::Fresh);
                        assert_eq!(TABLE.remove(address), Some(thread));
                    }
                });
            }
        });
    }
}
