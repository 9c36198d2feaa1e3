//! Tensors as text, in the way of NumPy: aligned, cut in the middle when long, each number with as
//! few digits as distinguish it from its neighbours. Small and huge values get exponents.

use std::fmt::Write;

use crate::dtype::{ElementValue, FloatShape};
use crate::tensor::Tensor;

/// From this size on, or below the other, numbers get exponents; as in NumPy.
const HUGE: f64 = 1e8;
const SMALL: f64 = 1e-4;
/// Likewise when the largest is more times the smallest.
const WIDE: f64 = 1_000.0;
/// Digits that distinguish any `f64` from its neighbours.
const MOST_DIGITS: usize = 17;

/// How tensors are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextStyle {
    /// The most digits behind the point.
    pub precision: usize,
    /// Tensors with more elements are cut in the middle of each dimension.
    pub threshold: usize,
    /// How many elements of each end then remain.
    pub edge_items: usize,
    /// Columns of a line; a line holds at least one element.
    pub width: usize,
}

/// One element on its way to text: what stands before and behind the point.
struct FormattedElement {
    before: String,
    /// With the point; empty for integers and what is not finite.
    behind: String,
    exponent: String,
}

/// What all elements of a tensor are printed by.
struct Layout<'tensor> {
    tensor: &'tensor Tensor<'tensor>,
    style: TextStyle,
    is_cut: bool,
    cells: Vec<String>,
}

impl Default for TextStyle {
    fn default() -> Self {
        Self { precision: 8, threshold: 1_000, edge_items: 3, width: 75 }
    }
}

/// A tensor as text, without a line end behind it.
#[must_use]
pub fn format_tensor(tensor: &Tensor<'_>, style: TextStyle) -> String {
    // A shape with a 0 in it may have any other sizes: there is nothing to iterate.
    if tensor.elements() == 0 {
        return "[]".to_owned();
    }
    let is_cut = tensor.elements() > style.threshold;
    let mut positions = Vec::new();
    shown(tensor.shape(), 0, is_cut.then_some(style.edge_items), &mut positions);
    let values: Vec<ElementValue> =
        positions.iter().filter_map(|&position| tensor.element(position)).collect();
    let mut cells = cells(&values, tensor.dtype().reported_among(), style.precision);
    // They are taken from the end.
    cells.reverse();
    let mut text = String::new();
    Layout { tensor, style, is_cut, cells }.write(0, &mut text);
    text
}

/// The positions of the elements that are shown, in order.
fn shown(shape: &[u64], offset: usize, edge: Option<usize>, positions: &mut Vec<usize>) {
    let Some((&size, inner)) = shape.split_first() else { return positions.push(offset) };
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    let step: usize = inner.iter().map(|&size| usize::try_from(size).unwrap_or(0)).product();
    for index in indices(size, edge).into_iter().flatten() {
        shown(inner, offset + index * step, edge, positions);
    }
}

/// Which indices of a dimension are shown; none stands for those that are left out.
fn indices(size: usize, edge: Option<usize>) -> Vec<Option<usize>> {
    match edge {
        Some(edge) if size > edge.saturating_mul(2) => {
            let ends = (size - edge..size).map(Some);
            (0..edge).map(Some).chain([None]).chain(ends).collect()
        }
        _ => (0..size).map(Some).collect(),
    }
}

// === impl Layout ===

impl Layout<'_> {
    /// Writes the dimension at `depth`, and what is below it.
    fn write(&mut self, depth: usize, text: &mut String) {
        let Some(&size) = self.tensor.shape().get(depth) else {
            // A scalar.
            return text.push_str(self.cells.pop().unwrap_or_default().trim());
        };
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let indices = indices(size, self.is_cut.then_some(self.style.edge_items));
        let below = self.tensor.shape().len() - depth - 1;
        text.push('[');
        if below == 0 {
            self.write_row(depth, &indices, text);
        } else {
            for (number, index) in indices.iter().enumerate() {
                if number > 0 {
                    (0..below).for_each(|_| text.push('\n'));
                    (0..=depth).for_each(|_| text.push(' '));
                }
                match index {
                    Some(_) => self.write(depth + 1, text),
                    None => text.push_str("..."),
                }
            }
        }
        text.push(']');
    }

    fn write_row(&mut self, depth: usize, indices: &[Option<usize>], text: &mut String) {
        let indent = depth + 1;
        let mut column = indent;
        for (number, index) in indices.iter().enumerate() {
            let cell = match index {
                Some(_) => self.cells.pop().unwrap_or_default(),
                None => "...".to_owned(),
            };
            // The closing brackets belong to the line too.
            let needed = cell.chars().count() + depth + 1;
            if number > 0 {
                if column + 1 + needed > self.style.width {
                    text.push('\n');
                    (0..indent).for_each(|_| text.push(' '));
                    column = indent;
                } else {
                    text.push(' ');
                    column += 1;
                }
            }
            text.push_str(&cell);
            column += cell.chars().count();
        }
    }
}

