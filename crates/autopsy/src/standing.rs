//! Where one process stands: what it does, at which line of its own code, and whether it moves.

use serde::{Deserialize, Serialize};

use crate::activity::{self, Activity};
use crate::evidence::{ProcessEvidence, PythonFrame, Sample, ThreadEvidence};

/// Processor time between two samples, as a share of the time between them, from which on a thread runs.
const BUSY: f64 = 0.5;

/// Lines that a loop may have which only waits.
const LINES_OF_LOOP: u64 = 3;

/// The module with which an agent has PyTorch's collectives reported.
const REPORTS_COLLECTIVES: &str = "/telltale_ccl/";

/// A line of a program.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CodePlace {
    /// The file, without its folder.
    pub file: String,
    /// The line.
    pub line: u32,
    /// The function.
    pub function: String,
}

/// A collective that a process has begun lately, as its collective library reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BegunCollective {
    /// The number of its group; 0 for that of all ranks.
    pub group: u64,
    /// Its number among the process's collectives of the group.
    pub number: u64,
    /// Its name, such as `all_reduce`.
    pub name: String,
    /// How large, in bytes or elements; 0 where that is not known.
    pub size: u64,
    /// Whether it has ended.
    pub has_ended: bool,
}

/// Where one process stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessStanding {
    /// Its process id.
    pub pid: u32,
    /// Its rank, where it has one.
    pub rank: Option<u32>,
    /// What it does.
    pub activity: Activity,
    /// The collective or transfer that it is in.
    pub operation: Option<String>,
    /// The innermost line of the user's own code.
    pub place: Option<CodePlace>,
    /// What the kernel or another thread adds: `reading /data/x (D state)`.
    pub detail: Option<String>,
    /// Whether it is stopped, as by SIGSTOP.
    pub is_stopped: bool,
    /// Whether its stack changed between the samples.
    pub has_moved: bool,
    /// Whether it used a processor for most of the time between the samples.
    pub is_busy: bool,
    /// Its latest collectives, where something reports them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collectives: Vec<BegunCollective>,
    /// The main thread's stack as text, innermost first.
    pub stack: Vec<String>,
}

impl ProcessStanding {
    /// Where a process stands; none where no thread of it was seen.
    #[must_use]
    pub fn of(evidence: &ProcessEvidence) -> Option<Self> {
        let last = evidence.samples.last()?;
        let main = last.main()?;
        let first = evidence.samples.first().filter(|_| evidence.samples.len() > 1);
        let acting = acting(last);
        let gil_holder = gil_holder(first, last).filter(|holder| holder.tid != main.tid);
        let activity = match activity::of(acting) {
            _ if traced_by(evidence, main.tid).is_some() => Activity::Debugger,
            _ if gil_holder.is_some() => Activity::WaitsForGil,
            activity => activity,
        };
        let takes_part = matches!(activity, Activity::Collective | Activity::Transfer);
        Some(Self {
            pid: evidence.pid,
            rank: evidence.rank,
            activity,
            operation: takes_part.then(|| activity::operation(&last.threads)).flatten(),
            place: place_of_child(evidence, activity)
                .or_else(|| place(main))
                .or_else(|| place(acting)),
            detail: traced_by(evidence, main.tid)
                .map(str::to_owned)
                .or_else(|| gil_holder.map(described))
                .or_else(|| detail_of_child(evidence, activity))
                .or_else(|| detail(last, acting, activity)),
            is_stopped: main.state == 'T',
            has_moved: evidence.samples.iter().any(changes)
                || first.is_some_and(|first| has_moved(first, last)),
            is_busy: first.is_some_and(|first| is_busy(first, last)),
            collectives: Vec::new(),
            stack: stack(main),
        })
    }

    /// `rank 3`, or `process 123` where it has none.
    #[must_use]
    pub fn name(&self) -> String {
        match self.rank {
            Some(rank) => format!("rank {rank}"),
            None => format!("process {}", self.pid),
        }
    }
}

/// The thread that says what the process does: the main one, unless it waits for one that computes gradients.
fn acting(sample: &Sample) -> &ThreadEvidence {
    let main = &sample.threads[0];
    if activity::of(main) != Activity::Backward {
        return main;
    }
    let others = sample.threads.iter().skip(1);
    let takes_part = |thread: &&ThreadEvidence| {
        matches!(activity::of(thread), Activity::Collective | Activity::Transfer)
    };
    others.into_iter().find(takes_part).unwrap_or(main)
}

fn traced_by(evidence: &ProcessEvidence, main: u32) -> Option<&str> {
    let what = format!("native stack of thread {main}");
    let missing = evidence.missing.iter().find(|missing| missing.what == what)?;
    missing.why.contains("traces it").then_some(&missing.why)
}

/// The innermost frame of the user's own code, or else the innermost one.
fn place(thread: &ThreadEvidence) -> Option<CodePlace> {
    let frames = &thread.python.as_ref()?.frames;
    let frame = frames.iter().find(|frame| is_users(&frame.file)).or_else(|| frames.first())?;
    Some(named(frame))
}

fn named(frame: &PythonFrame) -> CodePlace {
    let file = frame.file.rsplit('/').next().unwrap_or(&frame.file);
    CodePlace { file: file.to_owned(), line: frame.line, function: frame.function.clone() }
}

