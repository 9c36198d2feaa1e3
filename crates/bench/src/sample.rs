//! Measures: repeats that alternate between contenders, then median and range.
//!
//! It knows nothing of what is measured, and compares no time with anything.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

use crate::pinning::Pinned;

/// How much work a run does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// The values that may be quoted.
    Full,
    /// A look: the same repeats, a tenth of the operations.
    Quick,
    /// Each body once with a few operations, to show that it works. Its times mean nothing.
    Once,
}

impl Effort {
    /// Repeats of each contender.
    pub fn repeats(self) -> usize {
        match self {
            Self::Full => 11,
            Self::Quick => 7,
            Self::Once => 1,
        }
    }

    /// Operations in one repeat, from the number that a full run does.
    pub fn operations(self, full: u64) -> u64 {
        match self {
            Self::Full => full,
            Self::Quick => (full / 10).max(1),
            Self::Once => (full / 10_000).clamp(1, 100),
        }
    }
}

/// The values of one contender, one per repeat.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurements {
    sorted: Vec<f64>,
}

impl Measurements {
    /// Results of at least one repeat.
    ///
    /// # Panics
    /// When there is none.
    pub fn new(mut samples: Vec<f64>) -> Self {
        assert!(!samples.is_empty(), "a result needs a repeat");
        samples.sort_by(f64::total_cmp);
        Self { sorted: samples }
    }

    /// The median; of an even count, the mean of the middle two.
    pub fn median(&self) -> f64 {
        let middle = self.sorted.len() / 2;
        if self.sorted.len() % 2 == 1 {
            self.sorted[middle]
        } else {
            f64::midpoint(self.sorted[middle - 1], self.sorted[middle])
        }
    }

    /// The minimum.
    pub fn min(&self) -> f64 {
        self.sorted[0]
    }

    /// The maximum.
    pub fn max(&self) -> f64 {
        self.sorted[self.sorted.len() - 1]
    }
}

/// One side of a comparison: runs one repeat and returns its value.
pub type Contender<'a> = Box<dyn FnMut() -> f64 + 'a>;

/// Runs every contender once unrecorded, then `repeats` times in turn (A B A B ...).
pub fn interleave<const N: usize>(
    repeats: usize,
    mut contenders: [Contender<'_>; N],
) -> [Measurements; N] {
    for contender in &mut contenders {
        contender();
    }
    let mut samples: [Vec<f64>; N] = std::array::from_fn(|_| Vec::with_capacity(repeats));
    for _ in 0..repeats {
        for (contender, samples) in contenders.iter_mut().zip(&mut samples) {
            samples.push(contender());
        }
    }
    samples.map(Measurements::new)
}

/// Nanoseconds per operation of `body`, which does `operations` of them.
pub fn time_ns(operations: u64, body: impl FnOnce()) -> f64 {
    let started = Instant::now();
    body();
    started.elapsed().as_nanos() as f64 / operations as f64
}

/// Nanoseconds of processor time per operation of `body`, which does `operations` of them on this
/// thread: what the processor did for others meanwhile is not counted.
pub fn processor_time_ns(operations: u64, body: impl FnOnce()) -> f64 {
    let started = reading_ns(ClockId::ThreadCPUTime);
    body();
    (reading_ns(ClockId::ThreadCPUTime) - started) / operations as f64
}

/// What a clock shows, in nanoseconds.
pub fn reading_ns(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Nanoseconds per operation of `body` on two threads at once, each pinned to its own processor and
/// doing `operations`: the mean of the two. They leave a spin barrier together.
pub fn time_on_two_threads_ns(operations: u64, body: impl Fn(usize) + Sync) -> f64 {
    on_two_threads(|index| time_ns(operations, || body(index)))
}

/// The same in processor time.
pub fn processor_time_on_two_threads_ns(operations: u64, body: impl Fn(usize) + Sync) -> f64 {
    on_two_threads(|index| processor_time_ns(operations, || body(index)))
}

fn on_two_threads(time: impl Fn(usize) -> f64 + Sync) -> f64 {
    let arrived = AtomicUsize::new(0);
    let one = |index: usize| {
        let _pinned = Pinned::to(index);
        arrived.fetch_add(1, Ordering::AcqRel);
        while arrived.load(Ordering::Acquire) < 2 {
            spin_loop();
        }
        time(index)
    };
    let (first, second) = thread::scope(|scope| {
        let second = scope.spawn(|| one(1));
        let first = one(0);
        (first, second.join().expect("a body that panics ends the benchmark"))
    });
    f64::midpoint(first, second)
}

#[cfg(test)]
mod tests {
    use super::{Effort, Measurements, interleave, time_on_two_threads_ns};
    use std::cell::RefCell;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn median_and_range() {
        let odd = Measurements::new(vec![3.0, 1.0, 2.0]);
        assert_eq!((odd.min(), odd.median(), odd.max()), (1.0, 2.0, 3.0));
        let even = Measurements::new(vec![4.0, 1.0, 2.0, 3.0]);
        assert_eq!(even.median(), 2.5);
    }

    #[test]
    fn contenders_take_turns_after_a_warm_up() {
        let order = RefCell::new(String::new());
        let contender = |name: char| -> super::Contender<'_> {
            let order = &order;
            Box::new(move || {
                order.borrow_mut().push(name);
                order.borrow().len() as f64
            })
        };
        let [a, b] = interleave(3, [contender('a'), contender('b')]);
        assert_eq!(order.into_inner(), "abababab");
        assert_eq!((a.min(), a.max(), b.min(), b.max()), (3.0, 7.0, 4.0, 8.0));
    }

    #[test]
    fn two_threads_both_run() {
        let sum = AtomicU64::new(0);
        let ns = time_on_two_threads_ns(10, |index| {
            sum.fetch_add(1 << (8 * index), Ordering::Relaxed);
        });
        assert_eq!(sum.into_inner(), 0x101);
        assert!(ns.is_finite());
    }

    #[test]
    fn quotable_efforts_repeat_at_least_seven_times() {
        assert!(Effort::Full.repeats() >= 7 && Effort::Quick.repeats() >= 7);
        assert_eq!(Effort::Once.operations(5), 1);
    }
}
