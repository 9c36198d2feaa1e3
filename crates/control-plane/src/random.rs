//! Random numbers for the drivers: to distinguish lives and jobs, and to spread what would happen at once.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

/// Draws a number. The keys of a hasher are drawn from the system's random numbers; nothing secret depends on it.
pub(crate) fn draw() -> u64 {
    RandomState::new().build_hasher().finish()
}
