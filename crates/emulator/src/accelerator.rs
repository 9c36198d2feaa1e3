//! One chip as a workload uses it: buffers, programs, a queue of commands.
//!
//! What is allocated is taken from the emulator's allocators and recorded with the process's
//! runtime. Commands are carried out in order by one thread for each accelerator. What runs is
//! the business of `kernels`, not this module's.

mod backend;
mod blame;
mod commands;
mod error;
mod memory;
mod prints;
mod program;
mod queue;
mod reach;
mod residence;
mod timeout;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use telltale_debug_stream::{Stream, cores};
use telltale_program_cache::{CoreCoord, ProgramArguments, ProgramDescriptor};
use telltale_runtime::{DeviceDescription, Runtime, debug_output};
use telltale_schema::chip::ChipFacts;
use telltale_schema::memory::MemoryKind;

pub use self::error::{CompileError, GlobalSemaphoreError, OpenAcceleratorError};
pub use self::memory::{Buffer, BufferError};
pub use self::program::CompiledProgram;
pub use self::timeout::{KERNEL_TIMEOUT_VARIABLE, PROGRAM_TIMEOUT_VARIABLE};

use self::commands::{Command, CommandThread, SpareWords};
use self::memory::{LiveBuffers, OpenChip};
use self::prints::Prints;
use self::program::LoadedProgram;
use self::queue::{Given, Queue};
use self::reach::Memories;
use self::residence::Residents;
use self::timeout::{KernelWatch, timeouts};
use crate::client::DeviceClient;
use crate::kernels::{
    BuiltKernel, DeviceProgress, ExecutionError, Executor, GLOBAL_SEMAPHORE_BYTES, KernelBuilder,
    KernelCounters, SourceFiles, Timeouts,
};
use crate::machine::ChipDescription;

/// Which chip is opened, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AcceleratorOptions {
    /// The root of the emulated machine; none for `/`.
    pub root: Option<PathBuf>,
    /// The device's ordinal.
    pub ordinal: u32,
    /// The chip's place among the device's chips.
    pub chip: usize,
    /// The directory that kernels' paths start at; none for the current one.
    pub kernel_root: Option<PathBuf>,
    /// The directory of compiled kernels; none for what `TELLTALE_KERNEL_CACHE` says, else the
    /// user's cache directory.
    pub kernel_cache: Option<PathBuf>,
    /// How much of a processor's time a kernel may use without ending or waiting before it is
    /// stopped; none for what `TELLTALE_KERNEL_TIMEOUT` says (seconds, or `off` for no limit), else
    /// 60 seconds.
    pub kernel_timeout: Option<Duration>,
    /// How much of a processor's time all kernels of a program may use together before it is stopped:
    /// kernels that wait for each other repeatedly never use up their own. None for what
    /// `TELLTALE_PROGRAM_TIMEOUT` says (as above), else ten times the time of a kernel, and no limit
    /// if that has none.
    pub program_timeout: Option<Duration>,
}

/// What a kernel's code counts as in the chip's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KernelUse {
    /// It computes what the application wants.
    #[default]
    Application,
    /// It moves data between chips.
    Fabric,
    /// It dispatches commands.
    Dispatch,
}

/// An open chip. May be shared between threads. Dropping it ends its thread once the commands
/// that were given are carried out.
pub struct Accelerator {
    chip: Arc<OpenChip>,
    grid: (u16, u16),
    residents: Arc<Residents>,
    builder: KernelBuilder,
    queue: Arc<Queue<Command>>,
    progress: Arc<DeviceProgress>,
    spare: Arc<SpareWords>,
    prints: Prints,
    timeouts: Timeouts,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Disconnected when the thread ends.
    ended: Mutex<Receiver<()>>,
}

