//! One entry of a post to `/log_ccl`, and its JSON.
//!
//! The fields are the original's; `group`, `global_rank`, `epoch` and `sequence` are those that Telltale's agent
//! understands besides. `docs/cluster-clients.md` says what each means here.

use std::fmt::Write;

use crate::communicators::Communicator;
use crate::short_text::ShortText;

/// Something to tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record {
    /// The number of the communicator's handle.
    pub(crate) communicator: u64,
    /// Its number in there: of a collective, how many there were with it; of a transfer, one that grows.
    pub(crate) number: u64,
    pub(crate) what: RecordPhase,
    pub(crate) begun_ns: u64,
    /// `None` while it has not ended.
    pub(crate) lasted_ns: Option<u64>,
}

/// What began or ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordPhase {
    Transfer {
        is_send: bool,
        peer: i32,
        bytes: u64,
    },
    Collective {
        function: ShortText,
        algorithm: ShortText,
        datatype: ShortText,
        count: u64,
        bytes: u64,
        root: i32,
    },
}

/// What the process knows of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RankIdentity {
    /// `RANK`.
    pub(crate) rank: Option<u32>,
    /// `WORLD_SIZE`.
    pub(crate) world_size: Option<u32>,
    /// `TELLTALE_EPOCH`.
    pub(crate) epoch: Option<u64>,
}

impl Record {
    /// Appends it to `json`, which is an array that has been begun.
    pub(crate) fn append(&self, json: &mut String, whose: &Communicator, worker: RankIdentity) {
        json.push(if json.ends_with('[') { '{' } else { ',' });
        if json.ends_with(',') {
            json.push('{');
        }
        // Writing to a string does not fail.
        let _ = self.fields(json, whose, worker);
        json.push('}');
    }

    fn fields(
        &self,
        json: &mut String,
        whose: &Communicator,
        worker: RankIdentity,
    ) -> std::fmt::Result {
        match self.what {
            RecordPhase::Transfer { is_send, peer, bytes } => {
                let operation = if is_send { "send" } else { "recv" };
                write!(json, r#""opType":"{operation}","remoteRank":{peer},"bytes":{bytes}"#)?;
            }
            RecordPhase::Collective { function, algorithm, datatype, count, bytes, root } => {
                let [function, algorithm, datatype] =
                    [function, algorithm, datatype].map(ShortText::lower_case);
                write!(json, r#""opType":"{function}","algorithm":"{algorithm}""#)?;
                write!(json, r#","dataType":"{}""#, datatype.trim_start_matches("nccl"))?;
                write!(json, r#","count":{count},"bytes":{bytes},"rootRank":{root}"#)?;
            }
        }
        write!(json, r#","context_rank":{},"context_size":{}"#, whose.rank, whose.size)?;
        if let Some(group) = &whose.group {
            write!(json, r#","group":"{group}""#)?;
        }
        if let Some(rank) = worker.rank {
            write!(json, r#","global_rank":{rank}"#)?;
        }
        if let Some(epoch) = worker.epoch {
            write!(json, r#","epoch":{epoch}"#)?;
        }
        let begun_us = self.begun_ns / 1_000;
        let ended_us = self.lasted_ns.map_or(0, |lasted_ns| begun_us + lasted_ns.div_ceil(1_000));
        write!(json, r#","startTime":{begun_us},"endTime":{ended_us},"filename":"nccl""#)?;
        write!(json, r#","sequence":{},"finished":{}"#, self.number, self.lasted_ns.is_some())
    }
}

/// The size of one element of NCCL's data type of this name, in bytes; 1 for one that is not known, so
/// that sizes stay comparable among themselves.
pub(crate) fn element_bytes(datatype: ShortText) -> u64 {
    match datatype.lower_case().as_str() {
        "ncclfloat64" | "ncclint64" | "nccluint64" => 8,
        "ncclfloat32" | "ncclint32" | "nccluint32" => 4,
        "ncclfloat16" | "ncclbfloat16" => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> ShortText {
        ShortText::new(text.bytes())
    }

    #[test]
    fn a_record_is_json_with_the_fields_of_the_original() {
        let transfer = Record {
            communicator: 1,
            number: 8,
            what: RecordPhase::Transfer { is_send: false, peer: 3, bytes: 4096 },
            begun_ns: 1_234_567,
            lasted_ns: Some(2_001),
        };
        let collective = Record {
            communicator: 1,
            number: 9,
            what: RecordPhase::Collective {
                function: text("AllReduce"),
                algorithm: text("RING"),
                datatype: text("ncclFloat32"),
                count: 10,
                bytes: 40,
                root: -1,
            },
            begun_ns: 5_000,
            lasted_ns: None,
        };
        let whole = Communicator { group: None, rank: 2, size: 8 };
        let part = Communicator { group: Some("tp".to_owned()), rank: 1, size: 2 };
        let mut json = "[".to_owned();
        transfer.append(&mut json, &whole, RankIdentity::default());
        let worker = RankIdentity { rank: Some(5), world_size: Some(8), epoch: Some(4) };
        collective.append(&mut json, &part, worker);
        json.push(']');
        let expected = serde_json::json!([
            {
                "opType": "recv", "remoteRank": 3, "bytes": 4096, "context_rank": 2,
                "context_size": 8, "startTime": 1234, "endTime": 1237, "filename": "nccl",
                "sequence": 8, "finished": true,
            },
            {
                "opType": "allreduce", "algorithm": "ring", "dataType": "float32", "count": 10,
                "bytes": 40, "rootRank": -1, "context_rank": 1, "context_size": 2, "group": "tp",
                "global_rank": 5, "epoch": 4, "startTime": 5, "endTime": 0, "filename": "nccl",
                "sequence": 9, "finished": false,
            },
        ]);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap(), expected);
    }

    #[test]
    fn sizes_of_elements_are_those_of_the_data_types() {
        for (name, bytes) in [
            ("ncclInt8", 1),
            ("ncclBfloat16", 2),
            ("ncclFloat8e4m3", 1),
            ("ncclUint32", 4),
            ("ncclFloat64", 8),
            ("another", 1),
        ] {
            assert_eq!(element_bytes(text(name)), bytes, "{name}");
        }
    }
}
