//! Several nodes, as processes of one host: the same command on each, as under torchrun.

use std::sync::atomic::{AtomicU8, Ordering};

use telltale_harness::wait_until;

use crate::train::fixture::{Place, Running, TIMEOUT};

const SCRIPT: &str = "echo $RANK $WORLD_SIZE $GROUP_RANK $GROUP_WORLD_SIZE > rank-$RANK";

/// An endpoint on the loopback at which nothing listens: at an address that no other process of a test uses, since
/// any connection may be given a port that is free now.
fn endpoint() -> String {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    let [_, _, high, low] = std::process::id().to_be_bytes();
    // 127.0 is everyone's.
    format!("127.{}.{low}.{}:29400", high | 1, NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Starts the same command as two nodes.
fn two(place: &Place, arguments: &[&str]) -> [Running; 2] {
    [place.start(arguments), place.start(arguments)]
}

#[test]
fn the_same_command_on_each_node_is_one_job() {
    let place = Place::new();
    let endpoint = endpoint();
    let arguments =
        ["--nnodes=2", "--nproc=2", "--rdzv-backend=c10d", "--rdzv-endpoint", &endpoint];
    let nodes = two(&place, &[&arguments[..], &["--", "sh", "-c", SCRIPT]].concat());
    for ended in nodes.map(Running::wait) {
        assert_eq!((ended.code, &*ended.errors), (Some(0), ""), "{ended:?}");
    }
    for rank in 0..4 {
        let written = place.read(&format!("rank-{rank}"));
        assert_eq!(written, format!("{rank} 4 {} 2\n", rank / 2));
    }
    place.assert_nothing_left();
}

#[test]
fn every_node_ends_as_the_worker_that_failed_first() {
    let place = Place::new();
    let endpoint = endpoint();
    let (address, port) = endpoint.rsplit_once(':').expect("an address has a port");
    let of = |rank| {
        let where_it_is = ["--master_addr", address, "--master_port", port, "--node_rank", rank];
        let script = "[ $RANK = 1 ] && exit 6; exec sleep 600";
        place.start(&[&["--nnodes", "2"], &where_it_is[..], &["--", "sh", "-c", script]].concat())
    };
    for ended in [of("1"), of("0")].map(Running::wait) {
        assert_eq!(ended.code, Some(6), "{ended:?}");
        assert!(ended.errors.contains("rank 1 on"), "{ended:?}");
    }
    place.assert_nothing_left();
}

#[test]
fn a_job_may_start_with_the_least_number_of_nodes() {
    let place = Place::new();
    let endpoint = endpoint();
    let arguments =
        ["--nnodes=1:2", "--rdzv-conf=last_call_timeout=1", "--rdzv-endpoint", &endpoint];
    let ended = place.run(&[&arguments[..], &["--", "sh", "-c", SCRIPT]].concat());
    assert_eq!((ended.code, &*place.read("rank-0")), (Some(0), "0 1 0 1\n"), "{ended:?}");
}

/// Waits until the node that runs the coordinator listens, so that another joins it.
fn wait_for_coordinator(endpoint: &str) {
    wait_until("the coordinator", TIMEOUT, || std::net::TcpStream::connect(endpoint).is_ok());
}

#[test]
fn a_node_whose_coordinator_is_gone_ends_its_workers_with_the_time_to_save() {
    let place = Place::new();
    let endpoint = endpoint();
    let arguments = ["--nnodes=2", "--rdzv-endpoint", &endpoint, "--lost-after", "2"];
    let script = "trap 'sleep 3; touch saved-by-$WHO; exit 0' TERM; touch ready-$WHO; while :; do sleep 0.1; done";
    let arguments = [&arguments[..], &["--", "sh", "-c", script]].concat();
    let mut head = place.start_with(&arguments, &[("WHO", "head")]);
    wait_for_coordinator(&endpoint);
    let other = place.start_with(&arguments, &[("WHO", "other")]);
    ["ready-head", "ready-other"].into_iter().for_each(|ready| place.wait_for(ready));
    head.process.kill();
    let ended = other.wait();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.errors.contains("the coordinator was not reached any more"), "{ended:?}");
    assert!(place.path("saved-by-other").exists(), "{ended:?}");
}

#[test]
fn jobs_of_other_names_at_one_endpoint_are_kept_apart() {
    let place = Place::new();
    let endpoint = endpoint();
    let of = |name: &str| {
        let arguments = ["--nnodes=2", "--rdzv-endpoint", &endpoint, "--rdzv-id", name];
        let conf = ["--rdzv-conf", "join_timeout=10", "--", "touch", "ran"];
        place.start(&[&arguments[..], &conf].concat())
    };
    let head = of("one");
    wait_for_coordinator(&endpoint);
    let other = of("two").wait();
    assert_eq!(other.code, Some(2), "{other:?}");
    assert!(other.errors.contains("--rdzv-id is two here and one there"), "{other:?}");
    let head = head.wait();
    assert_eq!(head.code, Some(1), "{head:?}");
    assert!(head.errors.contains("not all nodes came within 10 s"), "{head:?}");
    assert!(!place.path("ran").exists());
    place.assert_nothing_left();
}

#[test]
fn a_node_with_other_numbers_is_refused_with_both() {
    let place = Place::new();
    let endpoint = endpoint();
    let of = |nodes: &str, workers: &str| {
        let arguments = ["--nnodes", nodes, "--nproc", workers, "--rdzv-endpoint", &endpoint];
        place.start(&[&arguments[..], &["--", "sh", "-c", SCRIPT]].concat())
    };
    let head = of("2", "2");
    wait_for_coordinator(&endpoint);
    for (nodes, workers, expected) in [
        ("2", "1", "--nproc-per-node is 1 here and 2 there"),
        ("2", "3", "--nproc-per-node is 3 here and 2 there"),
        ("3", "2", "--nnodes is 3 here and 2 there"),
    ] {
        let ended = of(nodes, workers).wait();
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.errors.contains(expected), "{ended:?}");
    }
    // The job has not noticed.
    let fits = of("2", "2").wait();
    assert_eq!((fits.code, head.wait().code), (Some(0), Some(0)), "{fits:?}");
    assert_eq!(place.read("rank-3"), "3 4 1 2\n");
}

