//! CUDA's driver, for who allocates through this library: loaded when memory is first asked for.
//!
//! The driver and not CUDA's runtime: it is there wherever a CUDA device is, under one name, while the runtime's name
//! has its version in it and may be linked statically where it cannot be found. Both use the same context of a
//! device, the primary one, so that a block of either is as good. Types, numbers and rules are those of the
//! driver's published header, `cuda.h` of CUDA 13.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_int, c_uint, c_void};
use std::sync::{Mutex, OnceLock, PoisonError};

use telltale_runtime::{Device, DeviceDescription, Runtime};
use telltale_schema::chip::{ChipIdentity, PciAddress};

/// `CUresult`.
type Status = c_int;
/// `CUdeviceptr`.
pub(crate) type Pointer = u64;
/// `CUcontext`.
type Context = *mut c_void;

const SUCCESS: Status = 0;
const OUT_OF_MEMORY: Status = 2;
/// `CU_DEVICE_ATTRIBUTE_PCI_BUS_ID`, `…_PCI_DEVICE_ID` and `…_PCI_DOMAIN_ID`.
const PCI: [c_int; 3] = [33, 34, 50];

/// The name by which every program loads the driver.
const LIBRARY: &CStr = c"libcuda.so.1";
/// Of the preloaded library: whether it records what this process has of the driver.
const RECORDED_BY_OTHERS: &CStr = c"telltale_run_records_cuda";

/// The functions that are needed here.
struct Driver {
    retain: unsafe extern "C" fn(*mut Context, c_int) -> Status,
    push: unsafe extern "C" fn(Context) -> Status,
    pop: unsafe extern "C" fn(*mut Context) -> Status,
    allocate: unsafe extern "C" fn(*mut Pointer, usize) -> Status,
    free: unsafe extern "C" fn(Pointer) -> Status,
    attribute: unsafe extern "C" fn(*mut c_int, c_int, c_int) -> Status,
}

/// A device that was allocated on.
pub(crate) struct CudaDevice {
    driver: &'static Driver,
    /// Its primary context, which is kept as long as the process lives.
    context: usize,
    /// Where its memory is recorded; `None` if another library records it, or without a PCI address from the driver.
    record: Option<Device>,
}

/// Why there is no block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AllocationRefusal {
    NoMemory,
    Otherwise,
}

// === impl Driver ===

