//! Takes evidence of processes from outside, without their help.
//!
//! It reads what the processes may forge, maps files that they may cut, and stops their threads. So the
//! program runs it in a process of its own with a limit on its memory and a deadline: what goes wrong ends
//! that one alone, and the kernel lets go of every thread that it had stopped.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use procfs::process::Process;

use crate::bounds::bounded;
use crate::children;
use crate::context::{self, Context, connections};
use crate::evidence::{Missing, ProcessEvidence, PythonStack, Sample};
use crate::native::{self, Refused, Tracer};
use crate::permission::refusal;
use crate::python::Interpreter;
use crate::threads;

/// How long the native stacks of one process and its children may take at one sample.
const NATIVE_TIMEOUT: Duration = Duration::from_millis(1000);
/// How often Python's main stack is read once more at each sample, without a stop, to see whether it changes.
const READINGS_MORE: usize = 5;
const READINGS_PAUSE: Duration = Duration::from_millis(20);
/// Processes that are taken at once.
pub const MAX_PROCESSES: usize = 256;
/// Stack of the thread that takes one.
const STACK_BYTES: usize = 1 << 20;

/// A process that cannot be taken at all.
#[derive(Debug, thiserror::Error)]
pub enum TakeError {
    /// It has ended, or never was.
    #[error("process {0} does not exist")]
    Ended(u32),
    /// No thread could be started for it.
    #[error("no thread could be started for process {0}; raise the limit on processes")]
    NoThread(u32),
}

/// Takes `samples` of each process and of its children, with a pause between, all in parallel, and gives
/// `put` each once it is done.
pub fn take(
    pids: &[u32],
    samples: usize,
    pause: Duration,
    mut put: impl FnMut(u32, Result<ProcessEvidence, TakeError>),
) {
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        for pid in pids.iter().copied().take(MAX_PROCESSES) {
            let (done, refused) = (sender.clone(), sender.clone());
            let builder = thread::Builder::new().stack_size(STACK_BYTES);
            let started = builder.spawn_scoped(scope, move || {
                let children = children::of(pid, pids);
                let _ = done.send((pid, take_family(pid, &children, samples, pause)));
            });
            if started.is_err() {
                let _ = refused.send((pid, Err(TakeError::NoThread(pid))));
            }
        }
        drop(sender);
        for (pid, taken) in receiver {
            put(pid, taken);
        }
    });
}

/// Takes a process with its children, one after the other, so that few threads are needed.
fn take_family(
    pid: u32,
    children: &[u32],
    samples: usize,
    pause: Duration,
) -> Result<ProcessEvidence, TakeError> {
    let mut parent = Taker::new(pid)?;
    // A child that ended meanwhile is none that something waits for.
    let mut children: Vec<Taker> =
        children.iter().filter_map(|child| Taker::new(*child).ok()).collect();
    for number in 0..samples {
        if number > 0 {
            thread::sleep(pause);
        }
        let deadline = Instant::now() + NATIVE_TIMEOUT;
        if !parent.sample(deadline, true) {
            parent.has_ended(number)?;
            break;
        }
        children.retain_mut(|child| child.sample(deadline, false));
    }
    parent.evidence.missing.dedup();
    parent.evidence.children = children.into_iter().map(|child| child.evidence).collect();
    Ok(parent.evidence)
}

/// One process that is taken.
struct Taker {
    process: Process,
    evidence: ProcessEvidence,
    interpreter: Option<Interpreter>,
    tracer: Tracer,
}

impl Taker {
    fn new(pid: u32) -> Result<Self, TakeError> {
        let ended = || TakeError::Ended(pid);
        let process = i32::try_from(pid).ok().and_then(|pid| Process::new(pid).ok());
        let process = process.ok_or_else(ended)?;
        let stat = process.stat().map_err(|_| ended())?;
        let mut evidence = ProcessEvidence {
            pid,
            start_ticks: stat.starttime,
            rank: context::rank(pid),
            name: bounded(&stat.comm),
            python: None,
            context: Context::of(&process),
            samples: Vec::new(),
            missing: Vec::new(),
            children: Vec::new(),
        };
        let interpreter = find_interpreter(&process, &mut evidence);
        Ok(Self { process, evidence, interpreter, tracer: Tracer::default() })
    }

    /// Takes one sample; false where the process has ended.
    fn sample(&mut self, deadline: Instant, watches: bool) -> bool {
        self.tracer.release_late();
        let taken = self.take_sample(deadline, watches);
        let is_there = taken.is_some();
        self.evidence.samples.extend(taken);
        is_there
    }

    fn has_ended(&mut self, samples: usize) -> Result<(), TakeError> {
        if samples == 0 {
            return Err(TakeError::Ended(self.evidence.pid));
        }
        self.evidence.missing.push(Missing {
            what: format!("sample {}", samples + 1),
            why: "the process has ended".to_owned(),
            remedy: None,
        });
        Ok(())
    }

