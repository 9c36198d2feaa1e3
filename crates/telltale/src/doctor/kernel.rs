//! What the system offers to process monitors.

use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, getpid, pidfd_open};

use super::finding::Finding;

/// The inode number of the first PID namespace (`PROC_PID_INIT_INO` in the kernel's
/// `include/linux/proc_ns.h`).
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// Checks the kernel, and how much of the machine this process can see.
pub(super) fn check(findings: &mut Vec<Finding>) {
    let uname = rustix::system::uname();
    let release = uname.release().to_string_lossy().into_owned();
    let within = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let pidfds = pidfd_open(getpid(), PidfdFlags::empty()).map(drop);
    let beneath = openat2(CWD, "/", flags, Mode::empty(), within).map(drop);
    findings.extend(calls(&release, pidfds, beneath));
    let namespace = std::fs::read_link("/proc/self/ns/pid");
    if namespace.is_ok_and(|namespace| namespace != Path::new(FIRST_PID_NAMESPACE)) {
        findings.push(Finding::partly(
            "containers",
            "this is a PID namespace of its own: processes outside of it are hidden; run the \
             service on the host, or the container in the host's PID namespace",
            "docker run --pid=host ...",
        ));
    }
    // With hidepid (proc(5)) even the first process is not there for others.
    if std::fs::metadata("/proc/1").is_err() {
        findings.push(Finding::partly(
            "processes",
            "/proc hides the processes of others (hidepid): their names and ends are not seen; \
             run as root, or as a member of the group that the mount names with gid=",
            "sudo telltale doctor",
        ));
    }
}

/// What it means that the kernel, or the filter of a container's engine, refuses a call.
fn calls(release: &str, pidfds: Result<(), Errno>, beneath: Result<(), Errno>) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Err(error) = pidfds {
        let what = format!(
            "Linux {release} has no pidfds ({error}): ends of processes are seen late, and no \
             signal is sent; they are there from Linux 5.3 on, unless a container's seccomp profile \
             refuses them"
        );
        findings.push(Finding::partly("kernel", what, "uname -r; grep Seccomp: /proc/self/status"));
    }
    if let Err(error) = beneath {
        let what = format!(
            "Linux {release} has no openat2 ({error}): containers that share no directory with the \
             host are not looked into; it is there from Linux 5.6 on, unless a container's seccomp \
             profile refuses it"
        );
        findings.push(Finding::partly("kernel", what, "uname -r; grep Seccomp: /proc/self/status"));
    }
    if findings.is_empty() {
        findings
            .push(Finding::works("kernel", format!("Linux {release}, with pidfds and openat2")));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::calls;
    use crate::doctor::finding::FindingLevel;
    use rustix::io::Errno;

    #[test]
    fn calls_that_an_old_kernel_lacks_are_reported_one_by_one() {
        let old = calls("5.2.0", Err(Errno::NOSYS), Err(Errno::NOSYS));
        assert_eq!(old.len(), 2);
        let middle = calls("5.4.0", Ok(()), Err(Errno::NOSYS));
        assert_eq!(middle.len(), 1);
        assert!(middle[0].what.contains("openat2 ("), "{middle:?}");
        for finding in old.iter().chain(&middle) {
            assert_eq!(finding.verdict, FindingLevel::Partly);
            assert_eq!(finding.remedy.len(), 1);
        }
        let new = calls("6.8.0", Ok(()), Ok(()));
        assert_eq!((new.len(), new[0].verdict), (1, FindingLevel::Works));
    }
}
