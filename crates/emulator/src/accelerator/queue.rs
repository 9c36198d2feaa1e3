//! The queue between who gives commands and the thread that carries them out: bounded, in order.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Commands that wait at most; who gives more waits as well.
const MAX_WAITING: usize = 256;

/// See the module.
#[derive(Debug)]
pub(super) struct Queue<T> {
    state: Mutex<QueueState<T>>,
    came: Condvar,
    room: Condvar,
}

#[derive(Debug)]
struct QueueState<T> {
    waiting: VecDeque<T>,
    ended: bool,
}

/// What became of a command that was given.
pub(super) enum Given<T> {
    Taken,
    /// There was no room for as long as was waited.
    Full(T),
    /// Commands are no longer taken.
    Ended,
}

impl<T> Queue<T> {
    pub(super) fn new() -> Self {
        let state = QueueState { waiting: VecDeque::with_capacity(MAX_WAITING), ended: false };
        Self { state: Mutex::new(state), came: Condvar::new(), room: Condvar::new() }
    }

    /// Gives a command, waiting for room for at most `timeout`.
    pub(super) fn give(&self, command: T, timeout: Duration) -> Given<T> {
        let is_full =
            |state: &mut QueueState<T>| state.waiting.len() >= MAX_WAITING && !state.ended;
        let (mut state, _) = self
            .room
            .wait_timeout_while(self.lock(), timeout, is_full)
            .unwrap_or_else(PoisonError::into_inner);
        if state.ended {
            return Given::Ended;
        }
        if state.waiting.len() >= MAX_WAITING {
            return Given::Full(command);
        }
        state.waiting.push_back(command);
        drop(state);
        self.came.notify_one();
        Given::Taken
    }

    /// Takes the next command; none once the queue has ended and is empty.
    pub(super) fn take(&self) -> Option<T> {
        let nothing = |state: &mut QueueState<T>| state.waiting.is_empty() && !state.ended;
        let mut state =
            self.came.wait_while(self.lock(), nothing).unwrap_or_else(PoisonError::into_inner);
        let was_full = state.waiting.len() >= MAX_WAITING;
        let command = state.waiting.pop_front();
        drop(state);
        if was_full {
            self.room.notify_all();
        }
        command
    }

    /// No more commands are given or, once those that wait are taken, taken.
    pub(super) fn end(&self) {
        self.lock().ended = true;
        self.came.notify_all();
        self.room.notify_all();
    }

    /// Ends it and drops what waits.
    pub(super) fn abandon(&self) {
        let dropped = {
            let mut state = self.lock();
            state.ended = true;
            std::mem::take(&mut state.waiting)
        };
        drop(dropped);
        self.room.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, QueueState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
