#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

// The derive names this crate as its users do.
extern crate self as telltale_program_cache;

pub mod argument;
pub mod arguments;
pub mod backend;
pub mod cache;
pub mod check;
pub mod cores;
pub mod descriptor;
pub mod dispatch;
pub mod flat;
pub mod key;
pub mod operand;
pub mod operation;
pub mod plan;
pub mod slots;
mod sync;
pub mod update;
mod waiting;

pub use argument::{Argument, DynamicIndex, GlobalSemaphoreIndex, OperandIndex};
pub use arguments::{ArgumentRun, RuntimeArguments};
pub use backend::Backend;
pub use cache::{
    CacheCounts, CacheMode, CacheOptions, CheckError, DispatchError, ModeError, PHASES, Phase,
    ProgramCache,
};
pub use check::{ArgumentLocation, Difference, SymbolError};
pub use cores::{CoreCoord, CoreRange, CoreRanges};
pub use descriptor::ProgramDescriptor;
pub use descriptor::circular_buffer::{CircularBufferDescriptor, CircularBufferFormat, Placement};
pub use descriptor::decoding::DecodeError;
pub use descriptor::encoding::KernelHead;
pub use descriptor::kernel::{
    ComputeConfig, DataMovementConfig, KernelConfig, KernelDescriptor, KernelSource,
    OptimisationLevel, ReaderConfig, Text, WriterConfig,
};
pub use descriptor::merge::MergeError;
pub use descriptor::part::Part;
pub use descriptor::semaphore::{CoreType, SemaphoreDescriptor};
pub use descriptor::validate::{InvalidProgram, ProgramLimits};
pub use dispatch::{Address, Dispatch, Operand};
pub use flat::{FlatArguments, FlatCircularBuffers, FlatDescriptor, FlatKernels, FlatProgram};
pub use key::{KEY_VERSION, Key, KeyEncoder, KeyKind, OwnedKey, ProgramKey};
pub use operand::{DataFormat, Layout, MemoryConfig, OperandSpec, Shape, Tile};
pub use operation::{
    Aliasing, CustomKey, CustomUpdate, FactoryError, Hybrid, OperandSpecs, Operation,
};
pub use plan::PatchPlan;
pub use slots::{ArgumentLayout, ProgramArguments, SlotIndex};
pub use update::{UpdateError, Updates};
pub use waiting::InterruptCheck;
