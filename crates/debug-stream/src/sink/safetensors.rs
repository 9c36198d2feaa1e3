//! Tensors as `.safetensors` files: a length, a header of JSON, the bytes.
//!
//! Types that the format has no name for are stored as they are under U8, and named in the
//! metadata, where every file has the stream's own name of the type.

use std::io::{self, Write};

use serde_json::json;

use crate::{Dtype, Tensor};

/// What the header is filled up to a multiple of.
const ALIGNMENT: usize = 8;

/// Writes one tensor under a name as a `.safetensors` file.
///
/// # Errors
/// When writing fails.
pub fn write_safetensors(out: &mut impl Write, name: &str, tensor: &Tensor<'_>) -> io::Result<()> {
    // This name means the metadata.
    let name = if name == "__metadata__" { "tensor" } else { name };
    let header = json!({
        "__metadata__": { "dtype": tensor.dtype().name() },
        name: {
            "dtype": format_name(tensor.dtype()),
            "shape": tensor.shape(),
            "data_offsets": [0, tensor.data().len()],
        },
    });
    let mut header = serde_json::to_vec(&header)?;
    header.resize(header.len().next_multiple_of(ALIGNMENT), b' ');
    let length = u64::try_from(header.len()).map_err(io::Error::other)?;
    out.write_all(&length.to_le_bytes())?;
    out.write_all(&header)?;
    out.write_all(tensor.data())
}

fn format_name(dtype: Dtype) -> &'static str {
    match dtype {
        Dtype::Int8 => "I8",
        Dtype::Int16 => "I16",
        Dtype::Int32 => "I32",
        Dtype::Int64 => "I64",
        Dtype::Uint16 => "U16",
        Dtype::Uint32 => "U32",
        Dtype::Uint64 => "U64",
        Dtype::Float16 => "F16",
        Dtype::Bfloat16 => "BF16",
        Dtype::Float32 | Dtype::Float32r => "F32",
        Dtype::Float8e4m3fn | Dtype::Float8e4m3fnX4 => "F8_E4M3",
        Dtype::Float8e5m2 | Dtype::Float8e5m2X4 => "F8_E5M2",
        Dtype::Uint8 | Dtype::Float8e3m4 | Dtype::Float8e4m3 | Dtype::Float4e2m1fnX4 => "U8",
    }
}
