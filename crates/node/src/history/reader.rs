//! Reading the history: series over a span of time.

use std::collections::BTreeSet;
use std::path::Path;

use rusqlite::{Connection, params};
use telltale_query::nearest;
use telltale_schema::history::{
    DenseSeries, HistoryAnswer, HistoryQuery, MAX_POINTS, MAX_SERIES, PastProcess, ProcessChoice,
    Series, Subjects, identity_text,
};
use telltale_schema::metric::MetricDefinition;
use telltale_schema::metric::definitions::DEVICE_MEMORY_SPACE_USED_BYTES;

use super::blocks::{self, Block, TIERS};
use super::buckets::{Bucket, Buckets};
use super::database::{self, DatabaseError};
use super::rows::ProcessRow;
use super::series_kind::SeriesKind;
use super::timeline::{milliseconds, moment};
use super::{fault_table, part, stored};
use crate::access::Visibility;

/// Devices that are listed where another one was asked for.
const MAX_REPORTED: usize = 32;

/// Why the history could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadHistoryError {
    /// SQLite failed.
    #[error("reading the history failed; if it is damaged, telltale serve begins a new one")]
    Sqlite(#[from] rusqlite::Error),
    /// There is nothing so old, or nothing at all.
    #[error("{0}")]
    NothingThen(String),
    /// The process that was asked for is not there, or the caller may not see it.
    #[error(
        "the history has no process {choice} that you may see; `telltale history` shows which it has"
    )]
    NoProcess {
        /// What was asked for.
        choice: ProcessChoice,
    },
    /// No device has this id, or had it.
    #[error("the history has no device {device}; it has {known}")]
    NoDevice {
        /// What was asked for.
        device: String,
        /// The devices that it has.
        known: String,
    },
    /// No metric has this name.
    #[error("the history keeps no metric {name}; {known}")]
    NoMetric {
        /// What was asked for.
        name: String,
        /// What was probably meant, else what there is.
        known: String,
    },
}

/// A history that is open to be read, whichever process writes it.
#[derive(Debug)]
pub struct HistoryReader {
    pub(super) connection: Connection,
}

/// Whose series one is.
#[derive(Debug, Clone)]
struct Subject {
    id: i64,
    device: Option<String>,
    process: Option<PastProcess>,
}

// === impl HistoryReader ===

impl HistoryReader {
    /// Opens the history at `path`; see [`super::database_in`].
    ///
    /// # Errors
    /// When there is none, it is closed to this user, damaged, or a newer version's.
    pub fn open(path: &Path) -> Result<Self, DatabaseError> {
        Ok(Self { connection: database::open_to_read(path)? })
    }

    /// Series over time, or faults, which all may see, of what `visibility` allows.
    ///
    /// # Errors
    /// When the database cannot be read, or a name stands for nothing.
    pub fn query(
        &self,
        query: &HistoryQuery,
        visibility: Visibility,
    ) -> Result<HistoryAnswer, ReadHistoryError> {
        let wanted = series_kinds(&query.metrics)?;
        let snapshot = self.connection.unchecked_transaction()?;
        self.check_names(query, visibility)?;
        let step_ms = query.step();
        let (from_ms, to_ms) = (milliseconds(query.from), milliseconds(query.to));
        let empty = Buckets::covering(from_ms, to_ms, step_ms);
        let chosen = chosen_blocks(&snapshot, from_ms, to_ms, step_ms)?;
        let mut answer = HistoryAnswer {
            from: moment(empty.begins_ms()),
            step_ms,
            points: empty.all().len(),
            series: Vec::new(),
            series_left_out: 0,
            faults: Vec::new(),
            faults_left_out: 0,
        };
        if query.subjects == Subjects::Faults {
            let devices = device_names(&snapshot)?;
            (answer.faults, answer.faults_left_out) =
                fault_table::over(&snapshot, query, &devices)?;
            return Ok(answer);
        }
        for subject in subjects(&snapshot, query, from_ms, visibility)? {
            let mut all: Vec<(SeriesKind, Buckets)> = Vec::new();
            for block in &chosen {
                let Some(bytes) = blocks::part(&snapshot, block.id, subject.id)? else { continue };
                add_part(block, &bytes, &wanted, &empty, &mut all);
            }
            for (series_kind, buckets) in all {
                match answer.series.len() < MAX_SERIES {
                    true => answer.series.extend(series(series_kind, &subject, &buckets)),
                    false => answer.series_left_out += 1,
                }
            }
        }
        Ok(answer)
    }

