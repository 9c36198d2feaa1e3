//! Reads a trace record by record and believes none of it.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::GzDecoder;

use crate::accounting::Accounting;
use crate::error::TraceError;
use crate::header::{Description, Header, MAGIC, VERSION};
use crate::limits::{
    MAX_ALLOCATION_BYTES, MAX_DURATION_NS, MAX_LIVE_ALLOCATIONS, MAX_RECORDS, MAX_TEXT_BYTES,
    MAX_UNIT_BYTES,
};
use crate::record::{Record, TraceEvent};
use crate::summary::TraceSummary;
use crate::varint::{Decoder, VarintStep};
use crate::writer::{TAG_FREE, TAG_THREAD};

/// Yields the records of one trace, each checked against those before.
///
/// After the last record the totals of the header, the checksum and the end of the input are
/// checked too, so a trace read to `None` without an error is whole. After an error it yields
/// `None`. Memory stays within 20 MiB whatever the input, and no input makes it panic.
pub struct Reader<R: Read> {
    input: BufReader<GzDecoder<BufReader<R>>>,
    byte: u64,
    header: Header,
    accounting: Accounting,
    previous_thread: u16,
    finished: bool,
}

impl<R: Read> Reader<R> {
    /// Reads and checks the header.
    ///
    /// # Errors
    /// Any [`TraceError`] but those about records: no gzip, no trace, an unknown version, a field
    /// over its limit.
    pub fn new(input: R) -> Result<Reader<R>, TraceError> {
        let input = BufReader::new(GzDecoder::new(BufReader::new(input)));
        let description = Description {
            made_with: String::new(),
            command: String::new(),
            page_bytes: 0,
            threshold_bytes: 0,
        };
        let mut reader = Reader {
            input,
            byte: 0,
            header: Header::new(description, &TraceSummary::default()),
            accounting: Accounting::default(),
            previous_thread: 0,
            finished: false,
        };
        reader.header = reader.read_header()?;
        Ok(reader)
    }

    /// What the trace says about itself. Its totals hold once the reader came to the end.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// What the records yielded so far add up to.
    pub fn summary_so_far(&self) -> TraceSummary {
        *self.accounting.totals()
    }

    /// Reads the rest and returns what the whole trace adds up to.
    ///
    /// # Errors
    /// The first error that iterating would meet.
    pub fn summarize(mut self) -> Result<TraceSummary, TraceError> {
        for record in self.by_ref() {
            record?;
        }
        Ok(self.summary_so_far())
    }

    fn read_header(&mut self) -> Result<Header, TraceError> {
        let mut magic = [0; MAGIC.len()];
        for byte in &mut magic {
            *byte = self.next_byte()?;
        }
        if magic != MAGIC {
            return Err(TraceError::Magic);
        }
        let found = self.number()?;
        if found != VERSION {
            return Err(TraceError::Version { found });
        }
        Ok(Header {
            description: Description {
                made_with: self.text("made_with")?,
                command: self.text("command")?,
                page_bytes: self.field("page_bytes", MAX_UNIT_BYTES)?,
                threshold_bytes: self.field("threshold_bytes", MAX_UNIT_BYTES)?,
            },
            duration_ns: self.field("duration_ns", MAX_DURATION_NS)?,
            records: self.field("records", MAX_RECORDS)?,
            allocations: self.field("allocations", MAX_RECORDS)?,
            peak_live_bytes: self
                .field("peak_live_bytes", MAX_ALLOCATION_BYTES * u64::from(MAX_LIVE_ALLOCATIONS))?,
        })
    }

    fn text(&mut self, field: &'static str) -> Result<String, TraceError> {
        let length = self.field(field, MAX_TEXT_BYTES)?;
        let bytes = (0..length).map(|_| self.next_byte()).collect::<Result<Vec<u8>, _>>()?;
        String::from_utf8(bytes).map_err(|_| TraceError::HeaderText { field })
    }

    fn field(&mut self, field: &'static str, limit: u64) -> Result<u64, TraceError> {
        let value = self.number()?;
        if value > limit {
            return Err(TraceError::HeaderLimit { field, value, limit });
        }
        Ok(value)
    }

