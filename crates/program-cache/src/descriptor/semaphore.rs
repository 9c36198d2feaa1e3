//! One semaphore of a program.

use crate::cores::CoreRanges;
use crate::key::ProgramKey;

/// A counter in the memory of each of some cores.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SemaphoreDescriptor {
    /// What kernels call it; once for each core type and core.
    pub id: u32,
    /// What the cores are for.
    pub core_type: CoreType,
    /// Where it is.
    pub core_ranges: CoreRanges,
    /// What it is set to before each dispatch.
    pub initial_value: u32,
}

/// What a core is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord, ProgramKey)]
pub enum CoreType {
    /// Computing.
    #[default]
    Worker,
    /// Links to other chips.
    Ethernet,
}
