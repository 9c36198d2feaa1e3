//! What operators ask and order.

use std::time::Duration;

use telltale_cluster::message::Order;
use telltale_cluster::rank::WorkersPerNode;
use telltale_control_plane::operator::Operator;
use telltale_control_plane::reach::{CoordinatorAddress, Credentials};
use telltale_control_plane::view::StatusView;
use telltale_harness::Scratch;
use telltale_wire::cluster::CallError;
use telltale_wire::cluster::message::{JobPhase, Mode, NodeBar, NodeState};
use tonic::Code;

use crate::coordinator::node::{Node, follow_all, job};
use crate::coordinator::running::{Running, plan, run, until};

fn refused<T: std::fmt::Debug>(answer: Result<T, CallError>) -> (Code, String) {
    match answer {
        Err(CallError::Refused(status)) => (status.code(), status.message().to_owned()),
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn orders_are_carried_out_or_refused_with_a_reason() {
    run(async {
        let scratch = Scratch::new();
        let running = Running::start(plan(scratch.path(), 2)).await;
        let mut client = running.client();
        let (code, text) = refused(client.restart().await);
        assert_eq!(code, Code::FailedPrecondition);
        assert!(text.contains("waits for its first nodes"), "{text}");
        let (code, text) = refused(client.drain("nobody").await);
        assert_eq!(code, Code::NotFound);
        assert!(text.contains("no node nobody is known"), "{text}");
        assert_eq!(refused(client.remove("a b").await).0, Code::InvalidArgument);
        assert_eq!(refused(client.incident(Some("9-9")).await).0, Code::NotFound);
        assert_eq!(refused(client.set_mode(Mode::Unspecified).await).0, Code::InvalidArgument);
        client.set_mode(Mode::Act).await.unwrap();
        let (mut nodes, epoch) = job(&mut client, &["a", "b"]).await;
        let mut spare = Node::register(&mut client, "c").await;
        assert_eq!(client.drain("b").await.unwrap().epoch, epoch.next().number());
        nodes[1].until_order("standby", |order| *order == Order::Standby).await;
        let drained = nodes.pop().unwrap();
        spare.prepare().await;
        nodes[0].prepare().await;
        assert_eq!(spare.commit().await.1, 1, "the spare has the rank of the drained");
        nodes[0].commit().await;
        nodes.push(spare);
        let ask = || async { running.client().status().await.unwrap() };
        let status = until("the job runs", ask, |status| status.runs).await;
        assert_eq!(status.mode, i32::from(Mode::Act));
        assert_eq!((status.active_nodes, status.barred_nodes), (2, 1));
        client.readmit("b").await.unwrap();
        assert_eq!(client.restart().await.unwrap().epoch, epoch.number() + 2);
        assert_eq!(follow_all(&mut nodes).await.number(), epoch.number() + 2);
        let status = until("the job runs", ask, |status| status.runs).await;
        assert_eq!((status.standby_nodes, status.counted_restarts), (1, 0));
        assert_eq!(status.phase, i32::from(JobPhase::Committed));
        drop(drained);
        running.end().await;
    });
}

#[test]
fn a_node_with_too_few_workers_is_no_standby() {
    run(async {
        let scratch = Scratch::new();
        let mut plan = plan(scratch.path(), 1);
        plan.job.workers = WorkersPerNode::new(4).unwrap();
        let running = Running::start(plan).await;
        let mut client = running.client();
        let _node = Node::register(&mut client, "a").await;
        let nodes = client.nodes().await.unwrap().nodes;
        assert_eq!((nodes[0].state(), nodes[0].bar()), (NodeState::Barred, NodeBar::TooFewWorkers));
        let status = client.status().await.unwrap();
        assert_eq!((status.standby_nodes, status.barred_nodes), (0, 1));
        assert_eq!(StatusView::from(&status).sentence(), "waits for nodes: 0 of 1 are there");
        running.end().await;
    });
}

/// A coordinator that stands still: the kernel takes connections for it, and none is answered.
#[test]
fn a_coordinator_that_stands_still_does_not_keep_an_order_from_the_next() {
    run(async {
        let scratch = Scratch::new();
        let running = Running::start(plan(scratch.path(), 2)).await;
        let still = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let addresses = [still.local_addr().unwrap(), running.grpc];
        let addresses: [CoordinatorAddress; 2] =
            addresses.map(|port| port.to_string().parse().unwrap());
        let timeout = Duration::from_secs(1);
        let operator = Operator::new(addresses.to_vec(), Credentials::default(), timeout);
        operator.ask(async |client| client.set_mode(Mode::Act).await).await.unwrap();
        let status = operator.ask(async |client| client.status().await).await.unwrap();
        assert_eq!(status.mode, i32::from(Mode::Act));
        let [first, _] = addresses;
        let alone = Operator::new(vec![first], Credentials::default(), timeout);
        let error = alone.ask(async |client| client.restart().await).await.unwrap_err();
        assert!(error.to_string().contains("did not answer within 1 s"), "{error}");
        running.end().await;
    });
}
