//! Running an operation that Python describes: one Rust type stands for all of them, and the attributes say which it is.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use telltale_emulator::{BuildKernelError, CompileError, CompilerError};
use telltale_operations::{OperationError, Tensor as ChipTensor, page_bytes};
use telltale_program_cache::{
    Argument, DispatchError, FactoryError, KeyEncoder, OperandSpec, OperandSpecs,
    Operation as CachedOperation, ProgramDescriptor, ProgramKey,
};

use super::attributes::encode;
use super::describe::{ProgramParts, other};
use super::numbers::name_of;
use super::tensor::{Tensor, layout_name};
use super::{interrupted, opened::OpenChip};
use crate::error::ErrorClass;

/// How often a call tries again what failed in another thread for a reason of that thread.
const MAX_ATTEMPTS: usize = 8;

/// All operations that Python describes.
struct PythonOperation;

/// Which one, and with which attributes.
struct PythonAttributes {
    /// The number of its function, and its attributes.
    key: Vec<u8>,
    name: &'static str,
    /// `_describe` of `operations.py`, and what it is called with beside specifications: not in the key, which says the
    /// same.
    describe: Py<PyAny>,
    subject: Py<PyAny>,
    values: Py<PyTuple>,
    /// Whether this call has described it.
    described: AtomicBool,
}

impl ProgramKey for PythonAttributes {
    fn encode_type(encoder: &mut KeyEncoder) {
        encoder.type_name("telltale_python::PythonAttributes");
    }

    fn encode_value(&self, encoder: &mut KeyEncoder) {
        encoder.bytes(&self.key);
    }
}

impl CachedOperation for PythonOperation {
    const NAME: &'static str = "python";
    type Attributes = PythonAttributes;

    fn name(attributes: &PythonAttributes) -> &'static str {
        attributes.name
    }

    fn create(
        attributes: &PythonAttributes,
        operands: OperandSpecs<'_>,
    ) -> Result<ProgramDescriptor<Argument>, FactoryError> {
        attributes.described.store(true, Ordering::Relaxed);
        let described = |py: Python<'_>| {
            let count = u16::try_from(operands.len()).unwrap_or(u16::MAX);
            let specs = (0..count)
                .map(|index| operands.get(index).map(|spec| spec_parts(py, spec)).transpose());
            let specs = specs.collect::<PyResult<Vec<_>>>().map_err(other)?;
            let values = attributes.values.bind(py);
            let program = attributes.describe.bind(py).call1((&attributes.subject, specs, values));
            let parts: ProgramParts =
                program.and_then(|program| program.extract()).map_err(other)?;
            parts.descriptor(py)
        };
        let ends = || Err(FactoryError::Unsupported("the interpreter is ending".into()));
        Python::try_attach(described).unwrap_or_else(ends)
    }
}

type SpecParts<'py> = (Bound<'py, PyTuple>, &'static str, &'static str, u32);

/// What `Spec` of `operations.py` is made of.
fn spec_parts<'py>(py: Python<'py>, spec: &OperandSpec) -> PyResult<SpecParts<'py>> {
    let shape = PyTuple::new(py, spec.shape.dimensions())?;
    Ok((shape, name_of(spec.data_format), layout_name(spec.layout), page_bytes(spec)))
}

