//! Tensors as `.npy` files, version 1.0 of the format, which NumPy reads without other packages.
//!
//! The format has no name for bfloat16 and smaller floats: those become float32, which holds each
//! of their values exactly.

use std::io::{self, Write};

use crate::{Dtype, Tensor};

const MAGIC: &[u8] = b"\x93NUMPY\x01\x00";
/// What the header is filled up to a multiple of.
const ALIGNMENT: usize = 64;

/// Writes a tensor as a `.npy` file.
///
/// # Errors
/// When writing fails.
pub fn write_npy(out: &mut impl Write, tensor: &Tensor<'_>) -> io::Result<()> {
    let (descr, is_native) = descr(tensor.dtype());
    let sizes: Vec<String> = tensor.shape().iter().map(|size| format!("{size},")).collect();
    let mut header =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({}), }}", sizes.join(" "));
    // The length of the header and its final line end count too.
    let unfilled = MAGIC.len() + 2 + header.len() + 1;
    header.extend(std::iter::repeat_n(' ', unfilled.next_multiple_of(ALIGNMENT) - unfilled));
    header.push('\n');
    // Eight dimensions of twenty digits are far below the limit.
    let length = u16::try_from(header.len()).map_err(io::Error::other)?;
    out.write_all(MAGIC)?;
    out.write_all(&length.to_le_bytes())?;
    out.write_all(header.as_bytes())?;
    if is_native {
        return out.write_all(tensor.data());
    }
    for value in tensor.values() {
        #[allow(clippy::cast_possible_truncation, reason = "float32 holds each value exactly")]
        let value = value.to_f64() as f32;
        out.write_all(&value.to_le_bytes())?;
    }
    Ok(())
}

/// The format's name for a type, and whether the bytes are already what it means.
fn descr(dtype: Dtype) -> (&'static str, bool) {
    match dtype {
        Dtype::Int8 => ("|i1", true),
        Dtype::Int16 => ("<i2", true),
        Dtype::Int32 => ("<i4", true),
        Dtype::Int64 => ("<i8", true),
        Dtype::Uint8 => ("|u1", true),
        Dtype::Uint16 => ("<u2", true),
        Dtype::Uint32 => ("<u4", true),
        Dtype::Uint64 => ("<u8", true),
        Dtype::Float16 => ("<f2", true),
        Dtype::Float32 | Dtype::Float32r => ("<f4", true),
        _ => ("<f4", false),
    }
}
