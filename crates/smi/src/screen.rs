//! The full-screen view: what is on it, as a state that events and snapshots change, and that is
//! painted on demand. No input, no output, no clock: whoever drives it brings all of these, see
//! `telltale::top`.

mod alert_pane;
mod beside;
mod canvas;
mod cluster_pane;
mod column;
mod detail_pane;
mod device_pane;
mod dialog;
mod event;
mod event_pane;
mod filter_line;
mod frame;
mod graph;
mod keys;
mod machines;
mod menu;
mod pane;
mod past;
mod pointer;
mod process_pane;
mod program_pane;
mod recorded;
mod row;
mod series;
mod settings;
mod signal;
mod theme;
mod topology;
mod topology_pane;

pub use beside::{Agent, Alert, Alerts, Job, JobNode, Latency, Matrix, Tail, TailLine, Told};
pub use column::Column;
pub use event::{Action, Event, Key, Target};
pub use pane::Pane;
pub use recorded::Recorded;
pub use settings::{Figure, Settings, Terms};
pub use signal::Signal;
pub use theme::Theme;

use std::collections::HashSet;
use std::sync::Arc;

use ratatui_core::layout::Rect;
use telltale_query::Query;
use telltale_schema::clock::Timestamp;
use telltale_schema::fleet::Fleet;
use telltale_schema::snapshot::Snapshot;

use filter_line::FilterLine;
use machines::Machines;
use menu::Menu;
use pane::Seen;
use past::Past;
use pointer::Pointer;
use row::{Row, RowId, Who};
use series::History;

/// The fewest columns and rows in which everything has its place.
pub const SMALLEST: (u16, u16) = (80, 24);

/// The view.
pub struct Screen {
    settings: Settings,
    terms: Terms,
    filter: Option<Query>,
    /// The machine, and what the filter leaves of it.
    snapshot: Option<Arc<Snapshot>>,
    shown: Option<Arc<Snapshot>>,
    /// The past, while it is looked at.
    past: Option<Past>,
    /// Where in a recording the view is, if it is in one.
    recorded: Option<Recorded>,
    /// The machines that the snapshot was put together from, where there are several.
    fleet: Option<Arc<Fleet>>,
    /// Whose the processes are that are shown.
    machines: Machines,
    now: Timestamp,
    history: History,
    rows: Vec<Row>,
    /// Rows of the tree that are not as they usually are.
    turned: HashSet<RowId>,
    selected: Pointer<RowId>,
    device: Pointer<String>,
    focus: Focus,
    mode: Mode,
    alerts: Told<Alerts>,
    job: Told<Job>,
    agents: Told<Vec<Agent>>,
    tail: Told<Tail>,
    /// What of the pane below is in sight, and where it names devices.
    seen: Seen,
    marks: Vec<(Rect, usize)>,
    /// Said at the bottom until the next key.
    message: Option<String>,
    /// Where snapshots come from, in words.
    source: String,
    places: frame::Places,
}

/// The pane that keys go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Focus {
    Processes,
    Devices,
    Pane,
}

/// What keys do.
#[derive(Debug, Clone)]
enum Mode {
    Browsing,
    Filter(FilterLine),
    /// A page of text, scrolled down by so many lines.
    Page(Page, usize),
    Menu(Menu),
    Signal(signal::Dialog),
}

/// A page over the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Page {
    Help,
    Errors,
}

impl Screen {
    /// A view that has not seen a snapshot yet.
    #[must_use]
    pub fn new(settings: Settings, terms: Terms, filter: Option<Query>) -> Self {
        let machines = Machines::only(&terms.host);
        let mut screen = Self {
            settings,
            terms,
            filter,
            snapshot: None,
            shown: None,
            past: None,
            recorded: None,
            fleet: None,
            machines,
            now: Timestamp::default(),
            history: History::default(),
            rows: Vec::new(),
            turned: HashSet::new(),
            selected: Pointer::default(),
            device: Pointer::default(),
            focus: Focus::Processes,
            mode: Mode::Browsing,
            alerts: Told::Awaited,
            job: Told::Awaited,
            agents: Told::Awaited,
            tail: Told::Awaited,
            seen: Seen::default(),
            marks: Vec::new(),
            message: None,
            source: String::new(),
            places: frame::Places::default(),
        };
        if screen.is_enlarged() && screen.pane_scrolls() {
            screen.focus = Focus::Pane;
        }
        screen
    }

