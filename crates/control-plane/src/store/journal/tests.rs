use std::collections::BTreeMap;
use std::io::ErrorKind;

use super::*;
use telltale_cluster::epoch::Epoch;
use telltale_cluster::incident::IncidentId;
use telltale_cluster::policy::{Job, Mode};
use telltale_cluster::rank::WorkersPerNode;
use telltale_cluster::stored::{DecisionNumber, Why};

/// How a disk treats the next write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Trouble {
    #[default]
    None,
    /// It takes this many bytes more and then has no room.
    Full { takes: usize },
    /// The same, and what it has taken cannot be taken back.
    Stuck { takes: usize },
    /// It takes all, and says of the sync that it failed.
    Unsynced,
}

/// A disk in memory, which a crash can cut.
#[derive(Debug, Clone, Default)]
struct Disk {
    bytes: Vec<u8>,
    trouble: Trouble,
    replaced: u32,
}

fn no_room() -> io::Error {
    io::Error::from(ErrorKind::StorageFull)
}

impl Medium for Disk {
    fn path(&self) -> PathBuf {
        "/state/journal".into()
    }

    fn place(&mut self) -> io::Result<JournalPath> {
        Ok(JournalPath::Kept)
    }

    fn read(&mut self, _limit: u64) -> io::Result<Vec<u8>> {
        Ok(self.bytes.clone())
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let takes = match self.trouble {
            Trouble::Full { takes } | Trouble::Stuck { takes } => takes.min(bytes.len()),
            Trouble::None | Trouble::Unsynced => bytes.len(),
        };
        self.bytes.extend(&bytes[..takes]);
        if takes == bytes.len() { Ok(()) } else { Err(no_room()) }
    }

    fn sync(&mut self) -> io::Result<()> {
        if self.trouble == Trouble::Unsynced { Err(io::Error::other("bad block")) } else { Ok(()) }
    }

    fn cut(&mut self, length: usize) -> io::Result<()> {
        if matches!(self.trouble, Trouble::Stuck { .. }) {
            return Err(io::Error::other("bad block"));
        }
        self.bytes.truncate(length);
        Ok(())
    }

    fn replace(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.trouble != Trouble::None {
            return Err(no_room());
        }
        self.bytes = bytes.to_vec();
        self.replaced += 1;
        Ok(())
    }
}

fn decision(journal: &Journal<Disk>, number: u64, epoch: u64) -> Decision {
    let workers = WorkersPerNode::new(2).unwrap();
    let job = Job { name: "job".into(), slots: 4, workers };
    let state =
        StoredState { epoch: Epoch::new(epoch), ..StoredState::initial(&job, Mode::Recover) };
    Decision {
        term: journal.contents.term,
        number: DecisionNumber(number),
        expected: journal.revision(),
        why: Why::Ordered,
        state,
    }
}

/// Stores decisions that lead to these epochs, in one term.
fn journal_of(epochs: std::ops::RangeInclusive<u64>) -> Journal<Disk> {
    let mut journal = Journal::open(Disk::default()).unwrap();
    for epoch in epochs {
        let (outcome, error) = journal.store(&decision(&journal, epoch, epoch));
        assert!(matches!(outcome, StoreOutcome::Stored(_)), "{outcome:?}, {error:?}");
    }
    journal
}

fn epoch_in(bytes: &[u8]) -> Option<u64> {
    let disk = Disk { bytes: bytes.to_vec(), ..Disk::default() };
    Journal::open(disk).unwrap().stored().map(|(state, _)| state.epoch.number())
}

#[test]
fn terms_and_revisions_only_grow() {
    let mut disk = Disk::default();
    let mut last = (Term::new(0), Revision::EMPTY);
    for round in 1..5 {
        let mut journal = Journal::open(disk).unwrap();
        assert!(journal.contents.term > last.0 && journal.revision() == last.1);
        journal.store(&decision(&journal, 1, round));
        last = (journal.contents.term, journal.revision());
        disk = journal.medium;
    }
    assert_eq!(last.1, Revision::new(4));
}

#[test]
fn a_crash_at_any_byte_of_a_write_leaves_the_old_state_or_the_new() {
    let whole = journal_of(1..=3).medium.bytes;
    let before = journal_of(1..=2).medium.bytes.len();
    for length in before..whole.len() {
        assert_eq!(epoch_in(&whole[..length]), Some(2), "{length}");
    }
    assert_eq!(epoch_in(&whole), Some(3));
}

#[test]
fn a_full_disk_refuses_and_recovers() {
    for takes in [0, 5, 40] {
        let mut journal = journal_of(1..=2);
        let before = journal.medium.bytes.clone();
        journal.medium.trouble = Trouble::Full { takes };
        let refused = decision(&journal, 3, 3);
        let (outcome, error) = journal.store(&refused);
        assert_eq!(outcome, StoreOutcome::Failed);
        assert!(error.unwrap().to_string().contains("make room"));
        assert_eq!(journal.medium.bytes, before, "nothing of it is there");
        journal.medium.trouble = Trouble::None;
        assert_eq!(journal.store(&refused).0, StoreOutcome::Stored(Revision::new(3)));
        assert_eq!(epoch_in(&journal.medium.bytes), Some(3));
    }
}

