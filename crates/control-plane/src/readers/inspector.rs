//! A line of the NCCL Inspector: one collective of one rank that has ended.
//!
//! The Inspector reports no transfer and no beginning, so neither links nor hangs are seen
//! this way. It knows a communicator's ranks only; the rank in the job comes from the process.

use serde::Deserialize;

use telltale_cluster::group::GroupId;
use telltale_cluster::intake::entry::{EntryContent, PostEntry};
use telltale_cluster::latency::Collective;
use telltale_cluster::latency::record::{
    CollectiveRecord, MAX_DURATION_US, OperationType, Stage, Waited,
};
use telltale_cluster::rank::Rank;

#[derive(Debug, Deserialize)]
struct InspectorLine {
    header: InspectorHeader,
    metadata: Metadata,
    coll_perf: Performance,
}

#[derive(Debug, Deserialize)]
struct InspectorHeader {
    /// The communicator's number, in hexadecimal.
    id: String,
    rank: u32,
    n_ranks: u32,
}

#[derive(Debug, Deserialize)]
struct Metadata {
    pid: u32,
}

#[derive(Debug, Deserialize)]
struct Performance {
    coll: String,
    coll_msg_size_bytes: u64,
    coll_exec_time_us: f64,
}

/// What the line reports; nothing where it makes no sense. `rank_of` knows whose a process is.
pub(super) fn entry(line: &[u8], rank_of: impl Fn(u32) -> Option<Rank>) -> Option<PostEntry> {
    let InspectorLine { header, metadata, coll_perf } = serde_json::from_slice(line).ok()?;
    let collective = Collective::named(&coll_perf.coll);
    let record = CollectiveRecord {
        operation: OperationType::Collective { collective, size: coll_perf.coll_msg_size_bytes },
        group: Some(GroupId::of_name(&header.id)),
        context_rank: header.rank,
        global_rank: rank_of(metadata.pid),
        context_size: header.n_ranks,
        stage: Stage::Ended { start_us: 0, end_us: whole_us(coll_perf.coll_exec_time_us)? },
        // The tool's number (`coll_sn`) counts each kind of collective by itself.
        sequence: None,
        step: None,
        waited: Waited::default(),
    };
    Some(PostEntry { epoch: None, reported: EntryContent::Operation(record) })
}

/// A number of microseconds, rounded; nothing where it is no duration that is believed.
pub(super) fn whole_us(duration_us: f64) -> Option<i64> {
    let longest_us = f64::from(u32::try_from(MAX_DURATION_US / 1000).ok()?) * 1000.0;
    if !(0.0..=longest_us).contains(&duration_us) {
        return None;
    }
    // The text of a whole number within a day is a whole number.
    format!("{duration_us:.0}").parse().ok()
}
