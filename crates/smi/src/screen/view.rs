//! What is shown, and how: the snapshot and what the filter leaves of it, its rows, what is selected.

use std::collections::HashSet;
use std::sync::Arc;

use telltale_query::Query;
use telltale_schema::clock::Timestamp;
use telltale_schema::fleet::Fleet;
use telltale_schema::quantity;
use telltale_schema::snapshot::Snapshot;

use super::chosen_device::ChosenDevice;
use super::device_picker::{DevicePicker, PickerRow};
use super::device_rows::{self, Apart, DeviceRow, DeviceRowId};
use super::machines::{self, Machines};
use super::pane::Pane;
use super::past::Past;
use super::pointer::Pointer;
use super::recorded::Recorded;
use super::row::{self, Row, RowId, Who};
use super::series::History;
use super::settings::{Terms, ViewSettings};
use super::stacks::Stacks;
use crate::training::TrainingReport;

/// Rows of the tree that are remembered as turned before those that are gone are forgotten.
const MAX_TURNED: usize = 4096;

/// The pane that keys go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Focus {
    Processes,
    Devices,
    Pane,
}

/// What is shown, and how.
pub(super) struct View {
    pub(super) settings: ViewSettings,
    pub(super) terms: Terms,
    pub(super) filter: Option<Query>,
    /// The machine, and what the filter leaves of it.
    pub(super) snapshot: Option<Arc<Snapshot>>,
    pub(super) shown: Option<Arc<Snapshot>>,
    /// The past, while it is shown.
    pub(super) past: Option<Past>,
    /// Where in a recording the view is, if it is in one.
    pub(super) recorded: Option<Recorded>,
    /// The machines that the snapshot was put together from, where there are several.
    pub(super) fleet: Option<Arc<Fleet>>,
    /// Whose the processes are that are shown.
    pub(super) machines: Machines,
    pub(super) now: Timestamp,
    pub(super) history: History,
    /// The memory of the devices by process, whatever the filter leaves.
    pub(super) stacks: Stacks,
    pub(super) rows: Vec<Row>,
    /// Rows of the tree that are not as they usually are.
    pub(super) turned: HashSet<RowId>,
    pub(super) selected: Pointer<RowId>,
    pub(super) device_rows: Vec<DeviceRow>,
    pub(super) device: Pointer<DeviceRowId>,
    /// The devices that alerts are about, by their ids.
    pub(super) alarmed: HashSet<String>,
    pub(super) chosen_device: Option<ChosenDevice>,
    pub(super) focus: Focus,
}

// === impl View ===

impl View {
    /// Without a snapshot yet.
    pub(super) fn new(settings: ViewSettings, terms: Terms, filter: Option<Query>) -> Self {
        let machines = Machines::only(&terms.host);
        Self {
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
            stacks: Stacks::default(),
            rows: Vec::new(),
            turned: HashSet::new(),
            selected: Pointer::default(),
            device_rows: Vec::new(),
            device: Pointer::default(),
            alarmed: HashSet::new(),
            chosen_device: None,
            focus: Focus::Processes,
        }
    }

    pub(super) fn take(&mut self, snapshot: Arc<Snapshot>, machines: &Machines, now: Timestamp) {
        self.now = now;
        let who = self.selected_process().map(|(who, _)| who);
        self.history.push(&snapshot, machines, who);
        self.snapshot = Some(snapshot);
        self.select();
    }

    /// Seconds since the snapshot, where that is longer than it should be.
    pub(super) fn late_seconds(&self) -> Option<u64> {
        let snapshot = self.snapshot.as_ref()?;
        let age_ns = self.now.since_ns(snapshot.taken_at);
        let period_ns = u64::try_from(self.terms.period.as_nanos()).unwrap_or(u64::MAX);
        let late = age_ns > period_ns.saturating_mul(3).max(3_000_000_000);
        late.then_some(age_ns / 1_000_000_000)
    }

    /// Applies the filter, then makes the rows.
    pub(super) fn select(&mut self) {
        if let Some(fleet) = &self.fleet {
            let (shown, machines) = machines::together(fleet, self.filter.as_ref());
            self.shown = Some(Arc::new(shown));
            self.machines = machines;
            self.stack();
            return self.arrange();
        }
        self.shown = match (self.displayed(), &self.filter) {
            (Some(snapshot), Some(filter)) => Some(Arc::new(filter.select(snapshot))),
            (snapshot, _) => snapshot.cloned(),
        };
        self.stack();
        self.arrange();
    }

    fn stack(&mut self) {
        let whole = if self.fleet.is_some() { self.shown.as_ref() } else { self.displayed() };
        if let Some(whole) = whole.cloned() {
            self.stacks.update(&whole, &self.machines);
        }
    }

