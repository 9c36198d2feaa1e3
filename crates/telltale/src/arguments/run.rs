//! The arguments of `telltale run`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

pub(super) const RUN_HELP: &str = "\
COMMAND becomes this process: its exit status, its signals and its output are its own. It and all
programs that it starts record large blocks of the host's memory (malloc and what is like it), and
all that they have of a CUDA driver, into ledgers that `telltale smi` shows as long as they run.
Nothing else about them is changed. What cannot be recorded: programs that are linked statically or
against musl, programs with more rights than their user (setuid), and blocks that come from mmap
directly.

The library is libtelltale_preload.so: beside this program or in ../lib/telltale or ../lib from it,
unless --library names it. If the runtime directory cannot be used, one line says so and COMMAND
runs unrecorded.

Exit status: COMMAND's own; 127 there is no such command, 126 it cannot be executed, 2 the library
was not found, 64 wrong usage.

Examples:
  telltale run -- python3 train.py
  telltale run --threshold 64KiB -- ./simulation
  telltale smi                               in another terminal";

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// Record blocks of the host's memory from this size on: bytes, or with KiB, MiB or GiB
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = size)]
    pub(crate) threshold: u64,
    /// Where ledgers go [default: $TT_METRICS_SOCKET_DIR, /run/tt, $XDG_RUNTIME_DIR/telltale,
    /// /tmp/telltale-UID; the first that will do]
    #[arg(long, value_name = "DIR")]
    pub(crate) runtime_dir: Option<PathBuf>,
    /// The library that records [default: where it was installed or built]
    #[arg(long, value_name = "FILE")]
    pub(crate) library: Option<PathBuf>,
    /// Say nothing where nothing can be recorded
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// The command and its arguments
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// A number of bytes, at least one.
fn size(text: &str) -> Result<u64, String> {
    let units = [("KiB", 10), ("MiB", 20), ("GiB", 30), ("B", 0), ("", 0)];
    let (number, shift) = units
        .iter()
        .find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, *shift)))
        .expect("every text ends with nothing");
    let number = number.trim_end().parse::<u64>().ok().filter(|number| *number > 0);
    number
        .and_then(|number| number.checked_mul(1 << shift))
        .ok_or_else(|| String::from("not a size such as 4096, 64KiB or 1MiB"))
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_are_bytes_or_have_a_unit() {
        let cases = [("1", 1), ("4096", 4096), ("64KiB", 65_536), ("1 MiB", 1 << 20), ("7B", 7)];
        for (text, bytes) in cases {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for bad in ["", "0", "-1", "1.5MiB", "1MB", "KiB", "99999999999GiB"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }
}
