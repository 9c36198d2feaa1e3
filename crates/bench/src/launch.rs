//! A command from start to exit: time and peak memory.
//!
//! The kernel charges a starting program with what its parent holds resident, so programs are started
//! from the small worker process and never from the benchmark itself.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::sample::{Contender, Effort, Figures, interleave};
use crate::seed::wait_with_peak;
use crate::table::{Row, Table, Target, Unit};

/// The worker's first argument for running a program once.
pub const LAUNCH: &str = "launch";
/// The worker's only argument for doing nothing.
pub const NOTHING: &str = "nothing";
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

/// Runs a program once from this process, its output thrown away. For the worker.
///
/// # Errors
/// When it cannot be started or waited for.
pub fn here(program: &Path, arguments: &[String]) -> io::Result<Launched> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
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

fn on_the_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file())
}

/// Times and peaks of one program, filled as its repeats run.
fn contender<'a>(
    worker: &'a Path,
    program: PathBuf,
    arguments: &'a [String],
    peaks: &'a mut Vec<f64>,
) -> Contender<'a> {
    Box::new(move || {
        let launched =
            by_worker(worker, &program, arguments).expect("a program that ran once runs again");
        peaks.push(launched.peak_bytes as f64);
        launched.elapsed_ns as f64
    })
}

/// One plain snapshot, from start to exit, beside the rival where it is installed.
///
/// # Errors
/// When the worker cannot be started.
pub fn table(worker: &Path, effort: Effort) -> io::Result<Table> {
    let rival = on_the_path(RIVAL);
    let (snapshot, nothing) = (["snapshot".to_owned()], [NOTHING.to_owned()]);
    // Without the rival, a second empty program takes its turns, so that the order stays the same.
    let (program, arguments) =
        rival.clone().map_or((worker.to_owned(), &nothing), |rival| (rival, &snapshot));
    by_worker(worker, &program, arguments)?;
    let (mut floor_peaks, mut rival_peaks) = (Vec::new(), Vec::new());
    let [floor, rival_time] = interleave(
        2 * effort.repeats(),
        [
            contender(worker, worker.to_owned(), &nothing, &mut floor_peaks),
            contender(worker, program, arguments, &mut rival_peaks),
        ],
    );
    let row = |what: &str, unit, baseline, limit| Row {
        what: what.to_owned(),
        unit,
        ours: None,
        baseline,
        target: Target { at_most: limit, ..Target::default() },
    };
    let (rival_time, rival_peak) = rival.map(|_| (rival_time, Figures::new(rival_peaks))).unzip();
    let floor_peak = Figures::new(floor_peaks);
    Ok(Table {
        heading: format!("A command from start to exit; baseline: {RIVAL} where it is installed"),
        rows: vec![
            row("telltale smi, time", Unit::Time, rival_time, Some(20e6)),
            row("telltale smi, peak memory", Unit::Bytes, rival_peak, Some(10.0 * 1024.0 * 1024.0)),
            row("for scale, a program that does nothing: time", Unit::Time, Some(floor), None),
            row(
                "for scale, a program that does nothing: peak",
                Unit::Bytes,
                Some(floor_peak),
                None,
            ),
        ],
        remarks: Vec::new(),
    })
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
