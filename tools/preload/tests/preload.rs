//! Programs under the preloaded library, and what their ledgers say they did, to the byte.
#![expect(clippy::unwrap_used, reason = "the shared pieces of these tests fail by panicking")]

mod cuda;
mod host;
mod python;
mod running;
