//! The arguments of `telltale select`.

use clap::Args;
use telltale_query::Query;
use telltale_schema::quantity::parse_bytes;

use super::{HardwareArguments, LocationArguments, query};

/// What follows the options of `select`.
pub(super) const SELECT_HELP: &str = "\
Chooses devices of one vendor: those with the fewest processes, and of these with the most free
DRAM; none that has failed. Prints what TT_VISIBLE_DEVICES, CUDA_VISIBLE_DEVICES,
NEURON_RT_VISIBLE_CORES, HIP_VISIBLE_DEVICES or ZE_AFFINITY_MASK must be. Where such a variable or
ROCR_VISIBLE_DEVICES is set already, only the devices that it names are chosen. A device is not
reserved: two jobs that choose at the same time may get the same one.

Exit status: 0 chosen, 2 fewer devices fit than are wanted, 64 usage error.

Examples:
  TT_VISIBLE_DEVICES=$(telltale select) python3 infer.py      the freest device
  eval \"$(telltale select 2 --max-processes 0 --export)\"      two that are idle, as a variable
  telltale select --min-free 8GiB --filter 'temperature < 60C'";

#[derive(Debug, Args)]
pub(crate) struct SelectArguments {
    /// How many devices
    #[arg(value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) count: u16,
    /// Free DRAM that each has at least, such as 8GiB
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub(crate) min_free: Option<u64>,
    /// Processes that each has at most
    #[arg(long, value_name = "N")]
    pub(crate) max_processes: Option<u64>,
    /// Only devices for which QUERY holds (docs/query.md)
    #[arg(long, value_name = "QUERY", value_parser = query)]
    pub(crate) filter: Option<Query>,
    /// Print the command of a shell that sets the variable
    #[arg(long, conflicts_with = "json")]
    pub(crate) export: bool,
    /// Print JSON, one object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) hardware: HardwareArguments,
    #[command(flatten)]
    pub(crate) place: LocationArguments,
}
