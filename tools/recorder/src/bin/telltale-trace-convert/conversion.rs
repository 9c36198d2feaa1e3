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
        conversion.take(index, &record)?;
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

    fn take(&mut self, index: u64, record: &[u8; raw::RECORD_BYTES]) -> Result<(), ConvertError> {
        if self.full {
            self.outcome.beyond_limit += 1;
            return Ok(());
        }
        let address = word(record, raw::ADDRESS);
        let written = match half_word(record, raw::KIND) {
            0 => {
                self.outcome.unfinished += 1;
                return Ok(());
            }
            raw::KIND_ALLOCATE => self.allocate(record, address)?,
            raw::KIND_FREE => {
                let Some(id) = self.live.remove(&address) else {
                    self.outcome.orphan_frees += 1;
                    return Ok(());
                };
                self.free(record, id)?
            }
            kind => return Err(ConvertError::Kind { index, kind }),
        };
        match written {
            Ok(()) => Ok(()),
            Err(WriteError::Record {
                source: Violation::TooManyRecords | Violation::TooManyLive,
                ..
            }) => {
                self.full = true;
                self.outcome.beyond_limit += 1;
                Ok(())
            }
            Err(error) => Err(ConvertError::Write(error)),
        }
    }

    fn allocate(
        &mut self,
        record: &[u8; raw::RECORD_BYTES],
        address: u64,
    ) -> Result<Result<(), WriteError>, ConvertError> {
        if let Some(id) = self.live.remove(&address) {
            self.outcome.hidden_frees += 1;
            if let Err(error) = self.free(record, id)? {
                return Ok(Err(error));
            }
        }
        let (gap_ns, thread) = (self.gap_ns(record), self.thread(record)?);
        let size_bytes = word(record, raw::SIZE_BYTES);
        Ok(self.writer.allocate(gap_ns, thread, size_bytes).map(|id| {
            self.live.insert(address, id);
        }))
    }

    fn free(
        &mut self,
        record: &[u8; raw::RECORD_BYTES],
        id: u32,
    ) -> Result<Result<(), WriteError>, ConvertError> {
        let (gap_ns, thread) = (self.gap_ns(record), self.thread(record)?);
        Ok(self.writer.free(gap_ns, thread, id))
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
