//! Two readers of all ledgers in a directory: one that goes on, and one that starts from nothing.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use telltale_ledger::directory::{Purpose, RuntimeDirectory};
use telltale_ledger::{LedgerReader, LedgerReading};
use telltale_schema::memory::MemoryKind;

use super::Sweep;

/// Ends of processes that one look takes; the rest comes with the next.
const ENDS_A_LOOK: usize = 64;

/// A reader that keeps the ledgers open and follows their processes.
#[derive(Debug)]
pub struct Running {
    epoll: OwnedFd,
    /// By the number that the epoll set gives back.
    followed: Vec<Option<Followed>>,
}

#[derive(Debug)]
struct Followed {
    reader: LedgerReader,
    // Closing it takes it out of the epoll set.
    _process: OwnedFd,
}

// === impl Running ===

impl Running {
    /// Opens all ledgers in `directory` whose processes live.
    ///
    /// # Errors
    /// When the directory or a ledger cannot be read.
    pub fn new(directory: &Path) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mut running = Self { epoll, followed: Vec::new() };
        for (reader, process) in living(directory)? {
            let token = running.followed.len() as u64;
            let data = epoll::EventData::new_u64(token);
            epoll::add(&running.epoll, &process, data, epoll::EventFlags::IN)?;
            running.followed.push(Some(Followed { reader, _process: process }));
        }
        Ok(running)
    }

    /// Reads all ledgers of processes that live.
    ///
    /// # Errors
    /// What asking for ended processes answers.
    pub fn sweep(&mut self) -> io::Result<Sweep> {
        self.let_go_of_the_dead()?;
        let mut sweep = Sweep::default();
        for followed in self.followed.iter_mut().flatten() {
            add(&mut sweep, followed.reader.read().map_err(io::Error::other)?);
        }
        Ok(sweep)
    }

    fn let_go_of_the_dead(&mut self) -> io::Result<()> {
        let mut events = [MaybeUninit::uninit(); ENDS_A_LOOK];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let (ended, _) = epoll::wait(&self.epoll, &mut events, Some(&now))?;
        for event in ended {
            let place = usize::try_from(event.data.u64()).map_err(io::Error::other)?;
            if let Some(followed) = self.followed.get_mut(place) {
                *followed = None;
            }
        }
        Ok(())
    }
}

/// Opens, checks and reads everything in `directory` once, and keeps nothing.
///
/// # Errors
/// When the directory or a ledger cannot be read.
pub fn cold(directory: &Path) -> io::Result<Sweep> {
    let mut sweep = Sweep::default();
    for (mut reader, _process) in living(directory)? {
        add(&mut sweep, reader.read().map_err(io::Error::other)?);
    }
    Ok(sweep)
}

/// The ledgers in `directory` whose processes live, each with a descriptor of its process.
fn living(directory: &Path) -> io::Result<Vec<(LedgerReader, OwnedFd)>> {
    let directory =
        RuntimeDirectory::open(directory, Purpose::Reading).map_err(io::Error::other)?;
    let mut found = Vec::new();
    for entry in directory.list()?.ledgers {
        let reader = LedgerReader::open_at(&directory, &entry.name).map_err(io::Error::other)?;
        let pid = i32::try_from(reader.owner().pid).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| io::Error::other("a ledger names no process"))?;
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(process) => found.push((reader, process)),
            // Its ledger is its last known state, and in no total.
            Err(Errno::SRCH) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(found)
}

fn add(sweep: &mut Sweep, reading: &LedgerReading) {
    for (slot, kind, usage) in &reading.usage {
        if *kind != MemoryKind::Dram {
            continue;
        }
        let device = &reading.devices[slot.index()];
        let bytes = sweep.dram_bytes.get_mut(device.logical_id as usize);
        if let Some(bytes) = bytes {
            *bytes += usage.live_bytes;
            sweep.answered += 1;
        }
    }
}
