//! A program that is evicted or cleared away while it may be in use: no thread uses it once it was
//! dropped, and it does not stay.

use std::sync::Arc;

use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

use crate::fixture::{Fixture, Program, wanted};

const KEY: [u8; 1] = [1];
const OTHER_KEY: [u8; 1] = [2];

/// Uses the program and looks, after another thread may have acted, whether it is still there.
fn use_it(fixture: &Fixture, thread: usize) {
    let used = fixture.dispatch(
        KEY,
        thread,
        || Ok(fixture.made()),
        |using| {
            thread::yield_now();
            assert!(fixture.has(using.program.serial), "a dropped program is used");
        },
    );
    used.unwrap();
}

/// A program that is there is used by another thread while `drop_it` makes it go; then nothing
/// that left is alive.
fn use_while(drop_it: fn(&Fixture)) {
    let fixture = Fixture::with_room_for(1);
    fixture.serial(KEY, 1).unwrap();
    // The index frees an entry whenever it likes; its program must not wait for that.
    let _late = fixture.table.index.get(&wanted(&KEY));
    let user = Arc::clone(&fixture);
    let user = thread::spawn(move || use_it(&user, 2));
    drop_it(&fixture);
    user.join().unwrap();
    // What left in the very moment in which its use ended goes with the next change.
    drop(fixture.table.evict(0));
    assert_eq!(fixture.alive(), fixture.table.size().0, "a program stays that has left");
}

#[test]
fn a_program_in_use_is_not_evicted() {
    crate::model(3, || use_while(|fixture| assert!(fixture.serial(OTHER_KEY, 1).is_ok())));
}

#[test]
fn a_program_in_use_is_cleared_away_after_its_use() {
    crate::model(3, || use_while(|fixture| drop(fixture.table.clear())));
}

/// A thread uses the program; if another one cleared the table within that use, the program goes
/// with its end.
fn use_past(clear: fn(&Fixture)) {
    let fixture = Fixture::with_room_for(1);
    fixture.serial(KEY, 1).unwrap();
    let _late = fixture.table.index.get(&wanted(&KEY));
    let cleared = Arc::new(AtomicBool::new(false));
    let (user, seen) = (Arc::clone(&fixture), Arc::clone(&cleared));
    let user = thread::spawn(move || {
        let past = |program: &Program| (program.serial, seen.load(Ordering::SeqCst));
        let used = user.dispatch(KEY, 2, || Ok(user.made()), |using| past(using.program));
        let (serial, is_past) = used.unwrap();
        assert!(serial > 0 || !is_past || !user.has(serial), "a program stays past its use");
    });
    clear(&fixture);
    cleared.store(true, Ordering::SeqCst);
    user.join().unwrap();
}

#[test]
fn a_program_goes_with_the_end_of_the_use_in_which_it_was_cleared() {
    crate::model(3, || use_past(|fixture| drop(fixture.table.clear())));
}

#[test]
#[should_panic(expected = "a program stays past its use")]
fn not_retired_it_would_stay() {
    crate::model(3, || {
        use_past(|fixture| {
            if let Some(entry) = fixture.table.index.get(&wanted(&KEY)) {
                fixture.table.discard(&entry);
            }
        });
    });
}

#[test]
fn two_users_a_clear_and_an_eviction() {
    crate::model(2, || {
        use_while(|fixture| {
            drop(fixture.table.clear());
            use_it(fixture, 1);
            drop(fixture.table.evict(u64::MAX));
        });
    });
}

#[test]
#[should_panic(expected = "a dropped program is used")]
fn dropped_after_a_poll_without_its_lock_it_would_be_used() {
    crate::model(3, || {
        use_while(|fixture| {
            if let Some(entry) = fixture.table.index.get(&wanted(&KEY))
                && !entry.is_in_use()
            {
                fixture.free(0);
            }
        });
    });
}

#[test]
#[should_panic(expected = "a program stays that has left")]
fn left_to_the_index_it_would_stay() {
    crate::model(3, || {
        use_while(|fixture| {
            if let Some(entry) = fixture.table.index.get(&wanted(&KEY)) {
                fixture.table.discard(&entry);
            }
        });
    });
}
