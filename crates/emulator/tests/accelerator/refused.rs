//! Programs that are refused, or stopped: what is reported, and that nothing stays allocated.

use std::borrow::Cow;
use std::error::Error;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use telltale_emulator::{ExecutionError, KernelFault};
use telltale_program_cache::{
    CircularBufferDescriptor, CoreCoord, CoreRange, KernelSource, Placement, ProgramDescriptor,
};
use telltale_schema::memory::MemoryKind;

use crate::accelerator::bench::{Bench, cores, kernel, semaphore, tiles};

/// An error with its causes, as a person sees it.
fn reported(error: &dyn Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {}", reported(cause)),
        None => error.to_string(),
    }
}

/// A program of one kernel on core (0, 0).
fn single(text: impl Into<Cow<'static, str>>) -> ProgramDescriptor {
    let core = cores(1, 1);
    ProgramDescriptor {
        kernels: [kernel("single", text, &core)].into_iter().collect(),
        ..ProgramDescriptor::default()
    }
}

fn with_buffers(buffers: &[CircularBufferDescriptor]) -> ProgramDescriptor {
    let circular_buffers = buffers.iter().cloned().collect();
    ProgramDescriptor { circular_buffers, ..single("KERNEL_MAIN {}") }
}

/// A program that cannot be compiled, and what its error says.
type Refused = (ProgramDescriptor, &'static [&'static str]);

/// Kernels that cannot be compiled.
fn wrong_kernels() -> Vec<Refused> {
    let mut cases: Vec<Refused> = Vec::new();
    let mut unknown = single("");
    unknown.kernels[0].source = KernelSource::Path("no/such/kernel.c".into());
    cases.push((
        unknown,
        &["kernel single on core (0, 0)", "source", "no/such/kernel.c", "No such file"],
    ));
    let wrong = single("KERNEL_MAIN {\n  int x = missing_thing;\n}");
    cases.push((
        wrong,
        &["kernel single on core (0, 0)", "source", "single:2:11: error", "missing_thing"],
    ));
    cases.push((
        single("static int unused;"),
        &["kernel single on core (0, 0)", "source", "KERNEL_MAIN"],
    ));
    cases.push((single("KERNEL_MAIN { no_such_call(1); }"), &["single", "no_such_call"]));
    let index = single("KERNEL_MAIN { cb_push_back(get_compile_time_arg_val(3), 1); }");
    cases.push((index, &["single", "telltale_compile_time_argument_3"]));
    let deep = single("KERNEL_MAIN { volatile char large[70000]; large[core_x()] = 1; }");
    cases.push((deep, &["single", "frame size"]));
    let mut outside = single("KERNEL_MAIN {}");
    outside.kernels[0].core_ranges = CoreCoord::new(8, 2).into();
    cases.push((outside, &["kernel single", "core (8, 2)", "core_ranges", "8 columns"]));
    // Four thousand million cores, which are not looked at one by one.
    let all = CoreRange::new(CoreCoord::new(0, 0), CoreCoord::new(u16::MAX, u16::MAX));
    let mut huge = single("KERNEL_MAIN {}");
    huge.kernels[0].core_ranges = all.into();
    cases.push((huge, &["kernel single", "core (8, 0)", "core_ranges", "8 columns"]));
    let huge = with_buffers(&[tiles(0, 1, &all.into())]);
    cases.push((huge, &["circular buffer 0", "core (8, 0)", "core_ranges", "no such core"]));
    let mut elsewhere = single("KERNEL_MAIN {}");
    elsewhere.kernels[0].runtime_arguments.push(CoreCoord::new(1, 0), &[7]);
    cases.push((elsewhere, &["kernel single", "core (1, 0)", "runtime_arguments"]));
    let mut define = single("KERNEL_MAIN {}");
    define.kernels[0].defines.push(("A(".into(), "1".into()));
    cases.push((define, &["kernel single on core (0, 0)", "defines", "A("]));
    cases
}

