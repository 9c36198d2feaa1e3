//! Lines of text in cells, more of them than there is room for, that keys scroll through.

use ratatui_core::layout::Rect;

use super::canvas::Canvas;
use super::event::PressedKey;
use super::theme::Role;

/// A piece of a line: a text in so many cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    text: String,
    cells: u16,
    right: bool,
    role: Role,
    /// The device that it names, by its place in what is shown.
    device: Option<usize>,
}

/// What a pane shows: a heading that stays, and lines of which the visible ones are made.
pub(super) struct Lines<'a> {
    pub(super) heading: Vec<Span>,
    pub(super) count: usize,
    pub(super) line: &'a dyn Fn(usize) -> Vec<Span>,
}

/// Which lines of how many are visible.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct VisibleLines {
    first: usize,
    rows: usize,
    all: usize,
}

/// Which of a pane's lines are visible, and where they name devices.
#[derive(Debug, Default)]
pub(super) struct Scroll {
    pub(super) seen: VisibleLines,
    pub(super) marks: Vec<(Rect, usize)>,
}

// === impl Span ===

impl Span {
    /// Text at the left of its cells.
    pub(super) fn left(text: impl Into<String>, cells: u16, role: Role) -> Self {
        Self { text: text.into(), cells, right: false, role, device: None }
    }

    /// Text at the right of its cells.
    pub(super) fn right(text: impl Into<String>, cells: u16, role: Role) -> Self {
        Self { right: true, ..Self::left(text, cells, role) }
    }

    /// The same as the name of a device, which can be clicked on.
    pub(super) fn of_device(self, device: usize) -> Self {
        Self { device: Some(device), ..self }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Text that has all that is left of its line.
    pub(super) fn rest(text: impl Into<String>, role: Role) -> Self {
        Self::left(text, u16::MAX, role)
    }
}

// === impl VisibleLines ===

impl VisibleLines {
    /// Goes on with the end, where that is what is visible.
    pub(super) fn stay_at_end(&mut self) {
        if self.first.saturating_add(self.rows) >= self.all {
            self.first = usize::MAX;
        }
    }

    /// The first visible line.
    pub(super) fn first(self) -> usize {
        self.first
    }

    /// What is visible, where that is not everything, in so many cells.
    pub(super) fn words(self, room: usize) -> Option<String> {
        let last = self.all.min(self.first + self.rows);
        let long = format!(" {}-{last}/{}", self.first + 1, self.all);
        let words = if long.len() <= room { long } else { format!(" {last}/{}", self.all) };
        (self.rows < self.all).then_some(words)
    }
}

// === impl Scroll ===

impl Scroll {
    /// Scrolls.
    pub(super) fn key(&mut self, key: PressedKey) {
        let page = self.seen.rows.max(1);
        let first = self.seen.first;
        self.seen.first = match key {
            PressedKey::Up => first.saturating_sub(1),
            PressedKey::Down => first.saturating_add(1),
            PressedKey::PageUp => first.saturating_sub(page),
            PressedKey::PageDown => first.saturating_add(page),
            PressedKey::Home => 0,
            PressedKey::End => usize::MAX,
            _ => first,
        };
    }

    /// Paints lines, scrolled as far as there are some.
    pub(super) fn lines(&mut self, canvas: &mut Canvas<'_>, area: Rect, lines: &Lines<'_>) {
        let mut inside = area;
        if !lines.heading.is_empty() {
            spans(canvas, Rect { height: 1, ..area }, &lines.heading, &mut Vec::new());
            inside.y += 1;
            inside.height = inside.height.saturating_sub(1);
        }
        let rows = usize::from(inside.height);
        let first = self.seen.first.min(lines.count.saturating_sub(rows));
        self.seen = VisibleLines { first, rows, all: lines.count };
        for (y, at) in (inside.top()..inside.bottom()).zip(first..lines.count) {
            spans(canvas, Rect { y, height: 1, ..inside }, &(lines.line)(at), &mut self.marks);
        }
    }

    /// Says why a pane shows nothing, in as many rows as that needs.
    pub(super) fn reason(&mut self, canvas: &mut Canvas<'_>, area: Rect, words: &str) {
        let rows = wrapped(words, area.width);
        let line = |at: usize| vec![Span::rest(rows[at].as_str(), Role::Faint)];
        self.lines(canvas, area, &Lines { heading: Vec::new(), count: rows.len(), line: &line });
    }
}

/// A text in rows of so many cells, all of them as far from the left as its first one.
pub(super) fn wrapped(text: &str, room: u16) -> Vec<String> {
    let style = crate::Style { width: Some(room.into()), color: false, unicode: true };
    let text = telltale_schema::text::printable(text);
    let indent = text.len() - text.trim_start_matches(' ').len();
    crate::text::wrapped(&text, indent, &style).lines().map(str::to_owned).collect()
}

/// Paints the pieces of a line one after another, with a cell between two; notes where devices are.
fn spans(canvas: &mut Canvas<'_>, area: Rect, spans: &[Span], marks: &mut Vec<(Rect, usize)>) {
    let mut x = area.x;
    for span in spans {
        let room = span.cells.min(area.right().saturating_sub(x));
        match span.right {
            true => canvas.right(x, area.y, room, &span.text, span.role),
            false => {
                canvas.text(x, area.y, room, &span.text, span.role);
            }
        }
        if let Some(device) = span.device {
            marks.push((Rect { x, width: room, ..area }, device));
        }
        x = x.saturating_add(room).saturating_add(1);
    }
}
