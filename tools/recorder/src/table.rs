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

    /// Notes that `address` has `size_bytes`. False if both its buckets are full.
    ///
    /// An address already noted (its free was hidden from us) gets the new size.
    pub(crate) fn insert(&self, address: u64, size_bytes: u64) -> bool {
        if let Some((bucket, way)) = self.find(address) {
            self.sizes[bucket][way].store(size_bytes, Ordering::Relaxed);
            return true;
        }
        let [first, second] = Self::buckets(address);
        let emptier = if self.vacancies(second) > self.vacancies(first) {
            [second, first]
        } else {
            [first, second]
        };
        for bucket in emptier {
            for (way, slot) in self.addresses[bucket].0.iter().enumerate() {
                // SYNC: slot reuse. Acquires what `remove` released: its read of the old size
                // comes before our write of the new one.
                let claimed =
                    slot.compare_exchange(0, address, Ordering::Acquire, Ordering::Relaxed);
                if claimed.is_ok() {
                    // Whoever frees this address got it from this thread, so it sees the size.
                    self.sizes[bucket][way].store(size_bytes, Ordering::Relaxed);
                    return true;
                }
            }
        }
        false
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

    fn vacancies(&self, bucket: usize) -> usize {
        let slots = &self.addresses[bucket].0;
        slots.iter().filter(|slot| slot.load(Ordering::Relaxed) == 0).count()
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
    use super::AddressTable;

    #[test]
    fn an_address_is_found_until_removed() {
        static TABLE: AddressTable<4> = AddressTable::new();
        assert_eq!(TABLE.remove(4096), None);
        assert_eq!(TABLE.remove(0), None, "a null pointer is never noted");
        assert!(TABLE.insert(4096, 7));
        assert!(TABLE.insert(4096, 8), "a hidden free leaves one entry, not two");
        assert_eq!(TABLE.remove(4096), Some(8));
        assert_eq!(TABLE.remove(4096), None);
    }

    #[test]
    fn it_fills_almost_to_the_last_slot_and_says_when_full() {
        static TABLE: AddressTable<1024> = AddressTable::new();
        let inserted: Vec<u64> =
            (1..).map(|n| n * 4096).take_while(|address| TABLE.insert(*address, 1)).collect();
        assert!(inserted.len() > 1024 * 8 * 3 / 4, "full after {}", inserted.len());
        for address in &inserted {
            assert_eq!(TABLE.remove(*address), Some(1));
        }
        // Churn leaves nothing behind that a later look-up would stumble over.
        assert!(inserted.iter().all(|address| TABLE.insert(*address, 2)));
    }

    #[test]
    fn threads_keep_their_own_addresses() {
        static TABLE: AddressTable<64> = AddressTable::new();
        std::thread::scope(|scope| {
            for thread in 1..=4u64 {
                scope.spawn(move || {
                    for round in 0..20_000 {
                        let address = (thread << 32) + (round % 50) * 64 + 64;
                        assert!(TABLE.insert(address, thread));
                        assert_eq!(TABLE.remove(address), Some(thread));
                    }
                });
            }
        });
    }
}
