//! Real services with TLS, and with certificates of their callers: who gets an answer, and what is reported
//! to whom gets none.

use std::path::{Path, PathBuf};

use telltale_harness::Scratch;
use telltale_harness::authority::{Authority, Purpose, Signed, Wish, write_private};
use telltale_schema::fleet::{Fleet, HostState};

use crate::cli::command::{Said, said, telltale};
use crate::cli::serve::{Serving, serve};

const TOKEN: &str = "a-token-of-the-tests-that-is-long-enough";

/// A service and the files of its callers.
struct Fixture {
    service: Serving,
    /// As `--hosts` names it.
    at: String,
    place: Scratch,
}

impl Fixture {
    /// A service with this certificate, for callers of that authority if there is one.
    fn new(own: &Signed, callers: Option<&Authority>) -> Self {
        let place = Scratch::new();
        let [certificate, key] = own.write(place.path(), "server");
        let token = file(&place, "token", TOKEN);
        let mut command = serve(&place);
        command.env("TELLTALE_GRPC_CERTIFICATE", certificate).env("TELLTALE_GRPC_KEY", key);
        command.env("TELLTALE_TOKEN_FILE", token).args(["--grpc", "127.0.0.1:0"]);
        if let Some(callers) = callers {
            command.env("TELLTALE_GRPC_CLIENT_AUTHORITY", file(&place, "callers", &callers.pem()));
        }
        let mut service = Serving::start(&mut command);
        let line = service.says("grpc listens on ");
        let port = line.rsplit(':').next().unwrap().to_owned();
        Self { service, at: format!("localhost:{port}"), place }
    }

    /// What a client sees that trusts this authority and has that certificate.
    fn ask(&self, authority: Option<&Authority>, own: Option<&Signed>, more: &[&Path]) -> Said {
        let mut command = telltale();
        command.args(["smi", "--hosts", &self.at, "--json", "--timeout", "20"]).args(more);
        if let Some(authority) = authority {
            command.arg("--authority").arg(file(&self.place, "authority", &authority.pem()));
        }
        if let Some(own) = own {
            let [certificate, key] = own.write(self.place.path(), "own");
            command.arg("--certificate").arg(certificate).arg("--key").arg(key);
        }
        said(&mut command)
    }
}

fn file(place: &Scratch, name: &str, text: &str) -> PathBuf {
    let path = place.join(name);
    write_private(&path, text);
    path
}

#[track_caller]
fn fleet(said: &Said) -> Fleet {
    serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {said:?}"))
}

/// Asserts that it answered, and returns how many sources it reported.
#[track_caller]
fn answered(said: &Said) {
    let fleet = fleet(said);
    let host = &fleet.hosts[0];
    assert_eq!((host.state, &host.reason), (HostState::Answering, &None), "{said:?}");
    assert!(!host.snapshot.as_ref().unwrap().sources.is_empty());
}

/// Asserts that it did not answer, and that these words are the reason.
#[track_caller]
fn refused(fixture: &Fixture, said: &Said, words: &str) {
    assert_eq!(said.status, Some(2), "{said:?}");
    let fleet = fleet(said);
    let host = &fleet.hosts[0];
    let reason = host.reason.as_deref().unwrap_or_default();
    assert_eq!(host.state, HostState::Unreachable, "{said:?}");
    assert!(reason.starts_with(&fixture.at) && reason.contains(words), "{words:?}: {reason}");
}

/// A certificate that ended a day ago.
fn expired(by: &Authority, purpose: Purpose) -> Signed {
    by.sign(&Wish { purpose, valid: -172_800..-86_400, ..Wish::default() })
}

#[test]
fn by_tls_a_service_answers_who_believes_its_authority() {
    let (ours, other) = (Authority::new("ours"), Authority::new("other"));
    let fixture = Fixture::new(&ours.server(), None);
    answered(&fixture.ask(Some(&ours), None, &[]));
    let token = fixture.place.join("token");
    answered(&fixture.ask(Some(&ours), None, &[Path::new("--token-file"), &token]));
    let wrong = file(&fixture.place, "wrong", "another-token-that-is-long-enough");
    let reported = fixture.ask(Some(&ours), None, &[Path::new("--token-file"), &wrong]);
    assert!(reported.out.contains("this is not the service's token"), "{reported:?}");
    let words = "'s certificate is not of the authority that --authority names";
    refused(&fixture, &fixture.ask(Some(&other), None, &[]), words);
    // Which of two packets comes first decides how sure it is: an alert, or the end of the connection.
    let words = "name its authority with --authority";
    refused(&fixture, &fixture.ask(None, None, &[]), words);
    // By a name that is not in it.
    let by_address = fixture.at.replace("localhost", "127.0.0.1");
    let fixture = Fixture { at: by_address, ..fixture };
    let reported = fixture.ask(Some(&ours), None, &[]);
    refused(&fixture, &reported, "'s certificate has other names; use one of them");
    fixture.service.end();
}

#[test]
fn a_certificate_that_has_expired_is_reported_with_what_helps() {
    let ours = Authority::new("ours");
    let fixture = Fixture::new(&expired(&ours, Purpose::Server), None);
    let words = "'s certificate is not valid now; renew it, or set the clocks right";
    refused(&fixture, &fixture.ask(Some(&ours), None, &[]), words);
    fixture.service.end();
    let fixture = Fixture::new(&ours.client(), None);
    let words = "'s certificate is not fit for a server";
    refused(&fixture, &fixture.ask(Some(&ours), None, &[]), words);
    fixture.service.end();
}

#[test]
fn a_service_that_wants_certificates_answers_whom_its_authority_signed() {
    let (ours, other) = (Authority::new("ours"), Authority::new("other"));
    let fixture = Fixture::new(&ours.server(), Some(&ours));
    answered(&fixture.ask(Some(&ours), Some(&ours.client()), &[]));
    let wants = "wants a certificate of the caller: --certificate, --key";
    refused(&fixture, &fixture.ask(Some(&ours), None, &[]), wants);
    // Which of two packets comes first decides how sure it is.
    let refuses = "does not take our certificate";
    for own in [other.client(), expired(&ours, Purpose::Client), ours.server()] {
        refused(&fixture, &fixture.ask(Some(&ours), Some(&own), &[]), refuses);
    }
    answered(&fixture.ask(Some(&ours), Some(&ours.client()), &[]));
    fixture.service.end();
}

#[test]
fn files_that_are_not_there_and_services_without_tls_are_reported() {
    let ours = Authority::new("ours");
    let place = Scratch::new();
    let mut service = Serving::start(serve(&place).args(["--grpc", "127.0.0.1:0"]));
    let line = service.says("grpc listens on ");
    let port = line.rsplit(':').next().unwrap().to_owned();
    let fixture = Fixture { service, at: format!("localhost:{port}"), place };
    answered(&fixture.ask(None, None, &[]));
    let words = "does not speak TLS; leave out --authority";
    refused(&fixture, &fixture.ask(Some(&ours), None, &[]), words);
    let missing = [Path::new("--authority"), Path::new("/nonexistent/authority.pem")];
    fixture.ask(None, None, &missing).complains(2, &["cannot read /nonexistent/authority.pem"]);
    fixture.service.end();
}
