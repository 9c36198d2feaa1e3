//! What is shown of a snapshot, and in which form.

use std::borrow::Cow;

use crate::arguments::ColumnsFormat;
use telltale_collector::EndpointUse;
use telltale_query::Query;
use telltale_schema::quantity;
use telltale_schema::snapshot::Snapshot;
use telltale_smi::Columns;

use super::OutputFormat;

/// What is shown, and how.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SnapshotView<'a> {
    /// In which form.
    pub(crate) form: OutputFormat,
    /// Which rows; all of them where there is none.
    pub(crate) filter: Option<&'a Query>,
    /// Which fields, where they were chosen.
    pub(crate) columns: Option<&'a Columns>,
    /// How chosen fields are written.
    pub(crate) format: ColumnsFormat,
}

impl SnapshotView<'_> {
    /// When endpoints are asked: what they tell besides memory is in the details and in JSON, and
    /// a filter may ask for it.
    pub(super) fn endpoints(self) -> EndpointUse {
        match self.form {
            OutputFormat::Tables { details: false } | OutputFormat::Csv { .. }
                if self.filter.is_none() && self.columns.is_none() =>
            {
                EndpointUse::WhereNeeded
            }
            _ => EndpointUse::Always,
        }
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

    /// The rows that are shown.
    pub(super) fn select<'s>(self, snapshot: &'s Snapshot) -> Cow<'s, Snapshot> {
        match self.filter {
            None => Cow::Borrowed(snapshot),
            Some(filter) => Cow::Owned(filter.select(snapshot)),
        }
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
