//! The arguments of `telltale smi`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use telltale_query::{DeviceList, Query, Sort};
use telltale_schema::moment::Moment;
use telltale_smi::{Columns, ColumnsError, RowsOf};

use super::monitor::{DMON_HELP, PMON_HELP};
use super::{
    DmonArguments, HardwareArguments, HistoryPlace, HostsArguments, LocationArguments,
    PmonArguments, ScreenArguments, query, seconds,
};

/// What follows the options.
pub(super) const SMI_HELP: &str = "\
Exit status: 0 complete, 1 partial (a source failed, or --clean could not remove something), 2 no
data, 64 usage error. With --hosts: 0 all answered, 1 some did not, 2 none answered. Unreadable
processes of other users are counted below the tables and are no failure.

Stopped firmware is shown if a service runs; without one, --details samples heartbeats for up to 3
s.

Examples:
  telltale smi                 one table
  telltale smi -w 2            full-screen on a terminal, every two seconds
  telltale smi -l 5            tables, every five seconds
  telltale smi -L              devices, one a line
  telltale smi -i 0,T1:N0      two devices and who holds them
  telltale smi --sort dram:desc   the processes with most DRAM on a device first
  telltale smi -d              per process and kind, with peaks and the reason for each n/a
  telltale smi --json | jq .   everything, numbers in base units
  telltale smi -w 60 --csv     a row per device and minute
  telltale smi --query-device=device,temperature,device.dram --format=csv,noheader,nounits
  telltale smi --at '3m ago'   a past moment, from the history
  telltale smi --hosts a,b,ssh://c,@FILE   several machines in one table
  telltale smi --replay FILE   a recording; -w plays all of it
  telltale smi -c              remove files of dead processes
  telltale smi topo            how devices are connected
  telltale smi dmon            a line per device and second; pmon: per process and device";

/// What follows the options of `smi topo`.
const TOPO_HELP: &str = "\
The entries are those of `nvidia-smi topo -m`; the legend below the matrix has them. From nine
devices on, those that are connected alike share a row.

Example:
  telltale smi topo --json | jq .connections";

/// A view of its own.
#[derive(Debug, Subcommand)]
pub(crate) enum SmiCommand {
    /// Show how devices are connected, and the processors and NUMA node near each
    #[command(after_help = TOPO_HELP)]
    Topo(TopoArguments),
    /// Print a line per device every second, as `nvidia-smi dmon` does
    #[command(after_help = DMON_HELP)]
    Dmon(DmonArguments),
    /// Print a line per process and device every second, as `nvidia-smi pmon` does
    #[command(after_help = PMON_HELP)]
    Pmon(PmonArguments),
}

