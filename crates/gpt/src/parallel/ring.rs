//! Sums over all ranks, by passing parts of them round a ring: each rank sends and receives twice the
//! numbers that there are, however many ranks take part.
//!
//! Part `p` is added up by rank `p + 1`, then `p + 2` and so on, so that the order of additions, and
//! with it every bit, follows from the number of ranks. In the second round the finished parts are
//! passed on as they are.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use super::link::{Incoming, Link, LinkDeadline, LinkError, Outgoing, exchange};
use super::rendezvous::{self, JoinError, Joined};
use super::{Master, Observer, ParallelRank, STILL_TIMEOUT, Transfer, TransferRecord};
use crate::checkpoint::{Checkpoint, Identity};

const NUMBER_BYTES: usize = size_of::<f32>();
/// Before each part: which exchange of the ring this is, and how many bytes follow.
const HEAD_BYTES: usize = 16;

/// The ranks of one training, seen by one of them.
pub struct Ring {
    member: ParallelRank,
    neighbours: Option<Neighbours>,
    stop: Arc<AtomicBool>,
    observer: Option<Observer>,
    /// How many exchanges there were, which is the same on all ranks.
    exchanges: u64,
}

#[derive(Debug)]
struct Neighbours {
    next: Link,
    previous: Link,
}

/// Why there is no sum. The numbers are then neither what they were nor a sum.
#[derive(Debug, thiserror::Error)]
pub enum RingError {
    /// A neighbour did not take or give its part.
    #[error("adding up with the other ranks failed")]
    Link(#[source] LinkError),
    /// A neighbour does something else.
    #[error("rank {peer} is at another place in the training than this one, so nothing was added")]
    OutOfStep {
        /// Which.
        peer: u32,
    },
}

// === impl Ring ===

impl Ring {
    /// Joins the ranks of the training `identity`, of which this one may have a checkpoint. `stop`
    /// ends waiting, here and later.
    ///
    /// # Errors
    /// When not all ranks come, or something else is in the way.
    pub fn join(
        member: ParallelRank,
        master: &Master,
        identity: &Identity,
        held: Option<Checkpoint>,
        stop: Arc<AtomicBool>,
    ) -> Result<Joined, JoinError> {
        rendezvous::join(member, master, identity, held, stop)
    }

    pub(super) fn alone(stop: Arc<AtomicBool>) -> Self {
        let member = ParallelRank::alone();
        Self { member, neighbours: None, stop, observer: None, exchanges: 0 }
    }

    pub(super) fn new(
        member: ParallelRank,
        next: Link,
        previous: Link,
        stop: Arc<AtomicBool>,
    ) -> Self {
        let neighbours = Some(Neighbours { next, previous });
        Self { member, neighbours, stop, observer: None, exchanges: 0 }
    }

    /// Who this rank is.
    #[must_use]
    pub fn member(&self) -> ParallelRank {
        self.member
    }

    /// Has `observer` notified of each transfer from now on.
    pub fn observe(&mut self, observer: Observer) {
        self.observer = Some(observer);
    }

    /// Makes each number the sum of what all ranks have in its place. All must call this with as many
    /// numbers, and get the same bits.
    ///
    /// # Errors
    /// When a rank is gone, stands still, or is elsewhere.
    pub fn all_reduce(&mut self, numbers: &mut [f32]) -> Result<(), RingError> {
        if self.neighbours.is_none() {
            return Ok(());
        }
        let began = Instant::now();
        let transfer = Transfer::AllReduce { count: numbers.len() };
        self.tell(transfer, began, None);
        let (rank, ranks) = (self.member.rank() as usize, self.member.world_size() as usize);
        // Parts may differ by one number, and be empty.
        let length = numbers.len();
        let part = |number: usize| numbers_of_part(length, number % ranks, ranks);
        for round in 0..ranks - 1 {
            let mine = part(rank + ranks - round);
            let theirs = part(rank + 2 * ranks - round - 1);
            let received = self.exchange(&numbers[mine], theirs.len())?;
            for (number, addend) in numbers[theirs].iter_mut().zip(received) {
                *number += addend;
            }
        }
        for round in 0..ranks - 1 {
            let mine = part(rank + 1 + ranks - round);
            let theirs = part(rank + ranks - round);
            let received = self.exchange(&numbers[mine], theirs.len())?;
            numbers[theirs].copy_from_slice(&received);
        }
        self.tell(transfer, began, Some(Instant::now()));
        Ok(())
    }

