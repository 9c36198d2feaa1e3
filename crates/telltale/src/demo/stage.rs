//! The emulated machine of a demo and the workloads on it.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, geteuid, kill_process, kill_process_group};
use telltale_collector::Collector;
use telltale_debug_stream::FILTER_VARIABLE;
use telltale_emulator::{Emulator, EmulatorOptions, MachineKind};
use telltale_ledger::directory::OVERFLOW_UID;
use telltale_runtime::debug_output::DIRECTORY_VARIABLE;
use telltale_schema::snapshot::Process;
use telltale_schema::text::printable;

use super::losses;
use crate::arguments::Workload;
use crate::exit::Failure;
use crate::interrupt::Interrupt;
use crate::private_directory::PrivateDirectory;

/// How the directory of a demo is named, before its pid.
const DIRECTORY_PREFIX: &str = "telltale-demo-";
/// How long the workloads may take to start recording.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a workload may take to end when asked to, before it is killed.
const END_TIMEOUT: Duration = Duration::from_secs(2);
/// How long trainings may take to their first loss before snapshots are printed without it: the
/// kernels may have to be compiled.
const LOSS_TIMEOUT: Duration = Duration::from_secs(60);
/// Lines that are shown of what a workload complained about before it ended.
const MAX_COMPLAINTS: usize = 10;
/// Two trainings, which are not the same; their kernels print something now and then.
const TRAININGS: [&[&str]; 2] = [
    &["gpt", "--device", "0", "--seed", "1", "--print", "1.found:every=5"],
    &["gpt", "--device", "1", "--seed", "2", "--print", "1.shares:every=5"],
];
/// Two replays of what was recorded of real programs.
const REPLAYS: [&[&str]; 2] = [
    &["replay", "train", "--device", "0", "--loop"],
    &["replay", "generate", "--device", "1", "--loop"],
];

/// A running machine and its workloads. Dropping it ends and removes all of it.
pub(super) struct Stage {
    directory: PrivateDirectory,
    emulator: Option<Emulator>,
    workloads: Vec<StagedWorkload>,
    /// What these do.
    pub(super) workload: Workload,
}

/// A process that works on the machine.
struct StagedWorkload {
    arguments: &'static [&'static str],
    process: Child,
    /// The file with what it complains about: a view would be painted over by it.
    complaints: PathBuf,
}

// === impl Stage ===

impl Stage {
    /// Starts everything.
    pub(super) fn build(workload: Workload) -> Result<Self, Failure> {
        refuse_nobody()?;
        let directory = PrivateDirectory::make(DIRECTORY_PREFIX)?;
        let mut stage = Self { directory, emulator: None, workloads: Vec::new(), workload };
        let emulator = Emulator::start(stage.root(), MachineKind::N300, EmulatorOptions::default())
            .map_err(|error| Failure::because(&error))?;
        stage.emulator = Some(emulator);
        let workloads = match workload {
            Workload::Gpt => TRAININGS,
            Workload::Trace => REPLAYS,
        };
        for arguments in workloads {
            let number = stage.workloads.len();
            stage.workloads.push(StagedWorkload::start(stage.root(), arguments, number)?);
        }
        Ok(stage)
    }

    /// The machine's root directory.
    pub(super) fn root(&self) -> &Path {
        self.directory.path()
    }

    /// Returns when every workload has recorded something, so that the first table has something
    /// to show, and in any case soon.
    pub(super) fn wait_for_workloads(&self, collector: &mut Collector, interrupt: &Interrupt) {
        let deadline = Instant::now() + START_TIMEOUT;
        while Instant::now() < deadline && !interrupt.sleep(Duration::from_millis(10)) {
            let snapshot = collector.collect();
            let recording =
                |process: &&Process| process.devices.iter().any(|held| !held.kinds.is_empty());
            if snapshot.processes.iter().filter(recording).count() >= self.workloads.len() {
                return;
            }
        }
    }

    /// Returns when every training has reported a loss, and in any case after a while.
    pub(super) fn wait_for_losses(
        &mut self,
        collector: &mut Collector,
        interrupt: &Interrupt,
    ) -> Result<(), Failure> {
        let deadline = Instant::now() + LOSS_TIMEOUT;
        while Instant::now() < deadline && !interrupt.sleep(Duration::from_millis(100)) {
            self.check_workloads(interrupt)?;
            if losses::count(&collector.collect()) >= self.workloads.len() {
                break;
            }
        }
        Ok(())
    }

