//! Starting, sharing and giving back a runtime, and what it reports about its programs.

use std::ffi::{CString, c_void};
use std::path::PathBuf;
use std::sync::Arc;

use telltale_runtime::{KernelCache, Runtime};

use crate::abi::{OnProblem, Options, Programs, structure};
use crate::status::{Status, Wrong, borrowed, give, guarded, store, take_back};
use crate::text;

/// Names of loaded programs checked in one call; the runtime keeps fewer.
const MAX_NAMES: usize = 65_536;
/// The runtime's name if the caller gives none.
const UNNAMED: &str = "unnamed runtime";

/// `telltale_runtime_h` points to it.
pub struct RuntimeHandle(pub(crate) Runtime);

/// A callback and its context, which the caller promises can be used from any thread.
struct Callback {
    function: OnProblem,
    context: *mut c_void,
}

// SAFETY: the header says that the callback comes on the thread that failed, so a caller that sets one
// has made it and its context fit for every thread; the pointer is only passed on.
unsafe impl Send for Callback {}
// SAFETY: as for `Send`; the fields are never changed.
unsafe impl Sync for Callback {}

impl Callback {
    fn call(&self, problem: &str) {
        let printable = problem.replace('\0', " ");
        let Ok(text) = CString::new(printable) else { return };
        // SAFETY: the function is not null (it was an `Option`), its type is that of the header,
        // and the text outlives the call.
        unsafe { (self.function)(self.context, text.as_ptr()) };
    }
}

/// The library's version.
///
/// # Safety
/// Each pointer is null or points to memory for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telltale_version(
    major: *mut u32,
    minor: *mut u32,
    patch: *mut u32,
) -> Status {
    guarded(|| {
        let parts = [
            (major, env!("CARGO_PKG_VERSION_MAJOR")),
            (minor, env!("CARGO_PKG_VERSION_MINOR")),
            (patch, env!("CARGO_PKG_VERSION_PATCH")),
        ];
        for (place, part) in parts {
            let number = part.parse().expect("cargo gives versions in numbers");
            // SAFETY: the caller vouches for the place unless it is null.
            unsafe { store(place, number) }?;
        }
        Ok(())
    })
}

/// Fills options with what the environment says.
///
/// # Safety
/// `options` is null or points to memory for them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telltale_options_init(options: *mut Options) -> Status {
    guarded(|| {
        let environment = telltale_runtime::Options::new(UNNAMED);
        let filled = Options {
            struct_size: size_of::<Options>(),
            runtime_name: std::ptr::null(),
            directory: std::ptr::null(),
            root: std::ptr::null(),
            on_problem: None,
            on_problem_context: std::ptr::null_mut(),
            disabled: environment.disabled.into(),
            reserved: 0,
        };
        // SAFETY: the caller vouches for the place unless it is null.
        unsafe { store(options, filled) }
    })
}

/// Makes Telltale ready.
///
/// # Safety
/// `options` is null or points to options whose texts end with a zero; `runtime` is null or points
/// to memory for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telltale_start(
    options: *const Options,
    runtime: *mut *mut RuntimeHandle,
) -> Status {
    guarded(|| {
        let make = || {
            let mut chosen = telltale_runtime::Options::new(UNNAMED);
            if !options.is_null() {
                // SAFETY: the caller vouches for the options, which are not null.
                unsafe { choose(&mut chosen, structure(options)?) }?;
            }
            Ok(RuntimeHandle(Runtime::start(chosen)))
        };
        // SAFETY: the caller vouches for the place unless it is null.
        unsafe { give(runtime, make) }
    })
}

/// # Safety
/// The texts in `options` are null or end with a zero.
unsafe fn choose(chosen: &mut telltale_runtime::Options, options: &Options) -> Result<(), Wrong> {
    // SAFETY: the caller of this function vouches for the three texts.
    let [name, directory, root] = unsafe {
        [
            text::optional(options.runtime_name)?,
            text::optional(options.directory)?,
            text::optional(options.root)?,
        ]
    };
    chosen.runtime_name = name.unwrap_or_else(|| UNNAMED.to_owned());
    chosen.directory = directory.map(PathBuf::from);
    chosen.root = root.map(PathBuf::from);
    // What the environment switches off stays off.
    chosen.disabled |= options.disabled != 0;
    if let Some(function) = options.on_problem {
        let callback = Callback { function, context: options.on_problem_context };
        chosen.on_problem = Some(Arc::new(move |problem| callback.call(&problem.to_string())));
    }
    Ok(())
}

/// The runtime that all parts of a program share.
///
/// # Safety
/// `runtime` is null or points to memory for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telltale_global(runtime: *mut *mut RuntimeHandle) -> Status {
    // SAFETY: the caller vouches for the place unless it is null.
    guarded(|| unsafe { give(runtime, || Ok(RuntimeHandle(Runtime::global()))) })
}

/// Gives a runtime's handle back.
///
/// # Safety
/// `runtime` is null or a handle that is given back for the first time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telltale_runtime_release(runtime: *mut RuntimeHandle) -> Status {
    // SAFETY: the caller vouches for the handle unless it is null.
    guarded(|| unsafe { take_back(runtime) })
}

/// Reports the compiled programs.
///
/// # Safety
/// `runtime` is null or a live handle; `programs` is null or points to the structure, whose names
/// end with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telltale_report_programs(
    runtime: *const RuntimeHandle,
    programs: *const Programs,
) -> Status {
    guarded(|| {
        // SAFETY: the caller vouches for the handle, the structure and its array.
        let (runtime, reported, names) = unsafe {
            let reported = structure(programs)?;
            (
                borrowed(runtime)?,
                reported,
                text::array(reported.loaded, reported.loaded_count, MAX_NAMES)?,
            )
        };
        let loaded = names
            .iter()
            // SAFETY: the caller vouches for each name.
            .map(|name| unsafe { text::required(*name) })
            .collect::<Result<_, _>>()?;
        runtime.0.report_programs(telltale_runtime::Programs {
            cached: reported.cached,
            loaded,
            loaded_omitted: 0,
            hits: Some(reported.hits),
            misses: Some(reported.misses),
        });
        Ok(())
    })
}

/// Reports the compiled kernels.
///
/// # Safety
/// `runtime` is null or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn telltale_report_kernel_cache(
    runtime: *const RuntimeHandle,
    bytes: u64,
    evictions: u64,
) -> Status {
    guarded(|| {
        // SAFETY: the caller vouches for the handle unless it is null.
        let runtime = unsafe { borrowed(runtime) }?;
        runtime.0.report_kernel_cache(KernelCache { bytes, evictions: Some(evictions) });
        Ok(())
    })
}
