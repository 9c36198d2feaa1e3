//! A tensor of an event, as NumPy, torch and others take it without a copy.

use std::sync::Arc;

use pyo3::exceptions::{PyAttributeError, PyBufferError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use telltale_debug_stream::{Dtype, ElementValue, Tensor};

use super::dlpack::{self, Lent, LentMemory, LentType};
use super::memory::Memory;
use crate::package::package;

/// The version of the array interface.
const INTERFACE_VERSION: u32 = 3;
/// DLPack's number of a host's memory.
const HOST: (i32, i32) = (1, 0);
/// DLPack's major version from which a capsule says whether memory may be written.
const VERSIONED: u32 = 1;
/// float4 codes are below this.
const FLOAT4_CODES: u8 = 16;

/// A tensor that a core printed. Its memory does not change.
#[pyclass(frozen, module = "telltale.debug")]
pub(crate) struct DebugTensor {
    dtype: Dtype,
    shape: Vec<u64>,
    memory: Arc<Memory>,
}

/// The same memory as codes, for NumPy.
#[pyclass(frozen, module = "telltale.debug")]
struct RawTensor {
    dtype: Dtype,
    shape: Vec<u64>,
    memory: Arc<Memory>,
}

impl DebugTensor {
    /// A copy, without what fills the device's last unit.
    pub(super) fn of(tensor: &Tensor<'_>) -> Self {
        let memory = Arc::new(Memory::of(tensor.data()));
        Self { dtype: tensor.dtype(), shape: tensor.shape().to_vec(), memory }
    }

    /// The codes as an array of NumPy that shares the memory.
    fn codes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let Self { dtype, shape, memory } = self;
        let raw = RawTensor { dtype: *dtype, shape: shape.clone(), memory: Arc::clone(memory) };
        package(py, "numpy")?.call_method1("asarray", (Py::new(py, raw)?,))
    }

    /// The values in the type that the package ml_dtypes has for them; none without it.
    fn viewed<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(name) = ml_dtypes_name(self.dtype) else { return Ok(None) };
        let Ok(dtype) = py.import("ml_dtypes").and_then(|package| package.getattr(name)) else {
            return Ok(None);
        };
        let mut codes = self.codes(py)?;
        // What is above a code of 4 bits means nothing here, and something else there.
        let is_float4 = self.dtype == Dtype::Float4e2m1fnX4;
        if is_float4 && self.memory.elements(1).any(|code| code[0] >= FLOAT4_CODES) {
            codes = codes.call_method1("__and__", (FLOAT4_CODES - 1,))?;
        }
        codes.call_method1("view", (dtype,)).map(Some)
    }

    /// The values as float32, which holds all of them.
    fn decoded<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let bytes: Vec<u8> = py.detach(|| {
            let elements = self.memory.elements(self.dtype.element_bytes());
            let values = elements.filter_map(|code| self.dtype.value(code)).map(single);
            values.flat_map(f32::to_le_bytes).collect()
        });
        let numpy = package(py, "numpy")?;
        let flat = numpy.call_method1("frombuffer", (PyBytes::new(py, &bytes), "<f4"))?;
        flat.call_method1("reshape", (PyTuple::new(py, &self.shape)?,))
    }
}

#[pymethods]
impl DebugTensor {
    #[getter]
    fn dtype(&self) -> &'static str {
        self.dtype.name()
    }

    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.shape)
    }

    #[getter]
    fn nbytes(&self) -> usize {
        self.memory.len()
    }

    #[getter]
    fn raw<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.codes(py)
    }

    fn numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if is_of_numpy(self.dtype) {
            return self.codes(py);
        }
        match self.viewed(py)? {
            Some(values) => Ok(values),
            None => self.decoded(py),
        }
    }

    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let values = self.numpy(py)?;
        let options = PyDict::new(py);
        options.set_item("dtype", dtype)?;
        let call = match copy {
            None => "asarray",
            Some(copy) => {
                options.set_item("copy", copy)?;
                "array"
            }
        };
        package(py, "numpy")?.call_method(call, (values,), Some(&options))
    }

    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        if !is_of_numpy(self.dtype) {
            // NumPy then asks for the values instead of taking codes for numbers.
            let message = format!("NumPy has no {}; see numpy() and raw", self.dtype.name());
            return Err(PyAttributeError::new_err(message));
        }
        interface(py, self.dtype, &self.shape, &self.memory)
    }

    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if stream.is_some() || dl_device.is_some_and(|device| device != HOST) {
            return Err(PyBufferError::new_err("the tensor is in the host's memory; copy it"));
        }
        let Some(element) = lent_type(self.dtype) else {
            let name = self.dtype.name();
            let message = format!("DLPack packs {name}, and here it has a byte each; use raw");
            return Err(PyBufferError::new_err(message));
        };
        let is_versioned = max_version.is_some_and(|(major, _)| major >= VERSIONED);
        if copy == Some(false) && !is_versioned {
            return Err(PyBufferError::new_err(
                "DLPack before version 1 cannot say that memory is read-only; allow a copy, or use raw",
            ));
        }
        let memory = match copy {
            Some(true) => LentMemory::Copied(Memory::clone(&self.memory)),
            _ => LentMemory::Shared(Arc::clone(&self.memory)),
        };
        dlpack::capsule(py, Lent { element, shape: &self.shape, memory }, is_versioned)
    }

    fn __dlpack_device__(&self) -> (i32, i32) {
        HOST
    }

    fn __repr__(&self) -> String {
        format!("<Tensor {} {}>", self.dtype.name(), shape_text(&self.shape))
    }
}

