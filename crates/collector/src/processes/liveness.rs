//! Who has ended, from one wait on the descriptors of all processes that are followed.

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Ends that one scan takes; the rest comes with the next.
const MAX_ENDS: usize = 256;

/// Follows processes until they end.
#[derive(Debug)]
pub(crate) struct ProcessWatch {
    epoll: OwnedFd,
    descriptors: HashMap<u64, OwnedFd>,
}

impl ProcessWatch {
    pub(crate) fn new() -> Result<Self, Errno> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Self { epoll, descriptors: HashMap::new() })
    }

    /// Follows the process that has `pid` now, under the number `token`. The caller checks
    /// afterwards that it is the one that was meant: from then on the pid cannot be reused
    /// unnoticed.
    pub(crate) fn follow(&mut self, pid: u32, token: u64) -> Result<(), Errno> {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
        let descriptor = pidfd_open(pid, PidfdFlags::empty())?;
        let data = epoll::EventData::new_u64(token);
        epoll::add(&self.epoll, &descriptor, data, epoll::EventFlags::IN)?;
        self.descriptors.insert(token, descriptor);
        Ok(())
    }

    /// What is readable when one has ended.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// Lets go of a process.
    pub(crate) fn forget(&mut self, token: u64) {
        // The epoll set forgets a descriptor that is closed.
        self.descriptors.remove(&token);
    }

    /// Whether this one is followed.
    pub(crate) fn follows(&self, token: u64) -> bool {
        self.descriptors.contains_key(&token)
    }

    /// Calls `ended` with the number of each process that has ended. One system call when none
    /// has.
    pub(crate) fn ended(&self, mut ended: impl FnMut(u64)) -> Result<(), Errno> {
        let mut events = [MaybeUninit::uninit(); MAX_ENDS];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let (found, _) = epoll::wait(&self.epoll, &mut events, Some(&now))?;
        for event in found {
            ended(event.data.u64());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::ProcessWatch;
    use std::process::Command;
    use std::time::Duration;
    use telltale_harness::{ChildGuard, wait_until};

    #[test]
    fn an_end_is_noticed_until_the_process_is_let_go() {
        let mut watch = ProcessWatch::new().unwrap();
        let mut child = ChildGuard::spawn(Command::new("sleep").arg("600"));
        watch.follow(std::process::id(), 1).unwrap();
        watch.follow(child.id(), 2).unwrap();
        let ended = |watch: &ProcessWatch| {
            let mut all = Vec::new();
            watch.ended(|token| all.push(token)).unwrap();
            all
        };
        assert_eq!(ended(&watch), Vec::<u64>::new());
        child.kill();
        wait_until("the end to be seen", Duration::from_secs(20), || ended(&watch) == [2]);
        watch.forget(2);
        assert_eq!(ended(&watch), Vec::<u64>::new());
        assert!(watch.follows(1) && !watch.follows(2));
        assert!(watch.follow(u32::MAX, 3).is_err());
    }
}
