//! The ledger as its users see it: writers, readers, directories, and what hostile hands do.
#![allow(clippy::unwrap_used, reason = "in a test, the panic is the report")]

mod counting;
mod directories;
mod exhausted;
mod forks;
mod fuzzed;
mod hostile;
mod killed;
mod machine;
mod model;
mod sweeping;
mod taken;
mod versions;
