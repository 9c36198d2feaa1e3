//! Tokens and certificates: who gets in, who does not and why, and that it is counted.

use std::net::SocketAddr;
use std::ops::Range;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use telltale_cluster::message::{AgentActivity, Order};
use telltale_control_plane::protocol::decode::DecodedOrder;
use telltale_control_plane::server::{AccessError, AccessFiles, Plan, ServeError, Server};
use telltale_harness::authority::{Authority, Signed, Wish, write_private};
use telltale_harness::{Scratch, as_user, needs_root};
use telltale_server::listen::Address;
use telltale_wire::cluster::message::Mode;
use telltale_wire::cluster::{CallError, Client};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tonic::Code;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

use crate::coordinator::node::Node;
use crate::coordinator::running::{Running, get, get_at, plan, run, until, within};

const TOKEN: &str = "a-token-of-the-tests";
const HOUR: i64 = 3600;

pub(crate) fn written(scratch: &Scratch, name: &str, text: &str) -> PathBuf {
    let path = scratch.join(name);
    write_private(&path, text);
    path
}

#[test]
fn a_call_without_the_token_is_refused_and_counted() {
    run(async {
        let scratch = Scratch::new();
        let token = Some(written(&scratch, "token", TOKEN));
        let access = AccessFiles { token, ..AccessFiles::default() };
        let running = Running::start(Plan { access, ..plan(scratch.path(), 2) }).await;
        for wrong in [None, Some("a-token-of-the-testS"), Some("another-token-altogether")] {
            let mut client = match wrong {
                None => running.client(),
                Some(token) => running.client().with_token(token).unwrap(),
            };
            match client.status().await {
                Err(CallError::Refused(status)) => {
                    assert_eq!(status.code(), Code::Unauthenticated, "{status}");
                    assert!(status.message().contains("token"), "{status}");
                }
                other => panic!("{other:?}"),
            }
            // Nor does an agent get in.
            let attended = client.attend(tokio_stream::empty()).await;
            assert!(matches!(attended, Err(CallError::Refused(_))), "{attended:?}");
        }
        let mut client = running.client().with_token(TOKEN).unwrap();
        assert_eq!(client.status().await.unwrap().job, "job");
        assert_eq!(get(running.http, "/metrics", None).await.0, 401);
        assert_eq!(get(running.http, "/metrics", Some("Bearer wrong")).await.0, 401);
        assert_eq!(get(running.http, "/healthz", None).await.0, 200);
        let bearer = format!("Bearer {TOKEN}");
        let (status, text) = get(running.http, "/metrics", Some(&bearer)).await;
        assert_eq!(status, 200);
        let counted = "telltale_coordinator_refused_total{reason=\"token\"} 8\n";
        assert!(text.contains(counted), "{text}");
        running.end().await;
    });
}

/// Whether a client without the token can command the job and register as a node.
async fn lets_strangers_in(running: &Running) -> bool {
    let mut client = running.client();
    let commands = client.set_mode(Mode::Observe).await.is_ok();
    commands && client.attend(tokio_stream::empty()).await.is_ok()
}

/// The original does not authenticate. The check that finds that is one that can fail.
#[test]
fn strangers_get_in_only_where_nothing_is_asked_for() {
    run(async {
        for asked in [true, false] {
            let scratch = Scratch::new();
            let token = asked.then(|| written(&scratch, "token", TOKEN));
            let access = AccessFiles { token, ..AccessFiles::default() };
            let running = Running::start(Plan { access, ..plan(scratch.path(), 2) }).await;
            assert_eq!(lets_strangers_in(&running).await, !asked);
            running.end().await;
        }
    });
}

#[test]
fn another_user_of_this_machine_is_reported_nothing_without_a_token() {
    if !needs_root(
        "cluster::trust::another_user_of_this_machine_is_reported_nothing_without_a_token",
    ) {
        return;
    }
    run(async {
        let scratch = Scratch::new();
        let running = Running::start(plan(scratch.path(), 2)).await;
        let address = running.http;
        let ask = move |path: &str, user: u32| {
            let script = format!(
                "exec 3<>/dev/tcp/{}/{}; printf 'GET {path} HTTP/1.1\\r\\nHost: {address}\\r\\n\
                 Connection: close\\r\\n\\r\\n' >&3; cat <&3",
                address.ip(),
                address.port()
            );
            let mut command = Command::new("bash");
            command.args(["-c", &script]);
            let asked = tokio::task::spawn_blocking(move || as_user(user, user, command).output());
            async move { String::from_utf8(asked.await.unwrap().unwrap().stdout).unwrap() }
        };
        for path in ["/metrics", "/api/v1/status"] {
            let reported = ask(path, 61_053).await;
            assert!(reported.starts_with("HTTP/1.1 403 "), "{reported}");
            assert!(reported.contains("--token-file"), "{reported}");
        }
        assert!(ask("/healthz", 61_053).await.starts_with("HTTP/1.1 200 "));
        let reported = ask("/metrics", 0).await;
        assert!(reported.starts_with("HTTP/1.1 200 "), "{reported}");
        assert!(reported.contains("refused_total{reason=\"stranger\"} 2\n"), "{reported}");
        running.end().await;
    });
}

