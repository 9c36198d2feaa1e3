//! The command line: shape, help texts, completion. Nothing is opened or started here.

mod agent;
mod alerts;
mod autopsy;
mod cluster;
mod coordinator;
mod doctor;
mod events;
mod hardware;
mod health;
mod history;
mod hosts;
mod man;
mod monitor;
mod print;
mod record;
mod run;
mod select;
mod serve;
mod smi;
mod standalone;
mod tips;
mod top;
pub(crate) mod torchrun;
mod train;
mod variables;
mod worker;

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use telltale_emulator::{Fault, MachineKind, TimedFault};
use telltale_query::Query;

use crate::exit::{self, Failure, Status};

pub(crate) use agent::{AgentArguments, NodeService};
pub(crate) use alerts::AlertsArguments;
pub(crate) use autopsy::{AutopsyArguments, TakeArguments};
pub(crate) use cluster::{ClusterArguments, ClusterCommand, ExplainArguments, IncidentsArguments};
pub(crate) use coordinator::CoordinatorArguments;
pub(crate) use doctor::DoctorArguments;
pub(crate) use events::{
    DisplayArguments, EventFormat, EventSelection, EventsArguments, Numbers, WantedKind,
};
pub(crate) use hardware::HardwareArguments;
pub(crate) use health::HealthArguments;
pub(crate) use history::{HistoryArguments, HistoryPlace, ReportArguments};
pub(crate) use hosts::HostsArguments;
pub(crate) use man::ManArguments;
pub(crate) use monitor::{DmonArguments, MonitorArguments, PmonArguments};
pub(crate) use print::Print;
pub(crate) use record::RecordArguments;
pub(crate) use run::RunArguments;
pub(crate) use select::SelectArguments;
pub(crate) use serve::{ConfigArguments, ConfigCommand, ServeArguments};
pub(crate) use smi::{ColumnsFormat, SmiArguments, SmiCommand, TopoArguments};
pub(crate) use standalone::{AgentCommand, Standalone, parse_agent, parse_standalone};
pub(crate) use top::{ScreenArguments, TopArguments};
pub(crate) use train::{NodesArguments, TrainArguments, is_loopback};
pub(crate) use worker::{GuardArguments, HoldArguments};

/// Help is broken to no more columns than these; what stands behind it is written for as many.
const MAX_WIDTH: usize = 100;

