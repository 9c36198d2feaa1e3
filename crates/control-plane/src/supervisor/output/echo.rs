//! How what workers print appears on the agent's own output: behind the rank of each, or as the worker wrote it.
//!
//! An agent's own output may be read by a service that stalls, and loses lines then. Where a person has started the
//! workers from a terminal or a script, nothing is lost: workers wait for the reader, as if they wrote there themselves.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError};

use tokio::sync::oneshot;

use super::prefix::LinePrefix;
use super::{OutputStream, ToEcho, WorkerPosition};

/// How what workers print appears on the agent's own output.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Echo {
    /// Whole lines, each behind its rank. Lines that find no room are left out, and counted.
    #[default]
    Ranks,
    /// As each worker of the node is to appear, by its place among them. Nothing is left out.
    Workers(Vec<WorkerEcho>),
}

/// How one worker's standard output and standard error appear.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerEcho {
    /// What it writes to standard output.
    pub output: StreamEcho,
    /// What it writes to standard error.
    pub error: StreamEcho,
}

/// How one stream of a worker appears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamEcho {
    /// Not at all.
    Hidden,
    /// As it was written.
    Plain,
    /// Each line behind this prefix.
    Behind(LinePrefix),
}

/// Which of the process's own streams no one reads any more.
#[derive(Debug, Default)]
pub(super) struct GoneReaders {
    output: AtomicBool,
    error: AtomicBool,
}

/// Whether what workers wrote last to standard error has no end of line.
static IS_MID_LINE: AtomicBool = AtomicBool::new(false);

/// Whether a line of a worker's stands unfinished on this process's standard error, so that what is written next would
/// be on the same.
#[must_use]
pub fn is_mid_line() -> bool {
    IS_MID_LINE.load(Ordering::Relaxed)
}

/// Writes what comes to the process's own output. Where `gone` is given, the first failure is reported, and it is noted
/// whose reader is gone.
pub(super) fn run(echoed: Receiver<ToEcho>, gone: Option<&GoneReaders>) {
    let mut was_reported = false;
    for next in echoed {
        let (stream, lines) = match next {
            ToEcho::Lines(stream, lines) => (stream, lines),
            ToEcho::Flush(done) => {
                let _ = done.send(());
                continue;
            }
        };
        let written = match stream {
            OutputStream::Output => {
                let mut output = io::stdout().lock();
                output.write_all(&lines).and_then(|()| output.flush())
            }
            OutputStream::Error => {
                IS_MID_LINE.store(lines.last() != Some(&b'\n'), Ordering::Relaxed);
                io::stderr().lock().write_all(&lines)
            }
        };
        let (Err(error), Some(gone)) = (written, gone) else { continue };
        if error.kind() == io::ErrorKind::BrokenPipe {
            gone.note(stream);
        } else if !was_reported {
            was_reported = true;
            let _ = writeln!(io::stderr(), "telltale: showing the workers' output failed: {error}");
        }
    }
}

/// The agent's own output.
#[derive(Debug)]
pub(super) struct Console {
    pub(super) echo: Echo,
    pub(super) to: SyncSender<ToEcho>,
}

// === impl Echo ===

impl Echo {
    /// Whether output is shown before its line is whole.
    pub(super) fn is_at_once(&self) -> bool {
        matches!(self, Self::Workers(_))
    }
}

// === impl GoneReaders ===

impl GoneReaders {
    fn of(&self, stream: OutputStream) -> &AtomicBool {
        match stream {
            OutputStream::Output => &self.output,
            OutputStream::Error => &self.error,
        }
    }

    fn note(&self, stream: OutputStream) {
        self.of(stream).store(true, Ordering::Relaxed);
    }

    pub(super) fn has(&self, stream: OutputStream) -> bool {
        self.of(stream).load(Ordering::Relaxed)
    }
}

// === impl Console ===

