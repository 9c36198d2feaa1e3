//! What the library of `telltale run` adds to a program's `malloc` and `free`, in processes of their
//! own.
//!
//! A value is the difference of two processes that follow one another, one with a preloaded library
//! and one without.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use telltale_ledger::LedgerReader;
use telltale_ledger::directory::{Purpose, RuntimeDirectory};

use crate::launch::on_the_path;
use crate::pinning::Pinned;
use crate::sample::{Contender, Effort, Measurements, interleave};
use crate::table::{Row, Table, Target, Unit};

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/preload");
/// A rival, measured where it is installed, and where its library then is.
const RIVAL: &str = "heaptrack";
const RIVALS_LIBRARY: &str = "../lib/heaptrack/libheaptrack_preload.so";
/// Blocks that are counted to see that recording works.
const COUNTED: u64 = 1_000;
const SMALL_BYTES: u64 = 100;
const PAGE_BYTES: u64 = 4_096;
/// Below what threads' own heaps give back to the kernel at once.
const MIDDLE_BYTES: u64 = 65_536;
const LARGE_BYTES: u64 = 1 << 20;

/// The programs, compiled, and the libraries that are compared.
#[derive(Debug)]
pub struct Libraries {
    directory: PathBuf,
    ours: PathBuf,
    rival: Option<PathBuf>,
}

/// What is preloaded.
#[derive(Debug, Clone, Copy)]
enum Preloaded {
    Nothing,
    Ours,
    Naive,
    Rival,
}

/// What is timed: what the program does, blocks of how many bytes, from which size on they are
/// recorded, and how often a full run does it.
#[derive(Debug, Clone, Copy)]
struct TimedTask {
    what: &'static str,
    bytes: u64,
    threshold_bytes: u64,
    count: u64,
}

// === impl Libraries ===

impl Libraries {
    /// Compiles what is needed in `directory`; ours was built in `built`.
    ///
    /// # Errors
    /// When there is no compiler, or it refuses.
    pub fn compile(built: &Path, directory: &Path) -> io::Result<Self> {
        let rival = on_the_path(RIVAL)
            .and_then(|program| Some(program.parent()?.join(RIVALS_LIBRARY)))
            .filter(|library| library.is_file());
        let ours = built.join("libtelltale_preload.so");
        let this = Self { directory: directory.to_owned(), ours, rival };
        compile(&["-fno-builtin", "-pthread"], "pairs.c", &this.program())?;
        compile(&["-shared", "-fPIC", "-pthread"], "naive.c", &this.naive())?;
        Ok(this)
    }

    fn program(&self) -> PathBuf {
        self.directory.join("pairs")
    }

    fn naive(&self) -> PathBuf {
        self.directory.join("naive.so")
    }

    /// Runs the program once.
    fn run(&self, preloaded: Preloaded, task: TimedTask, count: u64) -> io::Result<Output> {
        let mut command = Command::new(self.program());
        command.args([task.what, &task.bytes.to_string(), &count.to_string()]);
        command.env_remove("LD_PRELOAD").env_remove("TELLTALE_DISABLED");
        let threshold = task.threshold_bytes.to_string();
        match preloaded {
            Preloaded::Nothing => &mut command,
            Preloaded::Ours => command
                .env("LD_PRELOAD", &self.ours)
                .env("TELLTALE_RUN_THRESHOLD", threshold)
                .env("TT_METRICS_SOCKET_DIR", &self.directory),
            Preloaded::Naive => command
                .env("LD_PRELOAD", self.naive())
                .env("NAIVE_THRESHOLD", threshold)
                .env("NAIVE_FILE", self.directory.join("naive.records")),
            Preloaded::Rival => command
                .env("LD_PRELOAD", self.rival.as_deref().unwrap_or(Path::new("")))
                .env("DUMP_HEAPTRACK_OUTPUT", "/dev/null"),
        };
        command.output()
    }

    fn time_ns(&self, preloaded: Preloaded, task: TimedTask, count: u64) -> f64 {
        let output = self.run(preloaded, task, count).expect("what was just compiled can start");
        let reported = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{task:?} with {preloaded:?}: {reported}");
        let written = String::from_utf8_lossy(&output.stdout);
        written.lines().last().and_then(|line| line.parse().ok()).expect("it writes a number")
    }

    /// What a library adds, in nanoseconds.
    fn added_ns(&self, preloaded: Preloaded, task: TimedTask, count: u64) -> f64 {
        let plain = self.time_ns(Preloaded::Nothing, task, count);
        self.time_ns(preloaded, task, count) - plain
    }

