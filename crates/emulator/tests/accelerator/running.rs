//! Programs that do what they should.

use telltale_program_cache::ProgramDescriptor;
use telltale_schema::memory::MemoryKind;

use crate::bench::{Bench, TILE_BYTES, cores, kernel, tiles};

const READER: &str = "
KERNEL_MAIN {
  uint32_t address = get_arg_val(0), first = get_arg_val(1), count = get_arg_val(2);
  for (uint32_t page = first; page < first + count; page++) {
    cb_reserve_back(0, 1);
    noc_read_page(address, page, PAGE_BYTES, PAGE_BYTES, get_write_ptr(0));
    cb_push_back(0, 1);
  }
}";
const SCALE: &str = "
KERNEL_MAIN {
  float factor = get_common_arg_val_float(0);
  for (uint32_t page = 0; page < get_arg_val(0); page++) {
    cb_wait_front(0, 1);
    cb_reserve_back(1, 1);
    const float *from = get_read_ptr(0);
    float *restrict to = get_write_ptr(1);
    for (int i = 0; i < TILE_NUMBERS; i++) to[i] = factor * from[i] + (float)NAMED_ARG(added);
    cb_pop_front(0, 1);
    cb_push_back(1, 1);
  }
}";
const WRITER: &str = "
KERNEL_MAIN {
  uint32_t address = get_arg_val(0), first = get_arg_val(1), count = get_arg_val(2);
  for (uint32_t page = first; page < first + count; page++) {
    cb_wait_front(1, 1);
    noc_write_page(address, page, PAGE_BYTES, PAGE_BYTES, get_read_ptr(1));
    cb_pop_front(1, 1);
  }
}";

/// Multiplies each tile by a factor and adds 1; every core does `pages` of them.
fn scale(
    columns: u16,
    rows: u16,
    pages: u32,
    from: u32,
    to: u32,
    factor: f32,
) -> ProgramDescriptor {
    let cores = cores(columns, rows);
    let mut reader = kernel("reader", READER, &cores);
    let mut writer = kernel("writer", WRITER, &cores);
    let mut compute = kernel("scale", SCALE, &cores);
    for (kernel, address) in [(&mut reader, from), (&mut writer, to)] {
        kernel.defines.push(("PAGE_BYTES".into(), TILE_BYTES.to_string().into()));
        for (place, core) in (0..).zip(cores.cores()) {
            kernel.runtime_arguments.push(core, &[address, place * pages, pages]);
        }
    }
    compute.common_runtime_arguments.push(factor.to_bits());
    compute.named_compile_time_arguments.push(("added".into(), 1));
    for core in cores.cores() {
        compute.runtime_arguments.push(core, &[pages]);
    }
    ProgramDescriptor {
        kernels: [reader, compute, writer].into_iter().collect(),
        circular_buffers: [tiles(0, 2, &cores), tiles(1, 2, &cores)].into_iter().collect(),
        ..ProgramDescriptor::default()
    }
}

#[test]
fn kernels_of_a_core_pass_pages_through_circular_buffers() {
    let bench = Bench::new();
    let accelerator = &bench.accelerator;
    let numbers: Vec<f32> = (0..1_024 * 8 * 8 * 3).map(|number| number as f32).collect();
    let from = bench.buffer(&numbers);
    let to = bench.buffer(&vec![0.0; numbers.len()]);
    let described = scale(8, 8, 3, from.address(), to.address(), 2.0);
    let mut program = accelerator.compile(&described).unwrap();
    accelerator.enqueue(&program, &[from.clone(), to.clone()]).unwrap();
    // The run keeps the arguments that it was given.
    let described = scale(8, 8, 3, to.address(), from.address(), 0.5);
    program.arguments_mut().copy_from_descriptor(&described).unwrap();
    let first = bench.numbers(&to);
    accelerator.enqueue(&program, &[from.clone(), to.clone()]).unwrap();
    accelerator.finish().unwrap();
    assert!(first.iter().zip(&numbers).all(|(got, number)| *got == 2.0 * number + 1.0));
    let second = bench.numbers(&from);
    assert!(second.iter().zip(&numbers).all(|(got, number)| *got == number + 1.5));
    assert_eq!(accelerator.kernel_counters().compiled, 3);
}

#[test]
fn a_program_takes_up_memory_of_the_chip_while_it_lives() {
    let bench = Bench::new();
    let from = bench.buffer(&[1.0; 1_024]);
    let buffers = bench.allocated();
    let described = scale(1, 1, 1, from.address(), from.address(), 2.0);
    let program = bench.accelerator.compile(&described).unwrap();
    let allocated = bench.allocated();
    let bytes = |kind| allocated.iter().find(|(found, _)| *found == kind).unwrap().1;
    assert_eq!(bytes(MemoryKind::Cb), 64 * 4 * u64::from(TILE_BYTES), "on each of 64 cores");
    let kernels = bytes(MemoryKind::KernelApplication);
    assert_eq!(program.device_bytes(), kernels + bytes(MemoryKind::Cb));
    let again = bench.accelerator.compile(&described).unwrap();
    assert_eq!(bench.allocated(), allocated, "programs share equal kernels and the region");
    drop((program, again));
    assert_eq!(bench.allocated(), buffers);
    drop(from);
    assert_eq!(bench.allocated(), []);
}
