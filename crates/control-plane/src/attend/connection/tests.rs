//! The way to real coordinators, on loopback.

use std::future::Future;
use std::path::PathBuf;

use telltale_harness::Scratch;
use telltale_harness::authority::{Authority, Wish, write_private};
use telltale_server::listen::Address;
use telltale_wire::cluster::message::node_message::Body;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::*;
use crate::protocol::encode;
use crate::reach::ClientFiles;
use crate::server::{AccessFiles, Plan, ServeError, Server};
use crate::store::{JournalSettings, StoreLocation};
use telltale_cluster::detection::DetectionSettings;
use telltale_cluster::message::{AgentActivity, FromNode, FromNodeBody, Order, Registration};
use telltale_cluster::node::{HostAddress, Incarnation};
use telltale_cluster::policy::{Job, Policy};
use telltale_cluster::rank::WorkersPerNode;

/// How long anything in a test may take.
const TEST_TIMEOUT: Duration = Duration::from_secs(30);

#[test]
fn each_address_is_reported_once_until_one_is_heard() {
    let addresses = ["127.0.0.1:1", "127.0.0.1:2"].map(|text| text.parse().unwrap());
    let late = |address: &CoordinatorAddress| Lost::Late { address: address.clone() };
    let mut reported = Refrain::default();
    let news = |reported: &mut Refrain| {
        let mut is_news = |address: &&CoordinatorAddress| {
            reported.news(address, with_causes(&late(address))).is_some()
        };
        addresses.iter().filter(|address| is_news(address)).count()
    };
    assert_eq!([news(&mut reported), news(&mut reported), news(&mut reported)], [2, 0, 0]);
    assert!(reported.news(&addresses[0], "for another reason".to_owned()).is_some());
    reported.forget();
    assert_eq!(news(&mut reported), 2);
    for port in 1..=u16::MAX {
        let other = format!("127.0.0.1:{port}").parse().unwrap();
        let _ = reported.news(&other, "gone".to_owned());
    }
    assert!(reported.0.len() <= MAX_REPORTED_ADDRESSES);
}

/// A certificate of this name and its key, in two files.
fn sign(by: &Authority, name: &str, [certificate, key]: [&PathBuf; 2]) {
    let signed = by.sign(&Wish { names: &[name], ..Wish::default() });
    write_private(certificate, &signed.certificate);
    write_private(key, &signed.key);
}

/// A coordinator that runs until it is ordered to end.
struct Running {
    end: oneshot::Sender<()>,
    served: JoinHandle<Result<(), ServeError>>,
}

impl Running {
    fn start(scratch: &Scratch, port: &Address, access: AccessFiles) -> (Self, Address) {
        let workers = WorkersPerNode::new(1).unwrap();
        let plan = Plan {
            job: Job { name: "job".to_owned(), slots: 2, workers },
            policy: Policy::default(),
            detection: DetectionSettings::default(),
            store: StoreLocation::Journal(JournalSettings { directory: scratch.join("journal") }),
            grpc: vec![port.clone()],
            http: Vec::new(),
            names: Vec::new(),
            access,
            connections: 8,
            resets_other_job: false,
        };
        let server = Server::bind(plan).unwrap();
        let address = server.grpc_addresses().remove(0);
        let (end, ended) = oneshot::channel();
        let served = tokio::spawn(server.serve(async {
            let _ = ended.await;
        }));
        (Self { end, served }, address)
    }

    async fn end(self) {
        self.end.send(()).unwrap();
        self.served.await.unwrap().unwrap();
    }
}

/// A registration of node a, for this job or any.
fn registration(sequence: u64, job: &str) -> NodeMessage {
    let registration = Registration {
        address: HostAddress::new("127.0.0.1").unwrap(),
        workers: WorkersPerNode::new(1).unwrap(),
        activity: AgentActivity::Idle,
        known: None,
        planned_since: None,
    };
    let message = FromNode {
        node: NodeName::new("a").unwrap(),
        incarnation: Incarnation::new(1),
        sequence,
        body: FromNodeBody::Register(registration),
    };
    let mut message = encode::node_message(&message, None);
    if let Some(Body::Registration(registration)) = &mut message.body {
        registration.job = job.to_owned();
    }
    message
}

/// An agent's end of the way.
struct Node {
    brought: mpsc::Receiver<Brought>,
    way: Option<mpsc::Sender<NodeMessage>>,
    sequence: u64,
}

impl Node {
    async fn next(&mut self) -> Brought {
        let next = tokio::time::timeout(TEST_TIMEOUT, self.brought.recv()).await;
        next.expect("something is brought in time").unwrap()
    }

