//! What the system offers to whoever watches processes.

use std::path::Path;

use rustix::process::{PidfdFlags, getpid, pidfd_open};

use super::finding::{Finding, Verdict};

/// The inode number of the first PID namespace (`PROC_PID_INIT_INO` in the kernel's
/// `include/linux/proc_ns.h`).
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// Looks at the kernel, and at how much of the machine this process can see.
pub(super) fn look(findings: &mut Vec<Finding>) {
    let uname = rustix::system::uname();
    let release = uname.release().to_string_lossy().into_owned();
    findings.push(match pidfd_open(getpid(), PidfdFlags::empty()) {
        Ok(_) => Finding::new("kernel", Verdict::Works, format!("Linux {release}, with pidfds")),
        Err(error) => Finding::new(
            "kernel",
            Verdict::Partly,
            format!("Linux {release} has no pidfds ({error}): ends of processes are seen late"),
        ),
    });
    let namespace = std::fs::read_link("/proc/self/ns/pid");
    if namespace.is_ok_and(|namespace| namespace != Path::new(FIRST_PID_NAMESPACE)) {
        findings.push(Finding::new(
            "containers",
            Verdict::Partly,
            "this is a PID namespace of its own: processes outside of it are hidden; run the \
             service on the host, or the container with --pid=host",
        ));
    }
    // With hidepid (proc(5)) even the first process is not there for others.
    if std::fs::metadata("/proc/1").is_err() {
        findings.push(Finding::new(
            "processes",
            Verdict::Partly,
            "/proc hides the processes of others (hidepid): their names and ends are not seen; \
             run as root, or as a member of the group that the mount names with gid=",
        ));
    }
}
