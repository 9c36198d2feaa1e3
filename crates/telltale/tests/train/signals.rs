//! What a signal does to a run: workers may save, a second Ctrl-C does not wait, and nothing is left.

use telltale_harness::wait_until;

use crate::train::fixture::{Place, TIMEOUT};

/// A worker that notes which signal it got, and takes its time.
const SAVES: &str = "\
trap 'echo interrupted >> saved; exit 9' INT
trap 'echo terminated >> saved; exit 9' TERM
touch ready
while :; do sleep 0.05; done";
/// One that ends by no signal that can be ignored.
const STUBBORN: &str = "trap '' INT TERM; touch ready; while :; do sleep 0.05; done";
/// One with a process in a session of its own.
const FAMILY: &str = "setsid sleep 600 & touch ready; exec sleep 600";

#[test]
fn workers_get_the_signal_and_the_time_to_save() {
    for (is_interrupt, noted, code) in [(true, "interrupted\n", 130), (false, "terminated\n", 143)]
    {
        let place = Place::new();
        let mut running = place.start(&["--", "sh", "-c", SAVES]);
        place.wait_for("ready");
        match is_interrupt {
            true => running.process.interrupt(),
            false => running.process.terminate(),
        }
        let ended = running.wait();
        assert_eq!((ended.code, &*place.read("saved")), (Some(code), noted), "{ended:?}");
        assert_eq!(ended.errors, "", "the one who ended it knows");
        place.assert_nothing_left();
    }
}

#[test]
fn a_second_interrupt_kills_at_once() {
    let place = Place::new();
    let mut running = place.start(&["--shutdown-timeout", "3600", "--", "sh", "-c", STUBBORN]);
    place.wait_for("ready");
    wait_until("the end by another Ctrl-C", TIMEOUT, || {
        running.process.interrupt();
        !running.process.is_running()
    });
    assert_eq!(running.wait().code, Some(130));
    place.assert_nothing_left();
}

#[test]
fn workers_that_do_not_end_are_killed_when_their_time_is_over() {
    let place = Place::new();
    let mut running = place.start(&["--shutdown-timeout", "0.5", "--", "sh", "-c", STUBBORN]);
    place.wait_for("ready");
    running.process.terminate();
    assert_eq!(running.wait().code, Some(143));
    place.assert_nothing_left();
}

#[test]
fn nothing_is_left_of_a_run_that_is_killed() {
    let place = Place::new();
    let mut running = place.start(&["--nproc", "2", "--", "sh", "-c", FAMILY]);
    place.wait_for("ready");
    assert!(!place.left().is_empty(), "workers and a directory are there");
    running.process.kill();
    wait_until("workers and files to be gone", TIMEOUT, || place.left().is_empty());
}
