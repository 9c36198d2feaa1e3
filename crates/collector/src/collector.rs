//! The collector: asks every source and makes a snapshot, once or periodically.

use std::collections::BTreeSet;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use telltale_ledger::LedgerReading;
use telltale_ledger::directory::RuntimeDirectory;
use telltale_schema::clock::{Clock, Timestamp};
use telltale_schema::device::DeviceIdentity;
use telltale_schema::health::HealthSettings;
use telltale_schema::snapshot::{Snapshot, SourceStatus};

use crate::clean::CleanReport;
use crate::clock::SystemClock;
use crate::hardware::{
    DrmSource, HostParts, HostSource, HostUse, Links, NeuronSource, NvidiaSource, NvmlUse,
    PartsReading,
};
use crate::health::Judge;
use crate::legacy::LegacyClients;
use crate::observation::MemoryClaim;
use crate::processes::{EndpointUse, Holders, ListAllocated, Places, PodOptions, Processes};
use crate::rate::{LEAST_SPAN, SampledAt};
use crate::reconcile::{Observations, RefusedClaim, reconcile};
use crate::report::refuse;
use crate::source::{DeviceReading, HardwareSource, SourceReading};
use crate::tenstorrent::{self, Sensors, TenstorrentSource};
use crate::timeout::CallLimits;
use crate::tree::{OpenTreeError, Tree};
use crate::usage::UsageReader;

/// How long to wait before a heartbeat is checked once more.
const HEARTBEAT_POLL_NS: u64 = 50_000_000;

/// What to collect, and within which time.
#[derive(Debug, Clone)]
pub struct CollectOptions {
    /// The machine's root: `/`, or an emulated or recorded one.
    pub root: PathBuf,
    /// Where endpoints and ledgers are, if not where the variables and the root say.
    pub runtime_dir: Option<PathBuf>,
    /// How long one file or one endpoint may take.
    pub timeout: Duration,
    /// How long each source may take.
    pub deadline: Duration,
    /// Which sensors of the chips are read.
    pub sensors: Sensors,
    /// When endpoints are asked.
    pub endpoints: EndpointUse,
    /// Whether to check containers that share nothing with us, where we may.
    pub containers: bool,
    /// Clients of the allocation server's protocol, where the service has its socket.
    pub legacy: Option<Arc<dyn LegacyClients>>,
    /// How processes get the names of their pods.
    pub pods: PodOptions,
    /// How the kubelet is asked what it has allocated; without, it is not asked.
    pub list_allocated: Option<ListAllocated>,
    /// When the machine itself is shown as a device.
    pub host: HostUse,
    /// Which of NVIDIA's management libraries is asked.
    pub nvml: NvmlUse,
    /// Whether it is read what processes and the host use, as [`Collector::read_usage`] says.
    pub usage: bool,
    /// From when on something is wrong with a device or a part of the machine.
    pub health: HealthSettings,
}

impl Default for CollectOptions {
    fn default() -> Self {
        Self {
            root: PathBuf::from("/"),
            runtime_dir: None,
            timeout: Duration::from_millis(250),
            deadline: Duration::from_secs(2),
            sensors: Sensors::default(),
            endpoints: EndpointUse::default(),
            containers: true,
            legacy: None,
            pods: PodOptions::default(),
            list_allocated: None,
            host: HostUse::default(),
            nvml: NvmlUse::default(),
            usage: false,
            health: HealthSettings::default(),
        }
    }
}

/// Makes snapshots of one machine. What it opened it keeps open.
pub struct Collector {
    clock: Arc<dyn Clock>,
    /// By rank: of a device that two show, the first is believed.
    sources: Vec<SourceState>,
    host: (HostUse, SourceState),
    links: Links,
    parts: (HostParts, Option<PartsReading>),
    processes: Processes,
    endpoints: EndpointUse,
    usage: UsageReader,
    judge: Judge,
    /// When the sources of hardware were read last.
    read_at: Timestamp,
}

/// A source, and what it said last.
struct SourceState {
    source: Box<dyn HardwareSource>,
    last: Option<SourceReading>,
    /// The last round repeated what was said before.
    is_repeated: bool,
}

/// What one collection asks, beside who holds the chips and the ledgers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Round {
    /// Whether the chips' sensors are read.
    pub sensors: bool,
    /// When endpoints are asked.
    pub endpoints: EndpointUse,
}

/// What processes say that they have memory of.
#[derive(Debug, Clone, Copy)]
struct ReportedDevices {
    /// The machine itself.
    host: bool,
    /// Any other device.
    others: bool,
}

/// Removes what dead processes left, once.
///
/// # Errors
/// When the root cannot be opened.
pub fn clean(options: CollectOptions) -> Result<CleanReport, OpenTreeError> {
    Ok(Collector::new(options)?.clean())
}

