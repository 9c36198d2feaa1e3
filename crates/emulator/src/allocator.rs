//! A free list: which parts of an address range are free, and where the next buffer goes.
//!
//! Best fit with coalescing, every operation in O(log n). It knows sizes and addresses only, not
//! what they are for.

use std::collections::{BTreeMap, BTreeSet};

/// The end of the range that an allocation is placed near.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Low,
    High,
}

/// The free blocks of an address range. Two of them never touch.
#[derive(Debug, Clone)]
pub(crate) struct FreeList {
    /// Size of each block by its start.
    by_start: BTreeMap<u64, u64>,
    /// The same blocks as (size, start).
    by_size: BTreeSet<(u64, u64)>,
    free: u64,
}

impl FreeList {
    /// A list in which all from `start` up to `end` is free.
    pub(crate) fn new(start: u64, end: u64) -> Self {
        assert!(start < end, "a range has something in it");
        let mut list = Self { by_start: BTreeMap::new(), by_size: BTreeSet::new(), free: 0 };
        list.insert(start, end - start);
        list.free = end - start;
        list
    }

    /// Takes `size` from the smallest block that has as much, the one nearest to `end` if there
    /// are several, at that side of it. None if no block is large enough.
    pub(crate) fn take(&mut self, size: u64, end: End) -> Option<u64> {
        assert!(size > 0, "nothing is no allocation");
        let (found, _) = *self.by_size.range((size, 0)..).next()?;
        let same_size = (found, 0)..=(found, u64::MAX);
        let (_, start) = match end {
            End::Low => *self.by_size.range(same_size).next()?,
            End::High => *self.by_size.range(same_size).next_back()?,
        };
        self.remove(start, found);
        let rest = found - size;
        let (taken, rest_start) = match end {
            End::Low => (start, start + size),
            End::High => (start + rest, start),
        };
        if rest > 0 {
            self.insert(rest_start, rest);
        }
        self.free -= size;
        Some(taken)
    }

    /// Gives back what [`Self::take`] gave, joining it with free neighbours.
    pub(crate) fn give_back(&mut self, start: u64, size: u64) {
        let (mut joined_start, mut joined_size) = (start, size);
        if let Some((&before, &length)) = self.by_start.range(..start).next_back() {
            assert!(before + length <= start, "only what was taken is given back");
            if before + length == start {
                self.remove(before, length);
                joined_start = before;
                joined_size += length;
            }
        }
        if let Some((&after, &length)) = self.by_start.range(start..).next() {
            assert!(start + size <= after, "only what was taken is given back");
            if start + size == after {
                self.remove(after, length);
                joined_size += length;
            }
        }
        self.insert(joined_start, joined_size);
        self.free += size;
    }

    /// All that is free.
    pub(crate) fn free(&self) -> u64 {
        self.free
    }

    /// The largest free block; zero if nothing is free.
    pub(crate) fn largest(&self) -> u64 {
        self.by_size.last().map_or(0, |(size, _)| *size)
    }

    fn insert(&mut self, start: u64, size: u64) {
        self.by_start.insert(start, size);
        self.by_size.insert((size, start));
    }

    fn remove(&mut self, start: u64, size: u64) {
        self.by_start.remove(&start);
        self.by_size.remove(&(size, start));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};

    use super::{End, FreeList};

    /// One unit for each address of the range: true while it is taken.
    struct Naive(Vec<bool>);

    impl Naive {
        fn largest_gap(&self) -> usize {
            self.0.split(|taken| *taken).map(<[bool]>::len).max().unwrap_or(0)
        }

        fn set(&mut self, start: u64, size: u64, taken: bool) -> bool {
            let range = usize::try_from(start).unwrap()..usize::try_from(start + size).unwrap();
            let was_other = self.0[range.clone()].iter().all(|unit| *unit != taken);
            self.0[range].fill(taken);
            was_other
        }
    }

    #[derive(Debug, Clone)]
    enum AllocatorStep {
        Take(u64, bool),
        GiveBack(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<AllocatorStep>> {
        let step = prop_oneof![
            3 => (1u64..60, any::<bool>()).prop_map(|(size, high)| AllocatorStep::Take(size, high)),
            2 => any::<usize>().prop_map(AllocatorStep::GiveBack),
        ];
        proptest::collection::vec(step, 1..200)
    }

    proptest! {
        #[test]
        fn behaves_as_a_row_of_units(steps in steps()) {
            const SIZE: u64 = 400;
            let mut list = FreeList::new(0, SIZE);
            let mut naive = Naive(vec![false; 400]);
            let mut live: Vec<(u64, u64)> = Vec::new();
            for step in steps {
                match step {
                    AllocatorStep::Take(size, high) => {
                        let fits = naive.largest_gap() >= usize::try_from(size).unwrap();
                        let taken = list.take(size, if high { End::High } else { End::Low });
                        prop_assert_eq!(taken.is_some(), fits);
                        if let Some(start) = taken {
                            prop_assert!(naive.set(start, size, true), "overlap at {start}");
                            live.push((start, size));
                        }
                    }
                    AllocatorStep::GiveBack(_) if live.is_empty() => {}
                    AllocatorStep::GiveBack(index) => {
                        let (start, size) = live.swap_remove(index % live.len());
                        prop_assert!(naive.set(start, size, false));
                        list.give_back(start, size);
                    }
                }
                let free = naive.0.iter().filter(|taken| !**taken).count();
                prop_assert_eq!(list.free(), u64::try_from(free).unwrap());
                let largest = u64::try_from(naive.largest_gap()).unwrap();
                prop_assert_eq!(list.largest(), largest, "blocks that touch are not joined");
            }
            for (start, size) in live {
                list.give_back(start, size);
            }
            prop_assert_eq!((list.free(), list.largest()), (SIZE, SIZE));
        }
    }

    #[test]
    fn allocations_grow_from_their_end() {
        let mut list = FreeList::new(0, 100);
        assert_eq!(list.take(10, End::Low), Some(0));
        assert_eq!(list.take(10, End::High), Some(90));
        assert_eq!(list.take(10, End::Low), Some(10));
        list.give_back(0, 10);
        assert_eq!(list.take(10, End::Low), Some(0), "a freed address is used again");
        assert_eq!(list.take(71, End::Low), None);
        assert_eq!(list.largest(), 70);
    }
}