/// Whether a file is neither of an installed package nor of the standard library.
fn is_users(file: &str) -> bool {
    let is_installed = ["/site-packages/", "/dist-packages/", REPORTS_COLLECTIVES]
        .iter()
        .any(|part| file.contains(part));
    let is_standard = file.split_once("/lib/python3").is_some_and(|(_, rest)| {
        rest.split_once('/').is_some_and(|(version, _)| !version.contains(['-', '_']))
    });
    !is_installed && !is_standard && !file.starts_with('<')
}

/// The thread that waited with the interpreter's lock at both samples.
fn gil_holder<'a>(first: Option<&Sample>, last: &'a Sample) -> Option<&'a ThreadEvidence> {
    let before = first?.threads.iter().find(|thread| activity::keeps_gil(thread))?;
    last.threads.iter().find(|thread| thread.tid == before.tid && activity::keeps_gil(thread))
}

/// The child that a process waits for: one in code of the user's own, which does not wait for its parent.
fn awaited_child(evidence: &ProcessEvidence, activity: Activity) -> Option<&ThreadEvidence> {
    if !matches!(activity, Activity::LoadsData | Activity::Joins) {
        return None;
    }
    let mains = evidence.children.iter().filter_map(|child| child.samples.last()?.main());
    mains.into_iter().find(|main| {
        let frames = main.python.iter().flat_map(|stack| &stack.frames);
        let waits = matches!(activity::of(main), Activity::WaitsForSignal | Activity::Ended);
        !waits
            && frames
                .take_while(|frame| !frame.file.ends_with("process.py"))
                .any(|frame| is_users(&frame.file))
    })
}

fn place_of_child(evidence: &ProcessEvidence, activity: Activity) -> Option<CodePlace> {
    place(awaited_child(evidence, activity)?)
}

fn detail_of_child(evidence: &ProcessEvidence, activity: Activity) -> Option<String> {
    let child = awaited_child(evidence, activity)?;
    let words = activity::of(child).words();
    let call = detail(evidence.samples.last()?, child, Activity::Waits);
    let call = call.map(|call| format!(", {call}")).unwrap_or_default();
    Some(format!("where process {}, which it started, {words}{call}", child.tid))
}

/// `thread 12 (python3) sleeps at loader.py:9`.
fn described(thread: &ThreadEvidence) -> String {
    let words = activity::of(thread).words();
    let place = place(thread).map(|place| format!(" at {}:{}", place.file, place.line));
    format!("thread {} ({}) {words}{}", thread.tid, thread.name, place.unwrap_or_default())
}

/// What the kernel or another thread adds.
fn detail(sample: &Sample, acting: &ThreadEvidence, activity: Activity) -> Option<String> {
    if matches!(activity, Activity::WaitsForLock | Activity::Joins)
        && let Some(other) = waiting_too(sample, acting)
    {
        return Some(described(other));
    }
    let call = acting.system_call.as_ref()?;
    let state = if acting.state == 'D' { " (D state)" } else { "" };
    match &call.file {
        Some(file) => Some(format!("{} of {file}{state}", call.name)),
        None if acting.state == 'D' => Some(format!("{}{state}", call.name)),
        None => None,
    }
}

/// Another Python thread with lines of the user's own code, which the one that waits may wait for.
fn waiting_too<'a>(sample: &'a Sample, acting: &ThreadEvidence) -> Option<&'a ThreadEvidence> {
    let has_users = |thread: &&ThreadEvidence| {
        let frames = thread.python.iter().flat_map(|stack| &stack.frames);
        thread.tid != acting.tid && frames.into_iter().any(|frame| is_users(&frame.file))
    };
    sample.threads.iter().find(has_users)
}

/// Whether the stack changed while it was read: to other functions, or to more lines than a loop has that
/// waits for something.
const fn changes(sample: &Sample) -> bool {
    sample.python_call_chains > 1 || sample.python_stacks > LINES_OF_LOOP
}

/// Whether the functions are others than at the first sample. Lines may differ by a loop that waits.
fn has_moved(first: &Sample, last: &Sample) -> bool {
    match (first.main(), last.main()) {
        (Some(before), Some(after)) => functions(before) != functions(after),
        _ => false,
    }
}

fn functions(thread: &ThreadEvidence) -> Vec<&str> {
    match &thread.python {
        Some(python) if !python.frames.is_empty() => {
            python.frames.iter().map(|frame| frame.function.as_str()).collect()
        }
        _ => thread
            .native
            .iter()
            .map(|frame| frame.function.as_deref().unwrap_or(&frame.module))
            .collect(),
    }
}

fn is_busy(first: &Sample, last: &Sample) -> bool {
    let between_ms = last.unix_ms.saturating_sub(first.unix_ms).max(1);
    let (Some(before), Some(after)) = (first.main(), last.main()) else { return false };
    after.cpu_ms.saturating_sub(before.cpu_ms) as f64 >= BUSY * between_ms as f64
}

/// A stack as text: Python's where there is one, without functions of ours, or else the native one.
fn stack(thread: &ThreadEvidence) -> Vec<String> {
    if let Some(python) = thread.python.as_ref().filter(|python| !python.frames.is_empty()) {
        let line = |frame: &PythonFrame| {
            let CodePlace { file, line, function } = named(frame);
            format!("{function} ({file}:{line})")
        };
        let is_ours = |frame: &&PythonFrame| frame.file.contains(REPORTS_COLLECTIVES);
        return python.frames.iter().filter(|frame| !is_ours(frame)).map(line).collect();
    }
    let native = thread.native.iter();
    native.map(|frame| frame.function.clone().unwrap_or_else(|| frame.module.clone())).collect()
}