impl Collector {
    /// A collector of this options' machine.
    ///
    /// # Errors
    /// When the root cannot be opened.
    pub fn new(options: CollectOptions) -> Result<Self, OpenTreeError> {
        Self::with_clock(options, Arc::new(SystemClock))
    }

    /// As [`Self::new`], by another clock.
    ///
    /// # Errors
    /// When the root cannot be opened.
    pub fn with_clock(
        options: CollectOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, OpenTreeError> {
        let CollectOptions {
            root,
            runtime_dir,
            timeout,
            deadline,
            sensors,
            endpoints,
            containers,
            legacy,
            pods,
            list_allocated,
            host,
            nvml,
            usage: wants_usage,
            health,
        } = options;
        let tree = Arc::new(Tree::open(&root)?);
        let pods = (pods, list_allocated);
        let places = Places { runtime_dir, containers, timeout, deadline, legacy, pods };
        let (shared_tree, shared_clock) = (Arc::clone(&tree), Arc::clone(&clock));
        let limits = (timeout, deadline);
        let tenstorrent = TenstorrentSource::new(shared_tree, shared_clock, sensors, limits);
        let nvidia = NvidiaSource::new(Arc::clone(&tree), Arc::clone(&clock), nvml, limits);
        let neuron = NeuronSource::new(Arc::clone(&tree), Arc::clone(&clock), limits);
        let drm = DrmSource::new(Arc::clone(&tree), Arc::clone(&clock), limits);
        let sources: [Box<dyn HardwareSource>; 4] =
            [Box::new(tenstorrent), Box::new(nvidia), Box::new(neuron), Box::new(drm)];
        let own = HostSource::new(Arc::clone(&tree), Arc::clone(&clock), timeout);
        let links = Links::new(Arc::clone(&tree), Arc::clone(&clock), limits);
        let parts = HostParts::new(Arc::clone(&tree), Arc::clone(&clock), limits);
        let processes = Processes::new(tree, Arc::clone(&clock), places);
        let host = (host, SourceState::new(Box::new(own)));
        let sources = sources.into_iter().map(SourceState::new).collect();
        let mut usage = UsageReader::new(CallLimits { task: timeout, all: deadline });
        usage.follow(wants_usage);
        let judge = Judge::new(health);
        let parts = (parts, None);
        Ok(Self {
            clock,
            sources,
            host,
            links,
            parts,
            processes,
            endpoints,
            usage,
            judge,
            read_at: Timestamp(0),
        })
    }

    /// Asks every source once.
    pub fn collect(&mut self) -> Snapshot {
        self.collect_round(Round { sensors: true, endpoints: self.endpoints })
    }

    /// Asks the sources of one round; what it leaves out is as last reported.
    pub fn collect_round(&mut self, round: Round) -> Snapshot {
        let taken_at = self.clock.now();
        let started_ns = self.clock.monotonic_ns();
        let (mut devices, mut sources) = (Vec::new(), Vec::new());
        for asked in &mut self.sources {
            asked.ask(round);
            asked.add_to(&mut devices, &mut sources);
        }
        self.links.add_to(&mut devices, round.sensors);
        let found = self.processes.scan(&holders(&devices), round.endpoints);
        let claims = || found.processes.iter().filter_map(|one| one.memory.as_ref());
        let named = ReportedDevices {
            host: claims().any(MemoryClaim::is_of_host),
            others: claims().any(MemoryClaim::is_of_devices) || !found.regions.is_empty(),
        };
        self.read_host(round, named, &mut devices, &mut sources);
        if !devices.is_empty()
            && let Some(first) = sources.first_mut()
        {
            first.errors.retain(|error| !tenstorrent::is_no_driver(error));
        }
        sources.extend(found.statuses);
        let observations = Observations {
            taken_at,
            as_root: rustix::process::geteuid().is_root(),
            devices,
            processes: found.processes,
            regions: found.regions,
            legacy: found.legacy,
        };
        let reconciled = reconcile(observations);
        if let Some(status) = sources.iter_mut().find(|status| status.name == "processes") {
            for RefusedClaim { uid, subject, detail } in reconciled.refused {
                refuse(status, uid, subject, detail);
            }
        }
        let mut snapshot = Snapshot {
            devices: reconciled.devices,
            processes: reconciled.processes,
            closed_processes: found.closed,
            sources,
            ..Snapshot::empty(taken_at)
        };
        self.judge(round, &mut snapshot);
        self.add_usage(&mut snapshot);
        snapshot.collected_in_ns = self.clock.monotonic_ns().saturating_sub(started_ns);
        snapshot
    }

    /// Adds what is wrong with devices, parts of the machine and sources of hardware.
    fn judge(&mut self, round: Round, snapshot: &mut Snapshot) {
        let now = self.moment();
        let (source, last) = &mut self.parts;
        if round.sensors || last.is_none() {
            *last = Some(source.read());
            self.read_at = snapshot.taken_at;
        }
        let parts = last.as_ref().map_or(&[][..], |last| &last.parts);
        snapshot.sources.extend(last.iter().map(|last| &last.status).filter(is_news).cloned());
        let hardware = self.sources.iter().map(|asked| asked.source.name());
        let hardware: Vec<_> = hardware.chain([HostParts::NAME]).collect();
        self.judge.examine(snapshot, parts, (&hardware, self.read_at), now);
    }

    /// A rate of what processes and the host use is known after so long at the earliest.
    pub const LEAST_RATE_SPAN: Duration = LEAST_SPAN;

    /// From now on each collection reads what processes and the host use, or none does. Rates follow
    /// from the second reading on.
    pub fn read_usage(&mut self, wanted: bool) {
        self.usage.follow(wanted);
    }

    /// Reads once more what the processes of a snapshot that was just collected use, after the time that
    /// a rate takes, where that is read at all.
    pub fn measure_usage(&mut self, snapshot: &mut Snapshot) {
        if self.usage.is_following() {
            std::thread::sleep(LEAST_SPAN);
            self.add_usage(snapshot);
        }
    }

    fn add_usage(&mut self, snapshot: &mut Snapshot) {
        let now = self.moment();
        let host = self.usage.read(self.processes.directory(), &mut snapshot.processes, now);
        if let Some(host) = host {
            snapshot.host = Some(Box::new(host));
        }
    }

    /// Waits until each chip's heartbeat has been seen to count on, or has stood still for
    /// [`tenstorrent::HEARTBEAT_TIMEOUT_NS`]: one scan cannot tell. Takes a tenth of a second where
    /// all is well, no time where there is no heartbeat, and never more than that timeout and one
    /// look, though heartbeats cannot be read.
    pub fn watch_heartbeats(&mut self) {
        let until = Instant::now() + Duration::from_nanos(tenstorrent::HEARTBEAT_TIMEOUT_NS);
        let mut is_last = false;
        while self.awaits_heartbeats() && !is_last {
            let left = until.saturating_duration_since(Instant::now());
            std::thread::sleep(left.min(Duration::from_nanos(HEARTBEAT_POLL_NS)));
            // The last scan is at the end, so that a heartbeat that stands still has done so all along.
            is_last = Instant::now() >= until;
            self.sources.iter_mut().for_each(|asked| asked.source.read_heartbeats());
        }
    }

    /// Takes over the faults of a snapshot of another reader of this machine that has watched it for
    /// longer. The next [`Self::collect`] has those that still hold: a heartbeat that shows the same
    /// count, a chip that the driver does not list, a counter that rose.
    pub fn learn_faults(&mut self, snapshot: &Snapshot) {
        let devices = &snapshot.devices;
        self.sources.iter_mut().for_each(|asked| asked.source.learn_faults(devices));
        self.judge.learn(snapshot, self.moment());
    }

    fn moment(&self) -> SampledAt {
        SampledAt { monotonic_ns: self.clock.monotonic_ns(), at: self.clock.now() }
    }

    /// Whether [`Self::watch_heartbeats`] has something to wait for.
    pub fn awaits_heartbeats(&self) -> bool {
        self.sources.iter().any(|asked| asked.source.awaits_heartbeats())
    }

    /// Sources that are asked less often than all others, and whose status in the last snapshot is
    /// therefore that of an attempt which an earlier one has reported.
    pub fn repeated(&self) -> Vec<&'static str> {
        let mut repeated = self.processes.repeated();
        let all = self.sources.iter().chain([&self.host.1]);
        repeated.extend(all.filter(|asked| asked.is_repeated).map(|asked| asked.source.name()));
        repeated
    }

