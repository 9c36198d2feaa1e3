//! Interrupting calls that wait: a host language whose signal handlers run only between its own instructions has
//! them run here, about ten times a second. Without one, nothing is interrupted.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// How often is asked.
pub(crate) const PERIOD: Duration = Duration::from_millis(100);

static CHECK: OnceLock<fn() -> bool> = OnceLock::new();

thread_local! {
    /// What this thread works for.
    static CALL: RefCell<Option<InterruptibleCall>> = const { RefCell::new(None) };
}

/// A call that has others work for it, on threads of their own.
#[derive(Debug, Clone, Default)]
pub(crate) struct InterruptibleCall(Arc<AtomicBool>);

/// Has calls that wait for an accelerator or a compiler ask `check`, on the calling thread, whether they are to
/// return with [`ExecutionError::Interrupted`](crate::ExecutionError::Interrupted) or
/// [`CompilerError::Interrupted`](crate::CompilerError::Interrupted). It holds for the whole process; a second call
/// changes nothing.
pub fn interrupt_waits(check: fn() -> bool) {
    CHECK.get_or_init(|| check);
}

/// Whether anyone is to be asked.
pub(crate) fn are_possible() -> bool {
    CHECK.get().is_some()
}

/// Whether the calling thread is to stop waiting.
pub(crate) fn are_pending() -> bool {
    CHECK.get().is_some_and(|check| check())
}

/// What is asked, if anything is.
pub(crate) fn check() -> Option<fn() -> bool> {
    CHECK.get().copied()
}

/// Whether this thread is to stop waiting: the call that it works for was interrupted, or it works for none and is
/// interrupted itself.
pub(crate) fn end_waiting() -> bool {
    let call = CALL.with_borrow(|call| call.as_ref().map(|call| call.0.load(Ordering::Relaxed)));
    call.unwrap_or_else(are_pending)
}

impl InterruptibleCall {
    /// Has this thread work for the call from now on.
    pub(crate) fn begin_work(&self) {
        CALL.set(Some(self.clone()));
    }

    /// Interrupts the call if it is to stop waiting. Those who work for it see that.
    pub(crate) fn check(&self) {
        if are_pending() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}