/// Who signs in these tests: all go by one name.
pub(crate) fn authority() -> Authority {
    Authority::new("one")
}

/// A certificate that is good from and until so many seconds from now.
fn valid(by: &Authority, valid: Range<i64>) -> Signed {
    by.sign(&Wish { valid, ..Wish::default() })
}

fn client(running: &Running, ours: &Authority, identity: Option<&Signed>) -> Client {
    let mut tls = ClientTlsConfig::new()
        .ca_certificate(Certificate::from_pem(ours.pem()))
        .domain_name("localhost");
    if let Some(Signed { certificate, key }) = identity {
        tls = tls.identity(Identity::from_pem(certificate, key));
    }
    let endpoint = Endpoint::from_shared(format!("https://{}", running.grpc)).unwrap();
    let channel: Channel = endpoint.tls_config(tls).unwrap().connect_lazy();
    Client::new(channel)
}

/// What the coordinator tells a caller whose certificate it does not take, in words of TLS.
async fn alert(at: SocketAddr, ours: &Authority, identity: Option<&Signed>) -> String {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ours.pem().as_bytes()).unwrap()).unwrap();
    let settings = ClientConfig::builder().with_root_certificates(roots);
    let settings = match identity {
        Some(Signed { certificate, key }) => {
            let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
            settings.with_client_auth_cert(vec![certificate], key).unwrap()
        }
        None => settings.with_no_client_auth(),
    };
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TcpStream::connect(at).await.unwrap();
    let connector = TlsConnector::from(Arc::new(settings));
    let mut stream = within("a handshake", connector.connect(name, stream)).await.unwrap();
    // In TLS 1.3 the client is done first, and the alert is what it reads next.
    let read = within("an alert", stream.read_u8()).await;
    read.unwrap_err().to_string()
}

#[test]
fn only_certificates_of_the_authority_that_are_good_now_get_in() {
    run(async {
        let scratch = Scratch::new();
        let (ours, theirs) = (authority(), authority());
        let Signed { certificate, key } = ours.sign(&Wish::default());
        let access = AccessFiles {
            token: None,
            certificate: Some(written(&scratch, "certificate", &certificate)),
            key: Some(written(&scratch, "key", &key)),
            client_authority: Some(written(&scratch, "authority", &ours.pem())),
            ..AccessFiles::default()
        };
        // Root here, and the coordinator's own user, may ask for metrics at a socket file.
        let metrics = scratch.join("http.sock");
        let http = vec!["127.0.0.1:0".parse().unwrap(), Address::Unix(metrics.clone())];
        let running = Running::start(Plan { access, http, ..plan(scratch.path(), 2) }).await;
        let good = ours.sign(&Wish::default());
        let expired = valid(&ours, -2 * HOUR..-60);
        // What another's clock an hour ahead or behind makes of a certificate of an hour.
        let not_yet = valid(&ours, HOUR..2 * HOUR);
        let foreign = theirs.sign(&Wish::default());
        let ask = || async { client(&running, &ours, Some(&good)).status().await.is_ok() };
        until("a caller with a certificate is answered", ask, |answered| *answered).await;
        for (name, identity, reason) in [
            ("none", None, "CertificateRequired"),
            ("expired", Some(&expired), "CertificateExpired"),
            // The library has no other word for one that is not good yet.
            ("not yet", Some(&not_yet), "CertificateExpired"),
            // Both authorities go by the same name, and it is the signature that does not fit.
            ("foreign", Some(&foreign), "DecryptError"),
        ] {
            let answer = client(&running, &ours, identity).status().await;
            assert!(answer.is_err(), "{name}: {answer:?}");
            let reported = alert(running.grpc, &ours, identity).await;
            assert!(reported.contains(reason), "{name}: {reported}");
        }
        let counted = "telltale_coordinator_refused_total{reason=\"handshake\"} 8\n";
        let ask = || get_at(metrics.clone(), "/metrics");
        // The alert goes out before it is counted.
        until("all to be counted", ask, |(_, text)| text.contains(counted)).await;
        assert!(client(&running, &ours, Some(&good)).status().await.is_ok(), "nothing was lost");
        running.end().await;
    });
}

