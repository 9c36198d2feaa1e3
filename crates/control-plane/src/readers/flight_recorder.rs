//! Dumps of PyTorch's Flight Recorder, as the pickles that it writes by itself or as JSON: the latest
//! operations of one rank, the same ones again in each dump until newer ones push them out.
//!
//! An operation is reported once at its start and once at its end. The file is the dump of the
//! rank whose number is the last one in its name, as PyTorch names its own (`…_rank_3.json`).

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::Deserialize;

use super::ReaderCounts;
use super::files::{self, DirectoryListing, Identity, Opened, read_whole};
use super::inspector::whole_us;
use super::owners::Owners;
use telltale_cluster::group::GroupId;
use telltale_cluster::intake::Sender;
use telltale_cluster::intake::entry::{EntryContent, MAX_MEMBERS_PER_GROUP, PostEntry};
use telltale_cluster::latency::record::{CollectiveRecord, OperationType, Stage, Waited};
use telltale_cluster::latency::{Collective, Direction};
use telltale_cluster::rank::Rank;

/// Operations of one rank that are known to be under way.
const MAX_UNDER_WAY: usize = 4096;
/// Ranks whose dumps are read.
const MAX_RANKS: usize = 1024;

/// When a file was written last, as the system says it, and how long it is.
type Written = (i64, i64, u64);

/// What has been reported of each rank.
#[derive(Debug, Default)]
pub(super) struct Dumps {
    listing: DirectoryListing,
    /// When each file was written last, as the system says it, and how long it was.
    seen: BTreeMap<Identity, Written>,
    ranks: BTreeMap<Rank, DumpProgress>,
    /// The same of dumps that may be anybody's, which change nothing of the workers'.
    unverified: BTreeMap<Rank, DumpProgress>,
}

#[derive(Debug, Default)]
struct DumpProgress {
    /// Operations with a smaller number have been reported.
    next: u64,
    /// Those of them that had not ended.
    under_way: BTreeSet<u64>,
}

#[derive(Debug, Deserialize)]
struct Dump {
    #[serde(default)]
    pg_config: BTreeMap<String, GroupConfiguration>,
    entries: Vec<Operated>,
}

#[derive(Debug, Deserialize)]
struct GroupConfiguration {
    name: String,
    /// A list in a string: `"[0, 1]"`.
    ranks: String,
}

#[derive(Debug, Deserialize)]
struct Operated {
    record_id: u64,
    /// Its name and its description.
    process_group: Vec<String>,
    /// How many collectives, and how many transfers, the group has begun with this one.
    #[serde(default)]
    collective_seq_id: u64,
    #[serde(default)]
    p2p_seq_id: u64,
    profiling_name: String,
    state: String,
    /// Whether the library has done with it.
    #[serde(default)]
    retired: bool,
    #[serde(default)]
    input_sizes: Vec<Vec<u64>>,
    #[serde(default)]
    input_dtypes: Vec<String>,
    time_created_ns: Option<i64>,
    time_discovered_completed_ns: Option<i64>,
    duration_ms: Option<f64>,
}

impl Dump {
    /// JSON begins with a brace, which no pickle does.
    fn parse(bytes: &[u8]) -> Option<Self> {
        match bytes.first() {
            Some(b'{') => serde_json::from_slice(bytes).ok(),
            _ => telltale_pickle::from_slice(bytes).ok(),
        }
    }
}

impl Dumps {
    /// What comes from now on is of new processes, which count from nothing; what is there is not
    /// theirs.
    pub(super) fn restart(&mut self, path: &Path, owners: &mut Owners, counts: &mut ReaderCounts) {
        self.ranks.clear();
        self.unverified.clear();
        let named = self.listing.poll(path, owners, counts);
        let there = named.filter_map(|named| named.open(owners));
        // What was seen stays so: while no worker runs, its user's files are not distinguished from others'.
        self.seen.extend(there.map(|opened| state(&opened.status)));
    }

