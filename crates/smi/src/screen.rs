//! The full-screen view: what is on it, as a state that events and snapshots change, and that is
//! painted on demand. No input, no output, no clock: its driver brings all of these, see
//! `telltale::top`.

mod alert_pane;
mod beside;
mod canvas;
mod chosen_device;
mod cluster_pane;
mod column;
mod detail_pane;
mod device_pane;
mod device_picker;
mod device_rows;
mod dialog;
mod event;
mod event_pane;
mod filter_line;
mod frame;
mod graph;
mod keys;
mod lines;
mod loss_pane;
mod machines;
mod menu;
mod pane;
mod past;
mod pointer;
mod process_page;
mod process_pane;
mod program_pane;
mod recorded;
mod row;
mod series;
mod settings;
mod signal;
mod stacks;
mod theme;
mod topology;
mod topology_pane;
mod view;

pub use beside::{
    Agent, Alert, Alerts, Availability, JobNode, JobView, Latency, Matrix, Tail, TailLine,
};
pub use column::Column;
pub use event::{Action, InputEvent, PressedKey, ProcessTarget, ProcessTexts};
pub use pane::Pane;
pub use recorded::Recorded;
pub use series::{MAX_PROCESSES, SAMPLES};
pub use settings::{GraphValue, Terms, ViewSettings};
pub use signal::Signal;
pub use theme::Theme;

use std::sync::Arc;

use telltale_query::Query;
use telltale_schema::clock::Timestamp;
use telltale_schema::fleet::Fleet;
use telltale_schema::history::HistoryAnswer;
use telltale_schema::snapshot::Snapshot;

use cluster_pane::ClusterPane;
use device_picker::DevicePicker;
use event_pane::EventPane;
use filter_line::FilterLine;
use machines::Machines;
use menu::Menu;
use pane::Below;
use process_page::ProcessPage;
use view::{Focus, View};

/// The fewest columns and rows in which everything has its place.
pub const SMALLEST: (u16, u16) = (80, 24);

/// The view.
pub struct Screen {
    view: View,
    mode: KeyMode,
    below: Below,
    /// Said at the bottom until the next key.
    message: Option<String>,
    /// Where snapshots come from, in words.
    source: String,
    places: frame::Places,
}

/// What keys do.
#[derive(Debug, Clone)]
enum KeyMode {
    Browsing,
    Filter(FilterLine),
    /// A page of text, scrolled down by so many lines.
    Page(OverlayPage, usize),
    Menu(Menu),
    Devices(DevicePicker),
    Signal(signal::Dialog),
}

/// A page over the view.
#[derive(Debug, Clone)]
enum OverlayPage {
    Help,
    Errors,
    Process(Box<ProcessPage>),
}

impl Screen {
    /// A view that has not seen a snapshot yet.
    #[must_use]
    pub fn new(settings: ViewSettings, terms: Terms, filter: Option<Query>) -> Self {
        let mut screen = Self {
            view: View::new(settings, terms, filter),
            mode: KeyMode::Browsing,
            below: Below::default(),
            message: None,
            source: String::new(),
            places: frame::Places::default(),
        };
        if screen.view.is_enlarged() && screen.view.pane_scrolls() {
            screen.view.focus = Focus::Pane;
        }
        screen
    }

    /// Shows this snapshot from now on.
    pub fn update(&mut self, snapshot: Arc<Snapshot>, now: Timestamp) {
        let machines = Machines::only(&self.view.terms.host);
        if let KeyMode::Page(OverlayPage::Process(page), _) = &mut self.mode
            && self.view.recorded.is_none()
        {
            page.follow(&snapshot);
        }
        self.view.take(snapshot, &machines, now);
    }

    /// Has graphs show what a service recorded of this machine before the view was opened.
    pub fn fill(&mut self, answer: &HistoryAnswer) {
        let Some(snapshot) = &self.view.snapshot else { return };
        if self.view.fleet.is_none() && self.view.recorded.is_none() {
            self.view.history.fill(answer, snapshot, self.view.terms.period);
        }
    }

    /// Shows these machines together from now on.
    pub fn update_fleet(&mut self, fleet: Arc<Fleet>, now: Timestamp) {
        self.view.terms.host = machines::words(&fleet);
        let (snapshot, machines) = machines::together(&fleet, None);
        self.view.fleet = Some(fleet);
        self.view.take(Arc::new(snapshot), &machines, now);
    }

    /// Shows a snapshot of a recording from now on.
    pub fn update_recorded(&mut self, snapshot: Arc<Snapshot>, recorded: Recorded) {
        self.view.recorded = Some(recorded);
        // Graphs have what was before this moment, whichever way one came here.
        self.view.history.rewind(snapshot.taken_at);
        let now = snapshot.taken_at;
        self.update(snapshot, now);
    }

    /// Shows these alerts from now on, those that fire first.
    pub fn set_alerts(&mut self, alerts: Availability<Alerts>) {
        let known = if let Availability::Known(known) = &alerts { &known.alerts[..] } else { &[] };
        let alarmed = known.iter().filter_map(|alert| alert.device.clone()).collect();
        if self.view.alarmed != alarmed {
            self.view.alarmed = alarmed;
            self.view.arrange();
        }
        self.below.alerts.set(alerts);
    }

    /// Shows a job and the agents on this machine from now on.
    pub fn set_cluster(&mut self, job: Availability<JobView>, agents: Availability<Vec<Agent>>) {
        self.below.cluster = ClusterPane { job, agents };
    }

    /// Shows the end of a capture from now on.
    pub fn set_tail(&mut self, tail: Availability<Tail>) {
        self.below.events = EventPane { tail };
    }

    /// Takes the texts of a process, where its page is open.
    pub fn set_texts(&mut self, of: ProcessTarget, texts: ProcessTexts) {
        if let KeyMode::Page(OverlayPage::Process(page), _) = &mut self.mode {
            page.take(of, texts);
        }
    }

    /// Tells the time, by which a snapshot is old. Gives whether it is too old: then something
    /// other than the snapshot changes on the screen each second.
    pub fn tick(&mut self, now: Timestamp) -> bool {
        if self.view.recorded.is_some() {
            // Its time is its own.
            return false;
        }
        self.view.now = now;
        self.view.late_seconds().is_some()
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
    pub fn settings(&self) -> &ViewSettings {
        &self.view.settings
    }
}