    /// Whether there is, or was, each device and process that is asked for by name: nothing is a
    /// series without values, and a slip of the pen must not look like one. A whole identity is none, and may
    /// be of a process that has begun since the last write.
    fn check_names(
        &self,
        query: &HistoryQuery,
        visibility: Visibility,
    ) -> Result<(), ReadHistoryError> {
        if !query.devices.is_empty() {
            let devices = device_names(&self.connection)?;
            // Before the first write there is none to compare with.
            let is_known = |wanted: &&String| {
                devices.is_empty() || devices.iter().any(|(_, name)| name == *wanted)
            };
            if let Some(device) = query.devices.iter().find(|device| !is_known(device)) {
                let names: Vec<&str> = devices.iter().map(|(_, name)| name.as_str()).collect();
                let known = some_of(&names);
                return Err(ReadHistoryError::NoDevice { device: device.clone(), known });
            }
        }
        let is_name = |choice: &&ProcessChoice| !matches!(choice, ProcessChoice::Identity(_));
        for choice in query.processes.iter().filter(is_name) {
            self.rows(choice, visibility)?;
        }
        Ok(())
    }

    /// The processes that a choice names and `visibility` allows, the newest first.
    ///
    /// # Errors
    /// When the database cannot be read, or there is none.
    pub fn find(
        &self,
        choice: &ProcessChoice,
        visibility: Visibility,
    ) -> Result<Vec<PastProcess>, ReadHistoryError> {
        Ok(self.rows(choice, visibility)?.iter().map(past_process).collect())
    }

    pub(super) fn rows(
        &self,
        choice: &ProcessChoice,
        visibility: Visibility,
    ) -> Result<Vec<ProcessRow>, ReadHistoryError> {
        let mut found = chosen_processes(&self.connection, choice)?;
        found.retain(|row| may_see(visibility, row));
        match found.is_empty() {
            true => Err(ReadHistoryError::NoProcess { choice: choice.clone() }),
            false => Ok(found),
        }
    }
}

/// Adds a subject's series of one block, as far as they are wanted.
fn add_part(
    block: &Block,
    bytes: &[u8],
    wanted: &dyn Fn(SeriesKind) -> bool,
    empty: &Buckets,
    to: &mut Vec<(SeriesKind, Buckets)>,
) {
    let mut rest = bytes;
    while let Some((code, series)) = part::take(&mut rest) {
        let Some(series_kind) =
            SeriesKind::from_code(code).filter(|series_kind| wanted(*series_kind))
        else {
            continue;
        };
        let place = to.iter().position(|(known, _)| *known == series_kind).unwrap_or_else(|| {
            to.push((series_kind, empty.clone()));
            to.len() - 1
        });
        block.add_to(series, &mut to[place].1);
    }
}

fn series(series_kind: SeriesKind, subject: &Subject, buckets: &Buckets) -> Option<Series> {
    let definition = series_kind.definition()?;
    let scale = series_kind.scale();
    let least = |of: &Bucket| of.extremes.map(|(least, _)| float(least) / scale);
    let mean = |of: &Bucket| of.mean().map(|mean| mean / scale);
    let greatest = |of: &Bucket| of.extremes.map(|(_, greatest)| float(greatest) / scale);
    let column = |value: &dyn Fn(&Bucket) -> Option<f64>| buckets.all().iter().map(value).collect();
    let mut whole = Bucket::default();
    buckets.all().iter().for_each(|bucket| whole.add(bucket));
    let mut absent: Vec<_> = buckets.all().iter().map(|bucket| bucket.absent).collect();
    if absent.iter().all(Option::is_none) {
        absent.clear();
    }
    Some(Series {
        metric: definition.name.to_owned(),
        unit: definition.unit.suffix().unwrap_or_default().to_owned(),
        label: series_kind.label().map(|(name, value)| (name.to_owned(), value.to_owned())),
        device: subject.device.clone(),
        process: subject.process.clone(),
        whole: DenseSeries { least: least(&whole), mean: mean(&whole), greatest: greatest(&whole) },
        least: column(&least),
        mean: column(&mean),
        greatest: column(&greatest),
        absent,
    })
}

/// A whole number of at most 2^53 as it is, a larger one to 16 digits.
#[allow(clippy::cast_precision_loss)]
fn float(value: i64) -> f64 {
    value as f64
}

/// Blocks that cover this time once: the coarsest that the step's spans are made of, finer ones where
/// these are not there yet, coarser ones where nothing else is left.
pub(super) fn chosen_blocks(
    connection: &Connection,
    from_ms: i64,
    to_ms: i64,
    step_ms: u64,
) -> rusqlite::Result<Vec<Block>> {
    let step = i64::try_from(step_ms).unwrap_or(i64::MAX);
    let fits = |resolution: i64| resolution == 0 || step % resolution == 0;
    let fitting = TIERS.iter().rev().filter(|tier| fits(tier.resolution_ms));
    let too_long = TIERS.iter().filter(|tier| !fits(tier.resolution_ms));
    let mut chosen: Vec<Block> = Vec::new();
    for tier in fitting.chain(too_long) {
        for block in blocks::overlapping(connection, tier, from_ms, to_ms)? {
            let (first, last) = block.sampled;
            let covers = |other: &Block| other.sampled.0 <= last && first <= other.sampled.1;
            if !chosen.iter().any(covers) {
                chosen.push(block);
            }
        }
    }
    Ok(chosen)
}

