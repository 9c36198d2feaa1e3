//! Small operations that the tests dispatch.

use telltale_program_cache::{
    Address, Argument, CircularBufferDescriptor, CircularBufferFormat, CoreCoord, CoreRange,
    DataFormat, Dispatch, DynamicIndex, FactoryError, GlobalSemaphoreIndex, KernelConfig,
    KernelDescriptor, KernelSource, Layout, MemoryConfig, Operand, OperandIndex, OperandSpec,
    OperandSpecs, Operation, Placement, ProgramDescriptor, ProgramKey, ReaderConfig, Shape,
};

/// A tensor of the tests: interleaved in DRAM, row after row.
pub(crate) fn spec(dimensions: &[u32]) -> OperandSpec {
    OperandSpec {
        shape: Shape::new(dimensions),
        data_format: DataFormat::Float32,
        layout: Layout::RowMajor,
        memory: MemoryConfig::DRAM,
    }
}

/// An operand at an address.
pub(crate) fn at(spec: &OperandSpec, address: u32) -> Option<Operand<'_>> {
    Some(Operand { spec, address: Address::new(address) })
}

/// A dispatch with operands alone.
pub(crate) fn with<'a>(operands: &'a [Option<Operand<'a>>]) -> Dispatch<'a> {
    Dispatch { operands, ..Dispatch::default() }
}

/// The symbol of an operand's address.
pub(crate) fn address_of(operand: u16) -> Argument {
    Argument::Address { operand: OperandIndex(operand), offset_bytes: 0 }
}

/// A kernel on `cores` cores of the first row, whose words each core is given alike.
pub(crate) fn kernel<const N: usize>(
    name: &'static str,
    cores: u16,
    words: [Argument; N],
) -> KernelDescriptor<Argument> {
    let range = CoreRange::new(CoreCoord::new(0, 0), CoreCoord::new(cores - 1, 0));
    let source = KernelSource::Path(format!("kernels/{name}.c").into());
    let mut kernel =
        KernelDescriptor::new(name, source, range, KernelConfig::Reader(ReaderConfig {}));
    kernel.runtime_arguments.push_range(range, |_| words);
    kernel
}

/// A program of these kernels.
pub(crate) fn program<const N: usize>(
    kernels: [KernelDescriptor<Argument>; N],
) -> ProgramDescriptor<Argument> {
    ProgramDescriptor { kernels: kernels.into_iter().collect(), ..ProgramDescriptor::default() }
}

/// Attributes of [`Attention`].
#[derive(Debug, Clone, PartialEq, Eq, ProgramKey)]
pub(crate) struct Window {
    pub(crate) causal: bool,
    pub(crate) sliding_window: Option<u32>,
}

/// Its program depends on both attributes and on each operand's shape.
pub(crate) struct Attention;

impl Operation for Attention {
    const NAME: &'static str = "attention";
    type Attributes = Window;

    fn create(
        attributes: &Window,
        operands: OperandSpecs<'_>,
    ) -> Result<ProgramDescriptor<Argument>, FactoryError> {
        let mut reader = kernel("attention_reader", 2, [address_of(0), address_of(1)]);
        reader.compile_time_arguments =
            vec![u32::from(attributes.causal), attributes.sliding_window.unwrap_or(u32::MAX)];
        for index in 0..2 {
            let shape = &operands.require(index)?.shape;
            reader.compile_time_arguments.extend_from_slice(shape.dimensions());
        }
        if operands.get(2).is_some() {
            reader.defines.push(("MASK".into(), "1".into()));
            reader.common_runtime_arguments.push(address_of(2));
        }
        Ok(program([reader]))
    }
}

/// Two inputs and an output, and nothing else: each address once.
pub(crate) struct Matmul;

impl Operation for Matmul {
    const NAME: &'static str = "matmul";
    type Attributes = ();

    fn create(
        (): &(),
        operands: OperandSpecs<'_>,
    ) -> Result<ProgramDescriptor<Argument>, FactoryError> {
        operands.require(2)?;
        let reader = kernel("matmul_reader", 2, [address_of(0), address_of(1)]);
        let writer = kernel("matmul_writer", 2, [Argument::Word(7), address_of(2)]);
        Ok(program([reader, writer]))
    }
}

/// Everything that can change from dispatch to dispatch: a seed, a global semaphore, an address
/// with an offset, and a circular buffer on an operand.
pub(crate) struct Everything;

impl Operation for Everything {
    const NAME: &'static str = "everything";
    type Attributes = u32;

    fn create(
        pages: &u32,
        _: OperandSpecs<'_>,
    ) -> Result<ProgramDescriptor<Argument>, FactoryError> {
        let half = Argument::Address { operand: OperandIndex(0), offset_bytes: 512 };
        let semaphore = Argument::SemaphoreAddress(GlobalSemaphoreIndex(0));
        let seed = Argument::Dynamic(DynamicIndex(0));
        let all = kernel("everything", 1, [address_of(0), half, seed, semaphore]);
        let format = CircularBufferFormat {
            buffer_index: 0,
            data_format: DataFormat::Float32,
            page_bytes: 64,
            tile: None,
        };
        let cores = CoreRange::new(CoreCoord::new(0, 0), CoreCoord::new(0, 0));
        let mut buffer = CircularBufferDescriptor::own(cores, *pages, format);
        buffer.placement = Placement::OnBuffer { address: address_of(1) };
        let mut program = program([all]);
        program.circular_buffers.push(buffer);
        Ok(program)
    }
}
