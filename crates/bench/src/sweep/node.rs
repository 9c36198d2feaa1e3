//! What a node's own service does: one reader that goes on, and two that start from nothing.

use std::io;
use std::path::Path;

use telltale_collector::{CollectOptions, Collector};
use telltale_schema::memory::MemoryKind;
use telltale_wire::Report;

use super::Sweep;
use super::bare::add;

/// A collector that has found all workloads and follows them.
pub struct RunningCollector(Collector);

// === impl RunningCollector ===

impl RunningCollector {
    /// Collects once and watches what it found. `root` is a machine without chips.
    ///
    /// # Errors
    /// When the root cannot be opened.
    pub fn new(root: &Path, directory: &Path) -> io::Result<Self> {
        let mut collector = collector(root, directory)?;
        collector.collect();
        collector.watch();
        Ok(Self(collector))
    }

    /// Reads the memory of all processes that live.
    pub fn sweep(&mut self) -> Sweep {
        let mut sweep = Sweep::default();
        self.0.read_memory(|_, reading| add(&mut sweep, reading));
        sweep
    }
}

/// Opens, checks and reads every ledger in `directory` once, and keeps nothing.
///
/// # Errors
/// When the root cannot be opened.
pub fn cold(root: &Path, directory: &Path) -> io::Result<Sweep> {
    let mut sweep = Sweep::default();
    collector(root, directory)?.read_memory_once(|_, reading| add(&mut sweep, reading));
    Ok(sweep)
}

/// Asks every endpoint in `directory`, all at once, checks who answered, and keeps nothing.
///
/// # Errors
/// When the root cannot be opened.
pub fn through_sockets(root: &Path, directory: &Path) -> io::Result<Sweep> {
    let mut sweep = Sweep::default();
    collector(root, directory)?.ask_memory_once(|_, report| add_report(&mut sweep, report));
    Ok(sweep)
}

fn collector(root: &Path, directory: &Path) -> io::Result<Collector> {
    let (root, runtime_dir) = (root.to_owned(), Some(directory.to_owned()));
    let options = CollectOptions { root, runtime_dir, ..CollectOptions::default() };
    Collector::new(options).map_err(io::Error::other)
}

fn add_report(sweep: &mut Sweep, report: &Report) {
    for device in &report.devices {
        let dram = device.kinds.iter().filter(|usage| usage.kind == MemoryKind::Dram);
        let place = device.logical_id.and_then(|id| usize::try_from(id).ok());
        if let Some(bytes) = place.and_then(|id| sweep.dram_bytes.get_mut(id)) {
            *bytes += dram.map(|usage| usage.usage.live_bytes).sum::<u64>();
            sweep.answered += 1;
        }
    }
}
