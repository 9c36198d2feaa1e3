//! TCP: who gets in with which certificate, and what a token is good for.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use telltale_client::{CallError, Client, ConnectError, Connector, Health, HealthError, Tls};
use telltale_harness::Scratch;
use telltale_harness::authority::{Authority, Purpose, Signed, Wish, write_private};
use telltale_node::grpc::{GrpcOptions, GrpcService};
use telltale_schema::snapshot::Snapshot;
use telltale_server::listen::{Address, Listener};
use telltale_server::token::Token;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

use crate::grpc::machine::machine;
use crate::grpc::serving::{Served, TIMEOUT, wait};

const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const ANYWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

const TOKEN: &str = "a-token-of-the-tests";

/// A certificate of a server, or a client, that has expired.
fn expired(by: &Authority, purpose: Purpose) -> Signed {
    by.sign(&Wish { purpose, valid: -172_800..-86_400, ..Wish::default() })
}

pub(crate) fn written(scratch: &Scratch, name: &str, text: &str) -> PathBuf {
    let path = scratch.join(name);
    write_private(&path, text);
    path
}

pub(crate) fn options(
    scratch: &Scratch,
    server: &Signed,
    clients: Option<&Authority>,
) -> GrpcOptions {
    GrpcOptions {
        listen: vec![Address::Tcp(LOOPBACK)],
        certificate: Some(written(scratch, "certificate.pem", &server.certificate)),
        key: Some(written(scratch, "key.pem", &server.key)),
        client_authority: clients.map(|one| written(scratch, "clients.pem", &one.pem())),
        ..GrpcOptions::default()
    }
}

pub(crate) fn served(options: &GrpcOptions) -> Served {
    let scratch = Scratch::new();
    let token = Token::read(&written(&scratch, "token", TOKEN)).expect("a token");
    Served::with(machine(2, 6), options, |policy| policy.with_token(token))
}

/// What a client with this certificate and token gets.
pub(crate) fn ask(
    served: &Served,
    authority: &Authority,
    own: Option<&Signed>,
    token: Option<&str>,
) -> Result<Snapshot, CallError> {
    let port = served.address.expect("a TCP port").port();
    let mut tls = ClientTlsConfig::new()
        .ca_certificate(Certificate::from_pem(authority.pem()))
        .domain_name("localhost");
    if let Some(own) = own {
        tls = tls.identity(Identity::from_pem(&own.certificate, &own.key));
    }
    let endpoint = Endpoint::from_shared(format!("https://127.0.0.1:{port}"));
    let endpoint = endpoint.expect("an address").tls_config(tls).expect("TLS");
    wait(async {
        // Refusals come while connecting or with the first call, as TLS 1.3 has it.
        let mut client = Client::new(endpoint.connect_lazy());
        if let Some(token) = token {
            client = client.with_token(token).expect("a token");
        }
        client.snapshot(false).await
    })
}

fn shown(result: Result<Snapshot, CallError>) -> usize {
    let snapshot = result.expect("an answer");
    assert_eq!(snapshot.devices.len(), 2);
    snapshot.processes.len()
}

#[test]
fn tls_shows_devices_and_the_token_everything() {
    let scratch = Scratch::new();
    let (ours, other) = (Authority::new("ours"), Authority::new("other"));
    let served = served(&options(&scratch, &ours.server(), None));
    assert_eq!(shown(ask(&served, &ours, None, None)), 0);
    assert_eq!(shown(ask(&served, &ours, None, Some(TOKEN))), 6);
    let wrong = ask(&served, &ours, None, Some("a-token-of-nobody's")).unwrap_err();
    assert!(wrong.to_string().contains("not the service's token"), "{wrong}");
    ask(&served, &other, None, None).unwrap_err();
}

#[test]
fn a_client_does_not_believe_an_expired_server() {
    let scratch = Scratch::new();
    let ours = Authority::new("ours");
    let served = served(&options(&scratch, &expired(&ours, Purpose::Server), None));
    ask(&served, &ours, None, Some(TOKEN)).unwrap_err();
}