    /// Reads the dumps that were written since the last poll, and gives `put` what is new in them, and
    /// whether it is evidence.
    pub(super) fn poll(
        &mut self,
        path: &Path,
        owners: &mut Owners,
        counts: &mut ReaderCounts,
        mut put: impl FnMut(PostEntry, Sender),
    ) {
        let before = std::mem::take(&mut self.seen);
        let named = self.listing.poll(path, owners, counts);
        let opened = named.filter_map(|named| named.open(owners));
        for Opened { path, file, status, sender } in opened {
            let (identity, written) = state(&status);
            self.seen.insert(identity, written);
            if before.get(&identity) == Some(&written) {
                continue;
            }
            let Some(rank) = path.file_name().and_then(rank_in) else {
                counts.malformed += 1;
                continue;
            };
            let Some(bytes) = read_whole(file, counts) else { continue };
            let ranks = match sender {
                Sender::Verified => &mut self.ranks,
                Sender::Unverified => &mut self.unverified,
            };
            match Dump::parse(&bytes) {
                Some(dump) => take(ranks, rank, dump, counts, |entry| put(entry, sender)),
                // It may be half written; the next poll has all of it.
                None => counts.malformed += 1,
            }
        }
    }
}

/// Gives `put` what is new in a rank's dump.
fn take(
    ranks: &mut BTreeMap<Rank, DumpProgress>,
    rank: Rank,
    dump: Dump,
    counts: &mut ReaderCounts,
    mut put: impl FnMut(PostEntry),
) {
    if ranks.len() >= MAX_RANKS && !ranks.contains_key(&rank) {
        counts.malformed += 1;
        return;
    }
    let progress = ranks.entry(rank).or_default();
    // Numbers that restart are those of a new process.
    let newest = dump.entries.iter().map(|one| one.record_id).max().unwrap_or(0);
    if newest.saturating_add(1) < progress.next {
        *progress = DumpProgress::default();
    }
    let groups = groups(&dump.pg_config, counts);
    for (name, members) in &groups {
        let reported =
            EntryContent::Group { group: GroupId::of_name(name), members: members.clone() };
        put(PostEntry { epoch: None, reported });
    }
    for operated in &dump.entries {
        let is_over = operated.is_over();
        if !progress.is_news(operated.record_id, is_over) {
            continue;
        }
        match operated.record(rank, is_over, &groups) {
            Some(record) => {
                put(PostEntry { epoch: None, reported: EntryContent::Operation(record) });
            }
            None => counts.malformed += 1,
        }
    }
    progress.next = progress.next.max(newest.saturating_add(1));
}
impl DumpProgress {
    /// Whether an operation must be reported: it was not known, or has ended since.
    fn is_news(&mut self, number: u64, is_over: bool) -> bool {
        if is_over {
            return self.under_way.remove(&number) || number >= self.next;
        }
        let has_room = self.under_way.len() < MAX_UNDER_WAY;
        number >= self.next && has_room && self.under_way.insert(number)
    }
}

impl Operated {
    /// Whether it has ended. Gloo has operations `scheduled` for ever and only retires them
    /// (PyTorch 2.15); what NCCL retires and has not completed has timed out.
    fn is_over(&self) -> bool {
        // `nccl:`, `nccl2:` and `ncclx:` are of NCCL.
        self.state == "completed" || self.retired && !self.profiling_name.starts_with("nccl")
    }

    fn record(
        &self,
        rank: Rank,
        is_over: bool,
        groups: &BTreeMap<&str, Vec<Rank>>,
    ) -> Option<CollectiveRecord> {
        let name = self.process_group.first()?;
        // Gloo names no group's members (PyTorch 2.15): what is left is whose operation it is.
        let (context_rank, context_size) = match groups.get(name.as_str()) {
            Some(members) => (members.iter().position(|member| *member == rank)?, members.len()),
            None => (0, 1),
        };
        // "nccl:all_reduce", "gloo:send 1->2".
        let (_, operation) = self.profiling_name.split_once(':')?;
        let bytes = self.bytes();
        let operation = match transfer(operation) {
            Some((direction, remote_rank)) => {
                OperationType::Transfer { direction, remote_rank, bytes }
            }
            None => {
                OperationType::Collective { collective: Collective::named(operation), size: bytes }
            }
        };
        // What the dump no longer has is a gap in these numbers.
        let sequence = match operation {
            OperationType::Collective { .. } => self.collective_seq_id,
            OperationType::Transfer { .. } => self.p2p_seq_id,
        };
        // Neither end of a transfer goes on without the other, so its time holds the wait for its peer.
        let overlapped = matches!(operation, OperationType::Transfer { .. });
        Some(CollectiveRecord {
            operation,
            group: Some(GroupId::of_name(name)),
            context_rank: u32::try_from(context_rank).ok()?,
            global_rank: Some(rank),
            context_size: u32::try_from(context_size).ok()?,
            stage: if is_over { self.ended()? } else { Stage::Began },
            sequence: (sequence > 0).then_some(sequence),
            step: None,
            waited: Waited { overlapped, ..Waited::default() },
        })
    }

