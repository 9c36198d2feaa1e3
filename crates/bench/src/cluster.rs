//! The coordinator as it runs, the real program with a journal on loopback, and 10,000 simulated nodes
//! that report each second: what it costs, how long reports wait, and how soon a restart is through.

mod coordinator;
mod herd;

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit};

use crate::rundir::RunDirectory;
use crate::sample::{Effort, Measurements};
use crate::table::{Row, Table, Target, Unit};
use coordinator::Coordinator;
use herd::Herd;

/// Nodes in a full or quick run.
const NODES: u32 = 10_000;
/// Nodes when only the working is shown.
const FEW_NODES: u32 = 20;
/// Descriptors that are left to everything but connections.
const OTHER_DESCRIPTORS: u64 = 512;
/// How long reports are watched, and how long they come before.
const WATCHED: Duration = Duration::from_secs(30);
const SETTLED: Duration = Duration::from_secs(5);

/// What 10,000 nodes cost the coordinator, and how soon they are notified.
///
/// # Errors
/// When the coordinator cannot be started, or does not answer.
pub fn table(telltale: &Path, effort: Effort) -> io::Result<Table> {
    let nodes = if effort == Effort::Once { FEW_NODES } else { NODES };
    let (watched, settled, restarts) = match effort {
        Effort::Full => (WATCHED, SETTLED, 5),
        Effort::Quick => (WATCHED / 3, SETTLED, 3),
        Effort::Once => (Duration::from_secs(2), Duration::ZERO, 1),
    };
    let connections = connections(nodes);
    let directory = RunDirectory::create()?;
    let mut coordinator = Coordinator::start(telltale, directory.path(), nodes)?;
    let empty_bytes = coordinator.resident_bytes()?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let herd = runtime.block_on(Herd::register(coordinator.grpc(), nodes, connections))?;
    runtime.block_on(herd.running(1))?;
    std::thread::sleep(settled);
    let before = coordinator.waits()?;
    let (cpu_before, began) = (coordinator.cpu()?, Instant::now());
    let probes = runtime.block_on(herd.probe(watched))?;
    let share = (coordinator.cpu()? - cpu_before).as_secs_f64() / began.elapsed().as_secs_f64();
    let after = coordinator.waits()?;
    let each_bytes = (coordinator.resident_bytes()? - empty_bytes) / f64::from(nodes);
    let mut restarted = Vec::new();
    for epoch in 2..2 + restarts {
        restarted.push(runtime.block_on(herd.restart(epoch))?.as_nanos() as f64);
    }
    runtime.shutdown_background();
    let heading = format!(
        "`telltale coordinator` with {nodes} nodes of 8 workers on {connections} connections, each \
         reporting once a second"
    );
    let mut table = Table { heading, ..Table::default() };
    let mut row = |what: &str, unit, values, at_most| {
        let target = Target { at_most, ..Target::default() };
        let (what, ours) = (what.to_owned(), Some(values));
        table.rows.push(Row { what, unit, ours, baseline: None, target });
    };
    let one = |value: f64| Measurements::new(vec![value]);
    row("processor time, share of one", Unit::Share, one(share), Some(0.30));
    row("resident memory for each node", Unit::Bytes, one(each_bytes), Some(50.0 * 1024.0));
    let wait = coordinator::quantile_ns(&before, &after, 0.99);
    row("report read to report taken in, p99 at most", Unit::Time, one(wait), Some(100e6));
    row("report sent to its answer, p99", Unit::Time, one(p99_ns(probes)), Some(100e6));
    let what = "restart ordered to last acknowledgement taken in";
    row(what, Unit::Time, Measurements::new(restarted), Some(1e9));
    let reports = coordinator::count(&after) - coordinator::count(&before);
    table.remarks.push(format!("{reports} messages in {:.1} s", watched.as_secs_f64()));
    if connections < nodes {
        let text = format!("descriptors allow {connections} connections; the rest share them");
        table.remarks.push(text);
    }
    Ok(table)
}

/// One for each node, as far as descriptors allow.
fn connections(nodes: u32) -> u32 {
    let allowed = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let left = allowed.saturating_sub(OTHER_DESCRIPTORS).max(1);
    nodes.min(u32::try_from(left).unwrap_or(u32::MAX))
}

fn p99_ns(mut probes: Vec<Duration>) -> f64 {
    probes.sort_unstable();
    let place = (probes.len() * 99).div_ceil(100).max(1) - 1;
    probes.get(place).map_or(f64::INFINITY, |probe| probe.as_nanos() as f64)
}
