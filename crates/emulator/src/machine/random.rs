//! Numbers that look random and follow from a seed. Not for secrets.

/// A 64-bit number that depends on every bit of both inputs (the finalizer of SplitMix64).
pub(crate) const fn mixed(seed: u64, index: u64) -> u64 {
    let mut bits = seed ^ index.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(17);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

/// A number from −1 (included) to 1 (excluded).
pub(crate) fn swing(seed: u64, index: u64) -> f64 {
    let bits = u32::try_from(mixed(seed, index) >> 32).expect("32 bits remain");
    f64::from(bits) / f64::from(1u32 << 31) - 1.0
}
