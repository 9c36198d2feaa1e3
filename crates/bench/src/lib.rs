//! Benchmarks that print ours and the baseline from one run.
//!
//! Every value comes from repeats that alternate between the contenders, so that a slow phase of
//! the machine meets both. Nothing here asserts on time: the tests only run each body once and check
//! that what is timed also computes what it claims.
//!
//! `seed` stands for the original design throughout: tt-metal's first tracker, rebuilt from its
//! description, from which this project grew and against which it is measured.
//!
//! Unsafe code lives in [`seed`] alone, which calls the C++ baseline.
#![deny(unsafe_code)]

pub mod address;
pub mod client;
pub mod cluster;
pub mod cost;
pub mod endpoint;
pub mod experiments;
pub mod hangs;
pub mod hosts;
pub mod launch;
pub mod machine;
pub mod pinning;
pub mod preload;
pub mod program;
pub mod record;
pub mod rundir;
pub mod sample;
pub mod scrape;
pub mod screen;
#[allow(unsafe_code)]
pub mod seed;
pub mod serve;
mod served;
pub mod stream;
pub mod sweep;
pub mod table;
pub mod workers;