    /// Registers; says whether the way is still there.
    async fn say_registration(&mut self) -> bool {
        self.sequence += 1;
        let way = self.way.as_ref().expect("it is connected");
        way.send(registration(self.sequence, "")).await.is_ok()
    }

    /// Waits until it is welcomed, however often the way is lost before.
    async fn connect(&mut self) {
        loop {
            match self.next().await {
                Brought::Connected(way) => {
                    self.way = Some(way);
                    // A coordinator that does not lead yet takes the stream, and ends it.
                    self.say_registration().await;
                }
                Brought::Disconnected => {}
                Brought::Order(message) => {
                    assert_eq!(message.order, Order::Welcome);
                    return;
                }
            }
        }
    }

    /// Is welcomed once more, on the way that there is.
    async fn register(&mut self) {
        assert!(self.say_registration().await);
        match self.next().await {
            Brought::Order(message) => assert_eq!(message.order, Order::Welcome),
            other => panic!("{other:?}"),
        }
    }
}

/// Runs a test within a runtime of its own.
fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(test);
}

#[test]
fn a_renewed_certificate_leaves_the_connection_and_is_for_the_next() {
    run(async {
        let scratch = Scratch::new();
        let file = |name: &str| scratch.join(name);
        let (former, renewed) = (Authority::new("one"), Authority::new("one"));
        let [authority, callers] = [file("authority.pem"), file("callers.pem")];
        let server = [file("server.pem"), file("server.key")];
        let own = [file("own.pem"), file("own.key")];
        write_private(&authority, &former.pem());
        sign(&former, "127.0.0.1", server.each_ref());
        let access = AccessFiles {
            certificate: Some(server[0].clone()),
            key: Some(server[1].clone()),
            client_authority: Some(callers.clone()),
            ..AccessFiles::default()
        };
        let start = |port: &Address, of: &Authority| {
            write_private(&callers, &of.pem());
            Running::start(&scratch, port, access.clone())
        };
        sign(&former, "a", own.each_ref());
        let (running, address) = start(&"127.0.0.1:0".parse().unwrap(), &former);
        let identity = Some((own[0].clone(), own[1].clone()));
        let files = ClientFiles { authority: Some(authority), identity, token_file: None };
        let brought = keep(CoordinatorTarget {
            node: NodeName::new("a").unwrap(),
            addresses: vec![address.to_string().parse().unwrap()],
            keyring: Keyring::load(files).unwrap(),
        });
        let mut node = Node { brought, way: None, sequence: 0 };
        node.connect().await;
        // Connected clients stay so, on the certificate that it came with.
        sign(&renewed, "a", own.each_ref());
        node.register().await;
        running.end().await;
        assert!(matches!(node.next().await, Brought::Disconnected));
        // The next coordinator takes only what was renewed.
        let (running, _) = start(&address, &renewed);
        node.connect().await;
        running.end().await;
    });
}

#[test]
fn an_agent_of_another_job_is_reported_once_and_has_not_been_heard() {
    run(async {
        let scratch = Scratch::new();
        let port = "127.0.0.1:0".parse().unwrap();
        let (running, address) = Running::start(&scratch, &port, AccessFiles::default());
        let address: CoordinatorAddress = address.to_string().parse().unwrap();
        let (sender, mut brought) = mpsc::channel(MAX_WAITING_EVENTS);
        // As often as the coordinator takes it, on each connection.
        let registers = tokio::spawn(async move {
            while let Some(one) = brought.recv().await {
                let Brought::Connected(way) = one else { continue };
                for sequence in 1.. {
                    if way.send(registration(sequence, "other")).await.is_err() {
                        break;
                    }
                }
            }
        });
        let node = NodeName::new("a").unwrap();
        let keyring = Keyring::load(ClientFiles::default()).unwrap();
        let target = CoordinatorTarget { node, addresses: vec![address.clone()], keyring };
        let (reported, refused) = (Refrain::default(), Refrain::default());
        let mut keeping = Keeping { target, sender, reported, refused };
        let attended = async {
            // One that has just begun may not lead yet.
            while keeping.refused.0.is_empty() {
                assert!(!keeping.attend_from(address.clone()).await);
            }
            let before = keeping.refused.0.clone();
            assert!(!keeping.attend_from(address.clone()).await, "it was refused, and not heard");
            before
        };
        let before = tokio::time::timeout(TEST_TIMEOUT, attended).await.unwrap();
        let reason = &before[&address.to_string()];
        assert!(reason.contains("\"other\", and this coordinator runs \"job\""), "{reason}");
        // What was reported is remembered from one connection to the next.
        assert_eq!(keeping.refused.0, before);
        assert_eq!(keeping.refused.news(&address, reason.clone()), None);
        drop(keeping);
        registers.await.unwrap();
        running.end().await;
    });
}
