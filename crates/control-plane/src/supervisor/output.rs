//! What workers print: each line with its rank in front on the agent's own output, and all of it in
//! files that have a bound.
//!
//! The reader of the agent's output may stall without stopping a worker: lines that find no
//! room are left out there, and counted. The files have them all; when a disk stands still, workers
//! wait for it as they would if they wrote there themselves, and the agent does not.

pub(super) mod echo;
pub(super) mod files;
mod pipe;
pub(super) mod prefix;

use std::convert::Infallible;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, OnceLock};
use std::thread;

use tokio::sync::{mpsc, oneshot, watch};

use echo::{Console, Echo, GoneReaders};
use files::OutputFiles;
use pipe::WorkerPipe;
use telltale_cluster::epoch::Epoch;

/// Bytes of the end of an output that are kept: an exception and its last frames.
const MAX_TAIL_BYTES: usize = 8 << 10;
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
    /// Whether what is printed is shown before its line is whole, and nothing of it left out.
    is_at_once: bool,
    keeps_files: bool,
    gone: Arc<GoneReaders>,
    /// Held by everything that follows a pipe.
    followed: mpsc::Sender<Infallible>,
    /// Ends when nothing follows any more.
    unfollowed: mpsc::Receiver<Infallible>,
}

impl WorkerOutput {
    /// Starts the threads that write: to `files`, a directory and the bytes of each at most, and to
    /// the agent's own output.
    pub(super) fn start(files: Option<(PathBuf, u64)>, echo: Echo) -> io::Result<Self> {
        let metrics = Arc::new(OutputMetrics::default());
        let is_at_once = echo.is_at_once();
        let gone = Arc::new(GoneReaders::default());
        let (to_echo, echoed) = sync_channel(MAX_ECHOED_PIECES);
        let noted = is_at_once.then(|| Arc::clone(&gone));
        let echo_thread = thread::Builder::new().name("echo".to_owned());
        echo_thread.spawn(move || echo::run(echoed, noted.as_deref()))?;
        let keeps_files = files.is_some();
        let (pieces, waiting) = mpsc::channel(MAX_WAITING_PIECES);
        let files = files.map(|(directory, bytes)| OutputFiles::below(directory, bytes));
        let console = Console { echo, to: to_echo };
        let counted = Arc::clone(&metrics);
        thread::Builder::new()
            .name("output".to_owned())
            .spawn(move || write(waiting, files, &console, &counted))?;
        let (followed, unfollowed) = mpsc::channel(1);
        Ok(Self { pieces, metrics, is_at_once, keeps_files, gone, followed, unfollowed })
    }

    pub(super) fn metrics(&self) -> Arc<OutputMetrics> {
        Arc::clone(&self.metrics)
    }

    /// Whether nothing of the output is left out, however long its reader takes.
    pub(super) fn waits_for_its_reader(&self) -> bool {
        self.is_at_once
    }

    /// Returns when everything that was followed is in the files, and on the agent's own output as far as it is read.
    /// Nothing is to be followed after that.
    pub(super) async fn flush(&mut self) {
        self.followed = mpsc::channel(1).0;
        let _ = self.unfollowed.recv().await;
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
        ended: watch::Receiver<bool>,
    ) -> impl Future<Output = Vec<u8>> + Send + use<> {
        let (pieces, is_at_once) = (self.pieces.clone(), self.is_at_once);
        let (followed, gone) = (self.followed.clone(), Arc::clone(&self.gone));
        let keeps_files = self.keeps_files;
        async move {
            let _followed = followed;
            let Some(mut pipe) = WorkerPipe::new(pipe, is_at_once, ended) else {
                return Vec::new();
            };
            let mut tail = Vec::new();
            while let Some(lines) = pipe.next().await {
                let place = name.get().copied();
                keep_end(&mut tail, &lines);
                let _ = pieces.send(ToFiles::Piece(Piece { place, stream, lines })).await;
                if gone.has(stream) && !keeps_files {
                    // As if the worker wrote there itself: it gets the signal that a closed pipe has.
                    break;
                }
            }
            tail
        }
    }
}

/// Adds to the end of an output that is kept.
fn keep_end(tail: &mut Vec<u8>, lines: &[u8]) {
    tail.extend_from_slice(&lines[lines.len().saturating_sub(MAX_TAIL_BYTES)..]);
    tail.drain(..tail.len().saturating_sub(MAX_TAIL_BYTES));
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
            console.complain(&format!(
                "telltale: keeping the workers' output in {} failed, and what is kept is not whole: {error}\n",
                files.directory().display()
            ));
        }
        metrics
            .lines_not_echoed
            .fetch_add(count(console.show(place, stream, lines)), Ordering::Relaxed);
    }
}
