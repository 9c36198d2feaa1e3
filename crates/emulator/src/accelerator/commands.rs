//! The accelerator's thread: carries out commands one after the other.
//!
//! After a command that failed, what was meant to build on its results does not run on something
//! else, see blame.rs.

use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use telltale_runtime::Traffic;

use super::blame::Faults;
use super::memory::{Buffer, OpenChip};
use super::program::LoadedProgram;
use super::queue::Queue;
use super::reach::{Memories, Reach};
use crate::kernels::{DeviceProgress, ExecutionError, Executor};
use crate::protocol::DeviceActivity;

/// How often the emulated sensors see what the chip did, at most.
const ACTIVITY_PERIOD: Duration = Duration::from_millis(50);

/// What the thread is to do.
pub(super) enum Command {
    Write {
        buffer: Arc<Buffer>,
        bytes: Vec<u8>,
    },
    Read {
        buffer: Arc<Buffer>,
        reply: SyncSender<Result<Vec<u8>, ExecutionError>>,
    },
    Run {
        operation: Option<&'static str>,
        program: Arc<LoadedProgram>,
        words: Vec<u32>,
        buffers: Vec<Arc<Buffer>>,
    },
    Finish {
        reply: SyncSender<Result<(), ExecutionError>>,
    },
    /// Says that it was reached, whatever went wrong before.
    Reach {
        reply: SyncSender<()>,
    },
}

/// Rows of argument words that were used and are used again: allocating one on one thread and
/// freeing it on another costs more than copying it.
#[derive(Debug, Default)]
pub(super) struct SpareWords(Mutex<Vec<Vec<u32>>>);

/// Rows that are kept, and how many words one has at most.
const MAX_SPARE: usize = 32;
const MAX_SPARE_WORDS: usize = 16 << 10;

impl SpareWords {
    /// A row of these words.
    pub(super) fn filled(&self, words: &[u32]) -> Vec<u32> {
        let spare = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut row = spare.unwrap_or_default();
        row.extend_from_slice(words);
        row
    }

    fn keep(&self, mut row: Vec<u32>) {
        row.clear();
        let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.len() < MAX_SPARE && row.capacity() <= MAX_SPARE_WORDS {
            spare.push(row);
        }
    }
}

/// The thread's own.
pub(super) struct CommandThread {
    chip: Arc<OpenChip>,
    queue: Arc<Queue<Command>>,
    progress: Arc<DeviceProgress>,
    spare: Arc<SpareWords>,
    reach: Reach,
    executor: Executor,
    faults: Faults,
    activity: DeviceActivity,
    reported: Instant,
}

/// Makes those who wait for the thread notice if it panics.
struct Farewell(Arc<Queue<Command>>);

impl Drop for Farewell {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

impl CommandThread {
    pub(super) fn new(
        chip: Arc<OpenChip>,
        queue: Arc<Queue<Command>>,
        progress: Arc<DeviceProgress>,
        spare: Arc<SpareWords>,
        memories: Memories,
        executor: Executor,
    ) -> Self {
        Self {
            reach: Reach::new(Arc::clone(&chip), memories),
            executor,
            chip,
            queue,
            progress,
            spare,
            faults: Faults::default(),
            activity: DeviceActivity::default(),
            reported: Instant::now(),
        }
    }

    /// Carries out commands until the queue ends.
    pub(super) fn work(mut self) {
        let _farewell = Farewell(Arc::clone(&self.queue));
        while let Some(command) = self.queue.take() {
            self.carry_out(command);
        }
        self.publish_activity();
    }

    fn carry_out(&mut self, command: Command) {
        match command {
            Command::Finish { reply } => {
                self.publish_activity();
                // The caller may have given up waiting; then the next one gets it.
                if reply.send(self.faults.first()).is_ok() {
                    self.faults.forget();
                }
            }
            Command::Reach { reply } => {
                // The caller may have given up waiting.
                let _ = reply.send(());
            }
            Command::Read { buffer, reply } => {
                let result = self.faults.why(&buffer).and_then(|()| self.read(&buffer));
                // The caller may have given up waiting; then the next one gets it.
                if reply.send(result).is_ok() {
                    self.faults.is_reported(&buffer);
                }
            }
            Command::Write { buffer, bytes } => {
                self.write(&buffer, &bytes);
            }
            Command::Run { operation, program, words, buffers } => {
                if !self.faults.forbid(operation, &buffers) {
                    self.run(operation, &program, &words, &buffers);
                }
                self.spare.keep(words);
                drop(buffers);
            }
        }
        if self.reported.elapsed() > ACTIVITY_PERIOD {
            self.publish_activity();
        }
    }

    fn run(
        &mut self,
        operation: Option<&'static str>,
        program: &LoadedProgram,
        words: &[u32],
        buffers: &[Arc<Buffer>],
    ) {
        let start = Instant::now();
        if self.faults.are_any() {
            self.reach.watch_writes();
        }
        self.progress.begins(Arc::clone(&program.plan), operation);
        let result = self.executor.run(&program.plan, words, &self.reach, &self.progress);
        self.progress.ends();
        let written = self.reach.written();
        match result {
            Ok(()) => {
                let done = buffers.iter().filter(|buffer| written.contains(&buffer.address()));
                done.for_each(|buffer| self.faults.is_done(buffer));
            }
            Err(error) => self.faults.note(operation, error, buffers),
        }
        let busy_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.activity.busy_ns = self.activity.busy_ns.saturating_add(busy_ns);
        self.chip.device.count_operations(1);
    }

    fn write(&mut self, buffer: &Arc<Buffer>, bytes: &[u8]) {
        let moved = bytes.len() as u64;
        if !self.reach.copy_in(buffer.address(), bytes) {
            let buffer_bytes = buffer.bytes();
            let error = ExecutionError::TooLong { bytes: moved, buffer_bytes };
            self.faults.note(None, error, std::slice::from_ref(buffer));
            return;
        }
        if moved == buffer.bytes() {
            self.faults.is_done(buffer);
        }
        self.activity.host_to_device_bytes =
            self.activity.host_to_device_bytes.saturating_add(moved);
        let traffic = Traffic { host_to_device_bytes: moved, device_to_host_bytes: 0 };
        self.chip.device.count_traffic(traffic);
    }

    fn read(&mut self, buffer: &Buffer) -> Result<Vec<u8>, ExecutionError> {
        let bytes = self.reach.copy_out(buffer.address()).ok_or(ExecutionError::Ended)?;
        let moved = bytes.len() as u64;
        self.activity.device_to_host_bytes =
            self.activity.device_to_host_bytes.saturating_add(moved);
        let traffic = Traffic { host_to_device_bytes: 0, device_to_host_bytes: moved };
        self.chip.device.count_traffic(traffic);
        Ok(bytes)
    }

    fn publish_activity(&mut self) {
        let activity = std::mem::take(&mut self.activity);
        self.reported = Instant::now();
        if activity != DeviceActivity::default() {
            // A device that is gone has no sensors to move.
            let _ = self.chip.client.report_activity(activity);
        }
    }
}
