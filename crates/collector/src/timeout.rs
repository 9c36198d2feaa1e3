//! Reads that may hang: done by a thread that is given up when one of them takes too long.
//!
//! A driver that waits for a wedged chip blocks its reader in the kernel, where nothing can wake
//! it. So the tasks are done one after the other by a worker; when one takes longer than the
//! timeout, that worker is left behind with it and another one goes on with the next. The number
//! of threads left behind is bounded, a task is not tried again while a thread is stuck in it, and
//! a thread that comes back ends.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Threads that may be left behind at one time, for each [`Timeout`]; one more for each further
/// call at the same time.
pub(crate) const MAX_STUCK: usize = 16;

/// Tasks of one group that may hang before the rest of the group is passed over: a chip that
/// hangs twice is wedged, and waiting for each of its attributes does not help.
const MAX_STUCK_IN_GROUP: usize = 2;

/// Threads that may be left behind in one group, over all calls: one wedged chip with many attributes
/// must leave room for the others.
const MAX_LEFT_IN_GROUP: usize = 4;

/// The workers' stack: they keep one attribute buffer on it.
const STACK_BYTES: usize = 128 * 1024;

/// The stack of workers that call foreign code, which counts on that of a program's main thread.
pub(crate) const FOREIGN_STACK_BYTES: usize = 8 << 20;

/// One task's name: the group it belongs to (a chip) and its number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TaskName {
    pub(crate) group: u32,
    pub(crate) item: u32,
}

/// What one call may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallLimits {
    /// One task.
    pub(crate) task: Duration,
    /// All of them.
    pub(crate) all: Duration,
}

/// Remembers which tasks hang.
#[derive(Debug)]
pub(crate) struct Timeout {
    stuck: Arc<Mutex<HashSet<TaskName>>>,
    stack_bytes: usize,
}

/// What worker and caller share about one call.
struct Call<T, R> {
    names: Vec<TaskName>,
    work: fn(&T) -> R,
    progress: Mutex<CallProgress<T, R>>,
    changed: Condvar,
    stuck: Arc<Mutex<HashSet<TaskName>>>,
    stack_bytes: usize,
}

struct CallProgress<T, R> {
    /// Those that no worker has taken: one that hangs must keep no task but its own.
    tasks: Vec<Option<T>>,
    /// The worker that goes on; one with another number was given up.
    worker: u32,
    next: usize,
    /// The task that is being done and since when.
    current: Option<(usize, Instant)>,
    results: Vec<Option<R>>,
    hung_in_group: HashMap<u32, usize>,
    finished: bool,
}

impl Default for Timeout {
    fn default() -> Self {
        Self { stuck: Arc::default(), stack_bytes: STACK_BYTES }
    }
}

impl Timeout {
    /// Timeout with foreign code.
    pub(crate) fn with_foreign_code() -> Self {
        Self { stack_bytes: FOREIGN_STACK_BYTES, ..Self::default() }
    }

    /// Does `work` for each task and returns the results in the order of the tasks. One that hung,
    /// still hangs, or was not reached in time has none; nothing is tried while [`MAX_STUCK`]
    /// threads hang.
    pub(crate) fn run<T, R>(
        &self,
        tasks: Vec<(TaskName, T)>,
        work: fn(&T) -> R,
        limits: CallLimits,
    ) -> Vec<Option<R>>
    where
        T: Send + 'static,
        R: Send + 'static,
    {
        if tasks.is_empty() || self.stuck() >= MAX_STUCK {
            return tasks.iter().map(|_| None).collect();
        }
        let results = tasks.iter().map(|_| None).collect();
        let (names, tasks) = tasks.into_iter().map(|(name, task)| (name, Some(task))).unzip();
        let progress = CallProgress {
            tasks,
            worker: 0,
            next: 0,
            current: None,
            results,
            hung_in_group: HashMap::new(),
            finished: false,
        };
        let call = Arc::new(Call {
            names,
            work,
            progress: Mutex::new(progress),
            changed: Condvar::new(),
            stuck: Arc::clone(&self.stuck),
            stack_bytes: self.stack_bytes,
        });
        if start_worker(&call, 0) {
            self.wait(&call, limits);
        }
        let mut progress = locked(&call.progress);
        progress.finished = true;
        progress.tasks.clear();
        std::mem::take(&mut progress.results)
    }

    /// Waits until all is done, replacing the worker when it hangs.
    fn wait<T, R>(&self, call: &Arc<Call<T, R>>, limits: CallLimits)
    where
        T: Send + 'static,
        R: Send + 'static,
    {
        let deadline = Instant::now() + limits.all;
        let mut progress = locked(&call.progress);
        while !progress.finished {
            let now = Instant::now();
            let since = progress.current.map_or(now, |(_, since)| since);
            let until = (since + limits.task).min(deadline);
            if now < until {
                let waited = call.changed.wait_timeout(progress, until - now);
                progress = waited.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            let Some((index, _)) = progress.current else { return };
            let name = call.names[index];
            let room = {
                let mut stuck = locked(&self.stuck);
                stuck.insert(name);
                stuck.len() < MAX_STUCK
            };
            *progress.hung_in_group.entry(name.group).or_default() += 1;
            progress.worker += 1;
            progress.current = None;
            if now >= deadline || !room || !start_worker(call, progress.worker) {
                return;
            }
        }
    }

    /// How many threads are left behind now.
    pub(crate) fn stuck(&self) -> usize {
        locked(&self.stuck).len()
    }
}

/// Starts worker number `number`; false when the system gives no thread.
fn start_worker<T, R>(call: &Arc<Call<T, R>>, number: u32) -> bool
where
    T: Send + 'static,
    R: Send + 'static,
{
    let call = Arc::clone(call);
    thread::Builder::new()
        .name("telltale-read".to_owned())
        .stack_size(call.stack_bytes)
        .spawn(move || call.work(number))
        .is_ok()
}

impl<T, R> Call<T, R> {
    /// What worker `number` does: one task after the other, until there is none or it must
    /// that it was given up.
    fn work(&self, number: u32) {
        loop {
            let Some((index, task)) = self.take(number) else { return };
            let result = (self.work)(&task);
            drop(task);
            let mut progress = locked(&self.progress);
            if progress.worker != number {
                // Given up while it hung: the result is too late, the task may be tried again.
                locked(&self.stuck).remove(&self.names[index]);
                return;
            }
            progress.current = None;
            if let Some(slot) = progress.results.get_mut(index) {
                *slot = Some(result);
            }
        }
    }

