//! Coordinator, agent and detection: what keeps a training job alive when a node fails.
//!
//! All are machines without I/O: (state, now, input) → (state, outputs). They open no socket or file,
//! start no process, read no clock and draw no random number; `telltale-control-plane` does, so that
//! thousands of seeded runs with crashes and partitions test what is really shipped.
#![forbid(unsafe_code)]

pub mod agent;
pub mod coordinator;
pub mod detection;
pub mod epoch;
pub mod group;
pub mod incident;
pub mod intake;
pub mod latency;
pub mod lookout;
pub mod message;
pub mod node;
pub mod observation;
pub mod policy;
pub mod rank;
pub mod stored;
pub mod time;
pub mod tracking;
pub mod verdict;
pub mod vitals;
pub mod work;
