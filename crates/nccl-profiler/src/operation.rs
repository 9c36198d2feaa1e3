//! What the proxy thread sends to or receives from one peer over the network, for one channel of a task.
//!
//! Its time is that of its steps on the network, added up: from the moment a step's data is given to
//! the network, or waited for from it, until it is there. Waiting for the device (`SendGPUWait`,
//! `RecvGPUWait`) and for a receiver that is not ready (`SendPeerWait`) is not in it, so a slow neighbour
//! does not make a link look slow.

use crate::handle::STEPS;
use crate::state_value::FormattedNumber;

/// NCCL's numbers for the states of a step (`ncclProfilerEventState_t`).
const SEND_WAIT: i32 = 9;
const RECEIVE_WAIT: i32 = 10;

/// What is known of an operation when it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OperationFacts {
    /// The communicator's number.
    pub(crate) communicator: u64,
    /// Its number among the transfers in there.
    pub(crate) number: u64,
    /// The number of the task's handle, 0 for none.
    pub(crate) task: u64,
    pub(crate) peer: i32,
    pub(crate) is_send: bool,
    /// What its steps could carry together, in bytes.
    pub(crate) most_bytes: u64,
    pub(crate) begun_ns: u64,
}

/// An operation, as threads share it.
#[derive(Debug, Default)]
pub(crate) struct ProxyOperation {
    communicator: FormattedNumber,
    number: FormattedNumber,
    task: FormattedNumber,
    peer: FormattedNumber,
    is_send: FormattedNumber,
    most_bytes: FormattedNumber,
    begun_ns: FormattedNumber,
    ended_ns: FormattedNumber,
    network_ns: FormattedNumber,
    bytes: FormattedNumber,
    steps_ended: FormattedNumber,
    /// Not 0 once a state of a step is known.
    has_steps: FormattedNumber,
    /// Since when each step is on the network; 0 while it is not.
    on_network_since_ns: [FormattedNumber; STEPS],
}

impl ProxyOperation {
    pub(crate) fn fill(&self, facts: &OperationFacts) {
        self.communicator.set(facts.communicator);
        self.number.set(facts.number);
        self.task.set(facts.task);
        self.peer.set(u64::from(facts.peer.cast_unsigned()));
        self.is_send.set(u64::from(facts.is_send));
        self.most_bytes.set(facts.most_bytes);
        self.begun_ns.set(facts.begun_ns);
        let numbers =
            [&self.ended_ns, &self.network_ns, &self.bytes, &self.steps_ended, &self.has_steps];
        for nothing_yet in numbers {
            nothing_yet.set(0);
        }
        self.on_network_since_ns.iter().for_each(|since| since.set(0));
    }

    pub(crate) fn facts(&self) -> OperationFacts {
        let peer = u32::try_from(self.peer.get()).expect("written from 32 bits");
        OperationFacts {
            communicator: self.communicator.get(),
            number: self.number.get(),
            task: self.task.get(),
            peer: peer.cast_signed(),
            is_send: self.is_send.get() != 0,
            most_bytes: self.most_bytes.get(),
            begun_ns: self.begun_ns.get(),
        }
    }

    /// The number of its task's handle.
    pub(crate) fn task(&self) -> u64 {
        self.task.get()
    }

    /// A step has come to `state`; `bytes` is what it carries, as far as NCCL knows by then.
    pub(crate) fn step_is_in(&self, step: u8, state: i32, bytes: u64, now_ns: u64) {
        self.has_steps.set(1);
        self.step_left(step, now_ns, bytes);
        if state == SEND_WAIT || state == RECEIVE_WAIT {
            self.on_network_since_ns[usize::from(step) % STEPS].set(now_ns.max(1));
            if state == SEND_WAIT {
                self.bytes.add(bytes);
            }
        }
    }

    /// A step has ended.
    pub(crate) fn step_ended(&self, step: u8, now_ns: u64) {
        self.step_left(step, now_ns, 0);
        self.steps_ended.add(1);
    }

    fn step_left(&self, step: u8, now_ns: u64, bytes: u64) {
        let since = &self.on_network_since_ns[usize::from(step) % STEPS];
        let since_ns = since.get();
        if since_ns == 0 {
            return;
        }
        since.set(0);
        self.network_ns.add(now_ns.saturating_sub(since_ns));
        if self.is_send.get() == 0 {
            self.bytes.add(bytes);
        }
    }

    /// Whether the network has had a step of it since before `since_ns`, or all of it where steps are not
    /// known: else it waits for the device or for a receiver that is not ready.
    pub(crate) fn is_on_network_since(&self, since_ns: u64) -> bool {
        if self.has_steps.get() == 0 {
            return self.begun_ns.get() < since_ns;
        }
        let is_since = |step: &FormattedNumber| (1..since_ns).contains(&step.get());
        self.on_network_since_ns.iter().any(is_since)
    }

    pub(crate) fn ended(&self, now_ns: u64) {
        self.ended_ns.set(now_ns);
    }

    /// How long it was on the network, and how many bytes it carried; without steps, its whole time and
    /// what it could carry at most.
    pub(crate) fn transfer(&self) -> (u64, u64) {
        if self.steps_ended.get() == 0 {
            let lasted_ns = self.ended_ns.get().saturating_sub(self.begun_ns.get());
            return (lasted_ns, self.most_bytes.get());
        }
        (self.network_ns.get(), self.bytes.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(is_send: bool) -> ProxyOperation {
        let operation = ProxyOperation::default();
        let facts = OperationFacts {
            communicator: 3,
            number: 6,
            task: 4,
            peer: -2,
            is_send,
            most_bytes: 4_096,
            begun_ns: 1_000,
        };
        operation.fill(&facts);
        assert_eq!(operation.facts(), facts);
        operation
    }

    #[test]
    fn a_send_counts_only_while_the_network_has_it() {
        let send = operation(true);
        // For the device, for the receiver, on the network.
        send.step_is_in(0, 8, 0, 1_000);
        send.step_is_in(0, 20, 0, 1_500);
        send.step_is_in(0, SEND_WAIT, 700, 9_000);
        send.step_is_in(1, SEND_WAIT, 300, 9_050);
        send.step_ended(0, 9_100);
        send.step_ended(1, 9_350);
        send.ended(9_400);
        assert_eq!(send.transfer(), (100 + 300, 1_000));
    }

    #[test]
    fn a_receive_counts_until_the_data_is_there_and_knows_its_size_then() {
        let receive = operation(false);
        receive.step_is_in(2, RECEIVE_WAIT, 0, 2_000);
        receive.step_is_in(2, 11, 512, 2_400);
        receive.step_is_in(2, 12, 512, 2_500);
        receive.step_ended(2, 9_000);
        receive.ended(9_000);
        assert_eq!(receive.transfer(), (400, 512));
    }

    #[test]
    fn what_waits_for_the_device_or_the_receiver_is_not_on_the_network() {
        let send = operation(true);
        assert!(send.is_on_network_since(1_001) && !send.is_on_network_since(1_000), "no steps");
        send.step_is_in(0, 8, 0, 1_000);
        send.step_is_in(0, 20, 0, 1_500);
        assert!(!send.is_on_network_since(u64::MAX));
        send.step_is_in(0, SEND_WAIT, 700, 9_000);
        assert!(send.is_on_network_since(9_001) && !send.is_on_network_since(9_000));
        send.step_ended(0, 9_100);
        assert!(!send.is_on_network_since(u64::MAX));
    }

    #[test]
    fn without_steps_the_whole_time_counts() {
        let send = operation(true);
        send.ended(1_750);
        assert_eq!(send.transfer(), (750, 4_096));
    }
}
