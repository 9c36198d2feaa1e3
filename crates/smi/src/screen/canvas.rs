//! The cells of a frame, and writing into them: nothing that is written steers the terminal or
//! leaves its area.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use telltale_schema::text::printable;

use super::theme::{Role, Theme};
use crate::text::width;

/// A frame that is being painted.
pub(super) struct Canvas<'a> {
    pub(super) buffer: &'a mut Buffer,
    pub(super) theme: Theme,
    /// Whether the terminal takes characters beyond ASCII.
    pub(super) unicode: bool,
}

/// Steps of a cell in a bar, and what fills so many of them.
const EIGHTHS: u16 = 8;
const PARTS_OF_A_CELL: [&str; 9] = [" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"];

/// Where each part of a bar ends, in steps of its cells; parts that are less than half a step have none.
fn ends(parts: &[(f64, Role)], room: u16, steps: u16) -> Vec<(u16, Role)> {
    let whole = f64::from(room) * f64::from(steps);
    let mut ends: Vec<(u16, Role)> = Vec::new();
    let mut sum = 0.0;
    for (share, role) in parts {
        sum += share.max(0.0);
        // Between 0 and what 16 bits hold.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let end = (sum.min(1.0) * whole).round() as u16;
        if ends.last().is_none_or(|(last, _)| end > *last) && end > 0 {
            ends.push((end, *role));
        }
    }
    if let (true, true, Some((_, role))) = (ends.is_empty() && sum > 0.0, steps > 1, parts.first())
    {
        ends.push((1, *role));
    }
    ends
}

/// A number of cells as ratatui counts them.
pub(super) fn cells(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}

impl Canvas<'_> {
    /// Writes `text` into at most `room` cells; gives the column after it. Text that is too long
    /// ends with a mark.
    pub(super) fn text(&mut self, x: u16, y: u16, room: u16, text: &str, role: Role) -> u16 {
        let area = self.buffer.area;
        if y >= area.bottom() || x >= area.right() || room == 0 {
            return x;
        }
        let room = usize::from(room.min(area.right() - x));
        let mut text = printable(text);
        if !self.unicode && !text.is_ascii() {
            text = text.chars().map(|it| if it.is_ascii() { it } else { '?' }).collect();
        }
        let style = crate::Style { width: None, color: false, unicode: self.unicode };
        let fitting = crate::text::cut(&text, room, &style);
        self.buffer.set_stringn(x, y, &fitting, room, self.theme.style(role)).0
    }

    /// As [`Self::text`], at the right end of the room.
    pub(super) fn right(&mut self, x: u16, y: u16, room: u16, text: &str, role: Role) {
        let indent = room.saturating_sub(cells(width(text)));
        self.text(x + indent, y, room - indent, text, role);
    }

    /// Gives a whole area this style, over what is written there.
    pub(super) fn style(&mut self, area: Rect, role: Role) {
        let area = area.intersection(self.buffer.area);
        self.buffer.set_style(area, self.theme.style(role));
    }

    /// Empties an area.
    pub(super) fn clear(&mut self, area: Rect) {
        let area = area.intersection(self.buffer.area);
        for y in area.top()..area.bottom() {
            for x in area.left()..area.right() {
                self.buffer[(x, y)].reset();
            }
        }
    }

    /// A bar of parts, each a share of its cells in a colour, to an eighth of a cell where the terminal can show
    /// that; what is more than nothing is seen there.
    pub(super) fn bar(&mut self, (x, y): (u16, u16), room: u16, parts: &[(f64, Role)]) {
        let [full, empty] = if self.unicode { ["█", "·"] } else { ["#", "."] };
        let steps = if self.unicode { EIGHTHS } else { 1 };
        let ends = ends(parts, room, steps);
        for cell in 0..room {
            let start = cell * steps;
            let mut inside = ends.iter().filter(|(end, _)| *end > start);
            let Some((end, role)) = inside.next() else {
                self.text(x + cell, y, 1, empty, Role::Faint);
                continue;
            };
            if *end >= start + steps {
                self.text(x + cell, y, 1, full, *role);
                continue;
            }
            self.text(x + cell, y, 1, PARTS_OF_A_CELL[usize::from(end - start)], *role);
            // Beside it in the same cell is the part that comes next; without colours there is a gap.
            if let Some(colour) = inside.next().and_then(|(_, role)| self.theme.style(*role).fg)
                && let Some(cell) = self.buffer.cell_mut((x + cell, y))
            {
                cell.set_bg(colour);
            }
        }
    }

    /// An emptied box with a border and a title, at most as large as the frame and in its middle;
    /// gives its inside.
    pub(super) fn window(&mut self, columns: u16, rows: u16, title: &str) -> Rect {
        let all = self.buffer.area;
        let (columns, rows) = (columns.min(all.width), rows.min(all.height));
        let x = all.x + (all.width - columns) / 2;
        let y = all.y + (all.height - rows) / 2;
        let area = Rect::new(x, y, columns, rows);
        self.clear(area);
        if columns < 4 || rows < 3 {
            return area;
        }
        let [corners, flat, upright] =
            if self.unicode { ["┌┐└┘", "─", "│"] } else { ["++++", "-", "|"] };
        let corner = |at: usize| corners.chars().nth(at).unwrap_or('+').to_string();
        let line = flat.repeat(usize::from(columns - 2));
        let bottom = y + rows - 1;
        for (row, [left, right]) in [(y, [0, 1]), (bottom, [2, 3])] {
            let border = [corner(left), line.clone(), corner(right)].concat();
            self.text(x, row, columns, &border, Role::Faint);
        }
        for row in y + 1..bottom {
            self.text(x, row, 1, upright, Role::Faint);
            self.text(x + columns - 1, row, 1, upright, Role::Faint);
        }
        self.text(x + 2, y, columns - 4, &format!(" {title} "), Role::Heading);
        Rect::new(x + 2, y + 1, columns - 4, rows - 2)
    }
}

