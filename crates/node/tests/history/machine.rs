//! Machines made by hand, and a history of them in a directory of its own.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use telltale_harness::Scratch;
use telltale_node::access::Visibility;
use telltale_node::history::{HistoryOptions, HistoryReader, HistoryWriter, database_in};
use telltale_schema::chip::{AsicId, BoardType, ChipFacts, ChipIdentity};
use telltale_schema::clock::{Clock, ManualClock, Timestamp};
use telltale_schema::history::{HistoryAnswer, HistoryQuery, ProcessReport, Series};
use telltale_schema::memory::{MemoryKind, MemorySpace, MemoryUsage};
use telltale_schema::process::ProcessIdentity;
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::{
    Accounting, Device, HeldDevice, HeldKind, HeldUsage, KindMemory, Process, ProcessSource,
    ProcessState, RecordingFaults, Snapshot, SpaceUsage, Telemetry,
};

/// Nanoseconds of a second.
pub(crate) const SECOND: u64 = 1_000_000_000;

/// 2026-11-21 10:00:00 UTC.
pub(crate) const BEGIN: u64 = 1_795_255_200 * SECOND;

/// A history that is written, and the clock that it goes by.
pub(crate) struct Kept {
    pub(crate) scratch: Scratch,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) options: HistoryOptions,
    writer: Option<HistoryWriter>,
    offered: Cell<u64>,
}

impl Kept {
    pub(crate) fn new() -> Self {
        Self::with(HistoryOptions::default())
    }

    pub(crate) fn with(options: HistoryOptions) -> Self {
        let clock = Arc::new(ManualClock::starting_at(Timestamp(BEGIN)));
        let mut kept =
            Self { scratch: Scratch::new(), clock, options, writer: None, offered: Cell::new(0) };
        kept.start();
        kept
    }

    /// Starts the service's part again, on what is there.
    pub(crate) fn start(&mut self) {
        drop(self.writer.take());
        let clock = Arc::clone(&self.clock) as Arc<dyn Clock>;
        let interval = Duration::from_secs(1);
        let writer = HistoryWriter::start(self.scratch.path(), &self.options, interval, clock);
        self.writer = Some(writer.unwrap());
        self.offered.set(0);
    }

    /// Ends the service's part; all is written then.
    pub(crate) fn stop(&mut self) {
        drop(self.writer.take());
    }

    pub(crate) fn writer(&self) -> &HistoryWriter {
        self.writer.as_ref().expect("it was started")
    }

    /// Offers a snapshot of what is so now, and lets a second pass.
    pub(crate) fn see(&self, devices: &[Device], processes: &[Process]) {
        let snapshot = snapshot(self.clock.now(), devices, processes);
        self.writer().offer(Arc::new(snapshot));
        self.count_offer();
        self.clock.advance_ns(SECOND);
    }

    /// Notes that something was offered, for [`Self::settle`].
    pub(crate) fn count_offer(&self) {
        self.offered.set(self.offered.get() + 1);
    }

    /// The same for so many seconds. The queue is emptied now and then, as it is by a thread that
    /// has a second for each.
    pub(crate) fn see_for(&self, seconds: u64, devices: &[Device], processes: &[Process]) {
        for second in 0..seconds {
            self.see(devices, processes);
            if second % 10 == 9 {
                self.settle();
            }
        }
    }

    /// Waits until the thread has taken everything in, without ending a block.
    pub(crate) fn settle(&self) {
        telltale_harness::wait_until("the queue to be empty", Duration::from_secs(60), || {
            let metrics = self.writer().metrics();
            metrics.recorded + metrics.missed >= self.offered.get()
        });
    }

    pub(crate) fn path(&self) -> PathBuf {
        database_in(self.scratch.path())
    }

    pub(crate) fn reader(&self) -> HistoryReader {
        HistoryReader::open(&self.path()).unwrap()
    }

    pub(crate) fn query(&self, query: &HistoryQuery) -> HistoryAnswer {
        self.reader().query(query, Visibility::Everything).unwrap()
    }

    pub(crate) fn report(&self, process: &str) -> ProcessReport {
        let choice = process.parse().unwrap();
        let reports = self.reader().report(&choice, Visibility::Everything).unwrap();
        let [report] = <[ProcessReport; 1]>::try_from(reports).expect("one process of this name");
        report
    }
}

/// What `PRAGMA integrity_check` says of a database.
pub(crate) fn integrity(path: &Path) -> String {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap()
}

