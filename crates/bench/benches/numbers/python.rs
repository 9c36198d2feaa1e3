//! The Python module: what a snapshot and an import take.

use std::error::Error;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use telltale_bench::machine::{BusyMachine, Size};
use telltale_bench::sample::{Effort, interleave};
use telltale_bench::sweep::WholeSnapshot;
use telltale_bench::table::{Row, Table, Target, Unit};
use telltale_harness::{ChildGuard, python, python_module};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/numbers/python.py");
const PROCESSES: u64 = 64;
const FEW_PROCESSES: u64 = 3;

/// A Python that takes snapshots.
struct Interpreter {
    _child: ChildGuard,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// A Galaxy's snapshot beside the collection of `telltale smi`, and the import beside Python's own start.
pub(crate) fn table(worker: &Path, effort: Effort) -> Result<Table, Box<dyn Error>> {
    let processes = if effort == Effort::Once { FEW_PROCESSES } else { PROCESSES };
    let busy = BusyMachine::start(worker, Size::Galaxy, processes)?;
    let module = python_module();
    let mut snapshots = Interpreter::start(&busy, processes, &module)?;
    let mut whole = WholeSnapshot::new(&busy, true)?;
    let (count, starts) = (effort.operations(200), effort.operations(20));
    let [taken, collected, imported, bare] = interleave(
        effort.repeats(),
        [
            Box::new(|| snapshots.time(count)),
            Box::new(|| whole.time(count)),
            Box::new(|| start("import telltale", &module, starts)),
            Box::new(|| start("pass", &module, starts)),
        ],
    );
    let row = |what: &str, ours, baseline, target| Row {
        what: what.to_owned(),
        unit: Unit::Time,
        ours: Some(ours),
        baseline: Some(baseline),
        target,
    };
    let at_most = bare.median() + 30e6;
    Ok(Table {
        heading: format!("Python on a Galaxy of 32 chips with {processes} processes"),
        rows: vec![
            row(
                "telltale.snapshot() and its devices; baseline: what smi collects",
                taken,
                collected,
                Target { times_baseline: Some(1.5), ..Target::default() },
            ),
            row(
                "python -c 'import telltale'; baseline: python -c pass",
                imported,
                bare,
                Target { at_most: Some(at_most), ..Target::default() },
            ),
        ],
        remarks: Vec::new(),
    })
}

impl Interpreter {
    fn start(busy: &BusyMachine, processes: u64, module: &Path) -> Result<Self, Box<dyn Error>> {
        let mut python = python();
        python.arg(SCRIPT).arg(busy.root()).arg(processes.to_string());
        python.env("PYTHONPATH", module).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = ChildGuard::spawn(&mut python);
        let orders = child.child().stdin.take().ok_or("no pipe")?;
        let answers = BufReader::new(child.child().stdout.take().ok_or("no pipe")?);
        Ok(Self { _child: child, orders, answers })
    }

    /// Nanoseconds of one of so many snapshots.
    fn time(&mut self, count: u64) -> f64 {
        let mut line = String::new();
        writeln!(self.orders, "{count}").expect("it reads");
        self.answers.read_line(&mut line).expect("it answers");
        line.trim().parse().expect("a number of nanoseconds")
    }
}

/// Nanoseconds of one of so many runs of a program.
fn start(program: &str, module: &Path, count: u64) -> f64 {
    let begun = Instant::now();
    for _ in 0..count {
        let mut python: Command = python();
        let status = python.args(["-c", program]).env("PYTHONPATH", module).status();
        assert!(status.expect("Python starts").success(), "{program}");
    }
    begun.elapsed().as_nanos() as f64 / count as f64
}
