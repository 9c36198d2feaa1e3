//! The panes below the processes, one of them behind each tab: which there are, the row of tabs, and
//! what all of them have in common, which is lines that are scrolled.

use ratatui_core::layout::Rect;
use telltale_schema::snapshot::Snapshot;

use super::canvas::{Canvas, cells};
use super::event::Key;
use super::frame::Places;
use super::theme::Role;
use super::{Focus, Screen};
use crate::text::width;

/// A pane below the processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pane {
    /// What is selected: its memory by kind, and its history.
    #[default]
    Details,
    /// What the rules of the service find.
    Alerts,
    /// Which devices share a board or a Galaxy.
    Topology,
    /// What processes tell of their program caches.
    Programs,
    /// A training job, its nodes and their latencies.
    Cluster,
    /// The end of a capture of debug events.
    Events,
}

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

/// What a pane shows: a heading that stays, and lines of which those in sight are made.
pub(super) struct Lines<'a> {
    pub(super) heading: Vec<Span>,
    pub(super) count: usize,
    pub(super) line: &'a dyn Fn(usize) -> Vec<Span>,
}

/// Which lines of how many are in sight.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Seen {
    first: usize,
    rows: usize,
    all: usize,
}

// === impl Pane ===

impl Pane {
    /// All panes, in the order of their tabs.
    pub const ALL: [Self; 6] =
        [Self::Details, Self::Alerts, Self::Topology, Self::Programs, Self::Cluster, Self::Events];

    /// The name in the settings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Details => "details",
            Self::Alerts => "alerts",
            Self::Topology => "topology",
            Self::Programs => "programs",
            Self::Cluster => "cluster",
            Self::Events => "events",
        }
    }

    /// The pane of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|pane| pane.name() == name)
    }

    const fn title(self) -> &'static str {
        match self {
            Self::Details => "Details",
            Self::Alerts => "Alerts",
            Self::Topology => "Topology",
            Self::Programs => "Programs",
            Self::Cluster => "Cluster",
            Self::Events => "Events",
        }
    }

    fn place(self) -> usize {
        Self::ALL.iter().position(|pane| *pane == self).unwrap_or(0)
    }

    fn next(self) -> Self {
        Self::ALL[(self.place() + 1) % Self::ALL.len()]
    }

    /// The pane whose tab has this digit.
    fn of_digit(digit: char) -> Option<Self> {
        let place = usize::try_from(digit.to_digit(10)?).ok()?.checked_sub(1)?;
        Self::ALL.get(place).copied()
    }
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

// === impl Seen ===

impl Seen {
    /// Goes on with the end, where that is what is in sight.
    pub(super) fn stay_at_end(&mut self) {
        if self.first.saturating_add(self.rows) >= self.all {
            self.first = usize::MAX;
        }
    }

    /// What is in sight, where that is not everything, in so many cells.
    fn words(self, room: usize) -> Option<String> {
        let last = self.all.min(self.first + self.rows);
        let long = format!(" {}-{last}/{}", self.first + 1, self.all);
        let words = if long.len() <= room { long } else { format!(" {last}/{}", self.all) };
        (self.rows < self.all).then_some(words)
    }
}

// === impl Screen ===

impl Screen {
    /// Whether the pane has lines of its own that keys go through.
    pub(super) fn pane_scrolls(&self) -> bool {
        self.settings.details && self.settings.pane != Pane::Details
    }

    /// Whether the pane has the place of the processes as well.
    pub(super) fn is_enlarged(&self) -> bool {
        self.settings.details && self.settings.enlarged
    }

    /// What a key does to the panes; false for other keys.
    pub(super) fn key_of_panes(&mut self, key: Key) -> bool {
        match key {
            Key::Function(7) => self.show_pane(self.settings.pane.next()),
            Key::Function(8) | Key::Char('z') => self.enlarge(),
            Key::Char(digit) => match Pane::of_digit(digit) {
                Some(pane) => self.show_pane(pane),
                None => return false,
            },
            _ => return false,
        }
        true
    }

    /// Shows a pane, and has keys go through it; the one that is shown already is enlarged, or made
    /// small again.
    pub(super) fn show_pane(&mut self, pane: Pane) {
        if self.settings.details && self.settings.pane == pane {
            return self.enlarge();
        }
        self.settings.details = true;
        self.settings.pane = pane;
        self.seen = Seen::default();
        self.focus = match (pane, self.focus) {
            (Pane::Details, Focus::Devices) => Focus::Devices,
            (Pane::Details, _) => Focus::Processes,
            _ => Focus::Pane,
        };
    }

