//! What a job's hang costs the coordinator: equal stacks of all ranks folded and explained, and the dump of
//! a Flight Recorder read.
//!
//! The stacks are those of PyTorch 1.13 on Debian 12: ranks in an all-reduce below a Transformer's forward
//! pass, and one that loads data (`hangs/*.txt`).

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use telltale_autopsy::activity::Activity;
use telltale_autopsy::explanation::{Awaited, explain};
use telltale_autopsy::standing::{CodePlace, ProcessStanding};
use telltale_cluster::intake::formats::Format;
use telltale_control_plane::intake::Intake;
use telltale_control_plane::readers::FileReader;

use crate::rundir::RunDirectory;
use crate::sample::{Effort, Measurements, interleave, time_ns};
use crate::table::{Row, Table, Target, Unit};

const WAITS: &str = include_str!("hangs/waits.txt");
const LOADS: &str = include_str!("hangs/loads.txt");
/// The rank that is missing.
const MISSING: u32 = 37;
/// Operations of the dump, of 60 frames each: 100 MiB. PyTorch keeps 2,000 by default.
const OPERATIONS: u64 = 20_000;
const FEW_OPERATIONS: u64 = 20;
/// What each is held to, in nanoseconds.
const FOLDED_NS: f64 = 1e9;
const READ_NS: f64 = 2e9;

/// Writes a dump as PyTorch's has it, with so many operations, and prints how long its own reader takes.
const PYTHON: &str = "
import pickle, sys, time
path, operations = sys.argv[1], int(sys.argv[2])
def frame(number):
    return {'name': 'forward', 'filename': '/usr/lib/python3/dist-packages/torch/nn/modules/module.py', 'line': number}
entry = lambda number: {
    'frames': [frame(number + place) for place in range(60)], 'record_id': number, 'pg_id': 0,
    'process_group': ('0', 'default_pg'), 'collective_seq_id': number + 1, 'p2p_seq_id': 0, 'op_id': number + 1,
    'profiling_name': 'nccl:all_reduce', 'time_created_ns': 1_700_000_000_000_000_000 + number,
    'time_discovered_started_ns': None, 'time_discovered_completed_ns': None, 'duration_ms': 1.5,
    'input_sizes': ((4096, 4096),), 'input_dtypes': ['Float'], 'output_sizes': ((4096, 4096),),
    'output_dtypes': ['Float'], 'state': 'completed', 'retired': True, 'timeout_ms': 600000, 'is_p2p': False,
}
dump = {'version': '2.10', 'pg_config': {}, 'pg_status': {}, 'entries': [entry(number) for number in range(operations)]}
with open(path, 'wb') as file:
    # As PyTorch writes it, no text is written twice by reference.
    pickler = pickle.Pickler(file, 2)
    pickler.fast = True
    pickler.dump(dump)
for _ in range(int(sys.argv[3])):
    begun = time.perf_counter_ns()
    with open(path, 'rb') as file:
        pickle.load(file)
    print(time.perf_counter_ns() - begun)
";

/// Measures; Python's own reader stands beside where there is a `python3`.
///
/// # Errors
/// When no dump can be written.
pub fn table(effort: Effort) -> io::Result<Table> {
    let [few, many] = if effort == Effort::Once { [16, 32] } else { [1_024, 10_240] };
    let jobs = [standings(few, false), standings(few, true), standings(many, false)];
    let [one, different, ten] = &jobs;
    let time = |job: &[ProcessStanding]| {
        time_ns(1, || assert!(explain(job, Awaited::default()).is_some(), "a rank is missing"))
    };
    let [one, different, ten] = interleave(
        effort.repeats(),
        [Box::new(|| time(one)), Box::new(|| time(different)), Box::new(|| time(ten))],
    );
    let row = |what: String, ours, baseline, at_most| Row {
        what,
        unit: Unit::Time,
        ours: Some(ours),
        baseline,
        target: Target { at_most: Some(at_most), ..Target::default() },
    };
    let (mebibytes, ours, pythons) = dump(effort)?;
    Ok(Table {
        heading: "a job that hangs, at its coordinator".to_owned(),
        rows: vec![
            row(format!("{few} ranks' stacks folded and explained"), one, None, FOLDED_NS),
            row(format!("{few} ranks, no two stacks alike"), different, None, FOLDED_NS),
            row(format!("{many} ranks' stacks folded and explained"), ten, None, FOLDED_NS),
            row(
                format!(
                    "a Flight Recorder's dump of {mebibytes} MiB read; baseline: Python's pickle.load"
                ),
                ours,
                pythons,
                READ_NS,
            ),
        ],
        remarks: Vec::new(),
    })
}

/// Where the ranks of a job stand of which one loads data; `differ` gives each a stack of its own.
fn standings(ranks: u32, differ: bool) -> Vec<ProcessStanding> {
    let of = |rank: u32| {
        let loads = rank == MISSING % ranks;
        let (stack, activity) =
            if loads { (LOADS, Activity::LoadsData) } else { (WAITS, Activity::Collective) };
        let mut stack: Vec<String> = stack.lines().map(str::to_owned).collect();
        if differ {
            stack.push(format!("run ({rank}.py:1)"));
        }
        ProcessStanding {
            pid: 1_000 + rank,
            rank: Some(rank),
            activity,
            operation: (!loads).then(|| "all_reduce".to_owned()),
            place: Some(CodePlace {
                file: "train.py".to_owned(),
                line: if loads { 88 } else { 214 },
                function: "train".to_owned(),
            }),
            detail: None,
            is_stopped: false,
            has_moved: false,
            is_busy: false,
            collectives: Vec::new(),
            stack,
        }
    };
    (0..ranks).map(of).collect()
}

/// Mebibytes of the dump, how long it takes to read, and how long Python takes.
fn dump(effort: Effort) -> io::Result<(u64, Measurements, Option<Measurements>)> {
    let directory = RunDirectory::create()?;
    let path = directory.path().join("nccl_trace_rank_0");
    let operations = if effort == Effort::Once { FEW_OPERATIONS } else { OPERATIONS };
    let mut python = Command::new("python3");
    python.args(["-c", PYTHON]).arg(&path).arg(operations.to_string());
    let output = python.arg(effort.repeats().to_string()).output()?;
    if !output.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let pythons: Vec<f64> = text.lines().filter_map(|line| line.parse().ok()).collect();
    let pythons = (!pythons.is_empty()).then(|| Measurements::new(pythons));
    let mebibytes = fs::metadata(&path)?.len() >> 20;
    let times = (0..effort.repeats()).map(|_| read_ns(directory.path())).collect();
    Ok((mebibytes, Measurements::new(times), pythons))
}

/// Reads the dumps of a directory as an agent does.
fn read_ns(directory: &Path) -> f64 {
    let mut reader = FileReader::new(Format::FlightRecorder, directory);
    let intake = Intake::default();
    let took_ns = time_ns(1, || reader.poll(&intake));
    let counts = intake.view().readers[&Format::FlightRecorder];
    assert!(counts.malformed == 0 && counts.read + counts.dropped > 0, "it was read: {counts:?}");
    took_ns
}