#[test]
fn a_write_of_unknown_fate_is_settled_when_it_is_given_again() {
    for trouble in [Trouble::Stuck { takes: 5 }, Trouble::Unsynced] {
        let mut journal = journal_of(1..=2);
        journal.medium.trouble = trouble;
        let unknown = decision(&journal, 3, 3);
        assert_eq!(journal.store(&unknown).0, StoreOutcome::Unknown, "{trouble:?}");
        // Nothing is added to a file that may hold a part of a record.
        journal.medium.trouble = Trouble::Full { takes: usize::MAX };
        assert_eq!(journal.store(&unknown).0, StoreOutcome::Failed, "{trouble:?}");
        journal.medium.trouble = Trouble::None;
        assert_eq!(journal.store(&unknown).0, StoreOutcome::Stored(Revision::new(3)));
        assert_eq!(journal.store(&unknown).0, StoreOutcome::Stored(Revision::new(3)));
        assert_eq!(epoch_in(&journal.medium.bytes), Some(3), "{trouble:?}");
    }
}

#[test]
fn a_journal_is_written_again_before_it_grows_without_end() {
    let mut journal = journal_of(1..=1);
    for number in 2..60 {
        let mut large = decision(&journal, number, number);
        let bars = (0..3_000)
            .map(|node| (format!("node-{node:05}"), telltale_cluster::node::Bar::Removed));
        let bars =
            bars.map(|(node, bar)| (telltale_cluster::node::NodeName::new(&node).unwrap(), bar));
        large.state.barred = bars.collect::<BTreeMap<_, _>>();
        assert!(matches!(journal.store(&large).0, StoreOutcome::Stored(_)));
    }
    assert!(journal.medium.replaced > 1, "it was written anew");
    assert!(journal.medium.bytes.len() < 2 * LEAST_COMPACTED_BYTES);
    let kept: Vec<u64> =
        journal.contents.kept().decisions().map(|one| one.epoch.number()).collect();
    assert_eq!(kept, (1..60).collect::<Vec<_>>(), "the log is whole");
    let term = journal.contents.term;
    let reopened = Journal::open(journal.medium).unwrap();
    assert!(reopened.contents.term > term);
    assert_eq!(reopened.contents.kept().decisions().count(), 59);
}

#[test]
fn a_journal_that_is_long_and_cannot_be_written_again_goes_on() {
    let mut journal = journal_of(1..=1);
    journal.length = LEAST_COMPACTED_BYTES * 2;
    journal.medium.trouble = Trouble::Full { takes: usize::MAX };
    assert_eq!(journal.store(&decision(&journal, 2, 2)).0, StoreOutcome::Stored(Revision::new(2)));
}

#[test]
fn damage_and_strangers_are_refused_with_a_remedy() {
    let whole = journal_of(1..=3).medium.bytes;
    let open = |bytes: Vec<u8>| Journal::open(Disk { bytes, ..Disk::default() }).unwrap_err();
    let mut damaged = whole.clone();
    damaged[40] ^= 1;
    assert!(open(damaged).to_string().contains("restore it from a copy"));
    assert!(open(b"#!/bin/sh\n".to_vec()).to_string().contains("move it away"));
    let nonsense = [&whole[..], &frames::frame(&[0xff, 0xff, 0xff])].concat();
    assert!(matches!(open(nonsense), JournalError::Record { .. }));
}

/// SQLite's log ends at the first frame whose checksum is wrong, and an older state is read without
/// an error (decision 0093).
#[test]
fn no_flipped_bit_brings_an_older_state_back() {
    let whole = journal_of(1..=3).medium.bytes;
    let last_record = journal_of(1..=2).medium.bytes.len();
    for at in 0..last_record {
        for bit in 0..8 {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << bit;
            let opened = Journal::open(Disk { bytes, ..Disk::default() });
            assert!(opened.is_err(), "bit {bit} of byte {at} in {last_record}");
        }
    }
}

#[test]
fn decisions_of_another_term_or_state_conflict() {
    let mut journal = journal_of(1..=2);
    let good = decision(&journal, 3, 3);
    let old_term = Decision { term: Term::new(0), ..good.clone() };
    let old_state = Decision { expected: Revision::new(1), ..good.clone() };
    assert_eq!(journal.store(&old_term).0, StoreOutcome::Conflict);
    assert_eq!(journal.store(&old_state).0, StoreOutcome::Conflict);
    assert_eq!(journal.store(&good).0, StoreOutcome::Stored(Revision::new(3)));
}

#[test]
fn incidents_outlive_the_coordinator() {
    let mut journal = journal_of(1..=1);
    let id = IncidentId { term: journal.contents.term, number: 1 };
    for content in [b"collecting".to_vec(), b"answered".to_vec()] {
        journal.keep(IncidentRecord { id, content }).unwrap();
    }
    let reopened = Journal::open(journal.medium).unwrap();
    let kept = reopened.contents.kept();
    assert_eq!(kept.incidents().collect::<Vec<_>>(), [(id, &b"answered"[..])]);
}
