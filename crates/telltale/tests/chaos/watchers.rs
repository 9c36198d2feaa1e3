//! Those who check the service all the time while everything goes wrong: one asks whether it is
//! healthy, one checks each snapshot.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::chaos::service::get;
use crate::chaos::truth::adds_up;

/// The pause between two questions of [`Pulse`].
const PULSE: Duration = Duration::from_millis(50);

/// What was seen of the service's health.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Health {
    /// How often it was asked.
    pub(crate) asked: u64,
    /// The longest that it took to answer.
    pub(crate) longest: Duration,
}

/// Asks `/-/healthy` without end.
#[derive(Debug)]
pub(crate) struct Pulse {
    over: Arc<AtomicBool>,
    thread: JoinHandle<Health>,
}

/// Checks each snapshot that is published, but for those that come faster than they are read.
#[derive(Debug)]
pub(crate) struct Checker {
    over: Arc<AtomicBool>,
    thread: JoinHandle<Result<u64, String>>,
}

impl Pulse {
    /// Begins asking at the socket.
    pub(crate) fn begin(socket: PathBuf) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            let mut health = Health::default();
            while !seen.load(Ordering::Relaxed) {
                let begin = Instant::now();
                let (status, body) = get(&socket, "/-/healthy");
                assert_eq!((status.as_str(), body.as_str()), ("HTTP/1.1 200 OK", "healthy\n"));
                health.longest = health.longest.max(begin.elapsed());
                health.asked += 1;
                std::thread::park_timeout(PULSE);
            }
            health
        });
        Self { over, thread }
    }

    /// Ends it, and reports what it saw.
    pub(crate) fn end(self) -> Health {
        self.over.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        self.thread.join().expect("each answer was as it should be")
    }
}

impl Checker {
    /// Begins watching at the service's gRPC socket.
    pub(crate) fn begin(socket: PathBuf) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(check(socket, &seen))
        });
        Self { over, thread }
    }

    /// Ends it; how many snapshots there were, or what was wrong with one.
    pub(crate) fn end(self) -> Result<u64, String> {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().expect("a checker tells what is wrong instead of failing")
    }
}

async fn check(socket: PathBuf, over: &AtomicBool) -> Result<u64, String> {
    let reported = |error: &dyn std::error::Error| telltale_schema::text::with_causes(error);
    let mut client = telltale_client::connect(&socket).await.map_err(|error| reported(&error))?;
    let mut updates = client.watch(Duration::ZERO).await.map_err(|error| reported(&error))?;
    let (mut checked, mut last) = (0, 0);
    while !over.load(Ordering::Relaxed) {
        let update = updates.next().await.map_err(|error| reported(&error))?;
        let update = update.ok_or_else(|| String::from("the service ended the stream"))?;
        let Some(snapshot) = update.snapshot else { continue };
        if update.sequence <= last {
            return Err(format!("{} came after {last}", update.sequence));
        }
        last = update.sequence;
        adds_up(&snapshot)?;
        checked += 1;
    }
    Ok(checked)
}
