//! The guard: a small process that outlives an agent that was killed, for as long as it takes to kill
//! what the agent has left running.
//!
//! Workers end with their agent by themselves; what they have started need not. The guard waits for
//! the end of a pipe whose other end only the agent holds. It touches nothing but what that agent has
//! written down.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, getppid};

use super::leftovers::LeftoverRecord;
use super::process::{Origin, ProcessStat, ProcessTable};

/// The subcommand that runs [`guard`].
pub const GUARD: &str = "worker-guard";

/// How often it searches for what has escaped from workers.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// What a guard guards.
#[derive(Debug, Clone)]
pub struct Guarded {
    /// The agent's record of its workers.
    pub record: PathBuf,
    /// How the marks of this life of the agent begin.
    pub whose: String,
    /// A directory of the agent's that is of no use after it, removed if it was killed.
    pub remove_if_killed: Option<PathBuf>,
}

/// Waits for the agent's end, which is the end of standard input, then clears away what it left.
/// Meanwhile it notes what escapes from workers: when agent and workers have gone, nothing else reports
/// whose that was.
///
/// # Errors
/// When the record cannot be read, or something does not go away.
pub fn guard(guarded: &Guarded) -> io::Result<()> {
    let record = LeftoverRecord::at(&guarded.record);
    let agent = getppid();
    let (alive, until_ended) = mpsc::channel::<()>();
    let reading = thread::spawn(move || {
        let said = io::copy(&mut io::stdin().lock(), &mut io::sink());
        drop(alive);
        said.unwrap_or_default() == 0
    });
    while until_ended.recv_timeout(CHECK_INTERVAL) == Err(RecvTimeoutError::Timeout) {
        // What cannot be noted now may be the next time; the agent's own orphans it knows itself.
        let _ = note_strays(&record, &guarded.whose, agent);
    }
    record.clear(&guarded.whose)?;
    match &guarded.remove_if_killed {
        Some(directory) if reading.join().unwrap_or(false) => std::fs::remove_dir_all(directory),
        _ => Ok(()),
    }
}

/// Notes what neither session nor mark gives away, if that is not what the note says already.
fn note_strays(record: &LeftoverRecord, whose: &str, agent: Option<Pid>) -> io::Result<()> {
    let mut workers = record.read()?;
    workers.retain(|worker| worker.mark.starts_with(whose));
    let noted = record.strays()?;
    if workers.is_empty() && noted.is_empty() {
        return Ok(());
    }
    let table = ProcessTable::read();
    let mut strays = Vec::new();
    let mut add = |found: Vec<ProcessStat>, mark: &str| {
        for process in found {
            if !strays.iter().any(|one: &Origin| one.leader == process.pid) {
                strays.push(process.as_origin(mark));
            }
        }
    };
    for one in &noted {
        add(table.still(std::slice::from_ref(one)), &one.mark);
    }
    for worker in &workers {
        add(table.hidden_followers(worker), &worker.mark);
    }
    if let Some(agent) = agent {
        add(table.strays(agent, |pid| workers.iter().any(|one| one.leader == pid)), whose);
    }
    if strays == noted { Ok(()) } else { record.note_strays(&strays) }
}

/// The agent's side: keeps one guard running.
#[derive(Debug)]
pub(super) struct Guard {
    program: PathBuf,
    guarded: Guarded,
    running: Option<(Child, ChildStdin)>,
}

impl Guard {
    pub(super) fn start(program: PathBuf, guarded: Guarded) -> io::Result<Self> {
        let mut guard = Self { program, guarded, running: None };
        guard.start_again()?;
        Ok(guard)
    }

    /// Starts another one if it has ended, as when it was killed.
    pub(super) fn keep(&mut self) -> io::Result<()> {
        let is_running = match &mut self.running {
            Some((child, _)) => child.try_wait()?.is_none(),
            None => false,
        };
        if is_running { Ok(()) } else { self.start_again() }
    }

    /// Whether this is the guard's process.
    pub(super) fn is(&self, pid: Pid) -> bool {
        self.running.as_ref().is_some_and(|(child, _)| Pid::from_child(child) == pid)
    }

    fn start_again(&mut self) -> io::Result<()> {
        let mut command = Command::new(&self.program);
        command.arg(GUARD).arg("--record").arg(&self.guarded.record);
        command.arg("--whose").arg(&self.guarded.whose);
        if let Some(directory) = &self.guarded.remove_if_killed {
            command.arg("--remove-if-killed").arg(directory);
        }
        // A Ctrl-C is for the agent alone.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
        self.running = child.stdin.take().map(|pipe| (child, pipe));
        Ok(())
    }
}

impl Drop for Guard {
    /// Lets go of the guard and waits for it, so that nothing is left when the agent has ended.
    fn drop(&mut self) {
        if let Some((mut child, mut pipe)) = self.running.take() {
            // One that was killed says nothing.
            let _ = pipe.write_all(b".");
            drop(pipe);
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervisor::process::reads_of;

    #[test]
    fn an_environment_is_read_once_for_all_workers() {
        let reads = |workers: u32| {
            let scratch = telltale_harness::Scratch::new();
            let record = LeftoverRecord::at(&scratch.join("workers"));
            for number in 0..workers {
                // Older than all processes, so that every environment is scanned.
                let mark = format!("read-once-{number}");
                record.add(&Origin { leader: Pid::INIT, started_ticks: 0, mark }).unwrap();
            }
            reads_of(|| note_strays(&record, "read-once-", None).unwrap())
        };
        let (one, eight) = (reads(1), reads(8));
        assert!(one > 0 && eight < 2 * one, "{one} reads for one worker, {eight} for eight");
    }
}
