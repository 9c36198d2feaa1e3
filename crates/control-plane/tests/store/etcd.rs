//! The store in a real etcd, whose members and whose coordinators are killed and stopped.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use telltale_cluster::epoch::{Epoch, Revision};
use telltale_cluster::stored::StoreOutcome;
use telltale_control_plane::store::{
    EtcdPlan, EtcdSettings, LEAST_LEASE, StoreEvent, StoreLocation,
};
use telltale_harness::{ChildGuard, EtcdCluster, needs_etcd, rounds, wait_until};
use tokio::time::Instant;

use crate::store::conformance;
use crate::store::coordinator::{Coordinator, TIMEOUT};

fn place(members: &[String], prefix: &str, address: &str) -> StoreLocation {
    let plan = EtcdPlan {
        members: members.to_vec(),
        prefix: format!("/telltale/{prefix}"),
        address: address.into(),
        lease: LEAST_LEASE,
        tls: None,
    };
    StoreLocation::Etcd(EtcdSettings::new(&plan).unwrap())
}

/// Runs a test whose own waiting holds up no store.
fn block_on(future: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(future);
}

fn now_ns() -> u128 {
    let now = clock_gettime(ClockId::Boottime);
    u128::try_from(now.tv_sec).unwrap() * 1_000_000_000 + u128::try_from(now.tv_nsec).unwrap()
}

#[test]
fn it_is_a_store() {
    if !needs_etcd("store::etcd::it_is_a_store") {
        return;
    }
    let cluster = EtcdCluster::start(1);
    let mut number = 0;
    conformance::check(|| {
        number += 1;
        place(&cluster.addresses(), &format!("job-{number}"), "coordinator-0:4320")
    });
}

#[test]
fn a_coordinator_that_does_not_lead_knows_who_does() {
    if !needs_etcd("store::etcd::a_coordinator_that_does_not_lead_knows_who_does") {
        return;
    }
    let cluster = EtcdCluster::start(1);
    block_on(async {
        let mut first = Coordinator::start(&place(&cluster.addresses(), "job", "one:4320"));
        let gained = first.gains().await;
        let mut second = Coordinator::start(&place(&cluster.addresses(), "job", "two:4320"));
        let soon = Instant::now() + Duration::from_millis(800);
        assert!(second.event_until(soon).await.is_none());
        assert_eq!(second.leader.as_deref(), Some("one:4320"));
        // Also what is stored, as soon as anything is.
        assert_eq!(second.standby, None);
        let decision = first.decides(gained.term, Revision::EMPTY, 1);
        let outcome = first.stores(&decision).await;
        assert!(matches!(outcome, StoreOutcome::Stored(_)), "{outcome:?}");
        let soon = Instant::now() + Duration::from_millis(800);
        assert!(second.event_until(soon).await.is_none());
        assert_eq!(second.standby.map(|state| state.epoch), Some(Epoch::new(1)));
    });
}

#[test]
fn decisions_go_on_when_any_member_is_killed_or_stands_still() {
    if !needs_etcd("store::etcd::decisions_go_on_when_any_member_is_killed_or_stands_still") {
        return;
    }
    let mut cluster = EtcdCluster::start(3);
    block_on(async {
        let addresses = cluster.addresses();
        let mut one = Coordinator::start(&place(&addresses, "job", "one:4320"));
        let mut gained = one.gains().await;
        let mut last = Revision::EMPTY;
        for round in 0..rounds(4, 12) {
            let epoch = u64::from(round) + 1;
            let leads_etcd = cluster.leader().expect("three members have a leader");
            let hit = if round % 2 == 0 { leads_etcd } else { (leads_etcd + 1) % 3 };
            let freezes = round % 4 >= 2;
            if freezes {
                cluster.member(hit).pause();
            } else {
                cluster.member(hit).kill();
            }
            // It may lose the lease meanwhile, and then it has it again; nothing is lost by that.
            let mut decision = one.decides(gained.term, last, epoch);
            one.store.store(Box::new(decision.clone()));
            let until = Instant::now() + TIMEOUT;
            loop {
                match one.event_until(until).await.expect("it leads again") {
                    // The answer to one that was decided while it led before.
                    StoreEvent::Stored { decision: other, .. } if other != decision.number => {}
                    StoreEvent::Stored { outcome: StoreOutcome::Stored(revision), .. } => {
                        // Also when it was stored before, unnoticed.
                        assert!(!one.is_troubled, "{:?}", one.troubles);
                        last = revision;
                        break;
                    }
                    StoreEvent::Stored { outcome: StoreOutcome::Conflict, .. } => {
                        panic!("nobody else decides; {:?}", one.troubles)
                    }
                    StoreEvent::Stored { .. } => one.store.store(Box::new(decision.clone())),
                    StoreEvent::Gained(again) => {
                        let stored = again.stored.as_ref();
                        last = stored.map_or(Revision::EMPTY, |(_, revision)| *revision);
                        gained = *again;
                        decision = one.decides(gained.term, last, epoch);
                        one.store.store(Box::new(decision.clone()));
                    }
                    StoreEvent::Lost => {}
                    other => panic!("{other:?}"),
                }
            }
            if freezes {
                cluster.member(hit).resume();
            } else {
                cluster.restart(hit);
            }
            wait_until("the member to be back", TIMEOUT, || cluster.is_healthy());
        }
        one.store.close().await;
        let mut two = Coordinator::start(&place(&addresses, "job", "two:4320"));
        let stored = two.gains().await.stored.map(|(state, _)| state.epoch);
        assert_eq!(stored, Some(Epoch::new(u64::from(rounds(4, 12)))));
    });
}

