//! What kernels print: from C's arguments to events of their core's debug stream.
//!
//! A print never waits and never ends a kernel: what cannot be recorded is counted, and a text in its
//! place says why. Nothing here yields to other kernels, so what a circular buffer holds stays as
//! it is while it is copied.

use std::borrow::Cow;
use std::ffi::c_char;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use telltale_debug_stream::{Dtype, MAX_PREFIX_BYTES, Publisher, TensorEvent};

use super::context::{CircularBuffer, Core};

/// How much of a printed text is kept.
const MAX_TEXT_BYTES: usize = 4_096;
/// A tile's numbers, and those from one of its rows to the next.
const TILE_NUMBERS: u32 = 32 * TILE_COLUMNS;
const TILE_COLUMNS: u32 = 32;

/// Where one core's prints go.
pub(crate) struct Printer {
    publisher: Publisher,
    /// The device's count of prints that could not be recorded.
    refused: Arc<AtomicU64>,
}

/// Which part of a circular buffer is printed; `telltale_part` of `kernel_print.h`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct PrintedPart {
    width: u32,
    row: u32,
    column: u32,
    rows: u32,
    columns: u32,
    page: u32,
    written: u32,
}

/// Where a part lies, in bytes from the start of its first page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bytes {
    rows: usize,
    columns: usize,
    first: usize,
    /// Of one row's numbers.
    row_bytes: usize,
    /// From one row to the next.
    stride: usize,
}

/// Why a print cannot be recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum PrintRefusal {
    #[error("there is no data type {0}")]
    Dtype(u32),
    #[error("this core has no circular buffer {0}")]
    NoBuffer(u32),
    #[error(
        "its pages of {page_bytes} bytes are printed as rows of {width} numbers, and the part from row {row}, \
         column {column} on has none or leaves its row; `.width` sets the numbers in a row"
    )]
    Empty { page_bytes: u32, width: u32, row: u32, column: u32 },
    #[error("circular buffer {buffer} has no page {page} that can be {access}; call {call} before")]
    NoPage { buffer: u32, page: u32, access: &'static str, call: &'static str },
    #[error(
        "it ends {end} bytes after the start of page {page} of circular buffer {buffer}, which \
         has {has} bytes from there that can be {access}"
    )]
    Outside { buffer: u32, page: u32, end: u64, has: u64, access: &'static str },
}

// === impl Printer ===

impl Printer {
    pub(crate) fn new(publisher: Publisher, refused: Arc<AtomicU64>) -> Self {
        Self { publisher, refused }
    }

    /// Where the presence of a reader is flagged; valid as long as this printer.
    pub(super) fn is_read_at(&self) -> *const bool {
        self.publisher.connected_at()
    }

    fn tensor(&self, prefix: &str, dtype: Dtype, shape: &[u64], data: &[u8]) {
        let event = TensorEvent { prefix, dtype: dtype.name(), shape, data, pipe: 0 };
        // What is lost, the stream counts.
        let _ = self.publisher.tensor(&event);
    }

    fn text(&self, prefix: &str, text: &str) {
        let _ = self.publisher.text(prefix, 0, text);
    }

    #[cold]
    fn refuse(&self, prefix: &str, reason: PrintRefusal) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        self.text(prefix, &format!("not printed: {reason}"));
    }
}

// === impl PrintedPart ===

impl PrintedPart {
    /// Numbers from one row to the next: as it says, a tile's if the pages are whole tiles, or else
    /// a page is one row.
    fn width(self, page_bytes: u32, element_bytes: usize) -> u32 {
        let numbers = page_bytes / u32::try_from(element_bytes).unwrap_or(u32::MAX);
        match self.width {
            0 if numbers.is_multiple_of(TILE_NUMBERS) => TILE_COLUMNS,
            0 => numbers,
            width => width,
        }
    }

    /// Where it lies in a buffer of pages of so many bytes; none if it has no numbers, or more
    /// bytes than can be.
    fn in_pages(self, page_bytes: u32, element_bytes: usize) -> Option<Bytes> {
        let whole = |number: u32| usize::try_from(number).ok();
        let width = self.width(page_bytes, element_bytes);
        let left = width.checked_sub(self.column)?;
        let columns = if self.columns == 0 { left } else { self.columns };
        let stride = whole(width)?.checked_mul(element_bytes)?;
        let rows = match self.rows {
            0 => whole(page_bytes)?.checked_div(stride)?.checked_sub(whole(self.row)?)?,
            rows => whole(rows)?,
        };
        if columns > left || columns == 0 || rows == 0 {
            return None;
        }
        let column_bytes = whole(self.column)?.checked_mul(element_bytes)?;
        let first = whole(self.row)?.checked_mul(stride)?.checked_add(column_bytes)?;
        let row_bytes = whole(columns)?.checked_mul(element_bytes)?;
        Some(Bytes { rows, columns: whole(columns)?, first, row_bytes, stride })
    }
}

