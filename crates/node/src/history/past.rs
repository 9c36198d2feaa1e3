//! The machine at a past moment, put together again from its series. What is not kept is absent,
//! with that reason; sums are made as they are for the present.

use std::collections::BTreeMap;

use rusqlite::Connection;
use telltale_schema::clock::Timestamp;
use telltale_schema::device::DeviceIdentity;
use telltale_schema::memory::{MemoryKind, MemorySpace};
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::{
    Accounting, Device, HeldDevice, HeldKind, HeldUsage, KindMemory, Process, ProcessState,
    RecordingFaults, Snapshot, SourceStatus, SpaceUsage, Telemetry,
};

use super::blocks::{self, Block, TIERS};
use super::buckets;
use super::reader::{HistoryReader, ReadHistoryError, device_names};
use super::recorder::MACHINE;
use super::rows::ProcessRow;
use super::samples::{self, Item};
use super::series_kind::{self, SeriesKind};
use super::timeline::{milliseconds, moment};
use super::{fault_table, learned, part, stored};

/// The machine as it was.
#[derive(Debug, Clone, PartialEq)]
pub struct Past {
    /// What was known then, as far as it is kept; `taken_at` is the moment that it is of.
    pub snapshot: Snapshot,
    /// How long a span its values are means over, in milliseconds; 0 where they are of that very
    /// moment.
    pub resolution_ms: u64,
}

/// What one subject's series say of the moment.
type Metrics = Vec<(SeriesKind, Item)>;

// === impl HistoryReader ===

impl HistoryReader {
    /// The machine at the last moment up to `at` of which there is something.
    ///
    /// # Errors
    /// When the database cannot be read, or has nothing so old.
    pub fn snapshot_at(&self, at: Timestamp) -> Result<Past, ReadHistoryError> {
        let connection = self.connection.unchecked_transaction()?;
        let at_ms = milliseconds(at);
        let Some((block, place)) = place_of(&connection, at_ms)? else {
            return Err(ReadHistoryError::NothingThen(beginning(&connection, at)?));
        };
        let at_ms = match block.resolution_ms {
            0 => block.sampled_ms.get(place).copied().unwrap_or(block.start_ms),
            step => {
                let offset = i64::try_from(place).unwrap_or(0).saturating_mul(step);
                (first_span_ms(&block) + offset).max(block.start_ms)
            }
        };
        let at = moment(at_ms);
        let series_kinds = values_at(&connection, &block, place)?;
        let mut snapshot = put_together(&connection, block.id, &series_kinds, at)?;
        add_faults(&connection, at_ms, &mut snapshot)?;
        Ok(Past { snapshot, resolution_ms: block.resolution_ms.unsigned_abs() })
    }
}

/// The finest block that has something of this moment, or of the last one before it, and the place
/// of that in it.
fn place_of(connection: &Connection, at_ms: i64) -> rusqlite::Result<Option<(Block, usize)>> {
    let mut best: Option<Block> = None;
    for tier in &TIERS {
        let Some(last) = blocks::last_before(connection, tier, at_ms)? else { continue };
        // A coarser block is better only if it reaches nearer to the moment.
        let reach = |block: &Block| block.end_ms.min(at_ms);
        if best.as_ref().is_none_or(|best| reach(best) < reach(&last)) {
            best = Some(last);
        }
    }
    Ok(best.map(|block| {
        let place = match block.resolution_ms {
            0 => block.sampled_ms.partition_point(|sampled| *sampled <= at_ms).saturating_sub(1),
            step => {
                let last_ms = block.end_ms.saturating_sub(1).max(block.start_ms);
                let since = at_ms.min(last_ms).saturating_sub(first_span_ms(&block));
                usize::try_from(since / step).unwrap_or(0)
            }
        };
        (block, place)
    }))
}

fn first_span_ms(block: &Block) -> i64 {
    block.start_ms.div_euclid(block.resolution_ms) * block.resolution_ms
}

