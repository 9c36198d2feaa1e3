//! 256 machines, every tenth of them silent.

use std::fs;
use std::time::Instant;

use telltale_harness::{Scratch, wait_until};
use telltale_schema::fleet::{Fleet, HostState};

use super::host_services::{HostServices, refused, silent};
use crate::cli::command::{Running, TIMEOUT, alone, telltale};

const HOSTS: usize = 256;
const SILENT: usize = 26;

#[test]
fn the_first_frame_waits_for_nobody_who_is_silent() {
    let _alone = alone();
    let host_services = HostServices::of(HOSTS - SILENT);
    // That many services in one thread need their time to begin.
    wait_until("all services", TIMEOUT, || {
        let begun = super::hosts(&host_services.addresses.join(","), &["--timeout", "60"]);
        begun.status == Some(0)
    });
    let still: Vec<_> = (0..SILENT - 6).map(|_| silent()).collect();
    let mut names = host_services.addresses.clone();
    names.extend(still.iter().map(|(_, address)| address.clone()));
    names.extend((0..6).map(|_| refused()));
    let place = Scratch::new();
    let list = place.join("hosts");
    fs::write(&list, names.join("\n")).unwrap();
    let list = format!("@{}", list.display());
    let mut command = telltale();
    command.args(["smi", "--hosts", &list, "--json", "-w", "0.5", "--timeout", "5"]);
    let begun = Instant::now();
    let mut watching = Running::start(&mut command);
    let first = watching.line();
    let took = begun.elapsed();
    let first: Fleet = serde_json::from_str(&first).unwrap();
    assert_eq!(first.hosts.len(), HOSTS);
    let there = first.count(HostState::Answering);
    println!("{HOSTS} hosts, {SILENT} silent: first frame after {took:?} with {there} of them");
    // Much less than the deadline of those who are silent.
    assert!(took.as_secs_f64() < 4.0, "{took:?}");
    let (mut last, mut all) = (None, None);
    wait_until("all to be known", TIMEOUT, || {
        let fleet: Fleet = serde_json::from_str(&watching.line()).unwrap();
        let there = fleet.count(HostState::Answering);
        if there == HOSTS - SILENT && all.is_none() {
            all = Some(begun.elapsed());
        }
        let known = there == HOSTS - SILENT && fleet.count(HostState::Unreachable) == SILENT;
        last = Some(fleet);
        known
    });
    println!("all that answer were there after {:?}", all.unwrap());
    let last = last.unwrap();
    let reasons = last.hosts[HOSTS - SILENT..].iter().map(|host| host.reason.as_deref().unwrap());
    assert_eq!(reasons.filter(|words| words.contains("did not answer within 5 s")).count(), 20);
}