#[pymethods]
impl RawTensor {
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        interface(py, self.dtype, &self.shape, &self.memory)
    }
}

/// A shape as tables have it.
pub(super) fn shape_text(shape: &[u64]) -> String {
    let sizes: Vec<String> = shape.iter().map(u64::to_string).collect();
    format!("({})", sizes.join(","))
}

/// The array interface of memory that may not be written.
fn interface<'py>(
    py: Python<'py>,
    dtype: Dtype,
    shape: &[u64],
    memory: &Memory,
) -> PyResult<Bound<'py, PyDict>> {
    let interface = PyDict::new(py);
    interface.set_item("version", INTERFACE_VERSION)?;
    interface.set_item("shape", PyTuple::new(py, shape)?)?;
    interface.set_item("typestr", type_text(dtype))?;
    interface.set_item("data", (memory.address().addr(), true))?;
    Ok(interface)
}

/// The nearest float32, which for the types here is the value itself.
#[expect(clippy::cast_possible_truncation, reason = "every float of the stream is a float32")]
fn single(value: ElementValue) -> f32 {
    value.to_f64() as f32
}

/// Whether NumPy has the type itself.
fn is_of_numpy(dtype: Dtype) -> bool {
    ml_dtypes_name(dtype).is_none()
}

/// NumPy's text of the type, or of the codes' type.
fn type_text(dtype: Dtype) -> &'static str {
    match dtype {
        Dtype::Int8 => "|i1",
        Dtype::Int16 => "<i2",
        Dtype::Int32 => "<i4",
        Dtype::Int64 => "<i8",
        Dtype::Uint16 | Dtype::Bfloat16 => "<u2",
        Dtype::Uint32 => "<u4",
        Dtype::Uint64 => "<u8",
        Dtype::Float16 => "<f2",
        Dtype::Float32 | Dtype::Float32r => "<f4",
        _ => "|u1",
    }
}

/// What the package ml_dtypes calls a type that NumPy lacks.
fn ml_dtypes_name(dtype: Dtype) -> Option<&'static str> {
    Some(match dtype {
        Dtype::Bfloat16 => "bfloat16",
        Dtype::Float8e3m4 => "float8_e3m4",
        Dtype::Float8e4m3 => "float8_e4m3",
        Dtype::Float8e4m3fn | Dtype::Float8e4m3fnX4 => "float8_e4m3fn",
        Dtype::Float8e5m2 | Dtype::Float8e5m2X4 => "float8_e5m2",
        Dtype::Float4e2m1fnX4 => "float4_e2m1fn",
        _ => return None,
    })
}

/// DLPack's number of a type; none for the one that it keeps in half a byte.
fn lent_type(dtype: Dtype) -> Option<LentType> {
    let code = match dtype {
        Dtype::Int8 | Dtype::Int16 | Dtype::Int32 | Dtype::Int64 => 0,
        Dtype::Uint8 | Dtype::Uint16 | Dtype::Uint32 | Dtype::Uint64 => 1,
        Dtype::Float16 | Dtype::Float32 | Dtype::Float32r => 2,
        Dtype::Bfloat16 => 4,
        Dtype::Float8e3m4 => 7,
        Dtype::Float8e4m3 => 8,
        Dtype::Float8e4m3fn | Dtype::Float8e4m3fnX4 => 10,
        Dtype::Float8e5m2 | Dtype::Float8e5m2X4 => 12,
        Dtype::Float4e2m1fnX4 => return None,
    };
    let bits = u8::try_from(8 * dtype.element_bytes()).expect("no element has 32 bytes");
    Some(LentType { code, bits, lanes: 1 })
}