    /// The next task that is worth trying.
    fn take(&self, number: u32) -> Option<(usize, T)> {
        let mut progress = locked(&self.progress);
        if progress.worker != number || progress.finished {
            return None;
        }
        while let Some(name) = self.names.get(progress.next) {
            let index = progress.next;
            progress.next += 1;
            let Some(task) = progress.tasks.get_mut(index).and_then(Option::take) else { continue };
            let hung = progress.hung_in_group.get(&name.group).copied().unwrap_or(0);
            let stuck = locked(&self.stuck);
            let left = stuck.iter().filter(|one| one.group == name.group).count();
            if hung < MAX_STUCK_IN_GROUP && left < MAX_LEFT_IN_GROUP && !stuck.contains(name) {
                progress.current = Some((index, Instant::now()));
                return Some((index, task));
            }
        }
        progress.finished = true;
        self.changed.notify_all();
        None
    }
}

/// The guard of a lock whose holder cannot leave it half-changed.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::{CallLimits, MAX_LEFT_IN_GROUP, MAX_STUCK, TaskName, Timeout};
    use std::sync::mpsc::{Receiver, channel};
    use std::sync::{Arc, Mutex};
    use std::time::Duration;
    use telltale_harness::wait_until;

    const LIMITS: CallLimits =
        CallLimits { task: Duration::from_millis(30), all: Duration::from_secs(20) };

    /// A task that returns its number, after its gate (if any) was closed.
    type Gated = (u32, Option<Arc<Mutex<Receiver<()>>>>);

    fn work(task: &Gated) -> u32 {
        if let Some(gate) = &task.1 {
            let _ = gate.lock().unwrap().recv();
        }
        task.0
    }

    fn task(group: u32, item: u32, gate: Option<Arc<Mutex<Receiver<()>>>>) -> (TaskName, Gated) {
        (TaskName { group, item }, (item, gate))
    }

    #[test]
    fn a_hung_task_costs_itself_and_is_tried_again_when_its_thread_is_back() {
        let timeout = Timeout::default();
        let (open, gate) = channel();
        let gate = Arc::new(Mutex::new(gate));
        let tasks =
            || vec![task(0, 0, None), task(0, 1, Some(Arc::clone(&gate))), task(0, 2, None)];
        assert_eq!(timeout.run(tasks(), work, LIMITS), [Some(0), None, Some(2)]);
        assert_eq!(timeout.stuck(), 1);
        assert_eq!(timeout.run(tasks(), work, LIMITS), [Some(0), None, Some(2)]);
        assert_eq!(timeout.stuck(), 1, "no second thread for the same task");
        drop(open);
        wait_until("the thread to come back", Duration::from_secs(20), || timeout.stuck() == 0);
        assert_eq!(timeout.run(tasks(), work, LIMITS), [Some(0), Some(1), Some(2)]);
    }

    #[test]
    fn a_wedged_group_is_passed_over_and_others_are_not() {
        let timeout = Timeout::default();
        let (_open, gate) = channel();
        let gate = Arc::new(Mutex::new(gate));
        let mut tasks: Vec<_> = (0..20).map(|item| task(7, item, Some(gate.clone()))).collect();
        tasks.push(task(8, 99, None));
        let results = timeout.run(tasks, work, LIMITS);
        assert_eq!(results.last(), Some(&Some(99)));
        assert_eq!(results.iter().flatten().count(), 1);
        assert_eq!(timeout.stuck(), 2);
    }

    #[test]
    fn a_group_that_stays_wedged_leaves_room_for_the_others() {
        let timeout = Timeout::default();
        let (_open, gate) = channel();
        let gate = Arc::new(Mutex::new(gate));
        for _ in 0..MAX_STUCK {
            let wedged = (0..20).map(|item| task(7, item, Some(gate.clone())));
            let tasks = wedged.chain([task(8, 99, None)]).collect();
            assert_eq!(timeout.run(tasks, work, LIMITS).last(), Some(&Some(99)));
        }
        assert_eq!(timeout.stuck(), MAX_LEFT_IN_GROUP);
    }

    #[test]
    fn the_number_of_threads_left_behind_is_bounded() {
        let timeout = Timeout::default();
        let (_open, gate) = channel();
        let gate = Arc::new(Mutex::new(gate));
        let limits = CallLimits { task: Duration::from_millis(2), ..LIMITS };
        for round in 0..3 {
            let tasks =
                (0..40).map(|item| task(round * 100 + item, 0, Some(gate.clone()))).collect();
            assert_eq!(timeout.run(tasks, work, limits).iter().flatten().count(), 0);
            assert!(timeout.stuck() <= MAX_STUCK, "{}", timeout.stuck());
        }
    }
}
