//! Hardware sources, process discovery, reconciliation to a snapshot.
//!
//! This crate reads what a machine offers in files, directories and sockets. It never opens a
//! device node, though NVIDIA's library does where it is loaded, never writes what another process
//! owns, and believes nothing it reads. It serves nothing and starts no runtime.
#![deny(unsafe_code)]

mod clean;
pub mod clock;
mod collector;
pub mod hardware;
mod health;
pub mod legacy;
pub mod limits;
mod observation;
mod processes;
mod processor_time;
mod rate;
pub mod reconcile;
mod report;
pub mod sockets;
pub mod source;
pub mod tenstorrent;
mod timeout;
mod traffic_rate;
pub mod tree;
mod usage;

pub use clean::{CleanReport, Cleaned};
pub use collector::{CollectOptions, Collector, Round, clean};
pub use hardware::{HardwareOptions, HostUse, NvmlUse};
pub use health::HealthOptions;
pub use processes::{
    Allocated, EndpointUse, KubeletError, ListAllocated, PodOptions, ProcessTexts,
    ProcessTextsError, process_texts,
};
pub use tenstorrent::Sensors;
