//! A described program laid out on the chip's cores: checked once here, so that running it checks
//! nothing of it again.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use telltale_program_cache::{
    ArgumentLayout, CircularBufferDescriptor, CoreCoord, CoreRange, CoreRanges, CoreType,
    Placement, ProgramArguments, ProgramDescriptor,
};

use super::error::CompileError;
use super::residence::Residence;
use crate::kernels::{
    CIRCULAR_BUFFERS, CircularBufferPlace, KERNELS_OF_CORE, LoadedKernel, Plan,
    PlannedCircularBuffer, PlannedCore, PlannedKernel, PlannedSemaphore, SEMAPHORES, SourceFiles,
    Words,
};

/// Circular buffers begin at multiples of this: a cache line of the host.
const ALIGNMENT_BYTES: usize = 64;

/// A program that can be run on the accelerator that compiled it, any number of times.
///
/// Its kernels' code and its circular buffers take up memory of the chip for as long as it lives,
/// or a run of it has not ended.
pub struct CompiledProgram {
    pub(super) loaded: Arc<LoadedProgram>,
    /// The words that the next run gets; a run that was enqueued keeps those it had then.
    pub(super) arguments: ProgramArguments,
    /// What its kernels were made from.
    pub(super) files: SourceFiles,
}

/// What a program and its runs share.
pub(super) struct LoadedProgram {
    pub(super) plan: Arc<Plan>,
    pub(super) residence: Residence,
}

/// Builds a plan step by step.
struct Planner<'a> {
    program: &'a ProgramDescriptor,
    layout: &'a ArgumentLayout,
    grid: (u16, u16),
    plan: Plan,
    /// Where in the plan a core is, by its place in the grid.
    cores: HashMap<usize, usize>,
    /// How much of a core's memory its circular buffers take so far, by its place in the grid.
    ends: HashMap<usize, usize>,
}

impl CompiledProgram {
    /// The words that the next run gets.
    pub fn arguments(&self) -> &ProgramArguments {
        &self.arguments
    }

    /// The same, to be changed before the next run.
    pub fn arguments_mut(&mut self) -> &mut ProgramArguments {
        &mut self.arguments
    }

    /// What the program takes up on the chip: its kernels' code and its circular buffers.
    pub fn device_bytes(&self) -> u64 {
        self.loaded.residence.bytes()
    }
}

impl fmt::Debug for CompiledProgram {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kernels = self.loaded.plan.kernels.iter().map(|kernel| &kernel.name);
        formatter.debug_list().entries(kernels).finish()
    }
}

/// Lays out `program`, whose kernels were built to `code`, on a grid of cores.
pub(super) fn plan(
    program: &ProgramDescriptor,
    layout: &ArgumentLayout,
    code: Vec<Arc<LoadedKernel>>,
    grid: (u16, u16),
) -> Result<Plan, CompileError> {
    let kernels = program.kernels.iter().zip(code).enumerate();
    let kernels = kernels.map(|(number, (kernel, code))| PlannedKernel {
        name: kernel.name.as_ref().into(),
        code,
        common_arguments: words(layout.common(number)),
    });
    let plan = Plan {
        kernels: kernels.collect(),
        cores: Vec::new(),
        circular_buffers: Vec::new(),
        semaphores: Vec::new(),
        memory_bytes: 0,
    };
    let mut planner =
        Planner { program, layout, grid, plan, cores: HashMap::new(), ends: HashMap::new() };
    planner.check_cores()?;
    planner.kernels()?;
    planner.circular_buffers()?;
    planner.semaphores()?;
    Ok(planner.plan)
}

fn words(slots: Option<std::ops::Range<usize>>) -> Words {
    slots.map_or_else(Words::default, |slots| Words {
        first: slots.start,
        count: u32::try_from(slots.len()).unwrap_or(u32::MAX),
    })
}

