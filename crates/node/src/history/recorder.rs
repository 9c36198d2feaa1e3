//! Takes in one snapshot after the other and puts blocks and rows together, in memory alone.

use std::collections::HashMap;

use telltale_schema::history::Ending;
use telltale_schema::process::ProcessIdentity;
use telltale_schema::snapshot::{Device, HeldDevice, Process, ProcessState, Snapshot};

use super::faults::FaultRows;
use super::rows::{
    Described, DeviceFacts, DeviceRow, HeldRow, ProcessRow, RowState, Stored, Track, UsageRow,
};
use super::samples::Item;
use super::series_kind::{self, SeriesKind, kept, whole};
use super::timeline::{Moment, Timeline};
use super::varint;

/// The subject that stands for the machine.
pub(super) const MACHINE: i64 = 1;
/// Processes that are followed at a time; those beyond are counted.
pub(super) const MAX_PROCESSES: usize = 16_384;
/// Devices that are followed.
const MAX_DEVICES: usize = 4_096;
/// For so long a process that has ended is remembered, should it turn up again. One that turns up
/// later is found in the database.
const REMEMBERED_MS: i64 = 10_000;
/// The map of processes keeps at most so many times the room that it needs: it grew for the most
/// that were there at one time.
const ROOM_FACTOR: usize = 4;

/// A stretch of time, ready to be written.
#[derive(Debug)]
pub(super) struct ClosedBlock {
    pub(super) run: i64,
    pub(super) start_ms: i64,
    pub(super) end_ms: i64,
    pub(super) mark_ms: i64,
    /// The time from sample to sample.
    pub(super) times: Vec<u8>,
    /// Each subject's series, in the order of subjects.
    pub(super) parts: Vec<(i64, Vec<u8>)>,
}

#[derive(Debug)]
struct OpenBlock {
    run: i64,
    start_ms: i64,
    last_ms: i64,
    mark_ms: i64,
    times: Vec<u8>,
    samples: u32,
}

/// The numbers that new rows get.
#[derive(Debug, Clone, Copy)]
pub(super) struct NextIds {
    pub(super) device: i64,
    pub(super) process: i64,
    pub(super) subject: i64,
}

/// Boots of the machine: by them, a process that ended unobserved is reported to have ended with
/// an earlier one.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Boots {
    /// This one; none where the kernel does not say.
    pub(super) now: Option<[u8; 16]>,
    /// That under which the history was written last; none where it was not noted.
    pub(super) last: Option<[u8; 16]>,
}

/// Everything that is followed.
#[derive(Debug)]
pub(super) struct Recorder {
    block_ms: i64,
    timeline: Timeline,
    block: Option<OpenBlock>,
    machine: Track,
    pub(super) devices: Vec<DeviceRow>,
    pub(super) processes: HashMap<ProcessIdentity, ProcessRow>,
    next: NextIds,
    pub(super) faults: FaultRows,
    pub(super) boots: Boots,
    look: u64,
    /// Processes, devices and faults that there was no room for, in all snapshots together.
    pub(super) left_out: u64,
}

// === impl Boots ===

impl Boots {
    /// Whether a process that lived when the history was written last ended with the machine's boot.
    /// A process's own boot id tells that only of an older history: in a system container it is the
    /// container's.
    fn ended(self, process: &ProcessIdentity) -> bool {
        let then = self.last.unwrap_or(process.boot_id);
        self.now.is_some_and(|now| now != then)
    }
}

// === impl Recorder ===

impl Recorder {
    pub(super) fn new(timeline: Timeline, next: NextIds, block_ms: i64, boots: Boots) -> Self {
        Self {
            block_ms,
            timeline,
            block: None,
            machine: Track::new(MACHINE),
            devices: Vec::new(),
            processes: HashMap::new(),
            next,
            faults: FaultRows::new(Vec::new(), 1, 0),
            boots,
            look: 0,
            left_out: 0,
        }
    }

