//! A whole trace in memory, for those who replay it more than once.

use std::io::Read;

use crate::error::TraceError;
use crate::header::Header;
use crate::reader::Reader;
use crate::record::Record;
use crate::summary::TraceSummary;

/// A trace that was read to its end and found right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    header: Header,
    records: Vec<Record>,
    summary: TraceSummary,
}

impl Trace {
    /// Reads a whole trace.
    ///
    /// # Errors
    /// The first thing wrong with it; see [`TraceError`].
    pub fn read(input: impl Read) -> Result<Trace, TraceError> {
        let mut reader = Reader::new(input)?;
        let records = reader.by_ref().collect::<Result<Vec<Record>, TraceError>>()?;
        Ok(Trace { header: reader.header().clone(), summary: reader.summary_so_far(), records })
    }

    /// What the trace says about itself.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Every record, in order.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// What the records add up to.
    pub fn summary(&self) -> TraceSummary {
        self.summary
    }
}