    fn enlarge(&mut self) {
        self.settings.details = true;
        self.settings.enlarged = !self.settings.enlarged;
        if self.settings.enlarged && self.pane_scrolls() {
            self.focus = Focus::Pane;
        }
    }

    /// What keys go to after this one, of what is to be seen.
    pub(super) fn next_focus(&self) -> Focus {
        let hidden = |focus: Focus| match focus {
            Focus::Processes => self.is_enlarged() && self.pane_scrolls(),
            Focus::Pane => !self.pane_scrolls(),
            Focus::Devices => false,
        };
        let after = |focus: Focus| match focus {
            Focus::Processes => Focus::Devices,
            Focus::Devices => Focus::Pane,
            Focus::Pane => Focus::Processes,
        };
        let next = after(self.focus);
        if hidden(next) { after(next) } else { next }
    }

    /// Scrolls the pane.
    pub(super) fn scroll_pane(&mut self, key: Key) {
        let page = self.seen.rows.max(1);
        let first = self.seen.first;
        self.seen.first = match key {
            Key::Up => first.saturating_sub(1),
            Key::Down => first.saturating_add(1),
            Key::PageUp => first.saturating_sub(page),
            Key::PageDown => first.saturating_add(page),
            Key::Home => 0,
            Key::End => usize::MAX,
            _ => first,
        };
    }

    /// Paints the tabs and the pane of the chosen one.
    pub(super) fn pane(
        &mut self,
        canvas: &mut Canvas<'_>,
        area: Rect,
        shown: &Snapshot,
        places: &mut Places,
    ) {
        let inside = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
        places.pane = area;
        match self.settings.pane {
            Pane::Details => self.detail_pane(canvas, inside, shown),
            Pane::Alerts => self.alert_pane(canvas, inside),
            Pane::Topology => self.topology_pane(canvas, inside, shown),
            Pane::Programs => self.program_pane(canvas, inside, shown),
            Pane::Cluster => self.cluster_pane(canvas, inside),
            Pane::Events => self.event_pane(canvas, inside, shown),
        }
        places.marks = std::mem::take(&mut self.marks);
        self.tabs(canvas, Rect { height: 1, ..area }, places);
    }

    /// The row of tabs: what is chosen is in brackets.
    fn tabs(&self, canvas: &mut Canvas<'_>, area: Rect, places: &mut Places) {
        let line = if canvas.unicode { "─" } else { "-" }.repeat(usize::from(area.width));
        canvas.text(area.x, area.y, area.width, &line, Role::Faint);
        let mut x = area.x;
        for (at, pane) in Pane::ALL.into_iter().enumerate() {
            let chosen = pane == self.settings.pane;
            let (begin, end) = if chosen { ("[", "]") } else { (" ", " ") };
            let note = match pane {
                Pane::Alerts => self.alert_note(),
                Pane::Cluster => self.cluster_note(),
                _ => None,
            };
            let note = note.map(|note| format!(" ({note})")).unwrap_or_default();
            let text = format!("{begin}{} {}{note}{end}", at + 1, pane.title());
            let role = match (chosen, self.focus) {
                (true, Focus::Pane) => Role::Selected,
                (true, _) => Role::Heading,
                (false, _) if !note.is_empty() => Role::Warning,
                (false, _) => Role::Plain,
            };
            let start = x;
            x = canvas.text(x, area.y, area.right().saturating_sub(x), &text, role);
            places.tabs.push((Rect::new(start, area.y, x - start, 1), pane));
        }
        let left = area.right().saturating_sub(x);
        let seen = self.seen.words(left.into()).filter(|_| self.pane_scrolls());
        if let Some(words) = seen {
            let room = cells(width(&words)).min(left);
            canvas.right(area.right() - room, area.y, room, &words, Role::Faint);
        }
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
        self.seen = Seen { first, rows, all: lines.count };
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

#[cfg(test)]
mod tests {
    use super::Pane;

    #[test]
    fn panes_are_found_by_name_and_digit() {
        for (at, pane) in ('1'..).zip(Pane::ALL) {
            assert_eq!(Pane::named(pane.name()), Some(pane));
            assert_eq!(Pane::of_digit(at), Some(pane));
        }
        assert_eq!(['0', '7', 'x'].map(Pane::of_digit), [None; 3]);
    }
}
