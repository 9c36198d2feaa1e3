//! Sums of floating-point numbers that do not depend on the order of their parts: a counter that is
//! smaller by its last bit, because parts came in another order, would look as if all had restarted.

/// A sum with the part of it that a number of 64 bits has no room for.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Total {
    value: f64,
    rest: f64,
}

impl Total {
    /// One part.
    pub fn of(value: f64) -> Self {
        Self { value, rest: 0.0 }
    }

    /// The sum, as near as 64 bits come to it.
    pub fn value(self) -> f64 {
        self.value
    }

    /// Both together (the sum of two double doubles, by T. J. Dekker and D. E. Knuth).
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let (value, low) = two_sum(self.value, other.value);
        if !value.is_finite() {
            return Self::of(value);
        }
        let (rest, lowest) = two_sum(self.rest, other.rest);
        let (value, low) = two_sum(value, low + rest);
        let (value, rest) = two_sum(value, low + lowest);
        Self { value, rest }
    }

    /// What has to be added to come to nothing.
    #[must_use]
    pub fn negated(self) -> Self {
        Self { value: -self.value, rest: -self.rest }
    }
}

/// The sum and what rounding took from it.
fn two_sum(one: f64, other: f64) -> (f64, f64) {
    let sum = one + other;
    let of_other = sum - one;
    (sum, (one - (sum - of_other)) + (other - of_other))
}

#[cfg(test)]
mod tests {
    use super::Total;

    #[test]
    fn the_order_of_the_parts_changes_nothing() {
        let parts = [0.1, 0.2, 0.3];
        let plain = |parts: &mut dyn Iterator<Item = f64>| parts.fold(0.0, |sum, part| sum + part);
        let exact = |parts: &mut dyn Iterator<Item = f64>| {
            parts.map(Total::of).fold(Total::default(), Total::plus).value()
        };
        let both = |sum: &dyn Fn(&mut dyn Iterator<Item = f64>) -> f64| {
            [sum(&mut parts.into_iter()), sum(&mut parts.into_iter().rev())].map(f64::to_bits)
        };
        let [forwards, backwards] = both(&plain);
        assert!(forwards != backwards, "these parts show nothing");
        let [forwards, backwards] = both(&exact);
        assert_eq!(forwards, backwards);
        let gone = Total::of(0.1).plus(Total::of(0.2)).plus(Total::of(0.1).negated());
        assert!(gone.value() == 0.2, "{gone:?}");
        for odd in [f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
            let sum = Total::of(1.0).plus(Total::of(odd)).value();
            assert!(sum.to_bits() == odd.to_bits(), "{odd}");
        }
    }
}
