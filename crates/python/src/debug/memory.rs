//! An event's data, at an address that every library takes as it is.

/// Bytes that do not change while they are shared, at a multiple of 64: what libraries ask of memory that they take over.
#[derive(Debug, Clone)]
pub(super) struct Memory {
    lines: Vec<Line>,
    bytes: usize,
}

const LINE_BYTES: usize = 64;

#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Line([u8; LINE_BYTES]);

impl Memory {
    /// A copy of these bytes.
    pub(super) fn of(data: &[u8]) -> Self {
        let lines = data.chunks(LINE_BYTES).map(|chunk| {
            let mut line = Line([0; LINE_BYTES]);
            line.0[..chunk.len()].copy_from_slice(chunk);
            line
        });
        Self { lines: lines.collect(), bytes: data.len() }
    }

    /// Where they are.
    pub(super) fn address(&self) -> *const u8 {
        self.lines.as_ptr().cast()
    }

    /// Where they are, to be written there.
    pub(super) fn address_mut(&mut self) -> *mut u8 {
        self.lines.as_mut_ptr().cast()
    }

    /// Elements of so many bytes, a divisor of 64.
    pub(super) fn elements(&self, bytes: usize) -> impl Iterator<Item = &[u8]> {
        let count = self.bytes / bytes;
        self.lines.iter().flat_map(move |line| line.0.chunks_exact(bytes)).take(count)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.bytes
    }
}
