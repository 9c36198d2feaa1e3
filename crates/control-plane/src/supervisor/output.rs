//! What workers print: each line with its rank in front on the agent's own output, and all of it in
//! files that have a bound.
//!
//! The reader of the agent's output may stall without stopping a worker: lines that find no
//! room are left out there, and counted. The files have them all; when a disk stands still, workers
//! wait for it as they would if they wrote there themselves, and the agent does not.

pub(super) mod echo;
pub(super) mod files;

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, oneshot};

use echo::{Console, Echo};
use files::OutputFiles;
use telltale_cluster::epoch::Epoch;

/// Bytes of a line that are kept together; what is longer becomes several lines.
const MAX_LINE_BYTES: usize = 8 << 10;
/// How long the rest of a line is waited for before its beginning is shown, where output is shown as it comes.
const LINE_TIMEOUT: Duration = Duration::from_millis(100);
/// Bytes of the end of an output that are kept: an exception and its last frames.
const MAX_TAIL_BYTES: usize = 8 << 10;
/// Bytes read at once.
const READ_BYTES: usize = 16 << 10;
/// Pieces of output on their way to the files.
const MAX_WAITING_PIECES: usize = 64;
/// Pieces of output on their way to the agent's own output.
const MAX_ECHOED_PIECES: usize = 64;

/// Which worker prints; known once a worker that was started ahead has got its place.
pub(super) type Name = Arc<OnceLock<WorkerPosition>>;

/// A worker's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WorkerPosition {
    pub(super) epoch: Epoch,
    pub(super) rank: u32,
    /// Which of its node's workers it is.
    pub(super) local: u32,
}

/// Which of a worker's outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputStream {
    Output,
    Error,
}

/// Whole lines of one worker.
#[derive(Debug)]
struct Piece {
    place: Option<WorkerPosition>,
    stream: OutputStream,
    lines: Vec<u8>,
}

/// What is on its way to the files.
#[derive(Debug)]
enum ToFiles {
    Piece(Piece),
    /// Everything before this must be written out.
    Flush(oneshot::Sender<()>),
}

/// What is on its way to the agent's own output.
#[derive(Debug)]
enum ToEcho {
    Lines(OutputStream, Vec<u8>),
    Flush(oneshot::Sender<()>),
}

/// What of the workers' output was not passed on.
#[derive(Debug, Default)]
pub struct OutputMetrics {
    lines_not_echoed: AtomicU64,
    bytes_not_written: AtomicU64,
}

impl OutputMetrics {
    /// Lines that the agent's own output had no room for. The files have them.
    #[must_use]
    pub fn lines_not_echoed(&self) -> u64 {
        self.lines_not_echoed.load(Ordering::Relaxed)
    }

    /// Bytes that could not be written to the files.
    #[must_use]
    pub fn bytes_not_written(&self) -> u64 {
        self.bytes_not_written.load(Ordering::Relaxed)
    }
}

/// Takes what workers print.
#[derive(Debug)]
pub(super) struct WorkerOutput {
    pieces: mpsc::Sender<ToFiles>,
    metrics: Arc<OutputMetrics>,
    /// Whether what is printed is shown before its line is whole.
    is_at_once: bool,
}

impl WorkerOutput {
    /// Starts the threads that write: to `files`, a directory and the bytes of each at most, and to
    /// the agent's own output.
    pub(super) fn start(files: Option<(PathBuf, u64)>, echo: Echo) -> io::Result<Self> {
        let metrics = Arc::new(OutputMetrics::default());
        let is_at_once = echo.is_at_once();
        let (to_echo, echoed) = sync_channel(MAX_ECHOED_PIECES);
        thread::Builder::new().name("echo".to_owned()).spawn(move || {
            for next in echoed {
                // Without a reader there is no receiver of the error.
                let _ = match next {
                    ToEcho::Lines(OutputStream::Output, lines) => {
                        io::stdout().lock().write_all(&lines)
                    }
                    ToEcho::Lines(OutputStream::Error, lines) => {
                        io::stderr().lock().write_all(&lines)
                    }
                    ToEcho::Flush(done) => done.send(()).map_err(|()| io::Error::other("late")),
                };
            }
        })?;
        let (pieces, waiting) = mpsc::channel(MAX_WAITING_PIECES);
        let files = files.map(|(directory, bytes)| OutputFiles::below(directory, bytes));
        let console = Console { echo, to: to_echo };
        let counted = Arc::clone(&metrics);
        thread::Builder::new()
            .name("output".to_owned())
            .spawn(move || write(waiting, files, &console, &counted))?;
        Ok(Self { pieces, metrics, is_at_once })
    }

    pub(super) fn metrics(&self) -> Arc<OutputMetrics> {
        Arc::clone(&self.metrics)
    }

    /// Returns when everything that was followed to its end is in the files, and on the agent's own
    /// output as far as it is read.
    pub(super) async fn flush(&self) {
        let (done, is_done) = oneshot::channel();
        if self.pieces.send(ToFiles::Flush(done)).await.is_ok() {
            // It fails when the agent's own output has no room, and the files have everything.
            let _ = is_done.await;
        }
    }

