//! The debug stream of a library of this process, by the C interface that AWS publishes for Neuron: the
//! one place where its calls are made.
//!
//! Sizes that it reports are checked against each other. That its memory is as large as it says is
//! believed, as of any library of the process.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::{self, MaybeUninit};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::{io, ptr, slice};

use telltale_debug_stream::capture::MAX_DATA_BYTES;
use telltale_debug_stream::{EventKind, MAX_DIMENSIONS};

/// Names of libraries that may be loaded without showing their symbols to others.
const NAMES: [&CStr; 2] = [c"libtelltale_nrt.so.0", c"libnrt.so.1"];
const SUCCESS: c_int = 0;
const QUEUE_EMPTY: c_int = 15;

type Connect = unsafe extern "C" fn(c_int, *mut c_int) -> c_int;
type ReadOne = unsafe extern "C" fn(c_int, *mut Header, *mut *mut c_void) -> c_int;
type Close = unsafe extern "C" fn(c_int);
type CountLosses = unsafe extern "C" fn(c_int, *mut Counts) -> c_int;
type StatusText = unsafe extern "C" fn(c_int) -> *const c_char;

/// A library's calls. It is not unloaded any more.
#[derive(Clone, Copy)]
pub(super) struct Library {
    connect: Connect,
    read: ReadOne,
    close: Close,
    /// Telltale's libraries have it.
    counts: Option<CountLosses>,
    status_text: Option<StatusText>,
}

/// A connection to one core's stream, ended when dropped.
pub(super) struct LibraryConnection {
    library: Library,
    descriptor: c_int,
    pid: u32,
}

/// An event as the library gives it.
pub(super) struct LibraryEvent {
    pub(super) kind: EventKind,
    pub(super) core: Option<u32>,
    pub(super) pipe: u32,
    pub(super) prefix: String,
    pub(super) dtype: String,
    pub(super) shape: Vec<u64>,
    pub(super) data: Vec<u8>,
}

/// Events that were lost so far, by cause: too many events, too many bytes, no memory.
pub(super) type LibraryLosses = [u64; 3];

/// `ndebug_stream_event_header_t`.
#[repr(C)]
struct Header {
    data_size: u64,
    event_type: u32,
    reserved: [u8; 52],
}

/// `ndebug_stream_payload_debug_tensor_read_t` without the tensor behind it.
#[repr(C)]
struct TensorPayload {
    prefix: [u8; 512],
    core: u32,
    pipe: u32,
    dtype: [u8; 16],
    shape: [u64; MAX_DIMENSIONS],
    data_size: u64,
    reserved: [u8; 416],
}

/// `telltale_debug_counts_s`: the last three are losses.
#[repr(C)]
struct Counts([u64; 7]);

const _: () = assert!(size_of::<Header>() == 64 && size_of::<TensorPayload>() == 1024);

// === impl Library ===

impl Library {
    /// The library in this file, which is loaded unless it already is; else one that is loaded, if
    /// there is one.
    ///
    /// # Errors
    /// The loader's reason, or which call the file lacks.
    pub(super) fn find(path: Option<&Path>) -> Result<Option<Self>, String> {
        match path {
            Some(path) => {
                let name = CString::new(path.as_os_str().as_bytes());
                let name = name.map_err(|_| String::from("the path has a zero byte"))?;
                let handle = open(&name, 0).ok_or_else(loader_error)?;
                let missing =
                    || String::from("it has no nrt_debug_client_connect and what belongs to it");
                Self::of(handle).ok_or_else(missing).map(Some)
            }
            None => Ok(Self::of(libc::RTLD_DEFAULT).or_else(|| {
                NAMES.iter().find_map(|name| Self::of(open(name, libc::RTLD_NOLOAD)?))
            })),
        }
    }

    fn of(handle: *mut c_void) -> Option<Self> {
        // SAFETY: symbols of these names are functions of these types: AWS publishes the first three and
        // the last, and telltale_debug.h has the fourth. A pointer to data is as large as one to code
        // here, and null is none of an option.
        unsafe {
            Some(Self {
                connect: mem::transmute::<*mut c_void, Option<Connect>>(symbol(
                    handle,
                    c"nrt_debug_client_connect",
                ))?,
                read: mem::transmute::<*mut c_void, Option<ReadOne>>(symbol(
                    handle,
                    c"nrt_debug_client_read_one_event",
                ))?,
                close: mem::transmute::<*mut c_void, Option<Close>>(symbol(
                    handle,
                    c"nrt_debug_client_connect_close",
                ))?,
                counts: mem::transmute::<*mut c_void, Option<CountLosses>>(symbol(
                    handle,
                    c"telltale_debug_counts",
                )),
                status_text: mem::transmute::<*mut c_void, Option<StatusText>>(symbol(
                    handle,
                    c"nrt_get_status_as_str",
                )),
            })
        }
    }

    /// Connects to a core.
    ///
    /// # Errors
    /// The library's status as text.
    pub(super) fn connect(self, core: u32) -> Result<LibraryConnection, String> {
        let core = c_int::try_from(core).map_err(|_| String::from("no core has such a number"))?;
        let mut descriptor = -1;
        // SAFETY: the number is written to a place for one.
        let status = unsafe { (self.connect)(core, &raw mut descriptor) };
        if status != SUCCESS || descriptor < 0 {
            return Err(self.status(status));
        }
        Ok(LibraryConnection { library: self, descriptor, pid: std::process::id() })
    }

