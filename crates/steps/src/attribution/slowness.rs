//! How slow a rank or a link is, and what that costs.

/// How slow a rank or a link is against others of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Slowness {
    /// How many times as long it takes.
    pub ratio: f64,
    /// What a step would take less without that, in nanoseconds, once those before it in the list take what is usual:
    /// one of them may hide it. These costs add up.
    pub cost_ns: f64,
    /// What a step would take less without that if nothing else were slow, in nanoseconds.
    pub alone_ns: f64,
    /// In how many of the steps it was slow.
    pub slow_steps: u32,
    /// Of how many.
    pub steps: u32,
}

/// Puts these in order, the costliest alone first.
pub(super) fn sort<T: AsRef<Slowness>>(slow: &mut [T]) {
    slow.sort_by(|one, other| other.as_ref().alone_ns.total_cmp(&one.as_ref().alone_ns));
}

/// Bounds what these cost together by `lost_ns`: those that were not priced with the others may have lost it to them.
pub(super) fn bound<T: AsMut<Slowness>>(slow: &mut [T], mut lost_ns: f64) {
    for one in slow {
        let slowness = one.as_mut();
        slowness.cost_ns = slowness.cost_ns.min(lost_ns);
        lost_ns -= slowness.cost_ns;
    }
}

/// Puts these in order and says what each costs once those before it take what is usual. `cost_ns` says what some cost
/// together.
pub(super) fn price<T>(slow: &mut [T], cost_ns: impl Fn(&[T]) -> f64)
where
    T: AsRef<Slowness> + AsMut<Slowness>,
{
    sort(slow);
    let mut rest_ns = 0.0;
    for place in (0..slow.len()).rev() {
        let own_ns = (cost_ns(&slow[place..]) - rest_ns).max(0.0);
        slow[place].as_mut().cost_ns = own_ns;
        rest_ns += own_ns;
    }
}