    /// Adds the machine itself, where it is wanted, or processes say what they have of its memory.
    fn read_host(
        &mut self,
        round: Round,
        named: ReportedDevices,
        devices: &mut Vec<DeviceReading>,
        sources: &mut Vec<SourceStatus>,
    ) {
        let (host, asked) = &mut self.host;
        let wanted = match host {
            HostUse::Never => false,
            HostUse::LastResort => named.host || (devices.is_empty() && !named.others),
            HostUse::Always => true,
        };
        if wanted {
            asked.ask(round);
            asked.add_to(devices, sources);
        }
    }

    /// Each source that was asked and has no device, and why.
    pub fn absent_sources(&self) -> Vec<(&'static str, String)> {
        let why = |asked: &SourceState| asked.last.as_ref()?.absent.clone();
        let all = self.sources.iter().chain([&self.host.1]);
        all.filter_map(|asked| Some((asked.source.name(), why(asked)?))).collect()
    }

    /// Removes what dead processes left in the runtime directory, as far as it is ours to remove.
    pub fn clean(&mut self) -> CleanReport {
        let held = self.sources.iter_mut().filter_map(|asked| asked.source.read_holders());
        let devices: Vec<_> = held.flat_map(|reading| reading.devices).collect();
        self.processes.clean(&holders(&devices))
    }

