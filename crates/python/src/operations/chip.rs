//! `telltale.operations.Chip`: an emulated chip, opened from Python.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use telltale_emulator::{
    Accelerator, AcceleratorOptions, CompilerError, Emulator, EmulatorOptions, MachineKind,
    check_compiler,
};
use telltale_operations::Session;
use telltale_program_cache::{
    CacheMode, CacheOptions, CoreCoord, Layout, MemoryConfig, OperandSpec, ProgramCache, Shape,
    Tile,
};
use telltale_runtime::{Options, Runtime};

use super::interrupted::{self, waited, watch_signals};
use super::numbers::{Elements, format_of};
use super::opened::{OpenChip, OwnDirectory, OwnMachine, SharedChip, close_all};
use super::tensor::Tensor;
use crate::error::ErrorClass;
use crate::value;

/// What the process records its memory as.
const RUNTIME_NAME: &str = "telltale.operations";

/// An emulated chip with its program cache.
///
/// Without arguments, a chip of an emulated machine of its own, which ends with it. `machine` is the kind of that machine;
/// `root` opens a machine that is there already. `cache` is `on`, `off` or `check`; without, what
/// `TELLTALE_PROGRAM_CACHE` says.
#[pyclass(frozen, module = "telltale.operations")]
pub(crate) struct Chip {
    shared: Arc<SharedChip>,
    /// How it is named.
    id: String,
}

/// Which chip is opened, and how.
struct ChipOptions {
    machine: MachineKind,
    accelerator: AcceleratorOptions,
    mode: CacheMode,
}

#[pymethods]
impl Chip {
    #[new]
    #[pyo3(signature = (machine="n150", *, root=None, device=0, chip=0, cache=None, kernel_root=None, kernel_cache=None,
        kernel_timeout=None))]
    #[expect(clippy::too_many_arguments, reason = "Python's keyword arguments")]
    fn new(
        py: Python<'_>,
        machine: &str,
        root: Option<PathBuf>,
        device: u32,
        chip: usize,
        cache: Option<&str>,
        kernel_root: Option<PathBuf>,
        kernel_cache: Option<PathBuf>,
        kernel_timeout: Option<f64>,
    ) -> PyResult<Self> {
        let refused = |error: &dyn std::error::Error| ErrorClass::Operation.because(py, error);
        let mode = cache.map_or_else(CacheMode::from_environment, str::parse);
        let timeout = kernel_timeout.map(|span| value::seconds(py, span)).transpose()?;
        let options = ChipOptions {
            machine: machine.parse().map_err(|error| refused(&error))?,
            mode: mode.map_err(|error| refused(&error))?,
            accelerator: AcceleratorOptions {
                root,
                ordinal: device,
                chip,
                kernel_root,
                kernel_cache,
                kernel_timeout: timeout.map(|timeout| timeout.max(Duration::from_millis(1))),
                program_timeout: None,
            },
        };
        watch_signals();
        let checked = py.detach(check_compiler);
        interrupted::taken()?;
        checked.map_err(|error| no_compiler(py, &error))?;
        let open = py.detach(|| options.open());
        if let Err(raised) = interrupted::taken() {
            py.detach(move || drop(open));
            return Err(raised);
        }
        let open = open.map_err(|error| refused(&*error))?;
        close_at_exit(py)?;
        let id = open.session.accelerator().description().identity.display_id().to_string();
        Ok(Self { shared: SharedChip::new(open), id })
    }

    /// A tensor with the values of an array, or of what NumPy makes one of.
    ///
    /// `dtype` rounds them to another format; `bfloat16` needs no package. `layout` is `row_major`, or `tiled` for tiles of
    /// 32 rows and columns.
    #[pyo3(signature = (values, *, dtype=None, layout="row_major"))]
    fn tensor(
        &self,
        py: Python<'_>,
        values: &Bound<'_, PyAny>,
        dtype: Option<&Bound<'_, PyAny>>,
        layout: &str,
    ) -> PyResult<Tensor> {
        let open = self.shared.open(py)?;
        let elements = Elements::of(values, dtype)?;
        let spec = spec(&elements.shape, elements.format, self::layout(py, layout)?);
        let number = waited(py, move || {
            let tensor = open.session.empty(&spec)?;
            open.session.write_elements(&tensor, &elements.bytes)?;
            Ok::<_, telltale_operations::OperationError>(open.keep(tensor))
        });
        self.kept(py, number?)
    }

    /// A tensor with whatever its memory held before.
    #[pyo3(signature = (shape, dtype, *, layout="row_major"))]
    fn empty(
        &self,
        py: Python<'_>,
        shape: Vec<u32>,
        dtype: &Bound<'_, PyAny>,
        layout: &str,
    ) -> PyResult<Tensor> {
        let open = self.shared.open(py)?;
        let spec = spec(&shape, format_of(dtype)?, self::layout(py, layout)?);
        let number = waited(py, move || open.session.empty(&spec).map(|tensor| open.keep(tensor)));
        self.kept(py, number?)
    }

    /// Waits until all that was dispatched is done, and reports what went wrong first since the last call.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        let open = self.shared.open(py)?;
        waited(py, move || open.session.finish())
    }

    /// The programs of this chip, and how often they were found.
    #[getter]
    fn cache(&self) -> super::ProgramCache {
        super::ProgramCache::of(&self.shared)
    }

    /// Columns and rows of the cores that programs can use.
    #[getter]
    fn grid(&self, py: Python<'_>) -> PyResult<(u16, u16)> {
        Ok(self.shared.open(py)?.session.accelerator().grid())
    }

    /// The number by which the process knows a core: what kernels print on it is in the debug stream of that number.
    fn core(&self, py: Python<'_>, x: u16, y: u16) -> PyResult<u32> {
        let open = self.shared.open(py)?;
        let core = open.session.accelerator().logical_core(CoreCoord::new(x, y));
        core.ok_or_else(|| {
            let (columns, rows) = open.session.accelerator().grid();
            let message = format!(
                "there is no core ({x}, {y}); the chip has {columns} columns and {rows} rows"
            );
            ErrorClass::Operation.of(py, &message, None)
        })
    }

    /// The directory of the emulated machine's files: what `telltale.snapshot` takes as `root`.
    #[getter]
    fn root(&self, py: Python<'_>) -> PyResult<PathBuf> {
        Ok(self.shared.open(py)?.root.clone())
    }

    /// Whether it can be used: it is not closed, and was opened by this process.
    #[getter]
    fn is_open(&self) -> bool {
        self.shared.is_open()
    }

    /// Frees its tensors and programs, and ends the machine if it is its own. Waits for what was enqueued.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.shared.close(py)
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }

    fn __repr__(&self) -> String {
        let state = if self.shared.is_open() { "" } else { ", closed" };
        format!("<Chip {}{state}>", self.id)
    }
}

