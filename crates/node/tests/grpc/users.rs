//! Real users at one socket: root, the service's group, two strangers, and `nobody`.

use std::os::unix::fs::lchown;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};

use telltale_client::ConnectError;
use telltale_harness::{as_user, needs_root};
use telltale_schema::snapshot::{LeftOut, Snapshot};

use crate::grpc::machine::{ALICE, BOB, machine};
use crate::grpc::serving::{SERVICE, Served, wait};

const SOCKET: &str = "TELLTALE_TEST_SOCKET";
const FILTER: &str = "TELLTALE_TEST_FILTER";
const NOBODY: u32 = 65_534;

/// Prints what it is shown, if this process was started by [`asked_as`].
#[test]
fn play() {
    let Some(socket) = std::env::var_os(SOCKET) else { return };
    let found = wait(async {
        let mut client = telltale_client::connect(Path::new(&socket)).await.unwrap();
        match std::env::var(FILTER) {
            Ok(filter) => client.selected(&filter, false).await.unwrap(),
            Err(_) => client.snapshot(false).await.unwrap(),
        }
    });
    println!("\nshown:{}", serde_json::to_string(&found).unwrap());
}

/// What `user` with these groups is shown.
fn asked_as(served: &Served, program: &Path, uid: u32, groups: &str) -> Snapshot {
    asked(served, program, uid, groups, None)
}

/// The same of the rows that a filter wants.
fn asked(
    served: &Served,
    program: &Path,
    uid: u32,
    groups: &str,
    filter: Option<&str>,
) -> Snapshot {
    let mut command = Command::new("setpriv");
    command.arg(format!("--reuid={uid}")).arg(format!("--regid={uid}"));
    command.arg(match groups {
        "" => String::from("--clear-groups"),
        groups => format!("--groups={groups}"),
    });
    command.arg(program).args(["--exact", "grpc::users::play", "--nocapture", "--test-threads=1"]);
    command.env(SOCKET, served.socket()).stderr(Stdio::inherit());
    if let Some(filter) = filter {
        command.env(FILTER, filter);
    }
    let output = command.output().expect("setpriv of util-linux runs");
    let text = String::from_utf8(output.stdout).expect("text");
    let shown = text.lines().find_map(|line| line.strip_prefix("shown:"));
    let shown = shown.unwrap_or_else(|| panic!("nothing was shown: {text}"));
    serde_json::from_str(shown).expect("a snapshot")
}

/// A copy of this program where every user can start it.
fn program(served: &Served) -> std::path::PathBuf {
    let copy = served.scratch.join("program");
    let own = std::env::current_exe().expect("a test knows its own path");
    let copied = Command::new("cp").arg(own).arg(&copy).status().expect("cp runs");
    assert!(copied.success(), "the scratch directory has no room");
    copy
}

#[test]
fn each_user_sees_the_devices_and_its_own_processes() {
    if !needs_root("node::each_user_sees_the_devices_and_its_own_processes") {
        return;
    }
    let whole = machine(2, 6);
    let served = Served::installed(whole.clone());
    let program = program(&served);
    let group = SERVICE.to_string();
    let cases = [
        (0, "", 6, "root"),
        (ALICE, "", 3, "a user"),
        (BOB, "", 3, "another user"),
        (61_009, "", 0, "a user without processes"),
        (61_009, &group, 6, "a member of the service's group"),
        (NOBODY, "", 0, "the user that stands for those without a number"),
        (NOBODY, &group, 0, "nobody in the service's group"),
    ];
    for (uid, groups, processes, who) in cases {
        let shown = asked_as(&served, &program, uid, groups);
        assert_eq!(shown.processes.len(), processes, "{who}");
        assert_eq!(shown.withheld_processes, 6 - u64::try_from(processes).unwrap(), "{who}");
        assert_eq!(shown.devices.len(), 2, "{who}");
        for (one, all) in shown.devices.iter().zip(&whole.devices) {
            assert_eq!(one.telemetry, all.telemetry, "{who}");
            assert_eq!(one.holders.value().unwrap().len(), 6, "{who}");
        }
        if processes < 6 {
            let text = serde_json::to_string(&shown).unwrap();
            let other = if uid == ALICE { "bob" } else { "alice" };
            assert!(!text.contains(other), "{who} reads of {other}: {text}");
        }
    }
}

#[test]
fn a_filter_reports_nothing_of_what_its_user_may_not_see() {
    if !needs_root("node::a_filter_reports_nothing_of_what_its_user_may_not_see") {
        return;
    }
    let served = Served::installed(machine(2, 6));
    let program = program(&served);
    // Each is true of Bob's processes or false of them, in whatever way it can be asked.
    let cases = [
        ("user == bob", 0, 0),
        ("/bob/", 0, 0),
        ("pid in (101, 103, 105)", 0, 0),
        ("dram > 0 and not user == alice", 0, 0),
        ("name ~ /bob/ or device == 251732000", 3, 1),
        ("user != alice", 0, 0),
        ("state == alive", 3, 2),
        ("holders == 6", 3, 2),
    ];
    for (filter, processes, devices) in cases {
        let shown = asked(&served, &program, ALICE, "", Some(filter));
        let found = (shown.processes.len(), shown.devices.len());
        assert_eq!(found, (processes, devices), "{filter}");
        let left_out = LeftOut { devices: count(2 - devices), processes: count(3 - processes) };
        assert_eq!((shown.left_out, shown.withheld_processes), (Some(left_out), 3), "{filter}");
        let text = serde_json::to_string(&shown).unwrap();
        assert!(!text.contains("bob"), "{filter}: {text}");
    }
    let all = asked(&served, &program, 0, "", Some("user == bob"));
    assert_eq!((all.processes.len(), all.devices.len()), (3, 2), "root sees Bob's");
}

fn count(of: usize) -> u64 {
    u64::try_from(of).expect("a few")
}

#[test]
fn a_strangers_socket_is_not_believed() {
    if !needs_root("node::a_strangers_socket_is_not_believed") {
        return;
    }
    let mut served = Served::installed(machine(1, 1));
    served.stop().unwrap();
    let _squatter = UnixListener::bind(served.socket()).unwrap();
    lchown(served.socket(), Some(BOB), Some(BOB)).unwrap();
    let result = wait(async { telltale_client::connect(&served.socket()).await });
    assert!(matches!(result, Err(ConnectError::Stranger { uid: BOB, .. })));
}

#[test]
fn a_private_service_lets_nobody_in() {
    if !needs_root("node::a_private_service_lets_nobody_in") {
        return;
    }
    let served = Served::of(machine(1, 1));
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("test -e {}", served.socket().display()));
    assert!(!as_user(ALICE, ALICE, command).status().unwrap().success());
}
