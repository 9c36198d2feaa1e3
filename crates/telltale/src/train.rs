//! `telltale train`: what torchrun is for one script, with a coordinator and an agent in one process.
//!
//! The agent has the main thread, since workers end with the thread that started them. The coordinator has a thread of
//! its own, and so has what follows the job for its report.

mod command;
mod console;
mod coordinator;
mod follow;
mod joining;
mod nodes;
mod options;
mod processes;
mod rendezvous;
mod report;

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::process::geteuid;
use telltale_cluster::node::{HostAddress, NodeName};
use telltale_cluster::policy::AgentPolicy;
use telltale_cluster::rank::WorkersPerNode;
use telltale_cluster::vitals::NodeHealth;
use telltale_control_plane::attend::{AgentEnding, Signals, attend};
use telltale_control_plane::operator::Operator;
use telltale_control_plane::reach::Keyring;
use telltale_control_plane::supervisor::is_mid_line;
use telltale_ledger::directory::{OVERFLOW_UID, has_own_users};
use telltale_server::log::{self, Format, Level};
use tokio::sync::watch;

use crate::agent::plan::AgentSettings;
use crate::agent::{host_name, init, own_address};
use crate::arguments::TrainArguments;
use crate::exit::{self, Failure, Status};
use crate::parent;
use crate::private_directory::PrivateDirectory;

use coordinator::JobCoordinator;
use follow::{Follower, JobHistory};
use nodes::Place;
use rendezvous::RendezvousConf;
use report::{Stopped, TrainReport};

/// What the names of a job's private directory begin with, before the pid.
const DIRECTORY: &str = "telltale-train-";
/// How long the coordinator may take to answer.
const ANSWER: Duration = Duration::from_secs(5);
/// Bytes of a worker's output that are kept for each epoch in `--log-dir`.
const OUTPUT_BYTES: u64 = 1 << 30;

/// What of the log is for who starts a job: why its node does nothing.
const LOGGED: [(&str, Level); 2] =
    [("telltale_control_plane::attend", Level::Error), (crate::agent::MODULE, Level::Warn)];

/// What is run, and how: everything that the arguments say, checked.
#[derive(Debug)]
struct TrainPlan {
    command: Vec<OsString>,
    workers: WorkersPerNode,
    /// The name of the job.
    job: String,
    place: Place,
    nodes: nodes::NodeRange,
    conf: RendezvousConf,
    max_restarts: u32,
    lost_after: Duration,
    console: console::Outputs,
    grace: Duration,
    warm: options::Warm,
    shim: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &TrainArguments) -> Result<Status, Failure> {
    if arguments.end_with_parent.is_some_and(|parent| !parent::tie_to(parent)) {
        return Ok(Status::Fine);
    }
    if init::is_needed() {
        return init::run().and_then(init::as_job);
    }
    // What a person should know is said by what follows the job; what keeps it from beginning, by the log.
    match arguments.verbose {
        0 => log::start_for(&LOGGED),
        1 => log::start(Level::Info, Format::Text),
        _ => log::start(Level::Debug, Format::Text),
    }
    refuse_unnamed_user()?;
    let plan = TrainPlan::of(arguments)?;
    let directory = PrivateDirectory::make(DIRECTORY)?;
    let outcome = run_in(&plan, arguments, directory.path());
    // A guard that still clears up may hold it for a moment; the next run removes what is left.
    let removed = directory.remove();
    if let Err(error) = removed {
        tell(&format!("telltale: {} cannot be removed: {error}", directory.path().display()));
    }
    let report = outcome?;
    report.print(arguments.json);
    Ok(Status::OfJob(report.exit_code()))
}

/// In a user namespace that gives this user no number, its own files look like anyone's.
fn refuse_unnamed_user() -> Result<(), Failure> {
    if geteuid().as_raw() != OVERFLOW_UID || has_own_users() {
        return Ok(());
    }
    Err(Failure::Message(format!(
        "the user of this process has no number of its own in this user namespace (it is {OVERFLOW_UID}); map it, \
         as `unshare --user --map-root-user` does, or let the container run as a user that it knows"
    )))
}

/// A line on standard error, on a line of its own even where a worker's is unfinished.
fn tell(text: &str) {
    let before = if is_mid_line() { "\n" } else { "" };
    exit::tell(&format!("{before}{text}"));
}

/// What a run needs of the system before it can begin.
fn no_thread(error: &std::io::Error) -> Failure {
    Failure::Message(format!(
        "a thread or a descriptor of this run cannot be had: {error}; raise the limits of this user (`ulimit -u`, \
         `ulimit -n`)"
    ))
}

