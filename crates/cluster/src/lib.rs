//! Coordinator and agent that keep a training job alive when a node fails.
//!
//! Both are machines without I/O: (state, now, input) → (state, outputs). They open no socket or file,
//! start no process, read no clock and draw no random number; the drivers beside them do, so that
//! thousands of seeded runs with crashes and partitions test what is really shipped.
#![forbid(unsafe_code)]

pub mod agent;
pub mod attend;
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
pub mod operator;
pub mod policy;
pub mod protocol;
mod random;
pub mod rank;
pub mod reach;
pub mod readers;
pub mod server;
pub mod store;
pub mod stored;
pub mod supervisor;
pub mod time;
pub mod tracking;
pub mod verdict;
pub mod view;
pub mod vitals;
pub mod work;
