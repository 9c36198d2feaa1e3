//! Epochs, crashes, and coordinators that end and begin again.

use telltale_cluster::epoch::Epoch;
use telltale_cluster::message::{AgentActivity, Order};
use telltale_cluster::observation::{WorkerEnd, WorkerState};
use telltale_cluster::rank::WorkersPerNode;
use telltale_control_plane::server::{Plan, ServeError};
use telltale_control_plane::store::{EtcdPlan, EtcdSettings, LEAST_LEASE, StoreLocation};
use telltale_harness::{EtcdCluster, Scratch, needs_etcd};
use telltale_wire::cluster::message::{
    GetStatusResponse, IncidentStanding, JobPhase, NodeState, evidence, sign, worker_end,
};

use crate::coordinator::node::{Node, follow_all, job};
use crate::coordinator::running::{Running, plan, run, until};

#[test]
fn a_killed_worker_is_one_incident_that_is_explained_and_the_job_runs_again() {
    run(async {
        let scratch = Scratch::new();
        let running = Running::start(plan(scratch.path(), 2)).await;
        let mut client = running.client();
        let (mut nodes, epoch) = job(&mut client, &["a", "b"]).await;
        let spare = Node::register(&mut client, "c").await;
        let killed = WorkerState::Failed { end: WorkerEnd::Signal(9), age: Default::default() };
        let echo = WorkerState::Failed { end: WorkerEnd::Code(1), age: Default::default() };
        nodes[1].report(epoch, 1, killed).await;
        nodes[0].report(epoch, 0, echo).await;
        let next = follow_all(&mut nodes).await;
        assert_eq!(next, epoch.next());
        let incidents = client.incidents(None).await.unwrap().incidents;
        assert_eq!(incidents.len(), 1, "{incidents:?}");
        let ask = || async { running.client().incident(None).await.unwrap() };
        let found = until("the incident is explained", ask, |it| !it.verdicts.is_empty()).await;
        let incident = found.incident.unwrap();
        assert_eq!(incident.cause.as_deref(), Some("b"));
        assert!(incident.cause_is_certain && incident.evicted.is_empty());
        assert_eq!(incident.standing, i32::from(IncidentStanding::Answered));
        assert_eq!(incident.answered_by_epoch, next.number());
        let failed = incident.signs.iter().filter(|event| {
            matches!(&event.kind, Some(sign::Kind::WorkerFailed(failed)) if failed.node == "b")
        });
        assert_eq!(failed.count(), 1);
        let verdict = &found.verdicts[0];
        assert_eq!((verdict.suspects[0].node.as_str(), verdict.is_certain), ("b", true));
        let shows = |end| {
            verdict.evidence.iter().any(|one| match &one.kind {
                Some(evidence::Kind::Exit(exit)) => exit.end.unwrap().kind == Some(end),
                _ => false,
            })
        };
        assert!(shows(worker_end::Kind::Signal(9)), "{verdict:?}");
        let decisions = client.decisions(Some(2)).await.unwrap().decisions;
        assert_eq!(decisions[1].incident, Some(incident.id));
        assert!(decisions.iter().all(|one| one.stored_unix_ms > 1_600_000_000_000));
        drop(spare);
        running.end().await;
    });
}

#[test]
fn a_silent_node_is_replaced_by_the_spare_in_its_slot() {
    run(async {
        let scratch = Scratch::new();
        let running = Running::start(plan(scratch.path(), 3)).await;
        let mut client = running.client();
        let (mut nodes, epoch) = job(&mut client, &["a", "b", "c"]).await;
        let mut spare = Node::register(&mut client, "d").await;
        // b says nothing any more; the others report each second.
        let silent = nodes.remove(1);
        let (mut first, mut last) = (nodes.remove(0), nodes.remove(0));
        let start = std::time::Instant::now();
        let reporting = async {
            loop {
                first.report(epoch, 0, WorkerState::Running).await;
                last.report(epoch, 2, WorkerState::Running).await;
                spare.say_registration(AgentActivity::Idle).await;
                let incidents = running.metric("incidents_total").await;
                if incidents > 0 && client.status().await.unwrap().epoch > epoch.number() {
                    break;
                }
                tokio::time::sleep(std::time::Duration::from_millis(500)).await;
            }
        };
        crate::coordinator::running::within("the silent node is noticed", reporting).await;
        let decided = start.elapsed();
        assert!(decided.as_secs_f64() < 8.0, "decided after {decided:?}");
        let mut now = [first, spare, last];
        let next = follow_all(&mut now).await;
        assert_eq!(next, epoch.next());
        let map = client.rank_map().await.unwrap();
        let holders: Vec<_> = map.holders.iter().map(|one| (one.slot, one.node.as_str())).collect();
        assert_eq!(holders, [(0, "a"), (1, "d"), (2, "c")]);
        assert_eq!(map.holders[1].address, "127.0.0.1");
        drop(silent);
        running.end().await;
    });
}