/// Why there is nothing of a moment.
fn beginning(connection: &Connection, at: Timestamp) -> rusqlite::Result<String> {
    let text = "SELECT min(start_ms) FROM block";
    let first: Option<i64> = connection.query_row(text, [], |row| row.get(0))?;
    let format = telltale_schema::calendar::format;
    Ok(match first {
        None => String::from("the history is still empty; its first lines come within seconds"),
        Some(first) => format!(
            "the history has nothing of {}; it begins at {}",
            format(at),
            format(moment(first))
        ),
    })
}

/// What each subject's series say at a place of a block.
fn values_at(
    connection: &Connection,
    block: &Block,
    place: usize,
) -> rusqlite::Result<BTreeMap<i64, Metrics>> {
    let mut statement = connection.prepare("SELECT subject, series FROM part WHERE block = ?")?;
    let mut rows = statement.query([block.id])?;
    let mut all = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let bytes: Vec<u8> = row.get(1)?;
        let mut rest = bytes.as_slice();
        let mut series_kinds = Vec::new();
        while let Some((code, series)) = part::take(&mut rest) {
            let item = item_at(block, series, place);
            series_kinds.extend(SeriesKind::from_code(code).zip(item));
        }
        if !series_kinds.is_empty() {
            all.insert(row.get(0)?, series_kinds);
        }
    }
    Ok(all)
}

/// What a series says at a place: what was sampled, or the mean over the span.
fn item_at(block: &Block, series: &[u8], place: usize) -> Option<Item> {
    if block.resolution_ms == 0 {
        return samples::read(series, block.sampled_ms.len())?.get(place).copied().flatten();
    }
    let mut found = None;
    buckets::read(series, block.resolution_ms.unsigned_abs(), |at, bucket| {
        if at == place {
            found = match (bucket.rounded_mean(), bucket.absent) {
                (Some(mean), _) => Some(Item::Value(mean)),
                (None, reason) => reason.map(Item::Absent),
            };
        }
    })?;
    found
}

fn put_together(
    connection: &Connection,
    block: i64,
    series_kinds: &BTreeMap<i64, Metrics>,
    at: Timestamp,
) -> rusqlite::Result<Snapshot> {
    let mut places = BTreeMap::new();
    let mut devices = Vec::new();
    let text = "SELECT subject.id, device.id, name, identity, facts, firmware FROM subject \
        JOIN device ON device.id = subject.device WHERE subject.process IS NULL ORDER BY device.id";
    let mut statement = connection.prepare(text)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let Some(series_kinds) = series_kinds.get(&row.get(0)?) else { continue };
        places.insert(row.get::<_, i64>(1)?, devices.len());
        devices.push(device(row, series_kinds, at)?);
    }
    let machine = series_kinds.get(&MACHINE).map_or(&[][..], Vec::as_slice);
    Ok(Snapshot {
        devices,
        processes: processes(connection, block, series_kinds, &places, at)?,
        closed_processes: value(machine, SeriesKind::Closed).unwrap_or(0),
        sources: vec![SourceStatus {
            name: String::from("history"),
            duration_ns: 0,
            errors: Vec::new(),
            errors_dropped: 0,
            notes: Vec::new(),
        }],
        ..Snapshot::empty(at)
    })
}

/// What was wrong then, or that this is not kept.
fn add_faults(
    connection: &Connection,
    at_ms: i64,
    snapshot: &mut Snapshot,
) -> rusqlite::Result<()> {
    let Some(faults) = fault_table::at(connection, at_ms)? else {
        snapshot.devices.iter_mut().for_each(|device| device.health_not_kept = true);
        return Ok(());
    };
    let names = device_names(connection)?;
    for (device, fault) in faults {
        let Some(id) = device else {
            snapshot.faults.push(fault);
            continue;
        };
        let name = names.iter().find(|(known, _)| *known == id).map(|(_, name)| name);
        let place = snapshot.devices.iter().position(|device| Some(&device.id) == name);
        if let Some(place) = place {
            snapshot.devices[place].faults.push(fault);
        } else if let Some(mut unread) = learned::device(connection, id)? {
            // One that had vanished has no values of then.
            unread.faults.push(fault);
            snapshot.devices.push(unread);
        }
    }
    snapshot.bound_faults();
    Ok(())
}

