//! Runs a program: every kernel of every core on a fibre of the calling thread.
//!
//! A core runs until all its kernels are done or wait, then the next one starts. Stacks and the
//! memory of circular buffers are used again by the next core, so a program of many cores touches
//! little memory. Whether a kernel that waits can go on is checked from outside, without
//! switching to it. Nothing unwinds through C: kernels that must end are left where they wait.

use std::cell::Cell;
use std::io;
use std::sync::Arc;

use corosensei::Coroutine;

use super::context::{
    BufferAccess, CIRCULAR_BUFFERS, CircularBuffer, Core, SEMAPHORES, SemaphoreValues,
    Surroundings, WaitReason, global_value,
};
use super::execution_error::{ExecutionError, KernelWait, MAX_WAITS, WaitsFor};
use super::fault::AccessKind;
use super::floating_point::FloatingPoint;
use super::memory::Memory;
use super::plan::{CircularBufferPlace, KERNELS_OF_CORE, Plan, PlannedCore};
use super::printing::Printer;
use super::progress::DeviceProgress;
use super::stack::KernelStack;
use super::timeouts::Timeouts;
use super::trap::{Exit, Guard};

/// Where a core's memory for circular buffers begins: a cache line of the host.
const ALIGNMENT_BYTES: usize = 64;

type Fibre = Coroutine<(), (), (), KernelStack>;

/// Runs programs on one thread, and keeps what they need for the next one.
pub(crate) struct Executor {
    grid: (u16, u16),
    #[expect(clippy::vec_box, reason = "kernels hold the address of a seat, so it must not move")]
    idle: Vec<Box<CoreRun>>,
    stacks: Vec<KernelStack>,
    guard: Guard,
    semaphores: Vec<SemaphoreValues>,
    /// Of each core of the grid, row by row. Kernels hold their addresses; it never changes.
    printers: Box<[Printer]>,
    /// Whether the last program had any.
    has_semaphores: bool,
}

/// What a core needs while it runs. Kernels hold its address, so it is always boxed.
struct CoreRun {
    kernels: [Core; KERNELS_OF_CORE],
    fibres: Vec<Fibre>,
    circular_buffers: [CircularBuffer; CIRCULAR_BUFFERS],
    /// Which of them are in use.
    present: Vec<u8>,
    memory: Option<Memory>,
    /// Where it begins and ends, if the core has circular buffers there.
    own_memory: (usize, usize),
}

/// How far a core came.
enum Came {
    ToTheEnd,
    /// All its kernels wait; whether any of them ran.
    Blocked {
        moved: bool,
    },
    /// The kernel with this place on the core did something wrong.
    Failed(usize),
}

/// One run of a program.
struct Run<'a> {
    executor: &'a mut Executor,
    plan: &'a Plan,
    words: &'a [u32],
    surroundings: &'a Surroundings,
    progress: &'a DeviceProgress,
    notes_writes: bool,
    /// Cores that wait for others.
    blocked: Vec<(&'a PlannedCore, Box<CoreRun>)>,
}

// === impl Executor ===

impl Executor {
    /// For a grid of cores that each have a printer, row by row. It runs on this thread alone, which
    /// is protected from what kernels do, and kernels are stopped when their time is over.
    pub(crate) fn new(
        grid: (u16, u16),
        printers: Box<[Printer]>,
        progress: Arc<DeviceProgress>,
        timeouts: Timeouts,
    ) -> io::Result<Self> {
        let cores = usize::from(grid.0) * usize::from(grid.1);
        assert_eq!(printers.len(), cores, "each core has a printer");
        let semaphores = (0..cores).map(|_| [const { Cell::new(None) }; SEMAPHORES]).collect();
        Ok(Self {
            grid,
            idle: Vec::new(),
            stacks: Vec::new(),
            guard: Guard::new(progress, timeouts)?,
            semaphores,
            printers,
            has_semaphores: false,
        })
    }

