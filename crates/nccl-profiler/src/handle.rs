//! What NCCL is given in place of a pointer: a number that says which event is meant.
//!
//! NCCL hands these back, sometimes those of another process whose network operations this one's proxy
//! thread carries out. Since none is an address, the worst that a wrong one can do is to find nothing.
//! Generations begin at a number that each process draws, so another's handles find nothing either.

use crate::pool::PoolIndex;

/// Steps of an operation that are distinguished at a time: NCCL has at most 8 under way (`NCCL_STEPS`).
pub(crate) const STEPS: usize = 8;

/// What a handle stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Handle {
    /// A communicator: NCCL's `context`.
    Communicator(PoolIndex),
    /// A collective, or a send or receive that a program asked for.
    Task(PoolIndex),
    /// An operation of the proxy thread.
    Operation(PoolIndex),
    /// A step of an operation, and which of the [`STEPS`].
    Step(PoolIndex, u8),
    /// A channel of a task's kernel.
    Kernel(PoolIndex),
}

impl Handle {
    /// As a number, which is never 0: kind (3 bits), step (3), slot (16), nothing (10), generation.
    pub(crate) fn number(self) -> u64 {
        let (kind, step, place) = match self {
            Self::Communicator(place) => (1, 0, place),
            Self::Task(place) => (2, 0, place),
            Self::Operation(place) => (3, 0, place),
            Self::Step(place, step) => (4, step & 7, place),
            Self::Kernel(place) => (5, 0, place),
        };
        let PoolIndex { slot, generation } = place;
        kind | (u64::from(step) << 3) | (u64::from(slot) << 6) | (u64::from(generation) << 32)
    }

    /// What the number stands for, if it is one of [`Handle::number`].
    pub(crate) fn from_number(number: u64) -> Option<Self> {
        let slot = u16::try_from((number >> 6) & 0xffff).ok()?;
        let generation = u32::try_from(number >> 32).ok()?;
        let step = u8::try_from((number >> 3) & 7).ok()?;
        let place = PoolIndex { slot, generation };
        let handle = match number & 7 {
            1 => Self::Communicator(place),
            2 => Self::Task(place),
            3 => Self::Operation(place),
            4 => Self::Step(place, step),
            5 => Self::Kernel(place),
            _ => return None,
        };
        (handle.number() == number).then_some(handle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_survives_being_a_number_and_no_other_number_is_one() {
        let place = PoolIndex { slot: 0xfedc, generation: 0x89ab_cdef };
        for handle in [
            Handle::Communicator(place),
            Handle::Task(place),
            Handle::Operation(place),
            Handle::Step(place, 7),
            Handle::Kernel(place),
        ] {
            let number = handle.number();
            assert_eq!(Handle::from_number(number), Some(handle));
            assert_eq!(Handle::from_number(number | (1 << 25)), None, "{handle:?}");
        }
        for number in [0, 6, 7, Handle::Task(place).number() | 8] {
            assert_eq!(Handle::from_number(number), None, "{number:x}");
        }
    }
}
