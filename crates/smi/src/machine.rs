//! One of the machines that a page shows: its snapshot, and what it is called where there are several.

use telltale_schema::snapshot::Snapshot;

use crate::table::{Cell, Column};

/// A machine.
#[derive(Debug)]
pub(crate) struct Machine<'a> {
    /// Its name, and the cell that says so; none for the only one.
    named: Option<(String, Cell)>,
    pub(crate) snapshot: &'a Snapshot,
}

impl<'a> Machine<'a> {
    /// The only machine of a page.
    pub(crate) fn only(snapshot: &'a Snapshot) -> Self {
        Self { named: None, snapshot }
    }

    /// One of several, whose rows begin with this cell.
    pub(crate) fn named(name: String, cell: Cell, snapshot: &'a Snapshot) -> Self {
        Self { named: Some((name, cell)), snapshot }
    }

    /// The column that distinguishes these machines; none where nothing has to.
    pub(crate) fn column(machines: &[Self]) -> Option<Column> {
        machines.iter().any(|machine| machine.named.is_some()).then_some(Column::left("HOST", 0))
    }

    /// What stands in that column.
    pub(crate) fn cell(&self) -> Option<Cell> {
        self.named.as_ref().map(|(_, cell)| cell.clone())
    }

    /// A line about this machine.
    pub(crate) fn line(&self, line: &str) -> String {
        match &self.named {
            Some((name, _)) => format!("{name}: {line}"),
            None => line.to_owned(),
        }
    }
}
