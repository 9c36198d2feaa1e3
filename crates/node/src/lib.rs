//! Hardware sources, process discovery, reconciliation to a snapshot.
//!
//! This crate reads what a machine offers in files, directories and sockets. It never opens a
//! device node, though NVIDIA's library does where it is loaded, never writes what another process
//! owns, and believes nothing it reads.
#![deny(unsafe_code)]

pub mod access;
pub mod alerts;
pub mod clean;
pub mod clock;
pub mod collector;
pub mod configuration;
pub mod grpc;
pub mod hardware;
pub mod history;
pub mod http;
pub mod legacy;
pub mod observation;
pub mod otlp;
mod page;
pub mod parts;
mod patience;
mod processes;
pub mod reconcile;
mod report;
pub mod samples;
pub mod service;
pub mod tenstorrent;
pub mod tree;

pub use clean::{CleanReport, Cleaned, clean};
pub use collector::{CollectOptions, Collector, Round};
pub use hardware::{HardwareOptions, HostUse, NvmlUse};
pub use processes::{EndpointUse, PodOptions};
pub use tenstorrent::Sensors;
