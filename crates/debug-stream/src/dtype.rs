//! The 19 data types of the stream, and the exact value of each of their codes.

/// A data type by its published name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Dtype {
    Int8,
    Int16,
    Int32,
    Int64,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Float16,
    Float32,
    Bfloat16,
    /// Like IEEE 754 with 3 bits of exponent: infinities, and NaNs with the same exponent.
    Float8e3m4,
    /// Likewise with 4 bits.
    Float8e4m3,
    /// Without infinities; one NaN of each sign.
    Float8e4m3fn,
    Float8e5m2,
    /// float32 that the device may round; stored as float32.
    Float32r,
    /// One value a byte, in its lower half; four to a unit of the device.
    Float4e2m1fnX4,
    /// Four to a unit of the device.
    Float8e4m3fnX4,
    /// Likewise.
    Float8e5m2X4,
}

/// One element's value. Every float of the stream is exact as an `f64`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ElementValue {
    /// Of a signed type.
    Signed(i64),
    /// Of an unsigned type.
    Unsigned(u64),
    /// Of a floating-point type.
    Float(f64),
}

/// How a floating-point type is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FloatShape {
    exponent_bits: u32,
    mantissa_bits: u32,
    bias: i32,
    special: Special,
}

/// What the largest exponent stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Special {
    /// Infinity, and NaN where the mantissa is not 0.
    Ieee,
    /// Numbers, save for NaN where the mantissa is all ones.
    OneNan,
    /// Numbers.
    None,
}

const fn float(exponent_bits: u32, mantissa_bits: u32, bias: i32, special: Special) -> FloatShape {
    FloatShape { exponent_bits, mantissa_bits, bias, special }
}

// === impl Dtype ===

impl Dtype {
    /// All of them.
    pub const ALL: [Self; 19] = [
        Self::Int8,
        Self::Int16,
        Self::Int32,
        Self::Int64,
        Self::Uint8,
        Self::Uint16,
        Self::Uint32,
        Self::Uint64,
        Self::Float16,
        Self::Float32,
        Self::Bfloat16,
        Self::Float8e3m4,
        Self::Float8e4m3,
        Self::Float8e4m3fn,
        Self::Float8e5m2,
        Self::Float32r,
        Self::Float4e2m1fnX4,
        Self::Float8e4m3fnX4,
        Self::Float8e5m2X4,
    ];

    /// Its published name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Int8 => "int8",
            Self::Int16 => "int16",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Uint8 => "uint8",
            Self::Uint16 => "uint16",
            Self::Uint32 => "uint32",
            Self::Uint64 => "uint64",
            Self::Float16 => "float16",
            Self::Float32 => "float32",
            Self::Bfloat16 => "bfloat16",
            Self::Float8e3m4 => "float8e3m4",
            Self::Float8e4m3 => "float8e4m3",
            Self::Float8e4m3fn => "float8e4m3fn",
            Self::Float8e5m2 => "float8e5m2",
            Self::Float32r => "float32r",
            Self::Float4e2m1fnX4 => "float4e2m1fn_x4",
            Self::Float8e4m3fnX4 => "float8e4m3fn_x4",
            Self::Float8e5m2X4 => "float8e5m2_x4",
        }
    }

    /// The type of this name, compared exactly.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dtype| dtype.name() == name)
    }

    /// Bytes of one element.
    #[must_use]
    pub fn element_bytes(self) -> usize {
        match self {
            Self::Int64 | Self::Uint64 => 8,
            Self::Int32 | Self::Uint32 | Self::Float32 | Self::Float32r => 4,
            Self::Int16 | Self::Uint16 | Self::Float16 | Self::Bfloat16 => 2,
            _ => 1,
        }
    }

    /// Whether the device keeps four elements in one unit of 4 bytes.
    #[must_use]
    pub fn is_packed(self) -> bool {
        matches!(self, Self::Float4e2m1fnX4 | Self::Float8e4m3fnX4 | Self::Float8e5m2X4)
    }

    /// The layout of a floating-point type; none for an integer.
    pub(crate) fn float_shape(self) -> Option<FloatShape> {
        Some(match self {
            Self::Float16 => float(5, 10, 15, Special::Ieee),
            Self::Float32 | Self::Float32r => float(8, 23, 127, Special::Ieee),
            Self::Bfloat16 => float(8, 7, 127, Special::Ieee),
            Self::Float8e3m4 => float(3, 4, 3, Special::Ieee),
            Self::Float8e4m3 => float(4, 3, 7, Special::Ieee),
            Self::Float8e4m3fn | Self::Float8e4m3fnX4 => float(4, 3, 7, Special::OneNan),
            Self::Float8e5m2 | Self::Float8e5m2X4 => float(5, 2, 15, Special::Ieee),
            Self::Float4e2m1fnX4 => float(2, 1, 1, Special::None),
            _ => return None,
        })
    }

    /// The layout whose neighbours a value's text must distinguish it from: the type's own, but that of
    /// float32 for a type so small that its few exact digits say more.
    pub(crate) fn reported_among(self) -> Option<FloatShape> {
        if self.element_bytes() == 1 && self.float_shape().is_some() {
            return Self::Float32.float_shape();
        }
        self.float_shape()
    }

    /// The value of one element's bytes, little-endian; none if there are not as many as
    /// [`Dtype::element_bytes`].
    #[must_use]
    pub fn value(self, bytes: &[u8]) -> Option<ElementValue> {
        if bytes.len() != self.element_bytes() {
            return None;
        }
        let mut whole = [0; 8];
        whole[..bytes.len()].copy_from_slice(bytes);
        let code = u64::from_le_bytes(whole);
        if let Some(shape) = self.float_shape() {
            return Some(ElementValue::Float(shape.value(code)));
        }
        // Shifting to the top and back repeats the sign.
        let unused_bits = 64 - 8 * u32::try_from(bytes.len()).ok()?;
        Some(match self {
            Self::Int8 | Self::Int16 | Self::Int32 | Self::Int64 => {
                ElementValue::Signed((code << unused_bits).cast_signed() >> unused_bits)
            }
            _ => ElementValue::Unsigned(code),
        })
    }
}

