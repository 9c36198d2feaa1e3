//! Reads of another process's memory, which copy what is there and never fail in any other way.

use std::io::IoSliceMut;

use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;

/// A piece is read whole or not at all, so none goes over a page's border.
const PAGE: usize = 4096;

/// Copies what lies at an address into `bytes`, and says how much of it there was: 0 where nothing is
/// mapped or it is not permitted.
pub(crate) fn read(pid: u32, address: u64, bytes: &mut [u8]) -> usize {
    let (Ok(pid), Ok(start)) = (i32::try_from(pid), usize::try_from(address)) else { return 0 };
    let Some(end) = start.checked_add(bytes.len()) else { return 0 };
    let mut pieces = Vec::with_capacity(bytes.len() / PAGE + 2);
    let mut base = start;
    while base < end {
        let len = (PAGE - base % PAGE).min(end - base);
        pieces.push(RemoteIoVec { base, len });
        base += len;
    }
    let mut local = [IoSliceMut::new(bytes)];
    process_vm_readv(Pid::from_raw(pid), &mut local, &pieces).unwrap_or(0)
}

/// A number of 32 bits; none where nothing is mapped.
pub(crate) fn number(pid: u32, address: u64) -> Option<u32> {
    let mut bytes = [0; 4];
    (read(pid, address, &mut bytes) == 4).then(|| u32::from_ne_bytes(bytes))
}
