//! One process's accounting in shared memory: layout, writer, reader; foreign tt-metal regions.

pub mod region;
