//! A device that processes have open: its chips, who holds it, and what it was used for.
//!
//! It answers requests; sockets and files are the server's. A connection is an owner of buffers,
//! so whatever ends a process, its memory is free again when the connection closes.

use crate::chip::{Chip, Usage};
use crate::machine::{ChipDescription, ChipLoad};
use crate::protocol::{DeviceActivity, Reply, Request};

/// Operations in a second that keep a chip fully busy, where no client says how busy it is.
const OPERATIONS_OF_A_BUSY_SECOND: f64 = 1_000.0;
/// The share of what is freed that counts as read by the host before: results are smaller than what
/// they are made from.
const RESULT_SHARE: u64 = 8;

/// What a process that has the device open holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Holder {
    connection: u64,
    pid: u32,
    invalid_frees: u64,
}

/// One driver chip with those that are reached through it.
#[derive(Debug)]
pub(crate) struct DriverDevice {
    chips: Vec<Chip>,
    /// In the order of opening.
    holders: Vec<Holder>,
    /// Since the last check of it.
    activity: DeviceActivity,
    operations: u64,
    allocated_bytes: u64,
    freed_bytes: u64,
}

/// What is allocated on one chip, as the emulator itself counts it.
#[derive(Debug, Clone, PartialEq)]
pub struct ChipUsage {
    /// Which chip.
    pub description: ChipDescription,
    /// What all processes have.
    pub total: Usage,
    /// What each process that has the device open has, by pid; the connections of one process
    /// added up.
    pub processes: Vec<(u32, Usage)>,
}

impl DriverDevice {
    pub(crate) fn new(descriptions: Vec<ChipDescription>) -> Self {
        Self {
            chips: descriptions.into_iter().map(Chip::new).collect(),
            holders: Vec::new(),
            activity: DeviceActivity::default(),
            operations: 0,
            allocated_bytes: 0,
            freed_bytes: 0,
        }
    }

    /// Adds a holder.
    pub(crate) fn open(&mut self, connection: u64, pid: u32) {
        self.holders.push(Holder { connection, pid, invalid_frees: 0 });
    }

    /// Removes a holder and frees what it had.
    pub(crate) fn close(&mut self, connection: u64) {
        self.holders.retain(|holder| holder.connection != connection);
        for chip in &mut self.chips {
            chip.release(connection);
        }
    }

    /// The pid of each holder.
    pub(crate) fn pids(&self) -> Vec<u32> {
        self.holders.iter().map(|holder| holder.pid).collect()
    }

    /// Does what a connection asks for; none when the request has no answer.
    pub(crate) fn handle(&mut self, connection: u64, request: Request) -> Option<Reply> {
        match request {
            Request::Describe => Some(Reply::Chips(
                self.chips.iter().map(|chip| chip.description().clone()).collect(),
            )),
            Request::Allocate { chip, kind, bytes } => {
                let Some(chip) = self.chips.get_mut(usize::from(chip)) else {
                    return Some(Reply::NoSuchChip);
                };
                self.operations += 1;
                Some(match chip.allocate(connection, kind, bytes) {
                    Ok(address) => {
                        self.allocated_bytes = self.allocated_bytes.saturating_add(bytes);
                        Reply::Allocated(address)
                    }
                    Err(error) => Reply::Refused(error),
                })
            }
            Request::Free { chip, kind, address } => {
                self.operations += 1;
                let chip = self.chips.get_mut(usize::from(chip));
                match chip.map(|chip| chip.free(connection, kind, address)) {
                    Some(Ok(bytes)) => {
                        self.freed_bytes = self.freed_bytes.saturating_add(bytes);
                    }
                    _ => {
                        if let Some(holder) = self.holder(connection) {
                            holder.invalid_frees += 1;
                        }
                    }
                }
                None
            }
            Request::Usage { chip, pid } => {
                let invalid_frees = self.holder(connection).map_or(0, |held| held.invalid_frees);
                let Some(chip) = self.chips.get(usize::from(chip)) else {
                    return Some(Reply::NoSuchChip);
                };
                let usage = match pid {
                    None => chip.usage(),
                    Some(pid) => self.usage_of(chip, pid),
                };
                Some(Reply::Usage { usage, invalid_frees })
            }
            Request::Activity(more) => {
                let sum = &mut self.activity;
                sum.busy_ns = sum.busy_ns.saturating_add(more.busy_ns);
                sum.host_to_device_bytes =
                    sum.host_to_device_bytes.saturating_add(more.host_to_device_bytes);
                sum.device_to_host_bytes =
                    sum.device_to_host_bytes.saturating_add(more.device_to_host_bytes);
                None
            }
        }
    }

    /// What the device did in the `elapsed_seconds` since the last call. Allocations count as written
    /// once; what is more than `carried_bytes` in one direction is left out.
    #[expect(clippy::cast_precision_loss, reason = "a rough load")]
    pub(crate) fn take_load(&mut self, elapsed_seconds: f64, carried_bytes: u64) -> ChipLoad {
        let activity = std::mem::take(&mut self.activity);
        let operations = std::mem::take(&mut self.operations) as f64;
        let allocated = std::mem::take(&mut self.allocated_bytes);
        let results = std::mem::take(&mut self.freed_bytes) / RESULT_SHARE;
        if elapsed_seconds <= 0.0 {
            return ChipLoad::default();
        }
        let reported = activity.busy_ns as f64 / 1e9 / elapsed_seconds;
        let guessed = operations / elapsed_seconds / OPERATIONS_OF_A_BUSY_SECOND;
        ChipLoad {
            busy_ratio: reported.max(guessed).min(1.0),
            host_to_device_bytes: activity
                .host_to_device_bytes
                .saturating_add(allocated)
                .min(carried_bytes),
            device_to_host_bytes: activity
                .device_to_host_bytes
                .saturating_add(results)
                .min(carried_bytes),
        }
    }

    /// What is allocated on each chip.
    pub(crate) fn usage(&self) -> Vec<ChipUsage> {
        let mut pids = self.pids();
        pids.sort_unstable();
        pids.dedup();
        self.chips
            .iter()
            .map(|chip| ChipUsage {
                description: chip.description().clone(),
                total: chip.usage(),
                processes: pids.iter().map(|pid| (*pid, self.usage_of(chip, *pid))).collect(),
            })
            .collect()
    }

    fn usage_of(&self, chip: &Chip, pid: u32) -> Usage {
        let mut sum = Usage::default();
        for holder in self.holders.iter().filter(|holder| holder.pid == pid) {
            sum.add(&chip.usage_of(holder.connection));
        }
        sum
    }

    fn holder(&mut self, connection: u64) -> Option<&mut Holder> {
        self.holders.iter_mut().find(|holder| holder.connection == connection)
    }
}
