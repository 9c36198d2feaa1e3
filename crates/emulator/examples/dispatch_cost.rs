//! What a program costs beyond what its kernels do: `cargo run --release --example dispatch_cost`.
//!
//! Programs of empty kernels, and of kernels that pass one page from reader to compute to writer,
//! on one core and on 64; then the host's part alone. Times are the best of several rounds.
#![forbid(unsafe_code)]

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use telltale_emulator::{
    Accelerator, AcceleratorOptions, Buffer, CompiledProgram, Emulator, EmulatorOptions,
    MachineKind,
};
use telltale_program_cache::{
    CircularBufferDescriptor, CircularBufferFormat, ComputeConfig, CoreCoord, CoreRange,
    CoreRanges, DataFormat, KernelConfig, KernelDescriptor, KernelSource, ProgramDescriptor,
    ReaderConfig, WriterConfig,
};
use telltale_runtime::{Options, Runtime};
use telltale_schema::memory::MemoryKind;

/// Rounds, of which the best counts, and programs in each.
const ROUNDS: u32 = 7;
const PROGRAMS: u32 = 2_000;
const TILE_BYTES: u32 = 4_096;

const EMPTY: [&str; 3] = ["KERNEL_MAIN {}"; 3];
const PASSING: [&str; 3] = [
    "KERNEL_MAIN { cb_reserve_back(0, 1);
       noc_read_page(get_arg_val(0), 0, 4096, 4096, get_write_ptr(0)); cb_push_back(0, 1); }",
    "KERNEL_MAIN { cb_wait_front(0, 1); cb_reserve_back(1, 1);
       memcpy(get_write_ptr(1), get_read_ptr(0), 4096); cb_pop_front(0, 1); cb_push_back(1, 1); }",
    "KERNEL_MAIN { cb_wait_front(1, 1);
       noc_write_page(get_arg_val(1), 0, 4096, 4096, get_read_ptr(1)); cb_pop_front(1, 1); }",
];

fn main() -> Result<(), Box<dyn Error>> {
    let root = std::env::temp_dir().join(format!("dispatch-cost-{}", std::process::id()));
    let emulator = Emulator::start(&root, MachineKind::N300, EmulatorOptions::default())?;
    let runtime =
        Runtime::start(Options { root: Some(root.clone()), ..Options::new("dispatch_cost") });
    let options = AcceleratorOptions { root: Some(root.clone()), ..Default::default() };
    let accelerator = Accelerator::open(&options, &runtime)?;
    let buffer = |bytes| accelerator.allocate(MemoryKind::Dram, bytes, TILE_BYTES);
    let (from, to) = (buffer(TILE_BYTES.into())?, buffer(TILE_BYTES.into())?);
    for (name, texts, columns, rows) in [
        ("3 empty kernels on 1 core", EMPTY, 1, 1),
        ("3 kernels that pass a page on 1 core", PASSING, 1, 1),
        ("3 empty kernels on each of 64 cores", EMPTY, 8, 8),
        ("3 kernels that pass a page on each of 64 cores", PASSING, 8, 8),
    ] {
        let described = describe(texts, columns, rows, from.address(), to.address());
        let program = accelerator.compile(&described)?;
        let held = [Arc::clone(&from), Arc::clone(&to)];
        let programs = PROGRAMS / u32::from(columns * rows).min(8);
        let (host, queued, waited) = measure(&accelerator, &program, &held, programs)?;
        println!("{name}: {queued:?} in a full queue, {waited:?} when waited for each");
        println!("    of it on the host's thread: {host:?}");
    }
    let start = Instant::now();
    for _ in 0..PROGRAMS {
        drop(buffer(TILE_BYTES.into())?);
    }
    println!("allocating and freeing a buffer: {:?}", start.elapsed() / PROGRAMS);
    drop((from, to, accelerator));
    emulator.shutdown()?;
    Ok(())
}

/// The best times of one program: on the host's thread, in a queue, and waited for.
fn measure(
    accelerator: &Accelerator,
    program: &CompiledProgram,
    held: &[Arc<Buffer>],
    programs: u32,
) -> Result<(Duration, Duration, Duration), Box<dyn Error>> {
    let mut best = [Duration::MAX; 3];
    for _ in 0..ROUNDS {
        let start = Instant::now();
        // Fewer than the queue holds, so that the host never waits for room.
        for _ in 0..100 {
            accelerator.enqueue(program, held)?;
        }
        best[0] = best[0].min(start.elapsed() / 100);
        accelerator.finish()?;
        let start = Instant::now();
        for _ in 0..programs {
            accelerator.enqueue(program, held)?;
        }
        accelerator.finish()?;
        best[1] = best[1].min(start.elapsed() / programs);
        let start = Instant::now();
        for _ in 0..100 {
            accelerator.enqueue(program, held)?;
            accelerator.finish()?;
        }
        best[2] = best[2].min(start.elapsed() / 100);
    }
    Ok((best[0], best[1], best[2]))
}

fn describe(
    texts: [&'static str; 3],
    columns: u16,
    rows: u16,
    from: u32,
    to: u32,
) -> ProgramDescriptor {
    let cores = CoreRange::new(CoreCoord::new(0, 0), CoreCoord::new(columns - 1, rows - 1));
    let configs = [
        KernelConfig::Reader(ReaderConfig {}),
        KernelConfig::Compute(ComputeConfig::default()),
        KernelConfig::Writer(WriterConfig {}),
    ];
    let kernels = texts.into_iter().zip(configs).zip(["reader", "compute", "writer"]);
    let kernels = kernels.map(|((text, config), name)| {
        let source = KernelSource::Text(text.into());
        let mut kernel = KernelDescriptor::new(name, source, CoreRanges::from(cores), config);
        let mut words = [0; 12];
        (words[0], words[1]) = (from, to);
        kernel.runtime_arguments.push_range(cores, |_| words);
        kernel
    });
    let circular_buffers = [0, 1].map(|buffer_index| {
        let format = CircularBufferFormat {
            buffer_index,
            data_format: DataFormat::Float32,
            page_bytes: TILE_BYTES,
            tile: None,
        };
        CircularBufferDescriptor::own(cores, 2, format)
    });
    ProgramDescriptor {
        kernels: kernels.collect(),
        circular_buffers: circular_buffers.into_iter().collect(),
        ..ProgramDescriptor::default()
    }
}
