//! A process that gets less of a processor than it wants: by its control group's quota where one can
//! be made, else by being stopped and woken again, twenty times a second.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use telltale_harness::wait_until;

use crate::cluster::job::TIMEOUT;

/// What a throttled process gets of a processor, and in which time, in microseconds.
const QUOTA: &str = "5000";
const PERIOD: &str = "100000";
/// How long a process stands still and runs, where there is no quota.
const TURN: Duration = Duration::from_millis(25);

/// A process is throttled as long as this lives.
pub(crate) enum Throttle {
    Quota(PathBuf),
    Turns(Arc<AtomicBool>, Option<JoinHandle<()>>),
}

impl Throttle {
    /// Throttles a process that outlives this, or ends meanwhile.
    pub(crate) fn on(pid: Pid) -> Self {
        let throttle = group(pid).map_or_else(|| turns(pid), Self::Quota);
        match &throttle {
            Self::Quota(group) => println!("throttled by the quota of {}", group.display()),
            Self::Turns(..) => println!("throttled by SIGSTOP and SIGCONT"),
        }
        throttle
    }
}

impl Drop for Throttle {
    fn drop(&mut self) {
        match self {
            Self::Quota(group) => {
                // A process still in it goes where this process is.
                let parent =
                    group.parent().expect("a group was made in another").join("cgroup.procs");
                for pid in
                    fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default().lines()
                {
                    let _ = fs::write(&parent, pid);
                }
                wait_until("the control group to go", TIMEOUT, || {
                    fs::remove_dir(&*group).is_ok() || !group.exists()
                });
            }
            Self::Turns(ends, thread) => {
                ends.store(true, Ordering::Relaxed);
                let _ = thread.take().map(JoinHandle::join);
            }
        }
    }
}

/// A control group with a quota that has the process; nothing where there can be none.
fn group(pid: Pid) -> Option<PathBuf> {
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    own.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let is_second = controllers.is_empty();
        if !is_second && !controllers.split(',').any(|one| one == "cpu") {
            return None;
        }
        let at = mounts.lines().find_map(|mount| {
            let (place, kind) = mount.split_once(" - ")?;
            let mut kind = kind.split(' ');
            let (name, options) = (kind.next()?, kind.nth(1)?);
            let fits = match is_second {
                true => name == "cgroup2",
                false => name == "cgroup" && options.split(',').any(|one| one == "cpu"),
            };
            fits.then(|| place.split(' ').nth(4)).flatten()
        })?;
        let place = Path::new(at).join(path.trim_start_matches('/'));
        let group = place.join(format!("telltale-test-{pid}"));
        fs::create_dir(&group).ok()?;
        let limited = match is_second {
            true => fs::write(group.join("cpu.max"), format!("{QUOTA} {PERIOD}")),
            false => fs::write(group.join("cpu.cfs_period_us"), PERIOD)
                .and_then(|()| fs::write(group.join("cpu.cfs_quota_us"), QUOTA)),
        };
        let moved = limited.and_then(|()| fs::write(group.join("cgroup.procs"), pid.to_string()));
        if moved.is_err() {
            let _ = fs::remove_dir(&group);
            return None;
        }
        Some(group)
    })
}

fn turns(pid: Pid) -> Throttle {
    let ends = Arc::new(AtomicBool::new(false));
    let reported = Arc::clone(&ends);
    let thread = std::thread::spawn(move || {
        let signals = [Signal::STOP, Signal::CONT].into_iter().cycle();
        // The last one wakes it, and one that has ended needs none.
        for signal in signals {
            if kill_process(pid, signal).is_err() {
                return;
            }
            if signal == Signal::CONT && reported.load(Ordering::Relaxed) {
                return;
            }
            std::thread::sleep(TURN);
        }
    });
    Throttle::Turns(ends, Some(thread))
}
