//! The arguments of `telltale run`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use telltale_schema::quantity::parse_bytes;

pub(super) const RUN_HELP: &str = "\
COMMAND replaces this process: exit status, signals and output are its own. It and its children
record large blocks of host memory (malloc and similar) and CUDA allocations into ledgers that
`telltale smi` shows. Not recorded: static and musl programs, setuid programs, and direct mmap.

The library libtelltale_preload.so is searched beside this program, in ../lib/telltale and ../lib.
If the runtime directory cannot be used, one line says so and COMMAND runs unrecorded.

Exit status: COMMAND's own; 127 command not found, 126 not executable, 2 library not found, 64 usage
error.

Examples:
  telltale run -- python3 train.py
  telltale run --threshold 64KiB -- ./simulation
  telltale smi                               in another terminal";

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// Smallest recorded block of host memory: bytes, KiB, MiB or GiB
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = parse_bytes)]
    pub(crate) threshold: u64,
    /// Directory of ledgers [default: the first usable of $TT_METRICS_SOCKET_DIR, /run/tt,
    /// $XDG_RUNTIME_DIR/telltale, /tmp/telltale-UID]
    #[arg(long, value_name = "DIR", env = "TELLTALE_RUNTIME_DIR")]
    pub(crate) runtime_dir: Option<PathBuf>,
    /// Library that records [default: where it was installed or built]
    #[arg(long, value_name = "FILE")]
    pub(crate) library: Option<PathBuf>,
    /// Print nothing if nothing can be recorded
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Command and arguments
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}
