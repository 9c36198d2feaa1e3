//! From posts to observations.

use super::*;
use telltale_cluster::group::GroupId;
use telltale_cluster::tracking::tracker::TrackerCounts;
use telltale_cluster::tracking::windows::WARM_UP_SAMPLES;

fn scope(number: u64) -> Scope {
    Scope { epoch: Epoch::new(number), world_size: 4, ranks: 0..2 }
}

/// A transfer from rank 0 to rank 1 of 64 bytes in 30 microseconds.
fn send(more: &str) -> String {
    format!(
        r#"{{"opType":"send","remoteRank":1,"bytes":64,"context_rank":0,"context_size":4,
            "startTime":10,"endTime":40,"finished":true{more}}}"#
    )
}

fn sends(count: u32, more: &str) -> String {
    let one = send(more).replace('\n', " ");
    (0..count).map(|_| format!("{one}\n")).collect()
}

#[test]
fn what_is_posted_is_observed_and_shown() {
    let intake = Intake::new();
    intake.begin(scope(1));
    let taken = intake.post(sends(WARM_UP_SAMPLES + 7, "").as_bytes(), Sender::Verified).unwrap();
    assert_eq!((taken.queued, taken.refused, taken.dropped), (27, 0, 0));
    let observation = intake.observe(Epoch::new(1), &[]).unwrap();
    let [edge] = observation.edges[..] else { panic!("{observation:?}") };
    assert_eq!((edge.key.rank, edge.key.peer), (Rank(0), Rank(1)));
    assert_eq!((edge.window.count, edge.window.median_ns), (7, 30_000));
    let view = intake.view();
    assert_eq!(view.latencies_ns, BTreeMap::from([(Rank(1), 30_000)]));
    assert_eq!((view.scope, view.counts.received), (Some(scope(1)), 27));
    assert_eq!(intake.observe(Epoch::new(1), &[]).unwrap().edges, []);
    assert_eq!(intake.view().latencies_ns.len(), 1, "what was reported last is still shown");
}

/// Whether a transfer that took 30 microseconds is shown as that, when it is posted like this.
fn thirty_microseconds_are_shown(post: &str) -> bool {
    let intake = Intake::new();
    intake.begin(scope(1));
    intake.post(post.as_bytes(), Sender::Verified).unwrap();
    intake.observe(Epoch::new(1), &[]).unwrap();
    intake.view().latencies_ns == BTreeMap::from([(Rank(1), 30_000)])
}

