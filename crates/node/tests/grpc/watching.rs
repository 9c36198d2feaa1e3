//! Watchers: quick ones see each state, slow ones the newest and how many they missed.

use std::time::{Duration, Instant};

use telltale_wire::telemetry::decode::Update;

use crate::grpc::machine::{machine, own_metrics};
use crate::grpc::serving::{Served, wait};

fn numbers(update: &Update) -> (u64, u64) {
    (update.sequence, update.skipped)
}

#[test]
fn a_quick_reader_sees_each_state() {
    let served = Served::of(machine(1, 2));
    wait(async {
        let mut client = served.client().await;
        let mut updates = client.watch(Duration::ZERO).await.unwrap();
        let first = updates.next().await.unwrap().unwrap();
        assert_eq!(numbers(&first), (1, 0));
        assert_eq!(first.snapshot, Some((*machine(1, 2)).clone()));
        for sequence in 2..6 {
            served.publisher.publish(machine(1, 3), own_metrics());
            let next = updates.next().await.unwrap().unwrap();
            assert_eq!(numbers(&next), (sequence, 0));
        }
    });
    assert_eq!(served.refused("grpc_watch"), 0);
}

#[test]
fn a_slow_reader_lags_and_is_reported() {
    // Large enough that the buffers between us hold only a few of them.
    let large = machine(8, 100);
    let served = Served::of(large.clone());
    wait(async {
        let mut client = served.client().await;
        let mut updates = client.watch(Duration::ZERO).await.unwrap();
        for _ in 0..400 {
            served.publisher.publish(large.clone(), own_metrics());
            std::thread::yield_now();
        }
        let (mut seen, mut missed) = (0, 0);
        loop {
            let (sequence, skipped) = numbers(&updates.next().await.unwrap().unwrap());
            seen += 1;
            missed += skipped;
            assert_eq!(sequence, seen + missed, "each state was sent or is counted");
            if sequence == 401 {
                break;
            }
        }
        assert!(missed > 300, "only {missed} of 401 were left out");
        assert_eq!(served.refused("grpc_watch"), missed);
    });
}

#[test]
fn who_asks_for_fewer_gets_fewer() {
    let served = Served::of(machine(1, 1));
    wait(async {
        let mut client = served.client().await;
        let least = Duration::from_millis(300);
        let mut updates = client.watch(least).await.unwrap();
        updates.next().await.unwrap().unwrap();
        let first = Instant::now();
        for _ in 0..9 {
            served.publisher.publish(machine(1, 1), own_metrics());
        }
        let second = updates.next().await.unwrap().unwrap();
        assert_eq!(numbers(&second), (10, 8));
        assert!(first.elapsed() >= least - Duration::from_millis(20), "{:?}", first.elapsed());
    });
    assert_eq!(served.refused("grpc_watch"), 0, "it asked for that");
}

#[test]
fn many_watchers_see_the_same() {
    let served = Served::of(machine(2, 10));
    wait(async {
        let mut all = Vec::new();
        for _ in 0..100 {
            let mut client = served.client().await;
            all.push(client.watch(Duration::ZERO).await.unwrap());
        }
        for updates in &mut all {
            assert_eq!(updates.next().await.unwrap().unwrap().sequence, 1);
        }
        served.publisher.publish(machine(2, 11), own_metrics());
        for updates in &mut all {
            let update = updates.next().await.unwrap().unwrap();
            assert_eq!(update.snapshot.unwrap().processes.len(), 11);
        }
    });
}

#[test]
fn usage_is_watched_as_long_as_a_stream_that_asked_for_it_is_open() {
    let served = Served::of(machine(1, 2));
    let is_watched = || served.publisher.is_usage_watched();
    wait(async {
        let mut client = served.client().await;
        let without = client.watch(Duration::ZERO).await.unwrap();
        assert!(!is_watched());
        let mut streams = Vec::new();
        for _ in 0..2 {
            let mut with = client.watch_selected(Duration::ZERO, "", true).await.unwrap();
            with.next().await.unwrap().unwrap();
            streams.push(with);
            assert!(is_watched());
        }
        streams.pop();
        assert!(is_watched(), "another one is open");
        streams.pop();
        let until = Instant::now() + Duration::from_secs(30);
        while is_watched() {
            assert!(Instant::now() < until, "nothing is open any more");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        drop(without);
    });
}