#[cfg(test)]
mod tests {
    use ratatui_core::buffer::Buffer;
    use ratatui_core::layout::Rect;
    use ratatui_core::style::Color;

    use super::{Canvas, Role, Theme};

    fn bar(unicode: bool, theme: Theme, parts: &[(f64, Role)]) -> (String, Vec<(Color, Color)>) {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 4, 1));
        Canvas { buffer: &mut buffer, theme, unicode }.bar((0, 0), 4, parts);
        let cells = buffer.content();
        let text = cells.iter().map(|cell| cell.symbol()).collect();
        (text, cells.iter().map(|cell| (cell.fg, cell.bg)).collect())
    }

    #[test]
    fn a_bar_has_eighths_and_parts_share_a_cell() {
        let one = |share| bar(true, Theme::Default, &[(share, Role::Bar)]).0;
        assert_eq!(
            [0.0, 0.001, 0.04, 0.5, 0.97, 1.0, 7.0].map(one),
            ["····", "▏···", "▏···", "██··", "███▉", "████", "████"]
        );
        // A third of a cell of one process, then another's to the end of the second cell.
        let parts = [(3.0 / 32.0, Role::Hue(0)), (13.0 / 32.0, Role::Hue(1))];
        let (text, colours) = bar(true, Theme::Default, &parts);
        assert_eq!(text, "▍█··");
        assert_eq!(colours[0], (Color::LightBlue, Color::Yellow));
        assert_eq!(colours[1], (Color::Yellow, Color::Reset));
        let (text, colours) = bar(true, Theme::Monochrome, &parts);
        assert_eq!((text.as_str(), colours[0]), ("▍█··", (Color::Reset, Color::Reset)));
        assert_eq!(bar(false, Theme::Default, &parts).0, "##..");
    }
}