impl Accelerator {
    /// Opens a chip of an emulated machine, and records with `runtime` what is allocated on it.
    ///
    /// # Errors
    /// When there is no such device or chip, or the host lacks what it takes.
    pub fn open(
        options: &AcceleratorOptions,
        runtime: &Runtime,
    ) -> Result<Arc<Self>, OpenAcceleratorError> {
        let root = options.root.as_deref().unwrap_or(Path::new("/"));
        let client = DeviceClient::open(root, options.ordinal)?;
        let (ordinal, chip, chips) = (options.ordinal, options.chip, client.chips().len());
        let Some(ChipDescription { identity, facts }) = client.chips().get(chip).cloned() else {
            return Err(OpenAcceleratorError::NoSuchChip { ordinal, chip, chips });
        };
        let builder = kernel_builder(options)?;
        let timeouts = timeouts(options)?;
        let place = u32::try_from(chip).unwrap_or(u32::MAX);
        let device = runtime.open_device(DeviceDescription {
            identity,
            logical_id: ordinal.saturating_mul(2).saturating_add(place),
            facts: Some(facts),
        });
        let chip = Arc::new(OpenChip { client, chip, device, live: LiveBuffers::default() });
        let grid = grid_of(&facts);
        let memories = Memories::reserve(&facts).map_err(OpenAcceleratorError::Memory)?;
        let (queue, progress) = (Arc::new(Queue::new()), Arc::new(DeviceProgress::default()));
        let (ending, ended) = sync_channel::<()>(0);
        let prints = Prints::of(grid)?;
        let printers = prints.printers();
        // Before anything runs, so that nothing is printed without a reader.
        debug_output::start();
        let spare = Arc::new(SpareWords::default());
        let (starting, started) = sync_channel(1);
        let thread = {
            let (chip, queue, progress, spare) =
                (Arc::clone(&chip), Arc::clone(&queue), Arc::clone(&progress), Arc::clone(&spare));
            std::thread::Builder::new().name("accelerator".to_owned()).spawn(move || {
                let _ending = ending;
                let executor = Executor::new(grid, printers, Arc::clone(&progress), timeouts);
                let executor = match executor {
                    Ok(executor) => executor,
                    Err(error) => {
                        let _ = starting.send(error);
                        return;
                    }
                };
                drop(starting);
                CommandThread::new(chip, queue, progress, spare, memories, executor).work();
            })
        };
        let thread = thread.map_err(OpenAcceleratorError::Thread)?;
        if let Ok(error) = started.recv() {
            return Err(OpenAcceleratorError::Protection(error));
        }
        Ok(Arc::new(Self {
            residents: Arc::new(Residents::new(Arc::clone(&chip))),
            chip,
            grid,
            builder,
            queue,
            progress,
            spare,
            prints,
            timeouts,
            thread: Mutex::new(Some(thread)),
            ended: Mutex::new(ended),
        }))
    }

    /// Who the chip is and what it has.
    pub fn description(&self) -> &ChipDescription {
        self.chip.description()
    }

    /// Columns and rows of the cores that programs can use; every core of it is there.
    pub fn grid(&self) -> (u16, u16) {
        self.grid
    }

    /// The number by which the process knows a core of the grid; none outside of it.
    pub fn logical_core(&self, core: CoreCoord) -> Option<u32> {
        self.prints.logical_core(core)
    }

