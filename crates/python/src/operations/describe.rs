//! What `operations.py` makes of an author's program, as a description.

use pyo3::prelude::*;
use telltale_program_cache::descriptor::kernel::{
    ComputeConfig, OptimisationLevel, ReaderConfig, WriterConfig,
};
use telltale_program_cache::{
    Argument, CircularBufferDescriptor, CircularBufferFormat, CoreCoord, CoreRange, CoreRanges,
    CoreType, DynamicIndex, FactoryError, KernelConfig, KernelDescriptor, KernelSource,
    OperandIndex, Placement, ProgramDescriptor, SemaphoreDescriptor,
};

use super::numbers::format_of;

/// A number, an operand's address with an offset, or a dynamic value.
type Word = (u8, u32, u32);
type Core = (u16, u16);

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct ProgramParts {
    kernels: Vec<KernelParts>,
    buffers: Vec<BufferParts>,
    semaphores: Vec<(u32, u32, Vec<Core>)>,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct KernelParts {
    name: String,
    is_path: bool,
    source: String,
    kind: String,
    optimization: Option<String>,
    cores: Vec<Core>,
    constants: Vec<u32>,
    named: Vec<(String, u32)>,
    defines: Vec<(String, String)>,
    arguments: Vec<(Core, Vec<Word>)>,
    common: Vec<Word>,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct BufferParts {
    index: u8,
    page_bytes: u32,
    pages: u32,
    cores: Vec<Core>,
    dtype: Py<PyAny>,
    on: Option<Word>,
}

impl ProgramParts {
    /// The description.
    pub(super) fn descriptor(
        self,
        py: Python<'_>,
    ) -> Result<ProgramDescriptor<Argument>, FactoryError> {
        let kernels = self.kernels.into_iter().map(KernelParts::descriptor);
        let kernels = kernels.collect::<Result<Vec<_>, _>>()?;
        let buffers = self.buffers.into_iter().map(|buffer| buffer.descriptor(py));
        let buffers = buffers.collect::<Result<Vec<_>, _>>()?;
        let semaphores = self.semaphores.into_iter().map(|(id, initial_value, cores)| {
            let core_ranges = ranges(&cores);
            SemaphoreDescriptor { id, core_type: CoreType::Worker, core_ranges, initial_value }
        });
        Ok(ProgramDescriptor::new(kernels)
            .with_circular_buffers(buffers)
            .with_semaphores(semaphores))
    }
}

impl KernelParts {
    fn descriptor(self) -> Result<KernelDescriptor<Argument>, FactoryError> {
        let source = match self.is_path {
            true => KernelSource::Path(self.source.into()),
            false => KernelSource::Text(self.source.into()),
        };
        let config = match &*self.kind {
            "reader" => KernelConfig::Reader(ReaderConfig {}),
            "writer" => KernelConfig::Writer(WriterConfig {}),
            "compute" => KernelConfig::Compute(ComputeConfig::default()),
            other => return Err(unknown(other, "kind of kernel", "compute, reader or writer")),
        };
        let level = match self.optimization.as_deref() {
            None => None,
            Some("O0") => Some(OptimisationLevel::O0),
            Some("O1") => Some(OptimisationLevel::O1),
            Some("O2") => Some(OptimisationLevel::O2),
            Some("O3") => Some(OptimisationLevel::O3),
            Some("Os") => Some(OptimisationLevel::Os),
            Some(other) => return Err(unknown(other, "optimization", "O0, O1, O2, O3 or Os")),
        };
        let mut kernel = KernelDescriptor::new(self.name, source, ranges(&self.cores), config);
        kernel.compile_time_arguments = self.constants;
        let named = self.named.into_iter();
        kernel.named_compile_time_arguments =
            named.map(|(name, value)| (name.into(), value)).collect();
        let defines = self.defines.into_iter();
        kernel.defines = defines.map(|(name, value)| (name.into(), value.into())).collect();
        for ((x, y), words) in self.arguments {
            kernel.runtime_arguments.push(CoreCoord::new(x, y), &arguments(words));
        }
        kernel.common_runtime_arguments = arguments(self.common);
        kernel.optimisation_level = level;
        Ok(kernel)
    }
}

impl BufferParts {
    fn descriptor(
        self,
        py: Python<'_>,
    ) -> Result<CircularBufferDescriptor<Argument>, FactoryError> {
        let data_format = format_of(self.dtype.bind(py)).map_err(other)?;
        let Self { index: buffer_index, page_bytes, pages, cores, on, .. } = self;
        let format = CircularBufferFormat { buffer_index, data_format, page_bytes, tile: None };
        let mut buffer = CircularBufferDescriptor::own(ranges(&cores), pages, format);
        if let Some(word) = on {
            buffer.placement = Placement::OnBuffer { address: argument(word) };
        }
        Ok(buffer)
    }
}

/// An exception of the author's function, or of what reads its result.
pub(super) fn other(error: PyErr) -> FactoryError {
    FactoryError::Other(Box::new(error))
}

fn unknown(found: &str, what: &str, known: &str) -> FactoryError {
    FactoryError::Unsupported(format!("{found:?} is no {what}; write {known}").into())
}

fn arguments(words: Vec<Word>) -> Vec<Argument> {
    words.into_iter().map(argument).collect()
}

fn argument((kind, value, offset_bytes): Word) -> Argument {
    // An index that no operand has is refused when the program is made.
    let index = u16::try_from(value).unwrap_or(u16::MAX);
    match kind {
        1 => Argument::Address { operand: OperandIndex(index), offset_bytes },
        2 => Argument::Dynamic(DynamicIndex(index)),
        _ => Argument::Word(value),
    }
}

fn ranges(cores: &[Core]) -> CoreRanges {
    cores.iter().map(|(x, y)| CoreRange::from(CoreCoord::new(*x, *y))).collect()
}