impl Driver {
    /// The driver; none where there is none that works.
    fn get() -> Option<&'static Self> {
        static DRIVER: OnceLock<Option<Driver>> = OnceLock::new();
        DRIVER.get_or_init(Self::load).as_ref()
    }

    fn load() -> Option<Self> {
        // SAFETY: the name is a C string; the driver's own beginnings run, as in every program that uses it.
        // It stays loaded, because the handle is never closed.
        let library = unsafe { libc::dlopen(LIBRARY.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if library.is_null() {
            return None;
        }
        // SAFETY: each is null or the driver's function of this name, whose published signature is the field's.
        unsafe {
            let init: unsafe extern "C" fn(c_uint) -> Status = find(library, c"cuInit")?;
            (init(0) == SUCCESS).then_some(())?;
            Some(Self {
                retain: find(library, c"cuDevicePrimaryCtxRetain")?,
                push: find(library, c"cuCtxPushCurrent_v2")?,
                pop: find(library, c"cuCtxPopCurrent_v2")?,
                allocate: find(library, c"cuMemAlloc_v2")?,
                free: find(library, c"cuMemFree_v2")?,
                attribute: find(library, c"cuDeviceGetAttribute")?,
            })
        }
    }

    /// Where the device with this number is.
    fn pci(&self, number: c_int) -> Option<PciAddress> {
        let [bus, device, domain] = PCI.map(|which| {
            let mut value = -1;
            // SAFETY: `value` is writable; a device that is none is answered with an error.
            let status = unsafe { (self.attribute)(&raw mut value, which, number) };
            u64::try_from(value).ok().filter(|_| status == SUCCESS)
        });
        PciAddress::from_bits((domain? << 16) | (bus? << 8) | (device? << 3))
    }
}

/// A function of a library.
///
/// # Safety
/// `F` is a function pointer, and the library's function of this name has its signature.
unsafe fn find<F: Copy>(library: *mut c_void, name: &CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: the handle is the loader's, and the name is a C string.
    let found = unsafe { libc::dlsym(library, name.as_ptr()) };
    // SAFETY: the caller's promise, and it is not null.
    (!found.is_null()).then(|| unsafe { std::mem::transmute_copy::<*mut c_void, F>(&found) })
}

/// Whether the library of `telltale run` is in this process and records CUDA's memory. It sees what this one allocates, and
/// all else.
fn is_recorded_by_others() -> bool {
    // SAFETY: the name is ours alone, and the function of this name takes nothing.
    let asked: Option<unsafe extern "C" fn() -> c_int> =
        unsafe { find(libc::RTLD_DEFAULT, RECORDED_BY_OTHERS) };
    // SAFETY: as above.
    asked.is_some_and(|ask| unsafe { ask() } != 0)
}

// === impl CudaDevice ===

impl CudaDevice {
    /// The device with this number, made ready at its first use; none if there is none.
    pub(crate) fn get(number: c_int) -> Option<&'static Self> {
        static DEVICES: Mutex<BTreeMap<c_int, &'static CudaDevice>> = Mutex::new(BTreeMap::new());
        let mut devices = DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = devices.get(&number) {
            return Some(known);
        }
        let opened: &'static Self = Box::leak(Box::new(Self::open(number)?));
        devices.insert(number, opened);
        Some(opened)
    }

    fn open(number: c_int) -> Option<Self> {
        let driver = Driver::get()?;
        let mut context = std::ptr::null_mut();
        // SAFETY: the context is writable; a device that is none is answered with an error.
        let status = unsafe { (driver.retain)(&raw mut context, number) };
        if status != SUCCESS {
            return None;
        }
        let pci = driver.pci(number).filter(|_| !is_recorded_by_others());
        let record = pci.zip(u32::try_from(number).ok()).map(|(pci, logical_id)| {
            let identity = ChipIdentity { pci: Some(pci), ..ChipIdentity::default() };
            let description = DeviceDescription { identity, logical_id, facts: None };
            Runtime::global().open_device(description)
        });
        Some(Self { driver, context: context as usize, record })
    }

    /// Where this device's memory is recorded.
    pub(crate) fn record(&self) -> Option<&Device> {
        self.record.as_ref()
    }

    /// Allocates a block.
    pub(crate) fn allocate(&self, bytes: usize) -> Result<Pointer, AllocationRefusal> {
        let mut block = 0;
        // SAFETY: the block is writable, and the device's context is current.
        let status = self.within(|| unsafe { (self.driver.allocate)(&raw mut block, bytes) });
        match status {
            Some(SUCCESS) => Ok(block),
            Some(OUT_OF_MEMORY) => Err(AllocationRefusal::NoMemory),
            _ => Err(AllocationRefusal::Otherwise),
        }
    }

    /// Frees a block once the device is done with it, for which the driver waits.
    pub(crate) fn free(&self, block: Pointer) {
        // SAFETY: the driver checks the address; the caller of this library guarantees that the block is unused.
        self.within(|| unsafe { (self.driver.free)(block) });
    }

    /// Calls `act` with the device's context current, and restores what was.
    fn within(&self, act: impl FnOnce() -> Status) -> Option<Status> {
        let mut popped = std::ptr::null_mut();
        // SAFETY: the context was retained and is never released.
        if unsafe { (self.driver.push)(self.context as Context) } != SUCCESS {
            return None;
        }
        let status = act();
        // SAFETY: the context is writable.
        unsafe { (self.driver.pop)(&raw mut popped) };
        Some(status)
    }
}
