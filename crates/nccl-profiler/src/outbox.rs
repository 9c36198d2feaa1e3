//! What is still to be reported, within a limit, and how it is posted.

use std::collections::{HashMap, VecDeque};

use crate::connection::Connection;
use crate::counts::Counts;
use crate::handle::Handle;
use crate::profiler::Profiler;
use crate::record::{RankIdentity, Record, RecordPhase};

/// Records that wait at most, while the agent is unreachable.
pub(crate) const MAX_WAITING: usize = 16_384;
/// Records of one post.
const MAX_RECORDS_PER_POST: usize = 1_000;
/// Transfers with one peer, in one direction, of about one size, reported for one window: several
/// times what the agent's windows keep.
pub(crate) const MAX_ALIKE: u32 = 64;

/// Transfers that are alike: communicator, whether they are sent, peer, power of two of the bytes.
type Likeness = (u64, bool, i32, u32);

/// Records that wait.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    waiting: VecDeque<Record>,
    alike: HashMap<Likeness, u32>,
}

/// Why nothing more could be sent now.
#[derive(Debug)]
pub(crate) struct Unreachable;

impl Outbox {
    /// Adds a record. One that is `owed`, because its beginning has been reported, is not left out for
    /// being like others.
    pub(crate) fn add(&mut self, record: Record, owed: bool, counts: &Counts) {
        if let (RecordPhase::Transfer { is_send, peer, bytes }, false) = (record.what, owed) {
            let likeness = (record.communicator, is_send, peer, bytes.checked_ilog2().unwrap_or(0));
            let alike = self.alike.entry(likeness).or_default();
            *alike += 1;
            if *alike > MAX_ALIKE {
                counts.left_out.add(1);
                return;
            }
        }
        if self.waiting.len() >= MAX_WAITING {
            counts.unsent.add(1);
            return;
        }
        self.waiting.push_back(record);
    }

    /// A new look begins.
    pub(crate) fn begin_poll(&mut self) {
        self.alike.clear();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Posts all that waits.
    ///
    /// # Errors
    /// When the agent could not be reached or has no place; what was not taken waits on.
    pub(crate) fn send(
        &mut self,
        connection: &mut Connection,
        profiler: &Profiler,
        worker: RankIdentity,
    ) -> Result<(), Unreachable> {
        let mut known = HashMap::new();
        while !self.waiting.is_empty() {
            let records = self.waiting.len().min(MAX_RECORDS_PER_POST);
            let mut json = "[".to_owned();
            let mut gone = 0;
            for record in self.waiting.range(..records) {
                let whose = known.entry(record.communicator).or_insert_with_key(|number| {
                    match Handle::from_number(*number) {
                        Some(Handle::Communicator(place)) => profiler.communicators.find(place),
                        _ => None,
                    }
                });
                match whose {
                    Some(whose) => record.append(&mut json, whose, worker),
                    None => gone += 1,
                }
            }
            json.push(']');
            let reported = u64::try_from(records).expect("at most 1,000") - gone;
            let counts = &profiler.counts;
            if reported > 0 {
                match connection.post(&json) {
                    Ok(200..=299) => counts.reported.add(reported),
                    // The agent's queue is full.
                    Ok(503) => return Err(Unreachable),
                    Ok(_) => counts.refused.add(reported),
                    Err(_) => return Err(Unreachable),
                }
            }
            counts.foreign.add(gone);
            self.waiting.drain(..records);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transfer(peer: i32) -> Record {
        let what = RecordPhase::Transfer { is_send: true, peer, bytes: 1 << 20 };
        Record { communicator: 1, number: 1, what, begun_ns: 0, lasted_ns: Some(1) }
    }

    #[test]
    fn transfers_that_are_alike_are_left_out_unless_their_end_is_owed() {
        let (mut outbox, counts) = (Outbox::default(), Counts::default());
        outbox.begin_poll();
        for _ in 0..MAX_ALIKE + 5 {
            outbox.add(transfer(1), false, &counts);
        }
        outbox.add(transfer(1), true, &counts);
        outbox.add(transfer(2), false, &counts);
        let kept = usize::try_from(MAX_ALIKE).unwrap() + 2;
        assert_eq!((outbox.waiting.len(), counts.left_out.get()), (kept, 5));
        outbox.begin_poll();
        outbox.add(transfer(1), false, &counts);
        assert_eq!(outbox.waiting.len(), kept + 1);
    }

    #[test]
    fn what_waits_is_bounded() {
        let (mut outbox, counts) = (Outbox::default(), Counts::default());
        (0..MAX_WAITING + 3).for_each(|_| outbox.add(transfer(1), true, &counts));
        assert_eq!((outbox.waiting.len(), counts.unsent.get()), (MAX_WAITING, 3));
    }
}
