//! Several programs, each on cores of its own, as one.

use thiserror::Error;

use crate::cores::CoreCoord;
use crate::descriptor::ProgramDescriptor;
use crate::descriptor::part::Part;

/// Why programs cannot be one.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MergeError {
    /// Two programs use one core.
    #[error(
        "{first} of program {first_program} and {second} of program {second_program} both have \
         core {core} in their core_ranges; programs that are merged must not share a core"
    )]
    SharedCore {
        /// Which program comes first, from 0.
        first_program: usize,
        /// The part of it that uses the core.
        first: Part,
        /// Which other program uses it.
        second_program: usize,
        /// The part of that one.
        second: Part,
        /// A core that both use.
        core: CoreCoord,
    },
}

/// As [`ProgramDescriptor::merge`].
pub(super) fn merge<A>(
    programs: impl IntoIterator<Item = ProgramDescriptor<A>>,
) -> Result<ProgramDescriptor<A>, MergeError> {
    let mut merged = ProgramDescriptor::default();
    // Of each program that is in `merged`: its number of parts of each kind.
    let mut sizes: Vec<[usize; 3]> = Vec::new();
    for program in programs {
        if let Some((core, earlier, second)) = shared_core(&merged, &program) {
            let (first_program, first) = origin(&sizes, earlier);
            let second_program = sizes.len();
            return Err(MergeError::SharedCore {
                first_program,
                first,
                second_program,
                second,
                core,
            });
        }
        sizes.push([
            program.kernels.len(),
            program.circular_buffers.len(),
            program.semaphores.len(),
        ]);
        let ProgramDescriptor { kernels, circular_buffers, semaphores } = program;
        merged.kernels.extend(kernels);
        merged.circular_buffers.extend(circular_buffers);
        merged.semaphores.extend(semaphores);
    }
    Ok(merged)
}

fn shared_core<A>(
    one: &ProgramDescriptor<A>,
    two: &ProgramDescriptor<A>,
) -> Option<(CoreCoord, Part, Part)> {
    one.parts().find_map(|(first, its_cores)| {
        two.parts().find_map(|(second, cores)| {
            its_cores.shared_core(cores).map(|core| (core, first.clone(), second))
        })
    })
}

/// Which program a part of the merged one came from, and what it was there.
fn origin(sizes: &[[usize; 3]], mut part: Part) -> (usize, Part) {
    for (program, size) in sizes.iter().enumerate() {
        let (index, count) = match &mut part {
            Part::Kernel { index, .. } => (index, size[0]),
            Part::CircularBuffer { index } => (index, size[1]),
            Part::Semaphore { index, .. } => (index, size[2]),
        };
        if *index < count {
            return (program, part);
        }
        *index -= count;
    }
    (sizes.len(), part)
}
