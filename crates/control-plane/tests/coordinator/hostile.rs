//! Messages that are none, too large, out of range, stale or replayed: refused with a reason, counted,
//! and nothing is lost by them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use prost::Message as _;
use telltale_cluster::epoch::Epoch;
use telltale_cluster::message::{Acknowledgement, AgentActivity, FromNodeBody, Order, OrderStep};
use telltale_cluster::observation::WorkerState;
use telltale_control_plane::protocol::decode::{DecodedOrder, coordinator_message};
use telltale_harness::Scratch;
use telltale_wire::cluster::message::{
    self, ActivityKind, CoordinatorMessage, EdgeWindow, NodeMessage, Registration, Report, Worker,
    node_message::Body,
};
use telltale_wire::cluster::{CallError, MAX_NODE_MESSAGE_BYTES, Payload, RawCodec, SERVICE};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_stream::StreamExt as _;
use tonic::Code;

use crate::coordinator::node::{LIFE, Node, job};
use crate::coordinator::running::{Running, plan, run, until, within};

fn reported(body: Option<Body>) -> NodeMessage {
    NodeMessage { node: "a".to_owned(), incarnation: LIFE, sequence: u64::MAX / 2, body }
}

fn report(report: Report) -> NodeMessage {
    reported(Some(Body::Report(report)))
}

#[test]
fn what_cannot_be_is_refused_with_a_reason_and_the_job_runs_on() {
    run(async {
        let scratch = Scratch::new();
        let running = Running::start(plan(scratch.path(), 2)).await;
        let mut client = running.client();
        let (mut nodes, epoch) = job(&mut client, &["a", "b"]).await;
        let committed = Report { activity: None, ..Report::default() };
        let cases = [
            (reported(None), "value", "what the node reports is missing"),
            (report(committed.clone()), "value", "what the agent is doing is missing"),
            (
                reported(Some(Body::Registration(Registration {
                    address: "a b".to_owned(),
                    ..Registration::default()
                }))),
                "value",
                "has a character ' '",
            ),
            (
                reported(Some(Body::Registration(Registration {
                    address: "127.0.0.1".to_owned(),
                    workers: 1,
                    activity: Some(message::Activity { kind: ActivityKind::Idle.into(), epoch: 0 }),
                    known_job: 7,
                    known_epoch: u64::MAX,
                    ..Registration::default()
                }))),
                "value",
                "an epoch is 18446744073709551615, which is not in 0 to 9007199254740991",
            ),
            (
                NodeMessage { node: String::new(), ..report(committed.clone()) },
                "value",
                "a node's name is empty",
            ),
            (
                NodeMessage { node: "n".repeat(254), ..report(committed.clone()) },
                "too_large",
                "node name has more than 253 bytes",
            ),
            (
                report(Report { workers: vec![Worker::default(); 1025], ..committed.clone() }),
                "too_large",
                "more than 1024 of workers",
            ),
            (
                report(Report { edges: vec![EdgeWindow::default(); 8193], ..committed }),
                "too_large",
                "more than 8192 of windows of transfers",
            ),
        ];
        for (bad, reason, words) in cases {
            let before = running.metrics("refused_total").await[reason];
            nodes[0].send(bad).await;
            let reported = nodes[0].refusal().await;
            assert!(reported.contains(words), "{reported:?} does not say {words:?}");
            let after = running.metrics("refused_total").await[reason];
            assert_eq!(after, before + 1, "{words}");
        }
        // The stream that they came on still works, and so does the job.
        nodes[0].say_registration(AgentActivity::Committed(epoch)).await;
        nodes[0].until_order("welcome", |_| true).await;
        let status = client.status().await.unwrap();
        assert_eq!((status.epoch, status.runs), (epoch.number(), true));
        assert_eq!(running.metric("incidents_total").await, 0);
        running.end().await;
    });
}

