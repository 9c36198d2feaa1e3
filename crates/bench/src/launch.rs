//! A command from start to exit: time and peak memory.
//!
//! The kernel charges a starting program with what its parent holds resident, so programs are started
//! from the small worker process and never from the benchmark itself.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use rustix::fs::{MemfdFlags, memfd_create};

use crate::machine::{BusyMachine, Size};
use crate::sample::{Contender, Effort, Measurements, interleave};
use crate::seed::wait_with_peak;
use crate::table::{Row, Table, Target, Unit};

/// The worker's first argument for running a program once.
pub const LAUNCH: &str = "launch";
/// The worker's only argument for doing nothing.
pub const NOTHING: &str = "nothing";
/// Workloads in a full or quick run.
const WORKLOADS: u64 = 64;
/// Workloads when only the working is shown.
const FEW_WORKLOADS: u64 = 3;
/// The rival, measured where it is installed.
const RIVAL: &str = "all-smi";

/// What one run of a program took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launched {
    /// From before its start to after its end.
    pub elapsed_ns: u64,
    /// Its peak resident memory.
    pub peak_bytes: u64,
    /// Its exit code; none when a signal ended it.
    pub exit_code: Option<i32>,
}

// === impl Launched ===

impl fmt::Display for Launched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.elapsed_ns, self.peak_bytes)?;
        self.exit_code.map_or(Ok(()), |code| write!(f, " {code}"))
    }
}

impl Launched {
    /// Reads what [`fmt::Display`] wrote.
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        Some(Self {
            elapsed_ns: words.next()?.parse().ok()?,
            peak_bytes: words.next()?.parse().ok()?,
            exit_code: words.next().map(str::parse).transpose().ok()?,
        })
    }
}

/// Runs a program once from this process, its output going to a file in memory. For the worker.
///
/// # Errors
/// When it cannot be started or waited for.
pub fn here(program: &Path, arguments: &[String]) -> io::Result<Launched> {
    let mut command = Command::new(program);
    let output = memfd_create("output", MemfdFlags::CLOEXEC)?;
    command.args(arguments).stdin(Stdio::null()).stdout(output).stderr(Stdio::null());
    let started = Instant::now();
    let (status, peak_bytes) = wait_with_peak(command.spawn()?)?;
    let elapsed_ns = u64::try_from(started.elapsed().as_nanos()).map_err(io::Error::other)?;
    Ok(Launched { elapsed_ns, peak_bytes, exit_code: status.code() })
}

/// Runs a program once from a worker.
///
/// # Errors
/// When the worker or the program cannot be started.
pub fn by_worker(worker: &Path, program: &Path, arguments: &[String]) -> io::Result<Launched> {
    let output = Command::new(worker)
        .arg(LAUNCH)
        .arg(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()?;
    Launched::parse(&String::from_utf8_lossy(&output.stdout))
        .ok_or_else(|| io::Error::other(format!("cannot run {}", program.display())))
}

/// Where a program of this name is installed.
pub(crate) fn on_the_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file())
}

/// What the runs of one program gave, filled as its repeats run.
#[derive(Debug, Default)]
struct Runs {
    peaks: Vec<f64>,
    /// Runs that did not end with exit code 0.
    failed: u64,
}

impl Runs {
    fn contender<'a>(
        &'a mut self,
        worker: &'a Path,
        program: &'a Path,
        arguments: &'a [String],
    ) -> Contender<'a> {
        Box::new(move || {
            let launched =
                by_worker(worker, program, arguments).expect("a program that ran once runs again");
            self.peaks.push(launched.peak_bytes as f64);
            self.failed += u64::from(launched.exit_code != Some(0));
            launched.elapsed_ns as f64
        })
    }
}

