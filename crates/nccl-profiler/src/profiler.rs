//! What happens when NCCL begins, changes or ends an event. All of it is on NCCL's threads.
//!
//! No lock, no allocation, no waiting; what has no place or makes no sense is counted and forgotten.

use crate::communicators::Communicators;
use crate::counts::Counts;
use crate::handle::{Handle, STEPS};
use crate::operation::{OperationFacts, ProxyOperation};
use crate::pool::{Pool, PoolIndex};
use crate::short_text::ShortText;
use crate::task::{Task, TaskFacts};

/// Tasks that are followed at a time.
pub(crate) const MAX_TASKS: u16 = 4096;
/// Network operations that are followed at a time.
pub(crate) const MAX_OPERATIONS: u16 = 8192;

/// NCCL's number for the end of a kernel's channel (`ncclProfilerKernelChStop`).
const KERNEL_STOP: i32 = 22;

/// Everything that NCCL's threads and the reporter share.
#[derive(Debug)]
pub(crate) struct Profiler {
    pub(crate) tasks: Pool<Task>,
    pub(crate) operations: Pool<ProxyOperation>,
    pub(crate) communicators: Communicators,
    pub(crate) counts: Counts,
    process: i32,
}

/// An event that NCCL begins, as far as it is used.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Begun {
    /// A collective, or a send or receive, was put into the queue.
    Task {
        is_collective: bool,
        function: ShortText,
        algorithm: ShortText,
        datatype: ShortText,
        count: u64,
        /// The root or the peer.
        other: i32,
        channels: u8,
    },
    /// The proxy thread begins to send or receive.
    Operation { process: i32, parent: u64, peer: i32, is_send: bool, steps: i32, chunk_bytes: i32 },
    /// A step of an operation.
    Step { parent: u64, step: i32 },
    /// A channel of a task's kernel runs, since this time on the device's clock.
    Kernel { parent: u64, device_ns: u64 },
}

impl Profiler {
    /// For the process `process`. Handles' generations begin at `first_generation`.
    pub(crate) fn new(process: i32, first_generation: u32) -> Self {
        Self {
            tasks: Pool::new(MAX_TASKS, first_generation),
            operations: Pool::new(MAX_OPERATIONS, first_generation),
            communicators: Communicators::new(first_generation),
            counts: Counts::default(),
            process,
        }
    }

    /// An event begins in a communicator; `None` if it is not followed.
    pub(crate) fn begin(&self, context: u64, begun: Begun, now_ns: u64) -> Option<Handle> {
        match begun {
            Begun::Task {
                is_collective,
                function,
                algorithm,
                datatype,
                count,
                other,
                channels,
            } => {
                // The number counts also if there is no place: what is lost is a gap.
                let number = self.number(context, is_collective)?;
                let facts = TaskFacts {
                    communicator: context,
                    number,
                    function,
                    algorithm,
                    datatype,
                    count,
                    other,
                    is_collective,
                    channels,
                    queued_ns: now_ns,
                };
                self.tasks.begin(|task| task.fill(&facts)).map(Handle::Task)
            }
            Begun::Operation { process, parent, peer, is_send, steps, chunk_bytes } => {
                if process != self.process {
                    // With PXN, this process's proxy thread works for another, whose handles these are.
                    self.counts.foreign.add(1);
                    return None;
                }
                let number = self.number(context, false)?;
                let task = self.task(parent);
                let [steps, chunk_bytes] =
                    [steps, chunk_bytes].map(|number| u64::try_from(number).unwrap_or(0));
                let facts = OperationFacts {
                    communicator: context,
                    number,
                    task: task.map_or(0, |_| parent),
                    peer,
                    is_send,
                    most_bytes: steps * chunk_bytes,
                    begun_ns: now_ns,
                };
                let place = self.operations.begin(|operation| operation.fill(&facts))?;
                if let Some(task) = task {
                    task.operation_began(now_ns);
                }
                Some(Handle::Operation(place))
            }
            Begun::Step { parent, step } => {
                let Handle::Operation(place) = Handle::from_number(parent)? else { return None };
                let steps = i32::try_from(STEPS).expect("a small number");
                let step = u8::try_from(step.rem_euclid(steps)).expect("less than STEPS");
                self.operations.find(place).map(|_| Handle::Step(place, step))
            }
            Begun::Kernel { parent, device_ns } => {
                self.task(parent)?.kernel_began(now_ns, device_ns);
                let Handle::Task(place) = Handle::from_number(parent)? else { return None };
                Some(Handle::Kernel(place))
            }
        }
    }

    /// An event has come to one of NCCL's states; `value` is what NCCL passes with it.
    pub(crate) fn change(&self, handle: u64, state: i32, state_value: u64, now_ns: u64) {
        match Handle::from_number(handle) {
            Some(Handle::Step(place, step)) => {
                if let Some(operation) = self.operations.find(place) {
                    operation.step_is_in(step, state, state_value, now_ns);
                }
            }
            Some(Handle::Kernel(place)) if state == KERNEL_STOP => {
                if let Some(task) = self.tasks.find(place) {
                    task.kernel_stamped(state_value);
                }
            }
            _ => {}
        }
    }

    /// An event ends.
    pub(crate) fn end(&self, handle: u64, now_ns: u64) {
        match Handle::from_number(handle) {
            Some(Handle::Task(place)) => {
                // Only that it is in the queue; its children report its end.
                self.tasks.stop(place);
            }
            Some(Handle::Operation(place)) => self.end_operation(place, now_ns),
            Some(Handle::Step(place, step)) => {
                if let Some(operation) = self.operations.find(place) {
                    operation.step_ended(step, now_ns);
                }
            }
            Some(Handle::Kernel(place)) => {
                if let Some(task) = self.tasks.find(place) {
                    task.kernel_ended(now_ns);
                }
            }
            Some(Handle::Communicator(_)) | None => {}
        }
    }

    fn end_operation(&self, place: PoolIndex, now_ns: u64) {
        let Some(seen) = self.operations.see(place).filter(|seen| !seen.stopped) else { return };
        let task = seen.event.task();
        seen.event.ended(now_ns);
        if self.operations.stop(place)
            && let Some(task) = self.task(task)
        {
            task.operation_ended(now_ns);
        }
    }

    pub(crate) fn task(&self, number: u64) -> Option<&Task> {
        match Handle::from_number(number)? {
            Handle::Task(place) => self.tasks.find(place),
            _ => None,
        }
    }

    /// The number of the next collective or transfer in a communicator; `None`, and counted, if that
    /// is none.
    fn number(&self, context: u64, is_collective: bool) -> Option<u64> {
        let number = match Handle::from_number(context) {
            Some(Handle::Communicator(place)) => self.communicators.number(place, is_collective),
            _ => None,
        };
        if number.is_none() {
            self.counts.foreign.add(1);
        }
        number
    }
}
