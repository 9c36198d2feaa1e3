//! A history as a graph: one row of blocks, a column a sample, or several rows of dots, two samples a column. The
//! newest is at the right.

use ratatui_core::layout::Rect;

use super::canvas::{Canvas, cells};
use super::series::GraphSeries;
use super::theme::Role;

const BLOCKS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
const PLAIN: [&str; 9] = [" ", ".", ".", ":", ":", "=", "=", "#", "#"];
/// Rows of dots in a character of braille, and the bits of its left and its right column from below
/// (the Unicode Standard, chapter 21.1).
const DOTS: u16 = 4;
const DOT_BITS: [[u32; DOTS as usize]; 2] = [[0x40, 0x04, 0x02, 0x01], [0x80, 0x20, 0x10, 0x08]];
const BRAILLE: u32 = 0x2800;

/// Paints `series` into the area; the top stands for `most`.
pub(super) fn paint(canvas: &mut Canvas<'_>, area: Rect, series: &GraphSeries, most: f32) {
    match samples_of_column(canvas.unicode, area) {
        1 => blocks(canvas, area, series, most),
        _ => dots(canvas, area, series, most),
    }
}

/// How many samples an area has room for.
pub(super) fn room(canvas: &Canvas<'_>, area: Rect) -> u16 {
    area.width.saturating_mul(samples_of_column(canvas.unicode, area))
}

/// A single row has more levels as blocks, and several have more samples as dots.
fn samples_of_column(unicode: bool, area: Rect) -> u16 {
    if unicode && area.height > 1 { 2 } else { 1 }
}

/// A sample's height in so many steps; what is more than nothing is seen.
fn height(sample: f32, most: f32, steps: u16) -> f32 {
    let share = if most > 0.0 { (sample / most).clamp(0.0, 1.0) } else { 0.0 };
    let height = share * f32::from(steps);
    if share > 0.0 { height.max(1.0) } else { height }
}

fn blocks(canvas: &mut Canvas<'_>, area: Rect, series: &GraphSeries, most: f32) {
    let levels = if canvas.unicode { BLOCKS } else { PLAIN };
    let count = series.last(usize::from(area.width)).count();
    let start = area.right().saturating_sub(cells(count));
    for (column, sample) in (start..area.right()).zip(series.last(usize::from(area.width))) {
        let Some(sample) = sample else { continue };
        let mut eighths = height(sample, most, area.height * 8);
        for row in (area.top()..area.bottom()).rev() {
            let level = (1..levels.len()).rev().find(|level| *level as f32 <= eighths.round());
            let Some(level) = level else { break };
            canvas.text(column, row, 1, levels[level], Role::Graph);
            eighths -= 8.0;
        }
    }
}

fn dots(canvas: &mut Canvas<'_>, area: Rect, series: &GraphSeries, most: f32) {
    let room = usize::from(area.width) * 2;
    let samples: Vec<Option<f32>> = series.last(room).collect();
    // The newest is in the right column of the last character.
    let missing = room - samples.len();
    let heights: Vec<f32> = std::iter::repeat_n(None, missing)
        .chain(samples)
        .map(|sample| sample.map_or(0.0, |sample| height(sample, most, area.height * DOTS).round()))
        .collect();
    for (column, pair) in (area.left()..area.right()).zip(heights.chunks(2)) {
        for (above, row) in (0u16..).zip((area.top()..area.bottom()).rev()) {
            let mut bits = 0;
            for (heights, dots) in pair.iter().zip(DOT_BITS) {
                let below = f32::from(above * DOTS);
                let filled =
                    (1u16..).zip(dots).filter(|(dot, _)| below + f32::from(*dot) <= *heights);
                bits |= filled.fold(0, |bits, (_, dot)| bits | dot);
            }
            let character = char::from_u32(BRAILLE + bits).filter(|_| bits > 0);
            let Some(character) = character else { break };
            canvas.text(column, row, 1, character.encode_utf8(&mut [0; 4]), Role::Graph);
        }
    }
}

/// The largest of the last so many samples.
pub(super) fn largest(series: &GraphSeries, samples: u16) -> f32 {
    series.last(usize::from(samples)).flatten().fold(0.0, f32::max)
}

#[cfg(test)]
mod tests {
    use ratatui_core::buffer::Buffer;
    use ratatui_core::layout::Rect;

    use super::{Canvas, GraphSeries, paint};
    use crate::screen::Theme;

    fn rows(unicode: bool, height: u16, samples: &[f64]) -> Vec<String> {
        let area = Rect::new(0, 0, 3, height);
        let mut buffer = Buffer::empty(area);
        let mut series = GraphSeries::default();
        samples.iter().for_each(|sample| series.push(Some(*sample)));
        let mut canvas = Canvas { buffer: &mut buffer, theme: Theme::Monochrome, unicode };
        paint(&mut canvas, area, &series, 8.0);
        let cells = buffer.content().chunks(3);
        cells.map(|row| row.iter().map(|cell| cell.symbol()).collect()).collect()
    }

    #[test]
    fn several_rows_have_two_samples_a_column_and_the_newest_at_the_right() {
        assert_eq!(rows(true, 2, &[8.0, 4.0, 0.0, 0.1, 5.0]), ["⢸ ⢀", "⢸⡇⣸"]);
        assert_eq!(rows(true, 1, &[8.0, 4.0, 0.1]), ["█▄▁"]);
        assert_eq!(rows(false, 2, &[8.0, 4.0]), [" # ", " ##"]);
    }
}
