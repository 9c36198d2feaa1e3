//! Biased access: never are two threads inside at once, and each finds what the one before left,
//! also while the second thread ends the first one's privilege.
//!
//! What is guarded is a counter that is loaded and then stored. A thread that got in too early, or
//! did not see what another one did, loses a count.

use loom::sync::{Arc, Mutex};
use loom::thread;

use crate::bias::{Bias, Role, SpinLock};
use crate::sync::{AtomicU64, Ordering, WITHOUT_BARRIERS};

struct Shared {
    bias: Bias,
    asking: Mutex<()>,
    lock: SpinLock,
    count: AtomicU64,
}

impl Shared {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            bias: Bias::new(),
            asking: Mutex::new(()),
            lock: SpinLock::new(),
            count: AtomicU64::new(0),
        })
    }

    fn ask(&self) -> Role {
        let _one_at_a_time = self.asking.lock().unwrap();
        self.bias.ask().unwrap()
    }

    fn add(&self, role: Role) {
        let _inside = self.bias.go_in(role, &self.lock).unwrap();
        let count = self.count.load(Ordering::Relaxed);
        self.count.store(count + 1, Ordering::Relaxed);
    }

    fn check(&self, expected: u64) {
        assert_eq!(self.count.load(Ordering::Relaxed), expected, "a count is lost");
    }
}

/// The owner goes in twice while another thread asks and goes in.
fn second_thread_arrives(spawn_the_owner: bool, second: fn(&Shared)) {
    let shared = Shared::new();
    let owner = |shared: &Shared, role| {
        shared.add(role);
        shared.add(role);
    };
    let role = shared.ask();
    assert_eq!(role, Role::Owner);
    let other = Arc::clone(&shared);
    let other =
        thread::spawn(move || if spawn_the_owner { owner(&other, role) } else { second(&other) });
    if spawn_the_owner {
        second(&shared)
    } else {
        owner(&shared, role)
    }
    other.join().unwrap();
    shared.check(3);
}

fn ask_and_add(shared: &Shared) {
    let role = shared.ask();
    assert_eq!(role, Role::Other);
    shared.add(role);
}

#[test]
fn a_second_thread_waits_until_the_owner_is_outside() {
    for spawn_the_owner in [true, false] {
        crate::model(3, move || second_thread_arrives(spawn_the_owner, ask_and_add));
    }
}

#[test]
#[should_panic(expected = "a count is lost")]
fn without_the_barriers_both_could_be_inside() {
    WITHOUT_BARRIERS.set(true);
    crate::model(3, || second_thread_arrives(true, ask_and_add));
}

#[test]
#[should_panic(expected = "a count is lost")]
fn without_ending_the_bias_both_would_be_inside() {
    crate::model(3, || second_thread_arrives(true, |shared| shared.add(Role::Other)));
}

#[test]
fn two_more_threads_and_the_owner_take_turns() {
    crate::model(2, || {
        let shared = Shared::new();
        let role = shared.ask();
        let others = [(); 2].map(|()| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || ask_and_add(&shared))
        });
        shared.add(role);
        others.into_iter().for_each(|other| other.join().unwrap());
        shared.check(3);
    });
}

#[test]
fn what_an_owner_that_gave_up_did_is_seen_by_the_next_one() {
    crate::model(3, || {
        let shared = Shared::new();
        let use_once = |shared: &Shared| {
            let role = shared.ask();
            shared.add(role);
            if role == Role::Owner {
                shared.bias.give_up();
            }
        };
        let other = Arc::clone(&shared);
        let other = thread::spawn(move || use_once(&other));
        use_once(&shared);
        other.join().unwrap();
        shared.check(2);
    });
}

#[test]
fn an_owner_that_meets_itself_is_turned_away() {
    crate::model(3, || {
        let shared = Shared::new();
        let role = shared.ask();
        let inside = shared.bias.go_in(role, &shared.lock);
        assert!(inside.is_some() && shared.bias.go_in(role, &shared.lock).is_none());
        drop(inside);
        shared.add(role);
    });
}
