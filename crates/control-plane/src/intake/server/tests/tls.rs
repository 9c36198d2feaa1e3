//! Who gets in at a port that other machines reach.

use std::path::PathBuf;

use telltale_harness::authority::{Authority, Signed, Wish};

use super::*;

/// Who lets callers in, or signs what others show: all go by one name.
fn authority() -> Authority {
    Authority::new("one")
}

/// A certificate that ends in a day.
fn signed(by: &Authority) -> Signed {
    by.sign(&Wish { names: &["localhost", "node-0.lab"], ..Wish::default() })
}

/// An agent's HTTP at a port that other machines could reach, and the authority of its certificate.
struct Open {
    served: Served,
    authority: Authority,
    /// Where its files are.
    _place: Scratch,
}

impl Open {
    fn new(token: bool, client_authority: Option<&Authority>) -> Self {
        let authority = authority();
        let place = Scratch::new();
        let write = |name: &str, text: &str| -> PathBuf {
            std::fs::write(place.join(name), text).unwrap();
            place.join(name)
        };
        let Signed { certificate, key } = signed(&authority);
        let tls = TlsFiles {
            certificate: write("certificate.pem", &certificate),
            key: write("key.pem", &key),
            client_authority: client_authority.map(|one| write("callers.pem", &one.pem())),
        };
        Self { served: Served::at("0.0.0.0:0", token, Some(tls)), authority, _place: place }
    }

    /// The answer to these bytes, from a client with this certificate; what went wrong else.
    fn ask(&self, identity: Option<&Signed>, bytes: &[u8]) -> Result<String, String> {
        self.authority.ask(self.served.address.port(), identity, bytes)
    }
}

fn bearer(token: &str) -> String {
    format!("authorization: Bearer {token}\r\n")
}

#[test]
fn a_token_is_for_tls_and_a_wrong_one_is_refused() {
    let open = Open::new(true, None);
    let order =
        |headers: &str| status(&open.ask(None, &request("POST /restart", headers, "")).unwrap());
    assert_eq!(order(&bearer(TOKEN)), 200);
    assert_eq!(order(&bearer("0123456789abcdeF")), 401);
    assert_eq!(order(""), 401);
    let read =
        |headers: &str| status(&open.ask(None, &request("GET /metrics", headers, "")).unwrap());
    assert_eq!((read(&bearer(TOKEN)), read("")), (200, 401));
    // Workers are of this machine, with or without a token.
    let posted = open.ask(None, &request("POST /log_ccl", &bearer(TOKEN), SEND)).unwrap();
    assert_eq!(status(&posted), 403, "{posted}");
    // Without TLS nothing is understood, and nothing answered.
    assert!(!open.served.ask(&request("POST /restart", &bearer(TOKEN), "")).starts_with("HTTP"));
}

#[test]
fn a_certificate_of_the_client_authority_is_as_good_as_a_token() {
    let callers = authority();
    let open = Open::new(false, Some(&callers));
    let order = request("POST /restart", "", "");
    let own = signed(&callers);
    assert_eq!(status(&open.ask(Some(&own), &order).unwrap()), 200);
    assert_eq!(status(&open.ask(Some(&own), &request("GET /metrics", "", "")).unwrap()), 200);
    let expired = callers.sign(&Wish { valid: -172_800..-86_400, ..Wish::default() });
    let stranger = signed(&authority());
    // Both authorities have one name, so a stranger's certificate fails by its signature.
    for (identity, alert) in [
        (None, "CertificateRequired"),
        (Some(&expired), "CertificateExpired"),
        (Some(&stranger), "DecryptError"),
    ] {
        let refused = open.ask(identity, &order).unwrap_err();
        assert!(refused.contains(alert), "{refused}");
    }
    assert_eq!(status(&open.ask(Some(&own), &order).unwrap()), 200, "it goes on");
}

#[test]
fn the_names_of_its_certificate_are_the_agent_s_and_others_are_not() {
    let callers = authority();
    let open = Open::new(false, Some(&callers));
    let own = signed(&callers);
    let asked = |host: &str| {
        let text = format!("GET /metrics HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        status(&open.ask(Some(&own), text.as_bytes()).unwrap())
    };
    assert_eq!(
        (asked("node-0.lab:9442"), asked("NODE-0.lab"), asked("node-1.lab")),
        (200, 200, 421)
    );
}

#[test]
fn with_both_both_are_needed() {
    let callers = authority();
    let open = Open::new(true, Some(&callers));
    let own = signed(&callers);
    let order = |headers: &str| request("POST /restart", headers, "");
    assert_eq!(status(&open.ask(Some(&own), &order("")).unwrap()), 401);
    assert_eq!(status(&open.ask(Some(&own), &order(&bearer(TOKEN))).unwrap()), 200);
    assert!(open.ask(None, &order(&bearer(TOKEN))).is_err());
}

#[test]
fn certificates_alone_prove_nothing_of_callers() {
    let place = Scratch::new();
    let Signed { certificate, key } = signed(&authority());
    let write = |name: &str, text: &str| -> PathBuf {
        std::fs::write(place.join(name), text).unwrap();
        place.join(name)
    };
    let tls = TlsFiles {
        certificate: write("certificate.pem", &certificate),
        key: write("key.pem", &key),
        client_authority: None,
    };
    let refused = |tls: TlsFiles| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (tcp, _) = Listener::bind(&"0.0.0.0:0".parse().unwrap(), None).unwrap();
            let options = ServerOptions { tls: Some(tls), ..ServerOptions::default() };
            let (wishes, _wished) = mpsc::channel(1);
            IntakeServer::new(vec![tcp], Intake::new(), wishes, options).unwrap_err()
        })
    };
    assert!(matches!(refused(tls.clone()), IntakeServeError::Open { .. }));
    let missing = TlsFiles { key: place.join("none.pem"), ..tls };
    assert!(matches!(refused(missing), IntakeServeError::Trust(_)));
}
