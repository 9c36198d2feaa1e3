//! Every kind of caller against every kind of policy, and what is left of a snapshot.

use std::os::unix::net::UnixStream;
use std::sync::Arc;

use telltale_query::Query;
use telltale_schema::chip::ChipIdentity;
use telltale_schema::clock::Timestamp;
use telltale_schema::memory::{MemoryKind, MemorySpace};
use telltale_schema::process::ProcessIdentity;
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::{
    Device, Holder, KindMemory, Process, ProcessState, RecordingFaults, Snapshot, SourceError,
    SourceNote, SourceStatus, SpaceUsage, Telemetry,
};

use super::{AccessPolicy, Caller, Visibility, visibility, visible};

const NOW: Timestamp = Timestamp(1);
const SERVICE: u32 = 500;
const ALICE: u32 = 1000;
const BOB: u32 = 1001;
const NOBODY: u32 = 65_534;

fn local(uid: u32, gid: u32, groups: &[u32]) -> Caller {
    Caller::Local { uid, gid, groups: groups.to_vec() }
}

#[test]
fn sight_follows_from_what_was_verified() {
    let installed = AccessPolicy::new(SERVICE, Some(SERVICE));
    let own = AccessPolicy::new(ALICE, None);
    let by_root = AccessPolicy::new(0, Some(0));
    let by_nobody = AccessPolicy::new(NOBODY, Some(NOBODY));
    let alice = Visibility::Own { uid: ALICE };
    let cases = [
        (&installed, local(0, 0, &[]), Visibility::Everything),
        (&installed, local(SERVICE, SERVICE, &[]), Visibility::Everything),
        (&installed, local(SERVICE, 100, &[]), Visibility::Everything),
        (&installed, local(ALICE, 100, &[]), alice),
        (&installed, local(ALICE, SERVICE, &[]), Visibility::Everything),
        (&installed, local(ALICE, 100, &[27, SERVICE]), Visibility::Everything),
        (&installed, local(NOBODY, NOBODY, &[]), Visibility::DevicesOnly),
        (&installed, local(NOBODY, SERVICE, &[SERVICE]), Visibility::DevicesOnly),
        (&own, local(ALICE, 100, &[]), Visibility::Everything),
        (&own, local(BOB, 100, &[]), Visibility::Own { uid: BOB }),
        (&own, local(0, 0, &[]), Visibility::Everything),
        // Many a container's users have group 0.
        (&by_root, local(ALICE, 0, &[0]), alice),
        (&by_nobody, local(NOBODY, NOBODY, &[]), Visibility::DevicesOnly),
        (&by_nobody, local(ALICE, NOBODY, &[NOBODY]), alice),
        (&installed, Caller::Token, Visibility::Everything),
        (&installed, Caller::Certificate, Visibility::Everything),
        (&installed, Caller::Anonymous, Visibility::DevicesOnly),
    ];
    for (policy, caller, expected) in cases {
        assert_eq!(visibility(policy, &caller), expected, "{policy:?} {caller:?}");
    }
}

#[test]
fn only_an_installed_directory_has_a_group() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = telltale_harness::Scratch::new();
    let me = rustix::process::geteuid().as_raw();
    let group = rustix::process::getegid().as_raw();
    for (mode, expected) in [(0o700, None), (0o1777, None), (0o3777, Some(group))] {
        std::fs::set_permissions(scratch.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        let policy = AccessPolicy::of_directory(scratch.path()).unwrap();
        let expected = AccessPolicy::new(me, expected);
        assert_eq!((policy.service_uid, policy.group), (expected.service_uid, expected.group));
    }
}

#[test]
fn the_kernel_reports_who_is_at_the_other_end() {
    let (one, _other) = UnixStream::pair().unwrap();
    let Caller::Local { uid, gid, .. } = Caller::of_socket(&one).unwrap() else {
        panic!("a Unix socket has a local peer");
    };
    assert_eq!(uid, rustix::process::geteuid().as_raw());
    assert_eq!(gid, rustix::process::getegid().as_raw());
    let port = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    assert!(Caller::of_socket(&port).is_err());
}

fn process(pid: u32, uid: Reading<u32>) -> Process {
    Process {
        identity: Some(ProcessIdentity {
            boot_id: [7; 16],
            pid_namespace: 1,
            pid,
            start_time_ticks: 9,
        }),
        pid: Some(pid),
        namespace_pid: None,
        name: format!("name-{pid}"),
        command: Reading::new(format!("secret {pid}"), NOW),
        uid,
        user: Reading::new(format!("user-{pid}"), NOW),
        container: None,
        state: ProcessState::Alive,
        known_by: None,
        started_at: None,
        usage: None,
        uptime_seconds: Reading::new(1.0, NOW),
        devices: Vec::new(),
        faults: RecordingFaults::default(),
        metrics: [].into(),
    }
}