/// Runs the job with its own files in `directory`.
fn run_in(
    plan: &TrainPlan,
    arguments: &TrainArguments,
    directory: &Path,
) -> Result<TrainReport, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(4)
        .build()
        .map_err(|error| no_thread(&error))?;
    let began = SystemTime::now();
    let mut signals = {
        let _inside = runtime.enter();
        Signals::listen().map_err(|error| Failure::because(&error))?
    };
    let (coordinator, place) = JobCoordinator::start(plan, arguments, directory, signals.stop())?;
    let access = place.access(arguments);
    let addresses = place.coordinators(directory);
    let keyring = Keyring::load(access.clone()).map_err(|error| Failure::because(&error))?;
    let operator = Operator::new(addresses.clone(), keyring.now(), ANSWER);
    let address = addresses.first().map(ToString::to_string).unwrap_or_default();
    let follower = Follower::start(plan, &place, (operator.clone(), address), signals.stop())?;
    let ending = runtime.block_on(async {
        let address = match place.address(arguments) {
            Some(address) => address,
            None => tokio::select! {
                address = own_address(&addresses) => address?,
                () = signals.next() => return Ok(AgentEnding::Asked),
            },
        };
        if let Place::Joins { .. } = place {
            tokio::select! {
                joins = joining::check(plan, &operator) => joins?,
                () = signals.next() => return Ok(AgentEnding::Asked),
            }
        }
        let node = node_name(&place)?;
        let settings = plan.settings(arguments, directory, (node, address), plan.logs()?);
        let settings = AgentSettings { coordinators: addresses, access, ..settings };
        let (plan, _files) = settings.plan()?;
        attend(plan, &mut signals, follower.part()).await.map_err(|error| Failure::because(&error))
    });
    // The coordinator waits for the connections of those that are still there.
    runtime.shutdown_background();
    let followed = follower.finish();
    let coordinated = coordinator.map_or(Ok(()), |running| running.end());
    let ending = ending?;
    let stopped = stopped(&ending, &signals, &followed);
    coordinated?;
    if let AgentEnding::CannotRun(reason) = ending {
        return Err(Failure::Message(format!("this node cannot run the job: {reason}")));
    }
    Ok(TrainReport::new(began, arguments.max_restarts, stopped, followed))
}

/// How the job ended, as its report has it.
fn stopped(ending: &AgentEnding, signals: &Signals, followed: &JobHistory) -> Stopped {
    match (ending, followed.lost) {
        (AgentEnding::Over(outcome), _) => Stopped::Over(*outcome),
        (_, Some(missed)) => Stopped::Lost(missed),
        (_, None) => Stopped::Signal(signals.first().map_or(15, |signal| signal.as_raw())),
    }
}

/// The name of this node: several processes of one host have different ones.
fn node_name(place: &Place) -> Result<NodeName, Failure> {
    let host = host_name()?;
    match place {
        Place::Joins { is_here: true, .. } => {
            let name = format!("{}:{}", host.as_str(), std::process::id());
            NodeName::new(&name).map_err(|error| Failure::because(&error))
        }
        _ => Ok(host),
    }
}

// === impl TrainPlan ===

impl TrainPlan {
    /// What follows from the arguments, with what is wrong with them.
    fn of(arguments: &TrainArguments) -> Result<Self, Failure> {
        options::check(&arguments.others, arguments.verbose > 0)?;
        let command = command::of(arguments)?;
        let workers = processes::count(&arguments.processes)?;
        let nodes = nodes::NodeRange::of(arguments)?;
        let conf = RendezvousConf::read(&arguments.nodes.rdzv_conf)?;
        let place = Place::of(arguments, &nodes, &conf)?;
        let warm = options::Warm::of(arguments, &command, workers)?;
        Ok(Self {
            job: nodes::job_name(arguments),
            max_restarts: arguments.max_restarts,
            lost_after: arguments.nodes.lost_after,
            console: console::Outputs::of(arguments, workers)?,
            grace: arguments.shutdown_timeout.unwrap_or(AgentPolicy::default().stop_grace),
            shim: options::has_shim(arguments, &command)?,
            command,
            workers,
            place,
            nodes,
            conf,
            warm,
        })
    }

    /// How the agent is run; its coordinators are another's matter.
    fn settings(
        &self,
        arguments: &TrainArguments,
        directory: &Path,
        (node, address): (NodeName, HostAddress),
        logs: Option<PathBuf>,
    ) -> AgentSettings {
        AgentSettings {
            node,
            address,
            workers: self.workers,
            job: Some(self.job.clone()),
            policy: AgentPolicy {
                stop_grace: self.grace,
                // The coordinator counts.
                restart_budget: u32::MAX,
                ..AgentPolicy::default()
            },
            state: directory.join("agent"),
            coordinators: Vec::new(),
            access: Default::default(),
            listen: Vec::new(),
            http_token_file: None,
            http_tls: None,
            readers: Vec::new(),
            health: watch::channel(NodeHealth::default()).1,
            stays: false,
            passes_interrupt: true,
            command: self.command.clone(),
            environment: self.environment(arguments),
            logs,
            output_bytes: OUTPUT_BYTES,
            echo: self.console.echo.clone(),
            warm: self.warm.is_on(),
            shim: self.shim,
            remove_if_killed: Some(directory.to_owned()),
        }
    }

    /// Variables that torchrun gives and an agent's machine does not know.
    fn environment(&self, arguments: &TrainArguments) -> Vec<(OsString, OsString)> {
        let mut variables = vec![
            ("ROLE_NAME".into(), arguments.role.clone().into()),
            ("TORCHELASTIC_MAX_RESTARTS".into(), arguments.max_restarts.to_string().into()),
        ];
        variables.extend(self.warm.variable());
        variables
    }

    /// Where output is kept: in a new directory of this run alone. Of two hosts or containers with one `--log-dir`, both may
    /// have this pid.
    fn logs(&self) -> Result<Option<PathBuf>, Failure> {
        let Some(directory) = &self.console.log_dir else { return Ok(None) };
        let failed = |path: &Path, error: std::io::Error| {
            Failure::Message(format!(
                "--log-dir: {} cannot be made: {error}; name a directory that you may write",
                path.display()
            ))
        };
        std::fs::create_dir_all(directory).map_err(|error| failed(directory, error))?;
        let name = self.job.replace(|letter: char| !letter.is_ascii_alphanumeric(), "_");
        let mut path = directory.join(format!("{name}-{}", std::process::id()));
        for number in 2_u32.. {
            match std::fs::create_dir(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    path = directory.join(format!("{name}-{}-{number}", std::process::id()));
                }
                Err(error) => return Err(failed(&path, error)),
                Ok(()) => break,
            }
        }
        Ok(Some(path))
    }
}
