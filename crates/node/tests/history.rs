//! The history as its users see it: snapshots in at one end, series, past snapshots and reports out
//! at the other, whatever happens to the process, the disk and the clocks in between.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod damage;
mod faults;
mod full;
mod keeping;
mod killed;
mod machine;
mod size;
mod time;