/// Show what every accelerator, process and rank is doing, and keep training jobs running.
#[derive(Debug, Parser)]
#[command(name = "telltale", version, max_term_width = MAX_WIDTH, subcommand_required = true)]
#[command(arg_required_else_help = true)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show devices, the memory in use on them, and the processes that hold it
    #[command(after_help = smi::SMI_HELP)]
    Smi(Box<SmiArguments>),
    #[command(about = top::TOP_ABOUT, after_help = top::TOP_HELP)]
    Top(TopArguments),
    #[command(about = serve::SERVE_ABOUT, after_help = serve::SERVE_HELP)]
    Serve(ServeArguments),
    /// Check or show the service's configuration
    #[command(after_help = serve::CONFIG_HELP)]
    Config(ConfigArguments),
    /// List firing and pending alerts
    #[command(after_help = alerts::ALERTS_HELP)]
    Alerts(AlertsArguments),
    /// Diagnose this host: what does not work, why, and how to repair it
    #[command(after_help = doctor::DOCTOR_HELP)]
    Doctor(DoctorArguments),
    /// Show the state of a training job, and give its coordinator orders
    #[command(after_help = cluster::CLUSTER_HELP)]
    Cluster(ClusterArguments),
    #[command(about = autopsy::AUTOPSY_ABOUT, after_help = autopsy::AUTOPSY_HELP)]
    Autopsy(AutopsyArguments),
    /// Check whether the service is serving, for probes and scripts
    #[command(after_help = health::HEALTH_HELP)]
    Health(HealthArguments),
    /// Show devices and processes over time, from the service's history
    #[command(after_help = history::HISTORY_HELP)]
    History(HistoryArguments),
    /// Record snapshots to a file, for `smi --replay` and `top --replay`
    #[command(after_help = record::RECORD_HELP)]
    Record(RecordArguments),
    /// Run an unchanged command and record its large allocations
    #[command(after_help = run::RUN_HELP)]
    Run(RunArguments),
    /// Show one process over its whole life, running or ended
    #[command(after_help = history::REPORT_HELP)]
    Report(ReportArguments),
    /// Choose devices for a job, and print them as its runtime's variable
    #[command(after_help = select::SELECT_HELP)]
    Select(SelectArguments),
    #[command(about = coordinator::COORDINATOR_ABOUT, after_help = coordinator::COORDINATOR_HELP)]
    Coordinator(Box<CoordinatorArguments>),
    /// Train a small GPT in two processes on two emulated chips, and watch them
    #[command(after_help = DEMO_HELP)]
    Demo(DemoArguments),
    /// Train a small GPT on an emulated chip
    #[command(after_help = GPT_HELP)]
    Gpt(GptArguments),
    /// Replay an allocation trace on an emulated device
    #[command(after_help = REPLAY_HELP)]
    Replay(ReplayArguments),
    /// Show, filter, follow, compare and convert captured debug events
    #[command(after_help = events::HELP)]
    Events(Box<EventsArguments>),
    #[command(about = agent::AGENT_ABOUT, after_help = agent::AGENT_HELP)]
    Agent(Box<AgentArguments>),
    #[command(about = train::TRAIN_ABOUT, after_help = train::TRAIN_HELP)]
    Train(Box<TrainArguments>),
    /// Run an emulated machine in a directory, for use with --root
    #[command(after_help = emulate_help())]
    Emulate(EmulateArguments),
    /// Print the completion script of a shell
    Completions(CompletionArguments),
    /// Write the manual pages
    #[command(after_help = man::MAN_HELP)]
    Man(ManArguments),
    /// Become a worker's command
    #[command(name = telltale_control_plane::supervisor::HOLD, hide = true)]
    Hold(HoldArguments),
    /// Take evidence of processes that hang
    #[command(name = telltale_autopsy::request::TAKE, hide = true)]
    Take(TakeArguments),
    /// Outlive a killed agent, and clear away what it left
    #[command(name = telltale_control_plane::supervisor::GUARD, hide = true)]
    Guard(GuardArguments),
}

const DEMO_HELP: &str = "\
Needs no hardware, driver or privileges. The first run compiles the kernels of the training, which
takes some seconds (see `telltale gpt --help`). --workload trace replays two real allocation traces
instead and compiles nothing; so does the demo where there is no C compiler.

On a terminal of at least 80 columns and 24 rows it is the view of `telltale top`, with the losses
in the pane below; h shows its keys, q ends it. Without a terminal, tables are printed for 10
seconds, one snapshot a second. A summary and three commands to try next follow, except with
--json. The demo removes everything it made, except the compiled kernels.

--cluster starts a coordinator, four nodes and a spare on this host, each an agent with an emulated
chip, and trains one GPT. Half-way one node is killed. The spare takes its slot and the training
continues from its checkpoint. The training then runs again undisturbed, and the end says whether
the weights are identical.

Exit status: 0 success or Ctrl-C, 1 the weights differ, 2 failure, 64 usage error.";

const GPT_HELP: &str = "\
The model learns Telltale's documentation, character by character. The loss of each step is printed
and is on the process's endpoint. The result depends on seed and sizes only, not on --cache or on
interruptions. Without --root the chip is part of an emulated n300 in this process. The first run
compiles the kernels with $CC or cc into $TELLTALE_KERNEL_CACHE, default
$XDG_CACHE_HOME/telltale/kernels.

--print prints an activation into the chip's debug stream. Of a layer, counted from 0:
input, attention_norm, queries, keys, values, shares, found, between, feed_norm, wide, gelu; of the
model: output, norm, logits. The weights do not depend on it.

--parallel trains with the other ranks of a job, which sum gradients around a ring. Each rank keeps
its checkpoint in DIR/rank-N; --resume continues from the latest one of any rank. A rank without
peers saves a checkpoint and fails.

Exit status: 0 done or Ctrl-C, 1 the last checkpoint was not written or a rank ended early, 2
failure, 64 usage error.

