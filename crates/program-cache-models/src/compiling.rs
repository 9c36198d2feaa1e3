//! Threads that miss the same program at the same time compile it once; an error reaches those
//! who waited and is kept for no one; a compilation without a result is begun again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use loom::sync::atomic::AtomicBool;
use loom::thread;

use crate::counters::ThreadNumber;
use crate::entry::{Entry, Made};
use crate::fixture::{Fixture, NoProgram, Program, wanted};
use crate::table::Joined;

const KEY: [u8; 1] = [1];

type Dispatch = fn(&Fixture, usize) -> Result<usize, NoProgram>;

/// Two more threads than this one dispatch the same.
fn all_at_once(dispatch: Dispatch) -> (Arc<Fixture>, [Result<usize, NoProgram>; 3]) {
    let fixture = Fixture::with_room_for(1);
    let others = [1, 2].map(|number| {
        let fixture = Arc::clone(&fixture);
        thread::spawn(move || dispatch(&fixture, number))
    });
    let own = dispatch(&fixture, 3);
    let [one, two] = others.map(|other| other.join().unwrap());
    (fixture, [one, two, own])
}

fn compile_once(dispatch: Dispatch) {
    let (fixture, serials) = all_at_once(dispatch);
    assert_eq!(fixture.compiled(), 1, "a program is compiled twice");
    assert_eq!(serials, [Ok(0); 3]);
}

#[test]
fn concurrent_misses_compile_once() {
    crate::model(2, || compile_once(|fixture, thread| fixture.serial(KEY, thread)));
}

#[test]
#[should_panic(expected = "a program is compiled twice")]
fn without_flights_each_thread_would_compile() {
    crate::model(2, || {
        compile_once(|fixture, _| {
            if fixture.table.index.get(&wanted(&KEY)).is_none() {
                let entry = Entry::new(wanted(&KEY).to_stored(), fixture.made());
                fixture.table.index.insert(&Arc::new(entry));
            }
            Ok(0)
        });
    });
}

/// The compiling thread is refused; then another compiles. Returns how often was refused.
fn refused(fail: Dispatch) -> usize {
    let (fixture, results) = all_at_once(fail);
    assert_eq!(results, [Err(NoProgram::Refused); 3]);
    assert_eq!(fixture.table.size(), (0, 0));
    assert_eq!(fixture.serial(KEY, 3), Ok(0), "a refusal is not kept");
    fixture.refused()
}

#[test]
fn a_refusal_reaches_all_and_is_kept_for_nobody() {
    // Who comes after a refusal tries again; where all three came before it, there is one.
    let fewest = Arc::new(AtomicUsize::new(usize::MAX));
    let seen = Arc::clone(&fewest);
    crate::model(2, move || {
        let refusals = refused(|fixture, thread| {
            fixture.dispatch(KEY, thread, || fixture.refuse(), |using| using.program.serial)
        });
        assert!((1..=3).contains(&refusals));
        seen.fetch_min(refusals, Ordering::Relaxed);
    });
    assert_eq!(fewest.load(Ordering::Relaxed), 1, "a refusal reaches nobody who waits");
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_refusal_that_is_reported_nobody_would_leave_them_waiting() {
    crate::model(2, || {
        let _ = refused(|fixture, thread| {
            match fixture.table.join(&wanted(&KEY), ThreadNumber(thread))? {
                Joined::Here(_) => Ok(0),
                Joined::Wait(flight) => flight.wait(None)?.unwrap().map(|_| 0),
                Joined::Lead(leading) => {
                    Box::leak(Box::new(leading));
                    Err(NoProgram::Refused)
                }
            }
        });
    });
}

#[test]
fn what_one_dispatch_lacks_keeps_no_other_from_compiling() {
    crate::model(3, || {
        let fixture = Fixture::with_room_for(1);
        let other = Arc::clone(&fixture);
        let lacking = thread::spawn(move || {
            let lack = || Err::<Made<Program, ()>, _>(NoProgram::Lacking);
            other.dispatch(KEY, 1, lack, |using| using.program.serial)
        });
        assert_eq!(fixture.serial(KEY, 2), Ok(0), "another one's lack is reported");
        // It may have found the program that came in the meantime.
        assert!(matches!(lacking.join().unwrap(), Ok(0) | Err(NoProgram::Lacking)));
        assert_eq!(fixture.compiled(), 1);
    });
}

#[test]
#[should_panic(expected = "another one's lack is reported")]
fn a_lack_that_is_reported_to_all_would_refuse_them() {
    crate::model(3, || {
        let fixture = Fixture::with_room_for(1);
        let other = Arc::clone(&fixture);
        let lacking = thread::spawn(move || {
            let leading = other.table.join(&wanted(&KEY), ThreadNumber(1)).ok();
            if let Some(Joined::Lead(leading)) = leading {
                other.table.fail(leading, NoProgram::Lacking);
            }
        });
        assert_eq!(fixture.serial(KEY, 2), Ok(0), "another one's lack is reported");
        lacking.join().unwrap();
    });
}

/// A thread compiles while another one clears the table; says whether the program is then kept
/// although its compilation had begun before.
fn compile_while_clearing(compile: fn(&Fixture, &AtomicBool) -> bool) {
    let fixture = Fixture::with_room_for(1);
    let clearing = Arc::new(AtomicBool::new(false));
    let (other, begun) = (Arc::clone(&fixture), Arc::clone(&clearing));
    let compiling = thread::spawn(move || compile(&other, &begun));
    clearing.store(true, Ordering::SeqCst);
    drop(fixture.table.clear());
    let began_before = compiling.join().unwrap();
    let kept = fixture.table.index.get(&wanted(&KEY)).is_some();
    assert!(!(began_before && kept), "what was begun before the clear is kept");
}

#[test]
fn what_was_begun_before_a_clear_is_not_kept() {
    crate::model(3, || {
        compile_while_clearing(|fixture, clearing| {
            let mut before = false;
            let make = || {
                before = !clearing.load(Ordering::SeqCst);
                Ok(fixture.made())
            };
            assert_eq!(fixture.dispatch(KEY, 1, make, |using| using.program.serial), Ok(0));
            before
        });
    });
}

#[test]
#[should_panic(expected = "what was begun before the clear is kept")]
fn compiled_outside_of_a_flight_it_would_be() {
    crate::model(3, || {
        compile_while_clearing(|fixture, clearing| {
            let before = !clearing.load(Ordering::SeqCst);
            let made = fixture.made();
            assert_eq!(fixture.dispatch(KEY, 1, || Ok(made), |using| using.program.serial), Ok(0));
            before
        });
    });
}