/// Whose series are asked for and may be seen, devices first.
fn subjects(
    connection: &Connection,
    query: &HistoryQuery,
    from_ms: i64,
    visibility: Visibility,
) -> Result<Vec<Subject>, ReadHistoryError> {
    let mut found = Vec::new();
    let is_asked = |device: &str| {
        query.devices.is_empty() || query.devices.iter().any(|wanted| wanted == device)
    };
    let devices = device_names(connection)?;
    let name = |id: i64| devices.iter().find(|(known, _)| *known == id).map(|(_, name)| name);
    if query.subjects != Subjects::Processes && query.processes.is_empty() {
        let text = "SELECT id, device FROM subject WHERE process IS NULL AND device IS NOT NULL \
            ORDER BY device";
        let mut statement = connection.prepare(text)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let device = name(row.get(1)?).filter(|device| is_asked(device));
            if let Some(device) = device {
                let device = Some(device.clone());
                found.push(Subject { id: row.get(0)?, device, process: None });
            }
        }
    }
    if query.subjects == Subjects::Devices {
        return Ok(found);
    }
    for process in asked_processes(connection, query, from_ms)? {
        if !may_see(visibility, &process) {
            continue;
        }
        let past = past_process(&process);
        for held in &process.held {
            if let Some(device) = name(held.device).filter(|device| is_asked(device)) {
                found.push(Subject {
                    id: held.track.subject,
                    device: Some(device.clone()),
                    process: Some(past.clone()),
                });
            }
        }
    }
    Ok(found)
}

/// The processes of a query; where none is named, those that were there in its time.
fn asked_processes(
    connection: &Connection,
    query: &HistoryQuery,
    from_ms: i64,
) -> rusqlite::Result<Vec<ProcessRow>> {
    if query.processes.is_empty() {
        let text = format!(
            "SELECT {} FROM process WHERE last_seen_ms >= ? AND first_seen_ms <= ? \
             ORDER BY last_seen_ms DESC, id DESC LIMIT ?",
            stored::PROCESS_COLUMNS
        );
        // Each has one series or more, so that there are never more of them.
        let most = MAX_SERIES as u64;
        return filled(
            connection,
            &text,
            params![from_ms, milliseconds(query.to), most.cast_signed()],
        );
    }
    let mut found: Vec<ProcessRow> = Vec::new();
    for choice in &query.processes {
        for row in chosen_processes(connection, choice)? {
            if found.iter().all(|known| known.id != row.id) {
                found.push(row);
            }
        }
    }
    Ok(found)
}

/// The processes that a choice names, the newest first.
fn chosen_processes(
    connection: &Connection,
    choice: &ProcessChoice,
) -> rusqlite::Result<Vec<ProcessRow>> {
    let (condition, values): (&str, Vec<rusqlite::types::Value>) = match choice {
        ProcessChoice::Identity(identity) => {
            let row = stored::find(connection, identity)?;
            return Ok(row.into_iter().collect());
        }
        ProcessChoice::Pid(pid) => ("shown_pid = ?1 OR pid = ?1", vec![i64::from(*pid).into()]),
        ProcessChoice::PidAndStart(pid, start) => (
            "(shown_pid = ?1 OR pid = ?1) AND start_ticks = ?2",
            vec![i64::from(*pid).into(), start.cast_signed().into()],
        ),
        // A word of the command line will do, as it is or without its directories.
        ProcessChoice::Name(name) => (
            "name = ?1 OR instr(' ' || command || ' ', ' ' || ?1 || ' ') \
             OR instr(command || ' ', '/' || ?1 || ' ')",
            vec![name.clone().into()],
        ),
    };
    let text = format!(
        "SELECT {} FROM process WHERE {condition} ORDER BY last_seen_ms DESC, id DESC \
         LIMIT {MAX_SERIES}",
        stored::PROCESS_COLUMNS
    );
    filled(connection, &text, rusqlite::params_from_iter(values))
}

fn filled(
    connection: &Connection,
    text: &str,
    values: impl rusqlite::Params,
) -> rusqlite::Result<Vec<ProcessRow>> {
    let mut statement = connection.prepare(text)?;
    let rows = statement.query_map(values, stored::process)?;
    let mut rows = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    for row in &mut rows {
        stored::fill(connection, row)?;
    }
    Ok(rows)
}