    fn read_record(&mut self) -> Result<Record, TraceError> {
        let byte = self.byte;
        let record = self.accounting.totals().records;
        let impossible = |source| TraceError::Record { record, byte, source };
        let tag = self.number()?;
        if tag & !(TAG_FREE | TAG_THREAD) != 0 {
            return Err(TraceError::Tag { record, byte, tag });
        }
        let thread =
            if tag & TAG_THREAD == 0 { self.previous_thread } else { self.narrow::<u16>()? };
        let since_previous_ns = self.number()?;
        let event = if tag & TAG_FREE == 0 {
            let size_bytes = self.number()?;
            let accounted = self.accounting.allocate(since_previous_ns, thread, size_bytes);
            TraceEvent::Allocate { id: accounted.map_err(impossible)?, size_bytes }
        } else {
            let id = self.narrow::<u32>()?;
            self.accounting.free(since_previous_ns, thread, id).map_err(impossible)?;
            TraceEvent::Free { id }
        };
        self.previous_thread = thread;
        let totals = self.summary_so_far();
        self.at_most("duration_ns", self.header.duration_ns, totals.duration_ns)?;
        self.at_most("peak_live_bytes", self.header.peak_live_bytes, totals.peak_live_bytes)?;
        Ok(Record { since_previous_ns, thread, event })
    }

    /// Everything that can only be known after the last record.
    fn check_end(&mut self) -> Result<(), TraceError> {
        let totals = self.summary_so_far();
        let header = &self.header;
        for (field, header, counted) in [
            ("duration_ns", header.duration_ns, totals.duration_ns),
            ("allocations", header.allocations, totals.allocations),
            ("peak_live_bytes", header.peak_live_bytes, totals.peak_live_bytes),
        ] {
            if header != counted {
                return Err(TraceError::Total { field, header, counted, record: totals.records });
            }
        }
        // Reading past the last byte also makes the decompressor compare its checksum.
        let end = self.input.fill_buf().map(<[u8]>::is_empty);
        if !end.map_err(|source| self.input_error(source))? {
            return Err(TraceError::Trailing { byte: self.byte });
        }
        let end = self.input.get_mut().get_mut().fill_buf().map(<[u8]>::is_empty);
        if !end.map_err(|source| self.input_error(source))? {
            return Err(TraceError::Trailing { byte: self.byte });
        }
        Ok(())
    }

    fn at_most(&self, field: &'static str, header: u64, counted: u64) -> Result<(), TraceError> {
        if counted > header {
            let record = self.accounting.totals().records;
            return Err(TraceError::Total { field, header, counted, record });
        }
        Ok(())
    }

    fn narrow<T: TryFrom<u64>>(&mut self) -> Result<T, TraceError> {
        let (byte, record) = (self.byte, self.accounting.totals().records);
        T::try_from(self.number()?).map_err(|_| TraceError::Number { byte, record })
    }

    fn number(&mut self) -> Result<u64, TraceError> {
        let (byte, record) = (self.byte, self.accounting.totals().records);
        let mut decoder = Decoder::default();
        loop {
            match decoder.step(self.next_byte()?) {
                VarintStep::Done(value) => return Ok(value),
                VarintStep::More => {}
                VarintStep::Malformed => return Err(TraceError::Number { byte, record }),
            }
        }
    }

    fn next_byte(&mut self) -> Result<u8, TraceError> {
        let mut one = [0];
        self.input.read_exact(&mut one).map_err(|source| self.input_error(source))?;
        self.byte += 1;
        Ok(one[0])
    }

    fn input_error(&self, source: io::Error) -> TraceError {
        TraceError::Input { byte: self.byte, record: self.accounting.totals().records, source }
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Record, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.finished {
            return None;
        }
        if self.accounting.totals().records == self.header.records {
            self.finished = true;
            return self.check_end().err().map(Err);
        }
        let record = self.read_record();
        self.finished = record.is_err();
        Some(record)
    }
}
