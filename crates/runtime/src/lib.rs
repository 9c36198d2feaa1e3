#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

mod activity;
mod cold;
pub mod debug_output;
mod debug_streams;
mod description;
mod device;
mod endpoint;
mod index;
mod mirror;
mod opening;
mod options;
mod problem;
#[allow(unsafe_code)]
mod process_hooks;
mod program_caches;
mod registered;
mod registry;
mod runtime;
mod session;
mod shared;
mod thread_slot;
mod tracker;
mod waiting;

pub use debug_streams::{MAX_SHOWN_CORES, OtherStreams, show_other_debug_streams};
pub use description::{DeviceDescription, MAX_DEVICES};
pub use device::Device;
pub use options::{Misread, Options, Regions};
pub use problem::{OnProblem, Problem, ProblemStep};
pub use program_caches::MAX_PROGRAM_CACHES;
pub use registered::{Counter, Gauge, Histogram, MAX_SERIES, RegisterError};
pub use registry::{Registration, Registry};
pub use runtime::Runtime;
pub use telltale_debug_stream::{Losses, StreamCounters};
pub use telltale_ledger::region::writer::RegionLayout;
pub use telltale_schema::chip::{ChipFacts, ChipIdentity};
pub use telltale_schema::memory::{MemoryKind, MemorySpace};
pub use telltale_wire::{KernelCache, Programs, Quota, RingBuffer, Throttling, Traffic};
