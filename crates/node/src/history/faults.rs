//! Faults as the writer follows them: each has a row from when it begins until it is over.

use telltale_schema::health::{Evidence, Fault, FaultKind, HealthState};

use super::rows::{Stored, cut, head};
use super::timeline::{Moment, milliseconds};

/// Faults that are followed at a time; those beyond are counted.
pub(super) const MAX_OPEN: usize = 4_096;
/// Faults that are over and wait to be written.
const MAX_ENDED: usize = 4_096;
/// A text that changes is written so often at most: some have a reading in it.
const TEXT_MS: i64 = 60_000;
/// A fault of the table and one that is found begin so near to each other if they are the same.
const NEAR_MS: u64 = 5_000;
/// The text of one has so many bytes at most.
const MAX_DETAIL_BYTES: usize = 1_024;
/// The name of a part.
const MAX_PART_BYTES: usize = 256;
/// Readings that show one.
pub(super) const MAX_EVIDENCE: usize = 32;

/// A fault, as it is or will be in the table.
#[derive(Debug, Clone)]
pub(super) struct FaultRow {
    pub(super) id: i64,
    /// The device that has it; none of a part or a source.
    pub(super) device: Option<i64>,
    pub(super) part: String,
    pub(super) kind: FaultKind,
    pub(super) since_ms: i64,
    pub(super) until_ms: Option<i64>,
    pub(super) detail: String,
    pub(super) evidence: Vec<Evidence>,
    pub(super) mark_ms: i64,
    pub(super) stored: Stored,
    /// When the fault began, by its own word; the row begins no later than the first collection that
    /// had it.
    own_since_ms: i64,
    /// The mark at which its text was last made to be written.
    text_ms: i64,
    /// The number of the last snapshot that had it; 0 where none of this run did.
    look: u64,
}

/// The faults that last, and those that ended since the last write.
#[derive(Debug)]
pub(super) struct FaultRows {
    open: Vec<FaultRow>,
    ended: Vec<FaultRow>,
    next: i64,
    /// When the last snapshot was, by the wall clock.
    last_ms: i64,
    look: u64,
    /// Those that there was no room for.
    pub(super) left_out: u64,
}

// === impl FaultRow ===

impl FaultRow {
    fn new(id: i64, device: Option<i64>, fault: &Fault, moment: &Moment) -> Self {
        let own_since_ms = milliseconds(fault.since);
        let mut row = Self {
            id,
            device,
            part: cut(&fault.part, MAX_PART_BYTES),
            kind: fault.kind,
            since_ms: own_since_ms.min(moment.at_ms),
            own_since_ms,
            until_ms: None,
            detail: String::new(),
            evidence: Vec::new(),
            mark_ms: moment.mark_ms,
            stored: Stored::Not,
            text_ms: moment.mark_ms,
            look: 0,
        };
        row.describe(fault);
        row
    }

    /// One of the table, which lasted when the history was written last.
    pub(super) fn of_stored(stored: StoredFault, mark_ms: i64) -> Self {
        let StoredFault { id, device, since_ms, until_ms, fault } = stored;
        let Fault { kind, part, detail, evidence, .. } = fault;
        let stored = Stored::Whole;
        let (text_ms, look) = (mark_ms, 0);
        Self {
            id,
            device,
            part,
            kind,
            since_ms,
            until_ms,
            detail,
            evidence,
            mark_ms,
            stored,
            own_since_ms: since_ms,
            text_ms,
            look,
        }
    }

    fn is_of(&self, device: Option<i64>, fault: &Fault) -> bool {
        self.device == device
            && self.kind == fault.kind
            && self.part == head(&fault.part, MAX_PART_BYTES)
    }

    /// Whether this is what the row is about, rather than the next one of its kind: events, and what a
    /// service found that was started again, begin at another moment.
    fn is_same(&self, fault: &Fault) -> bool {
        let apart_ms = self.own_since_ms.abs_diff(milliseconds(fault.since));
        match self.look {
            0 => apart_ms <= NEAR_MS,
            _ => apart_ms == 0 || fault.kind.state() > HealthState::Ok,
        }
    }

    fn describe(&mut self, fault: &Fault) {
        self.detail = cut(&fault.detail, MAX_DETAIL_BYTES);
        self.evidence = fault.evidence.iter().take(MAX_EVIDENCE).cloned().collect();
    }