    /// Runs all kernels of `plan` to their end, with the argument words `words`.
    pub(crate) fn run(
        &mut self,
        plan: &Plan,
        words: &[u32],
        buffers: &(dyn BufferAccess + 'static),
        progress: &DeviceProgress,
    ) -> Result<(), ExecutionError> {
        if std::mem::replace(&mut self.has_semaphores, !plan.semaphores.is_empty()) {
            let values = self.semaphores.iter().flatten();
            values.for_each(|value| value.set(None));
        }
        for semaphore in &plan.semaphores {
            for core in &semaphore.cores {
                self.semaphores[*core][semaphore.id].set(Some(semaphore.initial_value));
            }
        }
        let surroundings = Surroundings {
            buffers,
            grid: (self.grid.0.into(), self.grid.1.into()),
            semaphores: self.semaphores.as_slice(),
        };
        let mut run = Run {
            executor: self,
            plan,
            words,
            surroundings: &surroundings,
            progress,
            notes_writes: buffers.notes_writes(),
            blocked: Vec::new(),
        };
        let result = run.all_cores();
        run.leave_blocked();
        result
    }

    fn take_stack(&mut self) -> io::Result<KernelStack> {
        self.stacks.pop().map_or_else(KernelStack::reserve, Ok)
    }

    /// Ends the kernels that still wait, and keeps the run's stacks for later.
    fn take_back(&mut self, mut core_run: Box<CoreRun>) {
        for mut fibre in core_run.fibres.drain(..) {
            if !fibre.done() {
                // SAFETY: the fibre is suspended in `Core::wait`, or has not started. Between
                // there and the bottom of its stack are frames of C, of this crate's calls,
                // which keep nothing that needs dropping (see context.rs), and of its closure,
                // which owns two pointers.
                unsafe { fibre.force_reset() };
            }
            self.stacks.push(fibre.into_stack());
        }
        self.idle.push(core_run);
    }
}

// === impl Run ===

impl<'a> Run<'a> {
    fn all_cores(&mut self) -> Result<(), ExecutionError> {
        for core in &self.plan.cores {
            let core_run = self.start(core)?;
            self.go_on(core, core_run)?;
        }
        while !self.blocked.is_empty() {
            let mut moved = false;
            for (core, core_run) in std::mem::take(&mut self.blocked) {
                moved |= self.go_on(core, core_run)?;
            }
            if !moved {
                return Err(self.hang());
            }
        }
        Ok(())
    }

    /// Runs a core for as long as it can, and reports whether any of its kernels ran.
    fn go_on(
        &mut self,
        core: &'a PlannedCore,
        mut core_run: Box<CoreRun>,
    ) -> Result<bool, ExecutionError> {
        match core_run.run(core, self.progress, &self.executor.guard) {
            Came::ToTheEnd => {
                if self.notes_writes {
                    self.note_writes(core, &core_run);
                }
                self.executor.take_back(core_run);
                Ok(true)
            }
            Came::Blocked { moved } => {
                self.blocked.push((core, core_run));
                Ok(moved)
            }
            Came::Failed(place) => {
                let error = self.failure(core, &core_run.kernels[place], place);
                self.executor.take_back(core_run);
                Err(error)
            }
        }
    }

    fn leave_blocked(&mut self) {
        for (_, core_run) in std::mem::take(&mut self.blocked) {
            self.executor.take_back(core_run);
        }
    }

    /// Gives a core a run with its kernels ready.
    fn start(&mut self, core: &PlannedCore) -> Result<Box<CoreRun>, ExecutionError> {
        let mut core_run = self.executor.idle.pop().unwrap_or_else(CoreRun::empty);
        let ready = self
            .place_circular_buffers(core, &mut core_run)
            .and_then(|()| self.start_kernels(core, &mut core_run));
        match ready {
            Ok(()) => Ok(core_run),
            Err(error) => {
                self.executor.take_back(core_run);
                Err(error)
            }
        }
    }

