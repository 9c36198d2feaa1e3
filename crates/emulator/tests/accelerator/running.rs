//! Programs that do what they should.

use telltale_emulator::KernelUse;
use telltale_program_cache::{CoreCoord, Placement, ProgramDescriptor};
use telltale_schema::memory::MemoryKind;

use crate::accelerator::bench::{Bench, TILE_BYTES, cores, kernel, semaphore, tiles};

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

#[test]
fn circular_buffers_of_different_cores_take_no_room_from_each_other() {
    const TWO: &str = "KERNEL_MAIN {
      cb_reserve_back(0, 200);
      cb_reserve_back(1, 20);
      uint32_t *large = get_write_ptr(0), *small = get_write_ptr(1);
      for (uint32_t i = 0; i < 200 * TILE_NUMBERS; i++) large[i] = 1;
      for (uint32_t i = 0; i < 20 * TILE_NUMBERS; i++) small[i] = 2;
      for (uint32_t i = 0; i < 200 * TILE_NUMBERS; i++) if (large[i] != 1) cb_pop_front(9, 1);
    }";
    let bench = Bench::new();
    let all = cores(2, 1);
    let mut kernel = kernel("compute", TWO, &all);
    kernel.defines.push(("TILE_NUMBERS".into(), "1024".into()));
    let [left, right] = [0, 1].map(|x| CoreCoord::new(x, 0).into());
    let described = ProgramDescriptor {
        kernels: [kernel].into_iter().collect(),
        // Together more than a core has.
        circular_buffers: [tiles(0, 200, &left), tiles(0, 300, &right), tiles(1, 20, &all)]
            .into_iter()
            .collect(),
        ..ProgramDescriptor::default()
    };
    let program = bench.accelerator.compile(&described).unwrap();
    let region = 64 * 320 * u64::from(TILE_BYTES);
    assert!(bench.allocated().contains(&(MemoryKind::Cb, region)), "{:?}", bench.allocated());
    bench.accelerator.enqueue(&program, &[]).unwrap();
    bench.accelerator.finish().unwrap();
}

#[test]
fn cores_wait_for_each_other_through_semaphores() {
    let bench = Bench::new();
    let all = cores(8, 8);
    // A token goes around the grid three times; each core adds its place.
    let text = "
KERNEL_MAIN {
  uint32_t next_x = get_arg_val(0), next_y = get_arg_val(1), place = get_arg_val(2);
  uint32_t sum;
  for (uint32_t round = 0; round < 3; round++) {
    if (place != 0 || round != 0) noc_semaphore_wait(4, 1);
    noc_semaphore_set(4, 0);
    noc_read_bytes(get_common_arg_val(0), 0, 4, &sum);
    sum += place;
    noc_write_bytes(get_common_arg_val(0), 0, 4, &sum);
    noc_semaphore_inc(next_x, next_y, 4, 1);
  }
}";
    let sum = bench.accelerator.allocate(MemoryKind::L1, 32, 32).unwrap();
    bench.accelerator.write(&sum, &[0; 32]).unwrap();
    let mut token = kernel("token", text, &all);
    token.common_runtime_arguments.push(sum.address());
    for (place, core) in (0u32..).zip(all.cores()) {
        let next = (place + 1) % 64;
        token.runtime_arguments.push(core, &[next % 8, next / 8, place]);
    }
    let mut described = ProgramDescriptor::default();
    described.kernels.push(token);
    described.semaphores.push(semaphore(4, 0, &all));
    let program = bench.accelerator.compile(&described).unwrap();
    for run in 1..=2u32 {
        bench.accelerator.enqueue(&program, std::slice::from_ref(&sum)).unwrap();
        let expected = run * 3 * (63 * 64 / 2);
        assert_eq!(bench.accelerator.read(&sum).unwrap()[..4], expected.to_le_bytes());
    }
    bench.accelerator.finish().unwrap();
    drop((program, sum));
    assert_eq!(bench.allocated(), []);
}

