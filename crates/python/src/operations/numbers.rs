//! NumPy arrays as elements of tensors and back.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyString};
use telltale_operations::bfloat;
use telltale_program_cache::DataFormat;

use crate::package::package;

/// A format: its name, and what NumPy has for its bytes. It has none for bfloat16, whose values come as float32.
type NamedFormat = (DataFormat, &'static str, &'static str);

const FORMATS: [NamedFormat; 7] = [
    (DataFormat::Float32, "float32", "<f4"),
    (DataFormat::BFloat16, "bfloat16", "<f4"),
    (DataFormat::Float16, "float16", "<f2"),
    (DataFormat::UInt8, "uint8", "|u1"),
    (DataFormat::UInt16, "uint16", "<u2"),
    (DataFormat::UInt32, "uint32", "<u4"),
    (DataFormat::Int32, "int32", "<i4"),
];

/// An array's elements, in row-major order and little-endian.
pub(super) struct Elements {
    pub(super) shape: Vec<u32>,
    pub(super) format: DataFormat,
    pub(super) bytes: Vec<u8>,
}

impl Elements {
    /// Of anything that NumPy makes an array of, in its own format or in this one.
    pub(super) fn of(
        values: &Bound<'_, PyAny>,
        dtype: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let array = package(values.py(), "numpy")?.call_method1("asarray", (values,))?;
        let own = array.getattr("dtype")?;
        let format = format_of(dtype.unwrap_or(&own))?;
        let shape = array.getattr("shape")?.extract()?;
        let is_bfloat = own.getattr("name")?.extract::<String>()? == "bfloat16";
        let bytes = |array: &Bound<'_, PyAny>| -> PyResult<Vec<u8>> {
            Ok(array.call_method0("tobytes")?.cast_into::<PyBytes>()?.as_bytes().to_vec())
        };
        let bytes = if is_bfloat && format == DataFormat::BFloat16 {
            bytes(&array)?
        } else {
            // A bfloat16 of another package casts to nothing but float32 by rule.
            let array = if is_bfloat { array.call_method1("astype", ("<f4",))? } else { array };
            let keywords = pyo3::types::PyDict::new(values.py());
            keywords.set_item("casting", "same_kind")?;
            let code = named(format).2;
            let cast = bytes(&array.call_method("astype", (code,), Some(&keywords))?)?;
            if format == DataFormat::BFloat16 { narrowed(&cast) } else { cast }
        };
        Ok(Self { shape, format, bytes })
    }
}

/// An array of elements; one of float32 for bfloat16.
pub(super) fn array<'py>(
    py: Python<'py>,
    shape: &[u32],
    format: DataFormat,
    bytes: &[u8],
) -> PyResult<Bound<'py, PyAny>> {
    let widened;
    let bytes = if format == DataFormat::BFloat16 {
        widened = self::widened(bytes);
        &widened
    } else {
        bytes
    };
    // A bytearray can be written to, and so can the array that is made of it.
    let bytes = PyByteArray::new(py, bytes);
    let flat = package(py, "numpy")?.call_method1("frombuffer", (bytes, named(format).2))?;
    flat.call_method1("reshape", (pyo3::types::PyTuple::new(py, shape)?,))
}

/// The format that a name or a NumPy type stands for.
pub(super) fn format_of(dtype: &Bound<'_, PyAny>) -> PyResult<DataFormat> {
    let name = match dtype.cast::<PyString>() {
        Ok(name) => name.to_string(),
        Err(_) => {
            let known = package(dtype.py(), "numpy")?.call_method1("dtype", (dtype,))?;
            known.getattr("name")?.extract()?
        }
    };
    let format = FORMATS.iter().find(|(_, known, _)| *known == name);
    format.map(|(format, ..)| *format).ok_or_else(|| {
        let names: Vec<_> = FORMATS.iter().map(|(_, name, _)| *name).collect();
        let names = names.join(", ");
        PyTypeError::new_err(format!("tensors have no {name}; give dtype, one of {names}"))
    })
}

/// What a format is called.
pub(super) fn name_of(format: DataFormat) -> &'static str {
    named(format).1
}

fn named(format: DataFormat) -> NamedFormat {
    let found = FORMATS.into_iter().find(|(known, ..)| *known == format);
    found.expect("tensors are made in these formats only")
}

fn narrowed(bytes: &[u8]) -> Vec<u8> {
    let (numbers, _) = bytes.as_chunks::<4>();
    numbers.iter().flat_map(|one| bfloat::narrow(f32::from_le_bytes(*one)).to_le_bytes()).collect()
}

fn widened(bytes: &[u8]) -> Vec<u8> {
    let (halves, _) = bytes.as_chunks::<2>();
    halves.iter().flat_map(|one| bfloat::widen(u16::from_le_bytes(*one)).to_le_bytes()).collect()
}