    fn place_circular_buffers(
        &self,
        core: &PlannedCore,
        core_run: &mut CoreRun,
    ) -> Result<(), ExecutionError> {
        for index in core_run.present.drain(..) {
            let absent = std::ptr::null_mut();
            core_run.circular_buffers[usize::from(index)].place(absent, 0, 0);
        }
        core_run.ensure_memory(self.plan.memory_bytes).map_err(ExecutionError::host_memory)?;
        // They end where the memory does, so that what is written behind them meets its guard.
        let own_bytes = core.memory_bytes.next_multiple_of(ALIGNMENT_BYTES);
        let memory_bytes = core_run.memory.as_ref().map_or(0, Memory::bytes);
        let before = memory_bytes.saturating_sub(own_bytes);
        let own = core_run.memory.as_ref().filter(|_| own_bytes > 0);
        core_run.own_memory = own.map_or((0, 0), Memory::bounds);
        for (number, part) in &core.circular_buffers {
            let planned = &self.plan.circular_buffers[*number];
            let bytes = u64::from(planned.page_bytes) * u64::from(planned.pages);
            let base = match planned.place {
                CircularBufferPlace::Own(offset) => {
                    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
                    let memory = core_run.memory.as_ref();
                    memory
                        .and_then(|memory| memory.range(before + offset, bytes))
                        .expect("a plan's memory has room for each of its circular buffers")
                }
                CircularBufferPlace::OnBuffer { address_word, parts, offset, bytes } => {
                    let address = self.words.get(address_word).copied().unwrap_or_default();
                    self.part_of_buffer(address, *part, parts, offset, bytes).map_err(|fault| {
                        ExecutionError::CircularBuffer {
                            buffer: planned.index,
                            x: core.x,
                            y: core.y,
                            source: fault,
                        }
                    })?
                }
            };
            core_run.circular_buffers[usize::from(planned.index)].place(
                base,
                planned.page_bytes,
                planned.pages,
            );
            core_run.present.push(planned.index);
        }
        Ok(())
    }

    /// The bytes that a circular buffer has on part `part` of a buffer.
    fn part_of_buffer(
        &self,
        address: u32,
        part: u32,
        parts: u32,
        offset: u32,
        bytes: u32,
    ) -> Result<*mut u8, super::fault::KernelFault> {
        // SAFETY: the finder is borrowed for the whole run, see `Executor::run`.
        let buffers = unsafe { &*self.surroundings.buffers };
        let extent = buffers.extent(address);
        let part_bytes = extent / u64::from(parts.max(1));
        let is_inside = u64::from(offset) + u64::from(bytes) <= part_bytes;
        let start = u64::from(part) * part_bytes + u64::from(offset);
        // Where it is not, asking for what is beyond the end makes the finder say what there is.
        let start = if is_inside { start } else { extent };
        // What is placed is not written yet: it may be an input. See `note_writes`.
        buffers.place(AccessKind::Read, address, start, bytes, 0).map(|place| place.start)
    }

    /// Says which buffers were written through the circular buffers on top of them.
    #[cold]
    fn note_writes(&self, core: &PlannedCore, core_run: &CoreRun) {
        // SAFETY: as in `part_of_buffer`.
        let buffers = unsafe { &*self.surroundings.buffers };
        for (number, _) in &core.circular_buffers {
            let planned = &self.plan.circular_buffers[*number];
            let placed = &core_run.circular_buffers[usize::from(planned.index)];
            if let CircularBufferPlace::OnBuffer { address_word, .. } = planned.place
                && placed.is_written.get() != 0
                && let Some(address) = self.words.get(address_word)
            {
                buffers.note_write(*address);
            }
        }
    }

    fn start_kernels(
        &mut self,
        core: &PlannedCore,
        core_run: &mut CoreRun,
    ) -> Result<(), ExecutionError> {
        for (place, (number, words)) in core.kernels.iter().enumerate() {
            let planned = &self.plan.kernels[*number];
            let arguments = words.of(self.words).unwrap_or_default();
            let common = planned.common_arguments.of(self.words).unwrap_or_default();
            let kernel = &core_run.kernels[place];
            kernel.arguments.set(arguments.as_ptr());
            kernel.argument_count.set(u32::try_from(arguments.len()).unwrap_or(u32::MAX));
            kernel.common_arguments.set(common.as_ptr());
            kernel.common_argument_count.set(u32::try_from(common.len()).unwrap_or(u32::MAX));
            kernel.buffers.set(core_run.circular_buffers.as_ptr());
            kernel.x.set(core.x.into());
            kernel.y.set(core.y.into());
            kernel.surroundings.set(self.surroundings);
            kernel.semaphores.set(&raw const self.executor.semaphores[core.place]);
            let printer = &self.executor.printers[core.place];
            kernel.printer.set(printer);
            kernel.print_is_read.set(printer.is_read_at());
            kernel.waiting.set(WaitReason::Nothing);
            let stack = self.executor.take_stack().map_err(ExecutionError::host_memory)?;
            let lowest = stack.bounds().0;
            let (entry, running) = (planned.code.entry(), &raw const *kernel);
            let fibre = Fibre::with_stack(stack, move |yielder, ()| {
                // SAFETY: the run is boxed and outlives its fibres; the plan, which the caller
                // of `Executor::run` borrows, keeps the code loaded. `entry` has the type that
                // `LoadedKernel::open` took it as.
                unsafe {
                    (*running).runs_with(yielder);
                    entry(running);
                }
            });
            let exit = Exit::of(&fibre, lowest, core_run.own_memory, planned.code.code());
            kernel.exit.set(Some(exit));
            core_run.fibres.push(fibre);
        }
        Ok(())
    }