#[derive(Debug, Args)]
pub(crate) struct TopoArguments {
    #[command(flatten)]
    pub(crate) place: LocationArguments,
    #[command(flatten)]
    pub(crate) hardware: HardwareArguments,
    /// Print JSON: devices with their bridges, and the matrix
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct SmiArguments {
    #[command(subcommand)]
    pub(crate) command: Option<SmiCommand>,
    #[command(flatten)]
    pub(crate) place: LocationArguments,
    /// Repeat every SECONDS [default: 1] until Ctrl-C; full-screen on a terminal
    #[arg(short, long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1")]
    #[arg(value_parser = seconds)]
    pub(crate) watch: Option<Duration>,
    /// Repeat the tables every SECONDS [default: 1] until Ctrl-C
    #[arg(short = 'l', long = "loop", value_name = "SECONDS", num_args = 0..=1)]
    #[arg(default_missing_value = "1", value_parser = seconds, conflicts_with = "watch")]
    repeat: Option<Duration>,
    /// With --watch, repaint tables instead of the full-screen view
    #[arg(long)]
    pub(crate) plain: bool,
    /// Show memory kinds and peaks of each process, and the reason for each n/a
    #[arg(short, long)]
    pub(crate) details: bool,
    /// Show the host's processors and memory as a device, also beside accelerators
    #[arg(long, conflicts_with_all = ["at", "replay", "items"])]
    pub(crate) with_host: bool,
    #[command(flatten)]
    pub(crate) hardware: HardwareArguments,
    /// Remove files of dead processes and list them (--json: `cleaned`; --csv: stderr)
    #[arg(short, long, conflicts_with = "items")]
    pub(crate) clean: bool,
    /// Show a past moment from the history (`3m ago`, 2026-11-21T10:00:00Z)
    #[arg(long, value_name = "MOMENT")]
    #[arg(conflicts_with_all = ["watch", "repeat", "clean", "items", "no_nvml"])]
    pub(crate) at: Option<Moment>,
    /// Show a recording: its last snapshot, a moment with --at, all with --watch
    #[arg(long, value_name = "FILE")]
    #[arg(conflicts_with_all = ["clean", "items", "root", "runtime_dir", "no_nvml"])]
    pub(crate) replay: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) history: HistoryPlace,
    /// Show matching rows only: `dram > 2GiB and user == root` (fields: --help-fields)
    #[arg(short, long, value_name = "QUERY", value_parser = query)]
    pub(crate) filter: Option<Query>,
    /// List devices, one a line: index, id, type, PCI address
    #[arg(short = 'L', long)]
    #[arg(conflicts_with_all = ["details", "json", "csv", "watch", "repeat", "clean", "fields"])]
    #[arg(conflicts_with_all = ["devices", "filter", "sort"])]
    pub(crate) list: bool,
    /// Show these devices only, by index, id or PCI address: `0,T1:N0,0000:03:00.0`
    #[arg(short = 'i', long = "id", value_name = "DEVICES")]
    pub(crate) devices: Option<DeviceList>,
    /// Sort rows by a field, processes by their largest device: `dram:desc`, `user` [default: by pid]
    #[arg(long, value_name = "FIELD[:desc]", value_parser = Sort::parse)]
    pub(crate) sort: Option<Sort>,
    /// Print JSON, one object per snapshot
    #[arg(long, conflicts_with = "csv")]
    pub(crate) json: bool,
    /// Print these fields of each device as CSV: `device,temperature,device.dram` (fields:
    /// --help-fields, and `timestamp`)
    #[arg(long, value_name = "FIELDS", value_parser = device_columns)]
    #[arg(conflicts_with_all = ["json", "csv", "details", "query_process"], group = "fields")]
    query_device: Option<Columns>,
    /// Print these fields of each process as CSV: `pid,user,device,dram`
    #[arg(long, value_name = "FIELDS", value_parser = process_columns)]
    #[arg(conflicts_with_all = ["json", "csv", "details"], group = "fields")]
    query_process: Option<Columns>,
    /// Format of chosen fields: csv, csv,noheader or csv,noheader,nounits
    #[arg(long, value_name = "FORMAT", default_value = "csv", value_parser = columns_format)]
    #[arg(requires = "fields")]
    pub(crate) format: ColumnsFormat,
    /// Print the names of all fields, their units and meaning
    #[arg(long)]
    pub(crate) help_fields: bool,
    /// Print CSV, a row per device; with --details per process, device and kind
    #[arg(long)]
    pub(crate) csv: bool,
    #[command(flatten)]
    pub(crate) hosts: HostsArguments,
    #[command(flatten)]
    pub(crate) screen: ScreenArguments,
}

impl SmiArguments {
    /// The time from one snapshot to the next, where there is more than one.
    pub(crate) fn period(&self) -> Option<Duration> {
        self.watch.or(self.repeat)
    }

    /// The fields that were chosen, if any were.
    pub(crate) fn columns(&self) -> Option<&Columns> {
        self.query_device.as_ref().or(self.query_process.as_ref())
    }
}

fn device_columns(list: &str) -> Result<Columns, ColumnsError> {
    Columns::parse(RowsOf::Devices, list)
}

fn process_columns(list: &str) -> Result<Columns, ColumnsError> {
    Columns::parse(RowsOf::Processes, list)
}

/// How chosen fields are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ColumnsFormat {
    /// Whether there is a heading.
    pub(crate) heading: bool,
    /// Whether the heading has units.
    pub(crate) units: bool,
}

impl Default for ColumnsFormat {
    fn default() -> Self {
        Self { heading: true, units: true }
    }
}

/// The format of chosen fields, in nvidia-smi's words.
fn columns_format(text: &str) -> Result<ColumnsFormat, String> {
    let mut format = ColumnsFormat::default();
    for word in text.split(',') {
        match word.trim() {
            "csv" => {}
            "noheader" => format.heading = false,
            "nounits" => format.units = false,
            _ => return Err(format!("`{word}` is none of csv, noheader, nounits")),
        }
    }
    Ok(format)
}
