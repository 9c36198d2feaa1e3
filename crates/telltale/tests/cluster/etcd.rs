//! A training whose coordinators keep their decisions in etcd: members and leaders are killed, and the
//! workers do not notice.

use telltale_harness::{EtcdCluster, needs_etcd, wait_until};

use crate::cluster::job::TIMEOUT;
use crate::cluster::training::Training;

/// Which coordinator leads, once one does.
fn leader(training: &Training) -> usize {
    let mut leader = None;
    wait_until("a leader", TIMEOUT, || {
        leader = (0..2).find(|index| {
            let answer = training.job.cluster_of(&[*index], &["status", "--json"]);
            answer.status.code().is_some_and(|code| code < 2)
        });
        leader.is_some()
    });
    leader.expect("wait_until returns once there is one")
}

#[test]
fn members_and_leaders_that_are_killed_disturb_no_training() {
    let test = "cluster::etcd::members_and_leaders_that_are_killed";
    if !needs_etcd(test) {
        return;
    }
    let mut etcd = EtcdCluster::start(3);
    let Some(mut training) = Training::with_etcd(test, &etcd) else { return };
    training.job.set("STEPS", "100000");
    training.add_nodes(&[]);
    training.wait_checkpoint();
    training.job.add("spare", &[]);
    training.job.wait_connected("spare");

    let member = etcd.leader().expect("three members have a leader");
    etcd.member(member).kill();
    training.wait_step(training.steps() + 60);
    wait_until("somebody to lead", TIMEOUT, || training.job.json(&["status"])["runs"] == true);
    training.assert_undisturbed();

    let first = leader(&training);
    let other = 1 - first;
    // A client that asks a follower learns the leader.
    for order in [&[first, other][..], &[other, first], &[other]] {
        let answer = training.job.cluster_of(order, &["status"]);
        assert_eq!(answer.status.code(), Some(0), "{answer:?}");
    }
    training.job.kill_coordinator(first);
    wait_until("the other to lead", TIMEOUT, || leader(&training) == other);
    training.wait_step(training.steps() + 60);
    training.assert_undisturbed();

    training.job.kill_agent("b");
    training.resumed_from("spare", 2, 1);
    training.resumed_from("a", 2, 0);
}