pub(super) fn device_names(connection: &Connection) -> rusqlite::Result<Vec<(i64, String)>> {
    let mut statement = connection.prepare("SELECT id, name FROM device ORDER BY id")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

pub(super) fn past_process(row: &ProcessRow) -> PastProcess {
    let known = &row.described;
    PastProcess {
        identity: row.identity,
        key: identity_text(&row.identity),
        pid: known.shown_pid,
        name: known.name.clone(),
        command: known.command.value().cloned(),
        uid: known.uid.value().copied(),
        user: known.user.value().cloned(),
    }
}

/// Whether a caller may see a process: as it is with the living, one of their own.
pub(super) fn may_see(visibility: Visibility, row: &ProcessRow) -> bool {
    match visibility {
        Visibility::Everything => true,
        Visibility::Own { uid } => row.described.uid.value() == Some(&uid),
        Visibility::DevicesOnly => false,
    }
}

/// Which metrics these names stand for.
fn series_kinds(names: &[String]) -> Result<impl Fn(SeriesKind) -> bool + use<>, ReadHistoryError> {
    let all: Vec<SeriesKind> = (0..u16::MAX).filter_map(SeriesKind::from_code).collect();
    let mut wanted: Vec<SeriesKind> = Vec::new();
    if names.is_empty() {
        // Memory by space, and what is drawn of sensors.
        let is_usual = |series_kind: &SeriesKind| match series_kind {
            SeriesKind::SpaceUsed(_) | SeriesKind::SpaceLive(_) => true,
            SeriesKind::Sensor(sensor) => sensor.is_graph,
            _ => false,
        };
        wanted.extend(all.iter().filter(|series_kind| is_usual(series_kind)));
    }
    for name in names {
        let before = wanted.len();
        wanted.extend(all.iter().filter(|series_kind| is_named(**series_kind, name)));
        if wanted.len() == before {
            let known = instead_of(name, &all);
            return Err(ReadHistoryError::NoMetric { name: name.clone(), known });
        }
    }
    Ok(move |series_kind| wanted.contains(&series_kind))
}

/// Whether a name is that of a metric, a part of it at a `_`, or its label.
fn is_named(series_kind: SeriesKind, name: &str) -> bool {
    let Some(definition) = series_kind.definition() else { return false };
    let label = series_kind.label();
    let sensor = series_kind.sensor();
    label.is_some_and(|(key, value)| key == name || value == name)
        || sensor.is_some_and(|sensor| {
            sensor.name == name || format!("{}_", sensor.field).starts_with(&format!("{name}_"))
        })
        || [Some(definition), elsewhere(series_kind)]
            .into_iter()
            .flatten()
            .any(|metric| format!("_{}_", metric.name).contains(&format!("_{name}_")))
}

/// The metric of a series at `/metrics`, where the history calls it otherwise.
fn elsewhere(series_kind: SeriesKind) -> Option<&'static MetricDefinition> {
    matches!(series_kind, SeriesKind::SpaceUsed(_)).then_some(DEVICE_MEMORY_SPACE_USED_BYTES)
}

/// What was probably meant by a name that no metric has, or the names that there are.
fn instead_of(name: &str, all: &[SeriesKind]) -> String {
    let metrics: BTreeSet<&str> = all
        .iter()
        .filter_map(|series_kind| series_kind.definition())
        .map(|found| found.name)
        .collect();
    let labels = all.iter().filter_map(|series_kind| series_kind.label());
    let labels: BTreeSet<&str> = labels.flat_map(|(key, value)| [key, value]).collect();
    let parts: Vec<(&str, &str)> = metrics
        .iter()
        .flat_map(|metric| metric.match_indices('_').map(|(at, _)| (&metric[at + 1..], *metric)))
        .collect();
    let fields =
        all.iter().filter_map(|series_kind| series_kind.sensor()).map(|sensor| sensor.field);
    let words = metrics.iter().flat_map(|metric| metric.split('_').skip(1));
    let words = words.chain(fields.flat_map(|field| field.split('_').take(1)));
    let known =
        words.chain(parts.iter().map(|(part, _)| *part)).chain(labels).chain(metrics.clone());
    if let Some(near) = nearest(name, known) {
        return format!("did you mean {near}?");
    }
    let begun: Vec<&str> = parts
        .iter()
        .filter(|(part, _)| part.starts_with(name))
        .map(|(_, metric)| *metric)
        .collect();
    let names = if begun.is_empty() || name.is_empty() {
        metrics.iter().filter_map(|metric| metric.split_once('_')).map(|(_, rest)| rest).collect()
    } else {
        begun
    };
    format!("it keeps {}", names.join(", "))
}

/// Names to report, some of them where they are many.
fn some_of(names: &[&str]) -> String {
    match names.len().checked_sub(MAX_REPORTED) {
        Some(more) if more > 0 => format!("{} and {more} more", names[..MAX_REPORTED].join(", ")),
        _ => names.join(", "),
    }
}

const _: () = assert!(MAX_POINTS < super::buckets::MAX_BUCKETS, "an answer fits into spans");
