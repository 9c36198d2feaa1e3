//! `_telltale`, the native half of the Python module `telltale`, whose sources are in `python/` beside this.
//!
//! Rows are read from the snapshot when they are asked for, by the fields of the query language: what the table of
//! fields declares, Python has by name. Whatever may wait lets other Python threads run.

#![deny(unsafe_code)]

mod block;
mod columns;
mod debug;
mod display;
mod error;
mod fleet;
mod frame;
mod history;
mod local;
mod moment;
mod operations;
mod package;
mod place;
mod recording;
mod remote;
mod row;
mod selection;
mod sequence;
mod signals;
mod snapshot;
mod source;
mod value;

use pyo3::prelude::*;
// The C ABI is exported with the module, so that PyTorch finds its allocator in this very file.
use telltale as _;

#[pymodule]
mod _telltale {
    #[pymodule_export]
    use crate::block::{BlockMemory, MemoryBlocks};
    #[pymodule_export]
    use crate::debug::{
        DebugCapture, DebugEvent, DebugGap, DebugStream, DebugTensor, debug_connect, debug_open,
        debug_publish_tensor, debug_publish_text, debug_register_cores,
    };
    #[pymodule_export]
    use crate::fleet::{Fleet, Host};
    #[pymodule_export]
    use crate::history::{History, history};
    #[pymodule_export]
    use crate::operations::{Chip, ProgramCache, Tensor, close_chips, dispatch_operation};
    #[pymodule_export]
    use crate::recording::{Counter, Gauge, Histogram, RecordedDevice, Runtime};
    #[pymodule_export]
    use crate::row::{Device, Holding, MemoryPart, Process, Table};
    #[pymodule_export]
    use crate::selection::{Selection, select_devices};
    #[pymodule_export]
    use crate::snapshot::Snapshot;
    #[pymodule_export]
    use crate::source::snapshot;

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
