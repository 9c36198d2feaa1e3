//! Chosen fields as comma-separated values, for scripts: a row a device, or a row a process, or a
//! row a process and device where a chosen field differs by device.
//!
//! Fields are those of queries. Numbers are raw, in base units; what is not known is empty.

use telltale_query::{Field, Owner, Value};
use telltale_schema::snapshot::Snapshot;

use crate::{csv, rows};

/// Fields in one list at most: more than there are.
const MOST_FIELDS: usize = 64;

/// What the rows are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RowsOf {
    /// Devices.
    Devices,
    /// Processes.
    Processes,
}

/// The chosen fields, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns {
    rows: RowsOf,
    fields: Vec<Column>,
}

/// A column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    /// When the snapshot was taken, by which the rows of one are distinguished from those of the next.
    Timestamp,
    /// A field of queries.
    Field(&'static Field),
}

/// The name of [`Column::Timestamp`], as nvidia-smi has it.
const TIMESTAMP: &str = "timestamp";

/// Why these cannot be columns.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ColumnsError {
    /// There is no such field.
    #[error("there is no field `{name}`{}; --help-fields lists them", close(*.meant))]
    Unknown {
        /// What was asked for.
        name: String,
        /// What may have been meant.
        meant: Option<&'static str>,
    },
    /// A device has no process of its own.
    #[error("`{0}` is of a process, and each row is a device; use --query-process")]
    OfProcess(&'static str),
    /// A list without end.
    #[error("these are more than {MOST_FIELDS} fields")]
    TooMany,
}

fn close(meant: Option<&'static str>) -> String {
    meant.map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

impl Columns {
    /// Reads names that are separated by commas.
    ///
    /// # Errors
    /// When one of them is no field, or not one of these rows.
    pub fn parse(rows: RowsOf, list: &str) -> Result<Self, ColumnsError> {
        if list.split(',').count() > MOST_FIELDS {
            return Err(ColumnsError::TooMany);
        }
        let field = |name: &str| {
            let name = name.trim();
            if name.eq_ignore_ascii_case(TIMESTAMP) {
                return Ok(Column::Timestamp);
            }
            let field = Field::named(name).ok_or_else(|| ColumnsError::Unknown {
                name: name.to_owned(),
                meant: Field::close_to(name).map(|field| field.name),
            })?;
            match (rows, field.owner) {
                (RowsOf::Devices, Owner::Process) => Err(ColumnsError::OfProcess(field.name)),
                _ => Ok(Column::Field(field)),
            }
        };
        Ok(Self { rows, fields: list.split(',').map(field).collect::<Result<_, _>>()? })
    }

    /// Whether one is a field of a kind.
    #[must_use]
    pub fn names(&self, is_of_kind: impl Fn(&Field) -> bool) -> bool {
        self.fields.iter().any(|column| matches!(column, Column::Field(field) if is_of_kind(field)))
    }

    /// The heading: names, and base units in brackets unless they are not wanted.
    #[must_use]
    pub fn heading(&self, with_units: bool) -> String {
        let name = |column: &Column| {
            let (name, unit) = match column {
                Column::Timestamp => (TIMESTAMP, Some("ns")),
                Column::Field(field) => (field.name, field.kind.unit()),
            };
            match unit.filter(|_| with_units) {
                Some(unit) => format!("{name} [{unit}]"),
                None => name.to_owned(),
            }
        };
        let mut text = String::new();
        csv::row(&self.fields.iter().map(name).collect::<Vec<_>>(), &mut text);
        text
    }

    /// The rows of a snapshot.
    #[must_use]
    pub fn rows(&self, snapshot: &Snapshot) -> String {
        let mut text = String::new();
        match self.rows {
            RowsOf::Devices => {
                for device in &snapshot.devices {
                    let read = |field: &Field| field.read(None, None, Some(device));
                    self.row(snapshot, read, &mut text);
                }
            }
            RowsOf::Processes => {
                let is_by_device =
                    |column: &Column| matches!(column, Column::Field(it) if it.is_by_device());
                let by_device = self.fields.iter().any(is_by_device);
                for process in &snapshot.processes {
                    let held = match by_device {
                        true => rows::devices(&process.devices),
                        false => vec![None],
                    };
                    for held in held {
                        let device = held.and_then(|held| snapshot.devices.get(held.device));
                        let read = |field: &Field| field.read(Some(process), held, device);
                        self.row(snapshot, read, &mut text);
                    }
                }
            }
        }
        text
    }

    fn row<'a>(&self, snapshot: &Snapshot, read: impl Fn(&Field) -> Value<'a>, text: &mut String) {
        let values = self.fields.iter().map(|column| match column {
            Column::Timestamp => snapshot.taken_at.0.to_string(),
            Column::Field(field) => match read(field) {
                Value::Text(text) => text.into_owned(),
                Value::Number(number) => number.to_string(),
                Value::Absent => String::new(),
            },
        });
        csv::row(&values.collect::<Vec<_>>(), text);
    }
}