    /// What was lost of a core so far; none if the library does not count it.
    pub(super) fn losses(self, core: u32) -> Option<LibraryLosses> {
        let mut counts = Counts([0; 7]);
        // SAFETY: the structure is as telltale_debug.h has it, and the library that has the call writes
        // no more than that.
        let status = unsafe { (self.counts?)(c_int::try_from(core).ok()?, &raw mut counts) };
        let [.., events, bytes, memory] = counts.0;
        (status == SUCCESS).then_some([events, bytes, memory])
    }

    fn status(self, status: c_int) -> String {
        let text = self.status_text.map_or(ptr::null(), |text| {
            // SAFETY: it takes any number.
            unsafe { text(status) }
        });
        if text.is_null() {
            return format!("status {status}");
        }
        // SAFETY: the text is not null, ends with a zero, and is never freed.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }
}

fn symbol(handle: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: the handle is the default one or was given by `dlopen` and never closed.
    unsafe { libc::dlsym(handle, name.as_ptr()) }
}

fn open(name: &CStr, flags: c_int) -> Option<*mut c_void> {
    // SAFETY: the user named a library to be loaded, or it is loaded already.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | flags) };
    (!handle.is_null()).then_some(handle)
}

fn loader_error() -> String {
    // SAFETY: the text is this thread's until its next call of the loader, and copied at once.
    let text = unsafe {
        let text = libc::dlerror();
        (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
    };
    text.unwrap_or_else(|| String::from("the loader gives no reason"))
}

// === impl LibraryConnection ===

impl LibraryConnection {
    /// A descriptor of one's own that is readable while an event waits.
    pub(super) fn ready(&self) -> io::Result<OwnedFd> {
        // SAFETY: the library gave it, and it stays open until this is dropped.
        unsafe { BorrowedFd::borrow_raw(self.descriptor) }.try_clone_to_owned()
    }

    /// Takes an event; none if none waits.
    ///
    /// # Errors
    /// The library's status as text.
    pub(super) fn read(&mut self) -> Result<Option<LibraryEvent>, String> {
        let mut header = MaybeUninit::<Header>::zeroed();
        let mut payload = ptr::null_mut();
        // SAFETY: both are written to places for them.
        let status =
            unsafe { (self.library.read)(self.descriptor, header.as_mut_ptr(), &raw mut payload) };
        // SAFETY: zeros are a header, and so is what the library wrote.
        let header = unsafe { header.assume_init() };
        let payload = LibraryPayload(payload);
        match status {
            QUEUE_EMPTY => Ok(None),
            SUCCESS => payload.event(&header).map(Some).map_err(str::to_owned),
            _ => Err(self.library.status(status)),
        }
    }
}

impl Drop for LibraryConnection {
    fn drop(&mut self) {
        if self.pid == std::process::id() {
            // SAFETY: it takes any number, and this one is ours.
            unsafe { (self.library.close)(self.descriptor) };
        }
    }
}

/// What the library gave, freed when dropped.
struct LibraryPayload(*mut c_void);

impl LibraryPayload {
    fn event(&self, header: &Header) -> Result<LibraryEvent, &'static str> {
        if self.0.is_null() || header.data_size > MAX_DATA_BYTES + (1 << 20) {
            return Err("the library gave an event whose size cannot be");
        }
        let size = usize::try_from(header.data_size).map_err(|_| "it is too large")?;
        let kind = EventKind::from_code(header.event_type);
        let fixed_bytes = size_of::<TensorPayload>();
        // SAFETY: the library vouches for so many bytes, which are freed after this.
        let bytes = unsafe { slice::from_raw_parts(self.0.cast::<u8>(), size) };
        if kind != EventKind::Tensor || size < fixed_bytes {
            return Ok(LibraryEvent {
                kind: if kind == EventKind::Tensor { EventKind::Unknown(0) } else { kind },
                core: None,
                pipe: 0,
                prefix: String::new(),
                dtype: String::new(),
                shape: Vec::new(),
                data: bytes.to_vec(),
            });
        }
        // SAFETY: so many bytes are there, and any are such a structure.
        let fixed = unsafe { self.0.cast::<TensorPayload>().read_unaligned() };
        let data = &bytes[fixed_bytes..];
        let wanted = usize::try_from(fixed.data_size).unwrap_or(usize::MAX);
        Ok(LibraryEvent {
            kind,
            core: Some(fixed.core),
            pipe: fixed.pipe,
            prefix: text(&fixed.prefix),
            dtype: text(&fixed.dtype),
            shape: fixed.shape.iter().copied().take_while(|size| *size > 0).collect(),
            data: data[..wanted.min(data.len())].to_vec(),
        })
    }
}

impl Drop for LibraryPayload {
    fn drop(&mut self) {
        // SAFETY: the library gives it to its caller to free.
        unsafe { libc::free(self.0) };
    }
}

/// The text before the first zero.
fn text(bytes: &[u8]) -> String {
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}