    /// Whether ours records what the program does.
    fn check(&self) -> io::Result<()> {
        let large =
            TimedTask { what: "leave", bytes: LARGE_BYTES, threshold_bytes: LARGE_BYTES, count: 0 };
        self.run(Preloaded::Ours, large, COUNTED)?;
        let directory =
            RuntimeDirectory::open(&self.directory, Purpose::Reading).map_err(io::Error::other)?;
        let mut recorded = 0;
        for entry in directory.list()?.ledgers {
            let mut reader =
                LedgerReader::open_at(&directory, &entry.name).map_err(io::Error::other)?;
            let reading = reader.read().map_err(io::Error::other)?;
            recorded += reading.usage.iter().map(|(.., usage)| usage.allocations).sum::<u64>();
            std::fs::remove_file(self.directory.join(&entry.name))?;
        }
        if recorded == COUNTED {
            return Ok(());
        }
        Err(io::Error::other(format!("{recorded} of {COUNTED} allocations are recorded")))
    }

    fn row(&self, what: &str, task: TimedTask, effort: Effort, at_most: Option<f64>) -> Row {
        let count = effort.operations(task.count);
        let contenders: [Contender<'_>; 2] = [
            Box::new(|| self.added_ns(Preloaded::Ours, task, count)),
            Box::new(|| self.added_ns(Preloaded::Naive, task, count)),
        ];
        let [ours, naive] = interleave(effort.repeats(), contenders);
        row(what, ours, Some(naive), at_most)
    }

    /// Ours beside the rival's, which records every block, whatever its size.
    fn rivals_row(&self, what: &str, task: TimedTask, effort: Effort) -> Row {
        let count = effort.operations(task.count / 10);
        let contenders: [Contender<'_>; 2] = [
            Box::new(|| self.added_ns(Preloaded::Ours, task, count)),
            Box::new(|| self.added_ns(Preloaded::Rival, task, count)),
        ];
        let [ours, rival] = interleave(effort.repeats(), contenders);
        row(&format!("{what}; baseline {RIVAL}"), ours, Some(rival), None)
    }

    fn plain_row(&self, what: &str, task: TimedTask, effort: Effort) -> Row {
        let count = effort.operations(task.count);
        let contender: Contender<'_> = Box::new(|| self.time_ns(Preloaded::Nothing, task, count));
        let [plain] = interleave(effort.repeats(), [contender]);
        row(&format!("for scale, without any library: {what}"), plain, None, None)
    }
}

/// What the library adds to pairs below and at the threshold, to each of their calls, and to two
/// threads at once.
///
/// # Errors
/// When a process cannot be pinned, or ours records something else than what was done.
pub fn table(libraries: &Libraries, effort: Effort) -> io::Result<Table> {
    libraries.check()?;
    let task =
        |what, bytes, threshold_bytes, count| TimedTask { what, bytes, threshold_bytes, count };
    let below = task("pair", SMALL_BYTES, LARGE_BYTES, 5_000_000);
    let at = task("pair", LARGE_BYTES, LARGE_BYTES, 1_000_000);
    let (small, large) = ("malloc and free of 100 B", "malloc and free of 1 MiB");
    let mut rows = Vec::new();
    {
        // Processes that are started inherit it.
        let _pinned = Pinned::to(0)?;
        rows.push(libraries.row(
            &format!("{small}, below the threshold"),
            below,
            effort,
            Some(3.0),
        ));
        rows.push(libraries.row(&format!("{large}, at the threshold"), at, effort, Some(30.0)));
        for (what, name) in [("allocate", "malloc alone"), ("free", "free alone")] {
            let one = task(what, PAGE_BYTES, PAGE_BYTES, 1_000_000);
            let name = format!("{name}, 4 KiB at a threshold of as much, 16 live");
            rows.push(libraries.row(&name, one, effort, None));
        }
        if libraries.rival.is_some() {
            rows.push(libraries.rivals_row(small, below, effort));
            rows.push(libraries.rivals_row(large, at, effort));
        }
        rows.push(libraries.plain_row(small, below, effort));
        rows.push(libraries.plain_row(large, at, effort));
    }
    let two = task("together", MIDDLE_BYTES, MIDDLE_BYTES, 1_000_000);
    let name = "two threads at once, 64 KiB at a threshold of as much";
    rows.push(libraries.row(name, two, effort, None));
    rows.push(libraries.plain_row(name, two, effort));
    Ok(Table {
        heading:
            "What preloading adds to a program's calls; baseline: a naive library with a mutex, \
                  a table and a write for each block"
                .to_owned(),
        rows,
        remarks: vec![format!("of {COUNTED} pairs at the threshold, {COUNTED} were in the ledger")],
    })
}

fn row(
    what: &str,
    ours: Measurements,
    baseline: Option<Measurements>,
    at_most: Option<f64>,
) -> Row {
    let target = Target { at_most, ..Target::default() };
    Row { what: what.to_owned(), unit: Unit::Time, ours: Some(ours), baseline, target }
}

fn compile(flags: &[&str], source: &str, out: &Path) -> io::Result<()> {
    let mut command = Command::new("cc");
    command.arg("-O2").args(flags).arg(Path::new(SOURCES).join(source)).arg("-o").arg(out);
    let status = command.status()?;
    if status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("{command:?} failed ({status})")))
}
