//! What a runtime in Python publishes with: its cores have their streams in this module.

use pyo3::prelude::*;
use telltale_debug_stream::{LossCause, Published, Publisher, Tensor, TensorEvent, cores};

use crate::error::ErrorClass;

/// Gives this process so many logical cores.
#[pyfunction]
pub(crate) fn debug_register_cores(py: Python<'_>, count: u32) -> PyResult<()> {
    if count > cores::MAX_CORES {
        let message = format!("{count} cores; give at most {}", cores::MAX_CORES);
        return Err(ErrorClass::Stream.of(py, &message, None));
    }
    py.detach(|| cores::ensure(count));
    Ok(())
}

/// Publishes a tensor; whether a client gets it.
#[pyfunction]
pub(crate) fn debug_publish_tensor(
    py: Python<'_>,
    core: u32,
    prefix: &str,
    dtype: &str,
    shape: Vec<u64>,
    data: &[u8],
    pipe: u32,
) -> PyResult<bool> {
    Tensor::new(dtype, &shape, data).map_err(|error| ErrorClass::Query.because(py, &error))?;
    let publisher = publisher(py, core)?;
    let event = TensorEvent { prefix, dtype, shape: &shape, data, pipe };
    outcome(py, py.detach(|| publisher.tensor(&event)))
}

/// Publishes a text; whether a client gets it.
#[pyfunction]
pub(crate) fn debug_publish_text(
    py: Python<'_>,
    core: u32,
    prefix: &str,
    text: &str,
    pipe: u32,
) -> PyResult<bool> {
    let publisher = publisher(py, core)?;
    outcome(py, py.detach(|| publisher.text(prefix, pipe, text)))
}

fn publisher(py: Python<'_>, core: u32) -> PyResult<Publisher> {
    cores::stream(core).map(telltale_debug_stream::Stream::publisher).ok_or_else(|| {
        let message = format!("this process has no core {core}; call register_cores first");
        ErrorClass::Stream.of(py, &message, None)
    })
}

fn outcome(py: Python<'_>, published: Published) -> PyResult<bool> {
    match published {
        Published::Queued => Ok(true),
        Published::Filtered | Published::Disconnected => Ok(false),
        Published::Lost(LossCause::Events | LossCause::Bytes | LossCause::Memory) => Ok(false),
        Published::Unrepresentable => {
            let message = "an event has at most 8 dimensions; reshape it";
            Err(ErrorClass::Query.of(py, message, None))
        }
    }
}
