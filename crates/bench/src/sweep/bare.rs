//! The bare minimum of a running reader: what the ledger crate alone does.

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

/// Ends of processes that one look takes; the rest comes with the next.
const ENDS_A_ROUND: usize = 64;

/// Keeps the ledgers open and follows their processes.
#[derive(Debug)]
pub struct Bare {
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

// === impl Bare ===

impl Bare {
    /// Opens all ledgers in `directory` whose processes live.
    ///
    /// # Errors
    /// When the directory or a ledger cannot be read.
    pub fn new(directory: &Path) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mut bare = Self { ledgers: LedgerSweep::new(), epoll, followed: Vec::new() };
        for (reader, process) in living(directory)? {
            let token = bare.followed.len() as u64;
            let data = epoll::EventData::new_u64(token);
            epoll::add(&bare.epoll, &process, data, epoll::EventFlags::IN)?;
            let key = bare.ledgers.insert(reader);
            bare.followed.push(Some(Followed { key, _process: process }));
        }
        Ok(bare)
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
        let mut events = [MaybeUninit::uninit(); ENDS_A_ROUND];
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

/// Adds what a ledger says of DRAM.
pub(super) fn add(sweep: &mut Sweep, reading: &LedgerReading) {
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
