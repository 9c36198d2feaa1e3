//! Safe handles on the seed's own design, rebuilt in C++ under `seed/`, and on two values of the C
//! library that Rust's does not give.
//!
//! This is the only file of the crate with unsafe code, and it does nothing but call those entry
//! points. It must not be used outside the benchmarks: the baseline keeps the seed's races.

use std::ffi::{CString, c_char, c_void};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::ptr::NonNull;

use crate::program::shape::{Addresses, Attributes, PROGRAM_WORDS};
use crate::sweep::Sweep;

/// How many devices the seed's collector and server know.
pub const DEVICES: usize = 8;
/// Bytes from one address block to the next, as in `tracker.cpp`.
pub const BLOCK_STRIDE_BYTES: u64 = 2048;
/// The address of block 0, as in `tracker.cpp`.
pub const FIRST_ADDRESS: u64 = 0x1000_0000;

unsafe extern "C" {
    fn seed_device_create(setting: u32, rows_before: u32) -> *mut c_void;
    fn seed_device_destroy(device: *mut c_void);
    fn seed_record_pairs(device: *mut c_void, pairs: u64);
    fn seed_record_pairs_known_pid(device: *mut c_void, pairs: u64);
    fn seed_record_allocation(device: *mut c_void, size: u64);
    fn seed_total_bytes(device: *mut c_void) -> u64;
    fn seed_row_bytes(device: *mut c_void, bytes: *mut u64, slot: *mut u32) -> bool;
    fn seed_tracker_create(device: *mut c_void) -> *mut c_void;
    fn seed_tracker_destroy(tracker: *mut c_void);
    fn seed_tracker_fill(tracker: *mut c_void, blocks: *const u32, count: u64);
    fn seed_tracker_replay(tracker: *mut c_void, steps: *const [u32; 2], count: u64);
    fn seed_tracker_live(tracker: *mut c_void) -> u64;
    fn seed_tracker_dram_bytes(tracker: *mut c_void) -> u64;
    fn seed_heap_bytes() -> u64;
    fn seed_wait_with_peak(pid: i32, status: *mut i32, peak_bytes: *mut u64) -> bool;
    fn seed_server_start(directory: *const c_char, base: u64) -> *mut c_void;
    fn seed_server_stop(server: *mut c_void);
    fn seed_collect(
        driver: *const c_char,
        directory: *const c_char,
        devices: u32,
        dram: *mut u64,
    ) -> u64;
    fn seed_flow_create() -> *mut c_void;
    fn seed_flow_destroy(flow: *mut c_void);
    fn seed_flow_dispatch(
        flow: *mut c_void,
        attributes: *const Attributes,
        at: *const Addresses,
        count: u64,
        words: *mut u32,
    ) -> u64;
    fn seed_by_hand_create() -> *mut c_void;
    fn seed_by_hand_destroy(by_hand: *mut c_void);
    fn seed_by_hand_dispatch(
        by_hand: *mut c_void,
        attributes: *const Attributes,
        operands: *const TensorSpec,
        operand_count: u32,
        at: *const Addresses,
        count: u64,
        through_handles: bool,
        words: *mut u32,
    ) -> u64;
}

/// The baseline could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum SeedError {
    /// The region file could not be made or mapped.
    #[error("cannot map a region under /dev/shm: check that it exists and has 16 KiB free")]
    Region,
    /// The metrics socket could not be bound.
    #[error("cannot bind the original's metrics socket: check that its directory is writable")]
    Socket,
    /// A path holds a NUL byte, which a C string cannot.
    #[error("the path holds a NUL byte: give one without")]
    Path,
}

/// What the seed records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// No region at all.
    Off,
    /// Totals and chip rows.
    Totals,
    /// Process rows too; this many rows belong to others and are passed in each scan.
    PerPid {
        /// Rows before ours: 0 to 63.
        rows_before: u32,
    },
}

/// The seed's row of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeedRow {
    /// Live DRAM bytes, as the row says.
    pub bytes: u64,
    /// The row's place in the table.
    pub slot: u32,
}

