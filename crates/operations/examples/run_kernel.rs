//! Runs kernels from files: `run_kernel ROOT CACHE KERNELS [MODE]`.
//!
//! Each line of standard input names files under KERNELS, with blanks between them. Together they are
//! dispatched as an operation on core (1, 2) of device 0 of the machine under ROOT, each with the
//! address of a number as argument 0; circular buffer 0 has one page of 4 KiB. One line says what the
//! number is then, or what failed.
//! Compiled kernels are kept in CACHE; MODE is that of the program cache.
#![forbid(unsafe_code)]

use std::error::Error;
use std::io::BufRead;
use std::path::PathBuf;

use telltale_emulator::{Accelerator, AcceleratorOptions};
use telltale_operations::{OperationError, Session, Tensor, row_major};
use telltale_program_cache::{
    Argument, CacheMode, CacheOptions, CircularBufferDescriptor, CircularBufferFormat,
    ComputeConfig, CoreCoord, DataFormat, FactoryError, KernelConfig, KernelDescriptor,
    KernelSource, OperandIndex, OperandSpecs, Operation, ProgramCache, ProgramDescriptor,
    ProgramKey,
};
use telltale_runtime::{Options, Runtime};

/// Kernels from files.
struct FromFile;

#[derive(ProgramKey)]
struct Files {
    sources: Vec<KernelSource>,
}

impl Operation for FromFile {
    const NAME: &'static str = "from_file";
    type Attributes = Files;

    fn create(
        files: &Files,
        _operands: OperandSpecs<'_>,
    ) -> Result<ProgramDescriptor<Argument>, FactoryError> {
        let core = CoreCoord::new(1, 2);
        let kernels = files.sources.iter().map(|source| {
            let config = KernelConfig::Compute(ComputeConfig::default());
            let mut kernel = KernelDescriptor::new("from_file", source.clone(), core, config);
            let address = Argument::Address { operand: OperandIndex(0), offset_bytes: 0 };
            kernel.runtime_arguments.push(core, &[address]);
            kernel
        });
        let format = CircularBufferFormat {
            buffer_index: 0,
            data_format: DataFormat::Float32,
            page_bytes: 4_096,
            tile: None,
        };
        Ok(ProgramDescriptor {
            kernels: kernels.collect(),
            circular_buffers: [CircularBufferDescriptor::own(core, 1, format)]
                .into_iter()
                .collect(),
            ..ProgramDescriptor::default()
        })
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let mut next = |name: &str| arguments.next().ok_or(format!("{name} is missing"));
    let (root, cache, kernels) = (next("ROOT")?, next("CACHE")?, next("KERNELS")?);
    let mode = next("MODE").map_or(Ok(CacheMode::On), |mode| mode.to_string_lossy().parse())?;
    let runtime = Runtime::start(Options { root: Some(root.clone()), ..Options::new("example") });
    let options = AcceleratorOptions {
        root: Some(root),
        kernel_root: Some(kernels),
        kernel_cache: Some(cache),
        ..Default::default()
    };
    let accelerator = Accelerator::open(&options, &runtime)?;
    let options = CacheOptions { mode, ..CacheOptions::default() };
    let session = Session::new(ProgramCache::new(accelerator, options));
    let number = session.zeros(&row_major(&[1, 1], DataFormat::Float32))?;
    for line in std::io::stdin().lock().lines() {
        match run(&session, &number, &line?) {
            Ok(value) => println!("{value}"),
            Err(error) => println!("{}", with_causes(&error)),
        }
    }
    Ok(())
}

fn run(session: &Session, number: &Tensor, files: &str) -> Result<f32, OperationError> {
    let source = |file: &str| KernelSource::Path(file.to_owned().into());
    let files = Files { sources: files.split_whitespace().map(source).collect() };
    session.dispatch::<FromFile>(&files, &[Some(number)], &[])?;
    Ok(session.read(number)?[0])
}

fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text.replace('\n', " | ")
}
