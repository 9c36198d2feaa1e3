//! Which device memory is on, and what the ledger says of it.

use std::ffi::{c_int, c_void};

use telltale_ledger::{Account, DeviceEntry, SealedLedger};
use telltale_schema::chip::{ChipIdentity, PciAddress};
use telltale_schema::memory::MemoryKind;

use super::driver::{Function, Opaque, Pointer, SUCCESS, Status};

/// Devices of one process that are recorded. A machine has sixteen at most.
pub(crate) const MAX_DEVICES: usize = 24;

/// `CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL`.
const DEVICE_ORDINAL: c_int = 9;
/// `CU_DEVICE_ATTRIBUTE_PCI_BUS_ID`, `…_PCI_DEVICE_ID` and `…_PCI_DOMAIN_ID`.
const PCI: [c_int; 3] = [33, 34, 50];

static CONTEXT_DEVICE: Function<unsafe extern "C" fn(*mut c_int) -> Status> =
    Function::new(c"cuCtxGetDevice");
static CURRENT_CONTEXT: Function<unsafe extern "C" fn(*mut Opaque) -> Status> =
    Function::new(c"cuCtxGetCurrent");
static POINTER_ATTRIBUTE: Function<unsafe extern "C" fn(*mut c_void, c_int, Pointer) -> Status> =
    Function::new(c"cuPointerGetAttribute");
static DEVICE_ATTRIBUTE: Function<unsafe extern "C" fn(*mut c_int, c_int, c_int) -> Status> =
    Function::new(c"cuDeviceGetAttribute");
static TOTAL_MEMORY: Function<unsafe extern "C" fn(*mut usize, c_int) -> Status> =
    Function::new(c"cuDeviceTotalMem_v2");

/// Where the memory of one device is counted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeviceAccounts {
    /// Its own memory.
    pub(crate) dram: Account<'static>,
    /// The host's that was made ready for it.
    pub(crate) system: Account<'static>,
}

impl DeviceAccounts {
    /// Adds the device with this number to the ledger. None if the driver does not tell where it is:
    /// it could not be recognized again.
    pub(crate) fn open(ledger: &'static SealedLedger, number: usize) -> Option<Self> {
        let ordinal = c_int::try_from(number).ok()?;
        let attribute = |which: c_int| {
            let mut value = -1;
            // SAFETY: `value` is writable; a device that is none is answered with an error.
            let status = unsafe { DEVICE_ATTRIBUTE.get()?(&raw mut value, which, ordinal) };
            u64::try_from(value).ok().filter(|_| status == SUCCESS)
        };
        let [bus, device, domain] = PCI.map(attribute);
        let pci = PciAddress::from_bits((domain? << 16) | (bus? << 8) | (device? << 3))?;
        let identity = ChipIdentity { pci: Some(pci), ..ChipIdentity::default() };
        let mut total = 0;
        // SAFETY: `total` is writable.
        let reported = TOTAL_MEMORY.get().map(|of| unsafe { of(&raw mut total, ordinal) });
        let dram_capacity_bytes = u64::try_from(total).ok().filter(|_| reported == Some(SUCCESS));
        let logical_id = u32::try_from(number).ok()?;
        let entry =
            DeviceEntry { identity, logical_id, dram_capacity_bytes, ..DeviceEntry::default() };
        let slot = ledger.add_device(&entry)?;
        let dram = ledger.account(slot, MemoryKind::Dram)?;
        Some(Self { dram, system: ledger.account(slot, MemoryKind::SystemMemory)? })
    }
}

/// The number of the device that `block` is on: the driver's word, else the current one.
pub(crate) fn of_block(block: Pointer) -> Option<usize> {
    let mut ordinal: c_int = -1;
    let target = (&raw mut ordinal).cast();
    // SAFETY: this attribute is an int, for which there is room.
    let status = unsafe { POINTER_ATTRIBUTE.get()?(target, DEVICE_ORDINAL, block) };
    let reported = usize::try_from(ordinal).ok().filter(|_| status == SUCCESS);
    reported.or_else(current)
}

/// The number of the calling thread's device.
pub(crate) fn current() -> Option<usize> {
    let mut ordinal: c_int = -1;
    // SAFETY: the number is writable.
    let status = unsafe { CONTEXT_DEVICE.get()?(&raw mut ordinal) };
    usize::try_from(ordinal).ok().filter(|_| status == SUCCESS)
}

/// The calling thread's context, as a number; 0 for none.
pub(crate) fn context() -> usize {
    let mut context: Opaque = std::ptr::null_mut();
    // SAFETY: the pointer is writable.
    let status = CURRENT_CONTEXT.get().map(|get| unsafe { get(&raw mut context) });
    if status == Some(SUCCESS) { context as usize } else { 0 }
}