#[test]
fn bytes_that_are_no_message_are_refused_and_the_next_message_is_taken() {
    run(async {
        let scratch = Scratch::new();
        let running = Running::start(plan(scratch.path(), 2)).await;
        let (_nodes, epoch) = job(&mut running.client(), &["a", "b"]).await;
        let registers = NodeMessage {
            node: "c".to_owned(),
            ..reported(Some(Body::Registration(Registration {
                address: "127.0.0.1".to_owned(),
                workers: 1,
                activity: Some(message::Activity { kind: ActivityKind::Idle.into(), epoch: 0 }),
                ..Registration::default()
            })))
        };
        // No tag, a field that is longer than all, a name that is no text, and half a message.
        let whole = report(Report { workers: vec![Worker::default(); 9], ..Report::default() });
        let half = whole.encode_to_vec()[..24].to_vec();
        let broken = [vec![0; 9], vec![0x0a, 0x7f, 0x61], vec![0x0a, 0x02, 0xff, 0xfe], half];
        let sent: Vec<Payload> = (broken.iter().cloned().chain([registers.encode_to_vec()]))
            .map(|own| Payload { own, ..Payload::default() })
            .collect();
        let mut grpc = tonic::client::Grpc::new(running.channel());
        within("the coordinator is reached", grpc.ready()).await.unwrap();
        let path = format!("/{SERVICE}/Attend").parse().unwrap();
        // The stream goes on, as agents' streams do.
        let sent = tokio_stream::iter(sent).chain(tokio_stream::pending());
        let answer = grpc.streaming(tonic::Request::new(sent), path, RawCodec).await.unwrap();
        let mut answers = answer.into_inner();
        for bytes in &broken {
            let reported = within("a refusal", answers.message()).await.unwrap().unwrap();
            let reported =
                coordinator_message(CoordinatorMessage::decode(reported).unwrap()).unwrap();
            let DecodedOrder::Refused { reason, .. } = reported else {
                panic!("{bytes:?}: {reported:?}")
            };
            assert!(reason.starts_with("not a message of the protocol"), "{bytes:?}: {reason}");
        }
        assert_eq!(running.metrics("refused_total").await["malformed"], 4);
        let mut client = running.client();
        let known = || async { running.client().nodes().await.unwrap().nodes.len() };
        until("the one that was whole is taken", known, |known| *known == 3).await;
        let status = client.status().await.unwrap();
        assert_eq!((status.epoch, status.runs), (epoch.number(), true));
        running.end().await;
    });
}

/// Says this to a port and waits until it has heard the end.
async fn shout(port: SocketAddr, words: &[u8]) {
    let mut stream = tokio::net::TcpStream::connect(port).await.unwrap();
    // A port that has heard enough may be gone before everything is said.
    let _ = stream.write_all(words).await;
    let _ = within("the connection ends", stream.read_to_end(&mut Vec::new())).await;
}

