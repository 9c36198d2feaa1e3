//! Functions of each element alone, of one operand or of two with broadcast.

use telltale_program_cache::{
    Argument, DynamicIndex, FactoryError, OperandSpec, OperandSpecs, Operation, ProgramDescriptor,
    ProgramKey, Shape,
};

use crate::blocks::Blocks;
use crate::collapse::Collapsed;
use crate::error::{Checked, OperandRefusal};
use crate::hand_written::HandWrittenBinary;
use crate::program::{OperandSource, ProgramParts, kernel_text};
use crate::session::{OperationError, Session, Style};
use crate::tensor::Tensor;

const ELEMENTWISE: (&str, &str) =
    ("elementwise", kernel_text!("tensor.h", "numbers.h", "elementwise.c"));

/// A function of one number. The numbers are those of `elementwise.c`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ProgramKey)]
#[repr(u8)]
pub enum Unary {
    /// The number itself: with another output, a change of format or layout.
    Copy = 0,
    /// -x
    Negate = 1,
    /// e to the power of x
    Exponential = 2,
    /// The natural logarithm.
    Logarithm = 3,
    /// The square root.
    SquareRoot = 4,
    /// One over the square root.
    ReciprocalRoot = 5,
    /// The larger of x and 0.
    Relu = 6,
    /// GELU in the tanh form: 0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³))).
    Gelu = 7,
    /// The hyperbolic tangent.
    Tanh = 8,
    /// 1 / (1 + e to the power of -x)
    Sigmoid = 9,
    /// x times the scalar of the dispatch.
    Scale = 10,
    /// x plus the scalar of the dispatch.
    Shift = 11,
}

/// A function of two numbers. The numbers are those of `elementwise.c`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ProgramKey)]
#[repr(u8)]
pub enum Binary {
    /// a + b
    Add = 32,
    /// a - b
    Subtract = 33,
    /// a b
    Multiply = 34,
    /// a / b
    Divide = 35,
    /// The larger of a and b.
    Maximum = 36,
    /// b times the slope of [`Unary::Gelu`] at a: its gradient, from input and upstream gradient.
    GeluSlope = 37,
    /// b where a is above 0, else 0: the gradient of [`Unary::Relu`].
    ReluSlope = 38,
}

/// The operation that [`Session::unary`] dispatches: operands `x`, `result`; dynamic value 0 is
/// the scalar's bits.
#[derive(Debug)]
pub struct UnaryOperation;

/// The operation that [`Session::binary`] dispatches: operands `a`, `b`, `result`.
#[derive(Debug)]
pub struct BinaryOperation;

/// What is done to each element; the rest of what a unary or binary operation is follows from its
/// operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ProgramKey)]
pub struct UnaryAttributes {
    /// The function.
    pub function: Unary,
}

/// See [`UnaryAttributes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ProgramKey)]
pub struct BinaryAttributes {
    /// The function.
    pub function: Binary,
}

impl Operation for UnaryOperation {
    const NAME: &'static str = "unary";
    type Attributes = UnaryAttributes;

    fn create(
        attributes: &UnaryAttributes,
        operands: OperandSpecs<'_>,
    ) -> Result<ProgramDescriptor<Argument>, FactoryError> {
        let (x, result) = (operands.require(0)?, operands.require(1)?);
        Ok(program(attributes.function as u32, result, &[x]))
    }
}

impl Operation for BinaryOperation {
    const NAME: &'static str = "binary";
    type Attributes = BinaryAttributes;

    fn create(
        attributes: &BinaryAttributes,
        operands: OperandSpecs<'_>,
    ) -> Result<ProgramDescriptor<Argument>, FactoryError> {
        let (a, b, result) = (operands.require(0)?, operands.require(1)?, operands.require(2)?);
        Ok(program(attributes.function as u32, result, &[a, b]))
    }
}

pub(crate) fn program(
    function: u32,
    result: &OperandSpec,
    inputs: &[&OperandSpec],
) -> ProgramDescriptor<Argument> {
    let collapsed = Collapsed::of(result, inputs);
    let blocks = Blocks::of_elements(collapsed.extents, collapsed.tiled);
    let shares = blocks.share(1, u64::from(blocks.block_elements()));
    let mut words = blocks.words();
    words.push(Argument::Word(function));
    // Only unary functions have a scalar.
    words.push(match inputs.len() {
        1 => Argument::Dynamic(DynamicIndex(0)),
        _ => Argument::Word(0),
    });
    let sources: Vec<OperandSource> =
        (0..).zip(inputs).map(|(i, spec)| collapsed.input(i, spec)).collect();
    let position = u16::try_from(inputs.len()).expect("one or two");
    ProgramParts::new(shares)
        .read_blocks(&blocks, &sources)
        .compute(ELEMENTWISE, words)
        .write_blocks(&blocks, &[collapsed.result(position, result)], None)
        .program()
}

