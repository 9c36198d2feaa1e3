//! Values back into the codes of a data type, for captures that hold numbers as text.
//!
//! What was decoded comes back as the same code, save for the payload of a NaN.

use crate::dtype::{Dtype, ElementValue};

impl Dtype {
    /// Appends the code that stands for a value, little-endian: the nearest one where a float has
    /// none of its own. False, and nothing is appended, when the type has nothing like it.
    #[must_use]
    pub fn encode(self, value: ElementValue, out: &mut Vec<u8>) -> bool {
        let code = match value {
            ElementValue::Float(_) if self.float_shape().is_none() => None,
            _ if self.float_shape().is_some() => self.float_code(value.to_f64()),
            ElementValue::Signed(value) => self.integer_code(i128::from(value)),
            ElementValue::Unsigned(value) => self.integer_code(i128::from(value)),
            ElementValue::Float(_) => None,
        };
        let Some(code) = code else { return false };
        out.extend_from_slice(&code.to_le_bytes()[..self.element_bytes()]);
        true
    }

    fn integer_code(self, value: i128) -> Option<u64> {
        let bits = 8 * u32::try_from(self.element_bytes()).ok()?;
        let is_signed = matches!(self, Self::Int8 | Self::Int16 | Self::Int32 | Self::Int64);
        let (least, most) = if is_signed {
            (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1)
        } else {
            (0, (1_i128 << bits) - 1)
        };
        if !(least..=most).contains(&value) {
            return None;
        }
        // The low bytes of two's complement are the code.
        value.to_le_bytes().first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
    }

    fn float_code(self, value: f64) -> Option<u64> {
        if matches!(self, Self::Float32 | Self::Float32r) {
            #[allow(clippy::cast_possible_truncation, reason = "the nearest is what is wanted")]
            let nearest = value as f32;
            return Some(nearest.to_bits().into());
        }
        let sign_bit = self.float_shape()?.sign_bit();
        // Without the sign, codes grow with their values, then come infinity and the NaNs.
        let at = |code: u64| self.value(&code.to_le_bytes()[..self.element_bytes()]);
        let found = |code: u64| at(code).map_or(f64::NAN, ElementValue::to_f64);
        let sign = if value.is_sign_negative() { sign_bit } else { 0 };
        if value.is_nan() {
            return (0..sign_bit).rev().find(|&code| found(code).is_nan()).map(|code| code | sign);
        }
        let (mut low, mut high) = (0, sign_bit);
        while low < high {
            let middle = low.midpoint(high);
            if found(middle) < value.abs() { low = middle + 1 } else { high = middle }
        }
        let distance = |code: u64| (found(code) - value.abs()).abs();
        let below = low.saturating_sub(1);
        // Infinity has no distance to itself.
        let is_above =
            low < sign_bit && (found(low) == value.abs() || distance(low) < distance(below));
        let nearest = if is_above { low } else { below };
        (found(nearest).is_infinite() == value.is_infinite()).then_some(nearest | sign)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(dtype: Dtype, code: &[u8]) {
        let value = dtype.value(code).unwrap();
        let mut back = Vec::new();
        assert!(dtype.encode(value, &mut back), "{dtype:?} {code:?}");
        let again = dtype.value(&back).unwrap();
        let is_nan = value.to_f64().is_nan() && again.to_f64().is_nan();
        assert!(
            is_nan || value.to_f64().to_bits() == again.to_f64().to_bits(),
            "{dtype:?} {code:?}"
        );
    }

    #[test]
    fn every_code_of_up_to_two_bytes_comes_back() {
        for dtype in Dtype::ALL {
            match dtype.element_bytes() {
                1 => (0..=u8::MAX).for_each(|code| check(dtype, &[code])),
                2 => (0..=u16::MAX).step_by(7).for_each(|code| check(dtype, &code.to_le_bytes())),
                bytes => {
                    for pattern in [0, 1, 0x7f, 0x80, 0xff] {
                        check(dtype, &vec![pattern; bytes]);
                    }
                }
            }
        }
    }

    #[test]
    fn what_a_type_cannot_hold_is_refused() {
        for (dtype, value) in [
            (Dtype::Int8, ElementValue::Signed(128)),
            (Dtype::Uint8, ElementValue::Signed(-1)),
            (Dtype::Int64, ElementValue::Unsigned(u64::MAX)),
            (Dtype::Int32, ElementValue::Float(1.5)),
            (Dtype::Float4e2m1fnX4, ElementValue::Float(f64::NAN)),
            (Dtype::Float8e4m3fn, ElementValue::Float(f64::INFINITY)),
        ] {
            let mut out = Vec::new();
            assert!(!dtype.encode(value, &mut out) && out.is_empty(), "{dtype:?} {value:?}");
        }
    }
}