/// The seed's device with its region.
#[derive(Debug)]
pub struct SeedDevice(NonNull<c_void>);

// SAFETY: the object is heap memory without thread affinity and a shared mapping.
unsafe impl Send for SeedDevice {}
// SAFETY: the shared counters are atomics. The process row is updated by plain adds from several
// threads, which is the defect under measurement: the object is compiled apart from its callers, each
// add is one aligned load and store of a live 8-byte field, so a lost update is all that can happen.
unsafe impl Sync for SeedDevice {}

impl SeedDevice {
    /// Makes a device and, unless off, its region in a fresh file that is already unlinked.
    ///
    /// # Errors
    /// [`SeedError::Region`] when the file cannot be made or mapped.
    pub fn new(setting: Setting) -> Result<Self, SeedError> {
        let (number, rows_before) = match setting {
            Setting::Off => (0, 0),
            Setting::Totals => (1, 0),
            Setting::PerPid { rows_before } => (2, rows_before),
        };
        // SAFETY: takes plain numbers and returns null or an owned object.
        let device = unsafe { seed_device_create(number, rows_before) };
        NonNull::new(device).map(Self).ok_or(SeedError::Region)
    }

    /// `pairs` allocations, each followed by its free, through the seed's call sites.
    pub fn record_pairs(&self, pairs: u64) {
        // SAFETY: the handle is live while `self` is.
        unsafe { seed_record_pairs(self.0.as_ptr(), pairs) }
    }

    /// The same, with the pid read once and not at each call.
    pub fn record_pairs_known_pid(&self, pairs: u64) {
        // SAFETY: the handle is live while `self` is.
        unsafe { seed_record_pairs_known_pid(self.0.as_ptr(), pairs) }
    }

    /// One allocation without its free.
    pub fn record_allocation(&self, size_bytes: u64) {
        // SAFETY: the handle is live while `self` is.
        unsafe { seed_record_allocation(self.0.as_ptr(), size_bytes) }
    }

    /// The region's shared DRAM total; zero when off.
    pub fn total_bytes(&self) -> u64 {
        // SAFETY: the handle is live while `self` is.
        unsafe { seed_total_bytes(self.0.as_ptr()) }
    }

    /// This process's row, once it has one.
    pub fn row(&self) -> Option<SeedRow> {
        let (mut bytes, mut slot) = (0, 0);
        // SAFETY: the handle is live, and both pointers are to locals that outlive the call.
        let found = unsafe { seed_row_bytes(self.0.as_ptr(), &raw mut bytes, &raw mut slot) };
        found.then_some(SeedRow { bytes, slot })
    }
}

impl Drop for SeedDevice {
    fn drop(&mut self) {
        // SAFETY: made by `seed_device_create`, owned by `self` and destroyed once.
        unsafe { seed_device_destroy(self.0.as_ptr()) }
    }
}

/// The seed's map of live addresses, in front of a [`SeedDevice`].
#[derive(Debug)]
pub struct Tracker<'device> {
    handle: NonNull<c_void>,
    _device: &'device SeedDevice,
}

// SAFETY: the object is heap memory without thread affinity.
unsafe impl Send for Tracker<'_> {}
// SAFETY: the map is used under its own mutex, the device as said for `Device`.
unsafe impl Sync for Tracker<'_> {}

impl<'device> Tracker<'device> {
    /// An empty tracker.
    pub fn new(device: &'device SeedDevice) -> Self {
        // SAFETY: the device handle is live, and the borrow keeps it so.
        let handle = unsafe { seed_tracker_create(device.0.as_ptr()) };
        let handle = NonNull::new(handle).expect("operator new throws rather than return null");
        Self { handle, _device: device }
    }

    /// Allocates each block.
    pub fn fill(&self, blocks: &[u32]) {
        // SAFETY: the pointer and the count describe `blocks`, which outlives the call.
        unsafe { seed_tracker_fill(self.handle.as_ptr(), blocks.as_ptr(), blocks.len() as u64) }
    }