    /// From now on a sample stands for so long at most.
    pub(super) fn set_longest(&mut self, longest_ms: u64) {
        self.timeline.set_longest(longest_ms);
    }

    /// Takes in a snapshot. `find` searches for a process that was followed before. Gives the block that
    /// ends with this snapshot, if one does.
    pub(super) fn record(
        &mut self,
        snapshot: &Snapshot,
        monotonic_ns: u64,
        mut find: impl FnMut(&ProcessIdentity) -> Option<ProcessRow>,
    ) -> Option<ClosedBlock> {
        let moment = self.timeline.place(snapshot.taken_at, monotonic_ns)?;
        self.let_pass(moment.since_ms);
        let closed = self.close_before(&moment);
        let place = self.open_at(&moment);
        self.look += 1;
        self.note_devices(&snapshot.devices, place, &moment);
        let devices: Vec<Option<i64>> = self.places(&snapshot.devices);
        self.note_faults(snapshot, &devices, &moment);
        let mut anonymous = 0;
        for process in &snapshot.processes {
            let Some(identity) = process.identity else {
                anonymous += 1;
                continue;
            };
            self.note_process(identity, process, &devices, place, &moment, &mut find);
        }
        self.note_ends(&moment);
        self.machine.note(SeriesKind::Closed, place, Item::Value(kept(snapshot.closed_processes)));
        if anonymous > 0 {
            self.machine.note(SeriesKind::Anonymous, place, Item::Value(anonymous));
        }
        closed
    }

    /// The block so far, without waiting for its end.
    pub(super) fn finish(&mut self) -> Option<ClosedBlock> {
        let block = self.block.take()?;
        let end_ms = block.last_ms;
        Some(self.close(block, end_ms))
    }

    /// What was so at the snapshot before was so until now, unless a new run begins.
    fn let_pass(&mut self, since_ms: Option<u64>) {
        for held in self.processes.values_mut().flat_map(|process| &mut process.held) {
            for usage in &mut held.usages {
                match since_ms {
                    Some(since_ms) => usage.pass(since_ms),
                    None => usage.leave(),
                }
            }
        }
    }

    fn close_before(&mut self, moment: &Moment) -> Option<ClosedBlock> {
        let goes_on = moment.since_ms.is_some();
        let is_over = |block: &mut OpenBlock| {
            !goes_on || moment.at_ms.saturating_sub(block.start_ms) >= self.block_ms
        };
        let mut block = self.block.take_if(is_over)?;
        let end_ms = if goes_on { moment.at_ms } else { block.last_ms };
        if goes_on {
            block.mark_ms = moment.mark_ms;
        }
        Some(self.close(block, end_ms))
    }

    fn close(&mut self, block: OpenBlock, end_ms: i64) -> ClosedBlock {
        let devices = self.devices.iter_mut().map(|device| &mut device.track);
        let processes = self.processes.values_mut().flat_map(|process| {
            let held = process.held.iter_mut().map(|held| &mut held.track);
            std::iter::once(&mut process.track).chain(held)
        });
        let tracks = std::iter::once(&mut self.machine).chain(devices).chain(processes);
        let mut parts: Vec<_> = tracks.filter_map(Track::finish).collect();
        parts.sort_unstable_by_key(|(subject, _)| *subject);
        let OpenBlock { run, start_ms, mark_ms, times, .. } = block;
        ClosedBlock { run, start_ms, end_ms, mark_ms, times, parts }
    }

    /// The place of this moment's sample in the open block, which is begun where there is none.
    fn open_at(&mut self, moment: &Moment) -> u32 {
        let block = self.block.get_or_insert_with(|| OpenBlock {
            run: moment.run,
            start_ms: moment.at_ms,
            last_ms: moment.at_ms,
            mark_ms: moment.mark_ms,
            times: Vec::new(),
            samples: 0,
        });
        let since = moment.at_ms.abs_diff(block.last_ms);
        varint::put(u128::from(since), &mut block.times);
        (block.last_ms, block.mark_ms) = (moment.at_ms, moment.mark_ms);
        block.samples += 1;
        block.samples - 1
    }