    fn failure(&self, core: &PlannedCore, kernel: &Core, place: usize) -> ExecutionError {
        let name = Arc::clone(&self.plan.kernels[core.kernels[place].0].name);
        let WaitReason::Failed(source) = kernel.waiting.get() else {
            unreachable!("only a kernel that failed is asked why");
        };
        ExecutionError::Kernel { kernel: name, x: core.x, y: core.y, source }
    }

    /// Who waits for what, once none can go on.
    fn hang(&self) -> ExecutionError {
        let mut waits = Vec::new();
        let mut omitted = 0;
        for (core, core_run) in &self.blocked {
            for (place, fibre) in core_run.fibres.iter().enumerate() {
                if fibre.done() {
                    continue;
                }
                if waits.len() == MAX_WAITS {
                    omitted += 1;
                    continue;
                }
                let kernel = &core_run.kernels[place];
                waits.push(KernelWait {
                    kernel: Arc::clone(&self.plan.kernels[core.kernels[place].0].name),
                    x: core.x,
                    y: core.y,
                    waits_for: kernel.waits_for(),
                });
            }
        }
        ExecutionError::Hang { waits, omitted }
    }
}

// === impl CoreRun ===

impl CoreRun {
    fn empty() -> Box<Self> {
        Box::new(Self {
            kernels: [const { Core::idle() }; KERNELS_OF_CORE],
            fibres: Vec::with_capacity(KERNELS_OF_CORE),
            circular_buffers: [const { CircularBuffer::absent() }; CIRCULAR_BUFFERS],
            present: Vec::with_capacity(CIRCULAR_BUFFERS),
            memory: None,
            own_memory: (0, 0),
        })
    }

    fn ensure_memory(&mut self, bytes: usize) -> io::Result<()> {
        let enough = self.memory.as_ref().map_or(0, Memory::bytes) >= bytes;
        if !enough {
            self.memory = Some(Memory::reserve(bytes.next_power_of_two())?);
        }
        Ok(())
    }

    /// Runs the kernels of the core in turn until none can go on.
    fn run(&mut self, core: &PlannedCore, progress: &DeviceProgress, guard: &Guard) -> Came {
        let (mut moved, mut running) = (false, true);
        while running {
            running = false;
            for (place, fibre) in self.fibres.iter_mut().enumerate() {
                let kernel = &self.kernels[place];
                if fibre.done() || !kernel.can_run() {
                    continue;
                }
                progress.at(core.kernels[place].0, core.place);
                running = true;
                guard.enter(kernel);
                // A kernel that a signal stopped has returned as well.
                let _ = fibre.resume(());
                guard.leave();
                FloatingPoint::make_usual();
                if matches!(kernel.waiting.get(), WaitReason::Failed(_)) {
                    return Came::Failed(place);
                }
            }
            moved |= running;
        }
        match self.fibres.iter().all(Fibre::done) {
            true => Came::ToTheEnd,
            false => Came::Blocked { moved },
        }
    }
}

impl Core {
    fn waits_for(&self) -> WaitsFor {
        match self.waiting.get() {
            WaitReason::Room { buffer, pages } => WaitsFor::Room {
                buffer,
                pages,
                filled: self.buffer(buffer).map_or(0, CircularBuffer::filled),
            },
            WaitReason::Pages { buffer, pages } => WaitsFor::Pages {
                buffer,
                pages,
                filled: self.buffer(buffer).map_or(0, CircularBuffer::filled),
            },
            WaitReason::Semaphore { semaphore, value, or_more } => {
                let now = self.semaphore(semaphore).and_then(Cell::get).unwrap_or_default();
                WaitsFor::Semaphore { semaphore, value, or_more, now }
            }
            WaitReason::GlobalSemaphore { address, at, value, or_more } => {
                WaitsFor::GlobalSemaphore { address, value, or_more, now: global_value(at) }
            }
            WaitReason::Nothing | WaitReason::Failed(_) => WaitsFor::Nothing,
        }
    }
}
