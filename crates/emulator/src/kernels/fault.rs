//! What a kernel can do wrong while it runs.

use std::fmt;

/// What a kernel did wrong. The numbers in `kernel_api.h` stand for the ones that the C side finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KernelFault {
    /// An argument was read that this core was not given.
    #[error("it reads argument {index}, and this core has {count}")]
    Argument {
        /// Which one.
        index: u32,
        /// How many there are.
        count: u32,
    },
    /// A common argument was read that the kernel was not given.
    #[error("it reads common argument {index}, and the kernel has {count}")]
    CommonArgument {
        /// Which one.
        index: u32,
        /// How many there are.
        count: u32,
    },
    /// The core has no such circular buffer.
    #[error("it uses circular buffer {buffer}, which this core does not have")]
    NoCircularBuffer {
        /// Which one.
        buffer: u32,
    },
    /// More pages at a time than the circular buffer has.
    #[error("it asks for {pages} pages at a time of circular buffer {buffer}, which has fewer")]
    TooManyPages {
        /// Which one.
        buffer: u32,
        /// How many.
        pages: u32,
    },
    /// Pages that do not lie one after the other.
    #[error(
        "it asks for {pages} pages of circular buffer {buffer} that would go beyond its end: \
         use counts that divide the buffer's pages"
    )]
    Wraps {
        /// Which one.
        buffer: u32,
        /// How many.
        pages: u32,
    },
    /// Pages were pushed that there was no room for.
    #[error("it pushes {pages} pages to circular buffer {buffer} without having reserved them")]
    NoRoom {
        /// Which one.
        buffer: u32,
        /// How many.
        pages: u32,
    },
    /// Pages were popped that were not there.
    #[error("it pops {pages} pages from circular buffer {buffer} that it has not waited for")]
    NoPages {
        /// Which one.
        buffer: u32,
        /// How many.
        pages: u32,
    },
    /// The kernel said so itself.
    #[error("it gave up with the number {number}")]
    GaveUp {
        /// What it said.
        number: u32,
    },
    /// No live buffer has this address.
    #[error(
        "it {access} address {address:#x}, where this process has no buffer: it was freed, or \
         the address is of another program"
    )]
    NoBuffer {
        /// What it did.
        access: AccessKind,
        /// The address.
        address: u32,
    },
    /// A page of another size than the buffer's.
    #[error(
        "it {access} pages of {page_bytes} bytes at address {address:#x}, where the buffer's \
         pages have {buffer_page_bytes}"
    )]
    PageSize {
        /// What it did.
        access: AccessKind,
        /// The address.
        address: u32,
        /// The kernel's page size.
        page_bytes: u32,
        /// The buffer's.
        buffer_page_bytes: u32,
    },
    /// Bytes beyond the end of a page or a buffer.
    #[error(
        "it {access} bytes {offset} to {} of the buffer at {address:#x}, which has \
         {buffer_bytes} bytes in pages of {page_bytes}",
        .offset.saturating_add(u64::from(*.bytes)).saturating_sub(1)
    )]
    OutsideBuffer {
        /// What it did.
        access: AccessKind,
        /// The address.
        address: u32,
        /// The first byte.
        offset: u64,
        /// How many.
        bytes: u32,
        /// How many the buffer has from that address on.
        buffer_bytes: u64,
        /// The buffer's page size.
        page_bytes: u32,
    },
    /// A core that the chip does not have.
    #[error("it uses a semaphore of core ({x}, {y}), which the chip does not have")]
    NoCore {
        /// The column.
        x: u32,
        /// The row.
        y: u32,
    },
    /// A semaphore that a core does not have.
    #[error("it uses semaphore {semaphore} of core ({x}, {y}), which has no such semaphore")]
    NoSemaphore {
        /// Which one.
        semaphore: u32,
        /// The core's column.
        x: u32,
        /// The core's row.
        y: u32,
    },
    /// Its own C used memory that it does not have.
    #[error("it {used} memory {place}")]
    Memory {
        /// What it did.
        used: MemoryUse,
        /// Where.
        place: MemoryPlace,
    },
    /// It called too deep, or has too much on its stack.
    #[error(
        "its stack of {} KiB is full: end the recursion, or use a circular buffer for large arrays",
        stack_bytes / 1_024
    )]
    StackOverflow {
        /// How large the stack is.
        stack_bytes: u64,
    },
    /// A whole number was divided by zero, or the quotient has no place in its type.
    #[error("it divides a whole number by zero")]
    Division,
    /// A calculation raised an exception that the kernel has asked for.
    #[error("it calculates what raises a floating-point exception")]
    FloatingPoint,
    /// An instruction that does not exist.
    #[error(
        "it executes an instruction that is none: `__builtin_trap`, code that cannot be reached, or \
         a jump to what is no code"
    )]
    Instruction,
    /// It called `abort`, or an assertion failed.
    #[error("it called abort, or an assertion of its own failed")]
    Aborted,
    /// It called `exit` or a function like it.
    #[error(
        "it called exit with the status {status}, which ends a process: return from it instead"
    )]
    Exited {
        /// The status.
        status: i32,
    },
    /// It ran for longer than a kernel may.
    #[error(
        "it ran for {} s without ending or waiting: end its loop, or give it more time with \
         TELLTALE_KERNEL_TIMEOUT if it is merely slow",
        *milliseconds as f64 / 1_000.0
    )]
    Endless {
        /// How long a kernel may run.
        milliseconds: u64,
    },
    /// It ran when the time of its program was over, whose kernels wait for each other again and
    /// again.
    #[error(
        "its program ran for {} s without ending: end the loops of its kernels, or give the \
         program more time with TELLTALE_PROGRAM_TIMEOUT if it is merely slow",
        *milliseconds as f64 / 1_000.0
    )]
    ProgramEndless {
        /// How long the kernels of a program may run together.
        milliseconds: u64,
    },
}

