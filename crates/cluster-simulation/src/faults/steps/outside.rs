//! A detector that is another program: it reads a job and writes who is slow.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, BufWriter, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use thiserror::Error;

use super::case::Case;
use super::judging::NamedSuspects;
use super::stream::{self, DetectorVerdict};

/// Bytes of what it complains that are kept.
const MAX_COMPLAINT: u64 = 4096;

/// How a program is started for each job.
#[derive(Debug, Clone)]
pub struct Outside {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// How long it may take for a job.
    pub timeout: Duration,
}

/// Why there is no score.
#[derive(Debug, Error)]
pub enum Error {
    /// It could not be started.
    #[error("cannot run {command:?}: {error}")]
    Start {
        /// What was run.
        command: OsString,
        /// Why not.
        error: io::Error,
    },
    /// It did not end in time.
    #[error("{case}: the detector took more than {seconds} s; --timeout gives it longer")]
    Late {
        /// Of which job.
        case: String,
        /// How long it had.
        seconds: u64,
    },
    /// It failed.
    #[error("{case}: the detector ended with {status}: {complaint}")]
    Failed {
        /// Of which job.
        case: String,
        /// How it ended.
        status: ExitStatus,
        /// The end of what it wrote to its standard error.
        complaint: String,
    },
    /// What it wrote is no verdict.
    #[error("{case}: line {number} is no verdict of this job ({why}): {line}")]
    Verdict {
        /// Of which job.
        case: String,
        /// Which line.
        number: usize,
        /// Why it is none.
        why: String,
        /// What it is.
        line: String,
    },
    /// Something else between it and us.
    #[error("{case}: {error}")]
    Io {
        /// Of which job.
        case: String,
        /// What.
        error: io::Error,
    },
}

impl Outside {
    /// What it says of a job.
    ///
    /// # Errors
    /// When it does not run, does not end in time, fails, or writes what is no verdict.
    pub fn watch(&self, case: &Case) -> Result<Vec<NamedSuspects>, Error> {
        let [program, arguments @ ..] = &self.command[..] else { return Ok(Vec::new()) };
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let start = |error| Error::Start { command: program.clone(), error };
        let mut child = command.spawn().map_err(start)?;
        let (written, lines, complaint, status) = self.run(&mut child, case)?;
        let name = case.to_string();
        if !status.success() {
            return Err(Error::Failed { case: name, status, complaint });
        }
        match written {
            // It may have known enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            Err(error) => return Err(Error::Io { case: name, error }),
            Ok(()) => {}
        }
        lines.into_iter().enumerate().map(|(place, line)| named(case, place + 1, line)).collect()
    }

    fn run(&self, child: &mut Child, case: &Case) -> Result<Ran, Error> {
        let io = |error| Error::Io { case: case.to_string(), error };
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
            return Err(io(io::ErrorKind::BrokenPipe.into()));
        };
        thread::scope(|scope| {
            let writing = scope.spawn(move || stream::write(case, &mut BufWriter::new(stdin)));
            let complaining = scope.spawn(move || {
                let mut text = Vec::new();
                let mut stderr = stderr;
                let _ = (&mut stderr).take(MAX_COMPLAINT).read_to_end(&mut text);
                // It is not kept from going on by what is not kept of it.
                let _ = io::copy(&mut stderr, &mut io::sink());
                String::from_utf8_lossy(&text).trim().to_owned()
            });
            let (done, ended) = channel();
            let reading = scope.spawn(move || {
                let lines: io::Result<Vec<String>> = BufReader::new(stdout).lines().collect();
                let _ = done.send(());
                lines
            });
            let is_late = ended.recv_timeout(self.timeout) == Err(RecvTimeoutError::Timeout);
            if is_late {
                child.kill().map_err(io)?;
            }
            let status = child.wait().map_err(io)?;
            let panicked = || io(io::Error::other("a thread panicked"));
            let lines = reading.join().map_err(|_| panicked())?.map_err(io)?;
            let written = writing.join().map_err(|_| panicked())?;
            let complaint = complaining.join().map_err(|_| panicked())?;
            if is_late {
                let seconds = self.timeout.as_secs();
                return Err(Error::Late { case: case.to_string(), seconds });
            }
            Ok((written, lines, complaint, status))
        })
    }
}

/// What became of the job that was written, the lines that were read, what was complained, and how it ended.
type Ran = (io::Result<()>, Vec<String>, String, ExitStatus);

fn named(case: &Case, number: usize, line: String) -> Result<NamedSuspects, Error> {
    let verdict = serde_json::from_str::<DetectorVerdict>(&line).map_err(|error| error.to_string());
    let ranks = case.traits.shape.ranks();
    let unknown = || String::from("it names no node of the job");
    let named = verdict.and_then(|verdict| verdict.named(ranks).ok_or_else(unknown));
    named.map_err(|why| Error::Verdict { case: case.to_string(), number, why, line })
}
