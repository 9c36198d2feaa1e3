//! One post of `/log_ccl`: JSON becomes entries, each checked by itself.
//!
//! The fields are those of the original, which mixes two ways of writing them, and a few of ours, all
//! of which may be missing. A post that is no JSON is refused as a whole; an entry that makes no
//! sense is refused alone. Nothing of the JSON is kept.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, SeqAccess, Visitor};
use thiserror::Error;

use crate::epoch::Epoch;
use crate::group::GroupId;
use crate::latency::record::{CollectiveRecord, OperationType, Stage, Waited};
use crate::latency::{Collective, Direction};
use crate::rank::Rank;
use crate::work::MAX_SPAN_NAME_BYTES;

/// Entries that one post may hold.
pub const MAX_ENTRIES_PER_POST: usize = 16_384;
/// Members that one entry may name for a group.
pub const MAX_MEMBERS_PER_GROUP: usize = 65_536;

/// One entry of a post.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostEntry {
    /// The epoch that its client says it is of.
    pub epoch: Option<Epoch>,
    /// What it reports.
    pub reported: EntryContent,
}

/// What an entry reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryContent {
    /// An operation began or ended.
    Operation(CollectiveRecord),
    /// A process group has these members, in the order of its ranks.
    Group {
        /// Which group.
        group: GroupId,
        /// The ranks in the whole job.
        members: Vec<Rank>,
    },
    /// A rank has computed in a training step.
    Computed {
        /// The rank in the whole job.
        rank: Rank,
        /// The training step.
        step: u64,
        /// Under which name.
        name: Box<str>,
        /// When it began, in microseconds on a clock that only grows.
        start_us: i64,
        /// When it ended.
        end_us: i64,
    },
    /// A rank has ended a training step.
    StepEnded {
        /// The rank in the whole job.
        rank: Rank,
        /// The training step.
        step: u64,
    },
    /// A rank does something slow on purpose, or has done it.
    Checkpoint {
        /// The rank in the whole job.
        rank: Rank,
        /// Whether it is over.
        finished: bool,
    },
}

/// What was in a post.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Post {
    /// The entries that make sense.
    pub entries: Vec<PostEntry>,
    /// How many do not.
    pub refused: usize,
    /// What is wrong with the first of them.
    pub first_refused: Option<EntryRefused>,
}

/// Why a post is refused as a whole.
#[derive(Debug, Error)]
pub enum PostRefused {
    /// It is not the JSON that it should be.
    #[error("the body is not one object, an array of objects, or an object in each line")]
    Malformed(#[source] serde_json::Error),
    /// There is nothing in it.
    #[error("the body is empty; send at least one object")]
    Empty,
}

/// Why an entry is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum EntryRefused {
    /// A field that it needs is missing.
    #[error("the field {0} is missing")]
    Missing(&'static str),
    /// A number is no whole number, or not one that the field can have.
    #[error("the number in the field {0} is none that it can have")]
    OutOfRange(&'static str),
}

impl Post {
    /// Reads the body of a post: one object, an array of objects, or objects in lines.
    ///
    /// # Errors
    /// When it is no such JSON, or holds more than [`MAX_ENTRIES_PER_POST`].
    pub fn parse(body: &[u8]) -> Result<Self, PostRefused> {
        let mut post = Self::default();
        let Some(first) = body.iter().find(|byte| !byte.is_ascii_whitespace()) else {
            return Err(PostRefused::Empty);
        };
        let outcome = if *first == b'[' { post.take_array(body) } else { post.take_lines(body) };
        outcome.map_err(PostRefused::Malformed)?;
        if post.entries.is_empty() && post.refused == 0 {
            return Err(PostRefused::Empty);
        }
        Ok(post)
    }

    fn take_array(&mut self, body: &[u8]) -> Result<(), serde_json::Error> {
        let mut json = serde_json::Deserializer::from_slice(body);
        Array(self).deserialize(&mut json)?;
        json.end()
    }

    fn take_lines(&mut self, body: &[u8]) -> Result<(), serde_json::Error> {
        for fields in serde_json::Deserializer::from_slice(body).into_iter::<Fields>() {
            self.take(fields?)?;
        }
        Ok(())
    }

    fn take(&mut self, fields: Fields) -> Result<(), serde_json::Error> {
        if self.entries.len() + self.refused >= MAX_ENTRIES_PER_POST {
            let text = format!("a post may have {MAX_ENTRIES_PER_POST} entries; send several");
            return Err(serde_json::Error::custom(text));
        }
        match fields.entry() {
            Ok(entry) => self.entries.push(entry),
            Err(reason) => {
                self.refused += 1;
                self.first_refused.get_or_insert(reason);
            }
        }
        Ok(())
    }
}

/// Reads an array into a post without an array in between.
struct Array<'post>(&'post mut Post);

impl<'json> DeserializeSeed<'json> for Array<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'json>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'json> Visitor<'json> for Array<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an array of objects")
    }

    fn visit_seq<A: SeqAccess<'json>>(self, mut objects: A) -> Result<(), A::Error> {
        while let Some(fields) = objects.next_element::<Fields>()? {
            self.0.take(fields).map_err(A::Error::custom)?;
        }
        Ok(())
    }
}