/// A moment so many seconds after [`BEGIN`].
pub(crate) fn after(seconds: u64) -> Timestamp {
    Timestamp(BEGIN + seconds * SECOND)
}

/// The series of an answer with this metric and label value.
pub(crate) fn series<'a>(answer: &'a HistoryAnswer, metric: &str, label: &str) -> &'a Series {
    let is_it = |one: &&Series| {
        one.metric.contains(metric)
            && (label.is_empty() || one.label.as_ref().is_some_and(|(_, value)| value == label))
    };
    answer.series.iter().find(is_it).unwrap_or_else(|| panic!("no {metric} {label}: {answer:?}"))
}

pub(crate) fn snapshot(now: Timestamp, devices: &[Device], processes: &[Process]) -> Snapshot {
    Snapshot {
        collected_in_ns: 1_000,
        devices: devices.to_vec(),
        processes: processes.to_vec(),
        ..Snapshot::empty(now)
    }
}

/// A chip with these bytes of DRAM in use, at this temperature.
pub(crate) fn device(number: u64, used_bytes: u64, celsius: Option<f64>) -> Device {
    let now = Timestamp(BEGIN);
    let mut telemetry = Telemetry::absent(Absence::Unsupported, "");
    telemetry.temperature_celsius = match celsius {
        Some(celsius) => Reading::new(celsius, now),
        None => Reading::absent(Absence::TimedOut, "the driver did not answer"),
    };
    telemetry.firmware = BTreeMap::from([(String::from("tt_fw_bundle_ver"), String::from("1.0"))]);
    let identity = ChipIdentity {
        asic_id: Some(AsicId(0x2_5173_2090 + number)),
        board_type: BoardType::N150,
        ..ChipIdentity::default()
    };
    let facts = ChipFacts::of_board(BoardType::N150).unwrap();
    let space = |space, used, capacity| SpaceUsage {
        space,
        used_bytes: Reading::new(used, now),
        capacity_bytes: Reading::new(capacity, now),
        capacity_source: None,
    };
    Device {
        id: identity.display_id(),
        identity: identity.into(),
        facts: Reading::new(facts, now),
        telemetry,
        spaces: vec![
            space(MemorySpace::Dram, used_bytes, facts.dram_capacity_bytes),
            space(MemorySpace::L1, 0, facts.l1_capacity_bytes()),
        ],
        kinds: vec![KindMemory {
            kind: MemoryKind::Dram,
            total_bytes: used_bytes,
            processes_bytes: used_bytes,
            unattributed_bytes: 0,
            ghost_bytes: 0,
            live_buffers: Some(1),
        }],
        holders: Reading::new(Vec::new(), now),
        faults: Vec::new(),
        health_not_kept: false,
    }
}

pub(crate) fn identity(pid: u32) -> ProcessIdentity {
    ProcessIdentity {
        boot_id: [7; 16],
        pid_namespace: 4_026_531_836,
        pid,
        start_time_ticks: 100 * u64::from(pid),
    }
}

/// A process that has these bytes of DRAM on each of these devices.
pub(crate) fn process(pid: u32, live_bytes: u64, devices: &[usize]) -> Process {
    let now = Timestamp(BEGIN);
    let usage = MemoryUsage {
        live_bytes,
        live_buffers: 1,
        peak_bytes: live_bytes,
        ..MemoryUsage::default()
    };
    let held = |device: &usize| {
        let kinds = vec![HeldKind { kind: MemoryKind::Dram, usage: HeldUsage::Recorded(usage) }];
        let mut held = HeldDevice {
            device: *device,
            open_descriptors: 1,
            accounting: Accounting::Recorded,
            kinds,
            ..HeldDevice::default()
        };
        held.add_up();
        held
    };
    Process {
        identity: Some(identity(pid)),
        pid: Some(pid),
        namespace_pid: None,
        name: format!("job{pid}"),
        command: Reading::new(format!("python3 job{pid}.py"), now),
        uid: Reading::new(1000 + pid % 2, now),
        user: Reading::absent(Absence::Unknown, "not in /etc/passwd"),
        container: None,
        state: ProcessState::Alive,
        known_by: Some(ProcessSource::Ledger),
        started_at: None,
        usage: None,
        uptime_seconds: Reading::absent(Absence::NotYet, ""),
        devices: devices.iter().map(held).collect(),
        faults: RecordingFaults::default(),
        metrics: [].into(),
    }
}