Examples:
  telltale gpt --steps 100
  telltale gpt --checkpoint DIR            Ctrl-C leaves a checkpoint
  telltale gpt --checkpoint DIR --resume   and this goes on from it
  telltale gpt --print 1.gelu:every=10 --print logits
  telltale gpt --print 1.gelu --debug-output-dir DIR
  telltale gpt --steps 20 --cache off --weights-digest";

const REPLAY_HELP: &str = "\
TRACE is a file (docs/traces.md), or the built-in `train` or `generate`. Without --root the device
is part of an emulated n300 in this process.

Examples:
  telltale emulate --machine n300 --root /tmp/n300 &
  telltale replay train --device 0 --root /tmp/n300
  telltale replay generate --device 1 --speed max      print the cost of recording";

const EMULATE_HELP: &str = "\
Creates the driver's procfs, sysfs and hwmon files and device sockets in the directory, which must
be empty or left by an earlier run. Ctrl-C removes them; other files stay and are listed.

While it runs it reads lines from standard input and answers each in one line: FAULT breaks
something, `clear FAULT` mends it, `clear` mends all, `list` says what is broken. Counters keep what
a fault added. The end of the input ends nothing.

Faults (--fault, repeatable; N as in tenstorrent!N, FILE such as tt_aiclk, a|b is a or b):
";

const EMULATE_EXAMPLE: &str = "
Examples:
  telltale emulate --machine t3000 --root /tmp/t3000 --fault reset:1 --fault hang:2:tt_aiclk
  telltale emulate --machine n150 --root /tmp/n150 --fault nic:eth0:down@10..40
  echo nic:eth0:down | telltale emulate --machine n150 --root /tmp/n150";

/// What follows the options of `emulate`: the faults are those that the emulator knows.
fn emulate_help() -> String {
    let forms = Fault::forms();
    let width = forms.iter().map(|(form, _)| form.len()).max().unwrap_or_default();
    let line = |(form, effect): &(String, String)| format!("  {form:width$}   {effect}\n");
    let faults: String = forms.iter().map(line).collect();
    [EMULATE_HELP, &faults, EMULATE_EXAMPLE].concat()
}

/// Where to look.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct LocationArguments {
    /// Read the machine below DIR (see `telltale emulate`) instead of this host
    #[arg(long, value_name = "DIR", env = "TELLTALE_ROOT")]
    pub(crate) root: Option<PathBuf>,
    /// Directory of endpoints and ledgers [default: all of $TT_METRICS_SOCKET_DIR, /run/tt,
    /// $XDG_RUNTIME_DIR/telltale, /tmp/telltale-UID]
    #[arg(long, value_name = "DIR", env = "TELLTALE_RUNTIME_DIR")]
    pub(crate) runtime_dir: Option<PathBuf>,
}

impl LocationArguments {
    /// The sockets of a service to try, in this order; there may be none at their paths.
    pub(crate) fn sockets(&self) -> Vec<PathBuf> {
        telltale_client::usual_sockets(self.runtime_dir.as_deref(), self.root.as_deref())
    }
}

#[derive(Debug, Args)]
pub(crate) struct DemoArguments {
    /// Train on four nodes and a spare; kill one node during the training
    #[arg(long, conflicts_with_all = ["seconds", "workload"])]
    pub(crate) cluster: bool,
    /// Steps of the training, with --cluster [default: 160]
    #[arg(long, value_name = "N", requires = "cluster")]
    #[arg(value_parser = clap::value_parser!(u64).range(20..))]
    pub(crate) steps: Option<u64>,
    /// End after N seconds [default: never on a terminal, 10 otherwise]
    #[arg(long, value_name = "N", value_parser = seconds)]
    pub(crate) seconds: Option<Duration>,
    /// Workload of the two processes [default: gpt, or trace without a C compiler]
    #[arg(long, value_name = "WORKLOAD", value_enum)]
    pub(crate) workload: Option<Workload>,
    /// Print JSON, one object per snapshot; with --cluster one per event
    #[arg(long)]
    pub(crate) json: bool,
}

/// What the processes of a demo do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Workload {
    /// Train a small GPT
    Gpt,
    /// Replay real allocation traces
    Trace,
}

