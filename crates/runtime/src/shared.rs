//! What all handles of one runtime share.

use crate::options::Options;
use crate::problem::{DeferredProblem, Problems};

/// What all handles of one runtime share.
pub(crate) struct RuntimeShared {
    pub(crate) id: u64,
    pub(crate) options: Options,
    pub(crate) problems: Problems,
}

impl RuntimeShared {
    pub(crate) fn is_enabled(&self) -> bool {
        !self.options.disabled
    }

    /// Reports problems; the cold lock must not be held, for the application may be called back.
    pub(crate) fn tell(&self, troubles: Vec<DeferredProblem>) {
        for trouble in troubles {
            self.problems.tell(trouble.step, &*trouble.error, trouble.remedy);
        }
    }
}