#[test]
fn without_etcd_nobody_leads_and_with_it_somebody_does_again() {
    if !needs_etcd("store::etcd::without_etcd_nobody_leads_and_with_it_somebody_does_again") {
        return;
    }
    let mut cluster = EtcdCluster::start(1);
    block_on(async {
        let mut one = Coordinator::start(&place(&cluster.addresses(), "job", "one:4320"));
        let term = one.gains().await.term;
        let authority = one.store.authority();
        let stopped = Instant::now();
        cluster.member(0).pause();
        one.loses().await;
        assert!(!authority.holds());
        assert!(stopped.elapsed() < LEAST_LEASE, "it stops before the lease can run out");
        let soon = Instant::now() + Duration::from_secs(2);
        assert!(one.event_until(soon).await.is_none());
        let reported = one.troubles.join("; ");
        assert!(reported.contains("was not renewed in time"), "{reported}");
        assert!(reported.contains("etcdctl endpoint health"), "{reported}");
        cluster.member(0).resume();
        assert!(one.gains().await.term > term);
    });
}

/// Set for the copy of the test that is a coordinator of its own: etcd's address.
const COORDINATOR: &str = "TELLTALE_TEST_COORDINATOR";
const ALONE: &str = "store::etcd::two_never_lead_at_once_though_one_is_killed_or_stands_still";

/// A coordinator that says when it leads, for ever: it is killed.
async fn leads_aloud(etcd: &str) {
    let mut coordinator = Coordinator::start(&place(&[etcd.to_owned()], "job", "one:4320"));
    let authority = coordinator.store.authority();
    std::thread::spawn(move || {
        loop {
            // The time is taken first: it led at that time if it leads afterwards.
            let now = now_ns();
            if authority.holds() {
                println!("leads {now}");
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    loop {
        match coordinator.event("an event").await {
            StoreEvent::Gained(gained) => println!("gained {}", gained.term),
            StoreEvent::Lost => println!("lost"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn two_never_lead_at_once_though_one_is_killed_or_stands_still() {
    if let Some(etcd) = std::env::var_os(COORDINATOR) {
        block_on(leads_aloud(&etcd.into_string().unwrap()));
        return;
    }
    if !needs_etcd("store::etcd::two_never_lead_at_once_though_one_is_killed_or_stands_still") {
        return;
    }
    let cluster = EtcdCluster::start(1);
    let etcd = &cluster.addresses()[0];
    block_on(async {
        for kills in [false, true] {
            let (mut process, lines) = coordinator_process(etcd);
            let until = std::time::Instant::now() + TIMEOUT;
            let leads = |line: &String| line.starts_with("leads");
            while !lines.recv_timeout(TIMEOUT).as_ref().is_ok_and(leads) {
                assert!(std::time::Instant::now() < until, "it never led");
            }
            let mut other =
                Coordinator::start(&place(std::slice::from_ref(etcd), "job", "two:4320"));
            let stopped = Instant::now();
            if kills {
                process.kill();
            } else {
                process.pause();
            }
            other.gains().await;
            let gained_ns = now_ns();
            let took = stopped.elapsed();
            println!("killed: {kills}; another leads after {took:?}");
            assert!(took < Duration::from_secs(5), "{took:?}");
            process.resume();
            // While it is awake again, it must not lead for a single moment.
            let awake = std::time::Instant::now() + Duration::from_secs(2);
            let mut late = Vec::new();
            while let Ok(line) =
                lines.recv_timeout(awake.saturating_duration_since(std::time::Instant::now()))
            {
                let at = line.strip_prefix("leads ").and_then(|text| text.parse::<u128>().ok());
                late.extend(at.filter(|at| *at >= gained_ns));
            }
            assert_eq!(late, [], "it led after the other had gained leadership");
            assert!(other.store.authority().holds());
            other.store.close().await;
        }
    });
}

fn coordinator_process(etcd: &str) -> (ChildGuard, mpsc::Receiver<String>) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", ALONE, "--nocapture"]).env(COORDINATOR, etcd);
    let mut process = ChildGuard::spawn(command.stdout(Stdio::piped()));
    let output = BufReader::new(process.child().stdout.take().unwrap());
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in output.lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    (process, lines)
}
