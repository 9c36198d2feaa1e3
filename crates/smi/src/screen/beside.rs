//! What the view is told beside snapshots, each by whoever knows it.

use telltale_schema::clock::Timestamp;

/// Something that may not be known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Told<T> {
    /// It was asked for, and nothing has come yet.
    #[default]
    Awaited,
    /// Nobody tells it, and why.
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
}
