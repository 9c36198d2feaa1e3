//! From raw records to a trace: addresses become ids, clock readings become gaps.

use std::collections::HashMap;
use std::io::{self, Read, Write};

use telltale_trace::{
    Description, Reader, TraceError, TraceSummary, Violation, WriteError, Writer,
};

use crate::raw;

/// What a conversion gave, with everything that did not become a record counted.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Totals of the trace.
    pub(crate) summary: TraceSummary,
    /// Raw records that the dying program did not finish.
    pub(crate) unfinished: u64,
    /// Frees of addresses that were not live.
    pub(crate) orphan_frees: u64,
    /// Frees that must have happened, because the address was allocated again.
    pub(crate) hidden_frees: u64,
    /// Raw records after the trace was full.
    pub(crate) beyond_limit: u64,
    /// Events that the recorder dropped because its file was full.
    pub(crate) dropped: u64,
    /// Allocations that the recorder dropped because its address table was full.
    pub(crate) overflowed: u64,
}

/// Why there is no trace.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConvertError {
    /// The raw file cannot be read.
    #[error("cannot read the raw recording")]
    Input(#[source] io::Error),
    /// The raw file is something else.
    #[error("this is not a raw recording of this version of the recorder")]
    Magic,
    /// The raw file contradicts its own layout.
    #[error("raw record {index} has the unknown kind {kind}")]
    Kind {
        /// Index of the record.
        index: u64,
        /// The kind found.
        kind: u32,
    },
    /// The header claims more than any recorder writes.
    #[error("the header of the raw recording is damaged")]
    Header,
    /// More threads than a trace can number.
    #[error("the program used more than 65536 threads that allocate; a trace numbers no more")]
    Threads,
    /// The trace cannot be written.
    #[error("cannot make the trace")]
    Write(#[source] WriteError),
    /// The trace just written does not read back: a defect of this program.
    #[error("the trace just made does not read back")]
    ReadBack(#[source] TraceError),
}

/// Reads a raw recording and writes the trace.
pub(crate) fn convert(
    mut input: impl Read,
    mut output: impl Write,
    made_with: String,
    command: Option<String>,
) -> Result<Outcome, ConvertError> {
    let mut header = [0; raw::HEADER_BYTES];
    input.read_exact(&mut header).map_err(ConvertError::Input)?;
    if header[..raw::MAGIC.len()] != raw::MAGIC {
        return Err(ConvertError::Magic);
    }
    let command = match command {
        Some(command) => command,
        None => recorded_command(&header)?,
    };
    let description = Description {
        made_with,
        command,
        page_bytes: word(&header, raw::PAGE_BYTES),
        threshold_bytes: word(&header, raw::THRESHOLD_BYTES),
    };
    let mut conversion =
        Conversion::new(Writer::new(Vec::new(), description).map_err(ConvertError::Write)?);
    let begun = word(&header, raw::NEXT).min(word(&header, raw::CAPACITY));
    if begun > raw::MAX_RECORDS as u64 {
        return Err(ConvertError::Header);
    }
    for index in 0..begun {
        let mut record = [0; raw::RECORD_BYTES];
        input.read_exact(&mut record).map_err(ConvertError::Input)?;
        conversion.take_within_limits(index, &record)?;
    }
    let (trace, _) = conversion.writer.finish().map_err(ConvertError::Write)?;
    let summary = Reader::new(trace.as_slice())
        .and_then(Reader::summarize)
        .map_err(ConvertError::ReadBack)?;
    output
        .write_all(&trace)
        .and_then(|()| output.flush())
        .map_err(|source| ConvertError::Write(WriteError::Output { source }))?;
    Ok(Outcome {
        summary,
        dropped: word(&header, raw::DROPPED),
        overflowed: word(&header, raw::OVERFLOWED),
        ..conversion.outcome
    })
}

struct Conversion {
    writer: Writer<Vec<u8>>,
    /// Trace id of each live address. The writer's limit on live allocations bounds it.
    live: HashMap<u64, u32>,
    /// Number of each kernel thread, in order of appearance.
    threads: HashMap<u32, u16>,
    previous_ns: Option<u64>,
    full: bool,
    outcome: Outcome,
}

impl Conversion {
    fn new(writer: Writer<Vec<u8>>) -> Conversion {
        Conversion {
            writer,
            live: HashMap::new(),
            threads: HashMap::new(),
            previous_ns: None,
            full: false,
            outcome: Outcome::default(),
        }
    }

    /// Takes one record; from the first that exceeds a limit of traces on, only counts them.
    fn take_within_limits(
        &mut self,
        index: u64,
        record: &[u8; raw::RECORD_BYTES],
    ) -> Result<(), ConvertError> {
        if !self.full {
            match self.take(index, record) {
                Err(ConvertError::Write(WriteError::Record {
                    source: Violation::TooManyRecords | Violation::TooManyLive,
                    ..
                })) => self.full = true,
                other => return other,
            }
        }
        self.outcome.beyond_limit += 1;
        Ok(())
    }

    fn take(&mut self, index: u64, record: &[u8; raw::RECORD_BYTES]) -> Result<(), ConvertError> {
        let kind = half_word(record, raw::KIND);
        let address = word(record, raw::ADDRESS);
        let live = self.live.get(&address).copied();
        match (kind, live) {
            (0, _) => self.outcome.unfinished += 1,
            (raw::KIND_ALLOCATE, live) => {
                if let Some(id) = live {
                    self.outcome.hidden_frees += 1;
                    self.free(record, address, id)?;
                }
                self.allocate(record, address)?;
            }
            (raw::KIND_FREE, Some(id)) => self.free(record, address, id)?,
            (raw::KIND_FREE, None) => self.outcome.orphan_frees += 1,
            _ => return Err(ConvertError::Kind { index, kind }),
        }
        Ok(())
    }

    fn allocate(
        &mut self,
        record: &[u8; raw::RECORD_BYTES],
        address: u64,
    ) -> Result<(), ConvertError> {
        let (gap_ns, thread) = (self.gap_ns(record), self.thread(record)?);
        let size_bytes = word(record, raw::SIZE_BYTES);
        let id = self.writer.allocate(gap_ns, thread, size_bytes).map_err(ConvertError::Write)?;
        self.live.insert(address, id);
        Ok(())
    }

    fn free(
        &mut self,
        record: &[u8; raw::RECORD_BYTES],
        address: u64,
        id: u32,
    ) -> Result<(), ConvertError> {
        let (gap_ns, thread) = (self.gap_ns(record), self.thread(record)?);
        self.writer.free(gap_ns, thread, id).map_err(ConvertError::Write)?;
        self.live.remove(&address);
        Ok(())
    }

    /// Time since the record before. Threads claim their place before they read the clock, so
    /// neighbours can be a little out of order; time stands still then.
    fn gap_ns(&mut self, record: &[u8; raw::RECORD_BYTES]) -> u64 {
        let time_ns = word(record, raw::TIME_NS);
        let previous_ns = self.previous_ns.unwrap_or(time_ns);
        self.previous_ns = Some(previous_ns.max(time_ns));
        time_ns.saturating_sub(previous_ns)
    }

    fn thread(&mut self, record: &[u8; raw::RECORD_BYTES]) -> Result<u16, ConvertError> {
        let next = u16::try_from(self.threads.len());
        let id = half_word(record, raw::THREAD);
        match (self.threads.get(&id), next) {
            (Some(thread), _) => Ok(*thread),
            (None, Ok(next)) => {
                self.threads.insert(id, next);
                Ok(next)
            }
            (None, Err(_)) => Err(ConvertError::Threads),
        }
    }
}

/// The arguments, joined by spaces.
fn recorded_command(header: &[u8; raw::HEADER_BYTES]) -> Result<String, ConvertError> {
    let length = usize::try_from(word(header, raw::COMMAND_LENGTH));
    let length = length.ok().filter(|length| *length <= raw::MAX_COMMAND_BYTES);
    let bytes = &header[raw::COMMAND..][..length.ok_or(ConvertError::Header)?];
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(bytes);
    // Damaged text grows at most threefold and then still fails only the writer's own limit.
    Ok(String::from_utf8_lossy(bytes).replace('\0', " "))
}

fn word(bytes: &[u8], offset: usize) -> u64 {
    let (head, _) = bytes[offset..].split_first_chunk().expect("offsets lie in their page");
    u64::from_le_bytes(*head)
}

fn half_word(bytes: &[u8], offset: usize) -> u32 {
    let (head, _) = bytes[offset..].split_first_chunk().expect("offsets lie in their record");
    u32::from_le_bytes(*head)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop};
    use proptest::{prop_assert_eq, proptest};
    use telltale_trace::{Record, Trace, TraceEvent};

    use super::{ConvertError, Outcome, convert, raw};

    /// A raw record: kind, thread, time, address, size.
    type Raw = (u32, u32, u64, u64, u64);

    fn recording(records: &[Raw]) -> Vec<u8> {
        let mut bytes = vec![0; raw::HEADER_BYTES];
        bytes[..raw::MAGIC.len()].copy_from_slice(&raw::MAGIC);
        for (offset, value) in [
            (raw::CAPACITY, records.len()),
            (raw::NEXT, records.len() + 3),
            (raw::DROPPED, 3),
            (raw::OVERFLOWED, 2),
            (raw::COMMAND_LENGTH, 4),
        ] {
            bytes[offset..][..8].copy_from_slice(&(value as u64).to_le_bytes());
        }
        bytes[raw::COMMAND..][..4].copy_from_slice(b"a\0b\0");
        for (kind, thread, time_ns, address, size_bytes) in records {
            bytes.extend(kind.to_le_bytes());
            bytes.extend(thread.to_le_bytes());
            bytes
                .extend([time_ns, address, size_bytes].into_iter().flat_map(|it| it.to_le_bytes()));
        }
        bytes
    }

    fn converted(records: &[Raw]) -> Result<(Outcome, Trace), ConvertError> {
        let mut trace = Vec::new();
        let outcome = convert(recording(records).as_slice(), &mut trace, "test".into(), None)?;
        Ok((outcome, Trace::read(trace.as_slice()).expect("a converted trace is valid")))
    }

    #[test]
    fn addresses_threads_and_clocks_become_ids_numbers_and_gaps() {
        let records = [
            (2, 70, 1, 0x9000, 0),     // a free whose allocation was not recorded
            (1, 70, 1000, 0x1000, 50), // id 0, time begins
            (1, 99, 1010, 0x2000, 60), // id 1, another thread
            (0, 0, 0, 0, 0),           // killed while writing
            (2, 99, 1005, 0x1000, 0),  // its clock was read too early
            (1, 70, 1030, 0x2000, 70), // the free of id 1 was hidden
        ];
        let (outcome, trace) = converted(&records).unwrap();
        let step = |since_previous_ns, thread, event| Record { since_previous_ns, thread, event };
        assert_eq!(
            trace.records(),
            [
                step(0, 0, TraceEvent::Allocate { id: 0, size_bytes: 50 }),
                step(10, 1, TraceEvent::Allocate { id: 1, size_bytes: 60 }),
                step(0, 1, TraceEvent::Free { id: 0 }),
                step(20, 0, TraceEvent::Free { id: 1 }),
                step(0, 0, TraceEvent::Allocate { id: 0, size_bytes: 70 }),
            ]
        );
        assert_eq!(trace.header().description.command, "a b");
        let expected = Outcome {
            summary: trace.summary(),
            unfinished: 1,
            orphan_frees: 1,
            hidden_frees: 1,
            beyond_limit: 0,
            dropped: 3,
            overflowed: 2,
        };
        assert_eq!(outcome, expected);
    }

    #[test]
    fn more_live_blocks_than_a_trace_holds_end_it_early() {
        let live = u64::from(telltale_trace::limits::MAX_LIVE_ALLOCATIONS);
        let records: Vec<Raw> = (1..=live + 5).map(|n| (1, 1, n, n * 64, 64)).collect();
        let (outcome, _) = converted(&records).unwrap();
        assert_eq!((outcome.summary.records, outcome.beyond_limit), (live, 5));
    }

    proptest! {
        #[test]
        fn any_records_give_a_valid_trace(
            records in prop::collection::vec(
                (0u32..3, 0u32..5, 0u64..1000, 0u64..8, 1u64..1000), 0..300)
        ) {
            let (outcome, trace) = converted(&records).unwrap();
            let notes = outcome.unfinished + outcome.orphan_frees;
            let raw = records.len() as u64 + outcome.hidden_frees;
            prop_assert_eq!(trace.summary().records + notes, raw);
        }

        #[test]
        fn noise_never_panics(noise in prop::collection::vec(any::<u8>(), 0..9000), begun in any::<u16>()) {
            let mut bytes = recording(&[]);
            bytes[raw::NEXT..][..2].copy_from_slice(&begun.to_le_bytes());
            bytes[raw::CAPACITY..][..2].copy_from_slice(&begun.to_le_bytes());
            bytes.extend(noise);
            let mut trace = Vec::new();
            if convert(bytes.as_slice(), &mut trace, String::new(), None).is_ok() {
                Trace::read(trace.as_slice()).expect("a converted trace is valid");
            }
        }
    }
}