impl Bytes {
    /// The end of its last row; none if no number is so large.
    fn end(&self) -> Option<usize> {
        let rows_before = (self.rows - 1).checked_mul(self.stride)?;
        rows_before.checked_add(self.first)?.checked_add(self.row_bytes)
    }

    /// Its numbers, taken from the `bytes` that begin with its first page.
    fn of(self, bytes: &[u8]) -> Cow<'_, [u8]> {
        if self.row_bytes == self.stride || self.rows == 1 {
            return Cow::Borrowed(&bytes[self.first..][..self.rows * self.row_bytes]);
        }
        let rows = bytes[self.first..].chunks(self.stride).take(self.rows);
        Cow::Owned(rows.flat_map(|row| &row[..self.row_bytes]).copied().collect())
    }
}

impl CircularBuffer {
    /// What of `part` it holds, and the part's rows and columns.
    fn printed(
        &self,
        number: u32,
        dtype: Dtype,
        part: PrintedPart,
    ) -> Result<(Cow<'_, [u8]>, [u64; 2]), PrintRefusal> {
        let page_bytes = self.page_bytes.get();
        let place = part.in_pages(page_bytes, dtype.element_bytes());
        let place = place.ok_or(PrintRefusal::Empty {
            page_bytes,
            width: part.width(page_bytes, dtype.element_bytes()),
            row: part.row,
            column: part.column,
        })?;
        let (start, pages, access, call) = match part.written {
            0 => (self.read_page.get(), self.filled(), "read", "cb_wait_front"),
            _ => (self.write_page.get(), self.room(), "written", "cb_reserve_back"),
        };
        // Pages that can be used may go on at the buffer's beginning; those that are printed at
        // once must lie one after the other.
        let behind = self.pages.get().saturating_sub(start);
        let pages = pages.min(behind).saturating_sub(part.page);
        if pages == 0 {
            return Err(PrintRefusal::NoPage { buffer: number, page: part.page, access, call });
        }
        let has = u64::from(pages) * u64::from(page_bytes);
        let end = place.end().and_then(|end| u64::try_from(end).ok()).unwrap_or(u64::MAX);
        if end > has {
            return Err(PrintRefusal::Outside {
                buffer: number,
                page: part.page,
                end,
                has,
                access,
            });
        }
        // Neither is larger than the buffer, which is in memory: page `part.page` is one of them.
        let [first, length] =
            [(u64::from(start) + u64::from(part.page)) * u64::from(page_bytes), has]
                .map(|bytes| usize::try_from(bytes).expect("no more than the buffer has"));
        // SAFETY: a buffer that is present has `pages` pages of `page_bytes` bytes from `base` on,
        // in memory that was zeros before kernels wrote to it, and `first + length` is not more
        // than all of them. Kernels of this thread alone write there, and none runs before the
        // print is over.
        let bytes = unsafe { slice::from_raw_parts(self.base.get().add(first), length) };
        let shape = [place.rows, place.columns].map(|size| size as u64);
        Ok((place.of(bytes), shape))
    }
}

// === The calls ===

/// # Safety
/// `prefix` and `text` point to bytes that end with a zero, or to as many as are kept: the kernel's
/// own memory is its author's business, as all C is.
pub(super) unsafe extern "C" fn text(core: &Core, prefix: *const c_char, text: *const c_char) {
    core.check_call();
    // SAFETY: this function's contract.
    let (prefix, text) =
        unsafe { (string(core, prefix, MAX_PREFIX_BYTES), string(core, text, MAX_TEXT_BYTES)) };
    core.printer().text(&prefix, &text);
}

/// # Safety
/// As [`text`].
pub(super) unsafe extern "C" fn scalar(core: &Core, prefix: *const c_char, dtype: u32, bits: u64) {
    core.check_call();
    // SAFETY: this function's contract.
    let prefix = unsafe { string(core, prefix, MAX_PREFIX_BYTES) };
    let printer = core.printer();
    match known(dtype) {
        Ok(dtype) => {
            printer.tensor(&prefix, dtype, &[], &bits.to_le_bytes()[..dtype.element_bytes()]);
        }
        Err(reason) => printer.refuse(&prefix, reason),
    }
}