#[test]
fn a_node_that_goes_is_waited_for_and_reported() {
    for is_killed in [false, true] {
        let place = Place::new();
        let endpoint = endpoint();
        let arguments = ["--nnodes=2", "--rdzv-endpoint", &endpoint, "--max-restarts=1"];
        let conf =
            ["--rdzv-conf=join_timeout=20", "--", "sh", "-c", "touch ready-$RANK; exec sleep 600"];
        let arguments = [&arguments[..], &conf].concat();
        let head = place.start(&arguments);
        wait_for_coordinator(&endpoint);
        let mut other = place.start(&arguments);
        ["ready-0", "ready-1"].into_iter().for_each(|ready| place.wait_for(ready));
        match is_killed {
            true => drop(other.process.kill()),
            false => other.process.interrupt(),
        }
        let head = head.wait();
        assert_eq!(head.code, Some(1), "{head:?}");
        assert!(head.errors.contains("waiting for nodes: 1 of 2 are here"), "{head:?}");
        assert!(head.errors.contains("not all nodes came within 20 s"), "{head:?}");
        assert_eq!(head.errors.contains("is not heard"), is_killed, "{head:?}");
    }
}

#[test]
fn a_coordinator_that_others_can_reach_needs_certificates() {
    let ended = Place::new().run(&["--nnodes=2", "--rdzv-endpoint=0.0.0.0:29400", "true"]);
    assert_eq!(ended.code, Some(64));
    for expected in
        ["--token-file token", "--certificate certificate.pem", "docs/cluster-deploy.md"]
    {
        assert!(ended.errors.contains(expected), "{ended:?}");
    }
}
