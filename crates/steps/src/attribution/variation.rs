//! Whether computations vary with the data, or because of their hosts.
//!
//! What is long because of its data is long wherever the data go: forward and backward, and in each stage. Noise of a
//! host is on one computation alone. So the correlation of both is the part that the data have.

use std::collections::BTreeMap;

use super::means::Means;
use crate::kind::{Kind, Kinds, Nature};
use crate::roles::Roles;
use crate::step::{Placed, Step};

/// The part of the variation that is the data's, from 0 to 1; 0 where nothing can be compared.
pub(super) fn data_part(steps: &[Step], kinds: &Kinds, roles: &Roles, means: &Means) -> f64 {
    let mut sums = Sums::default();
    for step in steps {
        let mut replicas: BTreeMap<u32, Vec<KindVariation>> = BTreeMap::new();
        for of_rank in step.operations().chunk_by(|one, next| one.rank == next.rank) {
            let series = series(of_rank, kinds, means);
            replicas.entry(roles.replica(of_rank[0].rank)).or_default().extend(series);
        }
        for series in replicas.into_values() {
            for (place, one) in series.iter().enumerate() {
                // Each with the next ones: all pairs would be many where pipelines are long.
                for other in series[place + 1..].iter().take(NEIGHBOURS) {
                    if one.values.len() == other.values.len() {
                        one.values.iter().zip(&other.values).for_each(|(x, y)| sums.add(*x, *y));
                    }
                }
            }
        }
    }
    sums.correlation().clamp(0.0, 1.0)
}

/// Series of one replica that each is compared with.
const NEIGHBOURS: usize = 4;
/// A kind that is a smaller part of its rank's computing is not checked.
const SMALLEST_PART: f64 = 0.1;

/// By how much a rank's computations of one kind were longer than is usual of them (in logarithms), in their order.
struct KindVariation {
    values: Vec<f64>,
}

fn series(of_rank: &[Placed], kinds: &Kinds, means: &Means) -> Vec<KindVariation> {
    let mut by_kind: BTreeMap<Kind, (f64, Vec<f64>)> = BTreeMap::new();
    let mut total = 0.0;
    for one in
        of_rank.iter().filter(|one| kinds.nature(one.kind) == Nature::Compute && one.work_ns > 0)
    {
        let usual = means.of_rank(one);
        if usual > 0.0 {
            let (sum, values) = by_kind.entry(one.kind).or_default();
            *sum += one.work_ns as f64;
            total += one.work_ns as f64;
            values.push((one.work_ns as f64 / usual).ln());
        }
    }
    let large = by_kind.into_values().filter(|(sum, _)| *sum >= SMALLEST_PART * total);
    large.map(|(_, values)| KindVariation { values }).collect()
}

/// Pearson's correlation of pairs, added one by one.
#[derive(Debug, Default)]
struct Sums {
    count: f64,
    x: f64,
    y: f64,
    xx: f64,
    yy: f64,
    xy: f64,
}

impl Sums {
    fn add(&mut self, x: f64, y: f64) {
        self.count += 1.0;
        self.x += x;
        self.y += y;
        self.xx += x * x;
        self.yy += y * y;
        self.xy += x * y;
    }

    /// 0 of fewer than three pairs, or where one side does not vary.
    fn correlation(&self) -> f64 {
        let n = self.count;
        let variances = (n * self.xx - self.x * self.x) * (n * self.yy - self.y * self.y);
        if n < 3.0 || variances <= 0.0 {
            return 0.0;
        }
        (n * self.xy - self.x * self.y) / variances.sqrt()
    }
}
