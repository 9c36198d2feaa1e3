//! Ways to a service by TCP: who gets in, what is kept secret, and what an error says.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::time::Duration;

use telltale_client::{CallError, ConnectError, Connector, Health, ServiceAddress, Tls};
use telltale_harness::Scratch;
use telltale_harness::authority::{Authority, write_private};
use telltale_node::grpc::GrpcOptions;
use telltale_server::listen::Address;

use crate::served::{Served, TIMEOUT, TOKEN, wait};

const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A service on a port, which takes clients of this authority only.
fn closed(scratch: &Scratch, ours: &Authority) -> Served {
    let file = |name: &str, text: &str| {
        let path = scratch.join(name);
        write_private(&path, text);
        Some(path)
    };
    let server = ours.server();
    Served::with(&GrpcOptions {
        listen: vec![Address::Tcp(LOOPBACK)],
        certificate: file("certificate.pem", &server.certificate),
        key: file("key.pem", &server.key),
        client_authority: file("clients.pem", &ours.pem()),
        ..GrpcOptions::default()
    })
}

#[test]
fn a_port_is_reached_by_tls_with_a_certificate_and_a_token() {
    let (scratch, ours) = (Scratch::new(), Authority::new("ours"));
    let served = closed(&scratch, &ours);
    let client = ours.client();
    let tls = Tls::with_authority(ours.pem()).with_identity(&client.certificate, &client.key);
    let connector = Connector::new(served.port()).with_tls(tls).with_timeout(TIMEOUT);
    wait(async {
        assert_eq!(connector.health().await.unwrap(), Health::Serving);
        let connector = connector.with_token(TOKEN);
        connector.connect().await.unwrap().snapshot(false).await.unwrap();
        let connector = connector.with_token("another-token-of-theirs");
        let error = connector.connect().await.unwrap().snapshot(false).await.unwrap_err();
        assert!(matches!(&error, CallError::Refused(_)), "{error}");
        assert!(!format!("{connector:?}").contains("another-token"), "{connector:?}");
    });
}

#[test]
fn what_is_in_the_way_is_said_with_its_remedy() {
    let (scratch, ours) = (Scratch::new(), Authority::new("ours"));
    let served = closed(&scratch, &ours);
    let to_it = |tls: Option<&Authority>| {
        let connector = Connector::new(served.port()).with_timeout(TIMEOUT);
        match tls {
            Some(authority) => connector.with_tls(Tls::with_authority(authority.pem())),
            None => connector,
        }
    };
    let asked = |connector: Connector| {
        wait(async {
            let mut client = connector.connect().await.map_err(|error| error.to_string())?;
            client.snapshot(false).await.map_err(|error| error.to_string())
        })
    };
    for (connector, expected) in [
        (to_it(None), "speaks TLS"),
        (to_it(Some(&ours)), "wants a certificate"),
        (to_it(Some(&Authority::new("other"))), "is not of the authority"),
    ] {
        let error = asked(connector).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    let free = TcpListener::bind(LOOPBACK).unwrap().local_addr().unwrap();
    let error = asked(Connector::new(free.to_string().parse().unwrap())).unwrap_err();
    assert!(error.contains("no process listens there"), "{error}");
}

#[test]
fn a_port_that_does_not_answer_is_given_up() {
    // It is connected by the kernel, and no process accepts.
    let silent = TcpListener::bind(LOOPBACK).unwrap();
    let address: ServiceAddress = silent.local_addr().unwrap().to_string().parse().unwrap();
    let timeout = Duration::from_millis(200);
    let health = wait(Connector::new(address).with_timeout(timeout).health()).unwrap_err();
    assert!(health.to_string().contains("did not answer within 0.2 s"), "{health}");
}

#[test]
fn a_token_goes_nowhere_in_the_clear() {
    let elsewhere = Connector::new("node7.invalid:9436".parse().unwrap()).with_token(TOKEN);
    let error = wait(elsewhere.connect()).unwrap_err();
    assert!(matches!(error, ConnectError::TokenInTheClear(_)), "{error}");
    assert!(!error.to_string().contains(TOKEN));
    let socket = Connector::new("unix:/run/x.sock".parse().unwrap());
    let error = wait(socket.with_tls(Tls::with_authority("")).connect()).unwrap_err();
    assert!(matches!(error, ConnectError::TlsOnSocket(_)), "{error}");
}
