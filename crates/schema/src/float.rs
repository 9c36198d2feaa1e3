//! Numbers that programs tell, in JSON: it has none that is not finite, and a gauge may well be one.
//!
//! A loss that became NaN is what its program says, and no absence. So it is written as the text that
//! Prometheus' formats have for it: `NaN`, `+Inf` or `-Inf`.

use std::fmt;

use serde::de::{Deserializer, Error, Visitor};
use serde::ser::Serializer;

const NAN: &str = "NaN";
const INFINITY: &str = "+Inf";
const NEGATIVE_INFINITY: &str = "-Inf";

/// Writes a number, or the text for one that JSON has not.
///
/// # Errors
/// Those of the serializer.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands fields by reference")]
pub(crate) fn serialize<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
    match *value {
        value if value.is_finite() => to.serialize_f64(value),
        value if value.is_nan() => to.serialize_str(NAN),
        value if value > 0.0 => to.serialize_str(INFINITY),
        _ => to.serialize_str(NEGATIVE_INFINITY),
    }
}

/// Reads what [`serialize`] writes, and the `null` that stood for all of these before.
///
/// # Errors
/// When it is something else.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    from.deserialize_any(Float)
}

struct Float;

impl Visitor<'_> for Float {
    type Value = f64;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "a number, `{NAN}`, `{INFINITY}` or `{NEGATIVE_INFINITY}`")
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<f64, E> {
        Ok(value)
    }

    #[allow(clippy::cast_precision_loss, reason = "a float is what is wanted")]
    fn visit_u64<E: Error>(self, value: u64) -> Result<f64, E> {
        Ok(value as f64)
    }

    #[allow(clippy::cast_precision_loss, reason = "a float is what is wanted")]
    fn visit_i64<E: Error>(self, value: i64) -> Result<f64, E> {
        Ok(value as f64)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<f64, E> {
        match text {
            NAN => Ok(f64::NAN),
            INFINITY => Ok(f64::INFINITY),
            NEGATIVE_INFINITY => Ok(f64::NEG_INFINITY),
            _ => Err(E::invalid_value(serde::de::Unexpected::Str(text), &self)),
        }
    }

    fn visit_unit<E: Error>(self) -> Result<f64, E> {
        Ok(f64::NAN)
    }
}