/// # Safety
/// As [`text`]; `part` points to one.
pub(super) unsafe extern "C" fn tile(
    core: &Core,
    prefix: *const c_char,
    buffer: u32,
    dtype: u32,
    part: *const PrintedPart,
) {
    core.check_call();
    // SAFETY: this function's contract.
    let prefix = unsafe { string(core, prefix, MAX_PREFIX_BYTES) };
    // SAFETY: as above.
    let part = core.at_its_memory(|| unsafe { part.read() });
    let present = core.buffer(buffer).filter(|found| !found.base.get().is_null());
    let printed = present.ok_or(PrintRefusal::NoBuffer(buffer)).and_then(|found| {
        let dtype = known(dtype)?;
        Ok((dtype, found.printed(buffer, dtype, part)?))
    });
    match printed {
        Ok((dtype, (data, shape))) => core.printer().tensor(&prefix, dtype, &shape, &data),
        Err(reason) => core.printer().refuse(&prefix, reason),
    }
}

/// The data type of a number from C.
fn known(dtype: u32) -> Result<Dtype, PrintRefusal> {
    let found = usize::try_from(dtype).ok().and_then(|index| Dtype::ALL.get(index));
    found.copied().ok_or(PrintRefusal::Dtype(dtype))
}

/// The text at `text`, at most `kept` bytes of it.
///
/// # Safety
/// At `text` are `kept` bytes, or fewer that end with a zero, that stay as they are for `'print`.
unsafe fn string<'print>(core: &Core, text: *const c_char, kept: usize) -> Cow<'print, str> {
    let text = text.cast::<u8>();
    let length = (0..kept).take_while(|index| {
        // SAFETY: no byte behind a zero is checked, and none beyond `kept`.
        unsafe { *text.add(*index) != 0 }
    });
    let length = core.at_its_memory(|| length.count());
    // SAFETY: so many bytes were just found to be there.
    String::from_utf8_lossy(unsafe { slice::from_raw_parts(text, length) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_c_are_those_of_the_data_types() {
        let header = include_str!("kernel_print.h");
        let listed: Vec<&str> = header
            .lines()
            .filter_map(|line| line.strip_prefix("  TELLTALE_DTYPE_"))
            .map(|name| name.trim_end_matches(','))
            .collect();
        let all: Vec<&str> = Dtype::ALL.iter().map(|dtype| dtype.name()).collect();
        assert_eq!(listed, all);
    }

    #[test]
    fn a_page_that_is_no_tile_is_one_row() {
        let whole = PrintedPart::default();
        for (page_bytes, element_bytes, expected) in
            [(16, 4, (1, 4)), (256, 2, (1, 128)), (4_096, 2, (64, 32)), (2_048, 4, (1, 512))]
        {
            let found = whole.in_pages(page_bytes, element_bytes);
            assert_eq!(found.map(|found| (found.rows, found.columns)), Some(expected));
        }
        assert_eq!(whole.in_pages(4, 8), None, "no number fits");
    }

    #[test]
    fn a_part_is_what_is_left_of_a_tile_unless_it_says_otherwise() {
        let whole = PrintedPart::default();
        for (part, expected) in [
            (whole, Some((32, 32, 0, 4_096))),
            (PrintedPart { row: 30, ..whole }, Some((2, 32, 3_840, 4_096))),
            (PrintedPart { row: 1, column: 28, rows: 2, ..whole }, Some((2, 4, 240, 384))),
            (PrintedPart { width: 128, ..whole }, Some((8, 128, 0, 4_096))),
            (PrintedPart { width: 1_000, columns: 3, ..whole }, Some((1, 3, 0, 12))),
            (PrintedPart { rows: 40, ..whole }, Some((40, 32, 0, 5_120))),
            (PrintedPart { row: 32, ..whole }, None),
            (PrintedPart { row: 33, ..whole }, None),
            (PrintedPart { column: 32, ..whole }, None),
            (PrintedPart { column: 33, columns: 1, ..whole }, None),
            (PrintedPart { column: 1, columns: 32, ..whole }, None),
            (PrintedPart { width: 1_025, ..whole }, None),
        ] {
            let found = part.in_pages(4_096, 4);
            let found =
                found.map(|found| (found.rows, found.columns, found.first, found.end().unwrap()));
            assert_eq!(found, expected, "{part:?}");
        }
        let most = u32::MAX;
        let endless = PrintedPart { width: most, row: most, rows: most, ..whole };
        assert!(endless.in_pages(4_096, 8).is_none_or(|found| found.end().is_none()));
    }
}
