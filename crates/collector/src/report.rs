//! How a source did: its errors, of which a bounded number is kept, and how long it took.

use std::collections::BTreeMap;
use std::io;

use rustix::io::Errno;
use telltale_schema::clock::Clock;
use telltale_schema::reading::Absence;
use telltale_schema::snapshot::{SourceError, SourceNote, SourceStatus};

/// Errors of one source that a snapshot carries; the rest is counted.
pub(crate) const MAX_ERRORS: usize = 64;

/// Users whose entries are noted each apart; those of others are noted together.
const MAX_NOTED_USERS: usize = 16;

/// The subject of the note about all others.
const OTHER_USERS: &str = "other users";

/// The longest detail of one error, in bytes.
const MAX_DETAIL_BYTES: usize = 512;

/// Entries that were left out for want of room: how many of each user, and the first of them.
#[derive(Debug, Default)]
pub(crate) struct Surplus(BTreeMap<u32, (u64, String)>);

/// Collects what one source could not read.
#[derive(Debug, Default)]
pub(crate) struct SourceReport {
    errors: Vec<SourceError>,
    dropped: u64,
    notes: Vec<SourceNote>,
}

impl SourceReport {
    /// Notes one thing that could not be read.
    pub(crate) fn error(
        &mut self,
        subject: impl Into<String>,
        reason: Absence,
        detail: impl Into<String>,
    ) {
        if self.errors.len() == MAX_ERRORS {
            self.dropped += 1;
            return;
        }
        let (mut subject, mut detail) = (subject.into(), detail.into());
        shorten(&mut subject);
        shorten(&mut detail);
        self.errors.push(SourceError { subject, reason, detail });
    }

    /// Notes something odd that a user left where all may: an error if that is ourselves or root, else
    /// a note, as no process may make a source fail that others rely on.
    pub(crate) fn odd_entry(
        &mut self,
        owner: u32,
        subject: impl Into<String>,
        reason: Absence,
        detail: impl Into<String>,
    ) {
        self.odd_entries(owner, 1, subject, reason, detail);
    }

    /// The same of several entries, of which `subject` is the first.
    fn odd_entries(
        &mut self,
        owner: u32,
        count: u64,
        subject: impl Into<String>,
        reason: Absence,
        detail: impl Into<String>,
    ) {
        if is_trusted(owner) {
            return self.error(subject, reason, detail);
        }
        note(&mut self.notes, owner, count, &subject.into(), &detail.into());
    }

    /// Notes what was left out for want of room, against each user whose entries they are.
    pub(crate) fn surplus(&mut self, surplus: Surplus, detail: &str) {
        for (owner, (count, first)) in surplus.0 {
            let detail = match count {
                1 => format!("left out: {detail}"),
                count => format!("left out with {} more: {detail}", count - 1),
            };
            self.odd_entries(owner, count, first, Absence::Failed, detail);
        }
    }

    /// Notes that another user's entry is closed to us, as it may be: also one of root's.
    pub(crate) fn closed_entry(
        &mut self,
        owner: u32,
        subject: impl Into<String>,
        detail: impl Into<String>,
    ) {
        if owner == rustix::process::geteuid().as_raw() {
            return self.error(subject, Absence::Permission, detail);
        }
        note(&mut self.notes, owner, 1, &subject.into(), &detail.into());
    }

    /// The errors alone.
    pub(crate) fn into_errors(self) -> Vec<SourceError> {
        self.errors
    }

    /// The status of the source `name`, which began at `started_ns` of `clock`.
    pub(crate) fn finish(self, name: &str, clock: &dyn Clock, started_ns: u64) -> SourceStatus {
        SourceStatus {
            name: name.to_owned(),
            duration_ns: clock.monotonic_ns().saturating_sub(started_ns),
            errors: self.errors,
            errors_dropped: self.dropped,
            notes: self.notes,
        }
    }
}

// === impl Surplus ===

impl Surplus {
    /// Counts one more of a user.
    pub(crate) fn add(&mut self, owner: u32, name: &str) {
        self.add_many(owner, 1, name);
    }