    /// Passes bytes of one rank to all others; all know how many.
    pub(super) fn pass_round(
        &mut self,
        giver: u32,
        own: Option<Vec<u8>>,
        length: usize,
    ) -> Result<Vec<u8>, LinkError> {
        let limits = LinkDeadline { stop: &self.stop, still: STILL_TIMEOUT };
        let Some(Neighbours { next, previous }) = &self.neighbours else {
            return Ok(own.unwrap_or_default());
        };
        let bytes = match own {
            Some(bytes) => bytes,
            None => {
                let mut bytes = vec![0; length];
                previous.receive(&mut bytes, limits)?;
                bytes
            }
        };
        if next.peer() != giver {
            next.send(&bytes, limits)?;
        }
        Ok(bytes)
    }

    /// Sends numbers to the next rank and receives so many from the one before.
    fn exchange(&mut self, numbers: &[f32], count: usize) -> Result<Vec<f32>, RingError> {
        let member = self.member;
        let number = self.exchanges;
        self.exchanges += 1;
        let outgoing = encode(number, numbers);
        let mut received = vec![0; HEAD_BYTES + count * NUMBER_BYTES];
        let send = Transfer::Send { to: member.next(), bytes: outgoing.len() };
        let receive = Transfer::Receive { from: member.previous(), bytes: received.len() };
        let began = Instant::now();
        self.tell(send, began, None);
        self.tell(receive, began, None);
        let Some(Neighbours { next, previous }) = &self.neighbours else { return Ok(Vec::new()) };
        let limits = LinkDeadline { stop: &self.stop, still: STILL_TIMEOUT };
        let outgoing = Outgoing { link: next, bytes: &outgoing };
        let incoming = Incoming { link: previous, bytes: &mut received };
        let ends = exchange(outgoing, incoming, limits).map_err(RingError::Link)?;
        self.tell(send, began, Some(ends.sent));
        self.tell(receive, began, Some(ends.received));
        decode(number, &received).ok_or(RingError::OutOfStep { peer: member.previous() })
    }

    fn tell(&mut self, transfer: Transfer, began: Instant, ended: Option<Instant>) {
        if let Some(observer) = &mut self.observer {
            observer(&TransferRecord { transfer, began, ended });
        }
    }
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = formatter.debug_struct("Ring");
        shown.field("member", &self.member).field("neighbours", &self.neighbours);
        shown.field("exchanges", &self.exchanges).finish_non_exhaustive()
    }
}

/// The numbers of part `number` of so many.
fn numbers_of_part(length: usize, number: usize, parts: usize) -> std::ops::Range<usize> {
    let (each, more) = (length / parts, length % parts);
    let start = |number: usize| number * each + number.min(more);
    start(number)..start(number + 1)
}

fn encode(number: u64, numbers: &[f32]) -> Vec<u8> {
    let count = numbers.len() as u64;
    let mut bytes = Vec::with_capacity(HEAD_BYTES + numbers.len() * NUMBER_BYTES);
    bytes.extend(number.to_le_bytes());
    bytes.extend(count.to_le_bytes());
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    bytes
}

/// The numbers after the head of exchange `number`; none when it is another's.
fn decode(number: u64, bytes: &[u8]) -> Option<Vec<f32>> {
    let (head, numbers) = bytes.split_at_checked(HEAD_BYTES)?;
    let count = (numbers.len() / NUMBER_BYTES) as u64;
    let expected = [number.to_le_bytes(), count.to_le_bytes()].concat();
    let four = |bytes: &[u8]| bytes.first_chunk().copied().map(f32::from_le_bytes);
    (head == expected).then(|| numbers.chunks_exact(NUMBER_BYTES).filter_map(four).collect())
}

#[cfg(test)]
mod tests {
    use super::{decode, encode, numbers_of_part};

    #[test]
    fn parts_are_all_numbers_in_order() {
        for (length, parts) in [(0, 3), (2, 3), (3, 3), (10, 4), (11, 4), (1000, 7)] {
            let all: Vec<usize> =
                (0..parts).flat_map(|number| numbers_of_part(length, number, parts)).collect();
            assert_eq!(all, (0..length).collect::<Vec<_>>(), "{length} in {parts}");
        }
    }

    #[test]
    fn a_part_of_another_exchange_is_not_taken() {
        let numbers = [1.5, -0.0, f32::from_bits(1)];
        let bytes = encode(7, &numbers);
        let bits = |numbers: &[f32]| numbers.iter().map(|one| one.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&decode(7, &bytes).unwrap()), bits(&numbers));
        assert_eq!(decode(8, &bytes), None);
        assert_eq!(decode(7, &bytes[..bytes.len() - 4]), None);
        assert_eq!(decode(7, &bytes[..4]), None);
    }
}
