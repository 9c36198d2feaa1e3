//! Programs side by side as one, and programs that cannot be.

use telltale_program_cache::{
    CoreCoord, KernelConfig, KernelDescriptor, KernelSource, MergeError, Part, ProgramDescriptor,
    ReaderConfig,
};

use crate::program::example::{limits, program, range, semaphore};

fn on(name: &'static str, left: u16, right: u16) -> ProgramDescriptor {
    let cores = range(left, 5, right, 5);
    let config = KernelConfig::Reader(ReaderConfig {});
    let source = KernelSource::Path("reader.c".into());
    let mut kernel = KernelDescriptor::new(name, source, cores, config);
    kernel.runtime_arguments.push_range(cores, |core| [u32::from(core.x)]);
    ProgramDescriptor { kernels: [kernel].into_iter().collect(), ..ProgramDescriptor::default() }
}

#[test]
fn merged_programs_keep_everything_in_order() {
    let merged = ProgramDescriptor::merge([program(), on("a", 0, 1), on("b", 2, 3)]).unwrap();
    assert_eq!(merged.validate(&limits()), Ok(()));
    assert_eq!(merged.kernels[..4], program().kernels[..]);
    assert_eq!(merged.kernels[4..], [on("a", 0, 1).kernels, on("b", 2, 3).kernels].concat()[..]);
    assert_eq!(merged.circular_buffers, program().circular_buffers);
    assert_eq!(merged.semaphores, program().semaphores);
    assert_eq!(ProgramDescriptor::merge([program()]), Ok(program()));
    assert_eq!(ProgramDescriptor::<u32>::merge([]), Ok(ProgramDescriptor::default()));
}

#[test]
fn a_shared_core_is_reported_with_both_kernels() {
    let refused = ProgramDescriptor::merge([program(), on("a", 0, 3), on("b", 3, 4)]).unwrap_err();
    let kernel = |name: &'static str| Part::Kernel { index: 0, name: name.into() };
    assert_eq!(
        refused,
        MergeError::SharedCore {
            first_program: 1,
            first: kernel("a"),
            second_program: 2,
            second: kernel("b"),
            core: CoreCoord::new(3, 5),
        }
    );
    assert_eq!(
        refused.to_string(),
        "kernel 0 (a) of program 1 and kernel 0 (b) of program 2 both have core (3, 5) in their \
         core_ranges; programs that are merged must not share a core"
    );
}

#[test]
fn parts_of_different_kinds_must_not_share_a_core_either() {
    let waits = ProgramDescriptor {
        semaphores: [semaphore(9, range(1, 5, 1, 5))].into_iter().collect(),
        ..ProgramDescriptor::default()
    };
    let MergeError::SharedCore { first, second, core, .. } =
        ProgramDescriptor::merge([on("a", 0, 3), waits]).unwrap_err();
    assert_eq!(first, Part::Kernel { index: 0, name: "a".into() });
    assert_eq!(second, Part::Semaphore { index: 0, id: 9 });
    assert_eq!(core, CoreCoord::new(1, 5));
}
