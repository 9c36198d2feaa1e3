//! The border between kernels in C and the scheduler: the structs of `kernel_api.h`, and the calls
//! that a kernel makes.
//!
//! All of it happens on the device's thread. A call checks state through shared references to
//! cells, because the scheduler below it on the thread's own stack holds some as well. Nothing
//! here panics or unwinds, and nothing that needs dropping is live where a kernel can be left.

use std::cell::Cell;
use std::ffi::c_char;
use std::sync::atomic::{AtomicBool, Ordering, compiler_fence};

use corosensei::Yielder;

use super::fault::{AccessKind, KernelFault};
use super::floating_point::FloatingPoint;
use super::printing::{self, PrintedPart, Printer};
use super::stack::STACK_BYTES;
use super::trap::{self, Exit};

/// Circular buffers that a core can have.
pub(crate) const CIRCULAR_BUFFERS: usize = 32;
/// Semaphores that a core can have.
pub(crate) const SEMAPHORES: usize = 16;
/// The place of a global semaphore's value on one core; the value is in the first four bytes.
pub(crate) const GLOBAL_SEMAPHORE_BYTES: usize = 16;

/// A circular buffer, as C sees it.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct CircularBuffer {
    pub(super) base: Cell<*mut u8>,
    pub(super) page_bytes: Cell<u32>,
    pub(super) pages: Cell<u32>,
    pub(super) pushed: Cell<u32>,
    pub(super) popped: Cell<u32>,
    pub(super) write_page: Cell<u32>,
    pub(super) read_page: Cell<u32>,
    /// A kernel asked where to write; 0 if none did.
    pub(super) is_written: Cell<u32>,
}

/// The calls that C makes.
#[repr(C)]
pub(super) struct Calls {
    wait_for_room: extern "C" fn(&Core, u32, u32),
    wait_for_pages: extern "C" fn(&Core, u32, u32),
    read: unsafe extern "C" fn(&Core, u32, u64, u32, u32, *mut u8),
    write: unsafe extern "C" fn(&Core, u32, u64, u32, u32, *const u8),
    semaphore_read: extern "C" fn(&Core, u32) -> u32,
    semaphore_write: extern "C" fn(&Core, u32, u32, u32, u32, u32),
    semaphore_wait: extern "C" fn(&Core, u32, u32, u32),
    global_semaphore_read: extern "C" fn(&Core, u32) -> u32,
    global_semaphore_write: extern "C" fn(&Core, u32, u32, u32, u32, u32),
    global_semaphore_wait: extern "C" fn(&Core, u32, u32, u32),
    fault: extern "C" fn(&Core, u32, u32, u32) -> !,
    print_text: unsafe extern "C" fn(&Core, *const c_char, *const c_char),
    print_scalar: unsafe extern "C" fn(&Core, *const c_char, u32, u64),
    print_tile: unsafe extern "C" fn(&Core, *const c_char, u32, u32, *const PrintedPart),
}

/// One kernel on one core. C sees the fields up to `print_is_read`.
#[repr(C)]
pub(super) struct Core {
    calls: &'static Calls,
    pub(super) arguments: Cell<*const u32>,
    pub(super) common_arguments: Cell<*const u32>,
    pub(super) buffers: Cell<*const CircularBuffer>,
    pub(super) argument_count: Cell<u32>,
    pub(super) common_argument_count: Cell<u32>,
    pub(super) x: Cell<u32>,
    pub(super) y: Cell<u32>,
    /// The flag of the core's printer that says whether there is a reader; C loads it atomically.
    pub(super) print_is_read: Cell<*const bool>,
    /// Where the kernel is left; set when it starts.
    pub(super) yielder: Cell<*const Yielder<(), ()>>,
    /// What the top of its stack holds while it runs, see trap.rs.
    pub(super) parent_link: Cell<usize>,
    /// How it is left when a signal comes; set before it starts.
    pub(super) exit: Cell<Option<Exit>>,
    /// A call with less stack than this is refused: the stack is nearly full, or the kernel's time is
    /// over and this is the highest address.
    pub(super) lowest_call: Cell<usize>,
    /// What the running program shares; set when the kernel starts.
    pub(super) surroundings: Cell<*const Surroundings>,
    pub(super) semaphores: Cell<*const SemaphoreValues>,
    /// Where the core's prints go.
    pub(super) printer: Cell<*const Printer>,
    pub(super) waiting: Cell<WaitReason>,
    /// A call of this crate is where the kernel's own pointers lead, and holds no lock.
    pub(super) is_at_its_memory: AtomicBool,
}

