//! A software accelerator and a software machine.
//!
//! [`Machine`] is a directory tree with the files that the driver of a real machine shows;
//! every reader that takes `--root DIR` reads it as it reads `/`. Nothing here is measured from
//! hardware: names, formats, units and presence of the files are the driver's, the numbers in
//! them come from a small model. [`Chip`] has memories whose allocators give real addresses, are
//! used again and run out. [`Emulator`] joins them: devices that any process can open with
//! [`DeviceClient`], and that say exactly what is allocated on them. [`Accelerator`] is such a
//! device with what it does: programs whose kernels are C, compiled at first use.
#![deny(unsafe_code)]

mod accelerator;
mod allocator;
mod chip;
mod client;
mod command;
mod device;
mod emulator;
mod interrupts;
#[allow(unsafe_code)]
mod kernels;
mod machine;
mod protocol;
mod server;
mod socket;

pub use accelerator::{
    Accelerator, AcceleratorOptions, Buffer, BufferError, CompileError, CompiledProgram,
    GlobalSemaphoreError, KERNEL_TIMEOUT_VARIABLE, KernelUse, OpenAcceleratorError,
    PROGRAM_TIMEOUT_VARIABLE,
};
pub use chip::{AllocateError, Chip, FreeError, KindUsage, Usage};
pub use client::{DeviceClient, DeviceError, DeviceUsage, OpenDeviceError};
pub use command::{COMMAND_FORMS, EmulatorCommand, ParseTimedFaultError, TimedFault};
pub use device::ChipUsage;
pub use emulator::{Emulator, EmulatorOptions, EmulatorStartError, FaultError};
pub use interrupts::interrupt_waits;
pub use kernels::{
    AccessKind, BuildKernelError, CompilerError, ExecutionError, KernelCacheError, KernelCounters,
    KernelFault, KernelSourceError, KernelWait, LoadKernelError, MemoryPlace, MemoryUse, WaitsFor,
    check_compiler,
};
pub use machine::{
    AerSeverity, AttributeError, ChipDescription, ChipLoad, CreateError, DriverVersion, Fault,
    Garbage, InjectError, InjectedErrno, LinkSpeed, LinkWidth, MAX_FAULTS, MAX_LEFTOVERS, Machine,
    MachineKind, MachineOptions, ParseDriverVersionError, ParseFaultError, ParseMachineKindError,
    PartFailure, PidsFault, TreeError,
};
pub use protocol::DeviceActivity;
pub use server::ServerCounters;