    /// What kernels on a core of the grid print; none outside of it. Any one consumer may connect
    /// to it, a client in C among them.
    pub fn debug_stream(&self, core: CoreCoord) -> Option<&'static Stream> {
        cores::stream(self.logical_core(core)?)
    }

    /// The same of all cores, row by row.
    pub fn debug_streams(&self) -> impl Iterator<Item = &'static Stream> + use<> {
        self.prints.streams()
    }

    /// Prints of kernels that could not be recorded, because they asked for what is not there. A text
    /// in the place of each says why.
    pub fn refused_prints(&self) -> u64 {
        self.prints.refused()
    }

    /// Where this accelerator's kernels came from.
    pub fn kernel_counters(&self) -> KernelCounters {
        self.builder.counters()
    }

    /// The directory in which compiled kernels are kept.
    pub fn kernel_cache(&self) -> &Path {
        self.builder.directory()
    }

    /// Allocates a buffer of whole pages. Its content is whatever was there before.
    ///
    /// # Errors
    /// When the memory is full, the kind is not on the chip, or the pages do not add up.
    pub fn allocate(
        &self,
        kind: MemoryKind,
        bytes: u64,
        page_bytes: u32,
    ) -> Result<Arc<Buffer>, BufferError> {
        Buffer::allocate(&self.chip, kind, bytes, page_bytes).map(Arc::new)
    }

    /// Allocates a semaphore that is not any program's own: a value on each core, set to
    /// `initial_value` after all commands given so far. Kernels find it by the buffer's address.
    ///
    /// # Errors
    /// As [`Self::allocate`] and [`Self::write`].
    pub fn allocate_global_semaphore(
        &self,
        initial_value: u32,
    ) -> Result<Arc<Buffer>, GlobalSemaphoreError> {
        let cores = usize::from(self.grid.0) * usize::from(self.grid.1);
        let mut values = vec![0; cores * GLOBAL_SEMAPHORE_BYTES];
        for value in values.chunks_exact_mut(GLOBAL_SEMAPHORE_BYTES) {
            value[..4].copy_from_slice(&initial_value.to_le_bytes());
        }
        let page_bytes = u32::try_from(GLOBAL_SEMAPHORE_BYTES).unwrap_or(u32::MAX);
        let buffer = self.allocate(MemoryKind::L1Small, values.len() as u64, page_bytes)?;
        self.write(&buffer, &values)?;
        Ok(buffer)
    }

    /// Makes a program ready to run.
    ///
    /// # Errors
    /// When something is described wrongly, a kernel cannot be built, or memory is full. Nothing
    /// of it stays allocated.
    pub fn compile(&self, program: &ProgramDescriptor) -> Result<CompiledProgram, CompileError> {
        self.compile_for(KernelUse::Application, program)
    }

    /// The same, with kernels whose code counts as something else than the application's.
    ///
    /// # Errors
    /// As [`Self::compile`].
    pub fn compile_for(
        &self,
        kernel_use: KernelUse,
        program: &ProgramDescriptor,
    ) -> Result<CompiledProgram, CompileError> {
        let arguments = ProgramArguments::of(program)?;
        let built = self.builder.build_all(&program.kernels);
        let code = program.kernels.iter().zip(built).map(|(kernel, built)| {
            built.map_err(|source| {
                let core = kernel.core_ranges.cores().next();
                CompileError::Kernel { kernel: kernel.name.to_string(), core, source }
            })
        });
        let mut files = SourceFiles::default();
        let code = code.map(|built| {
            built.map(|BuiltKernel { code, files: own }| {
                files.add_all(&own);
                code
            })
        });
        let code = code.collect::<Result<Vec<_>, _>>()?;
        let plan = program::plan(program, arguments.layout(), code.clone(), self.grid)?;
        let kind = kernel_use.kind();
        let refused = |source| CompileError::Memory { kind, source };
        let mut residence = self.residents.kernels(&code, kind).map_err(refused)?;
        if !plan.semaphores.is_empty() {
            let kind = MemoryKind::L1Small;
            let refused = |source| CompileError::Memory { kind, source };
            self.residents.semaphores(&mut residence).map_err(refused)?;
        }
        if plan.memory_bytes > 0 {
            let needed_bytes = plan.memory_bytes as u64;
            let placed = self.residents.circular_buffers(&mut residence, needed_bytes);
            placed.map_err(|source| match program::largest_circular_buffer(program) {
                Some((buffer, core, kernel)) => CompileError::CircularBufferMemory {
                    buffer,
                    core,
                    kernel,
                    needed_bytes,
                    source,
                },
                None => CompileError::Memory { kind: MemoryKind::Cb, source },
            })?;
        }
        let loaded = Arc::new(LoadedProgram { plan: Arc::new(plan), residence });
        Ok(CompiledProgram { loaded, arguments, files })
    }

    /// Writes to the beginning of a buffer, after all commands given so far.
    ///
    /// # Errors
    /// When more is written than the buffer has, or the accelerator has ended or hangs. What goes
    /// wrong later is reported by [`Self::finish`].
    pub fn write(&self, buffer: &Arc<Buffer>, bytes: &[u8]) -> Result<(), ExecutionError> {
        let (given, buffer_bytes) = (bytes.len() as u64, buffer.bytes());
        if given > buffer_bytes {
            return Err(ExecutionError::TooLong { bytes: given, buffer_bytes });
        }
        self.check_own(buffer)?;
        self.give(Command::Write { buffer: Arc::clone(buffer), bytes: bytes.to_vec() })
    }

    /// A copy of a buffer, after all commands given so far.
    ///
    /// # Errors
    /// Why the buffer does not hold what it should: a program that was to use it failed, or was not
    /// run because it shares a buffer with one that failed. [`Self::finish`] reports the first one
    /// as well. Once this has been reported, programs that use these buffers run again; the buffer itself
    /// can be read when a program has written to it, when [`Self::write`] has written all of it, or
    /// after [`Self::finish`]. Or that the accelerator has ended or hangs.
    pub fn read(&self, buffer: &Arc<Buffer>) -> Result<Vec<u8>, ExecutionError> {
        self.check_own(buffer)?;
        let (reply, answer) = sync_channel(1);
        self.give(Command::Read { buffer: Arc::clone(buffer), reply })?;
        self.wait_for(&answer)?
    }

    /// Runs a program with the arguments that it has now, after all commands given so far. The
    /// buffers are kept until it is done: name all whose addresses are among the arguments. If it
    /// fails, they do not hold what they should ([`Self::read`]).
    ///
    /// # Errors
    /// When the accelerator has ended or hangs. What goes wrong later is reported by [`Self::read`] of
    /// one of the buffers and by [`Self::finish`].
    pub fn enqueue(
        &self,
        program: &CompiledProgram,
        buffers: &[Arc<Buffer>],
    ) -> Result<(), ExecutionError> {
        self.give_run(None, program, buffers)
    }

    /// The same for an operation of this name, which errors say.
    ///
    /// # Errors
    /// As [`Self::enqueue`].
    pub fn enqueue_operation(
        &self,
        operation: &'static str,
        program: &CompiledProgram,
        buffers: &[Arc<Buffer>],
    ) -> Result<(), ExecutionError> {
        self.give_run(Some(operation), program, buffers)
    }

    fn give_run(
        &self,
        operation: Option<&'static str>,
        program: &CompiledProgram,
        buffers: &[Arc<Buffer>],
    ) -> Result<(), ExecutionError> {
        self.give(Command::Run {
            operation,
            program: Arc::clone(&program.loaded),
            words: self.spare.filled(program.arguments.words()),
            buffers: buffers.to_vec(),
        })
    }

    /// Waits until all commands given so far are carried out.
    ///
    /// # Errors
    /// What went wrong first since the last call. Programs after it that use a buffer of its were
    /// not run, unless [`Self::read`] had reported it; all that follow this call are.
    pub fn finish(&self) -> Result<(), ExecutionError> {
        let (reply, answer) = sync_channel(1);
        self.give(Command::Finish { reply })?;
        self.wait_for(&answer)?
    }

    /// Waits until all commands given so far are carried out or given up, and leaves what went wrong
    /// to be reported. Does not wait for an accelerator that has ended or hangs.
    fn catch_up(&self) {
        let (reply, answer) = sync_channel(1);
        if self.give(Command::Reach { reply }).is_ok() {
            let _ = self.wait_for(&answer);
        }
    }

    fn check_own(&self, buffer: &Buffer) -> Result<(), ExecutionError> {
        if buffer.is_of(&self.chip) { Ok(()) } else { Err(ExecutionError::OtherAccelerator) }
    }

    fn give(&self, command: Command) -> Result<(), ExecutionError> {
        if let Some(damage) = self.progress.damage() {
            return Err(damage);
        }
        let mut watch = KernelWatch::new(&self.progress, self.timeouts);
        let mut command = command;
        loop {
            command = match self.queue.give(command, watch.period) {
                Given::Taken => return Ok(()),
                Given::Ended => return Err(ExecutionError::Ended),
                Given::Full(command) => command,
            };
            watch.check()?;
        }
    }

    fn wait_for<T>(&self, answer: &Receiver<T>) -> Result<T, ExecutionError> {
        let mut watch = KernelWatch::new(&self.progress, self.timeouts);
        loop {
            match answer.recv_timeout(watch.period) {
                Ok(answer) => return Ok(answer),
                Err(RecvTimeoutError::Disconnected) => return Err(ExecutionError::Ended),
                Err(RecvTimeoutError::Timeout) => {
                    if let Err(error) = watch.check() {
                        // Unless the answer came meanwhile, which goes to no other.
                        return answer.try_recv().or(Err(error));
                    }
                }
            }
        }
    }
}

