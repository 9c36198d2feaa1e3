//! What every store promises.

use std::time::Duration;

use telltale_cluster::epoch::{Epoch, Revision, Term};
use telltale_cluster::incident::IncidentId;
use telltale_cluster::stored::StoreOutcome;
use telltale_control_plane::store::{
    IncidentRecord, MAX_INCIDENT_BYTES, MAX_KEPT_INCIDENTS, StoreLocation,
};
use tokio::time::Instant;

use crate::store::coordinator::{Coordinator, revision};

/// A part of the suite: its name, and what it does with an empty place.
type Case = (&'static str, fn(StoreLocation) -> std::pin::Pin<Box<dyn Future<Output = ()>>>);

/// Runs the suite, each part in a place of its own.
pub(crate) fn check(mut empty_place: impl FnMut() -> StoreLocation) {
    let cases: [Case; 7] = [
        ("state_outlives_its_leader", |place| Box::pin(state_outlives_its_leader(place))),
        ("given_twice_is_stored_once", |place| Box::pin(given_twice_is_stored_once(place))),
        ("one_leads_at_a_time", |place| Box::pin(one_leads_at_a_time(place))),
        ("stepping_down_is_at_once", |place| Box::pin(stepping_down_is_at_once(place))),
        ("the_past_cannot_write", |place| Box::pin(the_past_cannot_write(place))),
        ("the_log_reports_who_decided_what", |place| {
            Box::pin(the_log_reports_who_decided_what(place))
        }),
        ("incidents_are_kept_within_bounds", |place| {
            Box::pin(incidents_are_kept_within_bounds(place))
        }),
    ];
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for (name, case) in cases {
        println!("{name}");
        runtime.block_on(case(empty_place()));
    }
}

async fn state_outlives_its_leader(place: StoreLocation) {
    let mut terms = vec![Term::new(0)];
    let mut last: Option<(Epoch, Revision)> = None;
    for epoch in 1..4 {
        let mut leader = Coordinator::start(&place);
        let gained = leader.gains().await;
        assert!(gained.term > *terms.last().unwrap(), "{:?} after {terms:?}", gained.term);
        let stored = gained.stored.map(|(state, revision)| (state.epoch, revision));
        assert_eq!(stored, last);
        terms.push(gained.term);
        let expected = last.map_or(Revision::EMPTY, |(_, revision)| revision);
        let decision = leader.decides(gained.term, expected, epoch);
        let stored = revision(leader.stores(&decision).await);
        assert!(stored > expected);
        last = Some((Epoch::new(epoch), stored));
        leader.store.close().await;
    }
}

async fn given_twice_is_stored_once(place: StoreLocation) {
    let mut leader = Coordinator::start(&place);
    let term = leader.gains().await.term;
    let first = leader.decides(term, Revision::EMPTY, 1);
    let stored = leader.stores(&first).await;
    assert_eq!(leader.stores(&first).await, stored);
    let second = leader.decides(term, revision(stored), 2);
    assert_ne!(leader.stores(&second).await, stored);
    let late = leader.decides(term, revision(stored), 3);
    assert_eq!(leader.stores(&late).await, StoreOutcome::Conflict, "the revision has gone on");
}

async fn one_leads_at_a_time(place: StoreLocation) {
    let mut first = Coordinator::start(&place);
    let term = first.gains().await.term;
    let mut second = Coordinator::start(&place);
    let a_while = Instant::now() + Duration::from_millis(700);
    assert!(second.event_until(a_while).await.is_none(), "one leads already");
    assert!(!second.store.authority().holds());
    let decision = first.decides(term, Revision::EMPTY, 1);
    revision(first.stores(&decision).await);
    first.store.close().await;
    let handed_over = Instant::now();
    let gained = second.gains().await;
    assert!(handed_over.elapsed() < Duration::from_secs(2), "a lease that was given up is free");
    assert!(gained.term > term);
    assert_eq!(gained.stored.map(|(state, _)| state.epoch), Some(Epoch::new(1)));
}

async fn stepping_down_is_at_once(place: StoreLocation) {
    let mut leader = Coordinator::start(&place);
    let term = leader.gains().await.term;
    leader.store.step_down();
    leader.loses().await;
    let again = leader.gains().await;
    assert!(again.term > term, "a new leadership has a new term");
}

async fn the_past_cannot_write(place: StoreLocation) {
    let mut leader = Coordinator::start(&place);
    let term = leader.gains().await.term;
    let decision = leader.decides(term, Revision::EMPTY, 1);
    let stored = revision(leader.stores(&decision).await);
    leader.store.step_down();
    leader.loses().await;
    let now = leader.gains().await;
    let late = leader.decides(term, stored, 2);
    let outcome = leader.stores(&late).await;
    assert!(matches!(outcome, StoreOutcome::Conflict | StoreOutcome::Failed), "{outcome:?}");
    let good = leader.decides(now.term, stored, 3);
    revision(leader.stores(&good).await);
}

async fn the_log_reports_who_decided_what(place: StoreLocation) {
    let mut expected = Vec::new();
    let mut last = Revision::EMPTY;
    for leadership in 0..2 {
        let mut leader = Coordinator::start(&place);
        let gained = leader.gains().await;
        let log = gained.kept.decisions();
        assert_eq!(log.map(|one| (one.term, one.epoch)).collect::<Vec<_>>(), expected);
        for epoch in 1..4 {
            let epoch = leadership * 10 + epoch;
            let decision = leader.decides(gained.term, last, epoch);
            last = revision(leader.stores(&decision).await);
            expected.push((gained.term, Epoch::new(epoch)));
        }
        leader.store.close().await;
    }
}

async fn incidents_are_kept_within_bounds(place: StoreLocation) {
    let mut leader = Coordinator::start(&place);
    let term = leader.gains().await.term;
    let most = u32::try_from(MAX_KEPT_INCIDENTS).unwrap();
    let mut last = Revision::EMPTY;
    for number in 1..=most + 8 {
        let id = IncidentId { term, number };
        for content in [b"early".to_vec(), vec![7; 1024]] {
            leader.store.keep(IncidentRecord { id, content });
        }
        // The answer to a decision says that what was given before is done.
        let decision = leader.decides(term, last, u64::from(number));
        last = revision(leader.stores(&decision).await);
    }
    let id = IncidentId { term, number: most + 9 };
    leader.store.keep(IncidentRecord { id, content: vec![7; MAX_INCIDENT_BYTES + 1] });
    let decision = leader.decides(term, last, 1000);
    revision(leader.stores(&decision).await);
    assert!(leader.unkept.iter().any(|text| text.contains("is not kept")));
    assert!(leader.troubles.is_empty(), "decisions are stored: {:?}", leader.troubles);
    assert_eq!(leader.store.dropped_incidents(), 0);
    leader.store.close().await;

    let mut next = Coordinator::start(&place);
    let kept = next.gains().await.kept;
    let numbers: Vec<u32> = kept.incidents().map(|(id, _)| id.number).collect();
    assert_eq!(numbers, (9..=most + 8).collect::<Vec<_>>());
    assert!(kept.incidents().all(|(_, content)| content == [7; 1024]));
}