/// The semaphores of one core; none where it has none of this number.
pub(super) type SemaphoreValues = [Cell<Option<u32>>; SEMAPHORES];

/// What a kernel waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitReason {
    /// It can run.
    Nothing,
    Room {
        buffer: u32,
        pages: u32,
    },
    Pages {
        buffer: u32,
        pages: u32,
    },
    Semaphore {
        semaphore: u32,
        value: u32,
        or_more: bool,
    },
    GlobalSemaphore {
        address: u32,
        at: *const u32,
        value: u32,
        or_more: bool,
    },
    /// For ever: it did something wrong.
    Failed(KernelFault),
}

/// Where a kernel may read or write.
pub(crate) struct AccessibleMemory {
    /// The first byte.
    pub(crate) start: *mut u8,
}

/// What the kernels of a program find around them.
pub(super) struct Surroundings {
    /// Finds the bytes of a buffer.
    pub(super) buffers: *const dyn BufferAccess,
    /// The grid's columns and rows.
    pub(super) grid: (u32, u32),
    /// Of each core of the grid, row by row.
    pub(super) semaphores: *const [SemaphoreValues],
}

/// Finds what an address stands for.
pub(crate) trait BufferAccess {
    /// The place of `bytes` bytes from `offset` of the buffer at `address`; a `page_bytes` of
    /// zero stands for any page size.
    fn place(
        &self,
        access: AccessKind,
        address: u32,
        offset: u64,
        bytes: u32,
        page_bytes: u32,
    ) -> Result<AccessibleMemory, KernelFault>;

    /// How many bytes the buffer at `address` has from there on; zero if there is none.
    fn extent(&self, address: u32) -> u64;

    /// Whether it is asked for which buffers are written.
    fn notes_writes(&self) -> bool;

    /// Says that the buffer that `address` is in was written otherwise than at a [`AccessibleMemory`] to write
    /// to.
    fn note_write(&self, address: u32);
}

static CALLS: Calls = Calls {
    wait_for_room,
    wait_for_pages,
    read,
    write,
    semaphore_read,
    semaphore_write,
    semaphore_wait,
    global_semaphore_read,
    global_semaphore_write,
    global_semaphore_wait,
    fault,
    print_text: printing::text,
    print_scalar: printing::scalar,
    print_tile: printing::tile,
};

// === impl CircularBuffer ===

impl CircularBuffer {
    pub(super) const fn absent() -> Self {
        Self {
            base: Cell::new(std::ptr::null_mut()),
            page_bytes: Cell::new(0),
            pages: Cell::new(0),
            pushed: Cell::new(0),
            popped: Cell::new(0),
            write_page: Cell::new(0),
            read_page: Cell::new(0),
            is_written: Cell::new(0),
        }
    }

    /// Makes it an empty buffer at `base`.
    pub(super) fn place(&self, base: *mut u8, page_bytes: u32, pages: u32) {
        self.base.set(base);
        self.page_bytes.set(page_bytes);
        self.pages.set(pages);
        self.pushed.set(0);
        self.popped.set(0);
        self.write_page.set(0);
        self.read_page.set(0);
        self.is_written.set(0);
    }