/// Circular buffers and semaphores that cannot be made.
fn wrong_resources() -> Vec<Refused> {
    let core = cores(1, 1);
    let mut cases: Vec<Refused> = Vec::new();
    cases.push((
        with_buffers(&[tiles(0, 2, &core), tiles(3, 400, &core)]),
        &["buffer 3", "core (0, 0)", "kernel single", "total_bytes", "1646592", "out of l1"],
    ));
    cases.push((
        with_buffers(&[tiles(32, 1, &core)]),
        &["buffer 32 on core (0, 0) of kernel single", "buffer_index"],
    ));
    cases.push((
        with_buffers(&[tiles(1, 1, &core), tiles(1, 1, &core)]),
        &["buffer 1 on core (0, 0) of kernel single", "buffer_index"],
    ));
    let mut uneven = tiles(1, 2, &core);
    uneven.total_bytes += 1;
    cases.push((
        with_buffers(&[uneven]),
        &["buffer 1 on core (0, 0) of kernel single", "page_bytes"],
    ));
    cases.push((
        with_buffers(&[tiles(1, 0, &core)]),
        &["buffer 1 on core (0, 0) of kernel single", "page_bytes"],
    ));
    let mut remote = tiles(1, 1, &core);
    remote.placement = Placement::Remote { global_circular_buffer: 0 };
    cases.push((
        with_buffers(&[remote]),
        &["buffer 1 on core (0, 0) of kernel single", "placement"],
    ));
    let mut many = single("KERNEL_MAIN {}");
    many.semaphores.push(semaphore(16, 0, &core));
    cases.push((many, &["semaphore 16 on core (0, 0) of kernel single", "id"]));
    let mut twice = single("KERNEL_MAIN {}");
    twice.semaphores.extend([semaphore(1, 0, &core), semaphore(1, 0, &cores(2, 1))]);
    cases.push((twice, &["semaphore 1 on core (0, 0) of kernel single", "id"]));
    cases
}

#[test]
fn what_cannot_be_compiled_is_reported_with_kernel_core_and_field_and_leaves_nothing() {
    let bench = Bench::new();
    for (program, expected) in wrong_kernels().into_iter().chain(wrong_resources()) {
        let error = reported(&bench.accelerator.compile(&program).unwrap_err());
        for part in expected {
            assert!(error.contains(part), "{part:?} is missing in: {error}");
        }
        assert_eq!(bench.allocated(), [], "after: {error}");
    }
}

#[test]
fn a_failed_compilation_is_tried_again() {
    let bench = Bench::new();
    std::fs::write(bench.scratch.join("late.c"), "KERNEL_MAIN { oops }").unwrap();
    let mut program = single("");
    program.kernels[0].source = KernelSource::Path("late.c".into());
    assert!(bench.accelerator.compile(&program).is_err());
    std::fs::write(bench.scratch.join("late.c"), "KERNEL_MAIN {}").unwrap();
    assert!(bench.accelerator.compile(&program).is_ok());
    assert_eq!(bench.accelerator.kernel_counters().failed, 1);
}

/// Runs a kernel on core (0, 0), with one circular buffer of two pages and one semaphore.
fn run(bench: &Bench, text: &'static str, arguments: &[u32]) -> ExecutionError {
    let core = cores(1, 1);
    let mut program = single(text);
    program.kernels[0].runtime_arguments.push(CoreCoord::new(0, 0), arguments);
    program.circular_buffers.push(tiles(5, 2, &core));
    program.semaphores.push(semaphore(2, 9, &core));
    let compiled = bench.accelerator.compile(&program).unwrap();
    bench.accelerator.enqueue(&compiled, &[]).unwrap();
    let error = bench.accelerator.finish().unwrap_err();
    bench.accelerator.finish().unwrap();
    error
}

