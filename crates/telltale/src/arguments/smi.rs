//! The arguments of `telltale smi`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use telltale_query::Query;
use telltale_schema::moment::Moment;
use telltale_smi::{Columns, ColumnsError, RowsOf};

use super::{
    HardwareArguments, HistoryPlace, HostsArguments, LocationArguments, ScreenArguments, query,
    seconds,
};

/// What follows the options.
pub(super) const SMI_HELP: &str = "\
Exit status: 0 all was read, 1 some source failed (it is named below the tables) or --clean could
not remove something of ours, 2 nothing could be read, 64 wrong usage. That processes of other users
are closed to this one is no failure; a line below the tables says how many. With --hosts: 0 all
answered, 1 some did not or a source of theirs failed, 2 none answered.

Tables name a chip whose firmware has stopped where a service runs; without one, --details samples
heartbeats for up to 3 s.

Examples:
  telltale smi                 one table
  telltale smi -w 2            on a terminal the full-screen view, every two seconds
  telltale smi -d              per process and kind, with peaks and the reason for each n/a
  telltale smi --json | jq .   everything, numbers in base units
  telltale smi -w 60 --csv     a row a device and minute, one heading
  telltale smi --query-device=device,temperature,device.dram --format=csv,noheader,nounits
  telltale smi --at '3m ago'   the same tables of a moment that `telltale serve` recorded
  telltale smi --hosts a,b,ssh://c,@FILE   several machines in one table
  telltale smi --replay FILE   what `telltale record FILE` wrote; -w shows all of it
  telltale smi -c              remove what dead processes left behind";

#[derive(Debug, Args)]
pub(crate) struct SmiArguments {
    #[command(flatten)]
    pub(crate) place: LocationArguments,
    /// Repeat every SECONDS [default: 1] until Ctrl-C; on a terminal, tables become the full-screen
    /// view of `telltale top`
    #[arg(short, long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1")]
    #[arg(value_parser = seconds)]
    pub(crate) watch: Option<Duration>,
    /// With --watch on a terminal, repaint tables instead (so do --details, --with-host and
    /// --clean)
    #[arg(long)]
    pub(crate) plain: bool,
    /// Also show each process by kind with peaks, and why something is not available
    #[arg(short, long)]
    pub(crate) details: bool,
    /// Show the machine's own processors and memory as a device also where there are accelerators
    #[arg(long, conflicts_with_all = ["at", "replay", "items"])]
    pub(crate) with_host: bool,
    #[command(flatten)]
    pub(crate) hardware: HardwareArguments,
    /// Remove what dead processes left behind, and say what (with --json in `cleaned`, with --csv
    /// on standard error); with --watch, each time
    #[arg(short, long, conflicts_with = "items")]
    pub(crate) clean: bool,
    /// Show a past moment (`3m ago`, 2026-11-21T10:00:00Z), from what a service recorded
    #[arg(long, value_name = "MOMENT")]
    #[arg(conflicts_with_all = ["watch", "clean", "items", "no_nvml"])]
    pub(crate) at: Option<Moment>,
    /// Show what `telltale record` wrote to FILE: its last snapshot, that of a moment with --at, all
    /// with --watch (on a terminal full-screen)
    #[arg(long, value_name = "FILE")]
    #[arg(conflicts_with_all = ["clean", "items", "root", "runtime_dir", "no_nvml"])]
    pub(crate) replay: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) history: HistoryPlace,
    /// Show only what matches (`dram > 2GiB and user == root or name ~ /train/`; docs/query.md has
    /// the fields)
    #[arg(short, long, value_name = "QUERY", value_parser = query)]
    pub(crate) filter: Option<Query>,
    /// Print JSON, one object a snapshot
    #[arg(long, conflicts_with = "csv")]
    pub(crate) json: bool,
    /// Print these fields of each device as CSV (`--query-device device,temperature,device.dram`;
    /// docs/query.md has the fields, and `timestamp` is the snapshot's)
    #[arg(long, value_name = "FIELDS", value_parser = device_columns)]
    #[arg(conflicts_with_all = ["json", "csv", "details", "query_process"], group = "fields")]
    query_device: Option<Columns>,
    /// Print these fields of each process as CSV, a row for each of its devices where a field is
    /// of one (`--query-process pid,user,device,dram`)
    #[arg(long, value_name = "FIELDS", value_parser = process_columns)]
    #[arg(conflicts_with_all = ["json", "csv", "details"], group = "fields")]
    query_process: Option<Columns>,
    /// How chosen fields are written: csv, and after a comma noheader, nounits
    #[arg(long, value_name = "FORMAT", default_value = "csv", value_parser = columns_format)]
    #[arg(requires = "fields")]
    pub(crate) format: ColumnsFormat,
    /// Print CSV: a row a device, with --details a row a process, device and kind; names and units
    /// of the columns in one heading at the start
    #[arg(long)]
    pub(crate) csv: bool,
    #[command(flatten)]
    pub(crate) hosts: HostsArguments,
    #[command(flatten)]
    pub(crate) screen: ScreenArguments,
}

impl SmiArguments {
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