    /// Pages that were pushed and not popped.
    pub(super) fn filled(&self) -> u32 {
        self.pushed.get().wrapping_sub(self.popped.get())
    }

    /// Pages that can be pushed.
    pub(super) fn room(&self) -> u32 {
        self.pages.get().saturating_sub(self.filled())
    }
}

// === impl Core ===

impl Core {
    pub(super) const fn idle() -> Self {
        Self {
            calls: &CALLS,
            arguments: Cell::new(std::ptr::null()),
            common_arguments: Cell::new(std::ptr::null()),
            buffers: Cell::new(std::ptr::null()),
            argument_count: Cell::new(0),
            common_argument_count: Cell::new(0),
            x: Cell::new(0),
            y: Cell::new(0),
            print_is_read: Cell::new(std::ptr::null()),
            yielder: Cell::new(std::ptr::null()),
            parent_link: Cell::new(0),
            exit: Cell::new(None),
            lowest_call: Cell::new(0),
            surroundings: Cell::new(std::ptr::null()),
            semaphores: Cell::new(std::ptr::null()),
            printer: Cell::new(std::ptr::null()),
            waiting: Cell::new(WaitReason::Nothing),
            is_at_its_memory: AtomicBool::new(false),
        }
    }

    /// Whether what the kernel waits for has come.
    pub(super) fn can_run(&self) -> bool {
        match self.waiting.get() {
            WaitReason::Nothing => true,
            WaitReason::Room { buffer, pages } => {
                self.buffer(buffer).is_some_and(|found| found.room() >= pages)
            }
            WaitReason::Pages { buffer, pages } => {
                self.buffer(buffer).is_some_and(|found| found.filled() >= pages)
            }
            WaitReason::Semaphore { semaphore, value, or_more } => {
                let now = self.semaphore(semaphore).and_then(Cell::get);
                now.is_some_and(|now| if or_more { now >= value } else { now == value })
            }
            WaitReason::GlobalSemaphore { at, value, or_more, .. } => {
                let now = global_value(at);
                if or_more { now >= value } else { now == value }
            }
            WaitReason::Failed(_) => false,
        }
    }

    pub(super) fn buffer(&self, buffer: u32) -> Option<&CircularBuffer> {
        let index = usize::try_from(buffer).ok().filter(|index| *index < CIRCULAR_BUFFERS)?;
        // SAFETY: while a kernel is alive, `buffers` is its core's array of CIRCULAR_BUFFERS.
        Some(unsafe { &*self.buffers.get().add(index) })
    }

    pub(super) fn semaphore(&self, semaphore: u32) -> Option<&Cell<Option<u32>>> {
        // SAFETY: while a kernel is alive, `semaphores` is its core's entry of the program's.
        let values = unsafe { &*self.semaphores.get() };
        values.get(usize::try_from(semaphore).ok()?)
    }

    pub(super) fn printer(&self) -> &Printer {
        // SAFETY: the executor has one for each core of its grid, keeps them for as long as it
        // lives, and gives a kernel its core's before it starts.
        unsafe { &*self.printer.get() }
    }

    fn surroundings(&self) -> &Surroundings {
        // SAFETY: the scheduler keeps the surroundings for as long as any kernel of the program
        // is alive, on the frame that resumes it.
        unsafe { &*self.surroundings.get() }
    }

    /// Notes where the kernel's fibre begins, each time that it begins to run.
    ///
    /// # Safety
    /// The yielder is the one that the fibre of this kernel was given, and this is called there.
    #[inline]
    pub(super) unsafe fn runs_with(&self, yielder: *const Yielder<(), ()>) {
        self.yielder.set(yielder);
        self.lowest_call.set(self.exit.get().map_or(0, |exit| exit.lowest_call()));
        // SAFETY: this function's contract.
        self.parent_link.set(unsafe { trap::parent_link(yielder) });
    }

