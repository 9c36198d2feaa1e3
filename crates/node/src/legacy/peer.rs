//! Who has connected, as the kernel says, and when that process ends.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::{PeerCredentials, PeerPidfd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use telltale_schema::process::ProcessStat;

use super::roster::LegacyClient;

/// The process at the other end of `socket`, and what is readable when it has ended. None when it
/// has ended already, or cannot be seen from our PID namespace.
pub(super) fn process_of(socket: &impl AsFd) -> io::Result<Option<(LegacyClient, OwnedFd)>> {
    let peer = getsockopt(socket, PeerCredentials)?;
    let Ok(pid) = u32::try_from(peer.pid()) else { return Ok(None) };
    let Some(raw) = Pid::from_raw(peer.pid()) else { return Ok(None) };
    // Before Linux 6.5 a socket does not tell; then the pid may be another's by now, but only if
    // its process ended and left the connection to a child.
    let descriptor = match getsockopt(socket, PeerPidfd) {
        Ok(descriptor) => descriptor,
        Err(_) => match pidfd_open(raw, PidfdFlags::empty()) {
            Ok(descriptor) => descriptor,
            Err(rustix::io::Errno::SRCH) => return Ok(None),
            Err(error) => return Err(error.into()),
        },
    };
    let Ok(stat) = std::fs::read(format!("/proc/{pid}/stat")) else { return Ok(None) };
    let Some(stat) = ProcessStat::parse(&stat) else { return Ok(None) };
    // As long as it has not ended, its pid is its own: what was just read is about it.
    let mut ended = [PollFd::new(&descriptor, PollFlags::IN)];
    if poll(&mut ended, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))? > 0 {
        return Ok(None);
    }
    let start_time_ticks = stat.start_time_ticks;
    Ok(Some((LegacyClient { pid, start_time_ticks, uid: peer.uid() }, descriptor)))
}
