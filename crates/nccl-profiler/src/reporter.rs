//! The thread that checks what NCCL's threads have written, ten times a second, and tells it.
//!
//! Most events are reported once, when they have ended. One that lasts is also reported when it is seen under
//! way a second time, so that the agent knows of a collective that hangs.

use std::collections::VecDeque;
use std::thread::{Thread, park, park_timeout};
use std::time::Duration;

use nix::sys::signal::{SigSet, SigmaskHow};

use crate::clock::now_ns;
use crate::connection::Connection;
use crate::outbox::{Outbox, Unreachable};
use crate::pool::PoolIndex;
use crate::profiler::Profiler;
use crate::record::{RankIdentity, Record, RecordPhase, element_bytes};
use crate::task::{Task, TaskProgress};

/// The time between two polls.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How long it rests when the agent could not be reached.
const REST: Duration = Duration::from_secs(1);
/// For how long no operation of a task may have come for it to have ended, without kernel events.
const QUIET_NS: u64 = 100_000_000;
/// How long an event must be under way, and a collective's transfer on the network, for its beginning to be reported.
const LASTING_NS: u64 = 100_000_000;
/// How long a task of which nothing is heard after it was put into the queue is kept.
const UNHEARD_NS: u64 = 30_000_000_000;
/// How long an event that does not end is kept: NCCL does not end all that it begins.
const ENDLESS_NS: u64 = 3_600_000_000_000;

/// An event that is under way.
#[derive(Debug)]
struct Living {
    place: PoolIndex,
    /// Whether its beginning was reported.
    announced: bool,
}

/// What the thread knows.
#[derive(Debug)]
pub(crate) struct Reporter<'a> {
    profiler: &'a Profiler,
    tasks: VecDeque<Living>,
    operations: VecDeque<Living>,
    turns: (usize, usize),
    outbox: Outbox,
}

/// Starts the thread, with all signals blocked: the program's handlers are for its own threads.
pub(crate) fn start(
    profiler: &'static Profiler,
    mut connection: Connection,
    worker: RankIdentity,
) -> std::io::Result<Thread> {
    let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK)?;
    let run = move || {
        let mut reporter = Reporter::new(profiler);
        loop {
            reporter.poll(now_ns());
            let sent = reporter.outbox.send(&mut connection, profiler, worker);
            match sent {
                Err(Unreachable) => park_timeout(REST),
                Ok(()) if reporter.is_idle() => park(),
                Ok(()) => park_timeout(POLL_INTERVAL),
            }
        }
    };
    let started = std::thread::Builder::new().name("telltale-nccl".to_owned()).spawn(run);
    before.thread_set_mask()?;
    started.map(|thread| thread.thread().clone())
}

impl<'a> Reporter<'a> {
    pub(crate) fn new(profiler: &'a Profiler) -> Self {
        Self {
            profiler,
            tasks: VecDeque::new(),
            operations: VecDeque::new(),
            turns: (0, 0),
            outbox: Outbox::default(),
        }
    }

    /// Whether nothing is there that could be reported soon.
    fn is_idle(&self) -> bool {
        let nothing = self.tasks.is_empty() && self.operations.is_empty();
        nothing && self.outbox.is_empty() && !self.profiler.communicators.any()
    }

    /// Takes what has ended since the last poll into the outbox.
    pub(crate) fn poll(&mut self, now_ns: u64) {
        self.outbox.begin_poll();
        while let Some(place) = self.profiler.operations.next_begun(&mut self.turns.0) {
            self.operations.push_back(Living { place, announced: false });
        }
        while let Some(place) = self.profiler.tasks.next_begun(&mut self.turns.1) {
            self.tasks.push_back(Living { place, announced: false });
        }
        let Self { profiler, tasks, operations, outbox, .. } = self;
        operations.retain_mut(|living| check_operation(profiler, living, outbox, now_ns));
        // Those that wait longest go first when places run short.
        let mut spare = tasks.len().saturating_sub(profiler.tasks.places() / 4 * 3);
        tasks.retain_mut(|living| check_task(profiler, living, outbox, now_ns, &mut spare));
    }
}