#[test]
fn a_coordinator_that_ends_and_begins_again_disturbs_nobody() {
    run(async {
        let scratch = Scratch::new();
        let running = Running::start(plan(scratch.path(), 2)).await;
        let mut client = running.client();
        let (nodes, epoch) = job(&mut client, &["a", "b"]).await;
        let before = client.rank_map().await.unwrap();
        client.drain("b").await.unwrap();
        running.end().await;
        drop(nodes);
        let again = Running::start(plan(scratch.path(), 2)).await;
        let mut client = again.client();
        let mut attending = Vec::new();
        for (name, rank) in [("a", 0), ("b", 1)] {
            let mut node = Node::attend(&mut client, name).await;
            node.say_registration(AgentActivity::Committed(epoch)).await;
            // Nothing but a welcome: it goes on with what it does.
            let reported = node.until_order("any order", |_| true).await;
            assert_eq!((reported.order, reported.epoch), (Order::Welcome, epoch));
            node.report(epoch, rank, WorkerState::Running).await;
            attending.push(node);
        }
        let ask = || async { again.client().status().await.unwrap() };
        let status = until("the job runs", ask, |status| status.runs).await;
        assert_eq!((status.epoch, status.term), (epoch.number(), 2));
        assert_eq!(status.phase, i32::from(JobPhase::Committed));
        assert_eq!(client.rank_map().await.unwrap().digest, before.digest);
        let nodes = client.nodes().await.unwrap().nodes;
        assert_eq!(nodes[1].state, i32::from(NodeState::Barred), "what was ordered is kept");
        assert_eq!(nodes[0].state, i32::from(NodeState::Active));
        assert!(client.decisions(None).await.unwrap().decisions.len() >= 3);
        again.end().await;
    });
}

#[test]
fn another_job_than_the_stored_one_is_reported_and_left_alone_until_it_is_reset() {
    run(async {
        let scratch = Scratch::new();
        let running = Running::start(plan(scratch.path(), 2)).await;
        let (nodes, epoch) = job(&mut running.client(), &["a", "b"]).await;
        running.end().await;
        drop(nodes);
        let two_workers = |resets_other_job| {
            let mut asked = Plan { resets_other_job, ..plan(scratch.path(), 2) };
            asked.job.workers = WorkersPerNode::new(2).unwrap();
            asked
        };
        let failure = Running::begin(two_workers(false)).failure().await;
        assert!(failure.to_string().contains("nothing was changed"), "{failure}");
        let ServeError::OtherJob { source, .. } = failure else { panic!("{failure}") };
        for words in ["2 nodes of 1 workers is stored, in epoch 1", "--workers 1", "--reset-job"] {
            assert!(source.to_string().contains(words), "{source}");
        }
        // What is stored is what it was.
        let again = Running::start(plan(scratch.path(), 2)).await;
        assert_eq!(again.client().status().await.unwrap().epoch, epoch.number());
        again.end().await;
        let reset = Running::start(two_workers(true)).await;
        let ask = || async { reset.client().status().await.unwrap() };
        let forming = |status: &GetStatusResponse| status.phase == i32::from(JobPhase::Forming);
        let status = until("the job forms anew", ask, forming).await;
        assert_eq!((status.workers_per_node, status.epoch), (2, epoch.number()));
        // Nodes that still run an earlier epoch are stopped.
        let mut node = Node::attend(&mut reset.client(), "a").await;
        node.say_registration(AgentActivity::Committed(epoch)).await;
        node.until_order("standby", |order| *order == Order::Standby).await;
        reset.end().await;
    });
}

#[test]
fn a_standby_that_could_not_go_on_with_the_job_reports_it_at_its_start() {
    if !needs_etcd(
        "coordinator::a_standby_that_could_not_go_on_with_the_job_reports_it_at_its_start",
    ) {
        return;
    }
    let etcd = EtcdCluster::start(1);
    let scratch = Scratch::new();
    let asked = |nodes, resets_other_job| {
        let settings = EtcdPlan {
            members: etcd.addresses(),
            prefix: "telltale/job".to_owned(),
            address: "localhost:1".to_owned(),
            lease: LEAST_LEASE,
            tls: None,
        };
        let store = StoreLocation::Etcd(EtcdSettings::new(&settings).unwrap());
        Plan { store, resets_other_job, ..plan(scratch.path(), nodes) }
    };
    run(async {
        let leads = Running::start(asked(2, false)).await;
        let (nodes, epoch) = job(&mut leads.client(), &["a", "b"]).await;
        // Not even one that may reset it ends what another leads.
        for resets in [false, true] {
            let failure = Running::begin(asked(1, resets)).failure().await;
            assert!(matches!(failure, ServeError::OtherJob { .. }), "{failure}");
        }
        let status = leads.client().status().await.unwrap();
        assert_eq!((status.epoch, status.runs), (epoch.number(), true));
        drop(nodes);
        leads.end().await;
    });
}

#[test]
fn many_nodes_may_share_a_stream() {
    run(async {
        let scratch = Scratch::new();
        let running = Running::start(plan(scratch.path(), 2)).await;
        let mut client = running.client();
        let mut shared = Node::register(&mut client, "a").await;
        shared.name = telltale_cluster::node::NodeName::new("b").unwrap();
        shared.say_registration(AgentActivity::Idle).await;
        // Both are sent on the one stream, each by its name.
        let mut reported = Vec::new();
        while reported.len() < 3 {
            let Ok(telltale_control_plane::protocol::decode::DecodedOrder::Order { node, message }) =
                shared.reported().await
            else {
                panic!("no order")
            };
            if message.epoch != Epoch::NONE_RAN || message.order == Order::Welcome {
                reported.push((node.as_str().to_owned(), message.order == Order::Welcome));
            }
        }
        reported.sort();
        let expected = [("a".to_owned(), false), ("b".to_owned(), false), ("b".to_owned(), true)];
        assert_eq!(reported, expected);
        assert_eq!(running.metric("streams").await, 1);
        running.end().await;
    });
}
