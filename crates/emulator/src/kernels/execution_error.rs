//! Why a program did not run to its end.

use std::fmt;
use std::io;
use std::sync::Arc;

use super::fault::KernelFault;

/// Kernels that a hang is described with; the rest are counted.
pub(super) const MAX_WAITS: usize = 16;

/// Why a command was not carried out.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ExecutionError {
    /// An operation failed.
    #[error("operation {operation} failed")]
    Operation {
        /// What it is called.
        operation: &'static str,
        /// Why it failed.
        source: Arc<ExecutionError>,
    },
    /// An operation was not run, because it shares a buffer with one that had failed.
    #[error("operation {operation} was not run, because it uses a buffer of one that failed")]
    NotRun {
        /// What it is called.
        operation: &'static str,
        /// What failed.
        source: Arc<ExecutionError>,
    },
    /// A kernel did something wrong.
    #[error("kernel {kernel} on core ({x}, {y}) was stopped")]
    Kernel {
        /// The kernel's name.
        kernel: Arc<str>,
        /// The core's column.
        x: u16,
        /// The core's row.
        y: u16,
        /// What it did.
        source: KernelFault,
    },
    /// Every kernel that is not done waits for something that no other will do.
    #[error("the program hangs: {}", Listed(waits, *omitted))]
    Hang {
        /// Who waits for what; never empty.
        waits: Vec<KernelWait>,
        /// Kernels that wait beside these.
        omitted: usize,
    },
    /// A kernel has run for long without ending or waiting. It cannot be stopped, so the
    /// accelerator is of no use until it ends.
    #[error(
        "kernel {kernel} on core ({x}, {y}) has run for {seconds} s without ending or waiting, \
         and cannot be stopped: end the process, or wait if it is merely slow"
    )]
    Endless {
        /// The kernel's name.
        kernel: Arc<str>,
        /// The core's column.
        x: u16,
        /// The core's row.
        y: u16,
        /// For how long.
        seconds: u64,
    },
    /// The kernels of a program have run for long and wait for each other repeatedly. They
    /// cannot be stopped, so the accelerator is of no use until they end.
    #[error(
        "the program has run for {seconds} s without ending, and cannot be stopped; it is in kernel \
         {kernel} on core ({x}, {y}): end the process, or wait if it is merely slow"
    )]
    EndlessProgram {
        /// The name of the kernel that ran at that moment.
        kernel: Arc<str>,
        /// The core's column.
        x: u16,
        /// The core's row.
        y: u16,
        /// For how long.
        seconds: u64,
    },
    /// A kernel was stopped in a library, which may hold a lock there, of the allocator or of a
    /// file. It is unknown, so the accelerator's thread stays there, and the accelerator is of no
    /// use any more. Other threads may come to wait for the lock.
    #[error(
        "kernel {kernel} on core ({x}, {y}) was stopped in a library that it had called, so this \
         process may be damaged, and the accelerator does nothing more: start a new process"
    )]
    Damaged {
        /// The kernel's name.
        kernel: Arc<str>,
        /// The core's column.
        x: u16,
        /// The core's row.
        y: u16,
        /// What it did.
        source: KernelFault,
    },
    /// A circular buffer on top of a buffer has no place there.
    #[error("circular buffer {buffer} on core ({x}, {y}) cannot be placed on its buffer")]
    CircularBuffer {
        /// Its number.
        buffer: u8,
        /// The core's column.
        x: u16,
        /// The core's row.
        y: u16,
        /// Why.
        source: KernelFault,
    },
    /// Bytes that do not fit the buffer were written to it.
    #[error("{bytes} bytes were written to a buffer of {buffer_bytes}")]
    TooLong {
        /// How many were to be written.
        bytes: u64,
        /// How many the buffer has.
        buffer_bytes: u64,
    },
    /// The host has no memory for stacks or circular buffers.
    #[error("the host has no memory for a kernel: raise the process's limits")]
    HostMemory(#[source] Arc<io::Error>),
    /// The buffer is on another accelerator.
    #[error("the buffer is on another accelerator: copy it through the host")]
    OtherAccelerator,
    /// The waiting was interrupted ([`crate::interrupt_waits`]). What was asked for may still be done.
    #[error("waiting for the accelerator was interrupted")]
    Interrupted,
    /// The accelerator's thread is gone.
    #[error("the accelerator has ended: open it again")]
    Ended,
}

/// A kernel that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelWait {
    /// The kernel's name.
    pub kernel: Arc<str>,
    /// The core's column.
    pub x: u16,
    /// The core's row.
    pub y: u16,
    /// What for.
    pub waits_for: WaitsFor,
}

/// What a kernel waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitsFor {
    /// Room in a circular buffer.
    Room {
        /// Its number.
        buffer: u32,
        /// For how many pages.
        pages: u32,
        /// How many are filled.
        filled: u32,
    },
    /// Pages in a circular buffer.
    Pages {
        /// Its number.
        buffer: u32,
        /// How many.
        pages: u32,
        /// How many are filled.
        filled: u32,
    },
    /// A value of a semaphore of its core.
    Semaphore {
        /// Its number.
        semaphore: u32,
        /// The value.
        value: u32,
        /// Whether more will do.
        or_more: bool,
        /// The value now.
        now: u32,
    },
    /// A value of a global semaphore on its core.
    GlobalSemaphore {
        /// Its address.
        address: u32,
        /// The value.
        value: u32,
        /// Whether more will do.
        or_more: bool,
        /// The value now.
        now: u32,
    },
    /// Nothing: it could have gone on.
    Nothing,
}

/// Waits as one line.
struct Listed<'a>(&'a [KernelWait], usize);

impl ExecutionError {
    pub(super) fn host_memory(error: io::Error) -> Self {
        Self::HostMemory(Arc::new(error))
    }
}

impl fmt::Display for Listed<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, wait) in self.0.iter().enumerate() {
            let separator = if place == 0 { "" } else { "; " };
            write!(formatter, "{separator}{wait}")?;
        }
        match self.1 {
            0 => Ok(()),
            omitted => write!(formatter, "; and {omitted} more kernels wait"),
        }
    }
}

impl fmt::Display for KernelWait {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kernel, x, y, waits_for } = self;
        write!(formatter, "kernel {kernel} on core ({x}, {y}) waits for {waits_for}")
    }
}

impl fmt::Display for WaitsFor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Room { buffer, pages, filled } => write!(
                formatter,
                "room for {pages} pages in circular buffer {buffer}, where {filled} are filled"
            ),
            Self::Pages { buffer, pages, filled } => {
                write!(formatter, "{pages} pages in circular buffer {buffer}, which has {filled}")
            }
            Self::Semaphore { semaphore, value, or_more, now } => {
                let or_more = if *or_more { " or more" } else { "" };
                write!(formatter, "{value}{or_more} in semaphore {semaphore}, which is {now}")
            }
            Self::GlobalSemaphore { address, value, or_more, now } => {
                let or_more = if *or_more { " or more" } else { "" };
                write!(
                    formatter,
                    "{value}{or_more} in the global semaphore at {address:#x}, which is {now}"
                )
            }
            Self::Nothing => write!(formatter, "nothing"),
        }
    }
}
