//! The webhook against servers that are slow, fail, redirect, hang up, lie, or are not there.

mod server;

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;
use telltale_harness::{Scratch, wait_until};
use telltale_schema::clock::Timestamp;
use tokio::sync::{oneshot, watch};

use super::{MAX_ATTEMPTS, Payload, Sender, not_reported, pause};
use crate::alerts::{
    Alert, AlertState, MAX_NOTICES, NoticeEvent, NotificationMetrics, Severity, Subject,
    WebhookOptions,
};
use crate::samples::tests::fixture;
use crate::service::Publisher;
use server::{Reply, Server};

const TIMEOUT: Duration = Duration::from_secs(20);

/// A sender in a thread of its own.
struct Running {
    options: watch::Sender<WebhookOptions>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    publisher: Publisher,
}

impl Running {
    fn start(webhook: WebhookOptions) -> Self {
        let (publisher, view) =
            Publisher::new(TIMEOUT, fixture::everything(), fixture::own_metrics()).unwrap();
        let (options, read) = watch::channel(webhook);
        let latest = view.clone();
        let found = Payload {
            notices: Arc::clone(publisher.control().notices()),
            states: Box::new(move || Arc::clone(&latest.latest().alerts)),
            service_started_at: view.latest().service.started_at,
        };
        let sender = Sender::new(found, read, Duration::from_millis(1));
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                tokio::select! {
                    () = sender.run() => {}
                    _ = stopped => {}
                }
            });
        });
        let (stop, thread) = (Some(stop), Some(thread));
        Self { options, stop, thread, publisher }
    }

    fn fire(&self, name: &str) {
        self.publisher.control().notices().push(NoticeEvent::Fired, Timestamp(7), alert(name));
    }

    fn metrics(&self) -> NotificationMetrics {
        self.publisher.control().notices().metrics()
    }

    #[track_caller]
    fn comes_to(&self, sent: u64, failed: u64) {
        wait_until("the notices to be sent or given up", TIMEOUT, || {
            let metrics = self.metrics();
            (metrics.sent, metrics.failed) == (sent, failed)
        });
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || ended.is_some_and(|ended| ended.is_ok()));
    }
}

fn to(server: &Server) -> WebhookOptions {
    WebhookOptions { url: Some(server.url()), timeout_seconds: 1, ..WebhookOptions::default() }
}

fn alert(rule: &str) -> Alert {
    Alert {
        rule: rule.to_owned(),
        severity: Severity::Critical,
        subject: Subject::Device { device: "251732099".to_owned() },
        uid: None,
        state: AlertState::Firing,
        since: Timestamp(5),
        fired_at: Some(Timestamp(6)),
        value: 0.97,
        text: "it burns".to_owned(),
    }
}

/// The rules of the notices in a body, in their order.
fn rules(body: &Value) -> Vec<&str> {
    let notices = body["notices"].as_array().unwrap();
    notices.iter().map(|notice| notice["alert"]["rule"].as_str().unwrap()).collect()
}

#[test]
fn one_alert_is_one() {
    assert_eq!(not_reported(1, "no route"), "the webhook was not notified of 1 alert: no route");
    assert_eq!(not_reported(2, "no route"), "the webhook was not notified of 2 alerts: no route");
}

