//! Writes a trace under the rules by which it is read.

use std::io::Write;

use flate2::{Compression, GzBuilder};

use crate::accounting::Accounting;
use crate::error::{Violation, WriteError};
use crate::header::{Description, Header};
use crate::record::TraceEvent;
use crate::varint;

/// Tag bit of a record that frees; without it the record allocates.
pub(crate) const TAG_FREE: u64 = 1;
/// Tag bit of a record on another thread than the record before; the thread follows.
pub(crate) const TAG_THREAD: u64 = 2;

/// Collects records and writes the whole trace in [`Writer::finish`].
///
/// The header comes first and holds totals, so the encoded records (a few bytes each, bounded by
/// [`crate::limits::MAX_RECORDS`]) wait in memory until then. Nothing is written if it is dropped.
pub struct Writer<W: Write> {
    output: W,
    description: Description,
    accounting: Accounting,
    body: Vec<u8>,
    previous_thread: u16,
}

impl<W: Write> Writer<W> {
    /// Begins a trace that goes to `output`.
    ///
    /// # Errors
    /// [`WriteError::Text`] or [`WriteError::Unit`] if the description exceeds a limit.
    pub fn new(output: W, description: Description) -> Result<Writer<W>, WriteError> {
        description.check()?;
        let accounting = Accounting::default();
        Ok(Writer { output, description, accounting, body: Vec::new(), previous_thread: 0 })
    }

    /// Adds an allocation and returns its id: the lowest that is not live.
    ///
    /// # Errors
    /// [`WriteError::Record`] if it cannot follow the records before; the writer is then as it
    /// was and can go on.
    pub fn allocate(
        &mut self,
        since_previous_ns: u64,
        thread: u16,
        size_bytes: u64,
    ) -> Result<u32, WriteError> {
        let accounted = self.accounting.allocate(since_previous_ns, thread, size_bytes);
        let id = accounted.map_err(|source| self.refused(source))?;
        self.append(since_previous_ns, thread, TraceEvent::Allocate { id, size_bytes });
        Ok(id)
    }

    /// Adds the free of a live allocation.
    ///
    /// # Errors
    /// As [`Writer::allocate`].
    pub fn free(&mut self, since_previous_ns: u64, thread: u16, id: u32) -> Result<(), WriteError> {
        let accounted = self.accounting.free(since_previous_ns, thread, id);
        accounted.map_err(|source| self.refused(source))?;
        self.append(since_previous_ns, thread, TraceEvent::Free { id });
        Ok(())
    }

    /// Writes header and records, compressed, and returns the destination and the header.
    ///
    /// # Errors
    /// [`WriteError::Output`] if the destination fails; what it then holds is no valid trace.
    pub fn finish(self) -> Result<(W, Header), WriteError> {
        let header = Header::new(self.description, self.accounting.totals());
        // No name and no time in the gzip header: equal records give equal files.
        let mut encoder = GzBuilder::new().mtime(0).write(self.output, Compression::best());
        let written = encoder
            .write_all(&header.encode())
            .and_then(|()| encoder.write_all(&self.body))
            .and_then(|()| encoder.finish())
            .and_then(|mut output| output.flush().map(|()| output));
        match written {
            Ok(output) => Ok((output, header)),
            Err(source) => Err(WriteError::Output { source }),
        }
    }

    fn refused(&self, source: Violation) -> WriteError {
        WriteError::Record { record: self.accounting.totals().records, source }
    }

    fn append(&mut self, since_previous_ns: u64, thread: u16, event: TraceEvent) {
        let (kind, operand) = match event {
            TraceEvent::Allocate { size_bytes, .. } => (0, size_bytes),
            TraceEvent::Free { id } => (TAG_FREE, u64::from(id)),
        };
        let moved = thread != self.previous_thread;
        varint::append(&mut self.body, kind | if moved { TAG_THREAD } else { 0 });
        if moved {
            varint::append(&mut self.body, u64::from(thread));
            self.previous_thread = thread;
        }
        varint::append(&mut self.body, since_previous_ns);
        varint::append(&mut self.body, operand);
    }
}