    /// Counts so many more of a user.
    pub(crate) fn add_many(&mut self, owner: u32, count: u64, first: &str) {
        self.0.entry(owner).or_insert_with(|| (0, first.to_owned())).0 += count;
    }
}

/// Whether an error is for want of something here, whatever was to be opened or read.
pub(crate) fn is_shortage(error: &io::Error) -> bool {
    let wanting = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS, Errno::IO];
    Errno::from_io_error(error).is_some_and(|errno| wanting.contains(&errno))
}

/// Adds to what a source refused: what a process of user `uid` says and cannot be so.
pub(crate) fn refuse(status: &mut SourceStatus, uid: Option<u32>, subject: String, detail: String) {
    match uid.filter(|uid| !is_trusted(*uid)) {
        Some(uid) => note(&mut status.notes, uid, 1, &subject, &detail),
        None if status.errors.len() < MAX_ERRORS => {
            status.errors.push(SourceError { subject, reason: Absence::Implausible, detail });
        }
        None => status.errors_dropped += 1,
    }
}

/// Whether what a user leaves is ours to mend.
fn is_trusted(uid: u32) -> bool {
    uid == 0 || uid == rustix::process::geteuid().as_raw()
}

/// Counts so many more of a user, whose first one is shown.
fn note(notes: &mut Vec<SourceNote>, uid: u32, count: u64, subject: &str, detail: &str) {
    let own = format!("user {uid}");
    let known = notes.iter().any(|note| note.subject == own);
    let whose = match known || notes.len() < MAX_NOTED_USERS {
        true => own,
        false => String::from(OTHER_USERS),
    };
    match notes.iter_mut().find(|note| note.subject == whose) {
        Some(note) => note.count = note.count.saturating_add(count),
        None => {
            let mut detail = format!("not used, the first: {subject}: {detail}");
            shorten(&mut detail);
            notes.push(SourceNote { subject: whose, count, detail });
        }
    }
}

fn shorten(text: &mut String) {
    if text.len() > MAX_DETAIL_BYTES {
        let mut end = MAX_DETAIL_BYTES;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_DETAIL_BYTES, MAX_ERRORS, MAX_NOTED_USERS, SourceReport};
    use telltale_schema::clock::ManualClock;
    use telltale_schema::reading::Absence;

    #[test]
    fn errors_are_bounded_and_the_rest_is_counted() {
        let mut report = SourceReport::default();
        for _ in 0..MAX_ERRORS + 5 {
            report.error("a", Absence::Failed, "é".repeat(MAX_DETAIL_BYTES));
        }
        let clock = ManualClock::default();
        clock.advance_ns(7);
        let status = report.finish("test", &clock, 3);
        assert_eq!((status.errors.len(), status.errors_dropped), (MAX_ERRORS, 5));
        assert_eq!(status.errors[0].detail.len(), MAX_DETAIL_BYTES);
        assert_eq!(status.duration_ns, 4);
    }

    #[test]
    fn what_other_users_leave_is_counted_and_no_error() {
        let mut report = SourceReport::default();
        let own = rustix::process::geteuid().as_raw();
        for user in [own, 0] {
            report.odd_entry(user, "a", Absence::Refused, "ours");
        }
        let others = u32::try_from(MAX_NOTED_USERS).unwrap() + 3;
        for round in ["first", "second"] {
            for user in 0..others {
                report.odd_entry(61_000 + user, round, Absence::Refused, "odd");
            }
        }
        report.closed_entry(own, "a", "closed");
        report.closed_entry(61_000, "a", "closed");
        let status = report.finish("test", &ManualClock::default(), 0);
        assert_eq!(status.errors.len(), 3);
        assert_eq!(status.notes.len(), MAX_NOTED_USERS + 1);
        let (first, last) = (&status.notes[0], status.notes.last().unwrap());
        assert_eq!((first.subject.as_str(), first.count), ("user 61000", 3));
        assert_eq!(first.detail, "not used, the first: first: odd");
        assert_eq!((last.subject.as_str(), last.count), ("other users", 6));
    }
}
