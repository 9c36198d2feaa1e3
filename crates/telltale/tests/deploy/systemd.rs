//! Units, users and directories: what systemd's own tools make of them.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;

use telltale_harness::needs_root;

use crate::deploy::commands::{INSTALLED, SERVE, serves};
use crate::deploy::files::{deploy, is_silent, text, tool};
use crate::deploy::installed::Installed;

/// Tenths of `systemd-analyze security`'s points from 0 (safe) to 10: what the unit must not
/// exceed. Most of what is left is that it checks the processes of others and listens on a port.
const EXPOSURE_TENTHS: &str = "20";

/// The same with the two capabilities for containers that share nothing.
const EXPOSURE_WITH_CAPABILITIES_TENTHS: &str = "25";

/// Makes the user and the directories below a root, as an installation does. None where a tool
/// is missing, which is recorded.
pub(crate) fn create(test: &str, installed: &Installed) -> Option<()> {
    let root = format!("--root={}", installed.root().display());
    fs::create_dir_all(installed.path("/etc")).unwrap();
    is_silent_of(&tool(test, Command::new("systemd-sysusers").arg(&root))?);
    let mut tmpfiles = Command::new("systemd-tmpfiles");
    is_silent(&tool(test, tmpfiles.args([&root, "--create", "telltale.conf"]))?);
    Some(())
}

/// Number of user and group telltale below a root.
pub(crate) fn account(installed: &Installed) -> (u32, u32) {
    let passwd = fs::read_to_string(installed.path("/etc/passwd")).unwrap();
    let line = passwd.lines().find(|line| line.starts_with("telltale:")).unwrap();
    let fields: Vec<&str> = line.split(':').collect();
    assert_eq!((fields[5], fields[6]), ("/var/lib/telltale", "/usr/sbin/nologin"));
    (fields[2].parse().unwrap(), fields[3].parse().unwrap())
}

/// As [`is_silent`], for a tool that tells what it makes.
#[track_caller]
fn is_silent_of(output: &std::process::Output) {
    let err = String::from_utf8_lossy(&output.stderr);
    let made = |line: &str| line.starts_with("Creating group") || line.starts_with("Creating user");
    assert!(output.status.success() && err.lines().all(made), "{err}");
}

#[test]
fn users_and_directories_are_made_and_made_again() {
    let test = "deploy::users_and_directories_are_made_and_made_again";
    if !needs_root(test) {
        return;
    }
    let installed = Installed::new();
    for _ in 0..2 {
        let Some(()) = create(test, &installed) else { return };
        let (uid, gid) = account(&installed);
        assert!((1..1000).contains(&uid), "a user of the system");
        for (path, mode) in [("/run/tt", 0o3777), ("/var/lib/telltale", 0o700)] {
            let found = installed.path(path).metadata().unwrap();
            assert_eq!((found.uid(), found.gid()), (uid, gid), "{path}");
            assert_eq!(found.permissions().mode() & 0o7777, mode, "{path}");
        }
    }
}

/// The values of a key of the service's unit.
fn values(key: &str) -> Vec<String> {
    values_of("telltale.service", key)
}

fn values_of(unit: &str, key: &str) -> Vec<String> {
    let text = text(&format!("systemd/{unit}"));
    let values = text.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    values.map(str::to_owned).collect()
}

#[test]
fn what_the_unit_starts_is_a_command_of_the_program() {
    let [line] = &values("ExecStart")[..] else { panic!("one command") };
    let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    let state = [(String::from("STATE_DIRECTORY"), String::from("/var/lib/telltale"))];
    serves(&words, &state);
    assert_eq!(values("StateDirectory"), ["telltale"], "below /var/lib");
    assert_eq!(values("Type"), ["notify"]);
}

/// What listens on the loopback asks the kernel for its callers, which takes a netlink socket.
#[test]
fn what_listens_on_the_loopback_may_ask_the_kernel_for_its_callers() {
    for unit in ["telltale.service", "telltale-coordinator@.service", "telltale-agent@.service"] {
        let families = values_of(unit, "RestrictAddressFamilies");
        assert_eq!(families, ["AF_UNIX AF_INET AF_INET6 AF_NETLINK"], "{unit}");
        let filters = values_of(unit, "SystemCallFilter").join(" ");
        assert!(!filters.contains("~@network-io"), "{unit}: {filters}");
    }
}

#[test]
fn the_socket_is_the_one_that_the_service_would_bind() {
    let socket = text("systemd/telltale.socket");
    let value = |key: &str| {
        let mut found = socket.lines().filter_map(|line| line.strip_prefix(key));
        found.next().unwrap().trim_start_matches('=').to_owned()
    };
    let shown = serves(&[SERVE.to_owned()], &[]);
    assert_eq!(value("FileDescriptorName"), "http");
    assert_eq!(shown["http.listen"], serde_json::json!([value("ListenStream")]));
    assert_eq!(value("Service"), "telltale.service");
}

#[test]
fn systemd_has_nothing_to_say_of_the_units() {
    let test = "deploy::systemd_has_nothing_to_say_of_the_units";
    let installed = Installed::new();
    let root = format!("--root={}", installed.root().display());
    let units = installed.path("/usr/lib/systemd/system");
    // Units of systemd itself that ours name.
    for name in ["sysinit.target", "basic.target", "shutdown.target", "sockets.target"] {
        fs::write(units.join(name), "[Unit]\nDescription=of systemd\n").unwrap();
    }
    // The program that the unit reloads with, which a machine has.
    fs::create_dir(installed.path("/bin")).unwrap();
    fs::copy(installed.path(INSTALLED), installed.path("/bin/sh")).unwrap();
    let dropped_in = installed.path("/etc/systemd/system/telltale.service.d");
    fs::create_dir_all(&dropped_in).unwrap();
    let cases: [(&[&str], &str); 4] = [
        (&[], EXPOSURE_TENTHS),
        (&["nvidia"], EXPOSURE_TENTHS),
        (&["containers"], EXPOSURE_WITH_CAPABILITIES_TENTHS),
        (&["containers", "nvidia"], EXPOSURE_WITH_CAPABILITIES_TENTHS),
    ];
    for (names, most) in cases {
        for entry in fs::read_dir(&dropped_in).unwrap() {
            fs::remove_file(entry.unwrap().path()).unwrap();
        }
        for name in names {
            let from = deploy(&format!("systemd/telltale-{name}.conf"));
            fs::copy(from, dropped_in.join(format!("{name}.conf"))).unwrap();
        }
        let mut verify = Command::new("systemd-analyze");
        verify.args(["verify", "--man=no", &root, "telltale.service", "telltale.socket"]);
        let Some(output) = tool(test, &mut verify) else { return };
        is_silent(&output);
        let mut security = Command::new("systemd-analyze");
        security.args(["security", "--offline=true", "--no-pager", &root]);
        security.arg(format!("--threshold={most}")).arg("telltale.service");
        let output = security.output().unwrap();
        let points = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{points}{}", String::from_utf8_lossy(&output.stderr));
    }
}
