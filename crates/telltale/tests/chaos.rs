//! The service among the worst of clients: a real `telltale serve` over an emulated machine, real
//! processes that come, fork, stop and are killed, endpoints that hang, ledgers that are damaged,
//! devices that vanish, a disk that is full, and the service itself killed repeatedly.
//!
//! Everything random follows from a seed, which is printed; `TELLTALE_CHAOS_SEED` runs it again.
//! `TELLTALE_LONG_TESTS=1` makes it 200 processes instead of 12.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)]

mod clients;
mod endpoints;
mod faults;
mod fixture;
mod foreign_clients;
mod forks;
mod random;
mod restart;
mod service;
mod truth;
mod watchers;
mod workload;

use std::sync::Mutex;

/// One at a time: each wants the whole machine, and measures.
static ALONE: Mutex<()> = Mutex::new(());
