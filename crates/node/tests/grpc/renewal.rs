//! Certificates that are renewed while the service runs.

use std::time::Duration;

use telltale_client::Client;
use telltale_harness::authority::Authority;
use telltale_harness::{Scratch, wait_until};
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint};

use crate::grpc::machine::{machine, own_metrics};
use crate::grpc::serving::TIMEOUT;
use crate::grpc::tls::{ask, options, served, written};

#[test]
fn a_renewed_certificate_is_for_new_connections_and_calls_go_on() {
    let scratch = Scratch::new();
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let served = served(&options(&scratch, &old.server(), None));
    let read_again = || served.renewed.send_modify(|_| {});
    let tls = ClientTlsConfig::new()
        .ca_certificate(Certificate::from_pem(old.pem()))
        .domain_name("localhost");
    let port = served.address.unwrap().port();
    let endpoint = Endpoint::from_shared(format!("https://127.0.0.1:{port}")).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut watching = runtime.block_on(async {
        let channel = endpoint.tls_config(tls).unwrap().connect().await.unwrap();
        let mut updates = Client::new(channel).watch(Duration::ZERO).await.unwrap();
        updates.next().await.unwrap().unwrap();
        updates
    });

    // The same files with the same certificate are no change.
    read_again();
    assert!(ask(&served, &old, None, None).is_ok());
    options(&scratch, &new.server(), None);
    read_again();
    wait_until("the new certificate", TIMEOUT, || ask(&served, &new, None, None).is_ok());
    assert!(ask(&served, &old, None, None).is_err(), "new connections have the new one alone");

    // Half a renewal: a key that is not the certificate's.
    written(&scratch, "key.pem", &old.server().key);
    read_again();
    written(&scratch, "certificate.pem", "no certificate");
    read_again();
    assert!(ask(&served, &new, None, None).is_ok(), "it stays as it was");

    served.publisher.publish(machine(1, 1), own_metrics());
    let update = runtime.block_on(async { tokio::time::timeout(TIMEOUT, watching.next()).await });
    let update = update.expect("the call goes on").unwrap().unwrap();
    assert_eq!(update.snapshot.unwrap().devices.len(), 1);
}

#[test]
fn files_that_cannot_be_used_are_reported_before_they_are_taken_over() {
    let scratch = Scratch::new();
    let (one, other) = (Authority::new("one"), Authority::new("other"));
    let mut fine = options(&scratch, &one.server(), None);
    fine.check_files(&fine.listen.clone()).unwrap();
    fine.key = Some(written(&scratch, "other.pem", &other.server().key));
    let refused = fine.check_files(&[]).unwrap_err();
    assert!(refused.to_string().contains("cannot be used"), "{refused}");
    // A file without what it is for is named, whichever of them it is.
    let nothing = written(&scratch, "nothing.pem", "nothing");
    let paths = [nothing.clone(), fine.certificate.clone().unwrap()];
    for (what, path) in ["certificate", "private key"].into_iter().zip(paths) {
        let mut wrong = options(&scratch, &one.server(), None);
        match what {
            "certificate" => wrong.certificate = Some(path.clone()),
            _ => wrong.key = Some(path.clone()),
        }
        let refused = wrong.check_files(&[]).unwrap_err().to_string();
        let expected = format!("there is no {what} in {}", path.display());
        assert!(refused.starts_with(&expected), "{refused}");
    }
    fine.client_authority = Some(nothing);
    let refused = fine.check_files(&[]).unwrap_err().to_string();
    assert!(refused.starts_with("there is no certificate in "), "{refused}");
    fine.client_authority = None;
    fine.key = Some(scratch.join("nothing"));
    assert!(fine.check_files(&[]).unwrap_err().to_string().contains("cannot read"));
}
