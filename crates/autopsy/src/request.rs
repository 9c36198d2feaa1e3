//! Evidence taken by a process of its own.
//!
//! What is looked at may be forged to cost time or memory, and a file that is cut while it is mapped ends
//! who reads it. So the program starts itself once more, with a limit on its memory and a deadline, and
//! reads one line of JSON for each process that was taken.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit};

use crate::evidence::ProcessEvidence;
use crate::take::take;

/// The hidden command that takes evidence.
pub const TAKE: &str = "take-evidence";
/// What the taking may cost beside the pauses.
pub const TIMEOUT: Duration = Duration::from_secs(3);
/// Memory of the process that takes; what it maps of files does not count.
const MAX_DATA: u64 = 1 << 30;
/// The longest line, which is one process with its children.
const MAX_LINE: u64 = 32 << 20;

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakeRequest {
    /// The processes.
    pub pids: Vec<u32>,
    /// How often each is sampled.
    pub samples: usize,
    /// The time between two samples.
    pub pause: Duration,
}

/// What was taken.
#[derive(Debug, Default)]
pub struct Taken {
    /// The processes that were taken, in the order asked for.
    pub processes: Vec<ProcessEvidence>,
    /// Those that were not, and why.
    pub refused: Vec<(u32, String)>,
}

/// No process could be started that takes.
#[derive(Debug, thiserror::Error)]
#[error("starting {program} failed, which takes the evidence", program = program.display())]
pub struct RequestError {
    program: PathBuf,
    source: io::Error,
}

impl TakeRequest {
    /// Takes it in a process of its own: `program` with the hidden command [`TAKE`].
    ///
    /// # Errors
    /// The program cannot be started. Whatever happens to it afterwards, what it had written counts.
    pub fn send(&self, program: PathBuf) -> Result<Taken, RequestError> {
        let between = u32::try_from(self.samples.saturating_sub(1)).unwrap_or(u32::MAX);
        let deadline = Instant::now() + TIMEOUT + self.pause.saturating_mul(between);
        let mut command = Command::new(&program);
        command.arg(TAKE).arg("--samples").arg(self.samples.to_string());
        command.arg("--pause").arg(format!("{}", self.pause.as_secs_f64()));
        command.args(self.pids.iter().map(u32::to_string));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|source| RequestError { program, source })?;
        let lines = lines(&mut child);
        let mut taken = Taken::default();
        let left = || deadline.saturating_duration_since(Instant::now());
        while let Ok(line) = lines.recv_timeout(left()) {
            taken.add(&line);
        }
        // The kernel lets go of what it had stopped.
        let _ = child.kill();
        let _ = child.wait();
        taken.complete(&self.pids);
        Ok(taken)
    }
}

/// The lines that the child writes, until it ends; a line that is too long is the last one.
fn lines(child: &mut Child) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::sync_channel(1);
    if let Some(output) = child.stdout.take() {
        thread::spawn(move || {
            let mut output = BufReader::new(output);
            loop {
                let mut line = String::new();
                match output.by_ref().take(MAX_LINE).read_line(&mut line) {
                    Ok(1..) if line.ends_with('\n') => {}
                    _ => return,
                }
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
    }
    receiver
}

impl Taken {
    fn add(&mut self, line: &str) {
        match serde_json::from_str::<TakenLine>(line) {
            Ok(TakenLine::Taken(evidence)) => self.processes.push(*evidence),
            Ok(TakenLine::Refused { pid, why }) => self.refused.push((pid, why)),
            Err(_) => {}
        }
    }

    /// Names those of which nothing came, and puts the others in the order asked for.
    fn complete(&mut self, pids: &[u32]) {
        let place = |pid: u32| pids.iter().position(|asked| *asked == pid);
        self.processes.retain(|process| place(process.pid).is_some());
        self.processes.sort_by_key(|process| place(process.pid));
        for pid in pids {
            let is_known = self.processes.iter().any(|process| process.pid == *pid)
                || self.refused.iter().any(|(refused, _)| refused == pid);
            if !is_known {
                let why = format!("taking it took more than {} s", TIMEOUT.as_secs());
                self.refused.push((*pid, why));
            }
        }
    }
}

/// One line of the process that takes.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
enum TakenLine {
    Taken(Box<ProcessEvidence>),
    Refused { pid: u32, why: String },
}

/// The hidden command's work: takes the evidence and writes a line for each process.
///
/// # Errors
/// The output cannot be written.
pub fn answer(request: &TakeRequest, output: &mut impl Write) -> io::Result<()> {
    // A process that waits for a file system must not outlive who wants to know.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let limit = Rlimit { current: Some(MAX_DATA), maximum: Some(MAX_DATA) };
    setrlimit(Resource::Data, limit)?;
    let mut written = Ok(());
    take(&request.pids, request.samples, request.pause, |pid, found| {
        let line = match found {
            Ok(evidence) => TakenLine::Taken(Box::new(evidence)),
            Err(error) => TakenLine::Refused { pid, why: error.to_string() },
        };
        if written.is_ok() {
            written = write(&line, output);
        }
    });
    written
}

fn write(line: &TakenLine, output: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer(&mut *output, line)?;
    output.write_all(b"\n")?;
    output.flush()
}
