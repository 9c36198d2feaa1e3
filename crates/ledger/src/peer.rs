//! The groups of the process that opened a Unix socket, as the kernel noted them then.
//!
//! Here because no library at hand offers this question without unsafe code, and this crate may
//! have some. Nothing here decides what a group is good for.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Groups that are asked for at first; almost no process has more.
const USUAL_GROUPS: usize = 64;
/// The most groups that a process can have on Linux (`NGROUPS_MAX` of `linux/limits.h`).
const MOST_GROUPS: usize = 65_536;

/// The supplementary groups that the peer of `socket` had when it connected (`SO_PEERGROUPS`,
/// see unix(7)). They do not follow what the process does later, unlike its entry in `/proc`.
///
/// # Errors
/// When `socket` is no connected Unix socket, or the kernel is older than 4.13.
pub fn supplementary_groups(socket: &impl AsFd) -> io::Result<Vec<u32>> {
    match ask(socket, USUAL_GROUPS) {
        Err(error) if error.raw_os_error() == Some(libc::ERANGE) => ask(socket, MOST_GROUPS),
        answer => answer,
    }
}

fn ask(socket: &impl AsFd, room: usize) -> io::Result<Vec<u32>> {
    let mut groups: Vec<libc::gid_t> = vec![0; room];
    let size = room * size_of::<libc::gid_t>();
    let mut length = libc::socklen_t::try_from(size).map_err(io::Error::other)?;
    // SAFETY: the descriptor is open as long as `socket` is borrowed; the kernel writes at most
    // `length` bytes, which is exactly what `groups` has, and any bytes are valid group numbers.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERGROUPS,
            groups.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let written = usize::try_from(length).map_err(io::Error::other)?;
    groups.truncate(written / size_of::<libc::gid_t>());
    Ok(groups)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::process::Command;

    use telltale_harness::{Scratch, needs_root};

    use super::{MOST_GROUPS, ask, supplementary_groups};

    #[test]
    fn the_groups_of_this_process_are_those_that_the_kernel_lists_for_it() {
        let scratch = Scratch::new();
        let listener = UnixListener::bind(scratch.join("socket")).unwrap();
        let _client = UnixStream::connect(scratch.join("socket")).unwrap();
        let (server, _) = listener.accept().unwrap();
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("Groups:")).unwrap();
        let listed: Vec<u32> =
            line.split_ascii_whitespace().map(|group| group.parse().unwrap()).collect();
        assert_eq!(supplementary_groups(&server).unwrap(), listed);
        assert_eq!(ask(&server, MOST_GROUPS).unwrap(), listed);
    }

    #[test]
    fn more_groups_than_usual_are_all_told() {
        if !needs_root("ledger::more_groups_than_usual_are_all_told") {
            return;
        }
        let scratch = Scratch::new();
        scratch.set_mode(0o755);
        let path = scratch.join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let groups: Vec<String> = (40_000..40_300).map(|group| group.to_string()).collect();
        let script = format!(
            "import socket; s = socket.socket(socket.AF_UNIX); s.connect({:?}); s.recv(1)",
            path.display().to_string()
        );
        let mut child = Command::new("setpriv")
            .arg(format!("--groups={}", groups.join(",")))
            .args(["python3", "-c", &script])
            .spawn()
            .unwrap();
        let (server, _) = listener.accept().unwrap();
        let reported = supplementary_groups(&server).unwrap();
        drop(server);
        assert!(child.wait().unwrap().success());
        assert_eq!(reported, (40_000..40_300).collect::<Vec<u32>>());
    }

    #[test]
    fn what_is_no_socket_has_no_groups() {
        let file = std::fs::File::open("/proc/self/status").unwrap();
        assert!(supplementary_groups(&file).is_err());
    }
}
