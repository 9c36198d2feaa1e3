//! Hangs and slow ranks of an unchanged PyTorch script, as the report has them.

use telltale_harness::wait_until;

use crate::cluster::training::{PYTHON, turn};
use crate::train::fixture::{Place, TIMEOUT};

const SIZES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/train/sizes.py");
const HANG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/train/hang.py");
const SLOW: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/train/slow.py");

#[test]
fn a_hang_is_reported_with_the_rank_that_did_not_come() {
    let Some(_turn) = turn("train::reports::a_hang_is_reported") else { return };
    let place = Place::new();
    let arguments = ["--nproc", "3", "--hang-after", "3", HANG];
    let mut running = place.start_with(&arguments, &[("PYTHON_EXEC", PYTHON)]);
    wait_until("the hang to be reported", TIMEOUT, || {
        let errors = running.errors();
        assert!(!errors.contains("Traceback"), "{errors}");
        errors.contains("telltale: the job hangs: rank 1 ")
    });
    assert!(running.errors().contains("telltale cluster explain 1-1 --coordinator unix:"));
    let sentence = "ranks 0, 2 wait in all_reduce 21 (hang.py:14); rank 1 has not entered it";
    wait_until("the reason to be reported", TIMEOUT, || {
        running.errors().contains(&format!("telltale: why it hangs: {sentence}"))
    });
    running.process.terminate();
    let ended = running.wait();
    assert_eq!(ended.code, Some(143));
    let report = ended.errors.rsplit("telltale: interrupted").next().expect("a report");
    assert!(report.contains("hang: others wait in a collective for a rank"), "{report}");
    assert!(report.contains(sentence) && report.contains("sleeps at hang.py:13"), "{report}");
    place.assert_nothing_left();
}

#[test]
fn a_shorter_tensor_is_reported_with_both_sizes() {
    let Some(_turn) = turn("train::reports::a_shorter_tensor_is_reported") else { return };
    let place = Place::new();
    let arguments = ["--nproc", "4", "--hang-after", "3", SIZES];
    let mut running = place.start_with(&arguments, &[("PYTHON_EXEC", PYTHON)]);
    let sentence = "rank 1 has begun all_reduce 21 with a size of 4, and others of 32";
    wait_until("the reason to be reported", TIMEOUT, || {
        let errors = running.errors();
        assert!(!errors.contains("Traceback"), "{errors}");
        errors.contains(&format!("telltale: why it hangs: {sentence}"))
    });
    running.process.terminate();
    assert_eq!(running.wait().code, Some(143));
    place.assert_nothing_left();
}

#[test]
fn a_slow_rank_is_reported_with_its_factor() {
    let Some(_turn) = turn("train::reports::a_slow_rank_is_reported") else { return };
    let place = Place::new();
    let running = place.start_with(&["--nproc", "3", SLOW], &[("PYTHON_EXEC", PYTHON)]);
    let ended = running.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let said = ended.errors.split_once("Rank 1 on ").expect("the slow rank is named").1;
    let times = said.split_once(" computes ").expect("by how much").1.split(' ').next();
    let times: f64 = times.and_then(|times| times.parse().ok()).expect("a factor");
    assert!((2.0..4.0).contains(&times), "it computes three times as long: {said}");
    place.assert_nothing_left();
}