    /// Takes in what it is now. A text that changes is written now and then.
    fn see(&mut self, fault: &Fault, look: u64, moment: &Moment) {
        (self.look, self.mark_ms) = (look, moment.mark_ms);
        self.own_since_ms = milliseconds(fault.since);
        let is_due = moment.mark_ms.saturating_sub(self.text_ms) >= TEXT_MS;
        if self.stored == Stored::Not || (is_due && self.detail != fault.detail) {
            self.text_ms = moment.mark_ms;
            self.describe(fault);
            self.changed();
        }
    }

    /// The row of the time after the wall clock was set: times of both clocks give no duration.
    fn after_set_clock(&self, id: i64, moment: &Moment) -> Self {
        Self { id, since_ms: moment.at_ms, stored: Stored::Not, ..self.clone() }
    }

    fn end(&mut self, at_ms: i64) {
        self.until_ms = Some(at_ms.max(self.since_ms));
        self.changed();
    }

    fn changed(&mut self) {
        if self.stored == Stored::Whole {
            self.stored = Stored::Older;
        }
    }
}

/// A row of the table.
#[derive(Debug, Clone)]
pub(super) struct StoredFault {
    pub(super) id: i64,
    pub(super) device: Option<i64>,
    pub(super) since_ms: i64,
    pub(super) until_ms: Option<i64>,
    pub(super) fault: Fault,
}

// === impl FaultRows ===

impl FaultRows {
    /// Follows those that lasted when the history was written last, at this moment of the wall clock.
    /// New ones have numbers from `next` on.
    pub(super) fn new(open: Vec<FaultRow>, next: i64, last_ms: i64) -> Self {
        Self { open, ended: Vec::new(), next, last_ms, look: 0, left_out: 0 }
    }

    /// Takes in all faults of a snapshot, each with the device that has it.
    pub(super) fn see<'a>(
        &mut self,
        all: impl Iterator<Item = (Option<i64>, &'a Fault)>,
        moment: &Moment,
    ) {
        // What is over ended with the last collection before a gap, as far as is known.
        let end_ms = if moment.since_ms.is_some() { moment.at_ms } else { self.last_ms };
        self.look += 1;
        let look = self.look;
        for (device, fault) in all {
            let has_room = self.open.len() < MAX_OPEN;
            let found = self.open.iter_mut().find(|row| row.is_of(device, fault));
            match found {
                Some(row) if row.is_same(fault) => {
                    if moment.clock_was_set {
                        let next = row.after_set_clock(take(&mut self.next), moment);
                        let mut old = std::mem::replace(row, next);
                        old.end(end_ms);
                        self.ended.push(old);
                    }
                    row.see(fault, look, moment);
                }
                Some(row) => {
                    let next = FaultRow::new(take(&mut self.next), device, fault, moment);
                    let mut old = std::mem::replace(row, next);
                    row.see(fault, look, moment);
                    old.end(end_ms);
                    self.ended.push(old);
                }
                None if !has_room => self.left_out += 1,
                None => {
                    let mut row = FaultRow::new(take(&mut self.next), device, fault, moment);
                    row.see(fault, look, moment);
                    self.open.push(row);
                }
            }
        }
        let over = self.open.extract_if(.., |row| row.look != look);
        self.ended.extend(over.map(|mut row| {
            row.end(end_ms);
            row
        }));
        let too_many = self.ended.len().saturating_sub(MAX_ENDED);
        self.ended.drain(..too_many);
        self.left_out += u64::try_from(too_many).unwrap_or(u64::MAX);
        self.last_ms = moment.at_ms;
    }

    /// The rows that are not in the table as they are.
    pub(super) fn unstored(&self) -> impl Iterator<Item = &FaultRow> {
        self.ended.iter().chain(&self.open).filter(|row| row.stored != Stored::Whole)
    }

    /// Notes that all are.
    pub(super) fn were_stored(&mut self) {
        self.ended = Vec::new();
        self.open.iter_mut().for_each(|row| row.stored = Stored::Whole);
    }
}

fn take(next: &mut i64) -> i64 {
    let id = *next;
    *next += 1;
    id
}
