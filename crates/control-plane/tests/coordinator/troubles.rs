//! What a user sees of a coordinator that gives no answer: what is in the way and what helps, once
//! and in words.

use std::time::Duration;

use telltale_control_plane::operator::Operator;
use telltale_control_plane::reach::ClientFiles;
use telltale_control_plane::server::{AccessFiles, Plan};
use telltale_harness::Scratch;
use telltale_harness::authority::{Signed, Wish};
use telltale_schema::text::with_causes;

use crate::coordinator::running::{Running, plan, run};
use crate::coordinator::trust::{authority, written};

/// The names of a coordinator that is called by its address.
const NAMES: [&str; 2] = ["localhost", "127.0.0.1"];

/// What an operator sees there.
async fn reported(address: &str, access: &ClientFiles) -> String {
    let addresses = vec![address.parse().unwrap()];
    let operator = Operator::new(addresses, access.load().unwrap(), Duration::from_secs(10));
    let asked = operator.ask(async |client| client.nodes().await).await;
    with_causes(&asked.expect_err("there is no answer"))
}

/// The files of one who has this authority, and perhaps a certificate.
fn caller(scratch: &Scratch, authority: &str, identity: Option<Signed>) -> ClientFiles {
    let file = |name: &str, text: &str| written(scratch, name, text);
    let identity =
        identity.map(|own| (file("own certificate", &own.certificate), file("own key", &own.key)));
    ClientFiles { authority: Some(file("authority", authority)), identity, token_file: None }
}

#[test]
fn a_token_that_is_wrong_or_missing_is_reported() {
    run(async {
        let scratch = Scratch::new();
        let token = Some(written(&scratch, "token", "a-token-of-the-tests"));
        let access = AccessFiles { token, ..AccessFiles::default() };
        let running = Running::start(Plan { access, ..plan(scratch.path(), 2) }).await;
        let at = running.grpc.to_string();
        let wrong = Some(written(&scratch, "wrong", "another-token-altogether"));
        let none = ClientFiles::default();
        assert_eq!(
            reported(&at, &ClientFiles { token_file: wrong, ..none.clone() }).await,
            format!("the coordinator at {at} refuses this token; copy the coordinator's")
        );
        assert_eq!(
            reported(&at, &none).await,
            format!("the coordinator at {at} wants its token: --token-file")
        );
        // It speaks no TLS.
        let tls = caller(&scratch, &authority().pem(), None);
        let plain = format!("{at} does not speak TLS; ");
        let said = reported(&at, &tls).await;
        assert!(said.starts_with(&plain), "{said}");
        running.end().await;
        let gone = reported(&at, &none).await;
        assert_eq!(gone, format!("no process listens at {at}; does a coordinator run there?"));
        let unknown = reported("no-such-host.invalid:1", &none).await;
        assert!(unknown.starts_with("cannot resolve no-such-host.invalid:1: "), "{unknown}");
    });
}

#[test]
fn what_is_wrong_with_certificates_is_reported() {
    run(async {
        let scratch = Scratch::new();
        let (ours, theirs) = (authority(), authority());
        let files = |Signed { certificate, key }, asks: bool| AccessFiles {
            certificate: Some(written(&scratch, "certificate", &certificate)),
            key: Some(written(&scratch, "key", &key)),
            client_authority: asks.then(|| written(&scratch, "client authority", &ours.pem())),
            ..AccessFiles::default()
        };
        let of_ours = || files(ours.sign(&Wish { names: &NAMES, ..Wish::default() }), false);
        // How sure it is depends on which of two packets comes first, here and below.
        let said = check(&scratch, of_ours(), ClientFiles::default(), " speaks TLS").await;
        assert!(said.contains("name its authority with --authority"), "{said}");
        let other = caller(&scratch, &theirs.pem(), None);
        let file = scratch.join("authority");
        let words = format!("'s certificate is not of the authority in {}", file.display());
        check(&scratch, of_ours(), other, &words).await;

        let now = Wish { names: &NAMES, ..Wish::default() };
        let elsewhere = Wish { names: &["elsewhere"], ..Wish::default() };
        let of_an_hour_ago = Wish { valid: -7200..-3600, ..now.clone() };
        let hour = "'s certificate is not valid now; ";
        let wants = " wants a certificate of the caller: --certificate, --key";
        let refuses = " does not take our certificate";
        let foreign = || theirs.sign(&Wish::default());
        for (wish, asks, identity, expected) in [
            (&elsewhere, false, None, "'s certificate has other names; "),
            (&of_an_hour_ago, false, None, hour),
            (&now, true, None, wants),
            (&now, true, Some(foreign()), refuses),
        ] {
            let access = files(ours.sign(wish), asks);
            let caller = caller(&scratch, &ours.pem(), identity);
            check(&scratch, access, caller, expected).await;
        }
    });
}

/// Checks what the caller sees, and returns it.
async fn check(
    scratch: &Scratch,
    access: AccessFiles,
    caller: ClientFiles,
    expected: &str,
) -> String {
    let running = Running::start(Plan { access, ..plan(scratch.path(), 2) }).await;
    let at = running.grpc.to_string();
    let said = reported(&at, &caller).await;
    assert!(said.starts_with(&at) && said.contains(expected), "{expected}: {said}");
    running.end().await;
    said
}