/// The fields of an entry that mean something here. The original's `algorithm`, `dataType`,
/// `rootRank`, `filename` and `timestamp` are ignored, as are unknown keys.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Fields {
    op_type: Option<RecordKind>,
    remote_rank: Option<WholeNumber>,
    bytes: Option<WholeNumber>,
    count: Option<WholeNumber>,
    #[serde(rename = "context_rank")]
    context_rank: Option<WholeNumber>,
    #[serde(rename = "context_size")]
    context_size: Option<WholeNumber>,
    start_time: Option<WholeNumber>,
    end_time: Option<WholeNumber>,
    finished: Option<bool>,
    sequence: Option<WholeNumber>,
    group: Option<GroupName>,
    epoch: Option<WholeNumber>,
    #[serde(rename = "global_rank")]
    global_rank: Option<WholeNumber>,
    ranks: Option<Ranks>,
    late: Option<bool>,
    overlapped: Option<bool>,
    step: Option<WholeNumber>,
    name: Option<SpanName>,
}

impl Fields {
    fn entry(self) -> Result<PostEntry, EntryRefused> {
        let epoch = optional(self.epoch, "epoch")?.map(Epoch::new);
        let reported = match self.op_type.as_ref().ok_or(EntryRefused::Missing("opType"))? {
            RecordKind::Transfer(direction) => {
                let direction = *direction;
                let remote_rank = needed(self.remote_rank, "remoteRank")?;
                let bytes = needed(self.bytes, "bytes")?;
                self.record(OperationType::Transfer { direction, remote_rank, bytes })?
            }
            RecordKind::Collective(collective) => {
                let collective = *collective;
                let size = optional(self.bytes, "bytes")?.or(optional(self.count, "count")?);
                self.record(OperationType::Collective { collective, size: size.unwrap_or(0) })?
            }
            RecordKind::Group => EntryContent::Group {
                group: self.group.and_then(|name| name.0).ok_or(EntryRefused::Missing("group"))?,
                members: self.ranks.ok_or(EntryRefused::Missing("ranks"))?.members()?,
            },
            RecordKind::Compute => EntryContent::Computed {
                rank: Rank(needed(self.global_rank, "global_rank")?),
                step: needed(self.step, "step")?,
                name: self
                    .name
                    .ok_or(EntryRefused::Missing("name"))?
                    .0
                    .ok_or(EntryRefused::OutOfRange("name"))?,
                start_us: needed(self.start_time, "startTime")?,
                end_us: needed(self.end_time, "endTime")?,
            },
            RecordKind::StepEnd => EntryContent::StepEnded {
                rank: Rank(needed(self.global_rank, "global_rank")?),
                step: needed(self.step, "step")?,
            },
            RecordKind::Checkpoint => EntryContent::Checkpoint {
                rank: Rank(needed(self.global_rank, "global_rank")?),
                finished: self.finished.unwrap_or(false),
            },
        };
        Ok(PostEntry { epoch, reported })
    }

    fn record(&self, operation: OperationType) -> Result<EntryContent, EntryRefused> {
        let stage = if self.finished.unwrap_or(false) {
            let start_us = needed(self.start_time, "startTime")?;
            Stage::Ended { start_us, end_us: needed(self.end_time, "endTime")? }
        } else {
            Stage::Began
        };
        Ok(EntryContent::Operation(CollectiveRecord {
            operation,
            group: self.group.and_then(|name| name.0),
            context_rank: needed(self.context_rank, "context_rank")?,
            global_rank: optional(self.global_rank, "global_rank")?.map(Rank),
            context_size: needed(self.context_size, "context_size")?,
            stage,
            sequence: optional(self.sequence, "sequence")?,
            step: optional(self.step, "step")?,
            waited: Waited {
                late: self.late.unwrap_or(false),
                overlapped: self.overlapped.unwrap_or(false),
            },
        }))
    }
}

fn optional<Number: TryFrom<i64>>(
    number: Option<WholeNumber>,
    field: &'static str,
) -> Result<Option<Number>, EntryRefused> {
    let out_of_range = EntryRefused::OutOfRange(field);
    let Some(WholeNumber(number)) = number else { return Ok(None) };
    let number = number.ok_or(out_of_range)?;
    Number::try_from(number).map(Some).map_err(|_| out_of_range)
}

fn needed<Number: TryFrom<i64>>(
    number: Option<WholeNumber>,
    field: &'static str,
) -> Result<Number, EntryRefused> {
    optional(number, field)?.ok_or(EntryRefused::Missing(field))
}

