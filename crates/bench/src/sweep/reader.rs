//! Readers of all workloads in a directory: one that goes on, and two that start from nothing.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use telltale_ledger::directory::{Purpose, RuntimeDirectory};
use telltale_ledger::{LedgerReader, LedgerReading, LedgerSweep, SweepKey};
use telltale_schema::memory::MemoryKind;

use super::Sweep;
use crate::client::{ask, memory_query};

/// Ends of processes that one look takes; the rest comes with the next.
const ENDS_A_LOOK: usize = 64;

/// A reader that keeps the ledgers open and follows their processes.
#[derive(Debug)]
pub struct Running {
    ledgers: LedgerSweep,
    epoll: OwnedFd,
    /// By the number that the epoll set gives back.
    followed: Vec<Option<Followed>>,
}

#[derive(Debug)]
struct Followed {
    key: SweepKey,
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
        let mut running = Self { ledgers: LedgerSweep::new(), epoll, followed: Vec::new() };
        for (reader, process) in living(directory)? {
            let token = running.followed.len() as u64;
            let data = epoll::EventData::new_u64(token);
            epoll::add(&running.epoll, &process, data, epoll::EventFlags::IN)?;
            let key = running.ledgers.insert(reader);
            running.followed.push(Some(Followed { key, _process: process }));
        }
        Ok(running)
    }

    /// Reads all ledgers of processes that live.
    ///
    /// # Errors
    /// What asking for ended processes answers.
    pub fn sweep(&mut self) -> io::Result<Sweep> {
        self.let_go_of_the_dead()?;
        self.ledgers.read_all();
        let mut sweep = Sweep::default();
        for (_, reading) in self.ledgers.iter() {
            // A ledger that cannot be read shows in the sums, which the benchmark checks.
            if let Ok(reading) = reading {
                add(&mut sweep, reading);
            }
        }
        Ok(sweep)
    }

    fn let_go_of_the_dead(&mut self) -> io::Result<()> {
        let mut events = [MaybeUninit::uninit(); ENDS_A_LOOK];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let (ended, _) = epoll::wait(&self.epoll, &mut events, Some(&now))?;
        for event in ended {
            let place = usize::try_from(event.data.u64()).map_err(io::Error::other)?;
            if let Some(followed) = self.followed.get_mut(place).and_then(Option::take) {
                self.ledgers.remove(followed.key);
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

/// Asks every endpoint in `directory` once, one after the other, and keeps nothing.
///
/// # Errors
/// When the directory cannot be read or an endpoint does not answer.
pub fn through_sockets(directory: &Path) -> io::Result<Sweep> {
    let question = memory_query();
    let runtime = RuntimeDirectory::open(directory, Purpose::Reading).map_err(io::Error::other)?;
    let mut sweep = Sweep::default();
    for entry in runtime.list()?.endpoints {
        let report = ask(&directory.join(&entry.name), &question)?;
        for device in &report.devices {
            let dram = device.kinds.iter().filter(|usage| usage.kind == MemoryKind::Dram);
            let place = device.logical_id.and_then(|id| usize::try_from(id).ok());
            if let Some(bytes) = place.and_then(|id| sweep.dram_bytes.get_mut(id)) {
                *bytes += dram.map(|usage| usage.usage.live_bytes).sum::<u64>();
                sweep.answered += 1;
            }
        }
    }
    Ok(sweep)
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