/// Says whether the operation is still under way.
fn check_operation(
    profiler: &Profiler,
    living: &mut Living,
    outbox: &mut Outbox,
    now_ns: u64,
) -> bool {
    let Some(seen) = profiler.operations.see(living.place) else { return false };
    let facts = seen.event.facts();
    let age_ns = now_ns.saturating_sub(facts.begun_ns);
    let (lasted_ns, bytes) = match seen.stopped {
        true => seen.event.transfer(),
        false => (0, facts.most_bytes),
    };
    let record = Record {
        communicator: facts.communicator,
        number: facts.number,
        what: RecordPhase::Transfer { is_send: facts.is_send, peer: facts.peer, bytes },
        begun_ns: facts.begun_ns,
        lasted_ns: seen.stopped.then_some(lasted_ns),
    };
    if seen.stopped || age_ns > ENDLESS_NS {
        if seen.stopped {
            outbox.add(record, living.announced, &profiler.counts);
        }
        profiler.operations.free(living.place);
        return false;
    }
    // Of a collective others wait for the network or for one another all the same; a send whose receiver
    // does not come is seen here alone.
    let is_of_collective = profiler.task(facts.task).is_some_and(|task| task.facts().is_collective);
    let lasts = age_ns > LASTING_NS
        && (!is_of_collective || seen.event.is_on_network_since(now_ns.saturating_sub(LASTING_NS)));
    if !living.announced && lasts {
        living.announced = true;
        outbox.add(record, true, &profiler.counts);
    }
    true
}

/// Says whether the task is still under way. `spare` is how many of those of which nothing is heard
/// have to go.
fn check_task(
    profiler: &Profiler,
    living: &mut Living,
    outbox: &mut Outbox,
    now_ns: u64,
    spare: &mut usize,
) -> bool {
    let Some(seen) = profiler.tasks.see(living.place) else { return false };
    let task = seen.event;
    let age_ns = now_ns.saturating_sub(task.facts().queued_ns);
    let goes = match task.progress(now_ns, QUIET_NS) {
        TaskProgress::Ended(begun_ns, lasted_ns) if seen.stopped => {
            if let Some(record) = record_of(task, begun_ns, Some(lasted_ns)) {
                outbox.add(record, living.announced, &profiler.counts);
            }
            true
        }
        TaskProgress::Begun(begun_ns) | TaskProgress::Ended(begun_ns, _) => {
            let lasts = now_ns.saturating_sub(begun_ns) > LASTING_NS;
            if lasts && !living.announced {
                living.announced = true;
                if let Some(record) = record_of(task, begun_ns, None) {
                    outbox.add(record, true, &profiler.counts);
                }
            }
            age_ns > ENDLESS_NS
        }
        TaskProgress::Queued => {
            let unheard = age_ns > UNHEARD_NS || (*spare > 0 && seen.stopped);
            if unheard {
                *spare = spare.saturating_sub(1);
                profiler.counts.unheard.add(1);
            }
            unheard
        }
    };
    if goes {
        profiler.tasks.free(living.place);
    }
    !goes
}

/// What is reported of a task: nothing of a send or receive that its operations report.
fn record_of(task: &Task, begun_ns: u64, lasted_ns: Option<u64>) -> Option<Record> {
    let facts = task.facts();
    let bytes = facts.count.saturating_mul(element_bytes(facts.datatype));
    let what = if facts.is_collective {
        RecordPhase::Collective {
            function: facts.function,
            algorithm: facts.algorithm,
            datatype: facts.datatype,
            count: facts.count,
            bytes,
            root: facts.other,
        }
    } else if task.used_network() {
        return None;
    } else {
        let is_send = facts.function.lower_case() == "send";
        RecordPhase::Transfer { is_send, peer: facts.other, bytes }
    };
    let (communicator, number) = (facts.communicator, facts.number);
    Some(Record { communicator, number, what, begun_ns, lasted_ns })
}