/// The shape that two shapes have together: along each dimension, counted from the last, the sizes
/// are equal or one of them is 1.
pub(crate) fn broadcast(a: &Shape, b: &Shape) -> Option<Shape> {
    let rank = a.len().max(b.len());
    let size = |shape: &Shape, i: usize| {
        let missing = rank - shape.len();
        if i < missing { 1 } else { shape[i - missing] }
    };
    (0..rank)
        .map(|i| match (size(a, i), size(b, i)) {
            (one, other) if one == other => Some(one),
            (1, other) => Some(other),
            (one, 1) => Some(one),
            _ => None,
        })
        .collect::<Option<Vec<u32>>>()
        .map(|sizes| Shape::new(&sizes))
}

/// The specification of a binary operation's result: the broadcast shape, `a`'s format and layout.
pub(crate) fn binary_result(
    a: &OperandSpec,
    b: &OperandSpec,
) -> Result<OperandSpec, OperandRefusal> {
    Checked::numbers("binary", "a", a)?;
    let checked = Checked::numbers("binary", "b", b)?;
    let shape = broadcast(&a.shape, &b.shape).ok_or_else(|| {
        let (a, b) = (a.shape.dimensions(), b.shape.dimensions());
        checked.refusal(format!("its shape {b:?} and that of `a`, {a:?}, do not broadcast"))
    })?;
    Ok(OperandSpec { shape, ..a.clone() })
}

// === impl Session ===

impl Session {
    /// A function of each element, into a new tensor like `x`. `scalar` is for
    /// [`Unary::Scale`] and [`Unary::Shift`]; other functions ignore it. It changes no program.
    ///
    /// # Errors
    /// When `x` is not Float32 or BFloat16, or the dispatch fails.
    pub fn unary(
        &self,
        function: Unary,
        x: &Tensor,
        scalar: f32,
    ) -> Result<Tensor, OperationError> {
        Checked::numbers("unary", "x", x.spec())?;
        let result = self.result("unary", x.spec().clone())?;
        self.unary_into(function, x, scalar, &result)?;
        Ok(result)
    }

    /// The same into a tensor that is there already and has `x`'s shape; it may be `x` itself.
    ///
    /// # Errors
    /// As [`unary`](Self::unary), and when the result has another shape.
    pub fn unary_into(
        &self,
        function: Unary,
        x: &Tensor,
        scalar: f32,
        result: &Tensor,
    ) -> Result<(), OperationError> {
        Checked::numbers("unary", "x", x.spec())?;
        let checked = Checked::numbers("unary", "result", result.spec())?;
        checked.require_shape(x.shape())?;
        self.dispatch::<UnaryOperation>(
            &UnaryAttributes { function },
            &[Some(x), Some(result)],
            &[scalar.to_bits()],
        )
    }

    /// A function of two operands' elements, into a new tensor of `a`'s format and layout. Along
    /// each dimension, counted from the last, sizes are equal or one of them is 1.
    ///
    /// # Errors
    /// When an operand is not Float32 or BFloat16, shapes do not broadcast, or the dispatch fails.
    pub fn binary(
        &self,
        function: Binary,
        a: &Tensor,
        b: &Tensor,
    ) -> Result<Tensor, OperationError> {
        let result = self.result("binary", binary_result(a.spec(), b.spec())?)?;
        self.dispatch_binary(function, a, b, &result)?;
        Ok(result)
    }

    /// The same into a tensor that is there already; it may be an operand that is not broadcast.
    ///
    /// # Errors
    /// As [`binary`](Self::binary), and when the result has another shape, or is in the place of
    /// an operand that is smaller.
    pub fn binary_into(
        &self,
        function: Binary,
        a: &Tensor,
        b: &Tensor,
        result: &Tensor,
    ) -> Result<(), OperationError> {
        let expected = binary_result(a.spec(), b.spec())?;
        let checked = Checked::numbers("binary", "result", result.spec())?;
        checked.require_shape(&expected.shape)?;
        for input in [a, b] {
            let in_place = input.shares_buffer_with(result);
            checked.require(!in_place || input.spec() == result.spec(), || {
                "it lies on an operand of another shape, format or layout".to_owned()
            })?;
        }
        self.dispatch_binary(function, a, b, result)
    }

    fn dispatch_binary(
        &self,
        function: Binary,
        a: &Tensor,
        b: &Tensor,
        result: &Tensor,
    ) -> Result<(), OperationError> {
        let attributes = BinaryAttributes { function };
        let operands = [Some(a), Some(b), Some(result)];
        match self.style() {
            Style::Automatic => self.dispatch::<BinaryOperation>(&attributes, &operands, &[]),
            Style::HandWritten => self.dispatch::<HandWrittenBinary>(&attributes, &operands, &[]),
        }
    }
}
