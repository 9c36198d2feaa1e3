//! `telltale.select_devices`: devices that a job can have.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use telltale_query::{DeviceChoice, Query};
use telltale_schema::quantity::parse_bytes;
use telltale_schema::snapshot;
use telltale_sources::FOR_A_DECISION;

use crate::error::ErrorClass;
use crate::local::{LocalPlace, collect};
use crate::place::HostPlace;
use crate::row::Device;

/// Devices that were chosen, and the variable by which a job's runtime gets them. As a text it is
/// the variable's value.
#[pyclass(frozen, module = "telltale")]
pub(crate) struct Selection {
    snapshot: Arc<snapshot::Snapshot>,
    places: Vec<usize>,
    /// The variable that the devices' runtime reads.
    #[pyo3(get)]
    variable: &'static str,
    /// What the variable must be.
    #[pyo3(get)]
    value: String,
}

/// A number of bytes, or a text that is one.
#[derive(FromPyObject)]
pub(crate) enum MinimumFree {
    Bytes(u64),
    Text(String),
}

/// `count` devices of one vendor that a job can have: those with the fewest processes, and of these
/// with the most free memory; none that has failed, and none that a variable such as
/// `CUDA_VISIBLE_DEVICES` hides.
///
/// Each has `min_free` of free DRAM (bytes, or a text such as `8GiB`) and at most `max_processes`
/// processes, and `filter`, a query, holds for it.
#[pyfunction]
#[pyo3(signature = (count=1, *, min_free=MinimumFree::Bytes(0), max_processes=None, filter=None,
    root=None, runtime_dir=None))]
pub(crate) fn select_devices(
    py: Python<'_>,
    count: usize,
    min_free: MinimumFree,
    max_processes: Option<u64>,
    filter: Option<&str>,
    root: Option<PathBuf>,
    runtime_dir: Option<PathBuf>,
) -> PyResult<Selection> {
    if count == 0 {
        return Err(ErrorClass::Query.of(py, "0 devices are no choice; ask for 1 or more", None));
    }
    let filter = filter.map(Query::parse).transpose();
    let filter = filter.map_err(|error| ErrorClass::Query.because(py, &error))?;
    let min_free = match min_free {
        MinimumFree::Bytes(bytes) => bytes,
        MinimumFree::Text(text) => parse_bytes(&text)
            .map_err(|refused| ErrorClass::Query.of(py, &format!("{text:?} is {refused}"), None))?,
    };
    let choice = DeviceChoice { count, min_free, max_processes, filter };
    let place = LocalPlace::of(HostPlace::named(root, runtime_dir));
    let taken = py.detach(|| collect(&place, FOR_A_DECISION));
    let snapshot = taken.map_err(|error| ErrorClass::Collect.because(py, &error))?;
    let chosen = choice.choose(&snapshot, |name| std::env::var(name).ok());
    let chosen = chosen.map_err(|error| ErrorClass::Selection.because(py, &error))?;
    Ok(Selection {
        snapshot: Arc::new(snapshot),
        places: chosen.places,
        variable: chosen.variable,
        value: chosen.value,
    })
}

#[pymethods]
impl Selection {
    /// The devices, the best first.
    #[getter]
    fn devices(&self) -> Vec<Device> {
        let device = |at: &usize| Device { snapshot: Arc::clone(&self.snapshot), at: *at };
        self.places.iter().map(device).collect()
    }

    /// The variable and its value, for the environment of a child process.
    #[getter]
    fn env<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let environment = PyDict::new(py);
        environment.set_item(self.variable, &self.value)?;
        Ok(environment)
    }

    fn __str__(&self) -> &str {
        &self.value
    }

    fn __repr__(&self) -> String {
        format!("<Selection {}={}>", self.variable, self.value)
    }
}
