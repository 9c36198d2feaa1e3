//! A device with its program cache: makes tensors, moves them to and from the host, and dispatches
//! operations. A dispatch finds the program, writes its arguments, enqueues it and returns; it
//! waits for the device only when the device's queue is full.

use std::fmt;
use std::sync::Arc;

use telltale_emulator::{Accelerator, BufferError, CompileError, ExecutionError};
use telltale_program_cache::{
    Dispatch, DispatchError, Operand, OperandSpec, Operation, ProgramCache,
};
use telltale_schema::memory::MemoryKind;
use thiserror::Error;

use crate::error::{Checked, OperandRefusal};
use crate::memory_order::{
    element_bytes, pack, pack_elements, page_bytes, put_number, stored_elements, take_number,
    unpack, unpack_elements,
};
use crate::tensor::Tensor;

const TENSOR: &str = "tensor";

/// A device with its program cache. May be shared between threads.
pub struct Session {
    cache: Arc<ProgramCache<Arc<Accelerator>>>,
    style: Style,
}

/// Which of the operations that exist twice are dispatched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Style {
    /// Those whose key and update follow from attributes, specifications and symbols.
    #[default]
    Automatic,
    /// Those with a key and an update by hand: binary functions, matrix products, softmax.
    HandWritten,
}

/// Why an operation was not done, or a tensor not made or moved.
#[derive(Debug, Error)]
pub enum OperationError {
    /// The operation does not take an operand.
    #[error(transparent)]
    Refused(#[from] OperandRefusal),
    /// There is no memory for a result.
    #[error("{operation} finds no memory for its result of shape {shape:?}")]
    Memory {
        /// The operation.
        operation: &'static str,
        /// The result's shape.
        shape: Vec<u32>,
        /// Why.
        #[source]
        source: Box<BufferError>,
    },
    /// The program was not found, made or updated.
    #[error("{operation} was not dispatched")]
    Dispatch {
        /// The operation.
        operation: &'static str,
        /// Why.
        #[source]
        source: Box<DispatchError<CompileError>>,
    },
    /// The device did not take the program or the copy, or failed before it.
    #[error("{step} was not done")]
    Execution {
        /// What was asked for.
        step: &'static str,
        /// What failed: where it was an operation, this says which.
        #[source]
        source: Box<ExecutionError>,
    },
}

// === impl Session ===

impl fmt::Debug for Session {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("Session");
        shown.field("accelerator", self.accelerator());
        shown.field("mode", &self.cache.mode()).finish_non_exhaustive()
    }
}

impl Session {
    /// Operations on a device, with the programs of a cache, which may be shared with others.
    #[must_use]
    pub fn new(cache: impl Into<Arc<ProgramCache<Arc<Accelerator>>>>) -> Self {
        Self { cache: cache.into(), style: Style::Automatic }
    }

    /// The same with the operations of this style.
    #[must_use]
    pub fn with_style(self, style: Style) -> Self {
        Self { style, ..self }
    }

    /// Which of the operations that exist twice are dispatched.
    #[must_use]
    pub fn style(&self) -> Style {
        self.style
    }

    /// The cache: its counters and its mode.
    #[must_use]
    pub fn cache(&self) -> &Arc<ProgramCache<Arc<Accelerator>>> {
        &self.cache
    }

    /// The device.
    #[must_use]
    pub fn accelerator(&self) -> &Arc<Accelerator> {
        self.cache.backend()
    }

    /// A tensor of Float32 or BFloat16 with these values, in row-major order. They are rounded to
    /// the nearest, to even where two are equally near.
    ///
    /// # Errors
    /// When the specification is not possible, the number of values is another, or memory is full.
    pub fn tensor(&self, spec: &OperandSpec, values: &[f32]) -> Result<Tensor, OperationError> {
        let checked = Checked::numbers(TENSOR, "values", spec)?;
        check_count(&checked, values.len())?;
        let tensor = self.empty(spec)?;
        let bytes = pack(spec, values, put_number(spec.data_format));
        self.write_bytes(&tensor, &bytes)?;
        Ok(tensor)
    }

    /// A tensor of row-major UInt32 with these values.
    ///
    /// # Errors
    /// As [`tensor`](Self::tensor).
    pub fn indices(&self, spec: &OperandSpec, values: &[u32]) -> Result<Tensor, OperationError> {
        let checked = Checked::indices(TENSOR, "values", spec)?;
        check_count(&checked, values.len())?;
        let tensor = self.empty(spec)?;
        let put = |value: u32, bytes: &mut Vec<u8>| bytes.extend_from_slice(&value.to_le_bytes());
        self.write_bytes(&tensor, &pack(spec, values, put))?;
        Ok(tensor)
    }

    /// A tensor of zeros.
    ///
    /// # Errors
    /// As [`tensor`](Self::tensor).
    pub fn zeros(&self, spec: &OperandSpec) -> Result<Tensor, OperationError> {
        let tensor = self.empty(spec)?;
        let bytes = stored_elements(spec) * u64::from(element_bytes(spec.data_format));
        let bytes = usize::try_from(bytes).expect("checked: MAX_ELEMENTS");
        self.write_bytes(&tensor, &vec![0; bytes])?;
        Ok(tensor)
    }

    /// A tensor whose values are whatever its memory held before.
    ///
    /// # Errors
    /// When the specification is not possible or memory is full.
    pub fn empty(&self, spec: &OperandSpec) -> Result<Tensor, OperationError> {
        Checked::new(TENSOR, "result", spec)?;
        self.result(TENSOR, spec.clone())
    }

