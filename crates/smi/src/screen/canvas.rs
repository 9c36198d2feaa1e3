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

    /// A bar of `share` of its cells, from 0 to 1.
    pub(super) fn bar(&mut self, x: u16, y: u16, room: u16, share: f64, role: Role) {
        let filled = (share.clamp(0.0, 1.0) * f64::from(room)).round();
        let filled = (0..=room).rev().find(|cell| f64::from(*cell) <= filled).unwrap_or(0);
        let [full, empty] = if self.unicode { ["█", "·"] } else { ["#", "."] };
        self.text(x, y, filled, &full.repeat(usize::from(filled)), role);
        let left = room - filled;
        self.text(x + filled, y, left, &empty.repeat(usize::from(left)), Role::Faint);
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
