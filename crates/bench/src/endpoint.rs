//! One query of a process's endpoint, from connect to close, beside a bare socket round trip.

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use crate::client;
use crate::pinning::Pinned;
use crate::rundir::RunDirectory;
use crate::sample::{Contender, Effort, interleave, time_ns};
use crate::table::{Row, Table, Target, Unit};
use crate::workers::{WorkerProcess, WorkerService};

/// Bytes of a bare query.
pub const QUERY_BYTES: usize = 16;
/// Bytes of a bare answer.
pub const ANSWER_BYTES: usize = 256;

/// A server that answers each connection's 16 bytes with 256 and checks nothing.
#[derive(Debug)]
pub struct BareServer {
    path: PathBuf,
    stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

// === impl BareServer ===

impl BareServer {
    /// Binds the socket of this process in `directory` and serves it on one thread.
    ///
    /// # Errors
    /// What binding answers.
    pub fn start(directory: &Path) -> io::Result<Self> {
        let path = bare_socket(directory, process::id());
        let listener = UnixListener::bind(&path)?;
        let stopping = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stopping);
        let thread = thread::spawn(move || {
            while !seen.load(Ordering::Acquire) {
                if let Ok((stream, _)) = listener.accept() {
                    // A client that leaves early costs itself its answer, nothing else.
                    let _ = answer(stream);
                }
            }
        });
        Ok(Self { path, stopping, thread: Some(thread) })
    }
}

impl Drop for BareServer {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Release);
        // Wakes the accept; without a connection the thread would wait for ever.
        let woken = UnixStream::connect(&self.path).is_ok();
        if let Some(thread) = self.thread.take().filter(|_| woken) {
            let _ = thread.join();
        }
        let _ = std::fs::remove_file(&self.path);
    }
}

fn answer(mut stream: UnixStream) -> io::Result<()> {
    let mut query = [0; QUERY_BYTES];
    stream.read_exact(&mut query)?;
    stream.write_all(&[query[0]; ANSWER_BYTES])
}

fn bare_socket(directory: &Path, pid: u32) -> PathBuf {
    directory.join(format!("bare_{pid}.sock"))
}

/// One bare round trip: connect, query, answer, close. Returns the answer's first byte, which is the
/// query's.
///
/// # Errors
/// What the socket answers.
pub fn bare_round_trip(socket: &Path) -> io::Result<u8> {
    let mut stream = UnixStream::connect(socket)?;
    stream.write_all(&[7; QUERY_BYTES])?;
    let mut answer = [0; ANSWER_BYTES];
    stream.read_exact(&mut answer)?;
    Ok(answer[0])
}

/// Measures one query with the client on the first processor and the server on `server_processor`.
fn placed(worker: &Path, effort: Effort, what: &str, server_processor: usize) -> io::Result<Row> {
    let run = RunDirectory::create()?;
    let start = |service| WorkerProcess::start(worker, run.path(), service, Some(server_processor));
    let (bare_worker, our_worker) =
        (start(WorkerService::Bare)?, start(WorkerService::Ours { base: 0 })?);
    let bare = bare_socket(run.path(), bare_worker.id());
    let (ours, question) = (client::endpoint(run.path(), our_worker.id()), client::memory_query());
    let _pinned = Pinned::to(0)?;
    let queries = effort.operations(4_000);
    let [ours, bare] = interleave(
        effort.repeats(),
        [
            contender(queries, || client::ask(&ours, &question).map(drop)),
            contender(queries, || bare_round_trip(&bare).map(drop)),
        ],
    );
    let target = Target { times_baseline: Some(1.5), ..Target::default() };
    let (ours, baseline) = (Some(ours), Some(bare));
    Ok(Row { what: what.to_owned(), unit: Unit::Time, ours, baseline, target })
}

fn contender<'a>(queries: u64, query: impl Fn() -> io::Result<()> + 'a) -> Contender<'a> {
    Box::new(move || {
        time_ns(queries, || {
            for _ in 0..queries {
                query().expect("the worker answers until it is stopped");
            }
        })
    })
}

/// One endpoint query, connect to close; the baseline is a bare round trip.
///
/// # Errors
/// When the worker cannot be started or a processor cannot be chosen.
pub fn table(worker: &Path, effort: Effort) -> io::Result<Table> {
    Ok(Table {
        heading: "One endpoint query, connect to close; baseline: a bare socket round trip"
            .to_owned(),
        rows: vec![
            placed(worker, effort, "client and server on two processors", 1)?,
            placed(worker, effort, "client and server on one processor", 0)?,
        ],
        remarks: Vec::new(),
    })
}
