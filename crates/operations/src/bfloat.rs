//! Numbers between the host's `f32` and the upper halves of them that bfloat16 is.

/// Rounds to the nearest bfloat16, to the even one where two are equally near; a NaN stays one.
#[must_use]
pub fn narrow(value: f32) -> u16 {
    let bits = value.to_bits();
    let upper = (bits >> 16) as u16;
    if value.is_nan() {
        return upper | 0x40;
    }
    let rounded = bits.wrapping_add(0x7fff + u32::from(upper & 1));
    (rounded >> 16) as u16
}

/// The number that a bfloat16 stands for, exactly.
#[must_use]
pub fn widen(half: u16) -> f32 {
    f32::from_bits(u32::from(half) << 16)
}

#[cfg(test)]
mod tests {
    use super::{narrow, widen};

    #[test]
    fn rounding_is_to_the_nearest_and_to_even() {
        for (value, expected) in [
            (1.0, 0x3f80),
            (1.0 + 1.0 / 256.0, 0x3f80),
            (1.0 + 3.0 / 256.0, 0x3f82),
            (1.0 + 1.1 / 256.0, 0x3f81),
            (-1.0 - 3.0 / 256.0, 0xbf82),
            (f32::MAX, 0x7f80),
            (f32::INFINITY, 0x7f80),
            (f32::from_bits(1), 0),
            (-0.0, 0x8000),
        ] {
            assert_eq!(narrow(value), expected, "{value}");
        }
        assert!(widen(narrow(f32::NAN)).is_nan());
        assert!(widen(narrow(f32::from_bits(0x7f80_0001))).is_nan(), "a NaN of low bits only");
    }

    #[test]
    fn every_bfloat16_survives_the_way_there_and_back() {
        for half in 0..=u16::MAX {
            let value = widen(half);
            assert!(narrow(value) == half || value.is_nan(), "{half:#x}");
        }
    }
}