impl Chip {
    fn kept(&self, py: Python<'_>, number: u64) -> PyResult<Tensor> {
        Tensor::new(&self.shared, number, py)
    }
}

impl ChipOptions {
    /// Opens the chip, on a new machine unless there is one.
    fn open(mut self) -> Result<OpenChip, Box<dyn std::error::Error + Send + Sync>> {
        let machine = match &self.accelerator.root {
            Some(_) => None,
            None => {
                let directory = OwnDirectory::new()?;
                let root = directory.0.join("machine");
                let emulator = Emulator::start(&root, self.machine, EmulatorOptions::default())?;
                self.accelerator.root = Some(emulator.root().to_path_buf());
                Some(OwnMachine::new(emulator, directory))
            }
        };
        let root = self.accelerator.root.clone().unwrap_or_default();
        let runtime =
            Runtime::start(Options { root: Some(root.clone()), ..Options::new(RUNTIME_NAME) });
        let accelerator = Accelerator::open(&self.accelerator, &runtime)?;
        let options = CacheOptions { mode: self.mode, ..CacheOptions::default() };
        let session = Session::new(ProgramCache::new(accelerator, options));
        runtime.show_program_cache(session.cache());
        Ok(OpenChip::new(session, runtime, machine, Path::new(&root)))
    }
}

fn no_compiler(py: Python<'_>, error: &CompilerError) -> PyErr {
    let message = "kernels are compiled by the system's C compiler, which does not run; install one, such as gcc, \
                   or name it in the variable CC";
    let mut causes = error.to_string();
    if let Some(source) = std::error::Error::source(error) {
        causes = format!("{causes}: {source}");
    }
    ErrorClass::Operation.of(py, message, Some(&causes))
}

fn spec(
    shape: &[u32],
    data_format: telltale_program_cache::DataFormat,
    layout: Layout,
) -> OperandSpec {
    OperandSpec { shape: Shape::new(shape), data_format, layout, memory: MemoryConfig::DRAM }
}

fn layout(py: Python<'_>, name: &str) -> PyResult<Layout> {
    match name {
        "row_major" => Ok(Layout::RowMajor),
        "tiled" => Ok(Layout::Tiled(Tile::STANDARD)),
        other => {
            let message = format!("{other:?} is no layout; write row_major or tiled");
            Err(ErrorClass::Operation.of(py, &message, None))
        }
    }
}

/// Has Python close chips before it ends, which it asks for once.
fn close_at_exit(py: Python<'_>) -> PyResult<()> {
    static ASKED: AtomicBool = AtomicBool::new(false);
    if !ASKED.swap(true, Ordering::Relaxed) {
        let close = py.import("telltale._telltale")?.getattr("close_chips")?;
        py.import("atexit")?.call_method1("register", (close,))?;
    }
    Ok(())
}

/// Closes the chips of this process. Python calls it before it ends.
#[pyfunction]
pub(crate) fn close_chips(py: Python<'_>) -> PyResult<()> {
    close_all(py)
}
