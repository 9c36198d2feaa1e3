//! Random numbers that are counted: each is a function of a seed, a stream and a place in it. So
//! there is no state to save, and no order in which they must be asked for.
//!
//! Seed, stream and place go through the finaliser of SplitMix64 (Steele, Lea and Flood, 2014),
//! one after the other. `tools/gpt_reference.py` has the same function.

/// The odd number nearest to 2⁶⁴ divided by the golden ratio.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The streams of one seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RandomStream {
    /// The initial values of a weight, by its number in [`crate::Weights::iter`].
    Weight(u32),
    /// Where the windows of text begin.
    Windows,
}

/// A number of 64 random bits.
#[must_use]
pub fn bits(seed: u64, stream: RandomStream, place: u64) -> u64 {
    let stream = match stream {
        RandomStream::Windows => 0,
        RandomStream::Weight(number) => u64::from(number) + 1,
    };
    mix(mix(mix(seed).wrapping_add(stream)).wrapping_add(place))
}

/// A number from -1 up to, but not including, 1: a multiple of 2⁻²³, so exact in an `f32`.
#[must_use]
pub fn signed_unit(seed: u64, stream: RandomStream, place: u64) -> f32 {
    let upper = bits(seed, stream, place) >> 40;
    (upper as f32 - 8_388_608.0) / 8_388_608.0
}

/// A number below `limit`, which must not be 0 and should be far below 2⁶⁴.
#[must_use]
pub fn below(seed: u64, stream: RandomStream, place: u64, limit: u64) -> u64 {
    bits(seed, stream, place) % limit
}

fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(STEP);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::{RandomStream, bits, mix, signed_unit};

    #[test]
    fn the_finaliser_is_that_of_splitmix64() {
        // The first outputs of the published generator with state 1234567.
        let outputs = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973];
        let state = 1_234_567_u64;
        assert_eq!([mix(state), mix(state.wrapping_add(super::STEP))], outputs);
    }

    #[test]
    fn seeds_streams_and_places_all_matter() {
        let streams = [RandomStream::Windows, RandomStream::Weight(0), RandomStream::Weight(1)];
        let mut seen: Vec<u64> = (0..3)
            .flat_map(|seed| streams.map(|stream| (0..3).map(move |at| bits(seed, stream, at))))
            .flatten()
            .collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 27);
    }

    #[test]
    fn units_fill_their_range_evenly() {
        let count = 10_000;
        let units: Vec<f64> =
            (0..count).map(|at| f64::from(signed_unit(7, RandomStream::Weight(2), at))).collect();
        assert!(units.iter().all(|unit| (-1.0..1.0).contains(unit)));
        let mean = units.iter().sum::<f64>() / 1e4;
        let variance = units.iter().map(|unit| unit * unit).sum::<f64>() / 1e4;
        assert!(mean.abs() < 0.02, "{mean}");
        assert!((variance - 1.0 / 3.0).abs() < 0.01, "{variance}");
    }
}