#[test]
fn a_global_semaphore_outlives_a_program() {
    let bench = Bench::new();
    let semaphore = bench.accelerator.allocate_global_semaphore(5).unwrap();
    let describe = |text, x| {
        let core = CoreCoord::new(x, 0);
        let mut kernel = kernel("kernel", text, &core.into());
        kernel.runtime_arguments.push(core, &[semaphore.address()]);
        let mut described = ProgramDescriptor::default();
        described.kernels.push(kernel);
        bench.accelerator.compile(&described).unwrap()
    };
    let give = describe("KERNEL_MAIN { noc_global_semaphore_inc(3, 0, get_arg_val(0), 2); }", 0);
    let take = describe("KERNEL_MAIN { noc_global_semaphore_wait(get_arg_val(0), 7); }", 3);
    let held = std::slice::from_ref(&semaphore);
    bench.accelerator.enqueue(&take, held).unwrap();
    let error = bench.accelerator.finish().unwrap_err().to_string();
    assert!(error.contains("core (3, 0) waits for 7 in the global semaphore"), "{error}");
    assert!(error.ends_with("which is 5"), "{error}");
    for program in [&give, &take] {
        bench.accelerator.enqueue(program, held).unwrap();
    }
    bench.accelerator.finish().unwrap();
    assert_eq!(bench.accelerator.read(&semaphore).unwrap()[3 * 16], 7);
}

#[test]
fn a_circular_buffer_can_lie_on_a_buffer() {
    let bench = Bench::new();
    let both = cores(2, 1);
    let numbers: Vec<f32> = (0..4 * 1_024u16).map(f32::from).collect();
    let (buffer, other) = (bench.buffer(&numbers), bench.buffer(&vec![1.0; 4 * 1_024]));
    // Each core doubles the second page of its half.
    let text = "
KERNEL_MAIN {
  cb_reserve_back(0, 1);
  float *numbers = get_write_ptr(0);
  for (int i = 0; i < TILE_NUMBERS; i++) numbers[i] *= 2;
  cb_push_back(0, 1);
}";
    let mut on_buffer = tiles(0, 1, &both);
    on_buffer.placement = Placement::OnBuffer { address: buffer.address() };
    on_buffer.address_offset_bytes = TILE_BYTES;
    let mut described = ProgramDescriptor::default();
    described.kernels.push(kernel("double", text, &both));
    described.circular_buffers.push(on_buffer);
    let mut program = bench.accelerator.compile(&described).unwrap();
    bench.accelerator.enqueue(&program, std::slice::from_ref(&buffer)).unwrap();
    described.circular_buffers[0].placement = Placement::OnBuffer { address: other.address() };
    program.arguments_mut().copy_from_descriptor(&described).unwrap();
    bench.accelerator.enqueue(&program, std::slice::from_ref(&other)).unwrap();
    let doubled = |page: usize| if page % 2 == 1 { 2.0 } else { 1.0 };
    let expected = |numbers: &[f32]| -> Vec<f32> {
        let pages = numbers.chunks(1_024).enumerate();
        pages.flat_map(|(page, one)| one.iter().map(move |one| one * doubled(page))).collect()
    };
    assert_eq!(bench.numbers(&buffer), expected(&numbers));
    assert_eq!(bench.numbers(&other), expected(&vec![1.0; 4 * 1_024]));
}

#[test]
fn the_code_of_a_kernel_counts_as_what_it_is_used_for() {
    let bench = Bench::new();
    let mut described = ProgramDescriptor::default();
    described.kernels.push(kernel("nothing", "KERNEL_MAIN {}", &cores(1, 1)));
    for (kernel_use, kind) in [
        (KernelUse::Application, MemoryKind::KernelApplication),
        (KernelUse::Dispatch, MemoryKind::KernelDispatch),
        (KernelUse::Fabric, MemoryKind::KernelFabric),
    ] {
        let program = bench.accelerator.compile_for(kernel_use, &described).unwrap();
        assert_eq!(bench.allocated(), [(kind, program.device_bytes())]);
    }
    assert_eq!(bench.allocated(), []);
}