#[test]
fn a_notice_is_posted_with_the_authorization_of_the_file() {
    let scratch = Scratch::new();
    let secret = scratch.join("secret");
    std::fs::write(&secret, "Bearer abc\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&secret, mode).unwrap();
    let server = Server::start(vec![Reply::Status(204)]);
    let options = WebhookOptions { authorization_file: Some(secret), ..to(&server) };
    let running = Running::start(options);
    running.fire("device_hot");
    let (head, body) = server.request();
    running.comes_to(1, 0);
    assert!(head.starts_with("POST /hook?a=b HTTP/1.1\r\n"), "{head}");
    let head = head.to_ascii_lowercase();
    for line in ["authorization: bearer abc\r\n", "content-type: application/json\r\n"] {
        assert!(head.contains(line), "{head}");
    }
    assert!(head.contains(&format!("host: {}\r\n", server.address)), "{head}");
    let shape = serde_json::json!({
        "version": 1,
        "host": body["host"],
        "service_started_at": fixture::own_metrics().started_at.0,
        "dropped": 0,
        "notices": [{
            "sequence": 1, "event": "fired", "at": 7,
            "alert": {
                "rule": "device_hot", "severity": "critical", "state": "firing", "since": 5,
                "subject": {"type": "device", "device": "251732099"},
                "fired_at": 6, "value": 0.97, "text": "it burns",
            },
        }],
    });
    assert_eq!(body, shape);
}

#[test]
fn what_fails_is_tried_again_in_order_and_nothing_is_sent_twice_after_it_was_taken() {
    let replies = [Reply::Status(500), Reply::Garbage, Reply::HangUp, Reply::Status(429)];
    let mut replies = replies.to_vec();
    replies.extend([Reply::Silence, Reply::Status(200), Reply::Status(200)]);
    let failures = 5;
    let server = Server::start(replies);
    let running = Running::start(to(&server));
    running.fire("first");
    let mut bodies = vec![server.request().1];
    running.fire("second");
    for _ in 0..failures {
        bodies.push(server.request().1);
    }
    let last = server.request().1;
    running.comes_to(2, 0);
    assert!(bodies.iter().all(|body| rules(body) == ["first"]), "{bodies:?}");
    assert_eq!(rules(&last), ["second"]);
}

#[test]
fn a_refusal_or_a_redirect_is_given_up_at_once_and_nobody_is_asked_elsewhere() {
    for reply in [Reply::Status(401), Reply::Redirect] {
        let server = Server::start(vec![reply, Reply::Status(200)]);
        let running = Running::start(to(&server));
        running.fire("first");
        running.comes_to(0, 1);
        running.fire("second");
        running.comes_to(1, 1);
        assert_eq!(rules(&server.request().1), ["first"]);
        assert_eq!(rules(&server.request().1), ["second"]);
    }
}

#[test]
fn a_server_that_is_not_there_is_given_up_after_the_attempts() {
    let options = to(&Server::start(Vec::new()));
    let running = Running::start(options);
    running.fire("first");
    running.comes_to(0, 1);
}

#[test]
fn a_full_queue_loses_the_oldest_and_counts_them_and_adding_never_waits() {
    let server = Server::start(vec![Reply::Silence, Reply::Status(200)]);
    let running = Running::start(to(&server));
    running.fire("held");
    server.request();
    let most = MAX_NOTICES + 3;
    for number in 0..most {
        running.fire(&number.to_string());
    }
    assert_eq!(running.metrics().dropped, 3);
    assert_eq!(rules(&server.request().1), ["held"]);
}

#[test]
fn a_webhook_that_is_switched_on_or_changed_is_used_from_then_on() {
    let (old, new) = (Server::start(vec![Reply::Silence]), Server::start(vec![Reply::Status(200)]));
    let mut slow = to(&old);
    slow.timeout_seconds = 1;
    let running = Running::start(WebhookOptions::default());
    running.fire("nobody hears it");
    wait_until("it to be taken", TIMEOUT, || running.publisher.control().notices().is_empty());
    running.options.send_replace(slow);
    running.fire("first");
    assert_eq!(rules(&old.request().1), ["first"]);
    running.options.send_replace(to(&new));
    assert_eq!(rules(&new.request().1), ["first"]);
    running.comes_to(1, 0);
}

#[test]
fn a_server_with_tls_must_prove_who_it_is() {
    let scratch = Scratch::new();
    let certified = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let ca_file = scratch.join("ca.pem");
    std::fs::write(&ca_file, certified.cert.pem()).unwrap();
    let server = Server::start_tls(vec![Reply::Status(200); 2], &certified);
    let trusting = WebhookOptions { ca_file: Some(ca_file), ..to(&server) };
    let running = Running::start(trusting.clone());
    running.fire("first");
    assert_eq!(rules(&server.request().1), ["first"]);
    running.comes_to(1, 0);
    // The same certificate under a name that it is not for, and no reason to trust it.
    let port = server.address.port();
    let other_name = Some(format!("https://127.0.0.1:{port}/"));
    let others = [
        WebhookOptions { url: other_name, ..trusting.clone() },
        WebhookOptions { ca_file: None, ..trusting },
    ];
    for options in others {
        let running = Running::start(options);
        running.fire("first");
        running.comes_to(0, 1);
        assert!(server.is_done(), "nothing was sent to a server that is not proved");
    }
}

#[test]
fn pauses_double_and_differ() {
    let first = Duration::from_millis(500);
    for attempts in 1..MAX_ATTEMPTS {
        let whole = first * 2_u32.pow(attempts - 1);
        let pauses: Vec<_> = (0..64).map(|_| pause(first, attempts)).collect();
        assert!(pauses.iter().all(|one| (whole / 2..whole * 3 / 2).contains(one)), "{pauses:?}");
        assert!(pauses.iter().any(|one| *one != pauses[0]));
    }
}