fn processes(
    connection: &Connection,
    block: i64,
    series_kinds: &BTreeMap<i64, Metrics>,
    places: &BTreeMap<i64, usize>,
    at: Timestamp,
) -> rusqlite::Result<Vec<Process>> {
    let text = format!(
        "SELECT {} FROM process WHERE id IN (SELECT process FROM part JOIN subject \
         ON subject.id = part.subject WHERE part.block = ?) ORDER BY pid, start_ticks",
        stored::PROCESS_COLUMNS
    );
    let mut statement = connection.prepare(&text)?;
    let rows = statement.query_map([block], stored::process)?;
    let mut processes = Vec::new();
    for row in rows {
        let mut row = row?;
        stored::fill(connection, &mut row)?;
        if let Some(series_kinds) = series_kinds.get(&row.track.subject).map(Vec::as_slice) {
            processes.push((row, series_kinds));
        }
    }
    let of_subject = |subject| series_kinds.get(&subject).map_or(&[][..], Vec::as_slice);
    Ok(processes
        .into_iter()
        .map(|(row, own)| {
            let held = row.held.iter().filter_map(|held| {
                let place = places.get(&held.device)?;
                held_device(*place, of_subject(held.track.subject))
            });
            let held = held.collect();
            process(row, own, held, at)
        })
        .collect())
}

fn device(
    row: &rusqlite::Row<'_>,
    series_kinds: &[(SeriesKind, Item)],
    at: Timestamp,
) -> rusqlite::Result<Device> {
    let (identity, facts, firmware): (String, String, String) =
        (row.get(3)?, row.get(4)?, row.get(5)?);
    let identity: DeviceIdentity = serde_json::from_str(&identity).unwrap_or_default();
    let mut telemetry = Telemetry::absent(Absence::NotKept, "");
    telemetry.firmware = serde_json::from_str(&firmware).unwrap_or_default();
    for sensor in series_kind::sensors() {
        if let Some(item) = item(series_kinds, SeriesKind::Sensor(sensor)) {
            series_kind::put_sensor(sensor, &mut telemetry, item, at);
        }
    }
    let facts = serde_json::from_str(&facts)
        .unwrap_or_else(|_| Reading::absent(Absence::NotUnderstood, "in the history"));
    Ok(Device {
        id: row.get(2)?,
        identity,
        facts,
        telemetry,
        spaces: MemorySpace::ALL
            .into_iter()
            .filter_map(|space| usage(space, series_kinds, at))
            .collect(),
        kinds: MemoryKind::ALL.into_iter().filter_map(|kind| parts(kind, series_kinds)).collect(),
        holders: Reading::absent(Absence::NotKept, ""),
        faults: Vec::new(),
        health_not_kept: false,
    })
}

fn usage(
    space: MemorySpace,
    series_kinds: &[(SeriesKind, Item)],
    at: Timestamp,
) -> Option<SpaceUsage> {
    let bytes = |series_kind| {
        item(series_kinds, series_kind).map(|item| whole(series_kind::reading(item, at)))
    };
    let used_bytes = bytes(SeriesKind::SpaceUsed(space))?;
    let capacity_bytes = bytes(SeriesKind::SpaceCapacity(space))
        .unwrap_or_else(|| Reading::absent(Absence::NotKept, ""));
    Some(SpaceUsage { space, used_bytes, capacity_bytes, capacity_source: None })
}

