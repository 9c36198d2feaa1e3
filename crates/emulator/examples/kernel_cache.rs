//! A workload that compiles one kernel and runs it: `kernel_cache ROOT CACHE`.
//!
//! Prints `open` once it has device 0 of the machine under ROOT, and at the end how many kernels it
//! compiled and how many it found in CACHE. It is run by tests that start several or kill one.
#![forbid(unsafe_code)]

use std::error::Error;
use std::path::PathBuf;

use telltale_emulator::{Accelerator, AcceleratorOptions};
use telltale_program_cache::{
    ComputeConfig, CoreCoord, KernelConfig, KernelDescriptor, KernelSource, ProgramDescriptor,
};
use telltale_runtime::{Options, Runtime};
use telltale_schema::memory::MemoryKind;

const TEXT: &str =
    "KERNEL_MAIN { uint32_t seven = 7; noc_write_bytes(get_arg_val(0), 0, 4, &seven); }";

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let root = arguments.next().ok_or("ROOT is missing")?;
    let kernel_cache = Some(arguments.next().ok_or("CACHE is missing")?);
    let runtime = Runtime::start(Options { root: Some(root.clone()), ..Options::new("example") });
    let options = AcceleratorOptions { root: Some(root), kernel_cache, ..Default::default() };
    let accelerator = Accelerator::open(&options, &runtime)?;
    println!("open");
    let buffer = accelerator.allocate(MemoryKind::Dram, 32, 32)?;
    let core = CoreCoord::new(0, 0);
    let source = KernelSource::Text(TEXT.into());
    let config = KernelConfig::Compute(ComputeConfig::default());
    let mut kernel = KernelDescriptor::new("seven", source, core, config);
    kernel.runtime_arguments.push(core, &[buffer.address()]);
    let mut described = ProgramDescriptor::default();
    described.kernels.push(kernel);
    let program = accelerator.compile(&described)?;
    accelerator.enqueue(&program, std::slice::from_ref(&buffer))?;
    assert_eq!(accelerator.read(&buffer)?[..4], [7, 0, 0, 0], "the kernel wrote this");
    let counters = accelerator.kernel_counters();
    println!("compiled {} found {}", counters.compiled, counters.found_on_disk);
    Ok(())
}