#[test]
fn what_a_kernel_does_wrong_is_reported_with_kernel_and_core() {
    let bench = Bench::new();
    let buffer = bench.accelerator.allocate(MemoryKind::Dram, 3 * 2_048, 2_048).unwrap();
    let stale = bench.accelerator.allocate(MemoryKind::Dram, 2_048, 2_048).unwrap().address();
    let live = buffer.address();
    let read = "KERNEL_MAIN { char to[8192]; \
        noc_read_page(get_arg_val(0), get_arg_val(1), get_arg_val(2), get_arg_val(3), to); }";
    let write = "KERNEL_MAIN { char from[8192] = {0}; \
        noc_write_bytes(get_arg_val(0), get_arg_val(1), get_arg_val(2), from); }";
    let cases: Vec<(&'static str, Vec<u32>, &str)> = vec![
        ("KERNEL_MAIN { get_arg_val(2); }", vec![1, 2], "argument 2, and this core has 2"),
        ("KERNEL_MAIN { get_arg_val(-1); }", vec![1, 2], "argument 4294967295"),
        ("KERNEL_MAIN { get_common_arg_val(0); }", vec![], "common argument 0"),
        ("KERNEL_MAIN { cb_wait_front(4, 1); }", vec![], "circular buffer 4"),
        ("KERNEL_MAIN { get_write_ptr(77); }", vec![], "circular buffer 77"),
        ("KERNEL_MAIN { cb_reserve_back(5, 3); }", vec![], "3 pages at a time"),
        (
            "KERNEL_MAIN { cb_reserve_back(5, 1); cb_push_back(5, 1); cb_reserve_back(5, 2); }",
            vec![],
            "2 pages of circular buffer 5 that would go beyond its end",
        ),
        ("KERNEL_MAIN { cb_push_back(5, 2); cb_push_back(5, 1); }", vec![], "pushes 1 pages"),
        ("KERNEL_MAIN { cb_pop_front(5, 1); }", vec![], "pops 1 pages"),
        ("KERNEL_MAIN { kernel_fail(42); }", vec![], "number 42"),
        ("KERNEL_MAIN { noc_semaphore_wait(3, 1); }", vec![], "semaphore 3 of core (0, 0)"),
        ("KERNEL_MAIN { noc_semaphore_inc(1, 0, 2, 1); }", vec![], "2 of core (1, 0)"),
        ("KERNEL_MAIN { noc_semaphore_inc(-1, 0, 2, 1); }", vec![], "core (4294967295, 0)"),
        (read, vec![live, 3, 2_048, 2_048], "reads from bytes 6144 to 8191"),
        (read, vec![live, u32::MAX, 2_048, 2_048], "which has 6144 bytes in pages of 2048"),
        (read, vec![live, 0, 2_049, 2_048], "bytes 0 to 2048 of"),
        (read, vec![live, 0, 4_096, 4_096], "pages of 4096 bytes"),
        (read, vec![stale, 0, 2_048, 2_048], "where this process has no buffer"),
        (read, vec![0, 0, 1, 1], "address 0x0"),
        (read, vec![u32::MAX, 0, 1, 1], "address 0xffffffff"),
        (write, vec![live, 6_140, 5], "writes to bytes 6140 to 6144"),
        (write, vec![stale, 0, 4], "writes to address"),
    ];
    for (text, arguments, expected) in cases {
        let error = run(&bench, text, &arguments);
        assert!(matches!(error, ExecutionError::Kernel { .. }), "{error}");
        let reported = reported(&error);
        assert!(reported.starts_with("kernel single on core (0, 0)"), "{reported}");
        assert!(reported.contains(expected), "{expected:?} is missing in: {reported}");
    }
    drop(buffer);
    assert_eq!(bench.allocated(), []);
}

#[test]
fn a_hang_is_reported_with_every_kernel_core_and_buffer() {
    let bench = Bench::new();
    let both = cores(2, 1);
    let texts = [
        (
            "reader",
            "KERNEL_MAIN { cb_reserve_back(0, 2); cb_push_back(0, 2); cb_reserve_back(0, 1); }",
        ),
        ("stuck", "KERNEL_MAIN { cb_wait_front(0, 1); cb_wait_front(1, 2); }"),
        ("writer", "KERNEL_MAIN { noc_semaphore_wait_min(3, 7); }"),
    ];
    let mut program = ProgramDescriptor {
        kernels: texts.map(|(name, text)| kernel(name, text, &both)).into_iter().collect(),
        circular_buffers: [tiles(0, 2, &both), tiles(1, 2, &both)].into_iter().collect(),
        ..ProgramDescriptor::default()
    };
    program.semaphores.push(semaphore(3, 4, &both));
    let compiled = bench.accelerator.compile(&program).unwrap();
    let [its, other] =
        [(); 2].map(|()| bench.accelerator.allocate(MemoryKind::Dram, 32, 32).unwrap());
    bench.accelerator.enqueue(&compiled, std::slice::from_ref(&its)).unwrap();
    // What it should have written is not there; another buffer has nothing to do with it.
    bench.accelerator.write(&other, &[7; 32]).unwrap();
    assert_eq!(bench.accelerator.read(&other).unwrap(), [7; 32]);
    assert!(matches!(bench.accelerator.read(&its), Err(ExecutionError::Hang { .. })));
    let error = bench.accelerator.finish().unwrap_err();
    let ExecutionError::Hang { waits, omitted: 0 } = &error else { panic!("{error}") };
    assert_eq!(waits.len(), 6);
    for part in [
        "kernel reader on core (0, 0) waits for room for 1 pages in circular buffer 0, where 2",
        "kernel stuck on core (1, 0) waits for 2 pages in circular buffer 1, which has 0",
        "kernel writer on core (1, 0) waits for 7 or more in semaphore 3, which is 4",
    ] {
        assert!(error.to_string().contains(part), "{part:?} is missing in: {error}");
    }
    assert_eq!(bench.accelerator.read(&its).unwrap(), [0; 32]);
    drop((compiled, its, other));
    assert_eq!(bench.allocated(), []);
}