    /// Shows this snapshot from now on.
    pub fn update(&mut self, snapshot: Arc<Snapshot>, now: Timestamp) {
        let machines = Machines::only(&self.terms.host);
        self.take(snapshot, &machines, now);
    }

    fn take(&mut self, snapshot: Arc<Snapshot>, machines: &Machines, now: Timestamp) {
        self.now = now;
        let who = self.selected_process().map(|(who, _)| who);
        self.history.push(&snapshot, machines, who);
        self.snapshot = Some(snapshot);
        self.select();
    }

    /// Shows these machines together from now on.
    pub fn update_fleet(&mut self, fleet: Arc<Fleet>, now: Timestamp) {
        self.terms.host = machines::words(&fleet);
        let (snapshot, machines) = machines::together(&fleet, None);
        self.fleet = Some(fleet);
        self.take(Arc::new(snapshot), &machines, now);
    }

    /// Tells the time, by which a snapshot is old. Gives whether it is too old: then something
    /// other than the snapshot changes on the screen each second.
    pub fn tick(&mut self, now: Timestamp) -> bool {
        if self.recorded.is_some() {
            // Its time is its own.
            return false;
        }
        self.now = now;
        self.late_seconds().is_some()
    }

    /// Says something at the bottom until the next key.
    pub fn tell(&mut self, words: impl Into<String>) {
        self.message = Some(words.into());
    }

    /// Says in the title where snapshots come from.
    pub fn set_source(&mut self, words: impl Into<String>) {
        self.source = words.into();
    }

    /// The settings as they are now.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Seconds since the snapshot, where that is longer than it should be.
    fn late_seconds(&self) -> Option<u64> {
        let snapshot = self.snapshot.as_ref()?;
        let age_ns = self.now.since_ns(snapshot.taken_at);
        let period_ns = u64::try_from(self.terms.period.as_nanos()).unwrap_or(u64::MAX);
        let late = age_ns > period_ns.saturating_mul(3).max(3_000_000_000);
        late.then_some(age_ns / 1_000_000_000)
    }

    /// Applies the filter, then makes the rows.
    fn select(&mut self) {
        if let Some(fleet) = &self.fleet {
            let (shown, machines) = machines::together(fleet, self.filter.as_ref());
            self.shown = Some(Arc::new(shown));
            self.machines = machines;
            return self.arrange();
        }
        self.shown = match (self.displayed(), &self.filter) {
            (Some(snapshot), Some(filter)) => Some(Arc::new(filter.select(snapshot))),
            (snapshot, _) => snapshot.cloned(),
        };
        self.arrange();
    }

    /// Makes the rows, and finds what was selected among them.
    fn arrange(&mut self) {
        let Some(shown) = &self.shown else { return };
        self.rows = row::rows(shown, &self.settings, &self.machines, &self.turned);
        let rows = &self.rows;
        self.selected.find(rows.len(), |at| rows[at].id.clone());
        let devices = &shown.devices;
        self.device.find(devices.len(), |at| devices[at].id.clone());
        // Those of processes that have gone.
        if self.turned.len() > MAX_TURNED {
            let there: HashSet<&RowId> = rows.iter().map(|row| &row.id).collect();
            self.turned.retain(|id| there.contains(id));
        }
    }

    /// The row that is selected.
    fn selected_row(&self) -> Option<&Row> {
        self.rows.get(self.selected.at())
    }

    /// The process of the row that is selected, and its place in what is shown.
    fn selected_process(&self) -> Option<(Who, usize)> {
        let place = self.selected_row()?.process?;
        let process = self.shown.as_ref()?.processes.get(place)?;
        Some((Who::of(process, place), place))
    }
}

/// Rows of the tree that are remembered as turned before those that are gone are forgotten.
const MAX_TURNED: usize = 4096;
