//! The service beside real processes and clients of the allocation server.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test, the panic is the report")]

// What the collector's tests have too.
#[path = "../../collector/tests/collecting/bench.rs"]
#[allow(dead_code, reason = "the collector's tests use the rest")]
mod bench;
mod legacy;
mod pods;
mod serving;
#[path = "../../collector/tests/collecting/workload.rs"]
#[allow(dead_code, reason = "the collector's tests use the rest")]
mod workload;