    /// It took what the device measured, or else from the call until the end was noticed, if it was;
    /// nothing where that is no time.
    fn ended(&self) -> Option<Stage> {
        let end_us = match (self.duration_ms, self.time_discovered_completed_ns) {
            (Some(measured_ms), _) => whole_us(measured_ms * 1000.0)?,
            (None, None | Some(0)) => return Some(Stage::EndedUntimed),
            (None, Some(noticed_ns)) => {
                let passed_ns = noticed_ns.checked_sub(self.time_created_ns?)?;
                (passed_ns >= 0).then_some(passed_ns / 1000)?
            }
        };
        Some(Stage::Ended { start_us: 0, end_us })
    }

    fn bytes(&self) -> u64 {
        let sizes = self.input_sizes.iter().zip(&self.input_dtypes);
        let bytes = sizes.map(|(dimensions, kind)| {
            let count = dimensions.iter().fold(1, |count: u64, one| count.saturating_mul(*one));
            count.saturating_mul(element_bytes(kind))
        });
        bytes.fold(0, u64::saturating_add)
    }
}

fn state(status: &Metadata) -> (Identity, Written) {
    (files::identity(status), (status.mtime(), status.mtime_nsec(), status.len()))
}

/// Groups' members by name, where there is one; those that cannot be read are counted and left out.
fn groups<'dump>(
    configurations: &'dump BTreeMap<String, GroupConfiguration>,
    counts: &mut ReaderCounts,
) -> BTreeMap<&'dump str, Vec<Rank>> {
    let mut groups = BTreeMap::new();
    for group in configurations.values().filter(|group| !group.name.is_empty()) {
        match serde_json::from_str::<Vec<u32>>(&group.ranks) {
            Ok(ranks) if !ranks.is_empty() && ranks.len() <= MAX_MEMBERS_PER_GROUP => {
                groups.insert(group.name.as_str(), ranks.into_iter().map(Rank).collect());
            }
            _ => counts.malformed += 1,
        }
    }
    groups
}

/// The direction and the other rank of `send 1->2` and `recv 3<-0`, each as its own rank has it.
fn transfer(operation: &str) -> Option<(Direction, u32)> {
    let (name, ranks) = operation.split_once(' ')?;
    let (direction, arrow) = match name {
        "send" => (Direction::Send, "->"),
        "recv" => (Direction::Receive, "<-"),
        _ => return None,
    };
    Some((direction, ranks.split_once(arrow)?.1.trim().parse().ok()?))
}

/// Bytes of one element, by PyTorch's name of its type (`c10/core/ScalarType.h`).
fn element_bytes(kind: &str) -> u64 {
    match kind {
        "Double" | "Long" | "ComplexFloat" | "UInt64" => 8,
        "Half" | "BFloat16" | "Short" | "UInt16" => 2,
        "Byte" | "Char" | "Bool" => 1,
        kind if kind.starts_with("Float8") => 1,
        "ComplexDouble" => 16,
        _ => 4,
    }
}

/// The last number in a name.
fn rank_in(name: &OsStr) -> Option<Rank> {
    let name = name.to_str()?;
    let mut numbers = name.split(|letter: char| !letter.is_ascii_digit());
    numbers.rfind(|digits| !digits.is_empty())?.parse().ok().map(Rank)
}
