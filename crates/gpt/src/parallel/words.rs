//! What ranks say when they find each other, in bytes.
//!
//! All first words and answers have [`HELLO_BYTES`] bytes, little-endian, zeros at the end:
//!
//! | hello to rank 0 | hello to a neighbour | answer of rank 0 |
//! |---|---|---|
//! | 8 `TTRINGH` and the version | 8 `TTRINGN` and the version | 8 `TTRINGA` and the version |
//! | 8 epoch | 8 epoch | 4 0, or why it is refused |
//! | 8 digest of the training's identity | 8 the same | 4 1 if a checkpoint is passed round |
//! | 4 rank, 4 how many | 4 rank, 4 how many | 8 who passes it |
//! | 8 port | | 8 port of the next rank |
//! | 8 1 if it has a checkpoint | | 16 its address, IPv4 mapped into IPv6 |
//! | 8 its steps, 8 its digest | | |

use std::net::{IpAddr, SocketAddr};

use super::ParallelRank;

/// Bytes of all first words and answers.
pub(super) const HELLO_BYTES: usize = 64;
/// How the three kinds begin.
pub(super) const TO_MASTER: [u8; 8] = *b"TTRINGH\x01";
pub(super) const TO_NEIGHBOUR: [u8; 8] = *b"TTRINGN\x01";
const ANSWER: [u8; 8] = *b"TTRINGA\x01";

/// Why rank 0 does not take a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RankRefusal {
    /// It is of another life of the training.
    #[error("it runs another epoch")]
    Epoch,
    /// It counts other ranks.
    #[error("it has another number of ranks; start all with the same WORLD_SIZE")]
    WorldSize,
    /// Sizes, seed or text differ.
    #[error("it trains another model; start all with the same sizes and seed, and the same build")]
    Training,
}

/// What a rank says to rank 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) member: ParallelRank,
    pub(super) training: u64,
    pub(super) port: u16,
    pub(super) held: Option<RankCheckpoint>,
}

/// Which checkpoint a rank has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RankCheckpoint {
    pub(super) steps: u64,
    pub(super) digest: u64,
}

/// What rank 0 decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Round {
    pub(super) next: SocketAddr,
    pub(super) giver: Option<u32>,
}

pub(super) fn encode_hello(magic: [u8; 8], hello: &Hello) -> [u8; HELLO_BYTES] {
    let Hello { member, training, port, held } = *hello;
    let mut words = [0; HELLO_BYTES];
    words[..8].copy_from_slice(&magic);
    words[8..16].copy_from_slice(&member.epoch().to_le_bytes());
    words[16..24].copy_from_slice(&training.to_le_bytes());
    words[24..28].copy_from_slice(&member.rank().to_le_bytes());
    words[28..32].copy_from_slice(&member.world_size().to_le_bytes());
    words[32..40].copy_from_slice(&u64::from(port).to_le_bytes());
    if let Some(RankCheckpoint { steps, digest }) = held {
        words[40..48].copy_from_slice(&1_u64.to_le_bytes());
        words[48..56].copy_from_slice(&steps.to_le_bytes());
        words[56..].copy_from_slice(&digest.to_le_bytes());
    }
    words
}

pub(super) fn decode_hello(words: &[u8; HELLO_BYTES]) -> Option<Hello> {
    let [epoch, training, rank_and_size, port, has_held, steps, digest] =
        numbers(words, TO_MASTER)?;
    let rank = u32::try_from(rank_and_size & u64::from(u32::MAX)).ok()?;
    let world_size = u32::try_from(rank_and_size >> 32).ok()?;
    let member =
        ParallelRank::new(rank, world_size, epoch).ok().filter(|member| member.rank() > 0)?;
    let held = match has_held {
        0 => None,
        1 => Some(RankCheckpoint { steps, digest }),
        _ => return None,
    };
    Some(Hello { member, training, port: u16::try_from(port).ok()?, held })
}

pub(super) fn encode_answer(answer: Result<Round, RankRefusal>) -> [u8; HELLO_BYTES] {
    let mut words = [0; HELLO_BYTES];
    words[..8].copy_from_slice(&ANSWER);
    let refused: u32 = match answer {
        Ok(_) => 0,
        Err(RankRefusal::Epoch) => 1,
        Err(RankRefusal::WorldSize) => 2,
        Err(RankRefusal::Training) => 3,
    };
    words[8..12].copy_from_slice(&refused.to_le_bytes());
    if let Ok(Round { next, giver }) = answer {
        if let Some(giver) = giver {
            words[12..16].copy_from_slice(&1_u32.to_le_bytes());
            words[16..24].copy_from_slice(&u64::from(giver).to_le_bytes());
        }
        words[24..32].copy_from_slice(&u64::from(next.port()).to_le_bytes());
        let address = match next.ip() {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => address,
        };
        words[32..48].copy_from_slice(&address.octets());
    }
    words
}

pub(super) fn decode_answer(words: &[u8; HELLO_BYTES]) -> Option<Result<Round, RankRefusal>> {
    let [kind, giver, port, ..] = numbers(words, ANSWER)?;
    let (refused, has_giver) = (kind & u64::from(u32::MAX), kind >> 32);
    match refused {
        0 => {}
        1 => return Some(Err(RankRefusal::Epoch)),
        2 => return Some(Err(RankRefusal::WorldSize)),
        3 => return Some(Err(RankRefusal::Training)),
        _ => return None,
    }
    let address: [u8; 16] = *words[32..].first_chunk()?;
    let address = IpAddr::from(address).to_canonical();
    let giver = u32::try_from(giver).ok()?;
    let giver = match has_giver {
        0 => None,
        1 => Some(giver),
        _ => return None,
    };
    Some(Ok(Round { next: SocketAddr::new(address, u16::try_from(port).ok()?), giver }))
}

/// What follows `magic`, in eights of bytes.
fn numbers(words: &[u8; HELLO_BYTES], magic: [u8; 8]) -> Option<[u64; 7]> {
    let rest = words.strip_prefix(&magic)?;
    let mut numbers = [0; 7];
    for (number, bytes) in numbers.iter_mut().zip(rest.chunks_exact(8)) {
        *number = u64::from_le_bytes(*bytes.first_chunk()?);
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_understood_and_nothing_else() {
        let member = ParallelRank::new(2, 5, u64::MAX - 1).unwrap();
        let hello = Hello {
            member,
            training: 77,
            port: 65_535,
            held: Some(RankCheckpoint { steps: 9, digest: u64::MAX }),
        };
        let words = encode_hello(TO_MASTER, &hello);
        assert_eq!(decode_hello(&words), Some(hello));
        assert_eq!(decode_hello(&encode_hello(TO_NEIGHBOUR, &hello)), None);
        // Rank 0 calls no other; there is no rank 5; a checkpoint is there or not; a port is one.
        for (place, value) in [(24, 0), (24, 5), (28, 2), (40, 2), (34, 1)] {
            let mut wrong = words;
            wrong[place] = value;
            assert_eq!(decode_hello(&wrong), None, "{value} at {place}");
        }
        for next in ["127.0.0.1:7", "[fe80::1]:65535"] {
            for giver in [None, Some(3)] {
                let round = Round { next: next.parse().unwrap(), giver };
                assert_eq!(decode_answer(&encode_answer(Ok(round))), Some(Ok(round)));
            }
        }
        for refusal in [RankRefusal::Epoch, RankRefusal::WorldSize, RankRefusal::Training] {
            assert_eq!(decode_answer(&encode_answer(Err(refusal))), Some(Err(refusal)));
        }
        assert_eq!(decode_answer(&words), None);
    }
}
