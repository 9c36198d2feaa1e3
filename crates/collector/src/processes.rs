//! Processes: found by what they left in the runtime directory, by the driver's lists and by
//! regions; checked; and described.
//!
//! Nothing of another process is written but in `clearing`, by a user's order, and nothing is
//! believed before the kernel confirms it.

mod answered;
mod answers;
mod booted;
mod claims;
mod cleaning;
mod clearing;
mod closed;
pub(crate) mod command;
mod container;
mod described;
mod endpoints;
mod evidence;
mod identity;
mod known;
mod ledgers;
mod legacy;
mod listings;
mod liveness;
mod namesakes;
mod pods;
mod recorded;
mod reported;
mod roots;
mod rows;
mod status;
mod sweeping;
mod texts;
mod users;

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use telltale_ledger::directory::{DirectoryEnvironment, MOST_ENTRIES_LISTED, RuntimeDirectory};
use telltale_ledger::region::{Now, ProcessRow};
use telltale_schema::clock::{Clock, Timestamp};
use telltale_schema::process::ProcessIdentity;
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::{Process, ProcessState, SourceStatus};
use telltale_schema::text::with_causes;

use crate::legacy::LegacyClients;
use crate::observation::{LegacyObservation, ProcessObservation, RegionObservation, RowOwner};
use crate::report::SourceReport;
use crate::timeout::{self, Timeout};
use crate::tree::Tree;
use answered::{Answered, EndpointAnswer};
use answers::{Believed, EndpointPoller, Remembered};
use closed::Closed;
use described::{Description, Descriptions, unseen};
use endpoints::AskLimits;
use identity::{Checks, Standing, Standpoint};
use known::{KnownProcess, gather};
use ledgers::Ledgers;
use listings::{Listed, Listings};
use pods::Pods;
use recorded::recording_ns;
use roots::ContainerFiles;
use status::StatusLookup;

pub(crate) use booted::Booted;
pub(crate) use identity::NANOSECONDS_PER_TICK;
pub use pods::{Allocated, KubeletError, ListAllocated, PodOptions};
pub(crate) use status::Procfs;
pub use texts::{ProcessTexts, ProcessTextsError, process_texts};

/// When processes' endpoints are asked. Asking wakes them up; reading a ledger does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EndpointUse {
    /// Never.
    Never,
    /// Where no ledger can be read.
    #[default]
    WhereNeeded,
    /// Always, for what only endpoints tell: the application's own metrics.
    Always,
}

/// Where processes are searched for, and how long that may take.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    pub(crate) runtime_dir: Option<PathBuf>,
    pub(crate) containers: bool,
    pub(crate) timeout: Duration,
    pub(crate) deadline: Duration,
    pub(crate) legacy: Option<Arc<dyn LegacyClients>>,
    pub(crate) pods: (PodOptions, Option<ListAllocated>),
}

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Discovery {
    pub(crate) processes: Vec<ProcessObservation>,
    pub(crate) regions: Vec<RegionObservation>,
    pub(crate) legacy: Vec<LegacyObservation>,
    pub(crate) statuses: Vec<SourceStatus>,
    /// Processes of other users whose files may not be opened.
    pub(crate) closed: u64,
}

/// The driver's holders, over all devices.
#[derive(Debug, Clone, Default)]
pub(crate) struct Holders {
    /// Those that can be seen.
    pub(crate) pids: BTreeSet<u32>,
    /// Some cannot.
    pub(crate) some_hidden: bool,
    /// Of some chip the driver does not say.
    pub(crate) some_untold: bool,
}

/// Finds processes, periodically if asked.
pub(crate) struct Processes {
    tree: Arc<Tree>,
    clock: Arc<dyn Clock>,
    places: Places,
    procfs: Arc<Procfs>,
    standpoint: Standpoint,
    /// The numbers of the directories that the last scan found, by device and inode.
    numbers: BTreeMap<(u64, u64), u32>,
    next_number: u32,
    ledgers: Ledgers,
    listings: Listings,
    remembered: Remembered,
    descriptions: Descriptions,
    environments: Timeout,
    /// The directories that the last scan found.
    directories: Vec<Arc<RuntimeDirectory>>,
    /// Those of them that are this machine's and user's own.
    main_directories: Vec<Arc<RuntimeDirectory>>,
    /// Those of them that have more names than are checked.
    truncated: Vec<PathBuf>,
    answered: Answered,
    pods: Pods,
}