#[derive(Debug, Args)]
pub(crate) struct GptArguments {
    /// End after N steps in all, those before --resume included [default: never]
    #[arg(long, value_name = "N")]
    pub(crate) steps: Option<u64>,
    /// Index of the chip on the machine
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) device: usize,
    #[command(flatten)]
    pub(crate) place: LocationArguments,
    /// Seed of initial weights and batches
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Keep a checkpoint in DIR, written at the end and periodically
    #[arg(long, value_name = "DIR")]
    pub(crate) checkpoint: Option<PathBuf>,
    /// Steps between checkpoints
    #[arg(long, value_name = "N", default_value_t = 100, requires = "checkpoint")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) checkpoint_every: u64,
    /// Continue from the checkpoint in DIR, if there is one
    #[arg(long, requires = "checkpoint")]
    pub(crate) resume: bool,
    /// Train with the other ranks of a job, by RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT and
    /// TELLTALE_EPOCH
    #[arg(long)]
    pub(crate) parallel: bool,
    /// Minimum time of a step, in seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) pace: Option<Duration>,
    /// Program cache: on, off, or check (compare each hit) [default: $TELLTALE_PROGRAM_CACHE, on]
    #[arg(long, value_name = "MODE", value_parser = ["on", "off", "check"])]
    pub(crate) cache: Option<String>,
    /// Print this activation in the first and every Nth step; repeatable
    #[arg(long, value_name = "[LAYER.]NAME[:every=N]")]
    pub(crate) print: Vec<Print>,
    /// Write printed activations and losses to files below DIR [default: $NEURON_RT_DEBUG_OUTPUT_DIR]
    #[arg(long, value_name = "DIR", conflicts_with = "json")]
    pub(crate) debug_output_dir: Option<PathBuf>,
    /// Print a digest of all weights at the end
    #[arg(long)]
    pub(crate) weights_digest: bool,
    /// Print JSON, one object per line
    #[arg(long)]
    pub(crate) json: bool,
    /// End when the process with this pid, which started this one, ends
    #[arg(long, value_name = "PID", hide = true, env = "TELLTALE_END_WITH_PARENT")]
    pub(crate) end_with_parent: Option<i32>,
    // The last one, since its heading is that of everything after it.
    #[command(flatten)]
    pub(crate) sizes: GptSizes,
}

/// The sizes of the model; those that are not given are its usual ones.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Sizes of the model")]
pub(crate) struct GptSizes {
    /// Layers [default: 2]
    #[arg(long, value_name = "N")]
    pub(crate) layers: Option<u32>,
    /// Attention heads of a layer [default: 4]
    #[arg(long, value_name = "N")]
    pub(crate) heads: Option<u32>,
    /// Width of the embedding [default: 128]
    #[arg(long, value_name = "N")]
    pub(crate) width: Option<u32>,
    /// Characters of context [default: 64]
    #[arg(long, value_name = "N")]
    pub(crate) context: Option<u32>,
    /// Pieces of text in a step [default: 8]
    #[arg(long, value_name = "N")]
    pub(crate) batch: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayArguments {
    /// A trace file, or `train` or `generate`
    #[arg(value_name = "TRACE")]
    pub(crate) trace: PathBuf,
    /// Index of the chip on the machine
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) device: usize,
    /// How fast: 1 as recorded, 10 ten times faster, max as fast as possible
    #[arg(long, value_name = "X|max", default_value = "1")]
    pub(crate) speed: Speed,
    /// Start again when the trace ends, until interrupted
    #[arg(long = "loop")]
    pub(crate) repeat: bool,
    /// Put allocations of up to BYTES into L1, larger ones into DRAM
    #[arg(long, value_name = "BYTES", default_value_t = 32 * 1024)]
    pub(crate) l1_up_to: u64,
    #[command(flatten)]
    pub(crate) place: LocationArguments,
    /// End when the process with this pid, which started this one, ends
    #[arg(long, value_name = "PID", hide = true, env = "TELLTALE_END_WITH_PARENT")]
    pub(crate) end_with_parent: Option<i32>,
}