impl Console {
    /// Shows what a worker has written; how many lines were left out.
    pub(super) fn show(
        &self,
        place: Option<WorkerPosition>,
        stream: OutputStream,
        lines: Vec<u8>,
    ) -> usize {
        let workers = match &self.echo {
            Echo::Ranks => {
                let prefix = place
                    .map_or_else(|| "[warm] ".to_owned(), |place| format!("[{}] ", place.rank));
                return self.offer(stream, behind(&prefix, &lines));
            }
            Echo::Workers(workers) => workers,
        };
        // One that was started ahead says nothing that anyone has asked for.
        let Some(place) = place else { return 0 };
        let local = usize::try_from(place.local).ok();
        let Some(worker) = local.and_then(|local| workers.get(local)) else { return 0 };
        let echo = match stream {
            OutputStream::Output => &worker.output,
            OutputStream::Error => &worker.error,
        };
        let shown = match echo {
            StreamEcho::Hidden => return 0,
            StreamEcho::Plain => lines,
            StreamEcho::Behind(prefix) => behind(&prefix.of(place.rank), &lines),
        };
        // The other end is this process's own, and goes last.
        let _ = self.to.send(ToEcho::Lines(stream, shown));
        0
    }

    fn offer(&self, stream: OutputStream, lines: Vec<u8>) -> usize {
        match self.to.try_send(ToEcho::Lines(stream, lines)) {
            Err(TrySendError::Full(ToEcho::Lines(_, lines))) => {
                lines.iter().filter(|byte| **byte == b'\n').count()
            }
            _ => 0,
        }
    }

    /// Says something of our own on standard error.
    pub(super) fn complain(&self, text: &str) {
        let _ = self.to.try_send(ToEcho::Lines(OutputStream::Error, text.as_bytes().to_vec()));
    }

    pub(super) fn flush(&self, done: oneshot::Sender<()>) {
        let _ = match self.echo {
            Echo::Ranks => self.to.try_send(ToEcho::Flush(done)).is_ok(),
            Echo::Workers(_) => self.to.send(ToEcho::Flush(done)).is_ok(),
        };
    }
}

/// The same lines, each behind a prefix.
fn behind(prefix: &str, lines: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(lines.len() + prefix.len());
    for line in lines.split_inclusive(|byte| *byte == b'\n') {
        text.extend_from_slice(prefix.as_bytes());
        text.extend_from_slice(line);
    }
    text
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use telltale_cluster::epoch::Epoch;

    use super::*;

    fn shown(echo: Echo, place: Option<WorkerPosition>, stream: OutputStream) -> Option<Vec<u8>> {
        let (to, shown) = sync_channel(1);
        assert_eq!(Console { echo, to }.show(place, stream, b"a\n\nb\n".to_vec()), 0);
        shown.try_iter().next().map(|shown| match shown {
            ToEcho::Lines(at, lines) => {
                assert_eq!(at, stream);
                lines
            }
            ToEcho::Flush(_) => unreachable!("nothing was flushed"),
        })
    }

    fn place(rank: u32, local: u32) -> Option<WorkerPosition> {
        Some(WorkerPosition { epoch: Epoch::new(1), rank, local })
    }

    #[test]
    fn each_line_has_its_rank_in_front() {
        let lines = shown(Echo::Ranks, place(12, 0), OutputStream::Output).unwrap();
        assert_eq!(lines, b"[12] a\n[12] \n[12] b\n");
        let lines = shown(Echo::Ranks, None, OutputStream::Error).unwrap();
        assert!(lines.starts_with(b"[warm] a\n"));
    }

    #[test]
    fn each_worker_appears_as_it_was_asked_for() {
        let prefix = LinePrefix::from_template("[$role_name$rank]:", "b", 1);
        let echo = Echo::Workers(vec![
            WorkerEcho { output: StreamEcho::Plain, error: StreamEcho::Hidden },
            WorkerEcho { output: StreamEcho::Behind(prefix), error: StreamEcho::Plain },
        ]);
        let of = |local, stream| shown(echo.clone(), place(4 + local, local), stream);
        assert_eq!(of(0, OutputStream::Output).unwrap(), b"a\n\nb\n");
        assert_eq!(of(0, OutputStream::Error), None);
        assert_eq!(of(1, OutputStream::Output).unwrap(), b"[b5]:a\n[b5]:\n[b5]:b\n");
        assert_eq!(of(2, OutputStream::Output), None, "there is no such worker");
        assert_eq!(shown(echo, None, OutputStream::Error), None, "it has no place yet");
    }
}
