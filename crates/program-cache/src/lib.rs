//! Programs found again by what they are made of: descriptors, what an operation may know of its
//! operands, and the store of a program's arguments. Nothing here compiles or runs a program, and
//! nothing here knows a device.
#![forbid(unsafe_code)]

pub mod argument;
pub mod arguments;
pub mod cores;
pub mod descriptor;
pub mod operand;
pub mod slots;

pub use argument::{Argument, DynamicIndex, GlobalSemaphoreIndex, OperandIndex};
pub use arguments::{ArgumentRun, RuntimeArguments};
pub use cores::{CoreCoord, CoreRange, CoreRanges};
pub use descriptor::ProgramDescriptor;
pub use descriptor::circular_buffer::{CircularBufferDescriptor, CircularBufferFormat, Placement};
pub use descriptor::kernel::{
    ComputeConfig, DataMovementConfig, KernelConfig, KernelDescriptor, KernelSource,
    OptimisationLevel, ReaderConfig, Text, WriterConfig,
};
pub use descriptor::semaphore::{CoreType, SemaphoreDescriptor};
pub use operand::{DataFormat, Layout, MemoryConfig, OperandSpec, Shape, Tile};
pub use slots::{ArgumentLayout, ProgramArguments, SlotIndex};
