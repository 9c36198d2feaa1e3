//! A small program with something in every list, valid on the grid that goes with it.

use telltale_program_cache::descriptor::kernel::{
    DataProcessor, MathFidelity, Network, NetworkMode, UnpackMode,
};
use telltale_program_cache::{
    CircularBufferDescriptor, CircularBufferFormat, ComputeConfig, CoreCoord, CoreRange,
    CoreRanges, CoreType, DataFormat, DataMovementConfig, KernelConfig, KernelDescriptor,
    KernelSource, OptimisationLevel, Placement, ProgramDescriptor, ProgramLimits, ReaderConfig,
    SemaphoreDescriptor, Tile, WriterConfig,
};

pub(crate) fn range(left: u16, top: u16, right: u16, bottom: u16) -> CoreRange {
    CoreRange::new(CoreCoord::new(left, top), CoreCoord::new(right, bottom))
}

pub(crate) fn limits() -> ProgramLimits {
    ProgramLimits {
        grid: range(0, 0, 7, 7).into(),
        argument_words_per_core: 8,
        circular_buffer_bytes_per_core: 64 * 1024,
    }
}

fn kernel(name: &'static str, cores: CoreRange, config: KernelConfig) -> KernelDescriptor {
    let source = KernelSource::Path(format!("kernels/{name}.c").into());
    let mut kernel = KernelDescriptor::new(name, source, cores, config);
    kernel.compile_time_arguments = vec![1, 2, 3];
    kernel.named_compile_time_arguments = vec![("rows".into(), 4), ("columns".into(), 8)];
    kernel.defines = vec![("BIAS".into(), "1".into()), ("ACTIVATION".into(), "gelu".into())];
    kernel.runtime_arguments.push_range(cores, |core| [u32::from(core.x), u32::from(core.y), 7]);
    kernel.common_runtime_arguments = vec![11, 12];
    kernel.optimisation_level = Some(OptimisationLevel::O2);
    kernel
}

pub(crate) fn format(buffer_index: u8) -> CircularBufferFormat {
    CircularBufferFormat {
        buffer_index,
        data_format: DataFormat::BFloat16,
        page_bytes: 2048,
        tile: Some(Tile::STANDARD),
    }
}

pub(crate) fn semaphore(id: u32, cores: impl Into<CoreRanges>) -> SemaphoreDescriptor {
    let core_type = CoreType::Worker;
    SemaphoreDescriptor { id, core_type, core_ranges: cores.into(), initial_value: 0 }
}

/// A reader and a compute kernel on one rectangle, and beside them a writer and a mover.
pub(crate) fn program() -> ProgramDescriptor {
    let (left, right) = (range(0, 0, 3, 3), range(4, 0, 7, 3));
    let compute = ComputeConfig {
        math_fidelity: MathFidelity::HiFi2,
        unpack_modes: vec![UnpackMode::Default, UnpackMode::ToDestinationFp32],
        ..ComputeConfig::default()
    };
    let mover = DataMovementConfig {
        processor: DataProcessor::Second,
        network: Network::First,
        network_mode: NetworkMode::Dedicated,
    };
    let own = CircularBufferDescriptor::own(left, 4, format(0));
    let on_buffer = CircularBufferDescriptor {
        formats: [format(1), format(2)].into_iter().collect(),
        placement: Placement::OnBuffer { address: 4096 },
        address_offset_bytes: 64,
        ..own.clone()
    };
    let remote = CircularBufferDescriptor {
        formats: [format(3)].into_iter().collect(),
        remote_formats: [format(31)].into_iter().collect(),
        placement: Placement::Remote { global_circular_buffer: 8192 },
        ..own.clone()
    };
    ProgramDescriptor {
        kernels: [
            kernel("reader", left, KernelConfig::Reader(ReaderConfig {})),
            kernel("multiply", left, KernelConfig::Compute(compute)),
            kernel("writer", right, KernelConfig::Writer(WriterConfig {})),
            kernel("mover", right, KernelConfig::DataMovement(mover)),
        ]
        .into_iter()
        .collect(),
        circular_buffers: [own, on_buffer, remote].into_iter().collect(),
        semaphores: [semaphore(1, left), semaphore(0, left), semaphore(0, right)]
            .into_iter()
            .collect(),
    }
}
