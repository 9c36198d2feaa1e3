//! A buffer that a failed program left undone: what makes it readable again, and what does not.

use std::fs::OpenOptions;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use telltale_emulator::{Buffer, CompiledProgram, ExecutionError};
use telltale_program_cache::{CoreCoord, Placement, ProgramDescriptor};

use crate::accelerator::bench::{Bench, TILE_BYTES, cores, kernel, tiles};

/// A program of one kernel on core (0, 0), with the buffer's address as its argument and the
/// buffer's first tile as circular buffer 0.
fn on_buffer(bench: &Bench, text: impl Into<String>, buffer: &Buffer) -> CompiledProgram {
    let core = cores(1, 1);
    let mut single = kernel("single", text.into(), &core);
    single.runtime_arguments.push(CoreCoord::new(0, 0), &[buffer.address()]);
    let mut described =
        ProgramDescriptor { kernels: [single].into_iter().collect(), ..Default::default() };
    if buffer.bytes() >= TILE_BYTES.into() {
        let mut circular = tiles(0, 1, &core);
        circular.placement = Placement::OnBuffer { address: buffer.address() };
        described.circular_buffers.push(circular);
    }
    bench.accelerator.compile(&described).unwrap()
}

fn run(bench: &Bench, text: &str, buffer: &Arc<Buffer>) {
    let program = on_buffer(bench, text, buffer);
    bench.accelerator.enqueue(&program, std::slice::from_ref(buffer)).unwrap();
}

/// Asserts that the buffer is undone since the kernel that gave up with this number.
fn is_undone(bench: &Bench, buffer: &Arc<Buffer>, after: &str) {
    match bench.accelerator.read(buffer).map(|bytes| bytes[..4].to_vec()) {
        Err(ExecutionError::Kernel { source, .. }) => {
            assert!(source.to_string().contains("the number 3"), "after {after}: {source}");
        }
        other => panic!("after {after}: {other:?}"),
    }
}

const FAILS: &str = "KERNEL_MAIN { kernel_fail(3); }";

#[test]
fn an_operation_that_only_reads_leaves_a_buffer_undone() {
    let bench = Bench::new();
    let buffer = bench.buffer(&[1.0; 1_024]);
    run(&bench, FAILS, &buffer);
    is_undone(&bench, &buffer, "the fault");
    for reads in [
        "KERNEL_MAIN { }",
        // As an operation says that a sharded input is there: nothing is written.
        "KERNEL_MAIN { cb_reserve_back(0, 1); cb_push_back(0, 1); cb_wait_front(0, 1);
           volatile float first = *(float *)get_read_ptr(0); (void)first; cb_pop_front(0, 1); }",
        "KERNEL_MAIN { float first; noc_read_bytes(get_arg_val(0), 0, 4, &first); }",
    ] {
        run(&bench, reads, &buffer);
        is_undone(&bench, &buffer, reads);
    }
    run(
        &bench,
        "KERNEL_MAIN { cb_reserve_back(0, 1); *(float *)get_write_ptr(0) = 5; cb_push_back(0, 1); }",
        &buffer,
    );
    assert_eq!(bench.numbers(&buffer)[0], 5.0);
    bench.accelerator.finish().unwrap_err();
}

#[test]
fn an_operation_that_only_looks_at_a_semaphore_leaves_it_undone() {
    let bench = Bench::new();
    let semaphore = bench.accelerator.allocate_global_semaphore(2).unwrap();
    run(&bench, FAILS, &semaphore);
    is_undone(&bench, &semaphore, "the fault");
    for reads in [
        "KERNEL_MAIN { if (get_global_semaphore_val(get_arg_val(0)) != 2) kernel_fail(4); }",
        "KERNEL_MAIN { noc_global_semaphore_wait(get_arg_val(0), 2); }",
        "KERNEL_MAIN { noc_global_semaphore_wait_min(get_arg_val(0), 1); }",
    ] {
        run(&bench, reads, &semaphore);
        is_undone(&bench, &semaphore, reads);
    }
    run(&bench, "KERNEL_MAIN { noc_global_semaphore_set(get_arg_val(0), 9); }", &semaphore);
    assert_eq!(bench.accelerator.read(&semaphore).unwrap()[0], 9);
    bench.accelerator.finish().unwrap_err();
}

#[test]
fn a_fault_is_not_told_to_a_reader_that_has_given_up() {
    let bench = Bench::with(|options| options.kernel_timeout = Some(Duration::from_millis(200)));
    let gate = bench.scratch.join("gate");
    mknodat(CWD, &gate, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let buffer = bench.buffer(&[1.0; 1_024]);
    let sleeper = format!(
        "#include <fcntl.h>\nKERNEL_MAIN {{ (void)open({gate:?}, O_RDONLY); kernel_fail(3); }}"
    );
    let writes = "KERNEL_MAIN { float five = 5; noc_write_bytes(get_arg_val(0), 0, 4, &five); }";
    let writes = on_buffer(&bench, writes, &buffer);
    run(&bench, &sleeper, &buffer);
    let gave_up = bench.accelerator.read(&buffer).unwrap_err();
    // The kernel goes on, fails, and the read is answered that is no longer waited for.
    drop(OpenOptions::new().write(true).open(gate).unwrap());
    assert!(matches!(gave_up, ExecutionError::Endless { .. }), "{gave_up}");
    bench.accelerator.enqueue(&writes, std::slice::from_ref(&buffer)).unwrap();
    is_undone(&bench, &buffer, "an operation that must not run on it");
    bench.accelerator.enqueue(&writes, std::slice::from_ref(&buffer)).unwrap();
    assert_eq!(bench.numbers(&buffer)[0], 5.0);
    bench.accelerator.finish().unwrap_err();
}
