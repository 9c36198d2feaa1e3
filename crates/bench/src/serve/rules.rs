//! What the default rules cost for each snapshot.

use std::io;

use telltale_node::alerts::{AlertOptions, Engine};
use telltale_schema::snapshot::Snapshot;

use crate::sample::{Contender, processor_time_ns};

/// From one snapshot to the next, by the engine's clock.
const SECOND_NS: u64 = 1_000_000_000;

/// Steps the engine over the same snapshot, a second apart.
pub(super) fn contender(snapshot: &Snapshot, steps: u64) -> io::Result<Contender<'_>> {
    let rules = AlertOptions::default().rules().map_err(io::Error::other)?;
    let mut engine = Engine::new(rules);
    let mut now_ns = SECOND_NS;
    Ok(Box::new(move || {
        processor_time_ns(steps, || {
            for _ in 0..steps {
                now_ns += SECOND_NS;
                engine.step(now_ns, snapshot);
            }
        })
    }))
}
