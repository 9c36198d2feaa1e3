//! Why an accelerator could not be opened, or a program not be made ready on it.

use std::io;
use std::path::PathBuf;

use telltale_debug_stream::cores::NoCoresLeft;
use telltale_program_cache::CoreCoord;
use telltale_program_cache::slots::ArgumentsError;
use telltale_schema::memory::MemoryKind;

use super::memory::BufferError;
use crate::chip::AllocateError;
use crate::client::{DeviceError, OpenDeviceError};
use crate::kernels::{BuildKernelError, ExecutionError, KernelCacheError};

/// Why an accelerator could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenAcceleratorError {
    /// The device is not there.
    #[error(transparent)]
    Device(#[from] OpenDeviceError),
    /// It has fewer chips.
    #[error("device {ordinal} has no chip {chip}: it has {chips}")]
    NoSuchChip {
        /// The device.
        ordinal: u32,
        /// The chip asked for.
        chip: usize,
        /// How many there are.
        chips: usize,
    },
    /// The host refuses the address space that stands for the chip's memory.
    #[error("cannot reserve address space for the chip's memory: raise the limit (ulimit -v)")]
    Memory(#[source] io::Error),
    /// The directory of compiled kernels cannot be used.
    #[error(transparent)]
    KernelCache(#[from] KernelCacheError),
    /// The directory that kernels' paths start at is not there.
    #[error("cannot find the directory {path} that kernels' paths start at")]
    KernelRoot {
        /// The directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The process has no numbers left for the chip's cores.
    #[error(transparent)]
    LogicalCores(#[from] NoCoresLeft),
    /// No thread can be started.
    #[error("cannot start the accelerator's thread: raise the limit of processes")]
    Thread(#[source] io::Error),
    /// The thread cannot be protected from what kernels do wrong.
    #[error(
        "cannot handle the faults of kernels: raise the limits of memory and of pending signals"
    )]
    Protection(#[source] io::Error),
    /// The variable for how long a kernel or a program may run means nothing.
    #[error(
        "{variable} is {found:?}: set it to a number of seconds above 0, or to `off` for no limit, \
         or unset it"
    )]
    Timeout {
        /// Its name.
        variable: &'static str,
        /// Its value.
        found: String,
    },
}

/// Why there is no global semaphore.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GlobalSemaphoreError {
    /// There is no memory for it.
    #[error(transparent)]
    Allocate(#[from] BufferError),
    /// Its values cannot be set.
    #[error(transparent)]
    Write(#[from] ExecutionError),
}

/// Why a program cannot be run on an accelerator. Nothing of it remains on the chip.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// A kernel cannot be built.
    #[error("kernel {kernel}{} cannot be built", On(*core))]
    Kernel {
        /// Its name.
        kernel: String,
        /// The first core that it is for.
        core: Option<CoreCoord>,
        /// Why.
        #[source]
        source: BuildKernelError,
    },
    /// A kernel runs where there is no core.
    #[error(
        "kernel {kernel} is to run on core {core} (core_ranges), but the chip has {columns} \
         columns and {rows} rows"
    )]
    NoCore {
        /// Its name.
        kernel: String,
        /// The core.
        core: CoreCoord,
        /// The grid's width.
        columns: u16,
        /// The grid's height.
        rows: u16,
    },
    /// More kernels on one core than it can run.
    #[error("kernel {kernel} is one too many on core {core}: a core runs eight at a time")]
    TooManyKernels {
        /// Its name.
        kernel: String,
        /// The core.
        core: CoreCoord,
    },
    /// A core is given arguments for a kernel that it does not run.
    #[error(
        "kernel {kernel} has runtime_arguments for core {core}, which is not in its core_ranges"
    )]
    ArgumentsElsewhere {
        /// Its name.
        kernel: String,
        /// The core.
        core: CoreCoord,
    },
    /// The arguments cannot be laid out.
    #[error(transparent)]
    Arguments(#[from] ArgumentsError),
    /// A circular buffer is described wrongly.
    #[error("circular buffer {buffer}{}{} has a wrong {field}: {reason}", On(*core), Of(kernel))]
    CircularBuffer {
        /// Its index.
        buffer: u8,
        /// The field.
        field: &'static str,
        /// The core that it is about, else its first one.
        core: Option<CoreCoord>,
        /// A kernel that runs there.
        kernel: Option<String>,
        /// What is wrong.
        reason: &'static str,
    },
    /// The circular buffers do not fit the cores' memory.
    #[error(
        "the circular buffers on core {core}, where kernel {kernel} runs, need {needed_bytes} \
         bytes of its L1 (the largest total_bytes is that of buffer {buffer}): make them smaller"
    )]
    CircularBufferMemory {
        /// The largest one.
        buffer: u8,
        /// A core it is on.
        core: CoreCoord,
        /// A kernel that runs there.
        kernel: String,
        /// What all of them need on a core.
        needed_bytes: u64,
        /// What the allocator says.
        #[source]
        source: DeviceError,
    },
    /// A semaphore is described wrongly.
    #[error("semaphore {semaphore}{}{} has a wrong {field}: {reason}", On(*core), Of(kernel))]
    Semaphore {
        /// Its id.
        semaphore: u32,
        /// The field.
        field: &'static str,
        /// The core that it is about, else its first one.
        core: Option<CoreCoord>,
        /// A kernel that runs there.
        kernel: Option<String>,
        /// What is wrong.
        reason: &'static str,
    },
    /// There is no memory for kernels' code or semaphores.
    #[error("cannot allocate {} memory for the program: drop programs or buffers", kind.name())]
    Memory {
        /// Which memory.
        kind: MemoryKind,
        /// What the allocator says.
        #[source]
        source: DeviceError,
    },
}

impl CompileError {
    /// How many bytes of the chip's memory were asked for in vain; none if something else is wrong.
    #[must_use]
    pub fn lacking_bytes(&self) -> Option<u64> {
        match self {
            Self::CircularBufferMemory { source, .. } | Self::Memory { source, .. } => match source
            {
                DeviceError::Allocate(AllocateError::OutOfMemory { requested_bytes, .. }) => {
                    Some(*requested_bytes)
                }
                _ => None,
            },
            _ => None,
        }
    }
}

/// " on core …" where there is one.
struct On(Option<CoreCoord>);

impl std::fmt::Display for On {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(core) => write!(formatter, " on core {core}"),
            None => Ok(()),
        }
    }
}

/// " of kernel …" where there is one.
struct Of<'a>(&'a Option<String>);

impl std::fmt::Display for Of<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(kernel) => write!(formatter, " of kernel {kernel}"),
            None => Ok(()),
        }
    }
}