    /// Lets others run until the scheduler finds that the kernel can go on.
    fn wait(&self, waiting: WaitReason) {
        self.waiting.set(waiting);
        let yielder = self.yielder.get();
        // SAFETY: the yielder was set by this kernel's fibre when it started, lies at the bottom
        // of that fibre's stack, and this call is made on that stack.
        unsafe {
            FloatingPoint::kept_during(|| (*yielder).suspend(()));
            self.runs_with(yielder);
        }
        self.waiting.set(WaitReason::Nothing);
    }

    /// Ends a kernel here that has little stack left or whose time is over. A call of this crate may
    /// take a lock, so a full stack must be met in the kernel's own code, where none is held; and a
    /// kernel that is hardly ever there must be stopped as well.
    #[inline]
    pub(super) fn check_call(&self) {
        let here = 0_u8;
        if (&raw const here).addr() < self.lowest_call.get() {
            self.refuse_call();
        }
    }

    #[cold]
    fn refuse_call(&self) -> ! {
        match self.lowest_call.get() {
            usize::MAX => self.fail(trap::endless()),
            _ => self.fail(KernelFault::StackOverflow { stack_bytes: STACK_BYTES as u64 }),
        }
    }

    /// Reads or writes memory that the kernel names. A fault there is the kernel's, and as there is no
    /// lock that could be held, the kernel can be left. `access` does nothing else.
    #[inline]
    pub(super) fn at_its_memory<T>(&self, access: impl FnOnce() -> T) -> T {
        // A handler of a signal on this thread checks it.
        self.is_at_its_memory.store(true, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        let result = access();
        compiler_fence(Ordering::SeqCst);
        self.is_at_its_memory.store(false, Ordering::Relaxed);
        result
    }

    fn fail(&self, fault: KernelFault) -> ! {
        loop {
            self.wait(WaitReason::Failed(fault));
        }
    }

    fn place(
        &self,
        access: AccessKind,
        address: u32,
        offset: u64,
        bytes: u32,
        page_bytes: u32,
    ) -> *mut u8 {
        self.check_call();
        // SAFETY: as `surroundings`; the finder outlives them.
        let buffers = unsafe { &*self.surroundings().buffers };
        match buffers.place(access, address, offset, bytes, page_bytes) {
            Ok(place) => place.start,
            Err(fault) => self.fail(fault),
        }
    }

    /// A semaphore of any core.
    fn semaphore_of(&self, x: u32, y: u32, semaphore: u32) -> &Cell<Option<u32>> {
        self.check_call();
        let surroundings = self.surroundings();
        let (columns, rows) = surroundings.grid;
        // SAFETY: as `surroundings`; the values outlive them.
        let cores = unsafe { &*surroundings.semaphores };
        let found = (x < columns && y < rows)
            .then(|| usize::try_from(y * columns + x).ok())
            .flatten()
            .and_then(|core| cores.get(core))
            .and_then(|values| values.get(usize::try_from(semaphore).ok()?))
            .filter(|value| value.get().is_some());
        match found {
            Some(value) => value,
            None => self.fail(KernelFault::NoSemaphore { semaphore, x, y }),
        }
    }
}

impl Core {
    /// Waits if what is waited for has not come.
    fn wait_if_needed(&self, waiting: WaitReason) {
        self.waiting.set(waiting);
        match self.can_run() {
            true => self.waiting.set(WaitReason::Nothing),
            false => self.wait(waiting),
        }
    }

    /// The value of a global semaphore on a core.
    fn global_semaphore(&self, access: AccessKind, x: u32, y: u32, address: u32) -> *mut u32 {
        let (columns, rows) = self.surroundings().grid;
        if x >= columns || y >= rows {
            self.fail(KernelFault::NoCore { x, y });
        }
        let place = u64::from(y * columns + x) * GLOBAL_SEMAPHORE_BYTES as u64;
        self.place(access, address, place, 4, 0).cast()
    }