impl Planner<'_> {
    /// Checks that the chip has all cores. First, so that ranges far beyond it are not walked core by core.
    fn check_cores(&self) -> Result<(), CompileError> {
        let (columns, rows) = self.grid;
        let last = CoreCoord::new(columns.saturating_sub(1), rows.saturating_sub(1));
        let grid = CoreRanges::from(CoreRange::new(CoreCoord::new(0, 0), last));
        for kernel in &self.program.kernels {
            if let Some(core) = kernel.core_ranges.first_outside(&grid) {
                let kernel = kernel.name.to_string();
                return Err(CompileError::NoCore { kernel, core, columns, rows });
            }
        }
        let (field, reason) = ("core_ranges", "the chip has no such core");
        for buffer in &self.program.circular_buffers {
            if let Some(core) = buffer.core_ranges.first_outside(&grid) {
                let (core, kernel) = user(self.program, &buffer.core_ranges, Some(core));
                let buffer = buffer.formats.first().map_or(0, |format| format.buffer_index);
                return Err(CompileError::CircularBuffer { buffer, field, core, kernel, reason });
            }
        }
        for semaphore in &self.program.semaphores {
            if let Some(core) = semaphore.core_ranges.first_outside(&grid) {
                let (core, kernel) = user(self.program, &semaphore.core_ranges, Some(core));
                let semaphore = semaphore.id;
                return Err(CompileError::Semaphore { semaphore, field, core, kernel, reason });
            }
        }
        Ok(())
    }

    fn kernels(&mut self) -> Result<(), CompileError> {
        for (number, kernel) in self.program.kernels.iter().enumerate() {
            let name = || kernel.name.to_string();
            for run in self.layout.kernel_runs(number).unwrap_or_default() {
                let outside = run.cores.cores().find(|core| !kernel.core_ranges.contains(*core));
                if let Some(core) = outside {
                    return Err(CompileError::ArgumentsElsewhere { kernel: name(), core });
                }
            }
            for core in kernel.core_ranges.cores() {
                let place = self.place(core);
                let arguments = words(self.layout.runtime(number, core));
                let planned = self.core(core, place);
                planned.kernels.push((number, arguments));
                if planned.kernels.len() > KERNELS_OF_CORE {
                    return Err(CompileError::TooManyKernels { kernel: name(), core });
                }
            }
        }
        Ok(())
    }

    fn circular_buffers(&mut self) -> Result<(), CompileError> {
        for (number, buffer) in self.program.circular_buffers.iter().enumerate() {
            let place = self.circular_buffer_place(number, buffer)?;
            for format in &buffer.formats {
                let wrong = |field, core, reason| {
                    let (core, kernel) = user(self.program, &buffer.core_ranges, core);
                    let buffer = format.buffer_index;
                    CompileError::CircularBuffer { buffer, field, core, kernel, reason }
                };
                let index = format.buffer_index;
                if usize::from(index) >= CIRCULAR_BUFFERS {
                    return Err(wrong("buffer_index", None, "a core has 32 circular buffers"));
                }
                let page_bytes = format.page_bytes;
                let is_whole = page_bytes > 0 && buffer.total_bytes.is_multiple_of(page_bytes);
                if !is_whole || buffer.total_bytes == 0 {
                    let reason = "total_bytes must be a whole number of pages, and at least one";
                    return Err(wrong("page_bytes", None, reason));
                }
                let planned = self.plan.circular_buffers.len();
                self.plan.circular_buffers.push(PlannedCircularBuffer {
                    index,
                    page_bytes,
                    pages: buffer.total_bytes / page_bytes,
                    place,
                });
                for (part, core) in (0..).zip(buffer.core_ranges.cores()) {
                    // A core that runs no kernel of the program needs no circular buffer.
                    let Some(planned_core) = self.cores.get(&self.place(core)).copied() else {
                        continue;
                    };
                    let taken = self.plan.cores[planned_core]
                        .circular_buffers
                        .iter()
                        .any(|(other, _)| self.plan.circular_buffers[*other].index == index);
                    if taken {
                        let reason = "another circular buffer of this core has the same index";
                        return Err(wrong("buffer_index", Some(core), reason));
                    }
                    self.plan.cores[planned_core].circular_buffers.push((planned, part));
                }
            }
        }
        for core in &mut self.plan.cores {
            core.memory_bytes = self.ends.get(&core.place).copied().unwrap_or_default();
        }
        Ok(())
    }

    /// Where a circular buffer is; adds what it needs to the core's memory.
    fn circular_buffer_place(
        &mut self,
        number: usize,
        buffer: &CircularBufferDescriptor,
    ) -> Result<CircularBufferPlace, CompileError> {
        let remote = !buffer.remote_formats.is_empty()
            || matches!(buffer.placement, Placement::Remote { .. });
        let index = buffer.formats.first().map(|format| format.buffer_index);
        if remote {
            let (core, kernel) = user(self.program, &buffer.core_ranges, None);
            return Err(CompileError::CircularBuffer {
                buffer: index.unwrap_or_default(),
                field: "placement",
                core,
                kernel,
                reason: "the emulator has no circular buffers that span cores",
            });
        }
        if let Some(slot) = self.layout.circular_buffer(number) {
            return Ok(CircularBufferPlace::OnBuffer {
                address_word: usize::try_from(slot.0).unwrap_or(usize::MAX),
                parts: u32::try_from(buffer.core_ranges.core_count()).unwrap_or(u32::MAX),
                offset: buffer.address_offset_bytes,
                bytes: buffer.total_bytes,
            });
        }
        let [offset, bytes] = [buffer.address_offset_bytes, buffer.total_bytes]
            .map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        // A buffer is at one place on all its cores: behind what any of them has already.
        let places = || buffer.core_ranges.cores().map(|core| self.place(core));
        let end = places().filter_map(|place| self.ends.get(&place)).max().copied();
        let start = end.unwrap_or_default().next_multiple_of(ALIGNMENT_BYTES) + offset;
        let places: Vec<usize> = places().collect();
        self.ends.extend(places.into_iter().map(|place| (place, start + bytes)));
        self.plan.memory_bytes = self.plan.memory_bytes.max(start + bytes);
        Ok(CircularBufferPlace::Own(start))
    }

    fn semaphores(&mut self) -> Result<(), CompileError> {
        let mut taken = std::collections::HashSet::new();
        for semaphore in &self.program.semaphores {
            let id = usize::try_from(semaphore.id).unwrap_or(usize::MAX);
            let wrong = |field, core, reason| {
                let (core, kernel) = user(self.program, &semaphore.core_ranges, core);
                let semaphore = semaphore.id;
                CompileError::Semaphore { semaphore, field, core, kernel, reason }
            };
            if id >= SEMAPHORES {
                return Err(wrong("id", None, "a core has 16 semaphores"));
            }
            if semaphore.core_type != CoreType::Worker {
                return Err(wrong("core_type", None, "the emulator has worker cores only"));
            }
            let mut cores = Vec::new();
            for core in semaphore.core_ranges.cores() {
                let place = self.place(core);
                if !taken.insert((id, place)) {
                    return Err(wrong("id", Some(core), "this core has another one with this id"));
                }
                cores.push(place);
            }
            let initial_value = semaphore.initial_value;
            self.plan.semaphores.push(PlannedSemaphore { id, initial_value, cores });
        }
        Ok(())
    }

    fn core(&mut self, core: CoreCoord, place: usize) -> &mut PlannedCore {
        let index = *self.cores.entry(place).or_insert_with(|| {
            self.plan.cores.push(PlannedCore {
                x: core.x,
                y: core.y,
                place,
                kernels: Vec::new(),
                circular_buffers: Vec::new(),
                memory_bytes: 0,
            });
            self.plan.cores.len() - 1
        });
        &mut self.plan.cores[index]
    }

    /// A core's place in the grid, row by row.
    fn place(&self, core: CoreCoord) -> usize {
        usize::from(core.y) * usize::from(self.grid.0) + usize::from(core.x)
    }
}