#[test]
fn what_is_not_the_protocol_of_a_port_is_counted() {
    run(async {
        let scratch = Scratch::new();
        let running = Running::start(plan(scratch.path(), 2)).await;
        let before = running.metrics("refused_total").await;
        let head = [b"GET / HTTP/1.1\r\nX: ".as_slice(), &[b'x'; 64 << 10], b"\r\n\r\n"].concat();
        for (port, words) in [
            (running.grpc, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n".as_slice()),
            (running.grpc, b"PRI * HTTP/1.0\r\n\r\nSM\r\n\r\n"),
            (
                running.grpc,
                &[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3, 0x5a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            ),
            (running.http, b"\x00\xff\xfe nothing of the kind\r\n\r\n"),
            (running.http, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
            (running.http, &head),
        ] {
            shout(port, words).await;
        }
        let counted = || async {
            let now = running.metrics("refused_total").await;
            ["garbage", "too_large"].map(|one| now[one] - before[one])
        };
        until("each is counted", counted, |counted| *counted == [5, 1]).await;
        // A well-behaved client is none of them.
        let mut client = running.client();
        assert_eq!(client.status().await.unwrap().job, "job");
        assert_eq!(counted().await, [5, 1]);
        running.end().await;
    });
}

#[test]
fn a_message_that_is_too_long_ends_its_stream_alone() {
    run(async {
        let scratch = Scratch::new();
        let running = Running::start(plan(scratch.path(), 2)).await;
        let mut client = running.client();
        let (mut nodes, epoch) = job(&mut client, &["a", "b"]).await;
        let mut stranger = Node::attend(&mut client, "stranger").await;
        let node = "n".repeat(MAX_NODE_MESSAGE_BYTES + 1);
        stranger.send(NodeMessage { node, ..reported(None) }).await;
        match stranger.reported().await {
            Err(CallError::Refused(status)) => {
                assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
                assert!(status.message().contains("4194304 bytes"), "{status}");
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(running.metrics("refused_total").await["too_large"], 1);
        // Of many messages that are none, the stream ends too, so that errors are not sent for ever.
        let mut liar = Node::attend(&mut client, "liar").await;
        for _ in 0..65 {
            liar.send(reported(None)).await;
        }
        let ended = loop {
            match liar.reported().await {
                Ok(_) => {}
                Err(error) => break error.to_string(),
            }
        };
        assert!(ended.contains("too many messages that are not taken"), "{ended}");
        assert_eq!(running.metrics("refused_total").await["value"], 65);
        nodes[1].report(epoch, 1, WorkerState::Running).await;
        assert!(client.status().await.unwrap().runs);
        running.end().await;
    });
}

#[test]
fn what_is_stale_or_replayed_is_counted_and_changes_nothing() {
    run(async {
        let scratch = Scratch::new();
        let running = Running::start(plan(scratch.path(), 2)).await;
        let mut client = running.client();
        let (mut nodes, epoch) = job(&mut client, &["a", "b"]).await;
        let before = running.metrics("stale_messages_total").await;
        // Acknowledgements once more, of this epoch and of others. Each is answered with the reason.
        for (epoch, step) in [
            (epoch, OrderStep::Prepared { port: None }),
            (Epoch::new(99), OrderStep::Started),
            (Epoch::NONE_RAN, OrderStep::Stopping),
        ] {
            nodes[0].acknowledge(epoch, step).await;
            let reported = nodes[0].refusal().await;
            assert!(reported.contains("another epoch or phase"), "{reported}");
        }
        nodes[0].acknowledge(epoch, OrderStep::Started).await;
        let again = Acknowledgement { epoch, step: OrderStep::Started };
        nodes[0].say_again(FromNodeBody::Acknowledge(again)).await;
        let reported = nodes[0].refusal().await;
        assert!(reported.contains("it comes again"), "{reported}");
        // A worker's failure, reported for another rank, and of a rank that the job does not have.
        for rank in [0, 67_108_863] {
            nodes[1].report(epoch, rank, WorkerState::Stopped).await;
            let reported = nodes[1].refusal().await;
            assert!(reported.contains("other ranks"), "{reported}");
        }
        let stale = || running.metrics("stale_messages_total");
        let all = |now: &BTreeMap<String, u64>| {
            ["ranks", "epoch", "sequence"].map(|one| now[one] - before[one]) == [2, 3, 1]
        };
        until("all of it is counted", stale, all).await;
        let status = client.status().await.unwrap();
        assert_eq!((status.epoch, status.runs), (epoch.number(), true), "{status:?}");
        assert_eq!(running.metric("incidents_total").await, 0);
        running.end().await;
    });
}

#[test]
fn an_agent_whose_clock_went_back_an_hour_is_reported_and_waits_until_its_former_life_is_silent() {
    run(async {
        let scratch = Scratch::new();
        let running = Running::start(plan(scratch.path(), 2)).await;
        let mut client = running.client();
        let first = Node::register(&mut client, "a").await;
        let mut second = Node::attend(&mut client, "a").await;
        second.life = first.life - 3_600_000;
        second.say_registration(AgentActivity::Idle).await;
        let reported = second.refusal().await;
        assert!(reported.contains("clock was set back"), "{reported}");
        assert_eq!(running.metrics("stale_messages_total").await["incarnation"], 1);
        drop(first);
        // It goes on registering, as agents do.
        let welcomed = async {
            loop {
                second.say_registration(AgentActivity::Idle).await;
                match second.reported().await.unwrap() {
                    DecodedOrder::Order { message, .. } if message.order == Order::Welcome => {
                        return;
                    }
                    _ => tokio::time::sleep(Duration::from_millis(200)).await,
                }
            }
        };
        within("the later life is silent", welcomed).await;
        running.end().await;
    });
}

#[test]
fn a_node_that_is_heard_is_not_displaced_by_who_takes_its_name() {
    run(async {
        let scratch = Scratch::new();
        let running = Running::start(plan(scratch.path(), 2)).await;
        let mut client = running.client();
        let (mut nodes, epoch) = job(&mut client, &["a", "b"]).await;
        nodes[0].instance = 7;
        nodes[0].say_registration(AgentActivity::Committed(epoch)).await;
        nodes[0].until_order("welcome", |order| *order == Order::Welcome).await;
        // A later life, the same life, and one that guesses; and a report without a registration.
        for (life, instance) in [(LIFE + 1, 9), (LIFE + 1, 7), (LIFE, 0), (LIFE, 8)] {
            let mut other = Node::attend(&mut client, "a").await;
            (other.life, other.instance) = (life, instance);
            other.say_registration(AgentActivity::Idle).await;
            let reported = other.refusal().await;
            assert!(reported.contains("heard on another connection"), "{reported}");
            other.report(epoch, 0, WorkerState::Stopped).await;
            assert!(other.refusal().await.contains("another --node"));
        }
        assert_eq!(running.metrics("refused_total").await["claimed"], 8);
        // What is for the node still comes to it, and nothing has happened to the job.
        nodes[0].say_registration(AgentActivity::Committed(epoch)).await;
        nodes[0].until_order("welcome", |order| *order == Order::Welcome).await;
        let status = client.status().await.unwrap();
        assert_eq!((status.epoch, status.runs), (epoch.number(), true));
        assert_eq!(running.metric("incidents_total").await, 0);
        // The agent itself may come by another connection at once, whatever became of the first.
        let mut again = Node::attend(&mut client, "a").await;
        (again.instance, again.sequence) = (7, nodes[0].sequence);
        again.say_registration(AgentActivity::Committed(epoch)).await;
        again.until_order("welcome", |order| *order == Order::Welcome).await;
        // And one that is restarted, once the connection of its former life is gone.
        drop((nodes.remove(0), again));
        let gone = || running.metric("streams");
        until("the former streams have ended", gone, |streams| *streams <= 1).await;
        let mut new = Node::attend(&mut client, "a").await;
        (new.life, new.instance) = (LIFE + 1, 9);
        new.say_registration(AgentActivity::Idle).await;
        new.until_order("welcome", |order| *order == Order::Welcome).await;
        running.end().await;
    });
}

#[test]
fn a_node_that_is_for_another_job_is_refused_with_both_names() {
    run(async {
        let scratch = Scratch::new();
        let running = Running::start(plan(scratch.path(), 2)).await;
        let mut node = Node::attend(&mut running.client(), "a").await;
        node.job = "other";
        node.say_registration(AgentActivity::Idle).await;
        let reported = node.refusal().await;
        assert!(
            reported.contains(r#"for the job "other", and this coordinator runs "job""#),
            "{reported}"
        );
        assert_eq!(running.metrics("refused_total").await["job"], 1);
        node.job = "a\nb";
        node.say_registration(AgentActivity::Idle).await;
        assert!(node.refusal().await.contains("no control characters"));
        for job in ["job", ""] {
            node.job = job;
            node.say_registration(AgentActivity::Idle).await;
            node.until_order("welcome", |order| *order == Order::Welcome).await;
        }
        running.end().await;
    });
}