#[derive(Debug, Args)]
pub(crate) struct EmulateArguments {
    /// The kind of machine
    #[arg(long, value_name = "KIND", value_parser = machine_kinds())]
    pub(crate) machine: MachineKind,
    /// The directory that becomes the machine's root
    #[arg(long, value_name = "DIR")]
    pub(crate) root: PathBuf,
    /// Break something at the start, or FROM seconds later, and mend it TO seconds after the start
    #[arg(long, value_name = "FAULT[@FROM[..TO]]")]
    pub(crate) fault: Vec<TimedFault>,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionArguments {
    /// The shell
    shell: clap_complete::Shell,
}

/// How fast a trace is replayed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Speed {
    /// So many times as fast as it was recorded.
    Times(f64),
    /// Without waiting.
    Max,
}

impl std::str::FromStr for Speed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "max" {
            return Ok(Self::Max);
        }
        match text.parse::<f64>() {
            Ok(times) if times.is_finite() && (1e-3..=1e6).contains(&times) => {
                Ok(Self::Times(times))
            }
            _ => Err(String::from("neither `max` nor a number from 0.001 to 1000000")),
        }
    }
}

/// Parses a kind of machine, and tells shells which there are.
fn machine_kinds() -> impl TypedValueParser<Value = MachineKind> {
    PossibleValuesParser::new(MachineKind::ALL.map(MachineKind::name))
        .try_map(|name| name.parse::<MachineKind>())
}

/// A query; what is wrong with one is shown under the place.
fn query(text: &str) -> Result<Query, String> {
    Query::parse(text).map_err(|error| format!("\n\n{}", error.pointed(text)))
}

/// Seconds, fractions allowed, from a tenth to a year.
fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(number) if (0.1..=31_536_000.0).contains(&number) => Ok(Duration::from_secs_f64(number)),
        _ => Err(String::from("not a number of seconds from 0.1 to 31536000")),
    }
}

/// Parses the command line, or says what is wrong and which status to exit with.
pub(crate) fn parse() -> Result<Command, ExitCode> {
    let parsed = variables::parse(std::env::args_os().collect::<Vec<_>>());
    let parsed = parsed.map(|line: CommandLine| line.command);
    parsed.map_err(|error| print_error(&tips::with_tip(error)))
}

/// Prints what clap says, help or an error; gives the status to exit with.
fn print_error(error: &clap::Error) -> ExitCode {
    let printed = error.print();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            exit::code(printed.map(|()| Status::Fine).map_err(Failure::from))
        }
        _ => ExitCode::from(exit::USAGE),
    }
}

/// The whole definition, from which manual pages are made.
pub(crate) fn definition() -> clap::Command {
    CommandLine::command()
}

/// Prints the completion script for a shell.
pub(crate) fn print_completions(arguments: &CompletionArguments) -> Result<Status, Failure> {
    let mut script = Vec::new();
    // What the program only starts by itself is not completed.
    let all = definition();
    let shown = all.get_subcommands().filter(|one| !one.is_hide_set()).cloned();
    let mut offered = clap::Command::new("telltale")
        .version(env!("CARGO_PKG_VERSION"))
        .args(all.get_arguments().cloned())
        .subcommands(shown);
    clap_complete::generate(arguments.shell, &mut offered, "telltale", &mut script);
    io::Write::write_all(&mut io::stdout(), &script)?;
    Ok(Status::Fine)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::{CommandLine, MAX_WIDTH, Speed, seconds};

    #[test]
    fn the_definition_is_consistent() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn no_line_of_help_is_broken_where_it_was_not_meant() {
        let mut commands = vec![CommandLine::command()];
        while let Some(command) = commands.pop() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for line in help.lines() {
                assert!(line.chars().count() <= MAX_WIDTH, "{}: {line}", command.get_name());
            }
            commands.extend(command.get_subcommands().cloned());
        }
    }

    #[test]
    fn numbers_that_make_no_sense_are_refused() {
        for bad in ["", "0", "-1", "nan", "inf", "1e9"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
        for bad in ["", "0", "-2", "nan", "inf", "fast"] {
            assert!(bad.parse::<Speed>().is_err(), "{bad}");
        }
        assert_eq!("max".parse(), Ok(Speed::Max));
        assert_eq!("2.5".parse(), Ok(Speed::Times(2.5)));
    }
}

#[cfg(test)]
mod documented;
