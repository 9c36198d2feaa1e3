//! Why the kernel does not let one process look into another, and what to do about it.

use std::fs;

use crate::evidence::Missing;

/// `/proc/sys/kernel/yama/ptrace_scope`, by the kernel's documentation (admin-guide/LSM/Yama).
const YAMA: &str = "/proc/sys/kernel/yama/ptrace_scope";

/// Says why `what` of a process was not permitted.
pub(crate) fn refusal(what: &str, pid: u32) -> Missing {
    let (why, remedy) = reason(owner(pid), rustix::process::geteuid().as_raw(), yama());
    Missing { what: what.to_owned(), why, remedy: Some(remedy) }
}

fn reason(owner: Option<u32>, own: u32, yama: Option<u8>) -> (String, String) {
    match (owner, yama) {
        (Some(owner), _) if owner != own && own != 0 => (
            format!("the process belongs to user {owner}, and this is user {own}"),
            format!("run it as user {owner} or as root"),
        ),
        (_, Some(3)) => (
            "Yama forbids it to every process (kernel.yama.ptrace_scope is 3)".to_owned(),
            "set kernel.yama.ptrace_scope to 1 in /etc/sysctl.d and restart the machine".to_owned(),
        ),
        (_, Some(2)) if own != 0 => (
            "Yama permits it to root alone (kernel.yama.ptrace_scope is 2)".to_owned(),
            "run it as root, or set kernel.yama.ptrace_scope to 1".to_owned(),
        ),
        (_, Some(1)) if own != 0 => (
            "Yama permits it to ancestors of the process alone (kernel.yama.ptrace_scope is 1)"
                .to_owned(),
            "run it as root, or start the job below `telltale agent` or `telltale train`"
                .to_owned(),
        ),
        _ => (
            "the kernel does not permit it (ptrace)".to_owned(),
            "in a container, add the capability SYS_PTRACE (`docker run --cap-add SYS_PTRACE`, or \
             `securityContext.capabilities.add: [SYS_PTRACE]`)"
                .to_owned(),
        ),
    }
}

fn owner(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

fn yama() -> Option<u8> {
    fs::read_to_string(YAMA).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_names_its_cause_and_a_remedy() {
        let cases = [
            (Some(7), 1000, Some(1), "user 7", "as user 7"),
            (Some(1000), 1000, Some(1), "ancestors", "telltale agent"),
            (Some(1000), 1000, Some(2), "root alone", "as root"),
            (Some(0), 0, Some(3), "every process", "restart"),
            (Some(1000), 1000, None, "ptrace", "SYS_PTRACE"),
            (Some(0), 0, Some(1), "ptrace", "SYS_PTRACE"),
        ];
        for (owner, own, yama, cause, remedy) in cases {
            let found = reason(owner, own, yama);
            assert!(found.0.contains(cause) && found.1.contains(remedy), "{found:?}");
        }
    }
}