#[test]
fn times_are_microseconds_and_no_other_unit() {
    let posts = sends(WARM_UP_SAMPLES + 7, "");
    assert!(thirty_microseconds_are_shown(&posts));
    // The original shows a thousandth. Taking the times for nanoseconds or milliseconds would too, or
    // a thousandfold.
    for (start, end) in [("10000", "40000"), ("0", "0")] {
        let wrong = posts.replace(r#""startTime":10"#, &format!(r#""startTime":{start}"#));
        let wrong = wrong.replace(r#""endTime":40"#, &format!(r#""endTime":{end}"#));
        assert!(!thirty_microseconds_are_shown(&wrong), "{start} to {end}");
    }
}

#[test]
fn another_epoch_is_not_mixed_in() {
    let intake = Intake::new();
    let post = |text: &str| assert!(intake.post(text.as_bytes(), Sender::Verified).is_ok());
    post(&send(""));
    assert_eq!(intake.observe(Epoch::new(1), &[]), None);
    assert_eq!(intake.view().counts.stale, 1, "nothing runs");
    intake.begin(scope(1));
    post(&send(""));
    intake.begin(scope(2));
    post(&send(r#","epoch":1"#));
    post(&send(r#","epoch":2"#));
    assert_eq!(intake.observe(Epoch::new(1), &[]), None);
    assert!(intake.observe(Epoch::new(2), &[]).is_some());
    let counts = intake.view().counts;
    assert_eq!((counts.received, counts.stale, counts.tracker.taken), (4, 3, 1));
    intake.end();
    assert_eq!(intake.observe(Epoch::new(2), &[]), None);
    assert_eq!(intake.view().counts.tracker.taken, 1, "counts outlive their epoch");
}

#[test]
fn what_finds_no_place_is_counted() {
    let intake = Intake::new();
    intake.begin(scope(1));
    let batch = sends(16_384, "");
    let full: Vec<usize> =
        (0..3).map(|_| intake.post(batch.as_bytes(), Sender::Verified).unwrap().dropped).collect();
    assert_eq!(full, [0, 0, 16_384]);
    assert_eq!(intake.view().counts.queue_full, 16_384);
    assert!(intake.observe(Epoch::new(1), &[]).is_some());
    assert_eq!(intake.post(send("").as_bytes(), Sender::Verified).unwrap().queued, 1);
    assert!(intake.post(b"nonsense", Sender::Verified).is_err());
    assert_eq!(intake.post(b"{}", Sender::Verified).unwrap().refused, 1);
    let counts = intake.view().counts;
    assert_eq!((counts.malformed_posts, counts.refused, counts.tracker.taken), (1, 1, 32_768));
}

#[test]
fn groups_are_learnt_if_their_members_can_be() {
    let intake = Intake::new();
    intake.begin(scope(1));
    let pair = r#","group":"pair","context_size":2"#;
    let mut text = String::from(r#"{"opType":"group","group":"pair","ranks":[1,3]}"#);
    text += r#"{"opType":"group","group":"outside","ranks":[1,4]}"#;
    text += r#"{"opType":"group","group":"large","ranks":[0,1,2,3,0]}"#;
    text += &send(pair).replace(r#""context_size":4,"#, "");
    intake.post(text.as_bytes(), Sender::Verified).unwrap();
    let observation = intake.observe(Epoch::new(1), &[]).unwrap();
    let [progress] = &observation.progress[..] else { panic!("{observation:?}") };
    assert_eq!((progress.group, progress.rank), (GroupId::of_name("pair"), Rank(1)));
    assert_eq!(intake.view().counts.tracker.groups_refused, 2);
}

#[test]
fn a_checkpoint_excuses_until_its_end() {
    let intake = Intake::new();
    intake.begin(scope(1));
    let excused = |text: &str| {
        intake.post(text.as_bytes(), Sender::Verified).unwrap();
        intake.observe(Epoch::new(1), &[]).unwrap().excused
    };
    assert!(!excused(r#"{"opType":"checkpoint","global_rank":2}"#), "not this node's");
    assert!(excused(
        r#"{"opType":"checkpoint","global_rank":0}{"opType":"checkpoint","global_rank":1}"#
    ));
    assert!(excused(r#"{"opType":"checkpoint","global_rank":0,"finished":true}"#));
    assert!(!excused(r#"{"opType":"checkpoint","global_rank":1,"finished":true}"#));
    assert_eq!(intake.view().counts.foreign_checkpoints, 1);
}

#[test]
fn posts_of_unverified_senders_are_shown_and_are_in_no_observation() {
    let intake = Intake::new();
    intake.begin(scope(1));
    let observe = || intake.observe(Epoch::new(1), &[]).unwrap();
    let post = |text: &str| intake.post(text.as_bytes(), Sender::Unverified).unwrap();
    let taken = post(&sends(WARM_UP_SAMPLES + 7, ""));
    assert_eq!((taken.queued, taken.refused, taken.dropped), (27, 0, 0), "answered as any");
    // An operation that began and does not end, an excuse, and members of a group.
    post(&send("").replace("true", "false"));
    post(r#"{"opType":"checkpoint","global_rank":0}"#);
    post(r#"{"opType":"group","group":"pair","ranks":[1,3]}"#);
    assert_eq!(observe(), Observation::default());
    let view = intake.view();
    assert_eq!(view.latencies_ns, BTreeMap::new());
    assert_eq!(view.unverified_latencies_ns, BTreeMap::from([(Rank(1), 30_000)]));
    assert_eq!((view.counts.unverified, view.counts.tracker), (30, TrackerCounts::default()));
    // However many there are, what workers post has its place.
    let batch = sends(16_384, "");
    (0..3).for_each(|_| assert_eq!(post(&batch).dropped, 0));
    let own = intake.post(sends(WARM_UP_SAMPLES + 7, "").as_bytes(), Sender::Verified).unwrap();
    assert_eq!(own.queued, 27);
    assert_eq!(observe().edges[0].window.count, 7);
}
