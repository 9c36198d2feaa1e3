//! A user that panics spoils the program of its entry and nothing else.

use std::cell::Cell;
use std::sync::Arc;

use loom::thread;

use crate::counters::ThreadNumber;
use crate::fixture::{Fixture, wanted};
use crate::sync::{WITHOUT_POISON, panic_with};

const KEY: [u8; 1] = [1];
const OTHER_KEY: [u8; 1] = [2];

/// Uses the program as one that panics halfway does.
fn panic_in_use(fixture: &Fixture, thread: usize) {
    let Some(entry) = fixture.table.index.get(&wanted(&KEY)) else { return };
    let Some(mut in_use) = entry.enter(ThreadNumber(thread), || None).unwrap() else { return };
    in_use.program().spoilt = true;
    panic_with(in_use);
}

fn use_while_another_panics(meanwhile: fn(&Fixture)) {
    let fixture = Fixture::with_room_for(2);
    let other_serial = fixture.serial(OTHER_KEY, 1).unwrap();
    fixture.serial(KEY, 1).unwrap();
    let user = Arc::clone(&fixture);
    let user = thread::spawn(move || panic_in_use(&user, 2));
    meanwhile(&fixture);
    let spoilt = Cell::new(false);
    for _ in 0..2 {
        let used = fixture.dispatch(
            KEY,
            1,
            || Ok(fixture.made()),
            |using| spoilt.set(using.program.spoilt),
        );
        assert_eq!((used, spoilt.get()), (Ok(()), false), "a spoilt program is used");
    }
    user.join().unwrap();
    assert_eq!(fixture.serial(OTHER_KEY, 1), Ok(other_serial), "another program is spoilt");
    fixture.serial(KEY, 1).unwrap();
    assert_eq!((fixture.table.size().0, fixture.alive()), (2, 2));
}

#[test]
fn a_program_whose_user_panicked_is_compiled_again() {
    crate::model(3, || use_while_another_panics(|_| ()));
}

#[test]
#[should_panic(expected = "a spoilt program is used")]
fn without_poisoning_it_would_be_used() {
    WITHOUT_POISON.set(true);
    crate::model(3, || use_while_another_panics(|_| ()));
}

#[test]
fn what_a_user_that_panicked_leaves_can_be_cleared() {
    crate::model(3, || {
        let fixture = Fixture::with_room_for(1);
        fixture.serial(KEY, 1).unwrap();
        let user = Arc::clone(&fixture);
        let user = thread::spawn(move || panic_in_use(&user, 2));
        drop(fixture.table.clear());
        user.join().unwrap();
        drop(fixture.table.evict(0));
        assert_eq!((fixture.table.size().0, fixture.alive()), (0, 0));
    });
}
