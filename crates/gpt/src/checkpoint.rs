//! A training on disk: one file, replaced as a whole.
//!
//! The file is written beside its place, brought to the disk, and renamed: a process that is killed, or
//! finds the disk full, leaves the file before as it was. Numbers are little-endian:
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `TTGPT` and the version |
//! | 4 each | layers, heads, width, context, batch |
//! | 8 each | seed, digest of the text, steps |
//! | 12 for each number of each weight | the values of a weight, its first moments, its second |
//! | 8 | digest (rapidhash v3) of all before |

mod directory;

pub use directory::{CheckpointDirectory, DirectoryError, FILE_NAME, LoadError, StoreError};

use rapidhash::v3::rapidhash_v3;

use crate::config::Config;
use crate::weights::{Weight, Weights};

const MAGIC: [u8; 8] = *b"TTGPT\0\0\x01";
/// Bytes before the weights.
const HEADER_BYTES: usize = 8 + 5 * 4 + 3 * 8;
const DIGEST_BYTES: usize = 8;

/// What distinguishes one training from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// The sizes.
    pub config: Config,
    /// What its random numbers come from.
    pub seed: u64,
    /// The digest of what it learns from.
    pub text_digest: u64,
}

/// Everything that going on with a training takes.
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    /// Whose it is.
    pub identity: Identity,
    /// How many steps were done.
    pub steps: u64,
    /// The weights, in their order.
    pub weights: Vec<Moments>,
}

/// One weight with the state of its optimiser.
#[derive(Debug, Clone, PartialEq)]
pub struct Moments {
    /// Its values.
    pub value: Vec<f32>,
    /// Its first moments.
    pub first: Vec<f32>,
    /// Its second moments.
    pub second: Vec<f32>,
}

/// Why bytes are no checkpoint of a training.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// It is something else, or of another version.
    #[error("it does not begin as a checkpoint of this version does")]
    Magic,
    /// It is of another training.
    #[error("it was made with {what} {found}, and this training has {expected}")]
    Other {
        /// What differs.
        what: &'static str,
        /// What the checkpoint has.
        found: u64,
        /// What this training has.
        expected: u64,
    },
    /// It is of a training on another text.
    #[error("it was made with another text; the documentation that is learned has changed since")]
    OtherText,
    /// It is shorter or longer than the weights need.
    #[error("it has {found} bytes and should have {expected}")]
    Length {
        /// What it has.
        found: u64,
        /// What it should have.
        expected: u64,
    },
    /// Its content is not what was written.
    #[error("its content does not have the digest that it ends with, so it was damaged")]
    Digest,
}

// === impl Identity ===

impl Identity {
    /// The bytes of a checkpoint with these sizes.
    pub(crate) fn file_bytes(&self) -> u64 {
        let numbers: usize = Weights::of(&self.config).iter().map(Weight::element_count).sum();
        HEADER_BYTES as u64 + numbers as u64 * 12 + DIGEST_BYTES as u64
    }

    /// A number that distinguishes it from others.
    pub(crate) fn digest(&self) -> u64 {
        rapidhash_v3(&self.encode())
    }

    fn encode(&self) -> Vec<u8> {
        let Self { config, seed, text_digest } = self;
        let sizes = config.named().into_iter().flat_map(|(_, size)| size.to_le_bytes());
        sizes.chain(seed.to_le_bytes()).chain(text_digest.to_le_bytes()).collect()
    }

    /// Compares with what a checkpoint says of itself.
    fn check(&self, found: &[u8]) -> Result<(), DecodeError> {
        let mut fields = found;
        for (what, expected) in self.config.named() {
            let found = u64::from(u32::from_le_bytes(take(&mut fields)));
            let expected = u64::from(expected);
            if found != expected {
                return Err(DecodeError::Other { what, found, expected });
            }
        }
        let (seed, text) = (u64::from_le_bytes(take(&mut fields)), take(&mut fields));
        if seed != self.seed {
            return Err(DecodeError::Other { what: "seed", found: seed, expected: self.seed });
        }
        match u64::from_le_bytes(text) == self.text_digest {
            true => Ok(()),
            false => Err(DecodeError::OtherText),
        }
    }
}

// === impl Checkpoint ===