// === impl Places ===

impl Places {
    /// How long reads that may hang may take.
    fn limits(&self) -> timeout::CallLimits {
        timeout::CallLimits { task: self.timeout, all: self.deadline }
    }
}

// === impl Processes ===

impl Processes {
    pub(crate) fn new(tree: Arc<Tree>, clock: Arc<dyn Clock>, places: Places) -> Self {
        let procfs = Arc::new(Procfs::new(Arc::clone(&tree)));
        let standpoint = Standpoint::current(&procfs);
        let descriptions = Descriptions::new(places.limits());
        let (options, list) = places.pods.clone();
        let pods = Pods::new(options, list, Arc::clone(&tree), places.limits());
        Self {
            tree,
            clock,
            places,
            procfs,
            standpoint,
            numbers: BTreeMap::new(),
            next_number: 0,
            ledgers: Ledgers::default(),
            listings: Listings::default(),
            remembered: Remembered::default(),
            descriptions,
            environments: Timeout::default(),
            directories: Vec::new(),
            main_directories: Vec::new(),
            truncated: Vec::new(),
            answered: Answered::default(),
            pods,
        }
    }

    /// Scans once.
    pub(crate) fn scan(&mut self, holders: &Holders, endpoints: EndpointUse) -> Discovery {
        let mut found = Discovery::default();
        let now = (self.clock.now(), self.clock.monotonic_ns());
        let (mut report, mut closed) = (SourceReport::default(), Closed::default());
        let mut listed = self.list_main(&mut report);
        self.main_directories = listed.iter().map(|one| Arc::clone(&one.directory)).collect();
        let containers = self.list_containers(holders, &mut listed, &mut report);
        self.directories = listed.iter().map(|one| Arc::clone(&one.directory)).collect();
        let truncated = listed.iter().filter(|one| one.listing.truncated);
        self.truncated = truncated.map(|one| one.directory.path().to_owned()).collect();
        self.read_ledgers(holders, &listed, (&mut report, &mut closed));
        found.statuses.push(report.finish("ledgers", &*self.clock, now.1));

        let started_ns = self.clock.monotonic_ns();
        let mut report = SourceReport::default();
        let mut believed =
            self.ask_endpoints(endpoints, holders, &listed, (&mut report, &mut closed));
        found.closed = closed.count();
        found.statuses.push(report.finish("endpoints", &*self.clock, started_ns));
        for (identity, answer) in &mut believed {
            let whole = endpoints == EndpointUse::Always;
            self.answered
                .note(*identity, whole, || EndpointAnswer::of(&mut answer.reports, started_ns));
        }

        let started_ns = self.clock.monotonic_ns();
        let known = gather(&self.ledgers, believed);
        let lives = |known: &KnownProcess| known.standing != Standing::Dead;
        self.answered.keep(|identity| known.get(identity).is_some_and(lives), started_ns);
        let living = known.values().filter_map(|one| one.standing.pid());
        let pids = living.chain(holders.pids.iter().copied());
        self.descriptions.prepare(pids, &self.procfs, now);
        let mut pids: Vec<Option<u32>> = Vec::new();
        for (identity, known) in known {
            let process = self.describe(identity, known, now);
            pids.push(process.process.pid.filter(|_| process.process.state == ProcessState::Alive));
            found.processes.push(process);
        }
        self.add_holders(holders, &mut found.processes, &mut pids, now);
        found.statuses.push(SourceReport::default().finish("processes", &*self.clock, started_ns));

        let started_ns = self.clock.monotonic_ns();
        let mut report = SourceReport::default();
        self.read_regions(holders, &containers, &mut found, &mut pids, now, &mut report);
        found.statuses.push(report.finish("regions", &*self.clock, started_ns));
        self.read_legacy(&mut found, &mut pids, now);
        found.statuses.extend(self.pods.assign(&mut found.processes, &*self.clock));
        self.descriptions.keep(&pids.into_iter().flatten().collect());
        found
    }

