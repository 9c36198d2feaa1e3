//! A collective, or a send or receive that the program asked for, from the moment it is put into the
//! queue until the last of its kernel's channels and network operations has ended.
//!
//! NCCL ends the event itself as soon as the task is in the queue, so what tells is its children. With
//! kernel events, the task has ended when as many channels have as it uses. Without, it is taken to
//! have ended when all operations that were begun have, and no other has come for a while.

use crate::short_text::ShortText;
use crate::state_value::FormattedNumber;

/// What is known of a task when it is put into the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TaskFacts {
    /// The communicator's number.
    pub(crate) communicator: u64,
    /// Its number among the collectives, or the transfers, in there.
    pub(crate) number: u64,
    /// `AllReduce`, `Send` and so on.
    pub(crate) function: ShortText,
    pub(crate) algorithm: ShortText,
    pub(crate) datatype: ShortText,
    pub(crate) count: u64,
    /// The root of a collective, the peer of a send or receive.
    pub(crate) other: i32,
    pub(crate) is_collective: bool,
    /// Channels of its kernel.
    pub(crate) channels: u8,
    /// When it was put into the queue.
    pub(crate) queued_ns: u64,
}

/// A task, as threads share it.
#[derive(Debug, Default)]
pub(crate) struct Task {
    communicator: FormattedNumber,
    number: FormattedNumber,
    texts: [FormattedNumber; 6],
    count: FormattedNumber,
    other: FormattedNumber,
    is_collective: FormattedNumber,
    channels: FormattedNumber,
    queued_ns: FormattedNumber,
    /// On the host's clock: the first child's beginning, the last one's end.
    first_ns: FormattedNumber,
    last_ns: FormattedNumber,
    /// On the device's clock, in nanoseconds.
    kernel_first_ns: FormattedNumber,
    kernel_last_ns: FormattedNumber,
    kernels_begun: FormattedNumber,
    kernels_ended: FormattedNumber,
    operations_begun: FormattedNumber,
    operations_ended: FormattedNumber,
}

/// How far a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskProgress {
    /// In the queue.
    Queued,
    /// Begun, at this time on the host's clock.
    Begun(u64),
    /// Ended: begun at this time, and how long it lasted, in nanoseconds.
    Ended(u64, u64),
}

impl Task {
    pub(crate) fn fill(&self, facts: &TaskFacts) {
        let texts = [facts.function, facts.algorithm, facts.datatype].map(ShortText::words);
        for (place, word) in self.texts.iter().zip(texts.as_flattened()) {
            place.set(*word);
        }
        self.communicator.set(facts.communicator);
        self.number.set(facts.number);
        self.count.set(facts.count);
        self.other.set(u64::from(facts.other.cast_unsigned()));
        self.is_collective.set(u64::from(facts.is_collective));
        self.channels.set(u64::from(facts.channels));
        self.queued_ns.set(facts.queued_ns);
        for nothing_yet in [
            &self.last_ns,
            &self.kernel_last_ns,
            &self.kernels_begun,
            &self.kernels_ended,
            &self.operations_begun,
            &self.operations_ended,
        ] {
            nothing_yet.set(0);
        }
        self.first_ns.set(u64::MAX);
        self.kernel_first_ns.set(u64::MAX);
    }

    pub(crate) fn facts(&self) -> TaskFacts {
        let text =
            |at: usize| ShortText::from_words([self.texts[at].get(), self.texts[at + 1].get()]);
        let other = u32::try_from(self.other.get()).expect("written from 32 bits");
        TaskFacts {
            communicator: self.communicator.get(),
            number: self.number.get(),
            function: text(0),
            algorithm: text(2),
            datatype: text(4),
            count: self.count.get(),
            other: other.cast_signed(),
            is_collective: self.is_collective.get() != 0,
            channels: u8::try_from(self.channels.get()).expect("written from 8 bits"),
            queued_ns: self.queued_ns.get(),
        }
    }

    pub(crate) fn kernel_began(&self, now_ns: u64, device_ns: u64) {
        self.first_ns.lower_to(now_ns);
        self.kernel_first_ns.lower_to(device_ns);
        self.kernels_begun.add(1);
    }

