//! Three operations as they are written without the cache's help: each with a key and an update of
//! its own, beside the ported one with the same program. They stay to be compared with: what they
//! save, and what can go wrong in them. Nothing but these may write an argument by its number.

use telltale_program_cache::{
    Argument, DataFormat, Dispatch, FactoryError, Hybrid, KeyEncoder, Layout, OperandIndex,
    OperandSpec, OperandSpecs, Operation, ProgramArguments, ProgramDescriptor, SlotIndex,
    UpdateError,
};

use crate::elementwise::{self, BinaryAttributes};
use crate::matmul::{self, MatmulAttributes};
use crate::softmax::{self, SoftmaxAttributes};

/// The kernels of each program by number.
const READER: usize = 0;
const COMPUTE: usize = 1;
const WRITER: usize = 2;

/// Where addresses stand among the common arguments; the kernels' sources say the same.
const READ_BLOCKS_FIRST: usize = 9;
const READ_BLOCKS_STEP: usize = 7;
const WRITE_BLOCKS_FIRST: usize = 10;
const MATMUL_LEFT: usize = 18;
const MATMUL_RIGHT: usize = 22;
const MATMUL_BIAS: usize = 26;
const SOFTMAX_SCALE: usize = 10;

/// [`BinaryOperation`](crate::BinaryOperation) with a key and an update by hand.
#[derive(Debug)]
pub struct HandWrittenBinary;

/// [`MatmulOperation`](crate::MatmulOperation) with a key and an update by hand.
#[derive(Debug)]
pub struct HandWrittenMatmul;

/// [`SoftmaxOperation`](crate::SoftmaxOperation) with a key and an update by hand.
#[derive(Debug)]
pub struct HandWrittenSoftmax;

// === impl HandWrittenBinary ===

impl Operation for HandWrittenBinary {
    const NAME: &'static str = "hand_written_binary";
    type Attributes = BinaryAttributes;
    const HYBRID: Hybrid<BinaryAttributes> =
        Hybrid { key: Some(binary_key), update: Some(binary_update) };

    fn create(
        attributes: &BinaryAttributes,
        operands: OperandSpecs<'_>,
    ) -> Result<ProgramDescriptor<Argument>, FactoryError> {
        let (a, b, result) = (operands.require(0)?, operands.require(1)?, operands.require(2)?);
        Ok(elementwise::program(attributes.function as u32, result, &[a, b]))
    }
}

fn binary_key(attributes: &BinaryAttributes, operands: OperandSpecs<'_>, key: &mut KeyEncoder) {
    key.put_u32(attributes.function as u32);
    specs(operands, key);
}

fn binary_update(
    _: &BinaryAttributes,
    dispatch: &Dispatch<'_>,
    arguments: &mut ProgramArguments,
) -> Result<(), UpdateError> {
    for (index, operand) in [0, 1].into_iter().enumerate() {
        let place = READ_BLOCKS_FIRST + index * READ_BLOCKS_STEP;
        set(arguments, READER, place, address(dispatch, operand)?)?;
    }
    set(arguments, WRITER, WRITE_BLOCKS_FIRST, address(dispatch, 2)?)
}

// === impl HandWrittenMatmul ===

impl Operation for HandWrittenMatmul {
    const NAME: &'static str = "hand_written_matmul";
    type Attributes = MatmulAttributes;
    const HYBRID: Hybrid<MatmulAttributes> =
        Hybrid { key: Some(matmul_key), update: Some(matmul_update) };

    fn create(
        attributes: &MatmulAttributes,
        operands: OperandSpecs<'_>,
    ) -> Result<ProgramDescriptor<Argument>, FactoryError> {
        let (a, b, bias) = (operands.require(0)?, operands.require(1)?, operands.get(2));
        matmul::program(attributes, a, b, bias, operands.require(3)?)
    }
}

fn matmul_key(attributes: &MatmulAttributes, operands: OperandSpecs<'_>, key: &mut KeyEncoder) {
    key.put_u32(
        u32::from(attributes.a_transposed)
            | u32::from(attributes.b_transposed) << 1
            | (attributes.factory as u32) << 2,
    );
    specs(operands, key);
}

fn matmul_update(
    _: &MatmulAttributes,
    dispatch: &Dispatch<'_>,
    arguments: &mut ProgramArguments,
) -> Result<(), UpdateError> {
    for kernel in [READER, COMPUTE] {
        set(arguments, kernel, MATMUL_LEFT, address(dispatch, 0)?)?;
        set(arguments, kernel, MATMUL_RIGHT, address(dispatch, 1)?)?;
        if dispatch.operands.get(2).is_some_and(Option::is_some) {
            set(arguments, kernel, MATMUL_BIAS, address(dispatch, 2)?)?;
        }
    }
    set(arguments, WRITER, WRITE_BLOCKS_FIRST, address(dispatch, 3)?)
}

// === impl HandWrittenSoftmax ===

impl Operation for HandWrittenSoftmax {
    const NAME: &'static str = "hand_written_softmax";
    type Attributes = SoftmaxAttributes;
    const HYBRID: Hybrid<SoftmaxAttributes> =
        Hybrid { key: Some(softmax_key), update: Some(softmax_update) };

    fn create(
        attributes: &SoftmaxAttributes,
        operands: OperandSpecs<'_>,
    ) -> Result<ProgramDescriptor<Argument>, FactoryError> {
        softmax::program(*attributes, &[operands.require(0)?], operands.require(1)?)
    }
}

fn softmax_key(attributes: &SoftmaxAttributes, operands: OperandSpecs<'_>, key: &mut KeyEncoder) {
    key.put_u32(u32::from(attributes.causal));
    specs(operands, key);
}

fn softmax_update(
    _: &SoftmaxAttributes,
    dispatch: &Dispatch<'_>,
    arguments: &mut ProgramArguments,
) -> Result<(), UpdateError> {
    set(arguments, READER, READ_BLOCKS_FIRST, address(dispatch, 0)?)?;
    let scale = Argument::Dynamic(telltale_program_cache::DynamicIndex(0)).word_at(dispatch)?;
    set(arguments, COMPUTE, SOFTMAX_SCALE, scale)?;
    set(arguments, WRITER, WRITE_BLOCKS_FIRST, address(dispatch, 1)?)
}

/// Everything about operands that these programs depend on; all tensors are in DRAM.
fn specs(operands: OperandSpecs<'_>, key: &mut KeyEncoder) {
    for index in 0..u16::try_from(operands.len()).unwrap_or(u16::MAX) {
        match operands.get(index) {
            None => key.put_u32(u32::MAX),
            Some(OperandSpec { shape, data_format, layout, .. }) => {
                let bfloat = u32::from(*data_format == DataFormat::BFloat16);
                key.put_u32(bfloat | u32::from(*layout != Layout::RowMajor) << 1);
                key.words(shape.dimensions());
            }
        }
    }
}

fn address(dispatch: &Dispatch<'_>, operand: u16) -> Result<u32, UpdateError> {
    let found = dispatch.operands.get(usize::from(operand)).copied().flatten();
    let found = found.ok_or(UpdateError::NoOperand(OperandIndex(operand)))?;
    Ok(found.address.get())
}

/// Writes a common argument of a kernel.
fn set(
    arguments: &mut ProgramArguments,
    kernel: usize,
    index: usize,
    word: u32,
) -> Result<(), UpdateError> {
    let first = arguments.layout().common(kernel).map_or(usize::MAX, |slots| slots.start);
    let slot = u32::try_from(first.saturating_add(index)).unwrap_or(u32::MAX);
    Ok(arguments.set(SlotIndex(slot), word)?)
}
