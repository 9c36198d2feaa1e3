//! What was wrong when the service ended before, for the one that is started now.

use std::path::Path;

use rusqlite::OptionalExtension;
use telltale_schema::clock::Timestamp;
use telltale_schema::device::DeviceIdentity;
use telltale_schema::health::{Fault, FaultKind};
use telltale_schema::reading::Reading;
use telltale_schema::snapshot::{Device, Snapshot};
use tracing::debug;

use super::reader::{HistoryReader, ReadHistoryError};
use super::writer::boot_id;
use super::{database_in, fault_table, stored};

/// What is older than this is found again when it shows again.
const MAX_AGE_NS: u64 = 3_600_000_000_000;

/// The faults that lasted when the history in `directory` was written last, for a collector to go on
/// from. None where that is more than an hour ago or before the machine was booted, or none can be read.
#[must_use]
pub fn known_faults(directory: &Path, now: Timestamp) -> Option<Snapshot> {
    let reader = HistoryReader::open(&database_in(directory)).ok()?;
    match reader.faults_at_the_end() {
        Ok(found) => found.filter(|known| now.since_ns(known.taken_at) < MAX_AGE_NS),
        Err(error) => {
            debug!("what was wrong before cannot be read: {error}");
            None
        }
    }
}

// === impl HistoryReader ===

impl HistoryReader {
    fn faults_at_the_end(&self) -> Result<Option<Snapshot>, ReadHistoryError> {
        let connection = self.connection.unchecked_transaction()?;
        let Some((at, faults)) = fault_table::at_the_end(&connection)? else { return Ok(None) };
        // Another boot has reset the hardware.
        if stored::boot_id(&connection)? != boot_id() {
            return Ok(None);
        }
        let mut known = Snapshot::empty(at);
        let mut devices: Vec<(i64, Device)> = Vec::new();
        // To start the service again is how a lower speed is accepted.
        let lasting = faults.into_iter().filter(|(_, it)| it.kind != FaultKind::NetworkSpeedLow);
        for (id, fault) in lasting {
            let Some(id) = id else {
                known.faults.push(fault);
                continue;
            };
            let place = devices.iter().position(|(known, _)| *known == id);
            let place = match place {
                Some(place) => place,
                None => {
                    let Some(device) = device(&connection, id)? else { continue };
                    devices.push((id, device));
                    devices.len() - 1
                }
            };
            add(fault, &mut devices[place].1);
        }
        known.devices = devices.into_iter().map(|(_, device)| device).collect();
        Ok(Some(known))
    }
}

/// Adds a fault to the device that has it, with the reading that shows whether it is over.
fn add(fault: Fault, to: &mut Device) {
    let heartbeat = fault.evidence.last().filter(|_| fault.kind == FaultKind::HeartbeatStopped);
    if let Some(shown) = heartbeat {
        to.telemetry.heartbeat_total = Reading::new(count(shown.value), shown.at);
    }
    to.faults.push(fault);
}

/// A counter, which evidence has as a float.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn count(value: f64) -> u64 {
    value as u64
}

/// A device of which nothing is read.
pub(super) fn device(
    connection: &rusqlite::Connection,
    id: i64,
) -> rusqlite::Result<Option<Device>> {
    let text = "SELECT name, identity, facts FROM device WHERE id = ?";
    let texts = |row: &rusqlite::Row<'_>| {
        Ok::<(String, String, String), _>((row.get(0)?, row.get(1)?, row.get(2)?))
    };
    let Some((name, identity, facts)) = connection.query_row(text, [id], texts).optional()? else {
        return Ok(None);
    };
    let Ok(identity) = serde_json::from_str::<DeviceIdentity>(&identity) else { return Ok(None) };
    let mut device = Device::unread(name, identity);
    if let Ok(facts) = serde_json::from_str(&facts) {
        device.facts = facts;
    }
    Ok(Some(device))
}