/// Alice's process 11, Bob's 12 and one that is unnamed, all on one device.
fn shared_machine() -> Arc<Snapshot> {
    let holder = |pid| Holder { pid: Some(pid), open_descriptors: 1, memory_known: false };
    let used_bytes = Reading::absent(Absence::Unknown, "held by pid 12 and 2 more");
    let error = |subject: &str| SourceError {
        subject: subject.to_owned(),
        reason: Absence::Refused,
        detail: format!("secret of {subject}"),
    };
    let source = |name: &str, subject: &str| SourceStatus {
        name: name.to_owned(),
        duration_ns: 1,
        errors: vec![error(subject)],
        errors_dropped: 3,
        notes: vec![SourceNote {
            subject: String::from("user 1002"),
            count: 2,
            detail: format!("secret of {subject}"),
        }],
    };
    Arc::new(Snapshot {
        collected_in_ns: 1,
        devices: vec![Device {
            id: String::from("chip"),
            identity: ChipIdentity::default().into(),
            facts: Reading::absent(Absence::Unknown, ""),
            telemetry: Telemetry::absent(Absence::Unknown, ""),
            spaces: vec![SpaceUsage {
                space: MemorySpace::Dram,
                used_bytes,
                capacity_bytes: Reading::new(9, NOW),
                capacity_source: None,
            }],
            kinds: vec![KindMemory {
                kind: MemoryKind::Dram,
                total_bytes: 5,
                processes_bytes: 5,
                unattributed_bytes: 0,
                ghost_bytes: 0,
                live_buffers: Some(2),
            }],
            holders: Reading::new(vec![holder(11), holder(12), holder(13)], NOW),
            faults: Vec::new(),
            health_not_kept: false,
        }],
        processes: vec![
            process(11, Reading::new(ALICE, NOW)),
            process(12, Reading::new(BOB, NOW)),
            process(13, Reading::absent(Absence::Hidden, "")),
        ],
        closed_processes: 4,
        sources: vec![
            source("tenstorrent", "tenstorrent!0/tt_aiclk"),
            source("endpoints", "metrics_12.sock"),
        ],
        ..Snapshot::empty(NOW)
    })
}

#[test]
fn others_are_counted_and_not_named() {
    let whole = shared_machine();
    for (visibility, own_pids) in
        [(Visibility::Own { uid: ALICE }, vec![11]), (Visibility::DevicesOnly, vec![])]
    {
        let part = visible(&whole, visibility);
        let pids: Vec<u32> = part.processes.iter().filter_map(|process| process.pid).collect();
        assert_eq!(pids, own_pids);
        assert_eq!(part.withheld_processes, 3 - u64::try_from(own_pids.len()).unwrap());
        assert_eq!(part.closed_processes, 4);
        assert_eq!(part.devices[0].kinds, whole.devices[0].kinds);
        let holders = part.devices[0].holders.value().unwrap();
        assert_eq!(holders.len(), 3, "how many hold the device is for everyone");
        assert_eq!(holders.iter().filter_map(|one| one.pid).collect::<Vec<u32>>(), own_pids);
        assert_eq!(part.sources[0], whole.sources[0], "a device's error is for everyone");
        assert_eq!(part.sources[1].errors[0].reason, Absence::Refused);
        let text = serde_json::to_string(&*part).unwrap();
        for other in ["name-12", "secret 12", "user-12", "pid 12", "metrics_12", "name-13"] {
            assert!(!text.contains(other), "{other} in {text}");
        }
    }
    assert!(Arc::ptr_eq(&visible(&whole, Visibility::Everything), &whole));
}

#[test]
fn one_snapshot_is_cut_once_for_each_user_and_a_newer_one_again() {
    let policy = AccessPolicy::new(SERVICE, None);
    let (first, second) = (shared_machine(), shared_machine());
    let alice = Visibility::Own { uid: ALICE };
    let seen = policy.visible(&first, alice);
    assert!(Arc::ptr_eq(&seen, &policy.visible(&first, alice)));
    assert!(!Arc::ptr_eq(&seen, &policy.visible(&first, Visibility::DevicesOnly)));
    assert!(!Arc::ptr_eq(&seen, &policy.visible(&second, alice)));
    for uid in 2000..2100 {
        assert_eq!(policy.visible(&second, Visibility::Own { uid }).withheld_processes, 3);
    }
    assert_eq!(policy.shown.lock().unwrap().to.len(), super::MOST_REMEMBERED);
}

#[test]
fn a_query_is_asked_of_what_its_asker_sees_and_of_nothing_else() {
    let policy = AccessPolicy::new(SERVICE, None);
    let whole = shared_machine();
    for (visibility, text, processes, devices) in [
        (Visibility::Everything, "pid == 12", 1, 0),
        (Visibility::Own { uid: ALICE }, "pid == 12", 0, 0),
        (Visibility::Own { uid: ALICE }, "pid == 11", 1, 0),
        (Visibility::DevicesOnly, "pid == 11", 0, 0),
        (Visibility::DevicesOnly, "holders == 3", 0, 1),
    ] {
        let query = Query::parse(text).unwrap();
        let rows = policy.chosen(&whole, visibility, &query).unwrap();
        let found = (rows.processes.len(), rows.devices.len());
        assert_eq!(found, (processes, devices), "{visibility:?} {text}");
    }
}

#[test]
fn patterns_that_take_long_are_given_up_for_who_does_not_see_everything() {
    let policy = AccessPolicy::new(SERVICE, None);
    let mut many = (*shared_machine()).clone();
    let long = Process {
        command: Reading::new("x".repeat(4096), NOW),
        ..process(1, Reading::new(ALICE, NOW))
    };
    many.processes = vec![long; 3000];
    let many = Arc::new(many);
    let patterns = vec!["/(x+x?){8}y/"; 16].join(" or ");
    let query = Query::parse(&patterns).unwrap();
    let began = telltale_collector::clock::thread_cpu();
    let given_up = policy.chosen(&many, Visibility::Own { uid: ALICE }, &query);
    let took = telltale_collector::clock::thread_cpu() - began;
    assert!(given_up.unwrap_err().to_string().contains("takes more than 10ms"));
    println!("given up after {took:?}");
}
