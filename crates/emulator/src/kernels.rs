//! Kernels: C sources that become code of this process and run on fibres.
//!
//! All unsafe code of the crate is below this module: memory that stands for a chip's, libraries
//! that are loaded, and the switch between Rust and C. What lies outside sees checked accesses,
//! errors and plain data.

mod build;
mod compiler;
mod context;
mod directives;
mod disk_cache;
mod elf;
mod execution_error;
mod fault;
mod floating_point;
mod includes;
mod loaded;
mod memory;
mod plan;
mod printing;
mod progress;
mod run;
mod source;
mod source_files;
mod stack;
mod timeouts;
mod trap;

pub use build::{BuildKernelError, KernelCounters};
pub use compiler::{CompilerError, check_compiler};
pub use disk_cache::KernelCacheError;
pub use execution_error::{ExecutionError, KernelWait, WaitsFor};
pub use fault::{AccessKind, KernelFault, MemoryPlace, MemoryUse};
pub use loaded::LoadKernelError;
pub use source::KernelSourceError;

pub(crate) use build::{BuiltKernel, KernelBuilder};
pub(crate) use context::{
    AccessibleMemory, BufferAccess, CIRCULAR_BUFFERS, GLOBAL_SEMAPHORE_BYTES, SEMAPHORES,
};
pub(crate) use loaded::LoadedKernel;
pub(crate) use memory::Memory;
pub(crate) use plan::{
    CircularBufferPlace, KERNELS_OF_CORE, Plan, PlannedCircularBuffer, PlannedCore, PlannedKernel,
    PlannedSemaphore, Words,
};
pub(crate) use printing::Printer;
pub(crate) use progress::{DeviceProgress, Mark, ProgramRun, ThreadSample};
pub(crate) use run::Executor;
pub(crate) use source_files::SourceFiles;
pub(crate) use timeouts::Timeouts;