/// The texts of elements, all of one width.
fn cells(values: &[ElementValue], float: Option<FloatShape>, precision: usize) -> Vec<String> {
    let with_exponent = float.is_some() && needs_exponents(values);
    let mut cells: Vec<FormattedElement> =
        values.iter().map(|&value| cell(value, float, precision, with_exponent)).collect();
    let widest =
        |length: &dyn Fn(&FormattedElement) -> usize| cells.iter().map(length).max().unwrap_or(0);
    let behind = widest(&|cell| cell.behind.len());
    let exponent = widest(&|cell| cell.exponent.len());
    // What has no point takes the room of digits too.
    let before = widest(&|cell| match cell.behind.as_str() {
        "" => cell.before.len().saturating_sub(behind + exponent),
        _ => cell.before.len(),
    });
    cells
        .iter_mut()
        .map(|cell| {
            if !cell.exponent.is_empty() {
                // With exponents all have the same digits, without them only the same room.
                while cell.behind.len() < behind {
                    cell.behind.push('0');
                }
            }
            if cell.behind.is_empty() {
                return format!("{:>1$}", cell.before, before + behind + exponent);
            }
            let mut text = format!("{:>before$}{}{}", cell.before, cell.behind, cell.exponent);
            (cell.behind.len()..behind).for_each(|_| text.push(' '));
            text
        })
        .collect()
}

fn needs_exponents(values: &[ElementValue]) -> bool {
    let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
    for value in values.iter().map(|value| value.to_f64().abs()) {
        if value.is_finite() && value != 0.0 {
            (least, most) = (least.min(value), most.max(value));
        }
    }
    most > 0.0 && (most >= HUGE || least < SMALL || most / least > WIDE)
}

fn cell(
    value: ElementValue,
    float: Option<FloatShape>,
    precision: usize,
    with_exponent: bool,
) -> FormattedElement {
    let whole = |before: String| FormattedElement {
        before,
        behind: String::new(),
        exponent: String::new(),
    };
    match (value, float) {
        (ElementValue::Signed(value), _) => whole(value.to_string()),
        (ElementValue::Unsigned(value), _) => whole(value.to_string()),
        (ElementValue::Float(value), _) if value.is_nan() => whole("nan".to_owned()),
        (ElementValue::Float(value), _) if value.is_infinite() => {
            whole(if value > 0.0 { "inf" } else { "-inf" }.to_owned())
        }
        (ElementValue::Float(value), Some(shape)) => {
            let digits = shortest(value, shape);
            if with_exponent {
                scientific(value, digits, precision)
            } else {
                plain(value, digits, precision)
            }
        }
        (ElementValue::Float(value), None) => whole(value.to_string()),
    }
}

/// How many digits distinguish a value from its neighbours of the same type.
fn shortest(value: f64, shape: FloatShape) -> usize {
    let half = shape.half_spacing(value);
    let tells = |digits: &usize| {
        let text = format!("{value:.*e}", digits - 1);
        text.parse::<f64>().is_ok_and(|near| near == value || (near - value).abs() < half)
    };
    (1..MOST_DIGITS).find(tells).unwrap_or(MOST_DIGITS)
}

