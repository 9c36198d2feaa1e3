//! `telltale.operations.Tensor`: a tensor on an emulated chip.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use telltale_operations::{OperationError, Tensor as ChipTensor};
use telltale_program_cache::{Layout, OperandSpec};

use super::interrupted::waited;
use super::numbers::{Elements, array, name_of};
use super::opened::{OpenChip, SharedChip};
use crate::error::ErrorClass;

/// A tensor on a chip. Its memory is given back when it is freed, dropped, or the chip is closed.
#[pyclass(frozen, module = "telltale.operations")]
pub(crate) struct Tensor {
    shared: Arc<SharedChip>,
    number: u64,
    spec: OperandSpec,
}

impl Tensor {
    /// The tensor of this number.
    pub(super) fn new(shared: &Arc<SharedChip>, number: u64, py: Python<'_>) -> PyResult<Self> {
        let spec = found(&*shared.open(py)?, number, py)?.spec().clone();
        Ok(Self { shared: Arc::clone(shared), number, spec })
    }

    pub(super) fn shared(&self) -> &Arc<SharedChip> {
        &self.shared
    }

    /// The tensor itself, while it has memory.
    pub(super) fn on(&self, open: &OpenChip, py: Python<'_>) -> PyResult<Arc<ChipTensor>> {
        found(open, self.number, py)
    }
}

fn found(open: &OpenChip, number: u64, py: Python<'_>) -> PyResult<Arc<ChipTensor>> {
    let freed = || ErrorClass::Operation.of(py, "the tensor was freed; make another one", None);
    open.tensor(number).ok_or_else(freed)
}

#[pymethods]
impl Tensor {
    /// The sizes of its dimensions, outermost first.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.spec.shape.dimensions())
    }

    /// What its elements are, such as `float32`.
    #[getter]
    fn dtype(&self) -> &'static str {
        name_of(self.spec.data_format)
    }

    /// How they follow each other: `row_major` or `tiled`.
    #[getter]
    fn layout(&self) -> &'static str {
        layout_name(self.spec.layout)
    }

    /// Its values, once all that was dispatched so far is done. Those of bfloat16 come as float32.
    fn numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let open = self.shared.open(py)?;
        let tensor = self.on(&open, py)?;
        let bytes = waited(py, move || open.session.read_elements(&tensor))?;
        array(py, self.spec.shape.dimensions(), self.spec.data_format, &bytes)
    }

    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if copy == Some(false) {
            return Err(PyValueError::new_err("a tensor is on the chip; allow a copy"));
        }
        let array = self.numpy(py)?;
        match dtype {
            Some(dtype) => array.call_method1("astype", (dtype,)),
            None => Ok(array),
        }
    }

    /// Overwrites it, after all that was dispatched so far.
    fn write(&self, py: Python<'_>, values: &Bound<'_, PyAny>) -> PyResult<()> {
        let open = self.shared.open(py)?;
        let tensor = self.on(&open, py)?;
        let dtype = pyo3::types::PyString::new(py, self.dtype());
        let elements = Elements::of(values, Some(dtype.as_any()))?;
        if elements.shape != self.spec.shape.dimensions() {
            let (given, own) = (elements.shape, self.spec.shape.dimensions());
            let message = format!("values of shape {given:?} do not fit a tensor of {own:?}");
            return Err(PyValueError::new_err(message));
        }
        waited(py, move || -> Result<(), OperationError> {
            open.session.write_elements(&tensor, &elements.bytes)
        })
    }

    /// Gives its memory back, once what was dispatched with it is done.
    fn free(&self, py: Python<'_>) {
        py.detach(|| self.shared.free(self.number));
    }

    fn __repr__(&self) -> String {
        let Self { spec, .. } = self;
        let shape = spec.shape.dimensions();
        format!("<Tensor {shape:?} {} {}>", name_of(spec.data_format), layout_name(spec.layout))
    }
}

impl Drop for Tensor {
    fn drop(&mut self) {
        self.shared.free(self.number);
    }
}

/// What a layout is called.
pub(super) fn layout_name(layout: Layout) -> &'static str {
    if layout == Layout::RowMajor { "row_major" } else { "tiled" }
}
