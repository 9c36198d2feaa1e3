//! Names of the system calls that threads wait in, by the numbers of the architecture that this is built for.

use libc::c_long;

/// Calls whose first argument is a file descriptor.
const ON_DESCRIPTOR: [(c_long, &str); 21] = [
    (libc::SYS_read, "read"),
    (libc::SYS_write, "write"),
    (libc::SYS_pread64, "pread64"),
    (libc::SYS_pwrite64, "pwrite64"),
    (libc::SYS_readv, "readv"),
    (libc::SYS_writev, "writev"),
    (libc::SYS_preadv, "preadv"),
    (libc::SYS_pwritev, "pwritev"),
    (libc::SYS_fsync, "fsync"),
    (libc::SYS_fdatasync, "fdatasync"),
    (libc::SYS_ftruncate, "ftruncate"),
    (libc::SYS_fallocate, "fallocate"),
    (libc::SYS_flock, "flock"),
    (libc::SYS_fcntl, "fcntl"),
    (libc::SYS_ioctl, "ioctl"),
    (libc::SYS_getdents64, "getdents64"),
    (libc::SYS_sendfile, "sendfile"),
    (libc::SYS_recvfrom, "recvfrom"),
    (libc::SYS_recvmsg, "recvmsg"),
    (libc::SYS_sendto, "sendto"),
    (libc::SYS_accept4, "accept4"),
];

/// The others that threads are found in.
const OTHERS: [(c_long, &str); 21] = [
    (libc::SYS_futex, "futex"),
    (libc::SYS_clock_nanosleep, "clock_nanosleep"),
    (libc::SYS_nanosleep, "nanosleep"),
    (libc::SYS_epoll_pwait, "epoll_pwait"),
    (libc::SYS_ppoll, "ppoll"),
    (libc::SYS_pselect6, "pselect6"),
    (libc::SYS_wait4, "wait4"),
    (libc::SYS_waitid, "waitid"),
    (libc::SYS_openat, "openat"),
    (libc::SYS_newfstatat, "newfstatat"),
    (libc::SYS_statx, "statx"),
    (libc::SYS_connect, "connect"),
    (libc::SYS_sendmsg, "sendmsg"),
    (libc::SYS_rt_sigtimedwait, "rt_sigtimedwait"),
    (libc::SYS_rt_sigsuspend, "rt_sigsuspend"),
    (libc::SYS_restart_syscall, "restart_syscall"),
    (libc::SYS_unlinkat, "unlinkat"),
    (libc::SYS_renameat2, "renameat2"),
    (libc::SYS_mkdirat, "mkdirat"),
    (libc::SYS_msync, "msync"),
    (libc::SYS_munmap, "munmap"),
];

/// Older forms of them, which the C library of x86-64 still calls.
#[cfg(target_arch = "x86_64")]
const OLDER: [(c_long, &str); 7] = [
    (libc::SYS_poll, "poll"),
    (libc::SYS_select, "select"),
    (libc::SYS_epoll_wait, "epoll_wait"),
    (libc::SYS_open, "open"),
    (libc::SYS_stat, "stat"),
    (libc::SYS_pause, "pause"),
    (libc::SYS_unlink, "unlink"),
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER: [(c_long, &str); 0] = [];

/// The name of a call, and whether its first argument is a descriptor.
pub(crate) fn named(number: i64) -> (String, bool) {
    let find = |table: &[(c_long, &'static str)]| {
        table.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
    };
    if let Some(name) = find(&ON_DESCRIPTOR) {
        return (name.to_owned(), true);
    }
    match find(&OTHERS).or_else(|| find(&OLDER)) {
        Some(name) => (name.to_owned(), false),
        None => (format!("call {number}"), false),
    }
}
