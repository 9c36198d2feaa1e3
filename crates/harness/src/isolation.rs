//! Running programs as other users and in other PID namespaces.
//!
//! Nothing here changes this process: a program is started differently, that is all.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::skip;

/// Whether this process is root; when it is not, records `test` as skipped first.
pub fn needs_root(test: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        skip(test, "needs root");
    }
    root
}

/// Whether PID and mount namespaces can be made here; if not, records `test` as skipped first.
///
/// Root in a container may lack the right (CAP_SYS_ADMIN), so this tries it once.
pub fn needs_pid_namespaces(test: &str) -> bool {
    static WORKS: OnceLock<bool> = OnceLock::new();
    let works = *WORKS.get_or_init(|| {
        let mut trial = in_pid_namespace("true", ProcMount::Own);
        trial.stdout(Stdio::null()).stderr(Stdio::null());
        trial.status().is_ok_and(|status| status.success())
    });
    if !works {
        skip(test, "needs the right to make PID namespaces, and unshare from util-linux");
    }
    works
}

/// Makes `command` run as `uid` and `gid` with no supplementary groups; this needs root.
///
/// The standard library sets the group first and, when root changes the uid, drops the
/// supplementary groups itself (`library/std/src/sys/process/unix/unix.rs`); a test below holds it
/// to that.
#[must_use]
pub fn as_user(uid: u32, gid: u32, mut command: Command) -> Command {
    command.gid(gid).uid(uid);
    command
}

/// Which `/proc` a program in a new PID namespace sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcMount {
    /// The parent namespace's: its own number there differs from what `getpid` says.
    Inherited,
    /// One of its own, in a mount namespace of its own, as in a container.
    Own,
}

/// A command that runs `program` as process 1 of a new PID namespace; this needs root.
///
/// The child that is started is `unshare` from util-linux, which forks: `program` is its only
/// child, gets SIGKILL when `unshare` dies, and its exit status is passed on.
#[must_use]
pub fn in_pid_namespace(program: impl AsRef<OsStr>, proc: ProcMount) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--fork", "--pid", "--kill-child"]);
    if proc == ProcMount::Own {
        command.arg("--mount-proc");
    }
    command.arg("--").arg(program);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(mut command: Command) -> String {
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    #[test]
    fn another_user_has_no_supplementary_groups() {
        if !needs_root("harness::isolation::another_user_has_no_supplementary_groups") {
            return;
        }
        let mut id = Command::new("sh");
        id.args(["-c", "id -u; id -g; id -G; grep ^Groups: /proc/self/status | tr -d ' \t'"]);
        assert_eq!(output(as_user(61_001, 61_002, id)), "61001\n61002\n61002\nGroups:");
    }

    #[test]
    fn a_pid_namespace_starts_at_process_1() {
        if !needs_pid_namespaces("harness::isolation::a_pid_namespace_starts_at_process_1") {
            return;
        }
        // `/proc/self` names its reader as the mounted `/proc` numbers it.
        let seen_by_first_process = |proc| {
            let mut readlink = in_pid_namespace("readlink", proc);
            readlink.arg("/proc/self");
            output(readlink)
        };
        assert_eq!(seen_by_first_process(ProcMount::Own), "1");
        assert_ne!(seen_by_first_process(ProcMount::Inherited), "1");
    }
}
