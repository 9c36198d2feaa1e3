//! The Debian package: installed, upgraded from an earlier one and purged, with systemd running its service.

use std::process::Command;

use telltale_harness::Scratch;

use super::booted::Booted;
use super::made::{is_tried, made};
use super::system::{System, printed, scratch};

/// A system as Debian's installer leaves it: systemd is there.
const WITH_SYSTEMD: [&str; 4] = ["systemd", "systemd-sysv", "dbus", "iproute2"];

/// The package again under an earlier version, for nothing has been released before.
fn earlier(package: &std::path::Path, scratch: &Scratch) -> std::path::PathBuf {
    let (tree, out) = (scratch.join("tree"), scratch.join("telltale-earlier.deb"));
    let script = "dpkg-deb --raw-extract \"$1\" \"$2\" && sed -i 's/^Version: .*/Version: 0.0.1-1/' \"$2/DEBIAN/control\" \
                  && dpkg-deb --build --root-owner-group -Zgzip -z1 \"$2\" \"$3\"";
    let mut shell = Command::new("sh");
    shell.args(["-c", script, "sh"]).arg(package).arg(&tree).arg(&out);
    printed("dpkg-deb", &shell.output().unwrap());
    out
}

#[test]
fn it_is_installed_upgraded_and_purged_and_its_service_runs_as_its_unit_says() {
    if !is_tried(
        "debian::it_is_installed_upgraded_and_purged_and_its_service_runs_as_its_unit_says",
    ) {
        return;
    }
    let (scratch, package) = (scratch(), made("telltale_", "_amd64.deb"));
    let system = System::debian("bookworm", &WITH_SYSTEMD);
    let new = system.put(&package, "/packages");
    let old = system.put(&earlier(&package, &scratch), "/packages");
    let booted = Booted::start(system);
    let before = booted.system.files();
    let accounts = std::fs::read_to_string(booted.system.path("/etc/passwd")).unwrap();
    let install =
        |file: &str| booted.ok(&format!("apt-get install -y --no-install-recommends {file}"));

    install(&old);
    runs(&booted);
    assert!(booted.ok("dpkg-query -W -f '${Version}' telltale").starts_with("0.0.1"));
    let config = "/etc/telltale/telltale.toml";
    booted.ok(&format!("echo 'interval_seconds = 2' >> {config}"));
    booted.ok("systemctl reload telltale");
    let (history, pid) =
        (booted.ok("ls -i /var/lib/telltale/"), booted.property("telltale", "MainPID"));

    install(&new);
    runs(&booted);
    assert_ne!(booted.property("telltale", "MainPID"), pid, "the new program runs");
    assert!(booted.ok(&format!("cat {config}")).ends_with("interval_seconds = 2\n"));
    for file in history.lines().filter(|line| !line.contains('-')) {
        assert!(booted.ok("ls -i /var/lib/telltale/").contains(file), "{file} is kept");
    }

    // What an administrator switched off stays so.
    booted.ok("systemctl disable --now telltale");
    booted.ok(&format!("apt-get install -y --reinstall --no-install-recommends {new}"));
    assert_eq!(booted.ok("systemctl is-enabled telltale || true").trim(), "disabled");

    booted.ok("apt-get remove -y telltale");
    assert!(booted.ok(&format!("cat {config}")).ends_with("interval_seconds = 2\n"), "kept");
    booted.ok("apt-get purge -y telltale");
    let running = booted.ok("cat /proc/[0-9]*/comm");
    assert!(running.contains("systemd") && !running.contains("telltale"), "{running}");
    assert_eq!(booted.ok("ls /run | grep -x tt || true"), "");
    let (after, units) =
        (booted.system.files(), booted.ok("ls -R /etc/systemd/system /var/lib/systemd"));
    assert!(!units.contains("telltale"), "{units}");
    let differs = |file: &&String| !before.contains(file);
    assert_eq!(after.iter().filter(differs).collect::<Vec<_>>(), Vec::<&String>::new());
    assert_eq!(std::fs::read_to_string(booted.system.path("/etc/passwd")).unwrap(), accounts);
}

/// The service is up, answers, and may do what its unit lets it do and no more.
#[track_caller]
fn runs(booted: &Booted) {
    let answered =
        booted.run("for i in $(seq 100); do telltale health && exit 0; sleep 0.1; done; exit 1");
    let journal = booted.ok("journalctl --unit telltale --no-pager --lines 30 2>&1 || true");
    assert!(answered.status.success(), "{}\n{journal}", String::from_utf8_lossy(&answered.stdout));
    assert_eq!(booted.property("telltale", "ActiveState"), "active");
    assert_eq!(booted.ok("systemctl is-enabled telltale").trim(), "enabled");
    let pid = booted.property("telltale", "MainPID");
    let status = booted.ok(&format!("cat /proc/{pid}/status"));
    for line in ["CapEff:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"] {
        assert!(status.contains(line), "{line} is not in {status}");
    }
    assert_eq!(booted.ok(&format!("stat -c %U /proc/{pid}")).trim(), "telltale");
    // Any user sees the machine.
    booted.ok("setpriv --reuid=65534 --regid=65534 --clear-groups telltale smi");
    booted
        .ok("setpriv --reuid=65534 --regid=65534 --clear-groups telltale doctor || test $? -le 2");
}

#[test]
fn it_is_installed_where_nothing_starts_services() {
    if !is_tried("debian::it_is_installed_where_nothing_starts_services") {
        return;
    }
    let system = System::debian("bookworm", &[]);
    let package = system.put(&made("telltale_", "_amd64.deb"), "/packages");
    let before = system.files();
    system.ok(&format!("apt-get install -y --no-install-recommends {package}"));
    system.ok("getent passwd telltale && test -d /var/lib/telltale && telltale smi");
    system.ok("apt-get purge -y telltale");
    let after = system.files();
    let differs = |file: &&String| !before.contains(file);
    assert_eq!(after.iter().filter(differs).collect::<Vec<_>>(), Vec::<&String>::new());
}
