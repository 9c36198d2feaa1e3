//! The order of a snapshot's rows: `dram:desc`, `user`.

use std::cmp::Ordering;

use telltale_schema::snapshot::{Device, HeldDevice, Process, Snapshot};

use crate::field::{Field, Owner};
use crate::subject::Value;

/// A field to sort by, and in which direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sort {
    field: &'static Field,
    descending: bool,
}

/// Why a text is no order of rows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SortError {
    /// There is no such field.
    #[error("there is no field `{name}`{} (--help-fields lists them)", close(*.meant))]
    Unknown {
        /// What was asked for.
        name: String,
        /// What may have been meant.
        meant: Option<&'static str>,
    },
    /// There is no such direction.
    #[error("`{0}` is neither asc nor desc")]
    Direction(String),
}

fn close(meant: Option<&'static str>) -> String {
    meant.map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

// === impl Sort ===

impl Sort {
    /// Reads `FIELD`, `FIELD:asc` or `FIELD:desc`.
    ///
    /// # Errors
    /// When there is no such field or direction.
    pub fn parse(text: &str) -> Result<Self, SortError> {
        let (name, direction) = text.split_once(':').unwrap_or((text, "asc"));
        let descending = match direction.trim().to_ascii_lowercase().as_str() {
            "asc" => false,
            "desc" => true,
            _ => return Err(SortError::Direction(direction.to_owned())),
        };
        let name = name.trim();
        let field = Field::named(name).ok_or_else(|| SortError::Unknown {
            name: name.to_owned(),
            meant: Field::close_to(name).map(|field| field.name),
        })?;
        Ok(Self { field, descending })
    }

    /// Whether its field is of a kind.
    #[must_use]
    pub fn names(self, is_of_kind: impl Fn(&Field) -> bool) -> bool {
        is_of_kind(self.field)
    }

    /// Sorts what each process has, and the processes by the first of that; a field of devices sorts the devices,
    /// too. What is not known comes last, and equal rows stay as they are.
    pub fn apply(self, snapshot: &mut Snapshot) {
        if self.field.owner == Owner::Device {
            self.sort_devices(snapshot);
        }
        let Snapshot { devices, processes, .. } = snapshot;
        for process in &mut *processes {
            let mut held = std::mem::take(&mut process.devices);
            held.sort_by(|a, b| {
                self.compare(
                    &self.value(process, Some(a), devices),
                    &self.value(process, Some(b), devices),
                )
            });
            process.devices = held;
        }
        processes.sort_by(|a, b| {
            let [a, b] =
                [a, b].map(|process| self.value(process, process.devices.first(), devices));
            self.compare(&a, &b)
        });
    }

    fn sort_devices(self, snapshot: &mut Snapshot) {
        let mut order: Vec<usize> = (0..snapshot.devices.len()).collect();
        let value = |place: &usize| self.field.read(None, None, snapshot.devices.get(*place));
        order.sort_by(|a, b| self.compare(&value(a), &value(b)));
        let mut places = vec![0; order.len()];
        for (new, old) in order.iter().enumerate() {
            places[*old] = new;
        }
        snapshot.devices = order.iter().map(|old| snapshot.devices[*old].clone()).collect();
        for held in snapshot.processes.iter_mut().flat_map(|process| &mut process.devices) {
            if let Some(place) = places.get(held.device) {
                held.device = *place;
            }
        }
    }

    fn value<'a>(
        self,
        process: &'a Process,
        held: Option<&'a HeldDevice>,
        devices: &'a [Device],
    ) -> Value<'a> {
        let device = held.and_then(|held| devices.get(held.device));
        self.field.read(Some(process), held, device)
    }

    fn compare(self, a: &Value<'_>, b: &Value<'_>) -> Ordering {
        let order = match (a, b) {
            (Value::Absent, Value::Absent) => return Ordering::Equal,
            (Value::Absent, _) => return Ordering::Greater,
            (_, Value::Absent) => return Ordering::Less,
            (Value::Number(a), Value::Number(b)) => a.total_cmp(b),
            (Value::Text(a), Value::Text(b)) => a.to_lowercase().cmp(&b.to_lowercase()),
            // A field has values of one kind.
            (Value::Number(_), Value::Text(_)) => Ordering::Less,
            (Value::Text(_), Value::Number(_)) => Ordering::Greater,
        };
        if self.descending { order.reverse() } else { order }
    }
}
