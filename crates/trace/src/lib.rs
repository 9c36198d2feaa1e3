//! The allocation trace format: recorded by the preload recorder, replayed by the demo.
//!
//! A trace is what one real program did with its larger memory blocks: when it took one, how
//! large, when it gave it back, and on which thread. It holds no address. `docs/traces.md` gives
//! every byte.
//!
//! - [`Reader`] yields one [`Record`] after the other and checks each; [`Trace`] holds a whole
//!   trace that passed.
//! - [`Writer`] makes one, under the same rules.
//! - [`shipped()`] gives the two recorded traces that travel inside every binary.
//!
//! This crate opens no file and reads no clock: bytes come from a [`std::io::Read`] and go to a
//! [`std::io::Write`]. A trace is a stranger's file, so every number in it is bounded by
//! [`limits`], and memory grows with the records really present, never with what a header claims.

#![forbid(unsafe_code)]

mod accounting;
mod error;
mod header;
pub mod limits;
mod reader;
mod record;
mod shipped;
mod summary;
mod trace;
mod varint;
mod writer;

pub use error::{TraceError, Violation, WriteError};
pub use header::{Description, Header};
pub use reader::Reader;
pub use record::{Record, TraceEvent};
pub use shipped::{Shipped, shipped};
pub use summary::TraceSummary;
pub use trace::Trace;
pub use writer::Writer;