impl Drop for Accelerator {
    fn drop(&mut self) {
        self.queue.end();
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        let mut watch = KernelWatch::new(&self.progress, self.timeouts);
        while matches!(ended.recv_timeout(watch.period), Err(RecvTimeoutError::Timeout)) {
            if watch.check().is_err() {
                // A kernel that does not end keeps its thread; the process's end ends both.
                return;
            }
        }
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Accelerator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.description().identity.display_id();
        formatter.debug_struct("Accelerator").field("chip", &id).finish_non_exhaustive()
    }
}

impl KernelUse {
    fn kind(self) -> MemoryKind {
        match self {
            Self::Application => MemoryKind::KernelApplication,
            Self::Fabric => MemoryKind::KernelFabric,
            Self::Dispatch => MemoryKind::KernelDispatch,
        }
    }
}

/// The largest whole rectangle of cores of a chip: harvesting takes whole columns of Blackhole
/// chips and whole rows of the others.
fn grid_of(facts: &ChipFacts) -> (u16, u16) {
    let (columns, rows) = facts.grid;
    let cores = facts.worker_cores;
    let by_rows = (columns, cores.checked_div(columns).unwrap_or_default());
    let by_columns = (cores.checked_div(rows).unwrap_or_default(), rows);
    let is_whole = |(columns, rows): (u32, u32)| columns * rows == cores;
    let grid = if is_whole(by_rows) || !is_whole(by_columns) { by_rows } else { by_columns };
    let narrow = |number: u32| u16::try_from(number).unwrap_or(u16::MAX);
    (narrow(grid.0), narrow(grid.1))
}

fn kernel_builder(options: &AcceleratorOptions) -> Result<KernelBuilder, OpenAcceleratorError> {
    let root = options.kernel_root.clone().unwrap_or_else(|| PathBuf::from("."));
    // A path that is absolute, so that it means the same after a change of directory.
    let root =
        std::fs::canonicalize(&root)
            .and_then(|found| {
                if found.is_dir() { Ok(found) } else { Err(io::ErrorKind::NotADirectory.into()) }
            })
            .map_err(|source| OpenAcceleratorError::KernelRoot { path: root, source })?;
    Ok(KernelBuilder::new(root, options.kernel_cache.as_deref())?)
}
