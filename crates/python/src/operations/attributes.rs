//! Attributes of an operation in Python as bytes of a key: each value with its type, so that 1, 1.0 and True differ.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString, PyTuple};

/// Tuples and dataclasses within each other.
const MAX_DEPTH: usize = 32;
/// Bytes of all attributes of an operation.
const MAX_BYTES: usize = 1 << 20;

/// What a value begins with. The numbers never change their meaning.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Tag {
    None = 1,
    Bool,
    Int,
    GreatInt,
    Float,
    Text,
    Tuple,
    Class,
}

/// Appends the values of a tuple.
pub(super) fn encode(values: &Bound<'_, PyTuple>, key: &mut Vec<u8>) -> PyResult<()> {
    put_all(values, key, 0)
}

fn put_all(values: &Bound<'_, PyTuple>, key: &mut Vec<u8>, depth: usize) -> PyResult<()> {
    if depth > MAX_DEPTH {
        return Err(PyValueError::new_err(format!(
            "an attribute has more than {MAX_DEPTH} levels; make it flatter"
        )));
    }
    key.push(Tag::Tuple as u8);
    put_length(values.len(), key);
    values.iter().try_for_each(|value| put(&value, key, depth))
}

fn put(value: &Bound<'_, PyAny>, key: &mut Vec<u8>, depth: usize) -> PyResult<()> {
    // Exactly these types: what is derived from them may hold more.
    if value.is_none() {
        key.push(Tag::None as u8);
    } else if let Ok(value) = value.cast_exact::<PyBool>() {
        key.extend([Tag::Bool as u8, value.is_true().into()]);
    } else if let Ok(value) = value.cast_exact::<PyInt>() {
        match value.extract::<i64>() {
            Ok(number) => {
                key.push(Tag::Int as u8);
                key.extend(number.to_le_bytes());
            }
            Err(_) => {
                let text = value.call_method1("__format__", ("x",))?;
                put_bytes(Tag::GreatInt, text.cast::<PyString>()?.to_str()?.as_bytes(), key);
            }
        }
    } else if let Ok(value) = value.cast_exact::<PyFloat>() {
        key.push(Tag::Float as u8);
        key.extend(value.value().to_bits().to_le_bytes());
    } else if let Ok(value) = value.cast_exact::<PyString>() {
        put_bytes(Tag::Text, value.to_str()?.as_bytes(), key);
    } else if let Ok(value) = value.cast_exact::<PyTuple>() {
        put_all(value, key, depth + 1)?;
    } else {
        let parts =
            value.py().import("telltale.operations")?.getattr("key_parts")?.call1((value,))?;
        let (class, fields): (u64, Bound<'_, PyTuple>) = parts.extract()?;
        key.push(Tag::Class as u8);
        key.extend(class.to_le_bytes());
        put_all(&fields, key, depth + 1)?;
    }
    if key.len() > MAX_BYTES {
        return Err(PyValueError::new_err(
            "the attributes have more than 1 MiB; pass what is large as a tensor",
        ));
    }
    Ok(())
}

fn put_bytes(tag: Tag, bytes: &[u8], key: &mut Vec<u8>) {
    key.push(tag as u8);
    put_length(bytes.len(), key);
    key.extend_from_slice(bytes);
}

fn put_length(length: usize, key: &mut Vec<u8>) {
    key.extend((length as u64).to_le_bytes());
}