    /// From now on notices the end of every process that the last [`Self::collect`] found alive,
    /// so that [`Self::read_memory`] does. Says whether one of them has ended meanwhile, of which
    /// [`Self::ends`] does not tell: it is dead in the next [`Self::collect`].
    pub fn watch(&mut self) -> bool {
        self.processes.watch()
    }

    /// The directories that the last [`Self::collect`] checked.
    pub fn directories(&self) -> &[Arc<RuntimeDirectory>] {
        self.processes.directories()
    }

    /// Those of them that have more names than are checked, so that processes may be missing.
    pub fn truncated(&self) -> &[PathBuf] {
        self.processes.truncated()
    }

    /// Where it searches for runtime directories on this machine, whether or not one is there.
    pub fn places(&self) -> Vec<PathBuf> {
        self.processes.main_places()
    }

    /// A descriptor that is readable when a process that is watched has ended and no collection
    /// has taken note of it yet; none before [`Self::watch`].
    pub fn ends(&self) -> Option<BorrowedFd<'_>> {
        self.processes.ends()
    }

    /// Memory alone, from the ledgers that the last [`Self::collect`] found: hands `take` the pid
    /// and the reading of each process that lives. One check of who has ended and one bounded copy
    /// for each ledger, no allocation.
    pub fn read_memory(&mut self, take: impl FnMut(u32, &LedgerReading)) {
        self.processes.sweep(take);
    }

    /// Memory alone, without a collection before: opens the ledgers of the runtime directory and
    /// hands `take` the pid and the reading of each process that lives.
    pub fn read_memory_once(&mut self, take: impl FnMut(u32, &LedgerReading)) {
        self.processes.read_once(take);
    }

    /// The same by endpoints alone: asks all of the runtime directory at once, and hands `take`
    /// the pid and the answer of each process whose answer is believed. Wakes each of them up.
    pub fn ask_memory_once(&mut self, take: impl FnMut(u32, &telltale_wire::Report)) {
        self.processes.ask_once(take);
    }
}

// === impl SourceState ===

impl SourceState {
    fn new(source: Box<dyn HardwareSource>) -> Self {
        Self { source, last: None, is_repeated: false }
    }

    /// Asks the source. A round that leaves sensors out has what it said last, but who holds its
    /// devices: a scrape of processes must touch no driver.
    fn ask(&mut self, round: Round) {
        let reading = match round.sensors || self.last.is_none() {
            true => Some(self.source.read()),
            false => self.source.read_holders(),
        };
        self.is_repeated = reading.is_none();
        self.last = reading.or(self.last.take());
    }

    /// Adds what the source said, unless it has nothing to say.
    fn add_to(&self, devices: &mut Vec<DeviceReading>, sources: &mut Vec<SourceStatus>) {
        let Some(reading) = &self.last else { return };
        let is_there = reading.absent.is_none() || !reading.devices.is_empty();
        if is_there || !reading.status.errors.is_empty() {
            sources.push(reading.status.clone());
            // A device that two sources show is the first one's, which knows it better.
            let known: BTreeSet<_> = devices.iter().filter_map(|one| one.identity.pci()).collect();
            let is_new =
                |one: &&DeviceReading| one.identity.pci().is_none_or(|pci| !known.contains(&pci));
            devices.extend(reading.devices.iter().filter(is_new).cloned());
        }
    }
}

/// Whether the status of a source that a person need not know of has something to say.
fn is_news(status: &&SourceStatus) -> bool {
    !status.errors.is_empty() || !status.notes.is_empty()
}

/// Who holds a device, over all devices.
fn holders(devices: &[DeviceReading]) -> Holders {
    let is_untold = |device: &DeviceReading| {
        matches!(device.identity, DeviceIdentity::Chip(_)) && device.holders.value().is_none()
    };
    let mut all = Holders { some_untold: devices.iter().any(is_untold), ..Holders::default() };
    for holder in devices.iter().filter_map(|device| device.holders.value()).flatten() {
        match holder.pid {
            Some(pid) => {
                all.pids.insert(pid);
            }
            None => all.some_hidden = true,
        }
    }
    all
}