    fn note_devices(&mut self, devices: &[Device], place: u32, moment: &Moment) {
        for (at, device) in devices.iter().enumerate() {
            let key = key(devices, at);
            let found = self.devices.iter().position(|row| row.key == key);
            let row = match found {
                Some(row) => &mut self.devices[row],
                None if self.devices.len() >= MAX_DEVICES => {
                    self.left_out += 1;
                    continue;
                }
                None => {
                    let row = DeviceRow {
                        id: take(&mut self.next.device),
                        key,
                        device: DeviceFacts::of(device),
                        seen: RowState::first(moment.at_ms, moment.mark_ms),
                        track: Track::new(take(&mut self.next.subject)),
                    };
                    self.devices.push(row);
                    self.devices.last_mut().expect("it was pushed just now")
                }
            };
            // Facts change rarely, and are long to write down: once a block is enough.
            if place == 0 {
                row.seen.again(moment.at_ms, moment.mark_ms);
                row.device = DeviceFacts::of(device);
            }
            note_device(&mut row.track, device, place);
        }
    }

    fn note_faults(&mut self, snapshot: &Snapshot, devices: &[Option<i64>], moment: &Moment) {
        let of_devices = snapshot.devices.iter().zip(devices).filter(|(_, id)| id.is_some());
        let of_devices =
            of_devices.flat_map(|(device, id)| device.faults.iter().map(move |fault| (*id, fault)));
        let of_parts = snapshot.faults.iter().map(|fault| (None, fault));
        self.faults.see(of_devices.chain(of_parts), moment);
        self.left_out += std::mem::take(&mut self.faults.left_out);
    }

    fn places(&self, devices: &[Device]) -> Vec<Option<i64>> {
        let id = |key: &str| self.devices.iter().find(|row| row.key == key).map(|row| row.id);
        (0..devices.len()).map(|at| id(&key(devices, at))).collect()
    }

    fn note_process(
        &mut self,
        identity: ProcessIdentity,
        process: &Process,
        devices: &[Option<i64>],
        place: u32,
        moment: &Moment,
        find: &mut impl FnMut(&ProcessIdentity) -> Option<ProcessRow>,
    ) {
        let is_known = self.processes.contains_key(&identity);
        if !is_known && self.processes.len() >= MAX_PROCESSES {
            self.left_out += 1;
            return;
        }
        let next = &mut self.next;
        let row = self.processes.entry(identity).or_insert_with(|| {
            find(&identity).unwrap_or_else(|| ProcessRow {
                id: take(&mut next.process),
                identity,
                described: Described::of(process, moment.at_ms),
                seen: RowState::first(moment.at_ms, moment.mark_ms),
                ended_ms: None,
                ending: None,
                look: 0,
                track: Track::new(take(&mut next.subject)),
                held: Vec::new(),
            })
        });
        if process.state == ProcessState::Dead {
            note_dead(row, process, devices, moment, self.look, next);
            return;
        }
        if row.described.update(Described::of(process, moment.at_ms)) || row.ending.is_some() {
            row.seen.changed();
        }
        (row.ended_ms, row.ending, row.look) = (None, None, self.look);
        row.seen.again(moment.at_ms, moment.mark_ms);
        row.track.note(SeriesKind::State, place, Item::Value(state_code(process.state)));
        let faults = &process.faults;
        let faults = [
            faults.double_frees,
            faults.unknown_frees,
            faults.reused_live_addresses,
            faults.unrecorded_events,
        ];
        for (which, count) in faults.into_iter().enumerate().filter(|(_, count)| *count > 0) {
            row.track.note(SeriesKind::Fault(which), place, Item::Value(kept(count)));
        }
        note_held(row, process, devices, moment, next, |held, row| note_series(row, held, place));
    }

