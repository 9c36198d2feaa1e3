//! `telltale.debug`: what kernels print, from a capture or from this process. The Python half is `debug.py`.

mod capture;
#[allow(unsafe_code)]
mod dlpack;
mod event;
#[allow(unsafe_code)]
mod library;
mod memory;
mod publish;
mod stream;
mod tensor;

pub(crate) use capture::{DebugCapture, DebugGap, debug_open};
pub(crate) use event::DebugEvent;
pub(crate) use publish::{debug_publish_tensor, debug_publish_text, debug_register_cores};
pub(crate) use stream::{DebugStream, debug_connect};
pub(crate) use tensor::DebugTensor;

use pyo3::prelude::*;
use telltale_debug_stream::Filter;

use crate::error::ErrorClass;

/// A filter from its text.
fn filter(py: Python<'_>, text: &str) -> PyResult<Filter> {
    text.parse().map_err(|error| ErrorClass::Query.because(py, &error))
}
