//! `telltale.Runtime`: a process that records its own device memory and metrics.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use telltale_runtime::{
    ChipIdentity, Counter as RuntimeCounter, DeviceDescription, Gauge as RuntimeGauge,
    Histogram as RuntimeHistogram, MemoryKind, Options, Registration, Runtime as ProcessRuntime,
};

use crate::error::ErrorClass;

/// What a program that works with accelerators records of itself: device memory and metrics of its
/// own, which `telltale smi` and the node service read. Nothing here fails or waits: what cannot be
/// done is in `problems`.
#[pyclass(frozen, module = "telltale")]
pub(crate) struct Runtime {
    inner: ProcessRuntime,
}

/// An open device of this process. Closing it, or leaving its `with` block, ends its accounting.
#[pyclass(frozen, module = "telltale")]
pub(crate) struct RecordedDevice {
    inner: Mutex<Option<telltale_runtime::Device>>,
}

/// A count that only grows.
#[pyclass(frozen, module = "telltale")]
pub(crate) struct Counter {
    inner: RuntimeCounter,
}

/// A value that goes up and down.
#[pyclass(frozen, module = "telltale")]
pub(crate) struct Gauge {
    inner: RuntimeGauge,
}

/// Counts of observations by size.
#[pyclass(frozen, module = "telltale")]
pub(crate) struct Histogram {
    inner: RuntimeHistogram,
}

#[pymethods]
impl Runtime {
    /// A runtime with this name, such as `my engine 1.2`. What the environment of libtelltale says
    /// counts here too.
    #[new]
    fn new(name: &str) -> Self {
        Self { inner: ProcessRuntime::start(Options::new(name)) }
    }

    /// Opens a device for recording. `pci` is its PCI address, by which readers find it again;
    /// without one the device is shown by its number.
    #[pyo3(signature = (number, *, pci=None))]
    fn open_device(&self, number: u32, pci: Option<&str>) -> PyResult<RecordedDevice> {
        let pci = pci.map(|text| {
            text.parse().map_err(|_| {
                refused(&format!("{text:?} is no PCI address; write one such as 0000:01:00.0"))
            })
        });
        let identity = ChipIdentity { pci: pci.transpose()?, ..ChipIdentity::default() };
        let description = DeviceDescription { identity, logical_id: number, facts: None };
        Ok(RecordedDevice { inner: Mutex::new(Some(self.inner.open_device(description))) })
    }

    /// A count that only grows. The same name and labels give the same counter.
    #[pyo3(signature = (name, help="", *, unit=None, labels=BTreeMap::new()))]
    fn counter(
        &self,
        name: &str,
        help: &str,
        unit: Option<&str>,
        labels: BTreeMap<String, String>,
    ) -> PyResult<Counter> {
        let registry = self.inner.registry();
        let inner = register(registry.counter(name), help, unit, labels)?;
        Ok(Counter { inner })
    }

    /// A value that goes up and down. The same name and labels give the same gauge.
    #[pyo3(signature = (name, help="", *, unit=None, labels=BTreeMap::new()))]
    fn gauge(
        &self,
        name: &str,
        help: &str,
        unit: Option<&str>,
        labels: BTreeMap<String, String>,
    ) -> PyResult<Gauge> {
        let registry = self.inner.registry();
        let inner = register(registry.gauge(name), help, unit, labels)?;
        Ok(Gauge { inner })
    }

    /// Counts of observations up to each of `bounds`, which ascend.
    #[pyo3(signature = (name, bounds, help="", *, unit=None, labels=BTreeMap::new()))]
    fn histogram(
        &self,
        name: &str,
        bounds: Vec<f64>,
        help: &str,
        unit: Option<&str>,
        labels: BTreeMap<String, String>,
    ) -> PyResult<Histogram> {
        let registry = self.inner.registry();
        let inner = register(registry.histogram(name, bounds), help, unit, labels)?;
        Ok(Histogram { inner })
    }

    /// How often something could not be done, by step; empty when all went well.
    #[getter]
    fn problems(&self) -> BTreeMap<String, u64> {
        self.inner
            .problems()
            .into_iter()
            .map(|(step, count)| (step.name().to_owned(), count))
            .collect()
    }
}

/// Registers a metric, or says why it would be shown to no reader.
fn register<M>(
    described: Registration<'_, M>,
    help: &str,
    unit: Option<&str>,
    labels: BTreeMap<String, String>,
) -> PyResult<M> {
    let described = described.help(help);
    let described = match unit {
        Some(unit) => described.unit(unit),
        None => described,
    };
    let described = labels.into_iter().fold(described, |it, (name, value)| it.label(name, value));
    described.try_register().map_err(|error| refused(&error.to_string()))
}

fn refused(message: &str) -> PyErr {
    Python::attach(|py| ErrorClass::Query.of(py, message, None))
}

fn kind(name: &str) -> PyResult<MemoryKind> {
    MemoryKind::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
        let names: Vec<_> = MemoryKind::ALL.iter().map(|kind| kind.name()).collect();
        refused(&format!("{name:?} is no kind of memory; write one of {}", names.join(", ")))
    })
}

impl RecordedDevice {
    fn with(&self, what: impl FnOnce(&telltale_runtime::Device)) -> PyResult<()> {
        let device = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let open = device.as_ref();
        let open = open.ok_or_else(|| refused("the device is closed; open it again"))?;
        what(open);
        Ok(())
    }
}

#[pymethods]
impl RecordedDevice {
    /// Records that `size` bytes were allocated at `address`.
    #[pyo3(signature = (size, address, *, kind="dram"))]
    fn allocate(&self, size: u64, address: u64, kind: &str) -> PyResult<()> {
        let kind = self::kind(kind)?;
        self.with(|device| device.allocate(kind, address, size))
    }

    /// Records that the buffer at `address` was freed.
    #[pyo3(signature = (address, *, kind="dram"))]
    fn free(&self, address: u64, kind: &str) -> PyResult<()> {
        let kind = self::kind(kind)?;
        self.with(|device| device.free(kind, address))
    }

    /// Records that the allocator refused an allocation.
    #[pyo3(signature = (*, kind="dram"))]
    fn allocation_failed(&self, kind: &str) -> PyResult<()> {
        let kind = self::kind(kind)?;
        self.with(|device| device.allocation_failed(kind))
    }

    /// Whether anything is recorded.
    #[getter]
    fn is_recorded(&self) -> bool {
        let device = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        device.as_ref().is_some_and(telltale_runtime::Device::is_recorded)
    }

    /// Ends its accounting. The last device that is closed removes what this process has shown.
    fn close(&self, py: Python<'_>) {
        let device = self.inner.lock().unwrap_or_else(PoisonError::into_inner).take();
        py.detach(|| drop(device));
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, pyo3::types::PyTuple>) {
        self.close(py);
    }
}

#[pymethods]
impl Counter {
    /// Adds to it.
    #[pyo3(signature = (number=1))]
    fn add(&self, number: u64) {
        self.inner.add(number);
    }
}

#[pymethods]
impl Gauge {
    /// Sets it.
    fn set(&self, value: f64) {
        self.inner.set(value);
    }
}

#[pymethods]
impl Histogram {
    /// Counts a value.
    fn observe(&self, value: f64) {
        self.inner.observe(value);
    }
}
