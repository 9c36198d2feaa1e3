//! Several nodes, as processes of one host: the same command on each, as under torchrun.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::train::fixture::{Place, Running};

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

#[test]
fn a_node_whose_coordinator_is_gone_ends_its_workers() {
    let place = Place::new();
    let endpoint = endpoint();
    let arguments = ["--nnodes=2", "--rdzv-endpoint", &endpoint, "--lost-after", "2"];
    let script = "touch ready-$RANK; exec sleep 600";
    let arguments = [&arguments[..], &["--", "sh", "-c", script]].concat();
    let mut head = place.start(&arguments);
    // It listens before the other looks for it.
    telltale_harness::wait_until("the coordinator", crate::train::fixture::TIMEOUT, || {
        std::net::TcpStream::connect(&endpoint).is_ok()
    });
    let other = place.start(&arguments);
    ["ready-0", "ready-1"].into_iter().for_each(|ready| place.wait_for(ready));
    head.process.kill();
    let ended = other.wait();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.errors.contains("the coordinator was not reached any more"), "{ended:?}");
}

#[test]
fn a_coordinator_that_others_can_reach_needs_certificates() {
    let ended = Place::new().run(&["--nnodes=2", "--rdzv-endpoint=0.0.0.0:0", "true"]);
    assert_eq!(ended.code, Some(64));
    for expected in
        ["--token-file token", "--certificate certificate.pem", "docs/cluster-deploy.md"]
    {
        assert!(ended.errors.contains(expected), "{ended:?}");
    }
}
