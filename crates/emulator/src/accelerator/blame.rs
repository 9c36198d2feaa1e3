//! Whose fault it is that a buffer does not hold what it should.
//!
//! A program that fails, or is not run because it shares a buffer with one that failed, leaves its
//! buffers undone. A reader of such a buffer learns which operation failed. Programs that share none
//! of them run as ever. Once that was reported, programs that use the buffers run again, and a
//! buffer that one of them writes is done. `finish` forgets all of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::memory::Buffer;
use crate::kernels::ExecutionError;

/// One thing that went wrong.
#[derive(Debug)]
pub(super) struct BlamedFault {
    error: Arc<ExecutionError>,
    /// It was reported.
    is_reported: AtomicBool,
    /// How often everything was forgotten before.
    era: u64,
}

/// What a buffer knows of why it is undone.
#[derive(Debug, Default)]
pub(super) struct Undone(Mutex<Option<FaultCause>>);

#[derive(Debug, Clone)]
struct FaultCause {
    fault: Arc<BlamedFault>,
    /// The operation that should have done it, if it was not the one that failed.
    not_run: Option<&'static str>,
}

/// What went wrong and is not forgotten. The device's thread has it.
#[derive(Debug, Default)]
pub(super) struct Faults {
    /// What `finish` is to tell.
    first: Option<Arc<BlamedFault>>,
    era: u64,
    /// A buffer may be undone.
    any: bool,
}

impl Undone {
    fn cause(&self) -> Option<FaultCause> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, cause: Option<FaultCause>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = cause;
    }
}

impl Faults {
    /// Whether a buffer may be undone.
    pub(super) fn are_any(&self) -> bool {
        self.any
    }

    /// Notes that an operation failed and left these buffers undone.
    pub(super) fn note(
        &mut self,
        operation: Option<&'static str>,
        error: ExecutionError,
        buffers: &[Arc<Buffer>],
    ) {
        let mut error = Arc::new(error);
        if let Some(operation) = operation {
            error = Arc::new(ExecutionError::Operation { operation, source: error });
        }
        let fault =
            Arc::new(BlamedFault { error, is_reported: AtomicBool::new(false), era: self.era });
        self.any = true;
        for buffer in buffers {
            let cause = FaultCause { fault: Arc::clone(&fault), not_run: None };
            buffer.undone().set(Some(cause));
        }
        self.first.get_or_insert(fault);
    }

    /// Whether a program must not run, because one that was not reported has left one of its
    /// buffers undone. Then all of them are.
    pub(super) fn forbid(&self, operation: Option<&'static str>, buffers: &[Arc<Buffer>]) -> bool {
        let causes = buffers.iter().filter_map(|buffer| self.cause(buffer));
        let mut untold = causes.filter(|cause| !cause.fault.is_reported.load(Ordering::Relaxed));
        let Some(FaultCause { fault, .. }) = untold.next() else { return false };
        for buffer in buffers {
            if self.cause(buffer).is_none() {
                let cause = FaultCause { fault: Arc::clone(&fault), not_run: operation };
                buffer.undone().set(Some(cause));
            }
        }
        true
    }

    /// Notes that a buffer holds what it should.
    pub(super) fn is_done(&self, buffer: &Buffer) {
        buffer.undone().set(None);
    }

    /// Why a buffer is undone, if it is, for its reader.
    pub(super) fn why(&self, buffer: &Buffer) -> Result<(), ExecutionError> {
        let Some(FaultCause { fault, not_run }) = self.cause(buffer) else { return Ok(()) };
        let source = Arc::clone(&fault.error);
        Err(match not_run {
            Some(operation) => ExecutionError::NotRun { operation, source },
            None => Arc::unwrap_or_clone(source),
        })
    }

    /// Notes that it was reported why a buffer is undone.
    pub(super) fn is_reported(&self, buffer: &Buffer) {
        if let Some(FaultCause { fault, .. }) = self.cause(buffer) {
            fault.is_reported.store(true, Ordering::Relaxed);
        }
    }

    /// What went wrong first, for `finish`.
    pub(super) fn first(&self) -> Result<(), ExecutionError> {
        let first = self.first.as_ref().map(|fault| ExecutionError::clone(&fault.error));
        first.map_or(Ok(()), Err)
    }

    /// Forgets everything: `finish` has reported it.
    pub(super) fn forget(&mut self) {
        *self = Self { first: None, era: self.era + 1, any: false };
    }

    fn cause(&self, buffer: &Buffer) -> Option<FaultCause> {
        let cause = self.any.then(|| buffer.undone().cause()).flatten();
        cause.filter(|cause| cause.fault.era == self.era)
    }
}