    /// For each step, frees its first block and allocates its second.
    pub fn replay(&self, steps: &[[u32; 2]]) {
        // SAFETY: the pointer and the count describe `steps`, which outlives the call; an array of
        // two 32-bit numbers is laid out as the two numbers that the callee reads.
        unsafe { seed_tracker_replay(self.handle.as_ptr(), steps.as_ptr(), steps.len() as u64) }
    }

    /// How many addresses the map holds.
    pub fn live(&self) -> u64 {
        // SAFETY: the handle is live while `self` is.
        unsafe { seed_tracker_live(self.handle.as_ptr()) }
    }

    /// Live DRAM bytes, as the per-device counter says.
    pub fn dram_bytes(&self) -> u64 {
        // SAFETY: the handle is live while `self` is.
        unsafe { seed_tracker_dram_bytes(self.handle.as_ptr()) }
    }
}

impl Drop for Tracker<'_> {
    fn drop(&mut self) {
        // SAFETY: made by `seed_tracker_create`, owned by `self` and destroyed once.
        unsafe { seed_tracker_destroy(self.handle.as_ptr()) }
    }
}

/// Bytes that malloc has handed out in this process, its own headers included.
pub fn heap_bytes() -> u64 {
    // SAFETY: takes nothing and reads malloc's own counters under malloc's locks.
    unsafe { seed_heap_bytes() }
}

/// Waits for a child to end: its status and its peak resident memory in bytes. The peak is never below
/// what this process holds resident at the time of the start, which the kernel charges to the child.
///
/// # Errors
/// What the kernel answers, as when the child has been waited for already.
pub fn wait_with_peak(child: Child) -> io::Result<(ExitStatus, u64)> {
    let pid = i32::try_from(child.id()).map_err(io::Error::other)?;
    let (mut status, mut peak_bytes) = (0, 0);
    // SAFETY: both pointers are to locals that outlive the call. The child is ours to wait for, and
    // taking it by value keeps its handle from being used after its pid is free again.
    if unsafe { seed_wait_with_peak(pid, &raw mut status, &raw mut peak_bytes) } {
        Ok((ExitStatus::from_raw(status), peak_bytes))
    } else {
        Err(io::Error::last_os_error())
    }
}

/// The seed's metrics server: one thread on `metrics_<pid>.sock`.
#[derive(Debug)]
pub struct SeedServer(NonNull<c_void>);

impl SeedServer {
    /// Binds the socket in `directory` and serves `base + device` bytes of DRAM for each device.
    ///
    /// # Errors
    /// [`SeedError::Path`] for a path with a NUL byte, [`SeedError::Socket`] when it cannot be bound.
    pub fn start(directory: &Path, base: u64) -> Result<Self, SeedError> {
        let directory = c_path(directory)?;
        // SAFETY: the string is NUL-terminated and outlives the call, which copies it.
        let server = unsafe { seed_server_start(directory.as_ptr(), base) };
        NonNull::new(server).map(Self).ok_or(SeedError::Socket)
    }
}

impl Drop for SeedServer {
    fn drop(&mut self) {
        // SAFETY: made by `seed_server_start`, owned by `self` and destroyed once.
        unsafe { seed_server_stop(self.0.as_ptr()) }
    }
}

/// The seed's collector: reads `driver/<device>/pids` and queries `directory/metrics_<pid>.sock`.
#[derive(Debug)]
pub struct Collector {
    driver: CString,
    directory: CString,
}

impl Collector {
    /// A collector for a tree of pid lists and a directory of sockets.
    ///
    /// # Errors
    /// [`SeedError::Path`] when a path holds a NUL byte.
    pub fn new(driver: &Path, directory: &Path) -> Result<Self, SeedError> {
        Ok(Self { driver: c_path(driver)?, directory: c_path(directory)? })
    }

