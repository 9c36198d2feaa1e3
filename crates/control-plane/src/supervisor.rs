//! Starts, stops and watches a node's workers: the hands of [`telltale_cluster::agent::Agent`].
//!
//! Each worker leads a session of its own, ends when the agent does, and counts as ended only once
//! nothing that it started is left. It decides nothing: it does what the machine says and reports what
//! became of it. All of it runs on one thread, since a worker ends with the thread that started it.

mod command;
mod failure;
mod guard;
mod holder;
mod leftovers;
mod lifetime;
mod output;
mod ports;
mod process;
mod python;
mod settings;
mod shim;
mod shutdown;
mod warm;
mod worker;

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, set_child_subreaper};
use thiserror::Error;
use tokio::sync::{mpsc, watch};

use failure::{FailureFiles, FailureWatch};
use guard::Guard;
use leftovers::LeftoverRecord;
use lifetime::{Lifetime, Lifetimes};
use output::{OutputStream, WorkerOutput, WorkerPosition};
use process::Origin;
use telltale_cluster::agent::{Exit, LocalRank};
use telltale_cluster::epoch::Epoch;
use telltale_cluster::node::{Incarnation, NodeName};
use telltale_cluster::observation::FailureDetail;
use telltale_cluster::rank::Rank;
use worker::{Failed, News, Recipe, Watched};

pub use command::{CommandError, can_be_run};
pub use guard::{GUARD, Guarded, guard};
pub use holder::{HOLD, Hold, HoldError, hold};
pub use output::OutputMetrics;
pub use output::echo::{Echo, StreamEcho, WorkerEcho, is_mid_line};
pub use output::prefix::LinePrefix;
pub use ports::HeldPort;
pub use settings::WorkerSettings;
pub use shim::{ShimError, can_have_shim};
pub use warm::{WarmError, can_be_warm};

/// Events that wait to be taken.
const MAX_WAITING_EVENTS: usize = 256;
/// The least bytes that a worker's output may be given.
pub const MIN_OUTPUT_BYTES: u64 = 64 << 10;
/// How long after workers were started or stopped others are started ahead.
const WARM_REST: Duration = Duration::from_secs(10);
/// How long the workers' output may take to be written when the agent ends.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);
/// How long killed workers may take to be gone when the agent ends.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// What happened to workers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkerEvent {
    /// Whatever an earlier life of the agent left running is gone.
    LeftoversGone,
    /// A worker runs its command.
    Started {
        /// Its epoch.
        epoch: Epoch,
        /// Which.
        local: LocalRank,
    },
    /// A worker could not be started.
    NotStarted {
        /// Its epoch.
        epoch: Epoch,
        /// Which.
        local: LocalRank,
        /// Why.
        reason: String,
        /// Whether the command cannot be executed on this node, now or the next time.
        lasts: bool,
    },
    /// A worker has ended, and nothing that it started is left.
    Exited {
        /// Its epoch.
        epoch: Epoch,
        /// Which.
        local: LocalRank,
        /// How the worker itself ended.
        exit: Exit,
        /// What it left, if it failed.
        failure: Option<FailureDetail>,
    },
    /// A worker that was started ahead has ended before it was needed.
    WarmEnded {
        /// How or why.
        reason: String,
    },
}

