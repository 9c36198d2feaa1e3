//! NVIDIA's management library (NVML): finding it, starting it, and what its errors mean.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};
use telltale_schema::reading::Absence;

/// What the driver's packages call the library.
const NAME: &str = "libnvidia-ml.so.1";

/// The longest text of a GPU that is kept, in characters.
const MAX_TEXT_CHARACTERS: usize = 128;

/// GPUs of one machine that are checked.
pub(super) const MAX_GPUS: u32 = 64;

/// What a call of NVML gave.
pub(super) type Said<T> = Result<T, NvmlError>;

/// The library of one source: where it is, and once it was started, itself.
///
/// It is never shut down and never unloaded: a call may hang in it on a thread that was left
/// behind, and would come back to code that is gone.
#[derive(Debug, Clone)]
pub(super) struct Library {
    path: Option<PathBuf>,
    started: Arc<OnceLock<&'static Nvml>>,
}

/// The GPUs that NVML knows, by its number for them.
#[derive(Debug)]
pub(super) struct Gpus {
    /// How many there are, though no more than [`MAX_GPUS`] are in the list.
    pub(super) count: u32,
    pub(super) handles: Vec<Said<Arc<Device<'static>>>>,
    /// The driver's version.
    pub(super) driver_version: Option<String>,
}

/// Why NVML tells nothing at all.
#[derive(Debug)]
pub(super) enum NoGpus {
    /// It could not be loaded or started.
    NotStarted(NvmlError),
    /// It runs and does not count its GPUs.
    NotCounted(NvmlError),
}

// === impl Library ===

impl Library {
    /// The library at `path`, else the one that the system's loader finds.
    pub(super) fn new(path: Option<PathBuf>) -> Self {
        Self { path, started: Arc::default() }
    }

    /// Starts NVML if need be and lists the GPUs. May take seconds the first time, where no
    /// process keeps the GPUs awake.
    pub(super) fn gpus(&self) -> Result<Gpus, NoGpus> {
        let nvml = self.start().map_err(NoGpus::NotStarted)?;
        let count = nvml.device_count().map_err(NoGpus::NotCounted)?;
        let handle = |index| nvml.device_by_index(index).map(Arc::new);
        let handles = (0..count.min(MAX_GPUS)).map(handle).collect();
        Ok(Gpus { count, handles, driver_version: nvml.sys_driver_version().ok() })
    }

    fn start(&self) -> Said<&'static Nvml> {
        if let Some(nvml) = self.started.get() {
            return Ok(nvml);
        }
        let name = self.path.as_deref().map_or(OsStr::new(NAME), |path| path.as_os_str());
        let nvml: &'static Nvml = Box::leak(Box::new(Nvml::builder().lib_path(name).init()?));
        // Another thread that hung in here may have been first: NVML counts its users.
        Ok(self.started.get_or_init(|| nvml))
    }
}

/// What an error means for the reading that it stands in the place of.
pub(super) fn absence_of(error: &NvmlError) -> Absence {
    match error {
        NvmlError::NotSupported
        | NvmlError::FunctionNotFound
        | NvmlError::FailedToLoadSymbol(_) => Absence::Unsupported,
        NvmlError::NoPermission | NvmlError::OperatingSystem => Absence::Permission,
        NvmlError::GpuLost => Absence::Gone,
        NvmlError::ResetRequired => Absence::Resetting,
        NvmlError::Timeout => Absence::TimedOut,
        NvmlError::NoData => Absence::NotYet,
        NvmlError::DriverNotLoaded | NvmlError::LibraryNotFound | NvmlError::LibloadingError(_) => {
            Absence::Missing
        }
        NvmlError::Utf8Error(_) | NvmlError::UnexpectedVariant(_) | NvmlError::IncorrectBits(_) => {
            Absence::NotUnderstood
        }
        _ => Absence::Failed,
    }
}

/// What a call means that refuses the number of a part or value which this GPU or driver lacks.
pub(super) fn unsupported_if_refused(error: NvmlError) -> NvmlError {
    match error {
        NvmlError::InvalidArg => NvmlError::NotSupported,
        other => other,
    }
}

impl NoGpus {
    /// For a person, where there is nothing wrong: no driver, or none of its libraries.
    pub(super) fn is_not_here(&self) -> Option<String> {
        match self {
            Self::NotStarted(NvmlError::DriverNotLoaded) => {
                Some(String::from("no driver of NVIDIA's is loaded, as its library says"))
            }
            Self::NotStarted(NvmlError::LibloadingError(error)) => Some(format!(
                "NVIDIA's driver is loaded and there is no {NAME}; install the driver's library \
                 (libnvidia-compute, nvidia-utils or nvidia-driver-libs): {error}"
            )),
            _ => None,
        }
    }

    /// What went wrong, and what to do about it.
    pub(super) fn failure(&self) -> (Absence, String) {
        match self {
            Self::NotStarted(error) => {
                let remedy = match error {
                    NvmlError::NoPermission | NvmlError::OperatingSystem => {
                        "; it opens /dev/nvidiactl and /dev/nvidiaN, which this process may not \
                         (docs/devices.md has what systemd and containers need)"
                    }
                    NvmlError::LibRmVersionMismatch => {
                        "; the driver was updated since it was loaded: reload it or restart the \
                         machine"
                    }
                    _ => "",
                };
                (absence_of(error), format!("NVML does not start: {error}{remedy}"))
            }
            Self::NotCounted(error) => {
                (absence_of(error), format!("NVML does not say how many GPUs there are: {error}"))
            }
        }
    }
}

/// A text of one line, cut to what is shown; none for an empty one.
pub(super) fn word(text: &str) -> Option<String> {
    let text = text.trim();
    let clean = !text.is_empty() && !text.contains(char::is_control);
    clean.then(|| text.chars().take(MAX_TEXT_CHARACTERS).collect())
}