impl Checkpoint {
    /// The content of the file.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(self.identity.encode());
        bytes.extend(self.steps.to_le_bytes());
        for Moments { value, first, second } in &self.weights {
            let numbers = [value, first, second].into_iter().flatten();
            bytes.extend(numbers.flat_map(|number| number.to_le_bytes()));
        }
        let digest = rapidhash_v3(&bytes);
        bytes.extend(digest.to_le_bytes());
        bytes
    }

    /// The checkpoint of a training in the content of a file.
    ///
    /// # Errors
    /// When it is none, is damaged, or is another training's.
    pub fn decode(bytes: &[u8], identity: &Identity) -> Result<Self, DecodeError> {
        Self::check_header(bytes, identity)?;
        let (found, expected) = (bytes.len() as u64, identity.file_bytes());
        if found != expected {
            return Err(DecodeError::Length { found, expected });
        }
        let (content, digest) = bytes.split_at(bytes.len() - DIGEST_BYTES);
        if rapidhash_v3(content).to_le_bytes() != digest {
            return Err(DecodeError::Digest);
        }
        let (header, mut rest) = content.split_at(HEADER_BYTES);
        let steps = take(&mut &header[HEADER_BYTES - 8..]);
        let mut numbers = |weight: &Weight| {
            let (part, after) = rest.split_at(weight.element_count() * 4);
            rest = after;
            part.chunks_exact(4).map(|mut four| f32::from_le_bytes(take(&mut four))).collect()
        };
        let weights = Weights::of(&identity.config);
        let weights = weights.iter().map(|weight| Moments {
            value: numbers(weight),
            first: numbers(weight),
            second: numbers(weight),
        });
        let weights = weights.collect();
        Ok(Self { identity: *identity, steps: u64::from_le_bytes(steps), weights })
    }

    /// Whether a file that begins so is a checkpoint of the training: what is known before it
    /// is read as a whole.
    fn check_header(bytes: &[u8], identity: &Identity) -> Result<(), DecodeError> {
        let fields = bytes.strip_prefix(&MAGIC).ok_or(DecodeError::Magic)?;
        if bytes.len() < HEADER_BYTES {
            let (found, expected) = (bytes.len() as u64, identity.file_bytes());
            return Err(DecodeError::Length { found, expected });
        }
        identity.check(fields)
    }
}

/// The first bytes, which are then gone. The caller has made sure that they are there.
fn take<const N: usize>(bytes: &mut &[u8]) -> [u8; N] {
    let (first, rest) = bytes.split_first_chunk().expect("the length was checked");
    *bytes = rest;
    *first
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{Checkpoint, DecodeError, HEADER_BYTES, Identity, Moments};
    use crate::config::Config;
    use crate::weights::Weights;

    const CONFIG: Config = Config { layers: 1, heads: 1, width: 2, context: 3, batch: 1 };

    /// A small checkpoint after some steps.
    pub(crate) fn example(steps: u64) -> Checkpoint {
        let identity = Identity { config: CONFIG, seed: 5, text_digest: 6 };
        let mut next = steps as f32;
        let mut some = |count: usize| -> Vec<f32> {
            std::iter::repeat_with(|| (next += 0.25, next).1).take(count).collect()
        };
        let weights = Weights::of(&CONFIG);
        let weights = weights.iter().map(|weight| weight.element_count()).map(|count| Moments {
            value: some(count),
            first: some(count),
            second: some(count),
        });
        let weights = weights.collect();
        Checkpoint { identity, steps, weights }
    }

    #[test]
    fn what_is_written_is_read_bit_by_bit() {
        let mut checkpoint = example(9);
        checkpoint.weights[0].value[0] = -0.0;
        checkpoint.weights[0].first[1] = f32::from_bits(1);
        let bytes = checkpoint.encode();
        assert_eq!(bytes.len() as u64, checkpoint.identity.file_bytes());
        let read = Checkpoint::decode(&bytes, &checkpoint.identity).unwrap();
        assert_eq!(read, checkpoint);
        assert_eq!(read.encode(), bytes, "also the sign of a zero");
    }

    #[test]
    fn another_training_is_named() {
        let checkpoint = example(1);
        let (bytes, own) = (checkpoint.encode(), checkpoint.identity);
        let decode = |identity| Checkpoint::decode(&bytes, &identity).expect_err("another");
        let other = |what, found, expected| DecodeError::Other { what, found, expected };
        let config = Config { width: 4, ..CONFIG };
        assert_eq!(decode(Identity { config, ..own }), other("width", 2, 4));
        assert_eq!(decode(Identity { seed: 8, ..own }), other("seed", 5, 8));
        assert_eq!(decode(Identity { text_digest: 1, ..own }), DecodeError::OtherText);
    }

    #[test]
    fn damage_anywhere_is_noticed() {
        let checkpoint = example(1);
        let (bytes, own) = (checkpoint.encode(), checkpoint.identity);
        for place in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[place] ^= 0x10;
            assert!(Checkpoint::decode(&damaged, &own).is_err(), "byte {place}");
            assert!(Checkpoint::decode(&bytes[..place], &own).is_err(), "cut at {place}");
        }
        let mut longer = bytes.clone();
        longer.push(0);
        let length = DecodeError::Length { found: longer.len() as u64, expected: own.file_bytes() };
        assert_eq!(Checkpoint::decode(&longer, &own), Err(length));
        let mut damaged = bytes;
        damaged[HEADER_BYTES] ^= 1;
        assert_eq!(Checkpoint::decode(&damaged, &own), Err(DecodeError::Digest));
    }
}