/// Why an agent cannot supervise.
#[derive(Debug, Error)]
pub enum SupervisorError {
    /// The directory cannot be used.
    #[error(
        "the state directory {path} cannot be used; give one that this user may write with --state"
    )]
    State {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The directory for the workers' output cannot be made.
    #[error(
        "the directory {path} for the workers' output cannot be made; name one that this user may write"
    )]
    Logs {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The directory's path cannot be passed to a Python.
    #[error(
        "the state directory {path} has a ':' in its path, by which PYTHONPATH separates places; give one without by --state"
    )]
    Divided {
        /// Which.
        path: PathBuf,
    },
    /// Another agent uses the directory.
    #[error(
        "another agent uses the state directory {path}; wait until it has ended, or give this one another --state"
    )]
    InUse {
        /// Which.
        path: PathBuf,
    },
    /// What the last life of this agent left running cannot be cleared away.
    #[error(
        "clearing away what this node's last agent left running, as {path} says, failed; end it by hand"
    )]
    Leftovers {
        /// The record.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Something the system has to give was refused.
    #[error("setting up the supervision failed at {step}")]
    SetUp {
        /// What.
        step: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// A worker that is there.
#[derive(Debug)]
struct RunningWorker {
    lifetime: Arc<Lifetime>,
    /// Its rank in the job; none yet, if it was started ahead.
    slot: Option<(Epoch, LocalRank)>,
    name: output::Name,
    /// Whether it was started ahead.
    ahead: bool,
    /// Whether it is its command already; if it was started ahead, whether it has imported everything.
    begun: bool,
    /// The agent's side of the gate, until it is opened.
    gate: Option<UnixStream>,
}

impl RunningWorker {
    /// Kills it, and returns which rank in which epoch that was unless it was killed before.
    fn kill(&self) -> Option<(Epoch, Rank)> {
        let place = self.name.get();
        self.lifetime.kill().then_some(place).flatten().map(|place| (place.epoch, Rank(place.rank)))
    }
}

/// Runs workers.
#[derive(Debug)]
pub struct Supervisor {
    settings: WorkerSettings,
    recipe: Recipe,
    record: LeftoverRecord,
    guard: Guard,
    output: WorkerOutput,
    /// The directory of what workers print.
    logs: PathBuf,
    /// By serial number.
    running: BTreeMap<u64, RunningWorker>,
    lifetimes: Arc<Lifetimes>,
    serial: u64,
    sender: mpsc::Sender<(u64, News)>,
    receiver: mpsc::Receiver<(u64, News)>,
    /// Events that are known already.
    known: VecDeque<WorkerEvent>,
    /// `PYTHONPATH` for workers, where it is not the agent's own.
    python_path: Option<OsString>,
    /// No worker is started ahead before this, so as not to be in the way of those that run.
    warm_after: Instant,
    /// Locked for as long as this agent lives.
    _lock: File,
}

impl Supervisor {
    /// Takes the state directory, and becomes the one to whom the orphans of workers fall. To be
    /// called on the thread that does all of the rest, within its event loop, in a process that has no children
    /// of other kinds in other sessions and is not the first one of a container: what falls to those would be
    /// taken for the workers'.
    ///
    /// # Errors
    /// When the directory cannot be used or is in use, or the system refuses a process or thread.
    pub fn open(settings: WorkerSettings) -> Result<Self, SupervisorError> {
        let lock = take_directory(&settings.state)?;
        let set_up = |step| move |source: io::Error| SupervisorError::SetUp { step, source };
        set_child_subreaper(Some(rustix::process::getpid()))
            .map_err(|error| set_up("taking care of orphans")(error.into()))?;
        let record = settings.state.join("workers");
        let guarded = Guarded {
            record: record.clone(),
            whose: mark_prefix(&settings),
            remove_if_killed: settings.remove_if_killed.clone(),
        };
        let guard = Guard::start(settings.program.clone(), guarded).map_err(set_up("the guard"))?;
        let logs = settings.logs.clone().unwrap_or_else(|| settings.state.join("logs"));
        DirBuilder::new().recursive(true).mode(0o700).create(&logs).map_err(|source| {
            let path = logs.clone();
            SupervisorError::Logs { path, source }
        })?;
        let files = settings.logs.clone();
        let files = files.map(|logs| (logs, settings.output_bytes.max(MIN_OUTPUT_BYTES)));
        let output = WorkerOutput::start(files, settings.echo.clone())
            .map_err(set_up("the threads for the workers' output"))?;
        let python_path = python_path(&settings)?;
        let (sender, receiver) = mpsc::channel(MAX_WAITING_EVENTS);
        Ok(Self {
            recipe: Recipe {
                program: settings.program.clone(),
                record: record.clone(),
                command: settings.command.clone(),
            },
            settings,
            record: LeftoverRecord::at(&record),
            guard,
            output,
            logs,
            running: BTreeMap::new(),
            lifetimes: Arc::default(),
            serial: 0,
            sender,
            receiver,
            known: VecDeque::new(),
            python_path,
            warm_after: Instant::now(),
            _lock: lock,
        })
    }

    /// Kills what an earlier life of this agent left running; [`WorkerEvent::LeftoversGone`] follows.
    ///
    /// # Errors
    /// When the record cannot be read, or something does not go away.
    pub async fn clear_leftovers(&mut self) -> Result<(), SupervisorError> {
        let record = self.record.clone();
        let cleared = tokio::task::spawn_blocking(move || record.clear("")).await;
        cleared
            .unwrap_or_else(|error| Err(io::Error::other(error)))
            .and_then(|()| self.record.keep(&[]))
            .map_err(|source| SupervisorError::Leftovers {
                path: self.settings.state.join("workers"),
                source,
            })?;
        self.known.push_back(WorkerEvent::LeftoversGone);
        Ok(())
    }

    /// Starts a worker with these variables. Events report what becomes of it.
    pub fn start(&mut self, epoch: Epoch, local: LocalRank, environment: &[(&str, String)]) {
        self.warm_after = Instant::now() + WARM_REST;
        let rank = environment.iter().find(|(name, _)| *name == "RANK");
        let rank = rank.and_then(|(_, rank)| rank.parse().ok()).unwrap_or(local.0);
        let place = WorkerPosition { epoch, rank, local: local.0 };
        let files = FailureFiles::of(&self.logs, place);
        files.prepare();
        let error_file = (failure::ERROR_FILE, files.error.to_string_lossy().into_owned());
        let environment: Vec<(&str, String)> = environment
            .iter()
            .cloned()
            .chain([error_file])
            .filter(|(name, _)| !self.sets(name))
            .collect();
        if self.open_gate((epoch, local), place, &environment) {
            self.known.push_back(WorkerEvent::Started { epoch, local });
            return;
        }
        let variables = environment.iter().map(|(name, value)| ((*name).into(), value.into()));
        if let Err(error) = self.launch(variables.collect(), Some(((epoch, local), place)), false) {
            let reason = format!("starting a process failed: {error}");
            self.known.push_back(WorkerEvent::NotStarted { epoch, local, reason, lasts: false });
        }
    }

    /// Whether a variable is set for all workers, in the place of what the machine gives.
    fn sets(&self, name: &str) -> bool {
        self.settings.environment.iter().any(|(own, _)| own == name)
    }

    /// The job has failed in this epoch: what its workers printed is kept, unless it failed in an earlier one.
    pub fn keep_first_failure(&self, failed: Epoch) -> io::Result<()> {
        output::files::keep_first_failure(&self.logs, failed)
    }

    /// The job begins as planned: what was kept of its first failure need not be.
    pub fn forget_first_failure(&self) -> io::Result<()> {
        output::files::forget_first_failure(&self.logs)
    }

    /// Asks a worker to end, also one that was stopped. What it has started is asked when it has. One that was
    /// asked before is not asked again.
    pub fn terminate(&mut self, epoch: Epoch, local: LocalRank) {
        self.warm_after = Instant::now() + WARM_REST;
        self.seated((epoch, local))
            .for_each(|running| running.lifetime.ask(Signal::TERM, &self.lifetimes));
    }

    /// Kills a worker; what it has started soon follows. Returns its rank unless it was killed before.
    pub fn kill(&mut self, epoch: Epoch, local: LocalRank) -> Option<Rank> {
        let killed = self.seated((epoch, local)).filter_map(RunningWorker::kill);
        killed.last().map(|(_, rank)| rank)
    }

    /// The next thing that happens. Nothing is lost if this is given up half-way.
    pub async fn event(&mut self) -> WorkerEvent {
        loop {
            if let Some(event) = self.known.pop_front() {
                return event;
            }
            let news = self.receiver.recv().await;
            let (serial, news) = news.expect("the supervisor holds a sender itself");
            self.take(serial, news);
        }
    }

    /// Does what is due: a guard in the place of one that was killed, workers started ahead, dead
    /// orphans taken off the system's table. To be called about once a second.
    ///
    /// # Errors
    /// When the guard or a worker cannot be started; it is tried again the next time.
    pub fn keep_up(&mut self) -> io::Result<()> {
        self.reap_orphans();
        self.guard.keep()?;
        let ahead = self.running.values().filter(|running| running.slot.is_none()).count();
        let wanted = usize::try_from(self.settings.warm).unwrap_or(usize::MAX);
        if ahead < wanted && Instant::now() >= self.warm_after {
            for _ in ahead..wanted {
                self.launch(Vec::new(), None, true)?;
            }
        }
        Ok(())
    }

    /// The workers that have a rank, by their process.
    pub fn processes(&self) -> impl Iterator<Item = (LocalRank, Pid)> {
        let running = self.running.values();
        running.filter_map(|running| Some((running.slot?.1, running.lifetime.origin.leader)))
    }

    /// How many workers are started ahead and have imported everything.
    #[must_use]
    pub fn warm(&self) -> usize {
        self.running.values().filter(|running| running.slot.is_none() && running.begun).count()
    }

    /// What of the workers' output was not passed on.
    #[must_use]
    pub fn output_metrics(&self) -> Arc<OutputMetrics> {
        self.output.metrics()
    }

    /// Ends every worker: asks them to by this signal, and kills those that have not ended within `grace`. What they
    /// have printed is written out. Returns the ranks that it had to kill, and their epochs.
    pub async fn stop(&mut self, signal: Signal, grace: Duration) -> Vec<(Epoch, Rank)> {
        for running in self.running.values_mut() {
            // Those that wait at a gate end when no process is left to open it.
            running.gate = None;
        }
        self.running.values().for_each(|running| running.lifetime.ask(signal, &self.lifetimes));
        let mut killed = Vec::new();
        if tokio::time::timeout(grace, self.all_ended()).await.is_err() {
            killed.extend(self.running.values().filter_map(RunningWorker::kill));
            // What cannot be killed is in the kernel's hands; the guard goes on trying.
            let _ = tokio::time::timeout(KILL_TIMEOUT, self.all_ended()).await;
        }
        let is_patient = self.output.waits_for_its_reader() && !grace.is_zero();
        // A disk or a reader that stands still does not keep the agent, unless what workers print is all that is wanted.
        let limit = if is_patient { Duration::MAX } else { FLUSH_TIMEOUT };
        let _ = tokio::time::timeout(limit, self.output.flush()).await;
        killed
    }

    async fn all_ended(&mut self) {
        while !self.running.is_empty() {
            let Some((serial, news)) = self.receiver.recv().await else { return };
            self.take(serial, news);
        }
    }

    /// Gives a place to a worker that was started ahead; false if there is none that can take it.
    fn open_gate(
        &mut self,
        slot: (Epoch, LocalRank),
        place: WorkerPosition,
        environment: &[(&str, String)],
    ) -> bool {
        let reported = warm::reported(environment);
        for running in self.running.values_mut().filter(|running| running.slot.is_none()) {
            let Some(mut gate) = running.gate.take() else { continue };
            // All of it has room in the socket, or the worker is not there any more. One whose gate
            // is closed without a word ends by itself.
            if process::leader(&running.lifetime.origin).is_some()
                && gate.write(&reported).is_ok_and(|written| written == reported.len())
            {
                running.slot = Some(slot);
                running.lifetime.give_rank();
                // It was empty: only this puts something in.
                let _ = running.name.set(place);
                return true;
            }
        }
        false
    }

    fn launch(
        &mut self,
        mut environment: Vec<(OsString, OsString)>,
        whose: Option<((Epoch, LocalRank), WorkerPosition)>,
        gate: bool,
    ) -> io::Result<()> {
        environment.extend(self.settings.environment.iter().cloned());
        environment.extend(self.python_path.clone().map(|path| ("PYTHONPATH".into(), path)));
        self.serial += 1;
        let serial = self.serial;
        let mark = format!("{}{serial}", mark_prefix(&self.settings));
        let started = self.recipe.start(mark, &environment, gate)?;
        let name = output::Name::from(OnceLock::new());
        if let Some((_, place)) = whose {
            let _ = name.set(place);
        }
        let lifetime = self.lifetimes.begin(started.origin, whose.is_some());
        let running = RunningWorker {
            lifetime: Arc::clone(&lifetime),
            slot: whose.map(|(slot, _)| slot),
            name: Arc::clone(&name),
            ahead: gate,
            begun: false,
            gate: started.gate,
        };
        let (ended, has_ended) = watch::channel(false);
        let follow = |stream, pipe| {
            let name = Arc::clone(&name);
            tokio::spawn(self.output.follow(name, stream, pipe, has_ended.clone()))
        };
        let watched = Watched {
            child: started.child,
            lifetime,
            all: Arc::clone(&self.lifetimes),
            record: self.record.clone(),
            ends: started.ends,
            channel: started.channel,
            name: Arc::clone(&name),
            failure: FailureWatch::start(&self.logs, self.settings.logs.is_some()),
            followed: [
                follow(OutputStream::Output, started.output),
                follow(OutputStream::Error, started.error),
            ],
            ended,
        };
        tokio::spawn(watched.until_ended(serial, self.sender.clone()));
        self.running.insert(serial, running);
        Ok(())
    }

    /// Turns news of a worker into an event, if it has a place.
    fn take(&mut self, serial: u64, news: News) {
        if let News::Begun = news {
            let Some(running) = self.running.get_mut(&serial) else { return };
            running.begun = true;
            if let (Some((epoch, local)), false) = (running.slot, running.ahead) {
                self.known.push_back(WorkerEvent::Started { epoch, local });
            }
            return;
        }
        let Some(running) = self.running.remove(&serial) else { return };
        self.forget_the_ended();
        let event = match (news, running.slot) {
            (News::NotBegun(Failed { reason, lasts }), Some((epoch, local))) => {
                WorkerEvent::NotStarted { epoch, local, reason, lasts }
            }
            (News::Ended(exit, failure), Some((epoch, local))) => {
                WorkerEvent::Exited { epoch, local, exit, failure }
            }
            (news, None) => {
                self.warm_after = Instant::now() + WARM_REST;
                WorkerEvent::WarmEnded { reason: news.to_string() }
            }
            (News::Begun, Some(_)) => return,
        };
        self.known.push_back(event);
    }

    /// Leaves in the record only who is there, unless a process may be about to write.
    fn forget_the_ended(&self) {
        if self.running.values().all(|running| running.begun) {
            let there: Vec<Origin> =
                self.running.values().map(|running| running.lifetime.origin.clone()).collect();
            // A line too many does no harm: it fits no process.
            let _ = self.record.keep(&there);
        }
    }

    fn seated(&self, slot: (Epoch, LocalRank)) -> impl Iterator<Item = &RunningWorker> {
        self.running.values().filter(move |running| running.slot == Some(slot))
    }

    /// Takes dead orphans of workers off the system's table.
    fn reap_orphans(&self) {
        let ours = |pid: Pid| {
            self.guard.is(pid) || self.running.values().any(|one| one.lifetime.origin.leader == pid)
        };
        process::reap_orphans(ours);
    }
}

/// Where workers' Pythons search for modules: ours, which stand aside when they have begun, and where the agent's does.
/// A Python that would not look there itself is not given it, for those that it starts would.
fn python_path(settings: &WorkerSettings) -> Result<Option<OsString>, SupervisorError> {
    let is_blind = python::blind_option(&settings.command).is_some();
    if is_blind && python::is_python(&settings.command) {
        return Ok(None);
    }
    let state = &settings.state;
    if state.as_os_str().as_bytes().contains(&b':') {
        return Err(SupervisorError::Divided { path: state.clone() });
    }
    let failed = |source| SupervisorError::State { path: state.clone(), source };
    let mut path = python::write(state).map_err(failed)?.into_os_string();
    let shim = settings.shim.then(|| shim::write(state)).transpose().map_err(failed)?;
    let own = std::env::var_os("PYTHONPATH").filter(|path| !path.is_empty());
    for place in shim.map(PathBuf::into_os_string).into_iter().chain(own) {
        path.push(":");
        path.push(place);
    }
    Ok(Some(path))
}

/// Takes the state directory for this process alone.
fn take_directory(path: &Path) -> Result<File, SupervisorError> {
    let failed = |source| SupervisorError::State { path: path.to_path_buf(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    let lock = options.open(path.join("lock")).map_err(failed)?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(lock),
        Err(Errno::WOULDBLOCK) => Err(SupervisorError::InUse { path: path.to_path_buf() }),
        Err(error) => Err(failed(error.into())),
    }
}

/// How the marks of this life's workers begin: no other agent on this machine has such.
fn mark_prefix(settings: &WorkerSettings) -> String {
    let (incarnation, process) = (settings.incarnation.number(), std::process::id());
    format!("{}/{incarnation}/{process}/", settings.node)
}