#[test]
fn mutual_tls_lets_in_whom_the_authority_signed_and_nobody_else() {
    let scratch = Scratch::new();
    let (ours, other) = (Authority::new("ours"), Authority::new("other"));
    let served = served(&options(&scratch, &ours.server(), Some(&ours)));
    assert_eq!(shown(ask(&served, &ours, Some(&ours.client()), None)), 6);
    for (own, who) in [
        (None, "no certificate"),
        (Some(other.client()), "another authority's"),
        (Some(expired(&ours, Purpose::Client)), "an expired one"),
        (Some(ours.server()), "a server's"),
    ] {
        assert!(ask(&served, &ours, own.as_ref(), Some(TOKEN)).is_err(), "{who}");
    }
    assert_eq!(shown(ask(&served, &ours, Some(&ours.client()), None)), 6, "still there");
}

#[test]
fn without_tls_this_machine_sees_devices() {
    let listen = vec![Address::Tcp(LOOPBACK)];
    let served = served(&GrpcOptions { listen, ..GrpcOptions::default() });
    let address = format!("http://{}", served.address.unwrap());
    wait(async {
        let channel = Endpoint::from_shared(address).unwrap().connect().await.unwrap();
        let mut client = Client::new(channel);
        assert_eq!(shown(client.snapshot(false).await), 0);
        let mut client = client.with_token(TOKEN).unwrap();
        assert_eq!(shown(client.snapshot(false).await), 6);
    });
}

#[test]
fn a_probe_gets_in_as_any_client_does_and_needs_no_token() {
    let scratch = Scratch::new();
    let (ours, other) = (Authority::new("ours"), Authority::new("other"));
    let asked = |served: &Served, tls: &Tls| {
        let port = served.address.expect("a TCP port").port();
        let address = format!("localhost:{port}").parse().expect("an address");
        wait(Connector::new(address).with_tls(tls.clone()).with_timeout(TIMEOUT).health())
    };
    let open = served(&options(&scratch, &ours.server(), None));
    let tls = Tls::with_authority(ours.pem());
    assert_eq!(asked(&open, &tls).unwrap(), Health::Serving);
    let believer = Tls::with_authority(other.pem());
    let refused = asked(&open, &believer);
    assert!(matches!(refused, Err(HealthError::Connect(ConnectError::Port { .. }))));
    let closed = served(&options(&scratch, &ours.server(), Some(&ours)));
    assert!(asked(&closed, &tls).is_err(), "without a certificate");
    let mine = ours.client();
    let tls = tls.with_identity(&mine.certificate, &mine.key);
    assert_eq!(asked(&closed, &tls).unwrap(), Health::Serving);
}

#[test]
fn what_does_not_fit_together_is_reported_before_anything_is_served() {
    let scratch = Scratch::new();
    let ours = Authority::new("ours");
    let good = options(&scratch, &ours.server(), Some(&ours));
    let garbage = written(&scratch, "garbage.pem", "no certificate");
    let cases = [
        (GrpcOptions { key: None, ..good.clone() }, "needs both"),
        (GrpcOptions { certificate: None, key: None, ..good.clone() }, "needs both"),
        (
            GrpcOptions { key: Some(PathBuf::from("/nowhere/key")), ..good.clone() },
            "cannot read /nowhere/key",
        ),
        (GrpcOptions { key: Some(garbage.clone()), ..good.clone() }, "there is no private key in"),
        (GrpcOptions { certificate: Some(garbage), ..good }, "there is no certificate in"),
        (
            GrpcOptions { listen: vec![Address::Tcp(ANYWHERE)], ..GrpcOptions::default() },
            "readable on the network",
        ),
    ];
    for (options, expected) in cases {
        let bind = |address| Listener::bind(address, None).unwrap().0;
        let listeners = options.listen.iter().map(bind).collect();
        let error = GrpcService::new(listeners, &options).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}
