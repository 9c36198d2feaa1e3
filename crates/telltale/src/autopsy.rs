//! `telltale autopsy`: why processes hang.

use std::io::{self, IsTerminal};
use std::path::Path;

use telltale_autopsy::report::AutopsyReport;
use telltale_autopsy::request::{TakeRequest, Taken, answer};
use telltale_autopsy::selection;
use telltale_schema::text::{printable, with_causes};

use crate::arguments::{AutopsyArguments, TakeArguments};
use crate::exit::{self, Failure, Status};
use crate::new_file::NewFile;
use crate::output::StandardOutput;

/// Samples of each process: what is equal in both stands still.
const SAMPLES: usize = 2;

/// Runs the command.
pub(crate) fn run(arguments: &AutopsyArguments) -> Result<Status, Failure> {
    let pids = chosen(arguments)?;
    if io::stderr().is_terminal() {
        let (count, pause) = (pids.len(), arguments.pause.as_secs_f64());
        let noun = if count == 1 { "process" } else { "processes" };
        exit::tell(&format!("sampling {count} {noun} twice, {pause} s apart"));
    }
    let program = std::env::current_exe().map_err(|error| Failure::because(&error))?;
    let request = TakeRequest { pids, samples: SAMPLES, pause: arguments.pause };
    let taken = request.send(program).map_err(|error| Failure::because(&error))?;
    let status = |report: &AutopsyReport| match (&report.explanation, report.is_permitted()) {
        (_, false) => Status::Partial,
        (Some(_), true) => Status::Fine,
        (None, true) => Status::Nothing,
    };
    let Taken { processes, refused } = taken;
    if processes.is_empty() {
        let why: Vec<&str> = refused.iter().map(|(_, why)| why.as_str()).collect();
        return Err(Failure::Message(format!("nothing was sampled: {}", why.join("; "))));
    }
    let report = AutopsyReport::new(processes, refused);
    let output = StandardOutput::detect();
    output.print(&if arguments.json { report.json() } else { printable_text(&report) })?;
    if let Some(path) = &arguments.output {
        write(path, &report)?;
    }
    Ok(status(&report))
}

/// The text without what steers a terminal, which names of functions and files may have.
fn printable_text(report: &AutopsyReport) -> String {
    report.text().lines().map(|line| printable(line) + "\n").collect()
}

fn chosen(arguments: &AutopsyArguments) -> Result<Vec<u32>, Failure> {
    let (pids, none) = match (arguments.children, arguments.job) {
        (Some(pid), _) => (selection::below(pid), format!("process {pid} does not exist")),
        (None, Some(job)) => (
            selection::of_slurm_job(job),
            format!(
                "no process here has SLURM_JOB_ID={job} and a rank that this user may read; run it on \
                 a node of the job, as the job's user or as root"
            ),
        ),
        (None, None) => (arguments.pids.clone(), String::new()),
    };
    if pids.is_empty() { Err(Failure::Message(none)) } else { Ok(pids) }
}

/// Writes the report in the form that the file's name asks for.
fn write(path: &Path, report: &AutopsyReport) -> Result<(), Failure> {
    let form = path.extension().and_then(|extension| extension.to_str());
    let content = match form {
        Some("html" | "htm") => report.page(),
        Some("json") => report.json(),
        _ => printable_text(report),
    };
    let written = NewFile::begin(path, true).and_then(|mut file| {
        io::Write::write_all(&mut file, content.as_bytes())?;
        file.finish()
    });
    written.map_err(|error| {
        let (path, why) = (path.display(), with_causes(&error));
        Failure::Message(format!("writing {path} failed: {why}; choose another --output"))
    })
}

/// Runs the hidden command: takes evidence and writes it to standard output.
pub(crate) fn run_take(arguments: TakeArguments) -> Result<Status, Failure> {
    let TakeArguments { samples, pause, pids } = arguments;
    answer(&TakeRequest { pids, samples, pause }, &mut io::stdout().lock())?;
    Ok(Status::Fine)
}
