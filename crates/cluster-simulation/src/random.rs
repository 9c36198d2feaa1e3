//! Random numbers that follow from a seed alone, on every machine the same.
//!
//! Good enough to draw faults; not for secrets.

use std::time::Duration;

/// A generator of numbers: SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number
/// generators", 2014), a counter and a mixing function.
#[derive(Debug, Clone)]
pub struct Random {
    counter: u64,
}

impl Random {
    /// The generator of `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { counter: seed }
    }

    /// The next 64 bits.
    pub const fn bits(&mut self) -> u64 {
        self.counter = self.counter.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.counter ^ (self.counter >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A generator of its own, so that what one part draws changes nothing in another.
    pub const fn split(&mut self) -> Self {
        Self::new(self.bits())
    }

    /// A number below `bound`, or 0 where that is 0; uneven by at most `bound` in 2^64.
    pub const fn below(&mut self, bound: u64) -> u64 {
        let wide = self.bits() as u128 * bound as u128;
        (wide >> 64) as u64
    }

    /// The index of one of `length` things; `None` where there is none.
    pub fn index(&mut self, length: usize) -> Option<usize> {
        let bound = u64::try_from(length).ok().filter(|bound| *bound > 0)?;
        usize::try_from(self.below(bound)).ok()
    }

    /// A number from 0 up to, and without, 1.
    pub fn unit(&mut self) -> f64 {
        // 53 bits are what a double holds exactly.
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Whether something of this probability happens.
    pub fn happens(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// A number of the normal distribution with mean 0 and deviation 1 (Box and Muller, 1958).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// A time from `least` up to, and without, `most`; `least` where that is not shorter.
    pub fn duration(&mut self, least: Duration, most: Duration) -> Duration {
        let span_ns = u64::try_from(most.saturating_sub(least).as_nanos()).unwrap_or(u64::MAX);
        least + Duration::from_nanos(self.below(span_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_that_were_published() {
        // The first outputs for seed 1234567, as Rosetta Code's task "Pseudo-random numbers/Splitmix64" has them.
        let mut random = Random::new(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| random.bits()).collect();
        let published =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(first, published);
    }

    #[test]
    fn draws_stay_within_their_bounds() {
        let mut random = Random::new(7);
        let least = Duration::from_millis(2);
        for _ in 0..1000 {
            assert!(random.below(10) < 10);
            assert!((0.0..1.0).contains(&random.unit()));
            let drawn = random.duration(least, least * 2);
            assert!(drawn >= least && drawn < least * 2);
        }
        assert_eq!(random.index(0), None);
        assert_eq!(random.duration(least, least), least);
    }

    #[test]
    fn normal_numbers_have_their_mean_and_deviation() {
        let mut random = Random::new(11);
        let drawn: Vec<f64> = (0..20_000).map(|_| random.normal()).collect();
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        let variance =
            drawn.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / drawn.len() as f64;
        assert!(mean.abs() < 0.03, "{mean}");
        assert!((variance - 1.0).abs() < 0.05, "{variance}");
    }
}