    /// Adds the driver's holders that nothing else names, also those that `/proc` hides.
    fn add_holders(
        &mut self,
        holders: &Holders,
        observed: &mut Vec<ProcessObservation>,
        pids: &mut Vec<Option<u32>>,
        now: (Timestamp, u64),
    ) {
        for pid in &holders.pids {
            if pids.contains(&Some(*pid)) {
                continue;
            }
            if let Some(description) = self.descriptions.of(*pid, &self.procfs, now) {
                let identity = description.identity(*pid, &self.standpoint);
                let process = description.process(*pid, identity, now.0);
                observed.push(ProcessObservation::bare(process));
                pids.push(Some(*pid));
            } else if matches!(self.procfs.find(*pid), StatusLookup::Unseen)
                && !observed.iter().any(|one| {
                    one.process.pid == Some(*pid) && one.process.state != ProcessState::Dead
                })
            {
                let process = Process { pid: Some(*pid), ..Process::hidden(None, "") };
                observed.push(ProcessObservation::bare(process));
            }
        }
    }

    /// What reading a process by its pid takes: where, and what its start is counted from.
    pub(crate) fn directory(&self) -> (&Arc<Procfs>, Booted) {
        (&self.procfs, self.descriptions.booted())
    }

    /// Sources whose status in what was found last is that of an earlier scan.
    pub(crate) fn repeated(&self) -> Vec<&'static str> {
        self.pods.repeated()
    }

    /// Watches all that live from now on, so that a sweep sees their end. Says whether one of them
    /// has ended already.
    pub(crate) fn watch(&mut self) -> bool {
        let some_ended = self.ledgers.watch_all(&self.procfs);
        self.ledgers.watch_others(&self.procfs, self.descriptions.started());
        some_ended
    }

    /// The directories that the last scan found.
    pub(crate) fn directories(&self) -> &[Arc<RuntimeDirectory>] {
        &self.directories
    }

    /// Those of them that have more names than are checked.
    pub(crate) fn truncated(&self) -> &[PathBuf] {
        &self.truncated
    }

    /// Where runtime directories of this machine and user may be.
    pub(crate) fn main_places(&self) -> Vec<PathBuf> {
        let root = self.tree.is_emulated().then(|| self.tree.path());
        let environment = DirectoryEnvironment::of_this_process();
        let explicit = self.places.runtime_dir.as_deref();
        RuntimeDirectory::places_for_reading(explicit, root, &environment)
    }

    /// What is readable when a watched process has ended.
    pub(crate) fn ends(&self) -> Option<BorrowedFd<'_>> {
        self.ledgers.ends()
    }

    /// The runtime directories of this machine and user.
    fn list_main(&mut self, report: &mut SourceReport) -> Vec<Listed> {
        let root = self.tree.is_emulated().then(|| self.tree.path());
        let explicit = self.places.runtime_dir.clone();
        let environment = DirectoryEnvironment::of_this_process();
        let mut known = BTreeSet::new();
        let mut listed = Vec::new();
        for result in RuntimeDirectory::for_reading(explicit.as_deref(), root, &environment) {
            match result {
                Ok(directory) if roots::identity(&directory).is_some_and(|it| known.insert(it)) => {
                    listed.extend(self.list(Arc::new(directory), None, report));
                }
                Ok(_) => {}
                Err(error) if explicit.is_none() && error.is_missing() => {}
                Err(error) => {
                    report.error("runtime directory", Absence::Failed, with_causes(&error));
                }
            }
        }
        listed
    }

    /// Runtime directories of containers that do not share ours, and of other users.
    fn list_containers(
        &mut self,
        holders: &Holders,
        listed: &mut Vec<Listed>,
        report: &mut SourceReport,
    ) -> Vec<ContainerFiles> {
        if !self.places.containers {
            return Vec::new();
        }
        let known = listed.iter().filter_map(|one| roots::identity(&one.directory));
        let mut known: BTreeSet<(u64, u64)> = known.collect();
        let now_ns = self.clock.monotonic_ns();
        let descriptions = &self.descriptions;
        let pids = holders.pids.iter().map(|pid| (*pid, descriptions.outlook(*pid, now_ns)));
        let limits = self.places.limits();
        let containers = roots::scan(&self.procfs, pids, &mut known, (&self.environments, limits));
        for files in &containers {
            for directory in &files.directories {
                listed.extend(self.list(Arc::clone(directory), Some(files.user), report));
            }
        }
        containers
    }

    /// What is in a directory, to which a process of `user` led, or which is one of ours.
    fn list(
        &mut self,
        directory: Arc<RuntimeDirectory>,
        user: Option<u32>,
        report: &mut SourceReport,
    ) -> Option<Listed> {
        let identity = roots::identity(&directory)?;
        let next = &mut self.next_number;
        let number = *self.numbers.entry(identity).or_insert_with(|| {
            *next = next.wrapping_add(1);
            *next
        });
        let subject = directory.path().display().to_string();
        let fails = |detail: String| match user {
            Some(user) => report.odd_entry(user, subject, Absence::Failed, detail),
            None => report.error(subject, Absence::Failed, detail),
        };
        match self.listings.of(number, Arc::clone(&directory)) {
            Ok(listed) => {
                if listed.listing.truncated {
                    let detail = format!(
                        "it has more than the {MOST_ENTRIES_LISTED} names that are looked at; remove \
                         what no process needs"
                    );
                    fails(detail);
                }
                Some(listed)
            }
            Err(error) => {
                fails(format!("cannot list it: {error}"));
                None
            }
        }
    }

    fn read_ledgers(
        &mut self,
        holders: &Holders,
        listed: &[Listed],
        (report, closed): (&mut SourceReport, &mut Closed),
    ) {
        let checks = Checks::new(&self.procfs, &self.standpoint, holders.pids.iter().copied());
        for one in listed {
            self.ledgers.refresh(one, &checks, (report, closed));
        }
        let numbers: BTreeSet<u32> = listed.iter().map(|one| one.number).collect();
        self.ledgers.keep_directories(&numbers);
        self.listings.keep(&numbers);
        self.numbers.retain(|_, number| numbers.contains(number));
        self.remembered.keep(&numbers);
        self.ledgers.update_liveness(&self.procfs, &checks);
        // Who holds a chip was read before: one who has ended since must not be shown as living by
        // what is remembered of it.
        for pid in self.ledgers.take_ended() {
            self.descriptions.forget(pid);
        }
        self.descriptions.take_seen(checks.into_seen());
        self.ledgers.read(report);
    }

    fn ask_endpoints(
        &mut self,
        which: EndpointUse,
        holders: &Holders,
        listed: &[Listed],
        (report, closed): (&mut SourceReport, &mut Closed),
    ) -> BTreeMap<ProcessIdentity, Believed> {
        let checks = Checks::new(&self.procfs, &self.standpoint, holders.pids.iter().copied());
        let limits = AskLimits { peer: self.places.timeout, all: self.places.deadline };
        let mut asking = EndpointPoller {
            which,
            limits,
            checks: &checks,
            ledgers: &mut self.ledgers,
            remembered: &mut self.remembered,
            now_ns: self.clock.monotonic_ns(),
            report,
            closed,
        };
        asking.collect(listed)
    }

    fn describe(
        &mut self,
        identity: ProcessIdentity,
        known: KnownProcess,
        now: (Timestamp, u64),
    ) -> ProcessObservation {
        let seen = match known.standing {
            Standing::Alive { pid, start_time_ticks } => {
                described(&mut self.descriptions, pid, start_time_ticks, &self.procfs, now)
                    .map(|description| description.process(pid, Some(identity), now.0))
            }
            _ => None,
        };
        let mut process = seen.unwrap_or_else(|| {
            let state = match known.standing {
                Standing::Hidden => ProcessState::Hidden,
                _ => ProcessState::Dead,
            };
            let own = self.standpoint.namespace;
            let user = self.descriptions.user(known.uid, &self.procfs, now);
            unseen(identity, &known.name, (known.uid, user), state, own, now.0)
        });
        let mut measured = Arc::default();
        if process.state != ProcessState::Dead {
            let answer = self.answered.of(&identity);
            let reports = answer.and_then(|answer| answer.uptime_ns(now.1));
            let uptime_ns = reports.or_else(|| {
                let boot_ns = crate::clock::since_boot_ns();
                let start = known.standing.start_time_ticks();
                let start = start.unwrap_or(identity.start_time_ticks);
                recording_ns(start, known.started_at?, now.0, boot_ns)
            });
            if let Some(uptime_ns) = uptime_ns {
                process.uptime_seconds = Reading::new(seconds(uptime_ns), now.0);
            }
            process.metrics = answer.map(|answer| Arc::clone(&answer.metrics)).unwrap_or_default();
            measured = answer.map(|answer| Arc::clone(&answer.measured)).unwrap_or_default();
        }
        process.faults = known.faults;
        ProcessObservation { process, memory: Some(known.memory), measured }
    }

    fn read_regions(
        &mut self,
        holders: &Holders,
        containers: &[ContainerFiles],
        found: &mut Discovery,
        pids: &mut Vec<Option<u32>>,
        now: (Timestamp, u64),
        report: &mut SourceReport,
    ) {
        let clocks = Now { monotonic_ns: now.1, epoch_ns: now.0.0 };
        let mut files = BTreeSet::new();
        let mut readings = Vec::new();
        let own = self.tree.path().join("dev/shm");
        let all =
            containers.iter().filter_map(|files| Some((files.shared_memory()?, Some(files.user))));
        for (directory, user) in [(own, None)].into_iter().chain(all) {
            rows::scan_into((&directory, user), clocks, &mut files, &mut readings, report);
        }
        for reading in &readings {
            let region = rows::observe(reading, |row| {
                self.owner_of(row, holders, &mut found.processes, pids, now)
            });
            found.regions.push(region);
        }
    }

    /// Whose a row is: an observed process's, another one's that lives here, or none's.
    fn owner_of(
        &mut self,
        row: &ProcessRow,
        holders: &Holders,
        observed: &mut Vec<ProcessObservation>,
        pids: &mut Vec<Option<u32>>,
        now: (Timestamp, u64),
    ) -> RowOwner {
        let (procfs, standpoint) = (&self.procfs, &self.standpoint);
        let ahead_ns = |pid| {
            let process = procfs.directory(pid);
            process.map_or(0, |process| standpoint.monotonic_ahead_ns(&process))
        };
        for (place, pid) in pids.iter().enumerate() {
            let Some(pid) = pid else { continue };
            let description = self.descriptions.of(*pid, procfs, now);
            let fits = |it: &Description| rows::fits(row, *pid, it, || ahead_ns(*pid));
            if description.is_some_and(fits) {
                return RowOwner::Observed(place);
            }
        }
        if let Some(description) = self.descriptions.of(row.pid, procfs, now)
            && rows::fits(row, row.pid, description, || ahead_ns(row.pid))
        {
            let identity = description.identity(row.pid, standpoint);
            let process = description.process(row.pid, identity, now.0);
            observed.push(ProcessObservation::bare(process));
            pids.push(Some(row.pid));
            return RowOwner::Observed(observed.len() - 1);
        }
        // A holder of that pid that /proc hides: nothing more can be known of it.
        let is_hidden = |one: &ProcessObservation| {
            one.process.state == ProcessState::Hidden && one.process.pid == Some(row.pid)
        };
        if let Some(place) = observed.iter().position(is_hidden) {
            RowOwner::Observed(place)
        } else if let Some(place) = rows::left_by(row, observed, self.standpoint.boot_id) {
            RowOwner::Observed(place)
        } else if holders.some_hidden || !self.standpoint.sees_all {
            RowOwner::Hidden
        } else {
            RowOwner::NoProcess
        }
    }
}

/// The description of the process that has `pid` and started then; a remembered one may be of an
/// earlier process.
fn described<'a>(
    descriptions: &'a mut Descriptions,
    pid: u32,
    start_time_ticks: u64,
    procfs: &Procfs,
    now: (Timestamp, u64),
) -> Option<&'a Description> {
    let fits = |one: &Description| one.start_time_ticks == start_time_ticks;
    if !descriptions.of(pid, procfs, now).is_some_and(fits) {
        descriptions.forget(pid);
    }
    descriptions.of(pid, procfs, now).filter(|one| fits(one))
}

/// Nanoseconds as seconds, exact to the microsecond for a century.
fn seconds(nanoseconds: u64) -> f64 {
    Duration::from_nanos(nanoseconds).as_secs_f64()
}