    /// Overwrites a tensor of Float32 or BFloat16, after all that was dispatched so far.
    ///
    /// # Errors
    /// When the number of values is another or the device failed.
    pub fn write(&self, tensor: &Tensor, values: &[f32]) -> Result<(), OperationError> {
        let checked = Checked::numbers("write", "values", tensor.spec())?;
        check_count(&checked, values.len())?;
        let spec = tensor.spec();
        self.write_bytes(tensor, &pack(spec, values, put_number(spec.data_format)))
    }

    /// Overwrites a tensor of row-major UInt32, after all that was dispatched so far.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_indices(&self, tensor: &Tensor, values: &[u32]) -> Result<(), OperationError> {
        let checked = Checked::indices("write", "values", tensor.spec())?;
        check_count(&checked, values.len())?;
        let put = |value: u32, bytes: &mut Vec<u8>| bytes.extend_from_slice(&value.to_le_bytes());
        self.write_bytes(tensor, &pack(tensor.spec(), values, put))
    }

    /// A tensor's values in row-major order, after all that was dispatched so far.
    ///
    /// # Errors
    /// When the tensor is not Float32 or BFloat16; or when an operation that was to use it failed, or
    /// was not run because it shares a tensor with one that failed. The error names the one that
    /// failed. After that, operations run again; this tensor can be read when one of them has written
    /// it, or after [`finish`](Self::finish).
    pub fn read(&self, tensor: &Tensor) -> Result<Vec<f32>, OperationError> {
        let spec = tensor.spec();
        Checked::numbers("read", "values", spec)?;
        Ok(unpack(spec, &self.read_bytes(tensor)?, take_number))
    }

    /// Overwrites a tensor of any format with elements as little-endian bytes in row-major order, after all that
    /// was dispatched so far.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_elements(&self, tensor: &Tensor, elements: &[u8]) -> Result<(), OperationError> {
        let checked = Checked::new("write", "values", tensor.spec())?;
        let size = element_bytes(tensor.spec().data_format) as usize;
        let whole = elements.len().is_multiple_of(size);
        checked.require(whole, || format!("{} bytes are no whole elements", elements.len()))?;
        check_count(&checked, elements.len() / size)?;
        self.write_bytes(tensor, &pack_elements(tensor.spec(), elements))
    }

    /// A tensor's elements as [`write_elements`](Self::write_elements) takes them, after all that was dispatched so
    /// far.
    ///
    /// # Errors
    /// As [`read`](Self::read), for tensors of any format.
    pub fn read_elements(&self, tensor: &Tensor) -> Result<Vec<u8>, OperationError> {
        Ok(unpack_elements(tensor.spec(), self.read_bytes(tensor)?))
    }

    /// Waits until all that was dispatched is done.
    ///
    /// # Errors
    /// What failed first since the last call. What follows is done whatever failed before.
    pub fn finish(&self) -> Result<(), OperationError> {
        let finished = self.accelerator().finish();
        finished.map_err(stopped_at("finish"))
    }

    /// Dispatches an operation: inputs and results by position, values that change each time. It
    /// is for operations of this crate and of others; a result is a tensor that is there already.
    ///
    /// # Errors
    /// When there is no such program, something is missing, or the device failed.
    pub fn dispatch<O: Operation>(
        &self,
        attributes: &O::Attributes,
        operands: &[Option<&Tensor>],
        dynamics: &[u32],
    ) -> Result<(), OperationError> {
        let buffers: Vec<_> =
            operands.iter().flatten().map(|tensor| Arc::clone(tensor.buffer())).collect();
        let operands: Vec<Option<Operand<'_>>> =
            operands.iter().map(|tensor| tensor.map(Tensor::operand)).collect();
        let dispatch = Dispatch { operands: &operands, dynamics, semaphores: &[] };
        let (accelerator, name) = (self.accelerator(), O::name(attributes));
        self.cache
            .dispatch::<O, _>(attributes, &dispatch, |program| {
                accelerator.enqueue_operation(name, program, &buffers)
            })
            .map_err(|error| OperationError::Dispatch { operation: name, source: error.into() })?
            .map_err(stopped_at(name))
    }

    /// Memory for a result.
    pub(crate) fn result(
        &self,
        operation: &'static str,
        spec: OperandSpec,
    ) -> Result<Tensor, OperationError> {
        Checked::new(operation, "result", &spec)?;
        let page_bytes = page_bytes(&spec);
        let bytes = stored_elements(&spec) * u64::from(element_bytes(spec.data_format));
        match self.accelerator().allocate(MemoryKind::Dram, bytes, page_bytes) {
            Ok(buffer) => Ok(Tensor::new(spec, buffer)),
            Err(error) => {
                let shape = spec.shape.dimensions().to_vec();
                Err(OperationError::Memory { operation, shape, source: error.into() })
            }
        }
    }

    fn write_bytes(&self, tensor: &Tensor, bytes: &[u8]) -> Result<(), OperationError> {
        let written = self.accelerator().write(tensor.buffer(), bytes);
        written.map_err(stopped_at("write"))
    }

    /// What a tensor's buffer holds, in the order of its layout: for comparing bit by bit.
    ///
    /// # Errors
    /// When something failed on the device.
    pub fn read_bytes(&self, tensor: &Tensor) -> Result<Vec<u8>, OperationError> {
        let read = self.accelerator().read(tensor.buffer());
        read.map_err(stopped_at("read"))
    }
}

fn stopped_at(step: &'static str) -> impl Fn(ExecutionError) -> OperationError {
    move |error| OperationError::Execution { step, source: error.into() }
}

fn check_count(checked: &Checked<'_>, given: usize) -> Result<(), OperandRefusal> {
    let expected = checked.extents().element_count();
    checked
        .require(given as u64 == expected, || format!("{given} were given for {expected} elements"))
}
