//! What the agents of a large job report each second.

use telltale_cluster::observation::Observation;

use super::job::{Steps, Traits};
use super::program::StepShape;
use crate::faults::machine::SimulatedFault;
use crate::faults::week::Workload as _;

/// A job of one shape, of which every node reports each second.
#[derive(Debug)]
pub struct Load {
    job: Steps,
    ranks: u32,
    seconds: u64,
}

impl Load {
    /// A job with these faults from its first step on, and how many times as slow each is.
    #[must_use]
    pub fn new(shape: StepShape, faults: &[(SimulatedFault, f64)], seed: u64) -> Self {
        let traits = Traits { shape, stage: None, data: 0.0, has_tcp: true };
        let mut job = Steps::new(traits, false, seed);
        job.break_down(faults);
        Self { job, ranks: shape.ranks(), seconds: 0 }
    }

    /// What each rank's node reports of the next second, in the order of the ranks.
    pub fn second(&mut self) -> Vec<Observation> {
        self.seconds += 1;
        self.job.go_on(10 * self.seconds);
        (0..self.ranks).map(|rank| self.job.report(rank)).collect()
    }
}