    /// Those who were there and are not in this snapshot have ended.
    fn note_ends(&mut self, moment: &Moment) {
        let (look, boots) = (self.look, self.boots);
        for row in self.processes.values_mut().filter(|row| row.look != look) {
            for usage in row.held.iter_mut().flat_map(|held| &mut held.usages) {
                usage.leave();
            }
            if row.ending.is_some() {
                continue;
            }
            let seen_by_us = row.look > 0;
            row.ended_ms = seen_by_us.then_some(moment.at_ms);
            row.ending = Some(match seen_by_us {
                true => Ending::Gone,
                false if boots.ended(&row.identity) => Ending::Restart,
                false => Ending::Unseen,
            });
            row.seen.changed();
        }
    }

    /// The boot that the history is marked with: once a snapshot of it was taken in, by which
    /// those have ended who did not survive the one before.
    pub(super) fn boot_to_note(&self) -> Option<[u8; 16]> {
        self.boots.now.filter(|_| self.look > 0 && self.boots.now != self.boots.last)
    }

    /// Notes that all rows are in the database, and lets go of those that ended a while ago.
    pub(super) fn rows_were_stored(&mut self) {
        self.boots.last = self.boot_to_note().or(self.boots.last);
        self.faults.were_stored();
        for device in &mut self.devices {
            device.seen.stored = Stored::Whole;
        }
        let mut newest = i64::MIN;
        for process in self.processes.values_mut() {
            process.seen.stored = Stored::Whole;
            for held in &mut process.held {
                held.stored = true;
                held.usages.iter_mut().for_each(|usage| usage.stored = true);
            }
            newest = newest.max(process.seen.mark_ms);
        }
        let newest = self.block.as_ref().map_or(newest, |block| newest.max(block.mark_ms));
        let look = self.look;
        self.processes.retain(|_, row| {
            let is_there = row.ending.is_none() || row.look == look;
            is_there || newest.saturating_sub(row.seen.mark_ms) < REMEMBERED_MS
        });
        if self.processes.capacity() / ROOM_FACTOR > self.processes.len() {
            self.processes.shrink_to(2 * self.processes.len());
        }
    }
}

/// The last known values of a process that left its ledger behind; they are in no series.
fn note_dead(
    row: &mut ProcessRow,
    process: &Process,
    devices: &[Option<i64>],
    moment: &Moment,
    look: u64,
    next: &mut NextIds,
) {
    if row.ending != Some(Ending::Killed) {
        if row.ending.is_none() && row.look > 0 {
            row.ended_ms = Some(moment.at_ms);
        }
        row.ending = Some(Ending::Killed);
        row.described.update(Described::of(process, moment.at_ms));
        note_held(row, process, devices, moment, next, |_, _| {});
        row.seen.changed();
    }
    for usage in row.held.iter_mut().flat_map(|held| &mut held.usages) {
        usage.leave();
    }
    row.look = look;
}

/// Brings a process's usages up to date, and hands each device that it holds to `also`.
fn note_held(
    row: &mut ProcessRow,
    process: &Process,
    devices: &[Option<i64>],
    moment: &Moment,
    next: &mut NextIds,
    mut also: impl FnMut(&HeldDevice, &mut HeldRow),
) {
    for held in &mut row.held {
        let is_held = |one: &HeldDevice| devices.get(one.device) == Some(&Some(held.device));
        if !process.devices.iter().any(is_held) {
            held.usages.iter_mut().for_each(UsageRow::leave);
        }
    }
    for held in &process.devices {
        let Some(device) = devices.get(held.device).copied().flatten() else { continue };
        let found = row.held.iter().position(|known| known.device == device);
        let place = found.unwrap_or_else(|| {
            row.held.push(HeldRow {
                device,
                stored: false,
                usages: Vec::new(),
                track: Track::new(take(&mut next.subject)),
            });
            row.held.len() - 1
        });
        let known = &mut row.held[place];
        see_usages(known, held, moment.at_ms);
        also(held, known);
    }
}

