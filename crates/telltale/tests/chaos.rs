//! The service in the worst of company: a real `telltale serve` over an emulated machine, real
//! processes that come, fork, stop and are killed, endpoints that hang, ledgers that are damaged,
//! devices that vanish, a disk that is full, and the service itself killed again and again.
//!
//! Everything random follows from a seed, which is printed; `TELLTALE_CHAOS_SEED` runs it again.
//! `TELLTALE_LONG_TESTS=1` makes it 200 processes instead of 12.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)]

mod company;
mod endpoints;
mod faults;
mod foreign_clients;
mod forks;
mod random;
mod restart;
mod scene;
mod service;
mod truth;
mod watchers;
mod workload;

use std::sync::Mutex;

/// One at a time: each wants the whole machine, and measures.
static ALONE: Mutex<()> = Mutex::new(());
