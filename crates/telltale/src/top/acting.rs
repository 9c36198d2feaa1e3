//! Sending a signal to a process that was shown, and to no other: a pidfd pins the process that has
//! the pid now, and only then is looked whether that is still who was shown.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use rustix::process::{Pid, PidfdFlags, Signal as Number, pidfd_open, pidfd_send_signal};
use telltale_schema::process::{ProcessStat, parse_boot_id};
use telltale_smi::screen::{ProcessTarget, Signal};

/// Why no signal was sent.
#[derive(Debug, thiserror::Error)]
pub(super) enum SignalError {
    /// The process is gone, and perhaps another has its pid.
    #[error("process {0} has ended meanwhile; nothing was sent")]
    Gone(u32),
    /// It was shown as of another boot.
    #[error("process {0} is not of this boot of this host; nothing was sent")]
    Elsewhere(u32),
    /// Whether it is the same could not be found out.
    #[error("cannot find out whether process {pid} is still the same; nothing was sent")]
    Unknown { pid: u32, source: io::Error },
    /// The system refused.
    #[error("{signal} was not sent to {pid}; only its user and root may send it one")]
    Refused { signal: &'static str, pid: u32, source: io::Error },
}

/// Sends `signal` to the process that was shown as `target`.
pub(super) fn send(target: &ProcessTarget, signal: Signal) -> Result<(), SignalError> {
    let pid = target.pid;
    let unknown = |source: io::Error| SignalError::Unknown { pid, source };
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").map_err(unknown)?;
    let is_of_this_boot = parse_boot_id(&boot) == Some(target.identity.boot_id);
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(SignalError::Gone(pid))?;
    let pinned = pidfd_open(number, PidfdFlags::empty()).map_err(|error| match error {
        rustix::io::Errno::SRCH => SignalError::Gone(pid),
        error => unknown(error.into()),
    })?;
    // The process read now has the pid while it is pinned. If it is the one that was shown, it has
    // had the pid since before it was pinned, so that the two are one.
    let line = fs::read(format!("/proc/{pid}/stat")).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => SignalError::Gone(pid),
        _ => unknown(error),
    })?;
    let stat = ProcessStat::parse(&line).ok_or(SignalError::Gone(pid))?;
    if stat.has_ended() || stat.start_time_ticks != target.identity.start_time_ticks {
        return Err(SignalError::Gone(pid));
    }
    if !is_of_this_boot && !is_of_container(target).map_err(unknown)? {
        return Err(SignalError::Elsewhere(pid));
    }
    pidfd_send_signal(&pinned, number_of(signal)).map_err(|error| match error {
        rustix::io::Errno::SRCH => SignalError::Gone(pid),
        error => SignalError::Refused { signal: signal.name(), pid, source: error.into() },
    })
}

/// Whether the process that has the pid is the one that was shown, by what no boot id reports: a system
/// container has one of its own. Its PID namespace, its number there and its start are the process's
/// alone; in our own namespace all have our boot id.
fn is_of_container(target: &ProcessTarget) -> io::Result<bool> {
    let namespace =
        |of: &str| Ok::<_, io::Error>(fs::metadata(format!("/proc/{of}/ns/pid"))?.ino());
    let (own, found) = (namespace("self")?, namespace(&target.pid.to_string())?);
    let status = fs::read_to_string(format!("/proc/{}/status", target.pid))?;
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap_or_default();
    let innermost = numbers.split_ascii_whitespace().last().and_then(|pid| pid.parse().ok());
    let identity = &target.identity;
    Ok(found != own && found == identity.pid_namespace && innermost == Some(identity.pid))
}