#[test]
fn accelerators_run_the_same_kernels_at_the_same_time() {
    let benches = [(); 3].map(|()| Bench::new());
    std::thread::scope(|scope| {
        for (bench, factor) in benches.iter().zip([2.0, 3.0, 4.0]) {
            scope.spawn(move || {
                let from = bench.buffer(&[1.0; 64 * 1_024]);
                let to = bench.buffer(&[0.0; 64 * 1_024]);
                let described = scale(8, 8, 1, from.address(), to.address(), factor);
                let program = bench.accelerator.compile(&described).unwrap();
                for _ in 0..200 {
                    bench.accelerator.enqueue(&program, &[from.clone(), to.clone()]).unwrap();
                }
                assert!(bench.numbers(&to).iter().all(|number| *number == factor + 1.0));
            });
        }
    });
}

#[test]
fn numbers_are_rounded_to_nearest_even() {
    let bench = Bench::new();
    let cases: [(u32, u32); 8] = [
        (0x3F80_0000, 0x3F80),
        (0x3F80_8000, 0x3F80),
        (0x3F80_8001, 0x3F81),
        (0x3F81_8000, 0x3F82),
        (0x7F7F_FFFF, 0x7F80),
        (0xFF80_0000, 0xFF80),
        (0x7F80_0001, 0x7FC0),
        (0x0000_8001, 0x0001),
    ];
    let text = "
KERNEL_MAIN {
  for (uint32_t i = 0; i < get_arg_count() - 1; i++) {
    uint32_t word = float_to_bf16(get_arg_val_float(i + 1));
    noc_write_bytes(get_arg_val(0), 4 * i, 4, &word);
  }
}";
    let to = bench.accelerator.allocate(MemoryKind::Dram, 32, 32).unwrap();
    let core = CoreCoord::new(0, 0);
    let mut round = kernel("round", text, &core.into());
    let words: Vec<u32> =
        [to.address()].into_iter().chain(cases.iter().map(|case| case.0)).collect();
    round.runtime_arguments.push(core, &words);
    let mut described = ProgramDescriptor::default();
    described.kernels.push(round);
    let program = bench.accelerator.compile(&described).unwrap();
    bench.accelerator.enqueue(&program, std::slice::from_ref(&to)).unwrap();
    let expected: Vec<u8> = cases.iter().flat_map(|case| case.1.to_le_bytes()).collect();
    assert_eq!(bench.accelerator.read(&to).unwrap(), expected);
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_kernel_keeps_its_own_rounding_while_it_waits_for_another() {
    let bench = Bench::new();
    let core = cores(1, 1);
    let buffer = bench.buffer(&[0.0; 1_024]);
    // The place that a kernel writes to, and what it does before.
    let text = |place: u32, before: &str| {
        format!(
            "KERNEL_MAIN {{
  extern int fesetround(int);
  volatile float one = 1;
  {before}
  float third = one / 3;
  noc_write_bytes(get_arg_val(0), {place}, 4, &third);
  cb_push_back(1, 1);
}}"
        )
    };
    // 0xc00 is FE_TOWARDZERO.
    let mut own = kernel("reader", text(0, "fesetround(0xc00); cb_wait_front(0, 1);"), &core);
    let mut usual = kernel("compute", text(4, "cb_push_back(0, 1);"), &core);
    for kernel in [&mut own, &mut usual] {
        kernel.runtime_arguments.push(CoreCoord::new(0, 0), &[buffer.address()]);
    }
    let program = bench.accelerator.compile(&ProgramDescriptor {
        kernels: [own, usual].into_iter().collect(),
        circular_buffers: [tiles(0, 1, &core), tiles(1, 2, &core)].into_iter().collect(),
        ..ProgramDescriptor::default()
    });
    bench.accelerator.enqueue(&program.unwrap(), std::slice::from_ref(&buffer)).unwrap();
    assert_eq!(bench.numbers(&buffer)[..2], [0.333_333_3, 0.333_333_34]);
}
