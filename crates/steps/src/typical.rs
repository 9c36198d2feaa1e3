//! How long operations of each kind take, over steps, ranks and micro-batches.

use crate::kind::{Kind, Kinds, Nature};
use crate::step::Step;

/// How long an operation of each kind takes, in nanoseconds: the mean of computations, the median of
/// communications, of which a few are slow by chance (as the published analysis has it).
#[derive(Debug, Clone)]
pub struct Typical {
    by_kind: Vec<f64>,
}

impl Typical {
    /// What is typical of these steps.
    #[must_use]
    pub fn of(steps: &[Step], kinds: &Kinds) -> Self {
        let mut works: Vec<Vec<i64>> = vec![Vec::new(); kinds.count()];
        for one in steps.iter().flat_map(Step::operations) {
            works[one.kind.index()].push(one.work_ns);
        }
        let by_kind = kinds.all().zip(&mut works).map(|(kind, works)| match kinds.nature(kind) {
            Nature::Compute | Nature::Between => mean(works),
            Nature::Communication => median(works),
        });
        Self { by_kind: by_kind.collect() }
    }

    /// How long an operation of this kind takes.
    ///
    /// # Panics
    /// When the kind is another job's.
    #[must_use]
    pub fn ns(&self, kind: Kind) -> f64 {
        self.by_kind[kind.index()]
    }
}

/// 0 of none.
fn mean(values: &[i64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    values.iter().map(|one| *one as f64).sum::<f64>() / values.len() as f64
}

/// The mean of the two in the middle of an even number; 0 of none. Puts the values in another order.
fn median(values: &mut [i64]) -> f64 {
    let count = values.len();
    if count == 0 {
        return 0.0;
    }
    let (below, upper, _) = values.select_nth_unstable(count / 2);
    let lower = if count.is_multiple_of(2) { below.iter().max().unwrap_or(upper) } else { &*upper };
    f64::midpoint(*lower as f64, *upper as f64)
}