    /// The kernel's own time of its end; [`Self::kernel_ended`] follows.
    pub(crate) fn kernel_stamped(&self, device_ns: u64) {
        self.kernel_last_ns.raise_to(device_ns);
    }

    pub(crate) fn kernel_ended(&self, now_ns: u64) {
        self.last_ns.raise_to(now_ns);
        self.kernels_ended.add(1);
    }

    pub(crate) fn operation_began(&self, now_ns: u64) {
        self.first_ns.lower_to(now_ns);
        self.operations_begun.add(1);
    }

    pub(crate) fn operation_ended(&self, now_ns: u64) {
        self.last_ns.raise_to(now_ns);
        self.operations_ended.add(1);
    }

    /// Whether it passed through the network; what it sent is then reported by its operations.
    pub(crate) fn used_network(&self) -> bool {
        self.operations_begun.get() > 0
    }

    /// How far it is. `quiet_ns` is for how long no child may have come where nothing else says that it
    /// was the last.
    pub(crate) fn progress(&self, now_ns: u64, quiet_ns: u64) -> TaskProgress {
        // The counters first: what was written before they were raised is seen with them.
        let operations = (self.operations_begun.get(), self.operations_ended.get());
        let kernels = (self.kernels_begun.get(), self.kernels_ended.get());
        let begun_ns = self.first_ns.get();
        if operations.0 + kernels.0 == 0 || begun_ns == u64::MAX {
            return TaskProgress::Queued;
        }
        let quiet = now_ns.saturating_sub(self.last_ns.get()) >= quiet_ns;
        let kernels_complete = kernels.1 >= self.channels.get().max(1);
        let complete = if kernels.0 > 0 { kernels_complete } else { quiet };
        if operations.0 != operations.1 || kernels.0 != kernels.1 || !complete {
            return TaskProgress::Begun(begun_ns);
        }
        let on_device = self.kernel_last_ns.get().checked_sub(self.kernel_first_ns.get());
        let on_host = self.last_ns.get().saturating_sub(begun_ns);
        TaskProgress::Ended(begun_ns, on_device.filter(|lasted| *lasted > 0).unwrap_or(on_host))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(channels: u8) -> TaskFacts {
        TaskFacts {
            communicator: 9,
            number: 7,
            function: ShortText::new(b"ReduceScatter".iter().copied()),
            algorithm: ShortText::new(b"RING".iter().copied()),
            datatype: ShortText::new(b"ncclBfloat16".iter().copied()),
            count: u64::MAX,
            other: -1,
            is_collective: true,
            channels,
            queued_ns: 5,
        }
    }

    fn task(channels: u8) -> Task {
        let task = Task::default();
        task.fill(&facts(channels));
        task
    }

    #[test]
    fn facts_come_back_as_they_were_given() {
        assert_eq!(task(3).facts(), facts(3));
    }

    #[test]
    fn with_kernel_events_it_ends_with_the_last_channel_and_lasts_as_the_device_says() {
        let task = task(2);
        assert_eq!(task.progress(100, 50), TaskProgress::Queued);
        task.kernel_began(100, 7_000);
        task.kernel_stamped(7_400);
        task.kernel_ended(110);
        assert_eq!(task.progress(1_000, 50), TaskProgress::Begun(100));
        task.kernel_began(120, 7_100);
        task.kernel_stamped(7_900);
        assert_eq!(task.progress(1_000, 50), TaskProgress::Begun(100));
        task.kernel_ended(130);
        assert_eq!(task.progress(131, 50), TaskProgress::Ended(100, 900));
    }

    #[test]
    fn without_them_it_ends_when_no_operation_has_come_for_a_while() {
        let task = task(2);
        task.operation_began(100);
        task.operation_ended(130);
        assert_eq!(task.progress(131, 50), TaskProgress::Begun(100));
        assert_eq!(task.progress(180, 50), TaskProgress::Ended(100, 30));
        task.operation_began(181);
        assert_eq!(task.progress(500, 50), TaskProgress::Begun(100));
    }

    #[test]
    fn an_operation_that_does_not_end_keeps_a_task_from_ending() {
        let task = task(1);
        task.kernel_began(100, 1);
        task.operation_began(100);
        task.kernel_ended(120);
        assert_eq!(task.progress(900, 50), TaskProgress::Begun(100));
        assert!(task.used_network());
    }
}
