//! `telltale demo`: an emulated n300, two processes that replay real traces on it, and the table
//! that `telltale smi -w` shows. Whatever it started or made is gone when it ends.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use telltale_emulator::{Emulator, EmulatorOptions, MachineKind};
use telltale_node::Collector;
use telltale_schema::snapshot::{Process, Snapshot};
use telltale_smi::quantity;

use crate::arguments::{DemoArguments, Place};
use crate::exit::{Failure, Status};
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::smi::{self, Form};

/// Time between two snapshots.
const PERIOD: Duration = Duration::from_secs(1);
/// How long the demo runs when nobody watches at a terminal.
const UNWATCHED: Duration = Duration::from_secs(10);
/// How long a workload may take to start recording, and to end when asked to before it is killed.
const PATIENCE: Duration = Duration::from_secs(2);
/// The traces and the chips they run on.
const WORKLOADS: [(&str, &str); 2] = [("train", "0"), ("generate", "1")];
/// How the directory of a demo is named, before its pid.
const DIRECTORY_PREFIX: &str = "telltale-demo-";

/// Runs the command.
pub(crate) fn run(arguments: &DemoArguments) -> Result<Status, Failure> {
    let output = Output::detect();
    let interrupt = Interrupt::listen().map_err(|error| Failure::because(&error))?;
    let stage = Stage::build()?;
    let unwatched = (!output.is_terminal()).then_some(UNWATCHED);
    let form = if arguments.json { Form::Json } else { Form::Tables { details: false } };
    let place = Place { root: Some(stage.root.clone()), runtime_dir: None };
    let mut collector =
        Collector::new(smi::options(&place)).map_err(|error| Failure::because(&error))?;
    stage.wait_for_workloads(&mut collector, &interrupt);
    let until = arguments.seconds.or(unwatched).map(|span| Instant::now() + span);
    let watched = smi::watch(&mut collector, PERIOD, until, form, &output, &interrupt, |_| Ok(()));
    stage.strike()?;
    let last = watched?;
    if !arguments.json {
        output.print(&summary(&last))?;
    }
    Ok(Status::Fine)
}

/// What was seen last, in a few lines.
fn summary(last: &Snapshot) -> String {
    let mut text = String::from("At the end:\n");
    for process in &last.processes {
        for held in &process.devices {
            let id = last.devices.get(held.device).map_or("unknown", |device| &device.id);
            for kind in &held.kinds {
                text.push_str(&format!(
                    "  {} on {id}: {} {} in {} buffers, peak {}, {} allocations\n",
                    process.pid.map_or_else(String::new, |pid| pid.to_string()),
                    quantity::bytes(kind.usage.live_bytes),
                    kind.kind.name(),
                    quantity::count(kind.usage.live_buffers),
                    quantity::bytes(kind.usage.peak_bytes),
                    quantity::count(kind.usage.allocations),
                ));
            }
        }
    }
    text.push_str("The emulated machine and both workloads are gone.\n");
    text
}

/// The emulated machine and the workloads on it.
struct Stage {
    root: PathBuf,
    emulator: Option<Emulator>,
    workloads: Vec<Child>,
}

impl Stage {
    fn build() -> Result<Self, Failure> {
        let root = make_directory()?;
        let mut stage = Self { root, emulator: None, workloads: Vec::new() };
        let emulator = Emulator::start(&stage.root, MachineKind::N300, EmulatorOptions::default())
            .map_err(|error| Failure::because(&error))?;
        stage.emulator = Some(emulator);
        for (trace, device) in WORKLOADS {
            stage.workloads.push(start_workload(&stage.root, trace, device)?);
        }
        Ok(stage)
    }

    /// Returns when every workload has recorded something, so that the first table has something
    /// to show, and in any case soon.
    fn wait_for_workloads(&self, collector: &mut Collector, interrupt: &Interrupt) {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline && !interrupt.sleep(Duration::from_millis(10)) {
            let snapshot = collector.collect();
            let recording =
                |process: &&Process| process.devices.iter().any(|held| !held.kinds.is_empty());
            if snapshot.processes.iter().filter(recording).count() >= self.workloads.len() {
                return;
            }
        }
    }

    /// Ends and removes everything; says what could not be.
    fn strike(mut self) -> Result<(), Failure> {
        self.end_workloads();
        if let Some(emulator) = self.emulator.take() {
            emulator.shutdown().map_err(|error| Failure::because(&error))?;
        }
        match fs::remove_dir_all(&self.root) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Failure::Told(
                format!("removing the demo's directory {} failed: {error}", self.root.display()),
            )),
            _ => Ok(()),
        }
    }

    fn end_workloads(&mut self) {
        for workload in &self.workloads {
            let pid = i32::try_from(workload.id()).ok().and_then(Pid::from_raw);
            if let Some(pid) = pid {
                let _ = kill_process(pid, Signal::TERM);
            }
        }
        let deadline = Instant::now() + PATIENCE;
        for mut workload in self.workloads.drain(..) {
            while let Ok(None) = workload.try_wait() {
                if Instant::now() > deadline {
                    let _ = workload.kill();
                    let _ = workload.wait();
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
        let _ = fs::remove_dir_all(&self.root);
    }
}

fn start_workload(root: &Path, trace: &str, device: &str) -> Result<Child, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::Told(format!("finding this program's own file: {error}")))?;
    Command::new(program)
        .arg0("telltale")
        .args(["replay", trace, "--device", device, "--loop", "--end-with-parent"])
        .env("TELLTALE_ROOT", root)
        .env_remove("TELLTALE_DISABLED")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .map_err(|error| Failure::Told(format!("starting a workload process: {error}")))
}

/// Makes a directory of our own for the machine, in memory where there is such a place, and
/// removes those of demos that were killed.
fn make_directory() -> Result<PathBuf, Failure> {
    let candidates = [
        std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from),
        Some(PathBuf::from("/dev/shm")),
        Some(std::env::temp_dir()),
    ];
    let mut tried = String::new();
    for parent in candidates.into_iter().flatten().filter(|parent| parent.is_absolute()) {
        remove_abandoned(&parent);
        let root = parent.join(format!("{DIRECTORY_PREFIX}{}", std::process::id()));
        match DirBuilder::new().mode(0o700).create(&root) {
            Ok(()) => return Ok(root),
            Err(error) => tried.push_str(&format!("; {}: {error}", root.display())),
        }
    }
    Err(Failure::Told(format!("no directory for the emulated machine can be made{tried}")))
}

fn remove_abandoned(parent: &Path) {
    let me = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(DIRECTORY_PREFIX));
        let Some(pid) = pid.and_then(|pid| pid.parse::<u32>().ok()) else { continue };
        let ours = entry.metadata().is_ok_and(|found| {
            found.is_dir() && found.uid() == me && found.mode() & 0o777 == 0o700
        });
        if ours && !Path::new(&format!("/proc/{pid}")).exists() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
