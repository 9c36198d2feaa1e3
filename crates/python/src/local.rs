//! This host now, by collectors that are kept: what they opened stays open, and rates have a
//! beginning.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use telltale_collector::tree::OpenTreeError;
use telltale_collector::{CollectOptions, Collector, EndpointUse, HostUse, Sensors};
use telltale_node::kubelet::list_allocated;
use telltale_schema::snapshot::Snapshot;
use telltale_sources::{FOR_A_LOOK, Question};

use crate::place::HostPlace;

/// How often the service of this host is asked what one look cannot find, such as a heartbeat that
/// stands still.
const ASKED_EVERY: Duration = Duration::from_secs(1);
/// Collectors that a thread keeps: one for each of the calls that a program has side by side.
const MAX_KEPT: usize = 4;

thread_local! {
    /// The collectors that this thread used last, the newest first.
    static KEPT: RefCell<Vec<Kept>> = const { RefCell::new(Vec::new()) };
}

/// A collector, and what it was made for.
struct Kept {
    place: LocalPlace,
    /// A child of `fork` has none of the threads that its parent's collector has.
    pid: u32,
    collector: Collector,
    /// When the service of this host was asked last what one look cannot find.
    asked: Option<Instant>,
}

/// What is collected here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LocalPlace {
    pub(crate) host: HostPlace,
    pub(crate) usage: bool,
    pub(crate) metrics: bool,
    pub(crate) with_host: bool,
}

impl LocalPlace {
    /// What is of devices alone.
    pub(crate) const fn of(host: HostPlace) -> Self {
        Self { host, usage: false, metrics: false, with_host: false }
    }
}

/// This host now. Its service is asked for as long as `for_service`.
pub(crate) fn collect(
    place: &LocalPlace,
    for_service: Duration,
) -> Result<Snapshot, OpenTreeError> {
    KEPT.with_borrow_mut(|all| {
        let pid = std::process::id();
        // Its end waits for no thread: the parent's collectors can be dropped here.
        all.retain(|kept| kept.pid == pid);
        let mut kept = match all.iter().position(|kept| kept.place == *place) {
            Some(at) => all.remove(at),
            None => {
                let collector = Collector::new(options(place))?;
                Kept { place: place.clone(), pid, collector, asked: None }
            }
        };
        let decides = for_service > FOR_A_LOOK;
        if decides || kept.asked.is_none_or(|asked| asked.elapsed() >= ASKED_EVERY) {
            Question::ask(place.host.sockets(), for_service).teach(&mut kept.collector);
            kept.asked = Some(Instant::now());
        }
        let taken = kept.collector.collect();
        all.insert(0, kept);
        all.truncate(MAX_KEPT);
        Ok(taken)
    })
}

fn options(place: &LocalPlace) -> CollectOptions {
    let endpoints = if place.metrics { EndpointUse::Always } else { EndpointUse::WhereNeeded };
    let mut options = CollectOptions {
        sensors: Sensors::All,
        endpoints,
        usage: place.usage,
        list_allocated: Some(list_allocated),
        runtime_dir: place.host.runtime_dir.clone(),
        ..CollectOptions::default()
    };
    if let Some(root) = &place.host.root {
        options.root = root.clone();
    }
    if place.with_host {
        options.host = HostUse::Always;
    }
    options
}