/// Who has something on these cores: the core that is meant, else the first one, and a kernel that
/// runs there.
fn user(
    program: &ProgramDescriptor,
    ranges: &CoreRanges,
    core: Option<CoreCoord>,
) -> (Option<CoreCoord>, Option<String>) {
    let core = core.or_else(|| ranges.cores().next());
    let runs_there = |core: CoreCoord| {
        let kernel = program.kernels.iter().find(|kernel| kernel.core_ranges.contains(core))?;
        Some(kernel.name.to_string())
    };
    (core, core.and_then(runs_there))
}

/// The core whose circular buffers take most memory of their own, the largest of them, and a kernel
/// that runs there.
pub(super) fn largest_circular_buffer(
    program: &ProgramDescriptor,
) -> Option<(u8, CoreCoord, String)> {
    let own = || program.circular_buffers.iter().filter(|one| one.placement == Placement::Own);
    let mut taken: HashMap<CoreCoord, u64> = HashMap::new();
    for buffer in own() {
        for core in buffer.core_ranges.cores() {
            *taken.entry(core).or_default() += u64::from(buffer.total_bytes);
        }
    }
    let most = *taken.values().max()?;
    let mut cores = own().flat_map(|buffer| buffer.core_ranges.cores());
    let core = cores.find(|core| taken.get(core) == Some(&most))?;
    let there = own().filter(|buffer| buffer.core_ranges.contains(core));
    let largest = there.max_by_key(|buffer| buffer.total_bytes)?;
    let (core, kernel) = user(program, &largest.core_ranges, Some(core));
    Some((largest.formats.first()?.buffer_index, core?, kernel?))
}
