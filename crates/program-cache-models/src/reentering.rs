//! A thread that meets a program it is using is turned away; no other thread is.

use std::sync::Arc;

use loom::thread;

use crate::fixture::{Fixture, NoProgram};

const KEY: [u8; 1] = [1];

/// Two threads with these numbers use a program that is there, this one within its own use too.
fn run(numbers: [usize; 2]) {
    let fixture = Fixture::with_room_for(1);
    fixture.serial(KEY, numbers[0]).unwrap();
    let other = Arc::clone(&fixture);
    let other = thread::spawn(move || other.serial(KEY, numbers[1]));
    let inner = |number| fixture.serial(KEY, number);
    let nested = fixture.dispatch(
        KEY,
        numbers[0],
        || Ok(fixture.made()),
        |_| inner(numbers[0]).unwrap_err(),
    );
    assert_eq!(nested, Ok(NoProgram::Reentered));
    assert_eq!(other.join().unwrap(), Ok(0), "another thread is turned away");
}

#[test]
fn only_the_thread_that_uses_a_program_is_turned_away() {
    crate::model(3, || run([1, 2]));
}

#[test]
#[should_panic(expected = "another thread is turned away")]
fn threads_with_one_number_would_be_turned_away() {
    crate::model(3, || run([1, 1]));
}
