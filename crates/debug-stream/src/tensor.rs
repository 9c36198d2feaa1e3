//! A tensor whose name, shape and bytes have been found to fit together, and what it holds.

use crate::dtype::{Dtype, ElementValue};
use crate::event::Event;

/// A tensor to be read element by element.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tensor<'event> {
    dtype: Dtype,
    shape: &'event [u64],
    data: &'event [u8],
    elements: usize,
}

/// Why an event is not a tensor that can be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The name of the data type is none of the known.
    #[error("unknown data type {0:?}")]
    UnknownDtype(String),
    /// The shape says another size than there is.
    #[error("the shape needs {expected} bytes and there are {found}")]
    Size {
        /// Bytes by shape and type.
        expected: u64,
        /// Bytes there are.
        found: u64,
    },
    /// The shape has more elements than can be.
    #[error("the shape has too many elements to exist")]
    Shape,
}

/// What the elements of a tensor have in common.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Statistics {
    /// The smallest finite element; none if there is none.
    pub min: Option<f64>,
    /// The largest finite element.
    pub max: Option<f64>,
    /// The mean of the finite elements.
    pub mean: Option<f64>,
    /// The standard deviation of the finite elements, around their mean.
    pub standard_deviation: Option<f64>,
    /// Elements that are not a number.
    pub nan: u64,
    /// Elements that are infinite.
    pub infinite: u64,
    /// Elements that are 0, of either sign.
    pub zero: u64,
}

impl<'event> Tensor<'event> {
    /// Checks that name, shape and bytes fit together. A type that the device packs may have up to
    /// three bytes more, which fill its last unit.
    ///
    /// # Errors
    /// When they do not.
    pub fn new(dtype: &str, shape: &'event [u64], data: &'event [u8]) -> Result<Self, Malformed> {
        let Some(dtype) = Dtype::from_name(dtype) else {
            return Err(Malformed::UnknownDtype(dtype.to_owned()));
        };
        let count = shape.iter().try_fold(1_u64, |product, &size| product.checked_mul(size));
        let elements =
            count.and_then(|count| usize::try_from(count).ok()).ok_or(Malformed::Shape)?;
        let bytes = elements.checked_mul(dtype.element_bytes()).ok_or(Malformed::Shape)?;
        let with_filling = dtype.is_packed() && data.len() == bytes.next_multiple_of(4);
        let Some(used) = data.get(..bytes).filter(|used| with_filling || used.len() == data.len())
        else {
            let [expected, found] =
                [bytes, data.len()].map(|length| u64::try_from(length).unwrap_or(u64::MAX));
            return Err(Malformed::Size { expected, found });
        };
        Ok(Self { dtype, shape, data: used, elements })
    }

    /// The tensor of an event.
    ///
    /// # Errors
    /// When its parts do not fit together.
    pub fn of(event: &'event Event) -> Result<Self, Malformed> {
        Self::new(&event.dtype, &event.shape, &event.data)
    }

    /// Its data type.
    #[must_use]
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Its dimensions; none for a scalar.
    #[must_use]
    pub fn shape(&self) -> &'event [u64] {
        self.shape
    }

    /// Its bytes, without what fills a last unit.
    #[must_use]
    pub fn data(&self) -> &'event [u8] {
        self.data
    }

    /// How many elements it has.
    #[must_use]
    pub fn elements(&self) -> usize {
        self.elements
    }

    /// The element at a position in row-major order.
    #[must_use]
    pub fn element(&self, position: usize) -> Option<ElementValue> {
        let size = self.dtype.element_bytes();
        let start = position.checked_mul(size)?;
        self.dtype.value(self.data.get(start..start.checked_add(size)?)?)
    }

    /// All elements in row-major order.
    pub fn values(&self) -> impl Iterator<Item = ElementValue> + '_ {
        let size = self.dtype.element_bytes();
        self.data.chunks_exact(size).filter_map(|bytes| self.dtype.value(bytes))
    }

    /// What the elements have in common. Goes through them twice.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let (mut nan, mut infinite, mut zero, mut finite) = (0, 0, 0, 0_u64);
        let (mut min, mut max, mut sum) = (f64::INFINITY, f64::NEG_INFINITY, 0.0);
        for value in self.values().map(ElementValue::to_f64) {
            nan += u64::from(value.is_nan());
            infinite += u64::from(value.is_infinite());
            zero += u64::from(value == 0.0);
            if value.is_finite() {
                (min, max) = (min.min(value), max.max(value));
                sum += value;
                finite += 1;
            }
        }
        if finite == 0 {
            let none = None;
            return Statistics {
                min: none,
                max: none,
                mean: none,
                standard_deviation: none,
                nan,
                infinite,
                zero,
            };
        }
        #[allow(clippy::cast_precision_loss, reason = "nobody has 2^53 elements")]
        let count = finite as f64;
        let mean = sum / count;
        let finite = self.values().map(ElementValue::to_f64).filter(|value| value.is_finite());
        let squares: f64 = finite.map(|value| (value - mean).powi(2)).sum();
        Statistics {
            min: Some(min),
            max: Some(max),
            mean: Some(mean),
            standard_deviation: Some((squares / count).sqrt()),
            nan,
            infinite,
            zero,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_shape_and_bytes_must_fit_together() {
        let unknown = |name: &str| Err(Malformed::UnknownDtype(name.to_owned()));
        let size = |expected, found| Err(Malformed::Size { expected, found });
        for (dtype, shape, bytes, expected) in [
            ("float32", &[2, 3][..], 24, Ok(6)),
            ("float32", &[], 4, Ok(1)),
            ("float32", &[0, 5], 0, Ok(0)),
            ("float32", &[2, 3], 23, size(24, 23)),
            ("float32", &[2, 3], 25, size(24, 25)),
            ("float8e5m2_x4", &[5], 5, Ok(5)),
            ("float8e5m2_x4", &[5], 8, Ok(5)),
            ("float8e5m2_x4", &[5], 9, size(5, 9)),
            ("float8e5m2", &[5], 8, size(5, 8)),
            ("complex64", &[1], 8, unknown("complex64")),
            ("int8", &[u64::MAX, 2], 1, Err(Malformed::Shape)),
            ("int64", &[1 << 62], 1, Err(Malformed::Shape)),
        ] {
            let data = vec![0; bytes];
            let found = Tensor::new(dtype, shape, &data).map(|tensor| tensor.elements());
            assert_eq!(found, expected, "{dtype} {shape:?} {bytes}");
        }
    }

    #[test]
    fn statistics_leave_out_what_is_not_finite() {
        let numbers = [1.0_f32, -3.0, 0.0, -0.0, f32::NAN, f32::INFINITY, 7.0, f32::NEG_INFINITY];
        let data: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        let statistics = Tensor::new("float32", &[8], &data).unwrap().statistics();
        let expected = Statistics {
            min: Some(-3.0),
            max: Some(7.0),
            mean: Some(1.0),
            standard_deviation: Some((54.0_f64 / 5.0).sqrt()),
            nan: 1,
            infinite: 2,
            zero: 2,
        };
        assert_eq!(statistics, expected);
        let nothing = Tensor::new("float32", &[0], &[]).unwrap().statistics();
        assert_eq!((nothing.min, nothing.mean, nothing.zero), (None, None, 0));
    }
}
