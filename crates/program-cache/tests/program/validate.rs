//! What validation refuses, and that it says which kernel, core and field.

use telltale_program_cache::{CoreRanges, Placement, ProgramDescriptor, RuntimeArguments};

use crate::program::example::{format, limits, program, range, semaphore};

/// The example after `change` is refused, in these words.
fn check(change: impl FnOnce(&mut ProgramDescriptor), expected: &str) {
    let mut program = program();
    change(&mut program);
    let refused = program.validate(&limits()).map_err(|error| error.to_string());
    assert_eq!(refused, Err(expected.to_owned()));
}

#[test]
fn the_example_is_valid() {
    assert_eq!(program().validate(&limits()), Ok(()));
}

#[test]
fn cores() {
    check(
        |program| program.kernels[1].core_ranges = CoreRanges::none(),
        "kernel 1 (multiply) is on no core: core_ranges is empty",
    );
    check(
        |program| program.circular_buffers[2].core_ranges = range(7, 7, 8, 7).into(),
        "core_ranges of circular buffer 2 has core (8, 7), which the device's grid \
         {(0, 0)-(7, 7)} has not",
    );
    check(
        |program| program.semaphores[0].core_ranges = range(0, 0, u16::MAX, u16::MAX).into(),
        "core_ranges of semaphore 0 (id 1) has core (8, 0), which the device's grid \
         {(0, 0)-(7, 7)} has not",
    );
    check(
        |program| program.kernels[3].core_ranges = range(3, 2, 7, 3).into(),
        "kernel 0 (reader) and kernel 3 (mover) both run on the second data processor of core \
         (3, 2)",
    );
}

#[test]
fn arguments() {
    check(
        |program| program.kernels[0].runtime_arguments.push(range(4, 0, 4, 0).start(), &[]),
        "runtime_arguments of kernel 0 (reader) has words for core (4, 0), which it does not run \
         on",
    );
    check(
        |program| program.kernels[0].runtime_arguments.push(range(2, 1, 2, 1).start(), &[1]),
        "runtime_arguments of kernel 0 (reader) has words for core (2, 1) twice",
    );
    check(
        |program| program.kernels[2].common_runtime_arguments = vec![0; 6],
        "kernel 2 (writer) has 3 words in runtime_arguments for core (4, 0) and 6 in \
         common_runtime_arguments; together at most 8 are allowed",
    );
    check(
        |program| {
            program.kernels[2].runtime_arguments = RuntimeArguments::new();
            program.kernels[2].common_runtime_arguments = vec![0; 9];
        },
        "kernel 2 (writer) has 0 words in runtime_arguments for core (4, 0) and 9 in \
         common_runtime_arguments; together at most 8 are allowed",
    );
}

#[test]
fn names() {
    check(
        |program| program.kernels[0].defines.push(("BIAS".into(), "2".into())),
        "defines of kernel 0 (reader) has `BIAS` twice",
    );
    check(
        |program| program.kernels[1].named_compile_time_arguments.push(("rows".into(), 4)),
        "named_compile_time_arguments of kernel 1 (multiply) has `rows` twice",
    );
    for name in ["", "1st", "a b", "a=1", "-x", "é"] {
        check(
            |program| program.kernels[0].defines.push((name.into(), "".into())),
            &format!("defines of kernel 0 (reader) has `{name}`, which is no identifier of C"),
        );
    }
}

#[test]
fn circular_buffers() {
    check(
        |program| program.circular_buffers[0].formats.clear(),
        "formats of circular buffer 0 is empty: no kernel could use it",
    );
    check(
        |program| program.circular_buffers[0].formats[0].buffer_index = 32,
        "buffer_index of circular buffer 0 is 32: it must be below 32",
    );
    for page_bytes in [0, 2047, 16384] {
        check(
            |program| program.circular_buffers[0].formats[0].page_bytes = page_bytes,
            &format!(
                "page_bytes of circular buffer 0 is {page_bytes}: total_bytes must be a multiple \
                 of it"
            ),
        );
    }
    check(
        |program| program.circular_buffers[1].total_bytes = 0,
        "total_bytes of circular buffer 1 is 0: it must have room for a page",
    );
    check(
        |program| program.circular_buffers[0].address_offset_bytes = 4,
        "address_offset_bytes of circular buffer 0 is 4: a buffer in the program's own memory has \
         no offset",
    );
    check(
        |program| program.circular_buffers[2].remote_formats[0] = format(2),
        "buffer_index 2 on core (0, 0) is in the formats of circular buffer 1 and circular \
         buffer 2",
    );
    check(
        |program| {
            program.circular_buffers[2].placement = Placement::Own;
            program.circular_buffers[2].remote_formats.clear();
            program.circular_buffers[2].total_bytes = 64 * 1024;
        },
        "total_bytes of circular buffer 2 brings the program's circular buffers on core (0, 0) to \
         73728 bytes; the core has room for 65536",
    );
}

#[test]
fn a_far_end_without_a_remote_placement() {
    for placement in [Placement::Own, Placement::OnBuffer { address: 8192 }] {
        check(
            |program| program.circular_buffers[2].placement = placement,
            "remote_formats of circular buffer 2 is not empty, and its placement is not Remote: \
             only a global circular buffer has a far end",
        );
    }
}

#[test]
fn semaphores() {
    check(
        |program| program.semaphores.push(semaphore(0, range(7, 3, 7, 4))),
        "semaphore 2 (id 0) and semaphore 3 (id 0) have the same id on core (7, 3)",
    );
}
