//! A store that is full, unreachable or another's: what is reported of it, where it is asked for, and that it
//! is no longer reported once that is mended.

use std::io::ErrorKind;
use std::path::Path;

use telltale_control_plane::operator::Operator;
use telltale_control_plane::reach::Credentials;
use telltale_control_plane::server::Plan;
use telltale_control_plane::store::{
    EtcdPlan, EtcdSettings, JournalSettings, LEAST_LEASE, StoreLocation,
};
use telltale_harness::{EtcdCluster, Scratch, needs_etcd, on_small_disk};
use telltale_wire::cluster::Client;
use telltale_wire::cluster::message::Mode;

use crate::coordinator::node::job;
use crate::coordinator::running::{Running, TIMEOUT, get, plan, run, until};

/// What an operator sees of the job's status.
async fn reported(running: &Running) -> String {
    let addresses = vec![running.grpc.to_string().parse().unwrap()];
    let operator = Operator::new(addresses, Credentials::default(), TIMEOUT);
    let asked = operator.ask(async |client| client.status().await).await;
    asked.expect_err("it does not lead").to_string()
}

/// Checks that all of `words` are in a text.
fn check(text: &str, words: &[&str]) {
    for words in words {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn a_coordinator_whose_journal_another_has_reports_it() {
    run(async {
        let scratch = Scratch::new();
        let first = Running::start(plan(scratch.path(), 1)).await;
        assert_eq!(get(first.http, "/readyz", None).await, (200, "leads\n".to_owned()));
        let second = Running::begin(plan(scratch.path(), 1));
        let ready = || get(second.http, "/readyz", None);
        let (status, text) =
            until("the reason is told", ready, |(_, text)| text.contains("store")).await;
        let words = ["knows no leader", "belongs to another coordinator that runs"];
        assert_eq!(status, 503);
        check(&text, &words);
        check(&reported(&second).await, &words);
        check(&get(second.http, "/api/v1/status", None).await.1, &words);
        // The first one ends, and the other leads without a trouble.
        first.end().await;
        let leads = (200, "leads\n".to_owned());
        until("the other leads", ready, |answer| *answer == leads).await;
        second.end().await;
    });
}

#[test]
fn a_coordinator_that_reaches_no_etcd_says_what_it_could_not_do_and_what_helps() {
    let name = "coordinator::unstored::a_coordinator_that_reaches_no_etcd_says_what_it_could_not_do_and_what_helps";
    if !needs_etcd(name) {
        return;
    }
    let mut etcd = EtcdCluster::start(1);
    let scratch = Scratch::new();
    let settings = EtcdPlan {
        members: etcd.addresses(),
        prefix: "telltale/job".to_owned(),
        address: "localhost:1".to_owned(),
        lease: LEAST_LEASE,
        tls: None,
    };
    let store = StoreLocation::Etcd(EtcdSettings::new(&settings).unwrap());
    run(async {
        let running = Running::start(Plan { store, ..plan(scratch.path(), 1) }).await;
        etcd.member(0).kill();
        let ready = || get(running.http, "/readyz", None);
        let (status, text) =
            until("the reason is told", ready, |(_, text)| text.contains("could not")).await;
        assert_eq!(status, 503);
        let words = ["etcd could not say who leads: tcp connect error", "look at its members"];
        check(&text, &words);
        check(&reported(&running).await, &words);
        check(&text, &["(os error 111); look"]);
        assert!(!text.contains("tonic"), "{text}");
        running.end().await;
    });
}

#[test]
fn a_coordinator_whose_disk_is_full_reports_it_until_there_is_room() {
    let name =
        "coordinator::unstored::a_coordinator_whose_disk_is_full_reports_it_until_there_is_room";
    on_small_disk(name, 64, |disk| run(fills_the_disk(disk)));
}

async fn fills_the_disk(directory: &Path) {
    let store = StoreLocation::Journal(JournalSettings { directory: directory.join("state") });
    let running = Running::start(Plan { store, ..plan(directory, 1) }).await;
    let mut client = running.client();
    let (nodes, _) = job(&mut client, &["a"]).await;
    assert_eq!(client.status().await.unwrap().store_trouble, "");
    let ballast = directory.join("ballast");
    let full = std::fs::write(&ballast, vec![1; 1 << 20]).unwrap_err();
    assert_eq!(full.kind(), ErrorKind::StorageFull);
    // The file's last page has some room left.
    while change(&mut client).await {}
    let words = ["cannot write the journal", "make room on its disk", "No space left on device"];
    let status = client.status().await.unwrap();
    check(&status.store_trouble, &words);
    assert!(status.runs && status.store_troubled_for_ns.is_some(), "{status:?}");
    let ready = || get(running.http, "/readyz", None);
    let (code, text) = until("probes are told", ready, |answer| answer.1 != "leads\n").await;
    assert_eq!(code, 200, "it leads all the same");
    check(&text, &words);
    let json = get(running.http, "/api/v1/status", None).await.1;
    check(&json, &["\"store_trouble\":\"cannot write"]);
    std::fs::remove_file(&ballast).unwrap();
    let mut changed = false;
    while !changed {
        // It rests after each attempt that failed.
        changed = change(&mut client).await;
    }
    let status = client.status().await.unwrap();
    assert_eq!((status.store_trouble.as_str(), status.store_troubled_for_ns), ("", None));
    until("probes are told of that too", ready, |answer| answer.1 == "leads\n").await;
    drop(nodes);
    running.end().await;
}

/// Has the coordinator decide something; says whether that was stored.
async fn change(client: &mut Client) -> bool {
    let observes = client.status().await.unwrap().mode() == Mode::Observe;
    client.set_mode(if observes { Mode::Recover } else { Mode::Observe }).await.is_ok()
}