/// Runs an operation: `describe` is called with `subject`, the operands' specifications and the attributes if there is no
/// program for `number`, which stands for the function, with these.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "operations.py is its only caller")]
pub(crate) fn dispatch_operation(
    py: Python<'_>,
    describe: Py<PyAny>,
    subject: Py<PyAny>,
    name: &str,
    number: u64,
    operands: Vec<Option<Bound<'_, PyAny>>>,
    attributes: Bound<'_, PyTuple>,
    dynamics: Vec<u32>,
) -> PyResult<()> {
    let refused = |message: &str| ErrorClass::Operation.of(py, message, None);
    let operands = operands.iter().map(|operand| operand.as_ref().map(tensor).transpose());
    let operands = operands.collect::<PyResult<Vec<_>>>()?;
    let mut shared = operands.iter().flatten().map(|tensor| tensor.shared());
    let chip = shared.next().ok_or_else(|| {
        refused(&format!("{name} is called without a tensor; pass at least the one for its result"))
    })?;
    if !shared.all(|other| Arc::ptr_eq(chip, other)) {
        let message = format!("{name} is called with tensors of several chips; copy them to one");
        return Err(refused(&message));
    }
    let open = chip.open(py)?;
    let tensors = operands
        .iter()
        .map(|tensor| tensor.as_ref().map(|tensor| tensor.on(&open, py)).transpose());
    let tensors = tensors.collect::<PyResult<Vec<_>>>()?;
    let mut key = number.to_le_bytes().to_vec();
    encode(&attributes, &mut key)?;
    let attributes = PythonAttributes {
        key,
        name: kept(name),
        describe,
        subject,
        values: attributes.unbind(),
        described: AtomicBool::new(false),
    };
    let result = py.detach(|| dispatched(open, &attributes, tensors, &dynamics));
    interrupted::taken()?;
    result.map_err(|error| exception(py, name, &error))
}

/// An operand as a tensor.
fn tensor<'a>(operand: &'a Bound<'_, PyAny>) -> PyResult<&'a Tensor> {
    let tensor = operand.cast::<Tensor>().map(Bound::get);
    tensor.map_err(|_| {
        let what = operand.get_type().name().map_or_else(|_| "it".to_owned(), |name| name.to_string());
        PyTypeError::new_err(format!(
            "{what} is no operand; make a Tensor of it with Chip.tensor, or pass it by name as an attribute"
        ))
    })
}

/// Everything is dropped in here, without the interpreter: the chip as well, if it was closed meanwhile.
fn dispatched(
    open: Arc<OpenChip>,
    attributes: &PythonAttributes,
    tensors: Vec<Option<Arc<ChipTensor>>>,
    dynamics: &[u32],
) -> Result<(), OperationError> {
    let tensors: Vec<_> = tensors.iter().map(Option::as_deref).collect();
    let run = || open.session.dispatch::<PythonOperation>(attributes, &tensors, dynamics);
    let mut result = run();
    for _ in 1..MAX_ATTEMPTS {
        match &result {
            Err(error) if !attributes.described.load(Ordering::Relaxed) && is_of_thread(error) => {
                result = run();
            }
            _ => break,
        }
    }
    result
}

/// Whether a program was not made for a reason of the thread that tried to: an exception, or Ctrl-C.
fn is_of_thread(error: &OperationError) -> bool {
    let OperationError::Dispatch { source, .. } = error else { return false };
    match &**source {
        DispatchError::Factory { .. } => true,
        DispatchError::Compile { source, .. } => matches!(
            **source,
            CompileError::Kernel {
                source: BuildKernelError::Compiler(CompilerError::Interrupted),
                ..
            }
        ),
        _ => false,
    }
}

/// The exception for an error: the author's own as it was.
fn exception(py: Python<'_>, name: &str, error: &OperationError) -> PyErr {
    if let OperationError::Dispatch { source, .. } = error {
        match &**source {
            DispatchError::Factory { source, .. } => {
                if let FactoryError::Other(raised) = &**source
                    && let Some(raised) = raised.downcast_ref::<PyErr>()
                {
                    return raised.clone_ref(py);
                }
            }
            DispatchError::Check { source, .. } => {
                let message = format!(
                    "the cached program of {name} is not what its function describes now; pass what it reads \
                     beside its parameters as an attribute"
                );
                return ErrorClass::Operation.of(py, &message, Some(&source.to_string()));
            }
            _ => {}
        }
    }
    ErrorClass::Operation.because(py, error)
}

/// The name for as long as the process: programs keep it. Each is kept once.
fn kept(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(kept) = names.get(name) {
        return kept;
    }
    let kept: &'static str = Box::leak(name.into());
    names.insert(kept);
    kept
}