// === impl ElementValue ===

impl ElementValue {
    /// The value as the nearest `f64`; exact for floats, and for integers up to 2^53.
    #[must_use]
    pub fn to_f64(self) -> f64 {
        match self {
            #[allow(clippy::cast_precision_loss, reason = "the nearest is what is asked for")]
            Self::Signed(value) => value as f64,
            #[allow(clippy::cast_precision_loss, reason = "the nearest is what is asked for")]
            Self::Unsigned(value) => value as f64,
            Self::Float(value) => value,
        }
    }
}

// === impl FloatShape ===

impl FloatShape {
    /// The value of a code; what lies above the sign is ignored.
    fn value(self, code: u64) -> f64 {
        let mantissa_mask = (1 << self.mantissa_bits) - 1;
        let exponent_mask = (1 << self.exponent_bits) - 1;
        let mantissa = code & mantissa_mask;
        let exponent = (code >> self.mantissa_bits) & exponent_mask;
        let negative = (code >> (self.mantissa_bits + self.exponent_bits)) & 1 == 1;
        let is_largest = exponent == exponent_mask;
        let magnitude = match self.special {
            Special::Ieee if is_largest && mantissa == 0 => f64::INFINITY,
            Special::Ieee if is_largest => f64::NAN,
            Special::OneNan if is_largest && mantissa == mantissa_mask => f64::NAN,
            _ => self.finite(mantissa, exponent),
        };
        if negative { -magnitude } else { magnitude }
    }

    /// The bit that says minus.
    pub(crate) fn sign_bit(self) -> u64 {
        1 << (self.mantissa_bits + self.exponent_bits)
    }

    fn finite(self, mantissa: u64, exponent: u64) -> f64 {
        // At most 24 bits and small exponents: every step is exact.
        #[allow(clippy::cast_precision_loss, reason = "it has at most 24 bits")]
        let (significand, exponent) = if exponent == 0 {
            (mantissa as f64, 1)
        } else {
            ((mantissa | (1 << self.mantissa_bits)) as f64, exponent)
        };
        let exponent = i32::try_from(exponent).unwrap_or(i32::MAX);
        significand * self.spacing_at(exponent - self.bias)
    }

    /// How far apart neighbours are whose leading bit is worth `2^exponent`.
    fn spacing_at(self, exponent: i32) -> f64 {
        let mantissa_bits = i32::try_from(self.mantissa_bits).unwrap_or(i32::MAX);
        2.0_f64.powi(exponent.max(1 - self.bias) - mantissa_bits)
    }

    /// Half the distance from a finite value to its nearest neighbour: any closer number rounds to
    /// it.
    pub(crate) fn half_spacing(self, value: f64) -> f64 {
        let exponent = exponent_of(value);
        // Below a power of two, neighbours are closer.
        let below = value.abs() == 2.0_f64.powi(exponent);
        self.spacing_at(if below { exponent - 1 } else { exponent }) / 2.0
    }
}

