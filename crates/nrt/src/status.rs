//! `NRT_STATUS`: what calls return, and the border that no panic crosses.

use std::ffi::{CStr, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// `NRT_STATUS`. A number and no enumeration, because callers may pass any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct Status(pub c_int);

impl Status {
    /// It was done.
    pub const SUCCESS: Self = Self(0);
    /// A defect in this library.
    pub const FAILURE: Self = Self(1);
    /// The call was wrong, or there is a client already.
    pub const INVALID: Self = Self(2);
    /// No memory or no descriptor.
    pub const RESOURCE: Self = Self(4);
    /// It was not done in time.
    pub const TIMEOUT: Self = Self(5);
    /// The stream holds as much as it may.
    pub const QUEUE_FULL: Self = Self(7);
    /// No consumer is connected, or the library was closed.
    pub const CLOSED: Self = Self(14);
    /// No event waits.
    pub const QUEUE_EMPTY: Self = Self(15);
}

/// Every status that AWS has published (`nrt_status.h` of aws-neuron-sdk, 2026-08-21).
pub const STATUSES: [(c_int, &CStr); 28] = [
    (0, c"NRT_SUCCESS"),
    (1, c"NRT_FAILURE"),
    (2, c"NRT_INVALID"),
    (3, c"NRT_INVALID_HANDLE"),
    (4, c"NRT_RESOURCE"),
    (5, c"NRT_TIMEOUT"),
    (6, c"NRT_HW_ERROR"),
    (7, c"NRT_QUEUE_FULL"),
    (9, c"NRT_LOAD_NOT_ENOUGH_NC"),
    (10, c"NRT_UNSUPPORTED_NEFF_VERSION"),
    (11, c"NRT_FAIL_HOST_MEM_ALLOC"),
    (13, c"NRT_UNINITIALIZED"),
    (14, c"NRT_CLOSED"),
    (15, c"NRT_QUEUE_EMPTY"),
    (101, c"NRT_EXEC_UNIT_UNRECOVERABLE"),
    (1002, c"NRT_EXEC_BAD_INPUT"),
    (1003, c"NRT_EXEC_COMPLETED_WITH_NUM_ERR"),
    (1004, c"NRT_EXEC_COMPLETED_WITH_ERR"),
    (1005, c"NRT_EXEC_NC_BUSY"),
    (1006, c"NRT_EXEC_OOB"),
    (1100, c"NRT_COLL_PENDING"),
    (1200, c"NRT_EXEC_HW_ERR_COLLECTIVES"),
    (1201, c"NRT_EXEC_HW_ERR_HBM_UE"),
    (1202, c"NRT_EXEC_HW_ERR_NC_UE"),
    (1203, c"NRT_EXEC_HW_ERR_DMA_ABORT"),
    (1204, c"NRT_EXEC_SW_NQ_OVERFLOW"),
    (1205, c"NRT_EXEC_HW_ERR_REPAIRABLE_HBM_UE"),
    (1206, c"NRT_NETWORK_PROXY_FAILURE"),
];
/// The text of any other number.
const UNKNOWN: &CStr = c"NRT_UNKNOWN_STATUS";

/// Runs a call; a panic inside it becomes a status.
#[inline(always)]
pub(crate) fn guarded(call: impl FnOnce() -> Result<(), Status>) -> Status {
    // What a call leaves behind when it panics is atomics, and locks that know no poison.
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => Status::SUCCESS,
        Ok(Err(status)) => status,
        Err(_) => Status::FAILURE,
    }
}

/// The name of a status; never null.
#[unsafe(no_mangle)]
pub extern "C" fn nrt_get_status_as_str(status: Status) -> *const c_char {
    let found = STATUSES.iter().find(|(number, _)| *number == status.0);
    found.map_or(UNKNOWN, |(_, name)| name).as_ptr()
}
