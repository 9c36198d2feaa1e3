//! The flat form says the same as the nested one, byte for byte and word for word.

use proptest::prelude::{prop_assert_eq, proptest};
use telltale_program_cache::{
    FlatDescriptor, FlatProgram, KernelHead, KeyEncoder, ProgramArguments, ProgramDescriptor,
};

use crate::program::some_program::{in_order, program};

fn describe<'a>(flat: &'a mut FlatDescriptor, program: &ProgramDescriptor) -> FlatProgram<'a> {
    let mut kernels = flat.begin();
    for kernel in &program.kernels {
        let head = KernelHead {
            name: &kernel.name,
            source: &kernel.source,
            core_ranges: &kernel.core_ranges,
            compile_time_arguments: &kernel.compile_time_arguments,
            named_compile_time_arguments: &kernel.named_compile_time_arguments,
            defines: &kernel.defines,
            optimisation_level: kernel.optimisation_level,
            config: &kernel.config,
        };
        let mut arguments = kernels.kernel(&head, &kernel.common_runtime_arguments);
        for (core, words) in kernel.runtime_arguments.cores() {
            arguments.push(core, words);
        }
    }
    let mut buffers = kernels.circular_buffers();
    for buffer in &program.circular_buffers {
        buffers.circular_buffer(buffer);
    }
    buffers.finish(&program.semaphores)
}

proptest! {
    #[test]
    fn flat_and_nested_are_one(first in program(), second in program()) {
        let (mut flat, mut encoder) = (FlatDescriptor::new(), KeyEncoder::new());
        // The second description uses the buffers of the first, and the third those of both.
        for program in [&first, &second, &first] {
            let described = describe(&mut flat, program);
            let key = program.key(&mut encoder);
            prop_assert_eq!(described.key().bytes(), key.bytes());
            prop_assert_eq!(described.key(), key);
            let arguments = ProgramArguments::of(program).unwrap();
            prop_assert_eq!(described.words(), arguments.words());
            prop_assert_eq!(described.to_descriptor(), Ok(in_order(program.clone())));
        }
    }
}

#[test]
fn a_rectangle_at_once_is_the_same_as_core_by_core() {
    let program = crate::program::example::program();
    let (mut flat, mut at_once) = (FlatDescriptor::new(), FlatDescriptor::new());
    let one_by_one = describe(&mut flat, &program);
    let mut kernels = at_once.begin();
    for kernel in &program.kernels {
        let head = KernelHead {
            name: &kernel.name,
            source: &kernel.source,
            core_ranges: &kernel.core_ranges,
            compile_time_arguments: &kernel.compile_time_arguments,
            named_compile_time_arguments: &[("rows", 4), ("columns", 8)],
            defines: &[("BIAS", "1"), ("ACTIVATION", "gelu")],
            optimisation_level: kernel.optimisation_level,
            config: &kernel.config,
        };
        let mut arguments = kernels.kernel(&head, &kernel.common_runtime_arguments);
        for range in kernel.core_ranges.ranges() {
            arguments.push_range(*range, |core| [u32::from(core.x), u32::from(core.y), 7]);
        }
    }
    let mut buffers = kernels.circular_buffers();
    program.circular_buffers.iter().for_each(|buffer| buffers.circular_buffer(buffer));
    let described = buffers.finish(&program.semaphores);
    assert_eq!(described.key(), one_by_one.key());
    assert_eq!(described.words(), one_by_one.words());
}

#[test]
fn a_second_description_uses_the_buffers_of_the_first() {
    let program = crate::program::example::program();
    let mut flat = FlatDescriptor::new();
    let places =
        |described: FlatProgram<'_>| (described.key().bytes().as_ptr(), described.words().as_ptr());
    let first = places(describe(&mut flat, &program));
    assert_eq!(places(describe(&mut flat, &program)), first);
}