    /// Passes on all that comes out of `pipe`, and returns at its end; with [`MAX_TAIL_BYTES`] of that end.
    pub(super) fn follow(
        &self,
        name: Name,
        stream: OutputStream,
        pipe: OwnedFd,
    ) -> impl Future<Output = Vec<u8>> + Send + use<> {
        let (pieces, is_at_once) = (self.pieces.clone(), self.is_at_once);
        async move {
            let Ok(mut pipe) = pipe::Receiver::from_owned_fd(pipe) else { return Vec::new() };
            let (mut bytes, mut tail) = (Vec::new(), Vec::new());
            loop {
                bytes.reserve(READ_BYTES);
                let begun = is_at_once && !bytes.is_empty();
                let (at_end, is_late) = read_more(&mut pipe, &mut bytes, begun).await;
                let lines = match (is_at_once, at_end || is_late) {
                    (true, true) => std::mem::take(&mut bytes),
                    (true, false) => drawn_lines(&mut bytes),
                    (false, true) => rest(&mut bytes),
                    (false, false) => whole_lines(&mut bytes),
                };
                let place = name.get().copied();
                keep_end(&mut tail, &lines);
                if !lines.is_empty() {
                    let _ = pieces.send(ToFiles::Piece(Piece { place, stream, lines })).await;
                }
                if at_end {
                    return tail;
                }
            }
        }
    }
}

/// Reads what comes next; whether that was the end, and whether the rest of a line that has `begun` is late.
async fn read_more(pipe: &mut pipe::Receiver, bytes: &mut Vec<u8>, begun: bool) -> (bool, bool) {
    let limit = if begun { LINE_TIMEOUT } else { Duration::MAX };
    match tokio::time::timeout(limit, pipe.read_buf(bytes)).await {
        // An error is an end too: nothing more will come.
        Ok(read) => (read.unwrap_or(0) == 0, false),
        Err(_) => (false, true),
    }
}

/// Takes off the front of `bytes` what a terminal shows: whole lines, and a progress bar's, which end with a carriage return.
fn drawn_lines(bytes: &mut Vec<u8>) -> Vec<u8> {
    let end = bytes.iter().rposition(|byte| matches!(byte, b'\n' | b'\r')).map_or(0, |at| at + 1);
    if bytes.len() - end >= MAX_LINE_BYTES {
        return std::mem::take(bytes);
    }
    let left = bytes.split_off(end);
    std::mem::replace(bytes, left)
}

/// Adds to the end of an output that is kept.
fn keep_end(tail: &mut Vec<u8>, lines: &[u8]) {
    tail.extend_from_slice(&lines[lines.len().saturating_sub(MAX_TAIL_BYTES)..]);
    tail.drain(..tail.len().saturating_sub(MAX_TAIL_BYTES));
}

/// Takes the whole lines off the front of `bytes`, and what is too long for one line.
fn whole_lines(bytes: &mut Vec<u8>) -> Vec<u8> {
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    if bytes.len() - end >= MAX_LINE_BYTES {
        return rest(bytes);
    }
    let left = bytes.split_off(end);
    std::mem::replace(bytes, left)
}

/// Takes everything, as whole lines.
fn rest(bytes: &mut Vec<u8>) -> Vec<u8> {
    let mut lines = std::mem::take(bytes);
    if lines.last().is_some_and(|last| *last != b'\n') {
        lines.push(b'\n');
    }
    lines
}

/// Writes pieces until no worker and no agent is left to print.
fn write(
    mut waiting: mpsc::Receiver<ToFiles>,
    mut files: Option<OutputFiles>,
    console: &Console,
    metrics: &OutputMetrics,
) {
    let count = |bytes: usize| u64::try_from(bytes).unwrap_or(u64::MAX);
    while let Some(next) = waiting.blocking_recv() {
        let Piece { place, stream, lines } = match next {
            ToFiles::Piece(piece) => piece,
            ToFiles::Flush(done) => {
                console.flush(done);
                continue;
            }
        };
        if let Some(files) = &mut files
            && let Err(error) = files.append(place, &lines)
            && metrics.bytes_not_written.fetch_add(count(lines.len()), Ordering::Relaxed) == 0
        {
            // Told once: what fails once fails for each line.
            console.complain(&format!("telltale: writing the workers' output failed: {error}\n"));
        }
        metrics
            .lines_not_echoed
            .fetch_add(count(console.show(place, stream, lines)), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stay_whole_and_long_ones_are_cut() {
        let mut bytes = b"one\ntwo\nthr".to_vec();
        assert_eq!((whole_lines(&mut bytes), &bytes[..]), (b"one\ntwo\n".to_vec(), &b"thr"[..]));
        assert_eq!((whole_lines(&mut bytes), &bytes[..]), (Vec::new(), &b"thr"[..]));
        assert_eq!((rest(&mut bytes), bytes.len()), (b"thr\n".to_vec(), 0));
        assert_eq!(rest(&mut bytes), b"");
        let mut endless = vec![b'x'; MAX_LINE_BYTES];
        let cut = whole_lines(&mut endless);
        assert_eq!((cut.len(), cut.last(), endless.len()), (MAX_LINE_BYTES + 1, Some(&b'\n'), 0));
    }

    #[test]
    fn a_progress_bar_is_shown_as_it_moves() {
        let mut bytes = b"1%\r2%\r3".to_vec();
        assert_eq!((drawn_lines(&mut bytes), &bytes[..]), (b"1%\r2%\r".to_vec(), &b"3"[..]));
        let mut endless = vec![b'x'; MAX_LINE_BYTES];
        assert_eq!((drawn_lines(&mut endless).len(), endless.len()), (MAX_LINE_BYTES, 0));
    }
}
