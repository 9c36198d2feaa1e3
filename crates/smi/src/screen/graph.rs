//! A history as a graph: one column a sample, the newest at the right.

use ratatui_core::layout::Rect;

use super::canvas::{Canvas, cells};
use super::series::GraphSeries;
use super::theme::Role;

const BLOCKS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
const PLAIN: [&str; 9] = [" ", ".", ".", ":", ":", "=", "=", "#", "#"];

/// Paints `series` into the area; the top stands for `most`.
pub(super) fn paint(canvas: &mut Canvas<'_>, area: Rect, series: &GraphSeries, most: f32) {
    let levels = if canvas.unicode { BLOCKS } else { PLAIN };
    let count = series.last(usize::from(area.width)).count();
    let start = area.right().saturating_sub(cells(count));
    for (column, sample) in (start..area.right()).zip(series.last(usize::from(area.width))) {
        let Some(sample) = sample else { continue };
        let share = if most > 0.0 { (sample / most).clamp(0.0, 1.0) } else { 0.0 };
        let mut eighths = share * f32::from(area.height) * 8.0;
        // What is more than nothing is seen.
        if share > 0.0 {
            eighths = eighths.max(1.0);
        }
        for row in (area.top()..area.bottom()).rev() {
            let level = (1..levels.len()).rev().find(|level| *level as f32 <= eighths.round());
            let Some(level) = level else { break };
            canvas.text(column, row, 1, levels[level], Role::Graph);
            eighths -= 8.0;
        }
    }
}

/// The largest of the samples that are shown in so many columns.
pub(super) fn largest(series: &GraphSeries, columns: u16) -> f32 {
    series.last(usize::from(columns)).flatten().fold(0.0, f32::max)
}
