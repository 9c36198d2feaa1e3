//! What a print costs a kernel: `cargo run --release --example print_cost`.
//!
//! One kernel prints a number or a tile repeatedly: without a reader, to a reader whose stream has
//! room, and to one whose stream is full. The empty loop beside it is subtracted. Times are the best
//! of several rounds.
#![forbid(unsafe_code)]

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use telltale_debug_stream::{Consumer, DEFAULT_MAX_EVENTS, Stream};
use telltale_emulator::{Accelerator, AcceleratorOptions, Emulator, EmulatorOptions, MachineKind};
use telltale_program_cache::{
    CircularBufferDescriptor, CircularBufferFormat, ComputeConfig, CoreCoord, CoreRanges,
    DataFormat, KernelConfig, KernelDescriptor, KernelSource, ProgramDescriptor,
};
use telltale_runtime::{Options, Runtime};

const ROUNDS: u32 = 7;
const CORE: CoreCoord = CoreCoord::new(0, 0);
const TILE_BYTES: u32 = 4_096;
/// As many as a stream holds.
const FEW: u32 = DEFAULT_MAX_EVENTS as u32;
const MANY: u32 = 100 * FEW;

fn main() -> Result<(), Box<dyn Error>> {
    let root = std::env::temp_dir().join(format!("print-cost-{}", std::process::id()));
    let emulator = Emulator::start(&root, MachineKind::N300, EmulatorOptions::default())?;
    let runtime =
        Runtime::start(Options { root: Some(root.clone()), ..Options::new("print_cost") });
    let options = AcceleratorOptions { root: Some(root.clone()), ..Default::default() };
    let accelerator = Accelerator::open(&options, &runtime)?;
    let stream = accelerator.debug_stream(CORE).ok_or("the chip has no core")?;
    for (what, print) in [
        ("a number", "device_print_scalar(\"number\", i)"),
        ("a tile of 4096 bytes", "device_print_tile(\"tile\", 0, float32)"),
    ] {
        let nobody = best(&accelerator, print, MANY, || Ok(()))?;
        let emptied = best(&accelerator, print, FEW, || empty(stream))?;
        let _consumer = stream.connect()?;
        best(&accelerator, print, FEW, || Ok(()))?;
        let full = best(&accelerator, print, FEW, || Ok(()))?;
        println!("{what}: {nobody:.1} ns to nobody, {emptied:.0} ns read, {full:.0} ns lost");
    }
    drop(accelerator);
    drop(runtime);
    emulator.shutdown()?;
    Ok(())
}

/// A reader whose stream is empty.
fn empty(stream: &Stream) -> Result<Consumer, Box<dyn Error>> {
    Ok(stream.connect()?)
}

/// Nanoseconds of one print, with what `reader` makes around all of them.
fn best<R>(
    accelerator: &Arc<Accelerator>,
    print: &str,
    count: u32,
    reader: impl Fn() -> Result<R, Box<dyn Error>>,
) -> Result<f64, Box<dyn Error>> {
    let mut best = Duration::MAX;
    let mut loop_alone = Duration::MAX;
    for _ in 0..ROUNDS {
        let reader = reader()?;
        best = best.min(run(accelerator, print, count)?);
        drop(reader);
        loop_alone = loop_alone.min(run(accelerator, "", count)?);
    }
    Ok(best.saturating_sub(loop_alone).as_secs_f64() * 1e9 / f64::from(count))
}

fn run(
    accelerator: &Arc<Accelerator>,
    print: &str,
    count: u32,
) -> Result<Duration, Box<dyn Error>> {
    let text = format!(
        "KERNEL_MAIN {{ cb_reserve_back(0, 1); cb_push_back(0, 1);
           for (uint32_t i = 0; i < {count}u; i++) {{ __asm__ volatile(\"\" : : \"r\"(i)); {print}; }}
           cb_pop_front(0, 1); }}"
    );
    let source = KernelSource::Text(text.into());
    let config = KernelConfig::Compute(ComputeConfig::default());
    let format = CircularBufferFormat {
        buffer_index: 0,
        data_format: DataFormat::Float32,
        page_bytes: TILE_BYTES,
        tile: None,
    };
    let buffer = CircularBufferDescriptor::own(CoreRanges::from(CORE), 1, format);
    let program = ProgramDescriptor {
        kernels: [KernelDescriptor::new("print", source, CORE, config)].into_iter().collect(),
        circular_buffers: [buffer].into_iter().collect(),
        ..ProgramDescriptor::default()
    };
    let program = accelerator.compile(&program)?;
    let start = Instant::now();
    accelerator.enqueue(&program, &[])?;
    accelerator.finish()?;
    Ok(start.elapsed())
}
