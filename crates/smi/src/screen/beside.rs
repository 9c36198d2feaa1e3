//! What the view receives beside snapshots, each from its source.

use telltale_schema::clock::Timestamp;

/// Something that may not be known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Availability<T> {
    /// It was asked for, and nothing has come yet.
    #[default]
    Awaited,
    /// Not reported, and why.
    Absent(String),
    /// It is this.
    Known(T),
}

/// What the rules of the service find.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Alerts {
    /// What is pending and what fires.
    pub alerts: Vec<Alert>,
    /// Alerts about processes of others, which are not shown to this user.
    pub withheld: u64,
}

/// One alert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alert {
    /// It fires; otherwise its condition has not held for long enough yet.
    pub fires: bool,
    /// How bad it is.
    pub severity: &'static str,
    /// Its rule.
    pub rule: String,
    /// Since when its condition holds.
    pub since: Timestamp,
    /// What is wrong.
    pub text: String,
    /// The device that it is about, by its id in the snapshot.
    pub device: Option<String>,
}

/// A training job, as its coordinator reports it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct JobView {
    /// Its name and how it stands, as a sentence.
    pub heading: String,
    /// Nothing is wrong with it.
    pub is_well: bool,
    /// What else there is to say, by name.
    pub facts: Vec<(&'static str, String)>,
    /// Its nodes.
    pub nodes: Vec<JobNode>,
    /// Latencies between them, where an incident has any.
    pub matrix: Option<Matrix>,
}

/// A node of a job, in words.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobNode {
    /// Its name.
    pub name: String,
    /// What it is to the job.
    pub state: String,
    /// Something is wrong with it.
    pub is_ill: bool,
    /// Its slot.
    pub slot: String,
    /// Its ranks.
    pub ranks: String,
    /// What its workers do.
    pub workers: String,
    /// How long ago it was heard.
    pub heard: String,
    /// How busy its processors are.
    pub busy: String,
    /// Its accelerators.
    pub devices: String,
}

/// Latencies between nodes, as multiples of what is usual.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Matrix {
    /// Of when it is, and of what.
    pub about: String,
    /// The nodes, in the order of rows, which send, and columns, which receive.
    pub nodes: Vec<String>,
    /// A cell for each pair, row by row; none where nothing is known of it.
    pub cells: Vec<Option<Latency>>,
}

/// A latency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Latency {
    /// How many times as long as usual it takes; none where nothing is usual yet.
    pub times: Option<f64>,
    /// Slower than usual beyond doubt.
    pub is_slow: bool,
}

/// What an agent of this machine reports.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Agent {
    /// Its node, and what it does, as a sentence; or why it does not answer.
    pub heading: String,
    /// It does not answer.
    pub is_silent: bool,
    /// The mean latency of what was reported last to each peer, in milliseconds.
    pub latencies: Vec<(String, f64)>,
}

/// The end of a capture of debug events.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tail {
    /// What [`TailLine::facts`] are.
    pub heading: String,
    /// The last events and what was reported between them, the newest last.
    pub lines: Vec<TailLine>,
    /// How many there were before these.
    pub earlier: u64,
}

/// An event of a capture, or what was reported in its place.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TailLine {
    /// Seconds since the first event.
    pub seconds: Option<f64>,
    /// The logical core.
    pub core: Option<u32>,
    /// Prefix and iteration; empty where it is no event.
    pub name: String,
    /// What it is, and its numbers.
    pub facts: String,
}