    /// Queries every process of every device, one after the other.
    pub fn sweep(&self) -> Sweep {
        let mut dram_bytes = [0; DEVICES];
        let devices = u32::try_from(DEVICES).expect("eight fits");
        // SAFETY: both strings are NUL-terminated and live; the array has `devices` entries.
        let answered = unsafe {
            seed_collect(
                self.driver.as_ptr(),
                self.directory.as_ptr(),
                devices,
                dram_bytes.as_mut_ptr(),
            )
        };
        Sweep { answered, dram_bytes }
    }
}

/// The seed's flow for programs: described, hashed, found and copied at each dispatch.
#[derive(Debug)]
pub struct ProgramFlow(NonNull<c_void>);

impl ProgramFlow {
    /// No programs yet.
    pub fn new() -> Self {
        // SAFETY: takes nothing and returns an owned object.
        let flow = unsafe { seed_flow_create() };
        Self(NonNull::new(flow).expect("operator new throws rather than return null"))
    }

    /// Dispatches the program `count` times at addresses that move on, and gives back its words
    /// after the last dispatch.
    pub fn dispatch(&mut self, attributes: &Attributes, at: Addresses, count: u64) -> Vec<u32> {
        let mut words = vec![0; PROGRAM_WORDS];
        // SAFETY: the handle is live while `self` is and not shared; the pointers are to
        // locals that outlive the call, with room for every word of the program.
        unsafe {
            seed_flow_dispatch(
                self.0.as_ptr(),
                attributes,
                &raw const at,
                count,
                words.as_mut_ptr(),
            )
        };
        words
    }
}

impl Default for ProgramFlow {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for ProgramFlow {
    fn drop(&mut self) {
        // SAFETY: made by `seed_flow_create`, owned by `self` and destroyed once.
        unsafe { seed_flow_destroy(self.0.as_ptr()) }
    }
}

/// What the hand-written key depends on of an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct TensorSpec {
    /// The dimensions, outermost first.
    pub shape: [u32; 4],
    /// What an element is.
    pub data_format: u32,
    /// How elements follow each other.
    pub layout: u32,
    /// The tile's size.
    pub tile: u32,
    /// In which memory.
    pub memory: u32,
}

/// How the hand-written update reaches the words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WordAccess {
    /// As authors write it today: by kernel and by the coordinates of each core, through vectors
    /// of vectors.
    ByCore,
    /// Idealised: through pointers that were kept since the program was made.
    ByHandle,
}

/// The same program with a key and an update by hand.
#[derive(Debug)]
pub struct ProgramByHand(NonNull<c_void>);

impl ProgramByHand {
    /// No programs yet.
    pub fn new() -> Self {
        // SAFETY: takes nothing and returns an owned object.
        let by_hand = unsafe { seed_by_hand_create() };
        Self(NonNull::new(by_hand).expect("operator new throws rather than return null"))
    }

    /// Dispatches the program `count` times at addresses that move on, and gives back its words
    /// after the last dispatch.
    pub fn dispatch(
        &mut self,
        attributes: &Attributes,
        operands: &[TensorSpec; 3],
        at: Addresses,
        count: u64,
        access: WordAccess,
    ) -> Vec<u32> {
        let mut words = vec![0; PROGRAM_WORDS];
        let operand_count = u32::try_from(operands.len()).expect("three fits");
        // SAFETY: the handle is live while `self` is and not shared; the pointers are to
        // locals that outlive the call, with `operand_count` operands and room for every word.
        unsafe {
            seed_by_hand_dispatch(
                self.0.as_ptr(),
                attributes,
                operands.as_ptr(),
                operand_count,
                &raw const at,
                count,
                access == WordAccess::ByHandle,
                words.as_mut_ptr(),
            )
        };
        words
    }
}

impl Default for ProgramByHand {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for ProgramByHand {
    fn drop(&mut self) {
        // SAFETY: made by `seed_by_hand_create`, owned by `self` and destroyed once.
        unsafe { seed_by_hand_destroy(self.0.as_ptr()) }
    }
}

fn c_path(path: &Path) -> Result<CString, SeedError> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| SeedError::Path)
}