/// A number; nothing where it is not whole or does not fit, so that only its entry is refused.
#[derive(Debug, Clone, Copy)]
struct WholeNumber(Option<i64>);

/// What `opType` says.
#[derive(Debug, Clone, Copy)]
enum RecordKind {
    Transfer(Direction),
    Collective(Collective),
    Group,
    Checkpoint,
    Compute,
    StepEnd,
}

/// The name of a computation; nothing where it is empty or too long.
#[derive(Debug)]
struct SpanName(Option<Box<str>>);

/// A group's name or number; nothing where the name is empty or the number 0, which mean the group of
/// all ranks.
#[derive(Debug, Clone, Copy)]
struct GroupName(Option<GroupId>);

/// Ranks in the whole job.
#[derive(Debug)]
struct Ranks(Result<Vec<Rank>, EntryRefused>);

impl Ranks {
    fn members(self) -> Result<Vec<Rank>, EntryRefused> {
        self.0
    }
}

impl RecordKind {
    fn of(name: &str) -> Self {
        match name {
            "send" | "isend" => Self::Transfer(Direction::Send),
            "recv" | "irecv" => Self::Transfer(Direction::Receive),
            "group" => Self::Group,
            "checkpoint" => Self::Checkpoint,
            "compute" => Self::Compute,
            "step" => Self::StepEnd,
            _ => Self::Collective(Collective::named(name)),
        }
    }
}

impl<'json> Deserialize<'json> for RecordKind {
    fn deserialize<D: Deserializer<'json>>(json: D) -> Result<Self, D::Error> {
        struct Name;
        impl Visitor<'_> for Name {
            type Value = RecordKind;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("the name of an operation")
            }

            fn visit_str<E>(self, name: &str) -> Result<RecordKind, E> {
                Ok(RecordKind::of(name))
            }
        }
        json.deserialize_str(Name)
    }
}

impl<'json> Deserialize<'json> for SpanName {
    fn deserialize<D: Deserializer<'json>>(json: D) -> Result<Self, D::Error> {
        struct Name;
        impl Visitor<'_> for Name {
            type Value = SpanName;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("the name of a computation")
            }

            fn visit_str<E>(self, name: &str) -> Result<SpanName, E> {
                let fits = (1..=MAX_SPAN_NAME_BYTES).contains(&name.len());
                Ok(SpanName(fits.then(|| name.into())))
            }
        }
        json.deserialize_str(Name)
    }
}

impl<'json> Deserialize<'json> for GroupName {
    fn deserialize<D: Deserializer<'json>>(json: D) -> Result<Self, D::Error> {
        struct Name;
        impl Visitor<'_> for Name {
            type Value = GroupName;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("the name or the number of a group")
            }

            fn visit_str<E>(self, name: &str) -> Result<GroupName, E> {
                Ok(GroupName((!name.is_empty()).then(|| GroupId::of_name(name))))
            }

            fn visit_u64<E>(self, number: u64) -> Result<GroupName, E> {
                Ok(GroupName(Some(GroupId::new(number)).filter(|group| *group != GroupId::WORLD)))
            }
        }
        json.deserialize_any(Name)
    }
}

impl<'json> Deserialize<'json> for WholeNumber {
    fn deserialize<D: Deserializer<'json>>(json: D) -> Result<Self, D::Error> {
        struct Number;
        impl Visitor<'_> for Number {
            type Value = WholeNumber;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a number")
            }

            fn visit_i64<E>(self, number: i64) -> Result<WholeNumber, E> {
                Ok(WholeNumber(Some(number)))
            }

            fn visit_u64<E>(self, number: u64) -> Result<WholeNumber, E> {
                Ok(WholeNumber(i64::try_from(number).ok()))
            }

            fn visit_f64<E>(self, _: f64) -> Result<WholeNumber, E> {
                Ok(WholeNumber(None))
            }
        }
        json.deserialize_any(Number)
    }
}

impl<'json> Deserialize<'json> for Ranks {
    fn deserialize<D: Deserializer<'json>>(json: D) -> Result<Self, D::Error> {
        struct List;
        impl<'json> Visitor<'json> for List {
            type Value = Ranks;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an array of ranks")
            }

            fn visit_seq<A: SeqAccess<'json>>(self, mut list: A) -> Result<Ranks, A::Error> {
                let mut ranks = Vec::new();
                while let Some(rank) = list.next_element::<WholeNumber>()? {
                    let rank = rank.0.and_then(|rank| u32::try_from(rank).ok());
                    let Some(rank) = rank.filter(|_| ranks.len() < MAX_MEMBERS_PER_GROUP) else {
                        while list.next_element::<IgnoredAny>()?.is_some() {}
                        return Ok(Ranks(Err(EntryRefused::OutOfRange("ranks"))));
                    };
                    ranks.push(Rank(rank));
                }
                Ok(Ranks(Ok(ranks)))
            }
        }
        json.deserialize_seq(List)
    }
}

#[cfg(test)]
mod tests;
