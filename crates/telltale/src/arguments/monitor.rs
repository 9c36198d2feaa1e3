//! The arguments of `telltale smi dmon` and `telltale smi pmon`, with nvidia-smi's letters.

use std::time::Duration;

use clap::Args;
use telltale_query::{DeviceList, Query};
use telltale_smi::{MetricGroupsError, MomentColumns, Monitor, RowsOf};

use super::{HardwareArguments, LocationArguments, query, seconds};

/// What follows the options of `smi dmon`.
pub(super) const DMON_HELP: &str = "\
Groups of metrics for -s:
  p  power and temperature     m  memory, in MiB
  u  utilisation, in percent   e  memory errors, thermal trips, faults
  c  clocks, in MHz            t  PCIe received and sent, in MiB/s
`-`: no source reports this value. `smi --help-fields` explains the names.

Example:
  telltale smi dmon -i T1:N0 -s pum -d 5 -o DT";

/// What follows the options of `smi pmon`.
pub(super) const PMON_HELP: &str = "\
Groups of metrics for -s:
  u  utilisation of the device, if no other process holds it
  m  memory on the device, in MiB
`-`: no source reports this value. A device without a process has a line of them.

Example:
  telltale smi pmon -c 1 --filter 'user == root'";

#[derive(Debug, Args)]
pub(crate) struct DmonArguments {
    #[command(flatten)]
    pub(crate) usual: MonitorArguments,
    /// Groups of metrics, by their letters
    #[arg(short = 's', long = "select", value_name = "METRICS", default_value = "puc")]
    #[arg(value_parser = of_devices)]
    pub(crate) metrics: Monitor,
}

#[derive(Debug, Args)]
pub(crate) struct PmonArguments {
    #[command(flatten)]
    pub(crate) usual: MonitorArguments,
    /// Groups of metrics, by their letters
    #[arg(short = 's', long = "select", value_name = "METRICS", default_value = "um")]
    #[arg(value_parser = of_processes)]
    pub(crate) metrics: Monitor,
}

/// What both have.
#[derive(Debug, Args)]
pub(crate) struct MonitorArguments {
    #[command(flatten)]
    pub(crate) place: LocationArguments,
    #[command(flatten)]
    pub(crate) hardware: HardwareArguments,
    /// Time between samples, in seconds
    #[arg(short, long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    pub(crate) delay: Duration,
    /// Number of samples [default: until Ctrl-C]
    #[arg(short, long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
    /// Show these devices only, by index, id or PCI address: `0,T1:N0,0000:03:00.0`
    #[arg(short = 'i', long = "id", value_name = "DEVICES")]
    pub(crate) devices: Option<DeviceList>,
    /// Show matching rows only: `temperature > 80C` (fields: docs/query.md)
    #[arg(short, long, value_name = "QUERY", value_parser = query)]
    pub(crate) filter: Option<Query>,
    /// Begin lines with the date (D), the time (T) or both (DT), in UTC
    #[arg(short, long = "options", value_name = "DT", value_parser = moment_columns)]
    #[arg(default_value = "", hide_default_value = true)]
    pub(crate) options: MomentColumns,
    /// Print JSON, one object per line: numbers in base units, null if unknown
    #[arg(long)]
    pub(crate) json: bool,
}

fn of_devices(letters: &str) -> Result<Monitor, MetricGroupsError> {
    Monitor::parse(RowsOf::Devices, letters)
}

fn of_processes(letters: &str) -> Result<Monitor, MetricGroupsError> {
    Monitor::parse(RowsOf::Processes, letters)
}

/// Which parts of the moment are shown, in nvidia-smi's letters.
fn moment_columns(letters: &str) -> Result<MomentColumns, String> {
    let mut columns = MomentColumns::default();
    for letter in letters.chars() {
        match letter {
            'D' => columns.date = true,
            'T' => columns.time = true,
            _ => return Err(format!("`{letter}` is neither D (date) nor T (time)")),
        }
    }
    Ok(columns)
}