    /// Makes the rows, and finds what was selected among them.
    pub(super) fn arrange(&mut self) {
        self.arrange_devices();
        let Some(shown) = &self.shown else { return };
        let chosen = self.chosen_device();
        self.rows = row::rows(shown, &self.settings, &self.machines, &self.turned, chosen);
        let rows = &self.rows;
        self.selected.find(rows.len(), |at| rows[at].id.clone());
        // Those of processes that have gone.
        if self.turned.len() > MAX_TURNED {
            let there: HashSet<&RowId> = rows.iter().map(|row| &row.id).collect();
            self.turned.retain(|id| there.contains(id));
        }
    }

    /// The devices that the picker lists.
    pub(super) fn picker_rows(&self, picker: &mut DevicePicker) -> Vec<PickerRow> {
        let Some((shown, whole)) = self.shown.as_ref().zip(self.displayed()) else {
            return Vec::new();
        };
        // Of several hosts all have other names when they are together.
        let whole = if self.fleet.is_some() { shown } else { whole };
        picker.rows(shown, whole)
    }

    /// Makes the rows of the devices, and finds the selected one among them.
    fn arrange_devices(&mut self) {
        let Some(shown) = &self.shown else { return };
        let pointed = match self.device.id() {
            Some(DeviceRowId::Device(id)) => Some(id.as_str()),
            _ => None,
        };
        let apart = Apart {
            all: self.settings.all_devices,
            selected: [pointed, self.chosen_device.as_ref().map(|chosen| chosen.id())],
            alarmed: Some(&self.alarmed),
        };
        self.device_rows = device_rows::rows(shown, &self.machines, &apart);
        let rows = &self.device_rows;
        self.device.find(rows.len(), |at| rows[at].id(&shown.devices));
    }

    /// The place of the selected device; none while idle ones are selected together.
    pub(super) fn selected_device(&self) -> Option<usize> {
        match self.device_rows.get(self.device.at())? {
            DeviceRow::Device(place) => Some(*place),
            DeviceRow::Idle(_) => None,
        }
    }

    /// The row that is selected.
    pub(super) fn selected_row(&self) -> Option<&Row> {
        self.rows.get(self.selected.at())
    }

    /// The process of the row that is selected, and its place in what is shown.
    pub(super) fn selected_process(&self) -> Option<(Who, usize)> {
        let place = self.selected_row()?.process?;
        let process = self.shown.as_ref()?.processes.get(place)?;
        Some((Who::of(process, place, &self.machines), place))
    }

    /// The machine at the time that is shown.
    pub(super) fn displayed(&self) -> Option<&Arc<Snapshot>> {
        let past = self.past.as_ref().and_then(|past| past.snapshot.as_ref());
        past.or(self.snapshot.as_ref())
    }

    /// How far back the view looks, in words; none in the present.
    pub(super) fn past_words(&self) -> Option<String> {
        let past = self.past.as_ref()?;
        let Some(snapshot) = &past.snapshot else { return Some(String::from("LOOKING BACK")) };
        // Spans of time are shown to the second.
        #[allow(clippy::cast_precision_loss)]
        let ago = quantity::span(self.now.since_ns(snapshot.taken_at) as f64 / 1e9);
        Some(format!("PAST: {ago} ago (p: now)"))
    }

    /// The panes that have a tab: that of losses has one while it is shown or something trains.
    pub(super) fn tabs(&self) -> Vec<Pane> {
        let trains = || {
            let processes = self.displayed().map_or(&[][..], |shown| &shown.processes);
            processes.iter().any(|process| TrainingReport::of(process).is_some())
        };
        let has_tab =
            |pane: &Pane| *pane != Pane::Losses || self.settings.pane == Pane::Losses || trains();
        Pane::ALL.into_iter().filter(has_tab).collect()
    }

    /// Whether the pane has lines of its own that keys go through.
    pub(super) fn pane_scrolls(&self) -> bool {
        self.settings.details && self.settings.pane != Pane::Details
    }

    /// Whether the pane has the place of the processes as well.
    pub(super) fn is_enlarged(&self) -> bool {
        self.settings.details && self.settings.enlarged
    }

    /// Gives the pane the place of the processes as well, or takes it back.
    pub(super) fn enlarge(&mut self) {
        self.settings.details = true;
        self.settings.enlarged = !self.settings.enlarged;
        if self.settings.enlarged && self.pane_scrolls() {
            self.set_focus(Focus::Pane);
        }
    }

    /// What keys go to after this one, of the visible ones.
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

    /// The number of processes that are shown, and of all.
    pub(super) fn counts(&self) -> [usize; 4] {
        let count = |of: Option<&Arc<Snapshot>>| {
            of.map_or([0, 0], |it| [it.devices.len(), it.processes.len()])
        };
        let [[devices, processes], [all_devices, all_processes]] =
            [count(self.shown.as_ref()), count(self.displayed())];
        [devices, all_devices, processes, all_processes]
    }

    /// What sources could not read, and what is wrong with devices and parts of the machine.
    pub(super) fn errors(&self) -> usize {
        let Some(snapshot) = self.displayed() else { return 0 };
        let errors = snapshot.sources.iter().map(|source| source.errors.len());
        errors.sum::<usize>() + snapshot.wrong().count()
    }
}