    fn take_sample(&mut self, deadline: Instant, watches: bool) -> Option<Sample> {
        let Self { process, interpreter, tracer, evidence } = self;
        let (pid, missing) = (evidence.pid, &mut evidence.missing);
        let tasks = process.tasks().ok()?.filter_map(Result::ok);
        let all: Vec<u32> = tasks.map(|task| task.tid.unsigned_abs()).collect();
        let mut python = match interpreter.as_ref().map(|one| one.stacks(&all)) {
            Some(Ok(stacks)) => stacks,
            Some(Err(why)) => {
                missing.push(python_missing(pid, &why));
                BTreeMap::new()
            }
            None => BTreeMap::new(),
        };
        let watched = interpreter.as_ref().filter(|_| watches).zip(python.get(&pid));
        let (python_stacks, python_call_chains) =
            watched.map_or((0, 0), |(one, first)| different(one, pid, &all, first));
        let needed: Vec<u32> = python.keys().copied().collect();
        let (tids, threads_left_out) = threads::chosen(process, &needed).ok()?;
        // The kernel's view first: a thread that is stopped for its stack no longer is in its system call.
        let states: Vec<_> = tids.iter().filter_map(|tid| threads::state(process, *tid)).collect();
        let mut stacks = native::stacks(tracer, pid, &tids, deadline);
        let refused = stacks.refused.iter();
        missing.extend(refused.filter_map(|(tid, why)| native_missing(pid, *tid, *why)));
        let threads: Vec<_> = states
            .into_iter()
            .map(|mut thread| {
                thread.python = python.remove(&thread.tid);
                thread.native = stacks.by_thread.remove(&thread.tid).unwrap_or_default();
                thread
            })
            .collect();
        (!threads.is_empty()).then(|| Sample {
            unix_ms: unix_ms(),
            stopped_us: u64::try_from(stacks.longest_stop.as_micros()).unwrap_or(u64::MAX),
            python_stacks,
            python_call_chains,
            connections: connections(process),
            threads,
            threads_left_out,
        })
    }
}

fn find_interpreter(process: &Process, evidence: &mut ProcessEvidence) -> Option<Interpreter> {
    match Interpreter::find(process)? {
        Ok(interpreter) => {
            let (version, is_tested) = interpreter.version();
            if !is_tested {
                evidence.missing.push(Missing {
                    what: format!("assurance for CPython {version}"),
                    why: "the tests read stacks of CPython 3.8 to 3.13".to_owned(),
                    remedy: None,
                });
            }
            evidence.python = Some(version);
            Some(interpreter)
        }
        Err(why) => {
            evidence.missing.push(python_missing(evidence.pid, &why));
            None
        }
    }
}

fn python_missing(pid: u32, why: &str) -> Missing {
    let is_refused = why.contains("Operation not permitted") || why.contains("Permission denied");
    if is_refused {
        return refusal("Python stacks", pid);
    }
    Missing { what: "Python stacks".to_owned(), why: bounded(why), remedy: None }
}

/// How many different stacks the main thread has when it is read some more times, and how many different
/// functions in a row.
fn different(
    interpreter: &Interpreter,
    main: u32,
    threads: &[u32],
    first: &PythonStack,
) -> (u64, u64) {
    let chain = |stack: &PythonStack| {
        let functions =
            stack.frames.iter().map(|frame| (frame.file.clone(), frame.function.clone()));
        functions.collect::<Vec<_>>()
    };
    let lines =
        |stack: &PythonStack| stack.frames.iter().map(|frame| frame.line).collect::<Vec<_>>();
    let mut chains = BTreeSet::from([chain(first)]);
    let mut stacks = BTreeSet::from([(chain(first), lines(first))]);
    for _ in 0..READINGS_MORE {
        thread::sleep(READINGS_PAUSE);
        let Ok(mut read) = interpreter.stacks(threads) else { continue };
        let Some(stack) = read.remove(&main) else { continue };
        chains.insert(chain(&stack));
        stacks.insert((chain(&stack), lines(&stack)));
    }
    let count = |length: usize| u64::try_from(length).unwrap_or(u64::MAX);
    (count(stacks.len()), count(chains.len()))
}

fn native_missing(pid: u32, tid: u32, refused: Refused) -> Option<Missing> {
    let of_thread = |why: String| {
        Some(Missing { what: format!("native stack of thread {tid}"), why, remedy: None })
    };
    match refused {
        Refused::Ended => None,
        // One reason for all threads.
        Refused::NotPermitted => Some(refusal("native stacks", pid)),
        Refused::Traced(by) => of_thread(format!("process {by} traces it, as a debugger does")),
        Refused::Uninterruptible => {
            of_thread("it is in a system call that cannot be interrupted (D state)".to_owned())
        }
        Refused::NoTime => Some(Missing {
            what: "native stacks of further threads".to_owned(),
            why: format!("those before took {} ms", NATIVE_TIMEOUT.as_millis()),
            remedy: None,
        }),
    }
}

fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
