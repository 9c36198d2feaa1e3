//! What all handles of one runtime share.

use crate::options::Options;
use crate::problem::{Problems, Trouble};

/// What all handles of one runtime share.
pub(crate) struct Shared {
    pub(crate) id: u64,
    pub(crate) options: Options,
    pub(crate) problems: Problems,
}

impl Shared {
    pub(crate) fn is_enabled(&self) -> bool {
        !self.options.disabled
    }

    /// Tells of troubles; the cold lock must not be held, for the application may be called back.
    pub(crate) fn tell(&self, troubles: Vec<Trouble>) {
        for trouble in troubles {
            self.problems.tell(trouble.step, &*trouble.error, trouble.remedy);
        }
    }
}
