//! Coordinators are killed and stopped, and what a job must come to then.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use telltale_harness::{cargo_bin, needs_etcd};

#[path = "../benches/numbers/stage.rs"]
mod stage;

use stage::{Keeping, Stage};

/// What a new leader must have done by then, by the design.
const SERVING: Duration = Duration::from_secs(5);
const EVICTING: Duration = Duration::from_secs(10);
/// How long the job is watched after something that must not disturb it: longer than it takes to
/// evict a node that is not heard.
const WATCHED: Duration = Duration::from_secs(8);

fn stage(keeping: &Keeping, coordinators: usize) -> Stage {
    Stage::start(&cargo_bin("telltale"), keeping, coordinators, 4, 3)
}

fn leader(stage: &Stage) -> usize {
    let mut leader = None;
    stage.until("a leader", |stage| {
        leader = stage.leader();
        leader.is_some()
    });
    leader.expect("until returns once there is one")
}

fn is_undisturbed(stage: &Stage, before: &[stage::Start], while_: Duration) {
    stage.throughout(while_, "the job undisturbed", |stage| {
        let status = stage.status();
        assert_eq!(stage.starts(), before, "no worker is started:\n{}", stage.log());
        status.is_none_or(|status| status.counted_evictions == 0)
    });
}

#[test]
fn a_leader_is_killed_and_the_job_does_not_notice() {
    if !needs_etcd("failover::a_leader_is_killed_and_the_job_does_not_notice") {
        return;
    }
    let mut stage = stage(&Keeping::Etcd(3), 2);
    for _ in 0..2 {
        let before = stage.starts();
        let leader = leader(&stage);
        let term = stage.status().expect("somebody leads").term;
        let killed = Instant::now();
        stage.coordinators[leader].kill();
        stage.until("another leader", |stage| stage.leads(1 - leader).is_some());
        stage.until("all nodes to be heard", |stage| stage.registered() == 4);
        let took = killed.elapsed();
        println!("another coordinator serves all nodes after {took:?}");
        assert!(took <= SERVING, "{took:?}");
        assert!(stage.leads(1 - leader).is_some_and(|status| status.term > term));
        is_undisturbed(&stage, &before, WATCHED);
        stage.restart_coordinator(leader);
    }
}

#[test]
fn a_leader_is_killed_with_a_node_and_the_next_one_replaces_it() {
    if !needs_etcd("failover::a_leader_is_killed_with_a_node_and_the_next_one_replaces_it") {
        return;
    }
    let mut stage = stage(&Keeping::Etcd(3), 2);
    let leader = leader(&stage);
    let hit = (0..4).find(|node| stage.slot_of(&Stage::node(*node)).is_some());
    let hit = hit.expect("somebody holds a slot");
    let killed = Instant::now();
    stage.coordinators[leader].kill();
    stage.agents[hit].kill();
    stage.until("the node to be replaced", |stage| {
        stage.slot_of(&Stage::node(hit)).is_none() && stage.status().is_some_and(|it| it.runs)
    });
    let took = killed.elapsed();
    println!("a node that was killed with the leader is replaced after {took:?}");
    assert!(took <= EVICTING, "{took:?}");
    // A worker writes down its start a moment after its agent reports it.
    stage.until("each rank of the last epoch to have started", |stage| {
        let starts = stage.starts();
        let last = starts.iter().map(|start| start.epoch).max();
        let of_last = starts.iter().filter(|one| Some(one.epoch) == last);
        of_last.map(|one| one.rank).collect::<BTreeSet<u32>>() == BTreeSet::from([0, 1, 2])
    });
    let before = stage.starts();
    stage.restart_agent(hit);
    stage.restart_coordinator(leader);
    stage.until("the node to be back as a spare", |stage| stage.registered() == 4);
    assert_eq!(stage.starts(), before, "nobody moves for it");
}

#[test]
fn a_leader_that_stood_still_wakes_and_commands_nobody() {
    if !needs_etcd("failover::a_leader_that_stood_still_wakes_and_commands_nobody") {
        return;
    }
    let mut stage = stage(&Keeping::Etcd(1), 2);
    let before = stage.starts();
    let leader = leader(&stage);
    stage.coordinators[leader].pause();
    stage.until("another leader", |stage| stage.leads(1 - leader).is_some());
    stage.until("all nodes to be heard", |stage| stage.registered() == 4);
    stage.coordinators[leader].resume();
    stage.throughout(WATCHED, "one leader", |stage| {
        stage.leads(leader).is_none() && stage.leads(1 - leader).is_some()
    });
    assert_eq!(stage.starts(), before);
}

#[test]
fn a_member_of_etcd_is_killed_and_the_job_does_not_notice() {
    if !needs_etcd("failover::a_member_of_etcd_is_killed_and_the_job_does_not_notice") {
        return;
    }
    let mut stage = stage(&Keeping::Etcd(3), 2);
    let before = stage.starts();
    let etcd = stage.etcd.as_mut().expect("it has one");
    let leads = etcd.leader().expect("three members have a leader");
    etcd.member(leads).kill();
    stage.until("a leader", |stage| stage.leader().is_some());
    is_undisturbed(&stage, &before, WATCHED);
    stage.until("all nodes to be heard", |stage| stage.registered() == 4);
}

#[test]
fn a_coordinator_with_a_journal_is_killed_and_comes_back_to_the_same_job() {
    let mut stage = stage(&Keeping::Journal, 1);
    let before = stage.starts();
    let epoch = stage.status().expect("it leads").epoch;
    stage.coordinators[0].kill();
    stage.restart_coordinator(0);
    stage.until("the job to be known again", |stage| stage.registered() == 4);
    is_undisturbed(&stage, &before, WATCHED);
    let status = stage.status().expect("it leads");
    assert!(status.runs && status.epoch == epoch, "{status:?}");
    stage.agents[0].kill();
    stage.until("the node to be replaced", |stage| {
        stage.slot_of(&Stage::node(0)).is_none() && stage.status().is_some_and(|it| it.runs)
    });
}