fn number_of(signal: Signal) -> Number {
    match signal {
        Signal::Term => Number::TERM,
        Signal::Int => Number::INT,
        Signal::Hup => Number::HUP,
        Signal::Quit => Number::QUIT,
        Signal::Kill => Number::KILL,
        Signal::Stop => Number::STOP,
        Signal::Cont => Number::CONT,
        Signal::Usr1 => Number::USR1,
        Signal::Usr2 => Number::USR2,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;
    use std::time::Duration;

    use telltale_harness::{
        ChildGuard, ProcMount, in_pid_namespace, needs_pid_namespaces, wait_until,
    };
    use telltale_schema::process::{ProcessIdentity, ProcessStat, parse_boot_id};
    use telltale_smi::screen::{ProcessTarget, Signal};

    use super::{SignalError, send};

    const TIMEOUT: Duration = Duration::from_secs(20);

    fn target(pid: u32) -> ProcessTarget {
        let line = fs::read(format!("/proc/{pid}/stat")).unwrap();
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        let identity = ProcessIdentity {
            boot_id: parse_boot_id(&boot).unwrap(),
            pid_namespace: 0,
            pid,
            start_time_ticks: ProcessStat::parse(&line).unwrap().start_time_ticks,
        };
        ProcessTarget { pid, identity }
    }

    #[test]
    fn only_the_process_that_was_shown_is_signalled() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let shown = target(child.id());
        let mut other = shown;
        other.identity.start_time_ticks += 1;
        assert!(matches!(send(&other, Signal::Kill), Err(SignalError::Gone(_))));
        let mut earlier = shown;
        earlier.identity.boot_id[0] ^= 1;
        assert!(matches!(send(&earlier, Signal::Kill), Err(SignalError::Elsewhere(_))));
        assert_eq!(child.try_wait().unwrap(), None, "no process was signalled");
        send(&shown, Signal::Term).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(15));
        assert!(matches!(send(&shown, Signal::Kill), Err(SignalError::Gone(_))));
    }

    #[test]
    fn one_in_a_system_container_is_known_without_a_boot_id() {
        let test = "telltale::top::one_in_a_system_container_is_known_without_a_boot_id";
        if !needs_pid_namespaces(test) {
            return;
        }
        let mut command = in_pid_namespace("sleep", ProcMount::Own);
        let mut outer = ChildGuard::spawn(command.arg("60"));
        let children = format!("/proc/{0}/task/{0}/children", outer.id());
        let mut inner = None;
        wait_until("the first process of the namespace", TIMEOUT, || {
            let text = fs::read_to_string(&children).unwrap_or_default();
            inner = text.trim().parse().ok();
            inner.is_some_and(|pid: u32| {
                fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "sleep\n")
            })
        });
        let mut shown = target(inner.unwrap());
        shown.identity.boot_id[0] ^= 1;
        shown.identity.pid = 1;
        shown.identity.pid_namespace =
            fs::metadata(format!("/proc/{}/ns/pid", shown.pid)).unwrap().ino();
        let own = fs::metadata("/proc/self/ns/pid").unwrap().ino();
        type Change = fn(&mut ProcessTarget, u64);
        let others: [Change; 3] = [
            |other, _| other.identity.pid = 2,
            |other, _| other.identity.pid_namespace += 1,
            |other, own| other.identity.pid_namespace = own,
        ];
        for change in others {
            let mut other = shown;
            change(&mut other, own);
            assert!(matches!(send(&other, Signal::Kill), Err(SignalError::Elsewhere(_))));
        }
        let mut later = shown;
        later.identity.start_time_ticks += 1;
        assert!(matches!(send(&later, Signal::Kill), Err(SignalError::Gone(_))));
        assert!(outer.is_running(), "no process was signalled");
        send(&shown, Signal::Kill).unwrap();
        outer.wait_within("the namespace to end", TIMEOUT);
    }

    #[test]
    fn one_that_has_ended_and_not_been_waited_for_is_gone() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let shown = target(child.id());
        child.kill().unwrap();
        wait_until("the end", TIMEOUT, || {
            let line = fs::read(format!("/proc/{}/stat", child.id())).unwrap();
            ProcessStat::parse(&line).unwrap().has_ended()
        });
        assert!(matches!(send(&shown, Signal::Kill), Err(SignalError::Gone(_))));
        child.wait().unwrap();
    }
}