#[test]
fn a_large_hang_is_reported_in_few_words() {
    let bench = Bench::new();
    let all = cores(8, 8);
    let program = ProgramDescriptor {
        kernels: [kernel("stuck", "KERNEL_MAIN { cb_wait_front(0, 1); }", &all)]
            .into_iter()
            .collect(),
        circular_buffers: [tiles(0, 1, &all)].into_iter().collect(),
        ..ProgramDescriptor::default()
    };
    let compiled = bench.accelerator.compile(&program).unwrap();
    for _ in 0..20 {
        bench.accelerator.enqueue(&compiled, &[]).unwrap();
        let error = bench.accelerator.finish().unwrap_err();
        assert!(matches!(error, ExecutionError::Hang { omitted: 48, .. }), "{error}");
    }
}

#[test]
fn a_kernel_that_does_not_end_is_stopped() {
    let bench = Bench::with(|options| options.kernel_timeout = Some(Duration::from_millis(200)));
    let mut program = single("KERNEL_MAIN { for (volatile int i = 0;; i++) {} }".to_owned());
    program.kernels[0].name = "spinner".into();
    let compiled = bench.accelerator.compile(&program).unwrap();
    for _ in 0..2 {
        bench.accelerator.enqueue(&compiled, &[]).unwrap();
        let error = bench.accelerator.finish().unwrap_err();
        let source = KernelFault::Endless { milliseconds: 200 };
        let expected = format!("kernel spinner on core (0, 0) was stopped: {source}");
        assert_eq!(reported(&error), expected);
    }
    let harmless = bench.accelerator.compile(&single("KERNEL_MAIN {}")).unwrap();
    bench.accelerator.enqueue(&harmless, &[]).unwrap();
    bench.accelerator.finish().unwrap();
}

#[test]
fn a_kernel_that_cannot_be_stopped_is_named() {
    let bench = Bench::with(|options| options.kernel_timeout = Some(Duration::from_millis(200)));
    let gate = bench.scratch.join("gate");
    mknodat(CWD, &gate, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    // It sleeps in a call of the system until another opens the gate.
    let mut program =
        single(format!("#include <fcntl.h>\nKERNEL_MAIN {{ (void)open({gate:?}, O_RDONLY); }}"));
    let harmless = bench.accelerator.compile(&single("KERNEL_MAIN {}")).unwrap();
    program.kernels[0].name = "sleeper".into();
    let compiled = bench.accelerator.compile(&program).unwrap();
    bench.accelerator.enqueue(&compiled, &[]).unwrap();
    let error = bench.accelerator.finish().unwrap_err();
    assert!(matches!(error, ExecutionError::Endless { .. }), "{error}");
    assert!(error.to_string().starts_with("kernel sleeper on core (0, 0) has run for"), "{error}");
    // A full queue does not make anyone wait for ever either.
    let full = (0..1_000).find_map(|_| bench.accelerator.enqueue(&harmless, &[]).err());
    drop(std::fs::OpenOptions::new().write(true).open(gate).unwrap());
    assert!(matches!(full, Some(ExecutionError::Endless { .. })), "{full:?}");
}

#[test]
fn buffers_of_another_accelerator_are_refused() {
    let (one, other) = (Bench::new(), Bench::new());
    let buffer = other.accelerator.allocate(MemoryKind::Dram, 32, 32).unwrap();
    let refused = [
        one.accelerator.write(&buffer, &[1]).unwrap_err(),
        one.accelerator.read(&buffer).unwrap_err(),
    ];
    assert!(refused.iter().all(|error| matches!(error, ExecutionError::OtherAccelerator)));
    assert!(matches!(
        other.accelerator.write(&buffer, &[1; 33]),
        Err(ExecutionError::TooLong { bytes: 33, buffer_bytes: 32 })
    ));
}

#[test]
fn a_circular_buffer_beyond_its_buffer_is_refused_when_it_is_run() {
    let bench = Bench::new();
    let core = cores(2, 1);
    let mut program = single("KERNEL_MAIN { cb_wait_front(0, 1); }");
    program.kernels[0].core_ranges = core.clone();
    let mut on_buffer = tiles(0, 2, &core);
    // Half a buffer, and one that has not even a byte for each core.
    for bytes in [2 * 4_096, 1] {
        let page = u32::try_from(bytes).unwrap();
        let buffer = bench.accelerator.allocate(MemoryKind::L1, bytes, page).unwrap();
        on_buffer.placement = Placement::OnBuffer { address: buffer.address() };
        program.circular_buffers = [on_buffer.clone()].into_iter().collect();
        let compiled = bench.accelerator.compile(&program).unwrap();
        bench.accelerator.enqueue(&compiled, &[buffer]).unwrap();
        let error = bench.accelerator.finish().unwrap_err();
        let ExecutionError::CircularBuffer { buffer: 0, x: 0, y: 0, source } = error else {
            panic!("{error}")
        };
        let KernelFault::OutsideBuffer { buffer_bytes, .. } = source else { panic!("{source}") };
        assert_eq!(buffer_bytes, bytes);
    }
}