fn scientific(value: f64, digits: usize, precision: usize) -> FormattedElement {
    let text = format!("{value:.*e}", precision.min(digits - 1));
    let (number, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (before, behind) = number.split_once('.').unwrap_or((number, ""));
    let behind = behind.trim_end_matches('0');
    let (sign, size) = match exponent.strip_prefix('-') {
        Some(size) => ('-', size),
        None => ('+', exponent),
    };
    let mut marked = String::new();
    // Writing to a text cannot fail.
    let _ = write!(marked, "e{sign}{size:0>2}");
    FormattedElement { before: before.to_owned(), behind: format!(".{behind}"), exponent: marked }
}

fn plain(value: f64, digits: usize, precision: usize) -> FormattedElement {
    // The digits that tell it, as a number; then its digits behind the point, as far as wanted.
    // A whole number is written exactly, though NumPy cuts those of float16.
    let reported: f64 = if value.fract() == 0.0 {
        value
    } else {
        format!("{value:.*e}", digits - 1).parse().unwrap_or(value)
    };
    let mut text = format!("{reported}");
    if text.split_once('.').is_some_and(|(_, behind)| behind.len() > precision) {
        text = format!("{value:.precision$}");
    }
    let (before, behind) = text.split_once('.').unwrap_or((&text, ""));
    let behind = format!(".{}", behind.trim_end_matches('0'));
    FormattedElement { before: before.to_owned(), behind, exponent: String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(numbers: &[f32]) -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    fn check(shape: &[u64], numbers: &[f32], style: TextStyle, expected: &str) {
        let data = bytes(numbers);
        let tensor = Tensor::new("float32", shape, &data).unwrap();
        assert_eq!(format_tensor(&tensor, style), expected);
    }

    /// What NumPy 2 prints for the same float32 arrays with the same options.
    #[test]
    fn floats_look_as_in_numpy() {
        let style = TextStyle::default();
        let nan = f32::NAN;
        for (numbers, expected) in [
            (&[1.0, 2.5, -3.25][..], "[ 1.    2.5  -3.25]"),
            (&[0.1, 0.2, 0.3], "[0.1 0.2 0.3]"),
            (&[1e-6, 1.0], "[1.e-06 1.e+00]"),
            (&[1.5e-6, 1.0], "[1.5e-06 1.0e+00]"),
            (&[3e38, 1.0], "[3.e+38 1.e+00]"),
            (&[nan, 1.0, f32::INFINITY], "[nan  1. inf]"),
            (&[f32::NEG_INFINITY, 0.25], "[-inf 0.25]"),
            (&[0.0, -0.0], "[ 0. -0.]"),
            (&[100.0, 0.001], "[1.e+02 1.e-03]"),
            (&[123.456, 7.0], "[123.456   7.   ]"),
            (&[16_777_216.0], "[16777216.]"),
            (&[1.0 / 3.0], "[0.33333334]"),
            (&[], "[]"),
        ] {
            check(&[numbers.len() as u64], numbers, style, expected);
        }
    }

    #[test]
    fn dimensions_are_nested_and_long_ones_cut_in_the_middle() {
        let style = TextStyle::default();
        check(&[], &[2.5], style, "2.5");
        check(&[2, 2], &[1.0, 2.0, 3.0, 4.0], style, "[[1. 2.]\n [3. 4.]]");
        check(&[2, 1, 2], &[1.0, 2.0, 3.0, 4.0], style, "[[[1. 2.]]\n\n [[3. 4.]]]");
        let numbers: Vec<f32> = (0_u16..10).map(f32::from).collect();
        let cut = TextStyle { threshold: 5, edge_items: 2, ..style };
        check(&[10], &numbers, cut, "[0. 1. ... 8. 9.]");
        check(&[5, 2], &numbers, cut, "[[0. 1.]\n [2. 3.]\n ...\n [6. 7.]\n [8. 9.]]");
        let all_ends = TextStyle { edge_items: usize::MAX, ..cut };
        check(&[3, 2], &numbers[..6], all_ends, "[[0. 1.]\n [2. 3.]\n [4. 5.]]");
        let narrow = TextStyle { width: 13, ..style };
        check(&[10], &numbers, narrow, "[0. 1. 2. 3.\n 4. 5. 6. 7.\n 8. 9.]");
        let rough = TextStyle { precision: 2, ..style };
        check(&[2], &[1.0 / 3.0, 2.0], rough, "[0.33 2.  ]");
        check(&[1], &[1.234_567e-9], rough, "[1.23e-09]");
    }

    #[test]
    fn every_type_reports_its_values_by_their_shortest_digits() {
        for (dtype, data, expected) in [
            ("float16", &[0x66, 0x2e][..], "[0.1]"),
            ("bfloat16", &[0xcd, 0x3d], "[0.1]"),
            ("float8e4m3", &[0x01], "[0.00195312]"),
            ("float8e4m3fn", &[0x7e], "[448.]"),
            ("float8e5m2", &[0x3f], "[1.75]"),
            ("float16", &[0xff, 0x7b], "[65504.]"),
            ("float8e3m4", &[0x6f], "[15.5]"),
            ("float4e2m1fn_x4", &[0x07, 0x09], "[ 6.  -0.5]"),
            ("int8", &[0x80, 5], "[-128    5]"),
            ("uint64", &[0xff; 8], "[18446744073709551615]"),
        ] {
            let count = data.len() / crate::Dtype::from_name(dtype).unwrap().element_bytes();
            let shape = [count as u64];
            let tensor = Tensor::new(dtype, &shape, data).unwrap();
            assert_eq!(format_tensor(&tensor, TextStyle::default()), expected, "{dtype}");
        }
    }

    #[test]
    fn a_shape_without_elements_costs_nothing() {
        let tensor = Tensor::new("int8", &[u64::MAX, 0], &[]).unwrap();
        assert_eq!(format_tensor(&tensor, TextStyle::default()), "[]");
    }
}