    /// Fails when a workload has ended unexpectedly. A user who asks the demo to end
    /// may have asked the workloads too, so their end means nothing after it.
    pub(super) fn check_workloads(&mut self, interrupt: &Interrupt) -> Result<(), Failure> {
        for workload in &mut self.workloads {
            if let Ok(Some(status)) = workload.process.try_wait()
                && !interrupt.asked()
            {
                return Err(workload.ended_early(status));
            }
        }
        Ok(())
    }

    /// Ends and removes everything; says what could not be.
    pub(super) fn strike(mut self) -> Result<(), Failure> {
        self.end_workloads();
        if let Some(emulator) = self.emulator.take() {
            // Whatever is left in the directory goes with it.
            let _ = emulator.shutdown().map_err(|error| Failure::because(&error))?;
        }
        self.directory.remove().map_err(|error| {
            let path = self.directory.path().display();
            Failure::Message(format!("removing the demo's directory {path} failed: {error}"))
        })
    }

    fn end_workloads(&mut self) {
        for StagedWorkload { process, .. } in &mut self.workloads {
            // One that was reaped has a pid that may be another's by now.
            if matches!(process.try_wait(), Ok(None)) {
                let _ = kill_process(Pid::from_child(process), Signal::TERM);
            }
        }
        let deadline = Instant::now() + END_TIMEOUT;
        for StagedWorkload { mut process, .. } in self.workloads.drain(..) {
            while let Ok(None) = process.try_wait() {
                if Instant::now() > deadline {
                    // With whatever it started: a training may be in the middle of compiling.
                    let _ = kill_process_group(Pid::from_child(&process), Signal::KILL);
                    let _ = process.wait();
                    break;
                }
                std::thread::sleep(Duration::from_millis(2));
            }
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.end_workloads();
        self.emulator.take();
        let _ = self.directory.remove();
    }
}

// === impl StagedWorkload ===

impl StagedWorkload {
    /// Starts it on the machine at `root`.
    fn start(
        root: &Path,
        arguments: &'static [&'static str],
        number: usize,
    ) -> Result<Self, Failure> {
        let failed =
            |error| Failure::Message(format!("starting a workload process failed: {error}"));
        let program = std::env::current_exe().map_err(|error| {
            Failure::Message(format!("finding this program's own file: {error}"))
        })?;
        let complaints = root.join(format!("workload-{number}.stderr"));
        let file = File::create(&complaints).map_err(failed)?;
        let mut command = command(&program, root, arguments);
        let process = command.stderr(file).spawn().map_err(failed)?;
        Ok(Self { arguments, process, complaints })
    }

    /// That it ended unexpectedly, and what it complained about last.
    fn ended_early(&self, status: ExitStatus) -> Failure {
        let arguments = self.arguments.join(" ");
        let complaints = fs::read_to_string(&self.complaints).unwrap_or_default();
        let last: Vec<&str> = complaints.lines().rev().take(MAX_COMPLAINTS).collect();
        let mut text = format!(
            "the workload `telltale {arguments}` ended early ({status}); run it alone to see why, or \
             try another one with --workload"
        );
        for line in last.iter().rev() {
            text.push_str("\n  ");
            text.push_str(&printable(line));
        }
        Failure::Message(text)
    }
}

fn command(program: &Path, root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command
        .arg0("telltale")
        .args(arguments)
        .env("TELLTALE_ROOT", root)
        .env_remove("TELLTALE_RUNTIME_DIR")
        .env("TELLTALE_END_WITH_PARENT", std::process::id().to_string())
        .env_remove("TELLTALE_DISABLED")
        .env_remove(DIRECTORY_VARIABLE)
        .env_remove(FILTER_VARIABLE)
        // What a compiler leaves there when it is killed goes with the directory.
        .env("TMPDIR", root)
        // A group of its own, that it can be ended with what it started. Ctrl-C does not reach it
        // there, so that it is the demo alone that ends it.
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    command
}

/// A runtime directory of the overflow uid is refused by every reader, so that nothing would show.
pub(super) fn refuse_nobody() -> Result<(), Failure> {
    if geteuid().as_raw() != OVERFLOW_UID {
        return Ok(());
    }
    Err(Failure::Message(format!(
        "the demo cannot run as user {OVERFLOW_UID} (nobody), whom no reader trusts as an owner; run \
         it as a user with a number of its own"
    )))
}
