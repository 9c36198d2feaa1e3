//! How long kernels may run before they are stopped or, where they cannot be, named.

use std::time::Duration;

/// Processor time; none for no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Timeouts {
    /// Of one kernel, without ending or waiting.
    pub(crate) kernel: Option<Duration>,
    /// Of all kernels of a program, until it has ended.
    pub(crate) program: Option<Duration>,
}

impl Timeouts {
    /// The smaller one.
    pub(crate) fn shortest(self) -> Option<Duration> {
        [self.kernel, self.program].into_iter().flatten().min()
    }
}