/// How a kernel's own C used memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemoryUse {
    /// It read from it.
    Read,
    /// It wrote to it.
    Write,
    /// It went on there.
    Execute,
    /// It used it somehow: the processor does not say.
    Unknown,
}

/// Where memory was that a kernel does not have. Never an address: those differ from run to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemoryPlace {
    /// At a null pointer, or a little behind it.
    Null,
    /// Behind the memory of the core's circular buffers.
    BehindBuffers {
        /// How far; the first byte behind it is 1.
        bytes: u64,
    },
    /// Before the memory of the core's circular buffers.
    BeforeBuffers,
    /// Above the kernel's stack: an array on it was used beyond its end.
    AboveStack,
    /// In a mapped file, behind its end.
    EndOfFile,
    /// Nothing is there.
    Nowhere,
    /// Something is there that cannot be used so.
    Protected,
    /// No memory can have that address.
    Impossible,
}

impl fmt::Display for MemoryUse {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Read => "reads",
            Self::Write => "writes to",
            Self::Execute => "jumps to",
            Self::Unknown => "uses",
        })
    }
}

impl fmt::Display for MemoryPlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::BehindBuffers { bytes } => {
                return write!(formatter, "at byte {bytes} behind the end of its circular buffers");
            }
            Self::Null => "at a null pointer",
            Self::BeforeBuffers => "before its circular buffers",
            Self::AboveStack => "behind its own variables on the stack",
            Self::EndOfFile => "behind the end of a mapped file",
            Self::Nowhere => "where nothing is mapped",
            Self::Protected => "that cannot be used so",
            Self::Impossible => "at an address that cannot be",
        })
    }
}

/// How a kernel used a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessKind {
    /// It read from it.
    Read,
    /// It wrote to it.
    Write,
}

impl fmt::Display for AccessKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Read => "reads from",
            Self::Write => "writes to",
        })
    }
}

impl KernelFault {
    /// The fault that the C side found, by its number there.
    pub(super) fn from_code(code: u32, number: u32, limit: u32) -> Self {
        match code {
            1 => Self::Argument { index: number, count: limit },
            2 => Self::CommonArgument { index: number, count: limit },
            3 => Self::NoCircularBuffer { buffer: number },
            4 => Self::TooManyPages { buffer: number, pages: limit },
            5 => Self::Wraps { buffer: number, pages: limit },
            6 => Self::NoRoom { buffer: number, pages: limit },
            7 => Self::NoPages { buffer: number, pages: limit },
            _ => Self::GaveUp { number },
        }
    }
}
