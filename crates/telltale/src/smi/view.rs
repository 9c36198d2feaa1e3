//! What is shown of a snapshot, and in which form.

use std::borrow::Cow;

use crate::arguments::ColumnsFormat;
use telltale_collector::{EndpointUse, Sensors};
use telltale_query::{DeviceList, Field, NoSuchDevice, Query, Sort};
use telltale_schema::quantity;
use telltale_schema::snapshot::Snapshot;
use telltale_smi::Columns;

use super::OutputFormat;

/// What is shown, and how.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SnapshotView<'a> {
    /// In which form.
    pub(crate) form: OutputFormat,
    /// Which devices; all of them where there is none.
    pub(crate) devices: Option<&'a DeviceList>,
    /// Which rows; all of them where there is none.
    pub(crate) filter: Option<&'a Query>,
    /// In which order; by pid where there is none.
    pub(crate) sort: Option<Sort>,
    /// Which fields, where they were chosen.
    pub(crate) columns: Option<&'a Columns>,
    /// How chosen fields are written.
    pub(crate) format: ColumnsFormat,
}

impl SnapshotView<'_> {
    /// All of it in this form.
    pub(crate) fn whole(form: OutputFormat) -> Self {
        let format = ColumnsFormat::default();
        Self { form, devices: None, filter: None, sort: None, columns: None, format }
    }

    /// When endpoints are asked: what they tell besides memory is in the details and in JSON, and
    /// a filter may ask for it.
    pub(super) fn endpoints(self) -> EndpointUse {
        match self.form {
            OutputFormat::Tables { details: false }
            | OutputFormat::List
            | OutputFormat::Csv { .. }
                if self.filter.is_none() && self.columns.is_none() =>
            {
                EndpointUse::WhereNeeded
            }
            _ => EndpointUse::Always,
        }
    }

    /// Which sensors of the chips are read: fields that were chosen, filters and orders may name any.
    pub(super) fn sensors(self) -> Sensors {
        let names_fields = self.filter.is_some() || self.columns.is_some() || self.sort.is_some();
        match self.form {
            OutputFormat::Tables { details: false }
            | OutputFormat::List
            | OutputFormat::Csv { .. }
                if !names_fields =>
            {
                Sensors::Main
            }
            _ => Sensors::All,
        }
    }

    /// Whether it is read what processes and the host use: fields may name it, and JSON and the details
    /// have all there is.
    pub(super) fn usage(self) -> bool {
        let whole =
            matches!(self.form, OutputFormat::Json | OutputFormat::Tables { details: true });
        whole || self.names_usage()
    }

    /// Whether it shows rates of that, for which one reading is not enough.
    pub(super) fn measures_usage(self) -> bool {
        self.form == OutputFormat::Tables { details: true } || self.names_usage()
    }

    /// Whether a field that was chosen, filtered or sorted by is of that.
    pub(super) fn names_usage(self) -> bool {
        self.names(Field::is_of_usage)
    }

    /// Whether how devices are is shown, chosen, filtered or sorted by: that takes a look at heartbeats.
    pub(super) fn names_health(self) -> bool {
        self.form == OutputFormat::Tables { details: true } || self.names(Field::is_of_health)
    }

    /// Whether a field of a kind was chosen, filtered or sorted by.
    fn names(self, is_of_kind: fn(&Field) -> bool) -> bool {
        self.columns.is_some_and(|columns| columns.names(is_of_kind))
            || self.filter.is_some_and(|filter| filter.names(is_of_kind))
            || self.sort.is_some_and(|sort| sort.names(is_of_kind))
    }

    /// What comes before the first snapshot, and not again.
    pub(super) fn heading(self) -> String {
        match (self.form, self.columns) {
            (OutputFormat::Csv { .. }, Some(columns)) if self.format.heading => {
                columns.heading(self.format.units)
            }
            (OutputFormat::Csv { processes: false }, None) => telltale_smi::csv::devices_heading(),
            (OutputFormat::Csv { processes: true }, None) => {
                telltale_smi::csv::PROCESSES_HEADING.to_owned()
            }
            _ => String::new(),
        }
    }

    /// Whether all devices that were named are there.
    ///
    /// # Errors
    /// When one is not.
    pub(super) fn check<'s>(
        self,
        snapshots: impl IntoIterator<Item = &'s Snapshot, IntoIter: Clone>,
    ) -> Result<(), NoSuchDevice> {
        self.devices.map_or(Ok(()), |devices| devices.check(snapshots.into_iter()))
    }

    /// The rows that are shown, in their order.
    pub(super) fn select<'s>(self, snapshot: &'s Snapshot) -> Cow<'s, Snapshot> {
        let mut selected = Cow::Borrowed(snapshot);
        if let Some(devices) = self.devices {
            selected = Cow::Owned(devices.select(&selected));
        }
        if let Some(filter) = self.filter {
            selected = Cow::Owned(filter.select(&selected));
        }
        if let Some(sort) = self.sort {
            sort.apply(selected.to_mut());
        }
        selected
    }

    /// How many rows are left, which a person would otherwise take for all.
    pub(super) fn words(self, all: &Snapshot, selected: &Snapshot) -> Option<String> {
        let filter = self.filter?;
        let share = |some: usize, all: usize, what: &str| {
            let [some, all] =
                [some, all].map(|it| quantity::count(u64::try_from(it).unwrap_or(u64::MAX)));
            format!("{some} of {all} {what}")
        };
        Some(format!(
            "{} and {} match: {filter}",
            share(selected.devices.len(), all.devices.len(), "devices"),
            share(selected.processes.len(), all.processes.len(), "processes"),
        ))
    }
}