#[test]
fn a_certificate_speaks_only_for_the_nodes_that_it_names() {
    run(async {
        let scratch = Scratch::new();
        let ours = authority();
        let Signed { certificate, key } = ours.sign(&Wish::default());
        let access = AccessFiles {
            certificate: Some(written(&scratch, "certificate", &certificate)),
            key: Some(written(&scratch, "key", &key)),
            client_authority: Some(written(&scratch, "authority", &ours.pem())),
            ..AccessFiles::default()
        };
        let in_domain =
            AccessFiles { node_domain: Some("cluster.example".to_owned()), ..access.clone() };
        let any = AccessFiles { any_node: true, ..access.clone() };
        /// How callers are let in, the names in a certificate, and who it may be.
        type Named<'a> = (&'a AccessFiles, &'a [&'a str], &'a [(&'a str, bool)]);
        let cases: [Named<'_>; 6] = [
            (&access, &["a", "b"], &[("a", true), ("b", true), ("c", false), ("a:2", true)]),
            (&access, &[], &[("a", false)]),
            (&access, &["10.0.0.7"], &[("10.0.0.7", true), ("10.0.0.8", false)]),
            (&access, &["a.cluster.example"], &[("a", false), ("a.cluster.example", true)]),
            (&in_domain, &["*.cluster.example"], &[("a", true), ("b", true), ("a.b", false)]),
            (&any, &["a"], &[("a", true), ("b", true)]),
        ];
        for (files, names, nodes) in cases {
            let plan = Plan { access: files.clone(), ..plan(scratch.path(), 9) };
            let running = Running::start(plan).await;
            let identity = ours.sign(&Wish { names, ..Wish::default() });
            let mut client = client(&running, &ours, Some(&identity));
            let ask = || async { client.clone().status().await.is_ok() };
            until("it leads", ask, |answered| *answered).await;
            for (name, may) in nodes {
                let mut node = Node::attend(&mut client, name).await;
                node.say_registration(AgentActivity::Idle).await;
                match node.reported().await.unwrap() {
                    DecodedOrder::Order { message, .. } => {
                        assert!(*may && message.order == Order::Welcome, "{names:?} as {name}");
                    }
                    DecodedOrder::Refused { reason, .. } => {
                        assert!(!may, "{names:?} as {name}: {reason}");
                        assert!(reason.contains("subjectAltName"), "{reason}");
                    }
                }
            }
            let known = client.nodes().await.unwrap().nodes.len();
            assert_eq!(known, nodes.iter().filter(|(_, may)| *may).count(), "{names:?}");
            running.end().await;
        }
    });
}

#[test]
fn beyond_this_machine_nobody_is_answered_without_both() {
    let scratch = Scratch::new();
    let ours = authority();
    let Signed { certificate, key } = ours.sign(&Wish::default());
    let token = Some(written(&scratch, "token", TOKEN));
    let certificate = Some(written(&scratch, "certificate", &certificate));
    let key = Some(written(&scratch, "key", &key));
    let nothing = AccessFiles::default();
    let cases = [
        (nothing.clone(), true),
        (AccessFiles { token: token.clone(), ..nothing.clone() }, true),
        (AccessFiles { certificate: certificate.clone(), key: key.clone(), ..nothing }, true),
        (AccessFiles { token, certificate, key, ..AccessFiles::default() }, false),
    ];
    for (access, open) in cases {
        for (grpc, http) in [("0.0.0.0:0", "127.0.0.1:0"), ("127.0.0.1:0", "0.0.0.0:0")] {
            let (grpc, http) = (vec![grpc.parse().unwrap()], vec![http.parse().unwrap()]);
            let plan = Plan { access: access.clone(), grpc, http, ..plan(scratch.path(), 2) };
            match Server::bind(plan) {
                Err(ServeError::Access(AccessError::OpenBeyondLoopback(_))) if open => {}
                Ok(_) if !open => {}
                other => panic!("{access:?}: {other:?}"),
            }
        }
    }
}