    /// The value of a global semaphore on the kernel's own core, to be read.
    fn own_global_semaphore(&self, address: u32) -> *const u32 {
        self.global_semaphore(AccessKind::Read, self.x.get(), self.y.get(), address)
    }
}

/// The value at a place that [`Core::global_semaphore`] gave.
pub(super) fn global_value(at: *const u32) -> u32 {
    // SAFETY: the place was checked to be inside the memory that stands for the chip's, which
    // outlives every run; an address between two buffers' beginnings may be unaligned.
    unsafe { at.read_unaligned() }
}

// === The calls ===

extern "C" fn wait_for_room(core: &Core, buffer: u32, pages: u32) {
    core.check_call();
    core.wait(WaitReason::Room { buffer, pages });
}

extern "C" fn wait_for_pages(core: &Core, buffer: u32, pages: u32) {
    core.check_call();
    core.wait(WaitReason::Pages { buffer, pages });
}

/// # Safety
/// `to` has room for `bytes` bytes; the kernel's own memory is its author's business, as all C is.
unsafe extern "C" fn read(
    core: &Core,
    address: u32,
    offset: u64,
    bytes: u32,
    page_bytes: u32,
    to: *mut u8,
) {
    let from = core.place(AccessKind::Read, address, offset, bytes, page_bytes);
    // SAFETY: `from` was checked; `to` is this function's contract. They may overlap where a
    // circular buffer lies on top of the buffer.
    core.at_its_memory(|| unsafe { from.copy_to(to, bytes as usize) });
}

/// # Safety
/// There are `bytes` bytes at `from`; see [`read`].
unsafe extern "C" fn write(
    core: &Core,
    address: u32,
    offset: u64,
    bytes: u32,
    page_bytes: u32,
    from: *const u8,
) {
    let to = core.place(AccessKind::Write, address, offset, bytes, page_bytes);
    // SAFETY: `to` was checked; `from` is this function's contract. They may overlap, see `read`.
    core.at_its_memory(|| unsafe { to.copy_from(from, bytes as usize) });
}

extern "C" fn semaphore_read(core: &Core, semaphore: u32) -> u32 {
    let value = core.semaphore_of(core.x.get(), core.y.get(), semaphore);
    value.get().unwrap_or_default()
}

extern "C" fn semaphore_write(core: &Core, x: u32, y: u32, semaphore: u32, value: u32, add: u32) {
    let found = core.semaphore_of(x, y, semaphore);
    let before = if add == 0 { 0 } else { found.get().unwrap_or_default() };
    found.set(Some(before.wrapping_add(value)));
}

extern "C" fn semaphore_wait(core: &Core, semaphore: u32, value: u32, or_more: u32) {
    core.semaphore_of(core.x.get(), core.y.get(), semaphore);
    core.wait_if_needed(WaitReason::Semaphore { semaphore, value, or_more: or_more != 0 });
}

extern "C" fn global_semaphore_read(core: &Core, address: u32) -> u32 {
    global_value(core.own_global_semaphore(address))
}

extern "C" fn global_semaphore_write(
    core: &Core,
    x: u32,
    y: u32,
    address: u32,
    value: u32,
    add: u32,
) {
    let at = core.global_semaphore(AccessKind::Write, x, y, address);
    let before = if add == 0 { 0 } else { global_value(at) };
    // SAFETY: as `global_value`; only the device's thread, which this is, writes there.
    unsafe { at.write_unaligned(before.wrapping_add(value)) };
}

extern "C" fn global_semaphore_wait(core: &Core, address: u32, value: u32, or_more: u32) {
    let at = core.own_global_semaphore(address);
    core.wait_if_needed(WaitReason::GlobalSemaphore { address, at, value, or_more: or_more != 0 });
}

extern "C" fn fault(core: &Core, code: u32, number: u32, limit: u32) -> ! {
    core.fail(KernelFault::from_code(code, number, limit))
}
