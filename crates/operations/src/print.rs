//! A tensor's elements as events of the debug stream, printed by a kernel.

use telltale_program_cache::{
    Argument, CircularBufferDescriptor, CircularBufferFormat, CoreCoord, CoreRanges, DataFormat,
    FactoryError, KernelConfig, KernelDescriptor, KernelSource, OperandSpecs, Operation,
    ProgramDescriptor, ProgramKey, ReaderConfig,
};

use crate::error::Checked;
use crate::extents::Extents;
use crate::memory_order::element_bytes;
use crate::program::{OperandSource, kernel_text};
use crate::session::{OperationError, Session};
use crate::tensor::Tensor;

const PRINT: (&str, &str) = ("print", kernel_text!("tensor.h", "print.c"));
/// The core that prints: events of one tensor come in order from one stream.
pub const PRINTING_CORE: CoreCoord = CoreCoord::new(0, 0);
/// How many bytes of a tensor an event has at most.
pub const MAX_PRINTED_BYTES: u32 = 256 << 10;
/// How long a prefix may be, as in the stream.
const MAX_PREFIX_BYTES: usize = 511;

/// The operation that [`Session::print`] dispatches: operand `x`.
#[derive(Debug)]
pub struct PrintOperation;

/// A print's parameters.
#[derive(Debug, Clone, PartialEq, Eq, Hash, ProgramKey)]
pub struct PrintAttributes {
    /// The events' prefix: a constant of the kernel, so that each has a program of its own.
    pub prefix: String,
}

impl Operation for PrintOperation {
    const NAME: &'static str = "print";
    type Attributes = PrintAttributes;

    fn create(
        attributes: &PrintAttributes,
        operands: OperandSpecs<'_>,
    ) -> Result<ProgramDescriptor<Argument>, FactoryError> {
        let x = operands.require(0)?;
        let extents = Extents::of(&x.shape);
        let rows = extents.matrices() * extents.rows();
        let row_bytes = extents.columns() * element_bytes(x.data_format);
        let block_rows = (MAX_PRINTED_BYTES / row_bytes).clamp(1, rows);
        let unknown = || FactoryError::Unsupported("no kernel prints this format".into());
        let dtype = dtype(x.data_format).ok_or_else(unknown)?;
        let (name, text) = PRINT;
        let source = KernelSource::Text(text.into());
        let config = KernelConfig::Reader(ReaderConfig {});
        let mut kernel = KernelDescriptor::new(name, source, PRINTING_CORE, config);
        let prefix = c_literal(&attributes.prefix);
        kernel.defines.push(("PRINT_PREFIX".into(), prefix.into()));
        kernel.defines.push(("PRINT_DTYPE".into(), dtype.into()));
        let words = [rows, block_rows].map(Argument::Word);
        kernel.common_runtime_arguments =
            OperandSource::new(0, x).tensor_words().into_iter().chain(words).collect();
        let format = CircularBufferFormat {
            buffer_index: 0,
            data_format: x.data_format,
            page_bytes: block_rows * row_bytes,
            tile: None,
        };
        let mut program = ProgramDescriptor::default();
        program.kernels.push(kernel);
        let buffer = CircularBufferDescriptor::own(CoreRanges::from(PRINTING_CORE), 1, format);
        program.circular_buffers.push(buffer);
        Ok(program)
    }
}

/// What the stream calls a format.
fn dtype(format: DataFormat) -> Option<&'static str> {
    match format {
        DataFormat::Float32 => Some("float32"),
        DataFormat::BFloat16 => Some("bfloat16"),
        DataFormat::UInt32 => Some("uint32"),
        _ => None,
    }
}

/// A text as a string of C, on one line.
fn c_literal(text: &str) -> String {
    let mut literal = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b' '..=b'~' if !matches!(byte, b'"' | b'\\' | b'?') => literal.push(byte.into()),
            // Three digits, so that none behind them is taken for a fourth.
            _ => literal.push_str(&format!("\\{byte:03o}")),
        }
    }
    literal.push('"');
    literal
}

// === impl Session ===

impl Session {
    /// Prints a tensor's elements as they are stored, in row-major order, after all that was
    /// dispatched so far: each event is as many whole rows as fit [`MAX_PRINTED_BYTES`], a matrix
    /// of them; outer dimensions are more rows. They come from [`PRINTING_CORE`]. A print is a
    /// program of its own: it changes no other, and costs one that does nothing while none
    /// reads that core's stream. Each prefix is another program.
    ///
    /// # Errors
    /// When the tensor is not Float32, BFloat16 or UInt32, its rows are too long, or the prefix has
    /// more than 511 bytes or a zero among them; or the dispatch fails.
    pub fn print(&self, prefix: &str, x: &Tensor) -> Result<(), OperationError> {
        const NAME: &str = PrintOperation::NAME;
        let checked = Checked::new(NAME, "x", x.spec())?;
        let format = x.spec().data_format;
        checked.require(dtype(format).is_some(), || format!("no kernel prints {format:?}"))?;
        let row_bytes = checked.extents().columns() * element_bytes(format);
        checked.require(row_bytes <= MAX_PRINTED_BYTES, || {
            format!("its rows have {row_bytes} bytes; at most {MAX_PRINTED_BYTES} can be printed")
        })?;
        let checked = Checked::new(NAME, "prefix", x.spec())?;
        let is_printable = prefix.len() <= MAX_PREFIX_BYTES && !prefix.contains('\0');
        checked.require(is_printable, || {
            format!("a prefix has at most {MAX_PREFIX_BYTES} bytes, and no zero among them")
        })?;
        let attributes = PrintAttributes { prefix: prefix.to_owned() };
        self.dispatch::<PrintOperation>(&attributes, &[Some(x)], &[])
    }
}

#[cfg(test)]
mod tests {
    use super::c_literal;

    #[test]
    fn no_prefix_ends_its_string() {
        for (text, expected) in [
            ("layer 0: bent", r#""layer 0: bent""#),
            (r#"a"b\c"#, r#""a\042b\134c""#),
            ("a\n1??=é", r#""a\0121\077\077=\303\251""#),
        ] {
            assert_eq!(c_literal(text), expected);
        }
    }
}
