//! What ships: a collector that goes on, and a snapshot of everything from each look.

use std::io;

use telltale_collector::{CollectOptions, Collector, EndpointUse, Round};

use crate::machine::BusyMachine;
use crate::sample::time_ns;

/// A collector of a machine with chips and workloads, as `smi` and the service run it.
pub struct WholeSnapshot<'a> {
    busy: &'a BusyMachine,
    collector: Collector,
    round: Round,
}

// === impl WholeSnapshot ===

impl<'a> WholeSnapshot<'a> {
    /// Collects once, so that all later looks are warm. Without `sensors` a look is one that the
    /// service takes between two readings of them.
    ///
    /// # Errors
    /// When the root cannot be opened.
    pub fn new(busy: &'a BusyMachine, sensors: bool) -> io::Result<Self> {
        let options = CollectOptions { root: busy.root().to_owned(), ..CollectOptions::default() };
        let mut collector = Collector::new(options).map_err(io::Error::other)?;
        collector.collect();
        collector.watch();
        let round = Round { sensors, endpoints: EndpointUse::WhereNeeded };
        Ok(Self { busy, collector, round })
    }

    /// Nanoseconds of one of so many `looks`.
    ///
    /// # Panics
    /// When the last one does not show all that is there.
    pub fn time(&mut self, snapshots: u64) -> f64 {
        let mut last = None;
        let each = time_ns(snapshots, || {
            for _ in 0..snapshots {
                last = Some(self.collector.collect_round(self.round));
            }
        });
        assert!(last.is_some_and(|snapshot| self.busy.is_seen_in(&snapshot)), "not all is seen");
        each
    }
}