/// One snapshot of a busy machine in each form, from start to exit, beside the rival where it is
/// installed. `telltale` is the command.
///
/// # Errors
/// When the machine or a program cannot be started, or does not see the other.
pub fn table(worker: &Path, telltale: &Path, effort: Effort) -> io::Result<Table> {
    let workloads = if effort == Effort::Once { FEW_WORKLOADS } else { WORKLOADS };
    let busy = BusyMachine::start(worker, Size::Galaxy, workloads)?;
    let rival = on_the_path(RIVAL);
    let (snapshot, nothing) = (["snapshot".to_owned()], [NOTHING.to_owned()]);
    // Without the rival, a second empty program takes its turns, so that the order stays the same.
    let (program, arguments) =
        rival.as_deref().map_or((worker, &nothing), |rival| (rival, &snapshot));
    by_worker(worker, program, arguments)?;
    let root = busy.root().to_string_lossy();
    let smi = |form: Option<&str>| -> Vec<String> {
        ["smi", "--root", &*root].into_iter().chain(form).map(str::to_owned).collect()
    };
    let forms = [None, Some("--details"), Some("--json")].map(smi);
    let [mut plain, mut details, mut json, mut floor, mut other] =
        std::array::from_fn(|_| Runs::default());
    let [plain_time, details_time, json_time, floor_time, other_time] = interleave(
        2 * effort.repeats() + 1,
        [
            plain.contender(worker, telltale, &forms[0]),
            details.contender(worker, telltale, &forms[1]),
            json.contender(worker, telltale, &forms[2]),
            floor.contender(worker, worker, &nothing),
            other.contender(worker, program, arguments),
        ],
    );
    let failed = plain.failed + details.failed + json.failed;
    let rival = rival.map(|_| [other_time, Measurements::new(other.peaks)]);
    let (time_goal, peak_goal) = (Some(20e6), Some(10.0 * 1024.0 * 1024.0));
    let rows = [
        rows(
            "telltale smi",
            [plain_time, Measurements::new(plain.peaks)],
            rival,
            [time_goal, peak_goal],
        ),
        rows(
            "telltale smi --details",
            [details_time, Measurements::new(details.peaks)],
            None,
            [None; 2],
        ),
        rows("telltale smi --json", [json_time, Measurements::new(json.peaks)], None, [None; 2]),
        rows(
            "for scale, a program that does nothing",
            [floor_time, Measurements::new(floor.peaks)],
            None,
            [None; 2],
        ),
    ];
    Ok(Table {
        heading: format!(
            "A command from start to exit, on {} chips x {} processes; baseline: {RIVAL} where \
             it is installed",
            busy.size().chips(),
            busy.workloads()
        ),
        rows: rows.into_iter().flatten().collect(),
        remarks: vec![format!("runs of ours that ended with another status than 0: {failed}")],
    })
}

/// The time and the peak of one command.
fn rows(
    what: &str,
    [time, peak]: [Measurements; 2],
    baseline: Option<[Measurements; 2]>,
    [most_ns, most_bytes]: [Option<f64>; 2],
) -> [Row; 2] {
    let row = |part: &str, unit, ours, baseline, at_most| Row {
        what: format!("{what}: {part}"),
        unit,
        ours: Some(ours),
        baseline,
        target: Target { at_most, ..Target::default() },
    };
    let (other_time, other_peak) = baseline.map(|[time, peak]| (time, peak)).unzip();
    [
        row("time", Unit::Time, time, other_time, most_ns),
        row("peak memory", Unit::Bytes, peak, other_peak, most_bytes),
    ]
}

#[cfg(test)]
mod tests {
    use super::Launched;

    #[test]
    fn a_launch_survives_its_text_form() {
        for exit_code in [None, Some(0), Some(64)] {
            let launched = Launched { elapsed_ns: 1_234, peak_bytes: 5_678, exit_code };
            assert_eq!(Launched::parse(&launched.to_string()), Some(launched));
        }
        for text in ["", "12", "a b", "1 2 x"] {
            assert_eq!(Launched::parse(text), None, "{text:?}");
        }
    }
}