/// The exponent of a value's leading bit; of the smallest normal one for 0 and smaller values.
fn exponent_of(value: f64) -> i32 {
    let biased = (value.to_bits() >> 52) & 0x7ff;
    i32::try_from(biased).unwrap_or(0).max(1) - 1023
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The truth for 8 bits and less, by another implementation; the columns are f32 bit patterns.
    const SMALL_FLOATS: &str = include_str!("../tests/golden/small_floats.csv");

    fn check_column(column: usize, dtype: Dtype, codes: usize) {
        let mut checked = 0;
        for line in SMALL_FLOATS.lines().skip(1).take(codes) {
            let cells: Vec<&str> = line.split(',').collect();
            let code: u8 = cells[0].parse().unwrap();
            let bits = u32::from_str_radix(cells[column], 16).unwrap();
            let expected = f64::from(f32::from_bits(bits));
            let Some(ElementValue::Float(found)) = dtype.value(&[code]) else {
                panic!("{dtype:?}")
            };
            let same = found.to_bits() == expected.to_bits();
            assert!(same || (found.is_nan() && expected.is_nan()), "{dtype:?} {code}: {found}");
            checked += 1;
        }
        assert_eq!(checked, codes);
    }

    #[test]
    fn every_code_of_every_small_type_is_exact() {
        for (column, dtype, codes) in [
            (1, Dtype::Float8e3m4, 256),
            (2, Dtype::Float8e4m3, 256),
            (3, Dtype::Float8e4m3fn, 256),
            (3, Dtype::Float8e4m3fnX4, 256),
            (4, Dtype::Float8e5m2, 256),
            (4, Dtype::Float8e5m2X4, 256),
            (6, Dtype::Float4e2m1fnX4, 16),
        ] {
            check_column(column, dtype, codes);
        }
    }

    #[test]
    fn every_code_of_two_bytes_agrees_with_its_definition() {
        for code in 0..=u16::MAX {
            let bytes = code.to_le_bytes();
            let bfloat = f64::from(f32::from_bits(u32::from(code) << 16));
            check(Dtype::Bfloat16, &bytes, bfloat);
            let (exponent, mantissa) = ((code >> 10) & 31, f64::from(code & 1_023));
            let magnitude = match exponent {
                0 => mantissa / 1_024.0 * 2.0_f64.powi(-14),
                31 if mantissa == 0.0 => f64::INFINITY,
                31 => f64::NAN,
                _ => (1.0 + mantissa / 1_024.0) * 2.0_f64.powi(i32::from(exponent) - 15),
            };
            check(Dtype::Float16, &bytes, if code >> 15 == 1 { -magnitude } else { magnitude });
            assert_eq!(Dtype::Uint16.value(&bytes), Some(ElementValue::Unsigned(code.into())));
            let signed = i64::from(code.cast_signed());
            assert_eq!(Dtype::Int16.value(&bytes), Some(ElementValue::Signed(signed)));
        }
    }

    fn check(dtype: Dtype, bytes: &[u8], expected: f64) {
        let Some(ElementValue::Float(found)) = dtype.value(bytes) else { panic!("{dtype:?}") };
        let same = found.to_bits() == expected.to_bits();
        assert!(same || (found.is_nan() && expected.is_nan()), "{dtype:?} {bytes:?}: {found}");
    }

    #[test]
    fn wide_types_agree_with_the_processor() {
        for value in [0.0, -0.0, 1e-45, 1.175_494_4e-38, 0.1, f32::MAX, f32::INFINITY, f32::NAN] {
            check(Dtype::Float32, &value.to_le_bytes(), value.into());
            check(Dtype::Float32r, &(-value).to_le_bytes(), (-value).into());
        }
        for value in [i64::MIN, -1, 0, 1, i64::MAX] {
            assert_eq!(Dtype::Int64.value(&value.to_le_bytes()), Some(ElementValue::Signed(value)));
            let unsigned = value.cast_unsigned();
            assert_eq!(
                Dtype::Uint64.value(&value.to_le_bytes()),
                Some(ElementValue::Unsigned(unsigned))
            );
        }
        assert_eq!(Dtype::Int8.value(&[0x80]), Some(ElementValue::Signed(-128)));
        assert_eq!(Dtype::Int32.value(&[0xff; 4]), Some(ElementValue::Signed(-1)));
        assert_eq!(Dtype::Uint32.value(&[0xff; 4]), Some(ElementValue::Unsigned(u32::MAX.into())));
        assert_eq!(Dtype::Int32.value(&[0xff; 3]), None);
    }

    #[test]
    fn names_are_compared_exactly() {
        for dtype in Dtype::ALL {
            assert_eq!(Dtype::from_name(dtype.name()), Some(dtype));
            assert!(dtype.name().len() <= crate::MAX_DTYPE_BYTES);
        }
        for name in ["", "Float32", "float", "float32 ", "bool", "float8_e8m0fnu"] {
            assert_eq!(Dtype::from_name(name), None, "{name}");
        }
    }
}