fn see_usages(row: &mut HeldRow, held: &HeldDevice, at_ms: i64) {
    // A kind that is not mentioned has nothing, as far as anything is known.
    let unmentioned = held.accounting.of_nothing().map(|nothing| nothing.live_bytes());
    for usage in &mut row.usages {
        if !held.kinds.iter().any(|one| one.kind == usage.kind) {
            match unmentioned {
                Some(bytes) => usage.see(bytes, None, at_ms),
                None => usage.leave(),
            }
        }
    }
    // Most of what is kept is these: none of them may have unused capacity.
    if row.usages.is_empty() {
        row.usages.reserve_exact(held.kinds.len());
    }
    for one in &held.kinds {
        let found = row.usages.iter().position(|usage| usage.kind == one.kind);
        let place = found.unwrap_or_else(|| {
            row.usages.push(UsageRow::new(one.kind, at_ms));
            row.usages.len() - 1
        });
        let own_peak = one.usage.recorded().map(|recorded| recorded.peak_bytes);
        row.usages[place].see(one.usage.live_bytes(), own_peak, at_ms);
    }
}

fn note_series(row: &mut HeldRow, held: &HeldDevice, place: u32) {
    let track = &mut row.track;
    track.note(SeriesKind::Accounting, place, Item::Value(i64::from(held.accounting as u8)));
    let open = i64::from(held.open_descriptors);
    track.note(SeriesKind::OpenDescriptors, place, Item::Value(open));
    if let Some(buffers) = held.live_buffers {
        track.note(SeriesKind::Buffers, place, Item::Value(kept(buffers)));
    }
    for usage in &row.usages {
        if let Some(live) = usage.live() {
            track.note(SeriesKind::Live(usage.kind), place, Item::Value(live));
        }
    }
    for one in &held.spaces {
        let bytes = Item::Value(kept(one.live_bytes));
        track.note(SeriesKind::SpaceLive(one.space), place, bytes);
    }
}

fn note_device(track: &mut Track, device: &Device, place: u32) {
    for sensor in series_kind::sensors() {
        if let Some(item) = series_kind::of_sensor(sensor, &device.telemetry) {
            track.note(SeriesKind::Sensor(sensor), place, item);
        }
    }
    for usage in &device.spaces {
        track.note(SeriesKind::SpaceUsed(usage.space), place, whole(&usage.used_bytes));
        track.note(SeriesKind::SpaceCapacity(usage.space), place, whole(&usage.capacity_bytes));
    }
    for parts in &device.kinds {
        let mut note =
            |series_kind, bytes| track.note(series_kind, place, Item::Value(kept(bytes)));
        note(SeriesKind::KindTotal(parts.kind), parts.total_bytes);
        note(SeriesKind::KindUnattributed(parts.kind), parts.unattributed_bytes);
        note(SeriesKind::KindGhost(parts.kind), parts.ghost_bytes);
        if let Some(buffers) = parts.live_buffers {
            note(SeriesKind::KindBuffers(parts.kind), buffers);
        }
    }
}

/// The number of a state in the database.
fn state_code(state: ProcessState) -> i64 {
    match state {
        ProcessState::Alive => 0,
        ProcessState::Dead => 1,
        ProcessState::Hidden => 2,
    }
}

/// What a device is found by: its name, numbered from the second of that name on.
fn key(devices: &[Device], at: usize) -> String {
    let name = &devices[at].id;
    match devices[..at].iter().filter(|device| device.id == *name).count() {
        0 => name.clone(),
        before => format!("{name}#{}", before + 1),
    }
}

fn take(next: &mut i64) -> i64 {
    let id = *next;
    *next += 1;
    id
}