/// The parts of a kind; over a span each is a mean, rounded, and what living processes have is what
/// is left, so that the parts add up.
fn parts(kind: MemoryKind, series_kinds: &[(SeriesKind, Item)]) -> Option<KindMemory> {
    let total_bytes = value(series_kinds, SeriesKind::KindTotal(kind))?;
    let ghost = value(series_kinds, SeriesKind::KindGhost(kind)).unwrap_or(0).min(total_bytes);
    let rest = total_bytes - ghost;
    let unattributed =
        value(series_kinds, SeriesKind::KindUnattributed(kind)).unwrap_or(0).min(rest);
    Some(KindMemory {
        kind,
        total_bytes,
        processes_bytes: rest - unattributed,
        unattributed_bytes: unattributed,
        ghost_bytes: ghost,
        live_buffers: value(series_kinds, SeriesKind::KindBuffers(kind)),
    })
}

fn held_device(device: usize, series_kinds: &[(SeriesKind, Item)]) -> Option<HeldDevice> {
    let accounting = match value(series_kinds, SeriesKind::Accounting)? {
        0 => Accounting::Recorded,
        1 => Accounting::BytesOnly,
        2 => Accounting::OpenOnly,
        _ => Accounting::Unknown,
    };
    let kinds = MemoryKind::ALL.into_iter().filter_map(|kind| {
        let live_bytes = value(series_kinds, SeriesKind::Live(kind))?;
        // Counts of allocations and the peak of that time are not kept.
        Some(HeldKind { kind, usage: HeldUsage::BytesOnly { live_bytes } })
    });
    let open = value(series_kinds, SeriesKind::OpenDescriptors).unwrap_or(0);
    let mut held = HeldDevice {
        device,
        open_descriptors: u32::try_from(open).unwrap_or(u32::MAX),
        accounting,
        kinds: kinds.collect(),
        ..HeldDevice::default()
    };
    held.add_up();
    held.live_buffers = value(series_kinds, SeriesKind::Buffers);
    Some(held)
}

fn process(
    row: ProcessRow,
    series_kinds: &[(SeriesKind, Item)],
    devices: Vec<HeldDevice>,
    at: Timestamp,
) -> Process {
    let known = row.described;
    let fault = |which| value(series_kinds, SeriesKind::Fault(which)).unwrap_or(0);
    let since = |recording_ms| at.since_ns(moment(recording_ms));
    Process {
        identity: Some(row.identity),
        pid: known.shown_pid,
        namespace_pid: (known.shown_pid != Some(row.identity.pid)).then_some(row.identity.pid),
        name: known.name,
        command: known.command,
        uid: known.uid,
        user: known.user,
        container: known.container,
        state: match value(series_kinds, SeriesKind::State) {
            Some(2) => ProcessState::Hidden,
            _ => ProcessState::Alive,
        },
        known_by: known.known_by,
        started_at: None,
        usage: None,
        uptime_seconds: match known.recording_ms {
            Some(recording_ms) => Reading::new(seconds(since(recording_ms)), at),
            None => Reading::absent(Absence::NotKept, ""),
        },
        devices,
        faults: RecordingFaults {
            double_frees: fault(0),
            unknown_frees: fault(1),
            reused_live_addresses: fault(2),
            unrecorded_events: fault(3),
        },
        metrics: [].into(),
    }
}

fn item(series_kinds: &[(SeriesKind, Item)], series_kind: SeriesKind) -> Option<Item> {
    series_kinds.iter().find(|(known, _)| *known == series_kind).map(|(_, item)| *item)
}

fn value(series_kinds: &[(SeriesKind, Item)], series_kind: SeriesKind) -> Option<u64> {
    match item(series_kinds, series_kind)? {
        Item::Value(value) => u64::try_from(value).ok(),
        Item::Absent(_) => None,
    }
}

fn whole(reading: Reading<i64>) -> Reading<u64> {
    reading.map(|value| u64::try_from(value).unwrap_or(0))
}

#[allow(clippy::cast_precision_loss)]
fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}
