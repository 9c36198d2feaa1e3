//! Limits on how many of something there are at once, for each user and for all.
//!
//! One user who takes all that is allowed leaves the others theirs, and a reserve is kept for those
//! who see everything, so that no user can lock out the operator.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::access::{Caller, Visibility};
use crate::service::Tally;

/// How many there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GateLimits {
    /// Of all.
    pub(super) all: usize,
    /// Of one user who does not see everything; the network is one user.
    pub(super) each: usize,
    /// Of all that are left to those who see everything.
    pub(super) reserve: usize,
}

/// Lets in up to its limits.
#[derive(Debug)]
pub(super) struct Gate {
    limits: GateLimits,
    refused: Tally,
    inside: Mutex<Inside>,
}

#[derive(Debug, Default)]
struct Inside {
    all: usize,
    each: BTreeMap<Whose, usize>,
}

/// Who is counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Whose {
    User(u32),
    Network,
    Privileged,
}

/// The right to be inside, until it is dropped.
#[derive(Debug)]
pub(super) struct Permit {
    gate: Arc<Gate>,
    whose: Whose,
}

impl Gate {
    pub(super) fn new(limits: GateLimits, refused: Tally) -> Arc<Self> {
        Arc::new(Self { limits, refused, inside: Mutex::default() })
    }

    /// Lets `caller` in, or counts a refusal.
    pub(super) fn enter(
        self: &Arc<Self>,
        caller: &Caller,
        visibility: Visibility,
    ) -> Option<Permit> {
        let whose = match (visibility, caller) {
            (Visibility::Everything, _) => Whose::Privileged,
            (_, Caller::Local { uid, .. } | Caller::Loopback { uid }) => Whose::User(*uid),
            _ => Whose::Network,
        };
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        let (all, each) = if whose == Whose::Privileged {
            (self.limits.all, self.limits.all)
        } else {
            (self.limits.all.saturating_sub(self.limits.reserve), self.limits.each)
        };
        let same = inside.each.get(&whose).copied().unwrap_or_default();
        if inside.all >= all || same >= each {
            drop(inside);
            self.refused.add(1);
            return None;
        }
        inside.all += 1;
        inside.each.insert(whose, same + 1);
        Some(Permit { gate: Arc::clone(self), whose })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut inside = self.gate.inside.lock().unwrap_or_else(PoisonError::into_inner);
        inside.all -= 1;
        let left = inside.each.get_mut(&self.whose).map(|count| {
            *count -= 1;
            *count
        });
        if left == Some(0) {
            inside.each.remove(&self.whose);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Gate, GateLimits};
    use crate::access::{Caller, Visibility};
    use crate::service::Tally;

    #[test]
    fn each_has_a_share_and_the_operator_a_reserve() {
        let refused = Tally::default();
        let gate = Gate::new(GateLimits { all: 6, each: 2, reserve: 2 }, refused.clone());
        let user =
            |uid| (Caller::Local { uid, gid: uid, groups: Vec::new() }, Visibility::Own { uid });
        let enter = |(caller, visibility): (Caller, Visibility)| gate.enter(&caller, visibility);
        let network = || (Caller::Anonymous, Visibility::DevicesOnly);
        let root = || (Caller::Token, Visibility::Everything);
        let mut inside: Vec<_> = [enter(user(1)), enter(user(1)), enter(user(2))].into();
        assert!(inside.iter().all(Option::is_some));
        assert!(enter(user(1)).is_none(), "one user's share");
        inside.push(enter(network()));
        assert!(enter(network()).is_none(), "all but the reserve are taken");
        inside.extend([enter(root()), enter(root())]);
        assert!(inside.iter().all(Option::is_some));
        assert!(enter(root()).is_none());
        assert_eq!(refused.total(), 3);
        inside.remove(0);
        assert!(enter(user(1)).is_none(), "the operator may take more than the reserve");
        inside.clear();
        assert!(gate.inside.lock().unwrap().each.is_empty());
        assert!(enter(user(1)).is_some());
    }
}
