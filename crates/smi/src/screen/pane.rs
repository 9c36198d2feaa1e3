//! The panes below the processes, one of them behind each tab: which there are, the row of tabs, and
//! what all of them have in common, which is lines that are scrolled.

use ratatui_core::layout::Rect;
use telltale_schema::snapshot::Snapshot;

use super::alert_pane::AlertPane;
use super::canvas::{Canvas, cells};
use super::cluster_pane::ClusterPane;
use super::event::PressedKey;
use super::event_pane::EventPane;
use super::frame::Places;
use super::lines::{Scroll, VisibleLines};
use super::theme::Role;
use super::view::{Focus, View};
use super::{detail_pane, loss_pane, program_pane, topology_pane};
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
    /// What processes report about their program caches.
    Programs,
    /// A training job, its nodes and their latencies.
    Cluster,
    /// The end of a capture of debug events.
    Events,
    /// What trainings report of their losses. Its tab is there while one does.
    Losses,
}

/// The pane below, whichever is shown.
#[derive(Debug, Default)]
pub(super) struct Below {
    pub(super) scroll: Scroll,
    pub(super) alerts: AlertPane,
    pub(super) cluster: ClusterPane,
    pub(super) events: EventPane,
}

// === impl Pane ===

impl Pane {
    /// All panes, in the order of their tabs.
    pub const ALL: [Self; 7] = [
        Self::Details,
        Self::Alerts,
        Self::Topology,
        Self::Programs,
        Self::Cluster,
        Self::Events,
        Self::Losses,
    ];

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
            Self::Losses => "losses",
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
            Self::Losses => "Losses",
        }
    }

    /// The pane behind the next of these tabs.
    fn after(self, tabs: &[Self]) -> Self {
        let next = tabs.iter().position(|pane| *pane == self).map_or(0, |place| place + 1);
        tabs.get(next).or(tabs.first()).copied().unwrap_or_default()
    }

    /// The pane whose tab has this digit.
    fn of_digit(digit: char) -> Option<Self> {
        let place = usize::try_from(digit.to_digit(10)?).ok()?.checked_sub(1)?;
        Self::ALL.get(place).copied()
    }
}

// === impl Below ===

impl Below {
    /// What a key does to the panes; false for other keys.
    pub(super) fn key(&mut self, key: PressedKey, view: &mut View) -> bool {
        match key {
            PressedKey::Function(7) => {
                let next = view.settings.pane.after(&view.tabs());
                self.show(next, view);
            }
            PressedKey::Function(8) | PressedKey::Char('z') => view.enlarge(),
            PressedKey::Char(digit) => match Pane::of_digit(digit) {
                Some(pane) if view.tabs().contains(&pane) => self.show(pane, view),
                _ => return false,
            },
            _ => return false,
        }
        true
    }

    /// Shows a pane, and has keys go through it; the one that is shown already is enlarged, or made
    /// small again.
    pub(super) fn show(&mut self, pane: Pane, view: &mut View) {
        if view.settings.details && view.settings.pane == pane {
            return view.enlarge();
        }
        view.settings.details = true;
        view.settings.pane = pane;
        self.scroll.seen = VisibleLines::default();
        view.set_focus(match (pane, view.focus) {
            (Pane::Details, Focus::Devices) => Focus::Devices,
            (Pane::Details, _) => Focus::Processes,
            _ => Focus::Pane,
        });
    }

    /// Paints the tabs and the pane of the chosen one.
    pub(super) fn paint(
        &mut self,
        view: &View,
        canvas: &mut Canvas<'_>,
        area: Rect,
        shown: &Snapshot,
        places: &mut Places,
    ) {
        let inside = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
        places.pane = area;
        let scroll = &mut self.scroll;
        match view.settings.pane {
            Pane::Details => detail_pane::paint(view, canvas, inside, shown),
            Pane::Alerts => self.alerts.paint(view, scroll, canvas, inside),
            Pane::Topology => topology_pane::paint(view, scroll, canvas, inside, shown),
            Pane::Programs => program_pane::paint(view, scroll, canvas, inside, shown),
            Pane::Cluster => self.cluster.paint(scroll, canvas, inside),
            Pane::Events => self.events.paint(scroll, canvas, inside, shown),
            Pane::Losses => loss_pane::paint(view, scroll, canvas, inside, shown),
        }
        places.marks = std::mem::take(&mut self.scroll.marks);
        self.tabs(view, canvas, Rect { height: 1, ..area }, places);
    }

    /// The row of tabs: what is chosen is in brackets.
    fn tabs(&self, view: &View, canvas: &mut Canvas<'_>, area: Rect, places: &mut Places) {
        let line = if canvas.unicode { "─" } else { "-" }.repeat(usize::from(area.width));
        canvas.text(area.x, area.y, area.width, &line, Role::Faint);
        let mut x = area.x;
        for (at, pane) in view.tabs().into_iter().enumerate() {
            let chosen = pane == view.settings.pane;
            let (begin, end) = if chosen { ("[", "]") } else { (" ", " ") };
            let note = match pane {
                Pane::Alerts => self.alerts.note(),
                Pane::Cluster => self.cluster.note(),
                _ => None,
            };
            let note = note.map(|note| format!(" ({note})")).unwrap_or_default();
            let text = format!("{begin}{} {}{note}{end}", at + 1, pane.title());
            let role = match (chosen, view.focus) {
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
        let seen = self.scroll.seen.words(left.into()).filter(|_| view.pane_scrolls());
        if let Some(words) = seen {
            let room = cells(width(&words)).min(left);
            canvas.right(area.right() - room, area.y, room, &words, Role::Faint);
        }
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
        assert_eq!(['0', '8', 'x'].map(Pane::of_digit), [None; 3]);
    }

    #[test]
    fn the_next_pane_is_behind_the_next_tab_that_is_there() {
        let tabs = &Pane::ALL[..6];
        assert_eq!(Pane::Events.after(&Pane::ALL), Pane::Losses);
        assert_eq!([Pane::Events, Pane::Losses].map(|it| it.after(tabs)), [Pane::Details; 2]);
    }
}
