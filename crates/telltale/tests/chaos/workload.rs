//! A process that uses the machine: what it does, and the pipe of its orders.
//!
//! It is this very program, started again. It allocates and frees at a pace of its own until it is
//! ordered otherwise, and ends when its line does.

// A workload ends where it is: one that has forked has no `main` to return to.
#![allow(clippy::exit)]

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use telltale_emulator::DeviceClient;
use telltale_harness::ChildGuard;
use telltale_runtime::{Device, DeviceDescription, Options, Runtime};
use telltale_schema::memory::MemoryKind;

use crate::chaos::random::Random;

/// The test that a workload is started as.
const HOST: &str = "chaos::clients::nothing_stops_the_service_and_no_total_is_ever_wrong";
/// Set in a workload: the machine's root, the chip, the pace in milliseconds, and a seed.
const PLAN: &str = "TELLTALE_CHAOS_WORKLOAD";
/// How long an answer may take here: the machine may be busy.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);
/// The status of one whose device has gone.
const LOST_ITS_DEVICE: i32 = 3;
/// Buffers that a workload has at most.
const MAX_BUFFERS: usize = 60;
/// Latencies that are kept.
const MAX_LATENCIES: usize = 1 << 16;

/// What a workload says of itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct WorkloadReport {
    /// Allocations since its start, or since it forked.
    pub(crate) allocations: u64,
    /// Allocations and frees that the device refused.
    pub(crate) failed: u64,
    /// What the recording runtime could not do.
    pub(crate) problems: u64,
    /// The median of what recording an allocation took since the last telling, in nanoseconds.
    pub(crate) median_ns: u64,
}

/// One workload, from outside.
#[derive(Debug)]
pub(crate) struct Workload {
    pid: u32,
    process: OwnedFd,
    /// What was started; none any more once it has forked.
    child: Option<ChildGuard>,
    line: UnixStream,
    has_begun: bool,
    is_stopped: bool,
    /// The chip that it has open.
    pub(crate) ordinal: u32,
}

// === impl Workload ===

impl Workload {
    /// Starts one; it works as soon as it can.
    pub(crate) fn start(root: &Path, ordinal: u32, pace_ms: u64, seed: u64) -> Self {
        let (line, theirs) = UnixStream::pair().unwrap();
        line.set_read_timeout(Some(TIMEOUT)).unwrap();
        let child = ChildGuard::spawn(
            Command::new(std::env::current_exe().unwrap())
                .args([HOST, "--exact", "--nocapture"])
                .env(PLAN, format!("{ordinal} {pace_ms} {seed} {}", root.display()))
                .stdin(Stdio::from(OwnedFd::from(theirs)))
                .stdout(Stdio::null()),
        );
        let pid = child.id();
        let process = pidfd(pid);
        let child = Some(child);
        Self { pid, process, child, line, has_begun: false, is_stopped: false, ordinal }
    }

    /// Its pid.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits until it has its devices; false when it has ended.
    pub(crate) fn begins(&mut self) -> bool {
        self.has_begun = self.has_begun || self.hears(b'r');
        self.has_begun
    }

    /// Returns when it stands still and the device has seen all it did; false when it has ended.
    pub(crate) fn pause(&mut self) -> bool {
        self.go_on_if_stopped();
        self.begins() && self.tell(b'p') && self.hears(b'p')
    }

    /// Has it work again.
    pub(crate) fn go_on(&mut self) -> bool {
        self.tell(b'g')
    }

    /// Has it fork; it goes on as its own child, and the parent ends at once.
    pub(crate) fn fork(&mut self) -> bool {
        self.go_on_if_stopped();
        let mut pid = [0; 4];
        let forked = self.begins()
            && self.tell(b'f')
            && self.hears(b'f')
            && self.line.read_exact(&mut pid).is_ok();
        if forked {
            self.pid = u32::from_le_bytes(pid);
            self.process = pidfd(self.pid);
            if let Some(mut parent) = self.child.take() {
                parent.wait_within("the parent to end after its fork", TIMEOUT);
            }
        }
        forked
    }

    /// Has it allocate or free something, also where it stands still.
    pub(crate) fn acts(&mut self) {
        assert!(self.tell(b'a') && self.hears(b'a'), "it lives");
    }

    /// What it says of itself.
    pub(crate) fn tells(&mut self) -> WorkloadReport {
        assert!(self.begins() && self.tell(b's') && self.hears(b's'), "it lives");
        let mut bytes = [0; 32];
        self.line.read_exact(&mut bytes).unwrap();
        let number = |place: usize| u64::from_le_bytes(bytes[place * 8..][..8].try_into().unwrap());
        let (allocations, failed, problems) = (number(0), number(1), number(2));
        WorkloadReport { allocations, failed, problems, median_ns: number(3) }
    }

    /// Stops it as Ctrl-Z does.
    pub(crate) fn stop(&mut self) {
        self.signal(Signal::STOP);
        self.is_stopped = true;
    }

    /// Has it go on if it was stopped.
    pub(crate) fn go_on_if_stopped(&mut self) {
        if std::mem::take(&mut self.is_stopped) {
            self.signal(Signal::CONT);
        }
    }

    /// Kills it, and returns once it is dead.
    pub(crate) fn kill(mut self) {
        self.signal(Signal::KILL);
        self.wait_for_end();
    }

    /// Has it end by itself, and returns once it has; true when it ended well.
    pub(crate) fn quit(mut self) -> bool {
        self.go_on_if_stopped();
        self.tell(b'q');
        self.wait_for_end()
    }

    /// Waits until it has ended for a reason of its own; true when it ended well.
    pub(crate) fn wait_for_end(&mut self) -> bool {
        // The line ends with the last who has it.
        let mut rest = Vec::new();
        self.line.read_to_end(&mut rest).ok();
        let child = self.child.as_mut();
        child.is_none_or(|child| child.wait_within("a workload to end", TIMEOUT).success())
    }

    fn signal(&self, signal: Signal) {
        // One that has ended needs none.
        let _ = pidfd_send_signal(&self.process, signal);
    }

    fn tell(&mut self, byte: u8) -> bool {
        self.line.write_all(&[byte]).is_ok()
    }

    /// Waits for this word; false when the line has ended.
    fn hears(&mut self, expected: u8) -> bool {
        let mut heard = [0];
        match self.line.read_exact(&mut heard) {
            Ok(()) => assert_eq!(heard[0], expected, "of {}", self.pid),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                panic!("workload {} says nothing for {TIMEOUT:?}", self.pid)
            }
            Err(_) => return false,
        }
        true
    }
}

impl Drop for Workload {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// A descriptor of a process that has not been reaped, or has no parent to reap it.
fn pidfd(pid: u32) -> OwnedFd {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    pidfd_open(pid, PidfdFlags::empty()).unwrap()
}

/// Works, if this process was started as a workload, and never returns then.
pub(crate) fn work_if_started_to() {
    let Ok(plan) = std::env::var(PLAN) else { return };
    let mut words = plan.splitn(4, ' ');
    let mut number = || words.next().unwrap().parse::<u64>().unwrap();
    let (ordinal, pace_ms, seed) = (number(), number(), number());
    let root = PathBuf::from(words.next().unwrap());
    Work::begin(root, u32::try_from(ordinal).unwrap(), pace_ms, seed).go_on()
}

/// A workload, from inside.
struct Work {
    root: PathBuf,
    ordinal: u32,
    pace: Duration,
    random: Random,
    line: UnixStream,
    runtime: Runtime,
    client: DeviceClient,
    devices: Vec<Device>,
    live: Vec<(usize, MemoryKind, u64)>,
    reported: WorkloadReport,
    latencies: Vec<u64>,
}

// === impl Work ===

impl Work {
    fn begin(root: PathBuf, ordinal: u32, pace_ms: u64, seed: u64) -> Self {
        let line = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned().unwrap());
        let Ok(client) = DeviceClient::open(&root, ordinal) else { lost() };
        let options = Options { root: Some(root.clone()), ..Options::new("chaos") };
        let runtime = Runtime::start(options);
        let open = |(chip, logical_id): (&telltale_emulator::ChipDescription, u32)| {
            runtime.open_device(DeviceDescription {
                identity: chip.identity.clone(),
                logical_id,
                facts: Some(chip.facts),
            })
        };
        let devices = client.chips().iter().zip(0..).map(open).collect();
        Self {
            root,
            ordinal,
            pace: Duration::from_millis(pace_ms),
            random: Random::new(seed),
            line,
            client,
            devices,
            runtime,
            live: Vec::new(),
            reported: WorkloadReport::default(),
            latencies: Vec::new(),
        }
    }

    fn go_on(mut self) -> ! {
        self.have_something();
        self.say(b"r");
        let mut works = true;
        loop {
            let wait = if works { self.pace } else { TIMEOUT * 10 };
            self.line.set_read_timeout(Some(wait)).unwrap();
            let mut word = [0];
            match self.line.read(&mut word) {
                Ok(1) => works = self.obey(word[0], works),
                Err(error) if error.kind() == ErrorKind::WouldBlock && works => {
                    for _ in 0..=self.random.below(4) {
                        self.allocate_or_free();
                    }
                }
                // It was stopped and goes on: a wait with an end is not taken up again by itself.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(_) | Err(_) => std::process::exit(0),
            }
        }
    }

    /// Follows an order; whether it works then, if it `works` now.
    fn obey(&mut self, word: u8, works: bool) -> bool {
        match word {
            b'p' => {
                // A question that is answered shows that the frees before it were seen.
                if self.client.usage(0).is_err() {
                    lost();
                }
                self.say(b"p");
                return false;
            }
            b'f' => self.fork(),
            b'a' => {
                self.allocate_or_free();
                self.say(b"a");
                return works;
            }
            b's' => {
                self.report_itself();
                return works;
            }
            b'g' => {}
            _ => std::process::exit(0),
        }
        true
    }

    /// Goes on as a child of itself, as a daemon does: with the devices that it had opened for
    /// recording, and a connection of its own to them.
    fn fork(&mut self) {
        nix::unistd::daemon(true, true).unwrap();
        let Ok(client) = DeviceClient::open(&self.root, self.ordinal) else { lost() };
        self.client = client;
        // The buffers were the parent's, and are free since it ended.
        self.live.clear();
        self.reported = WorkloadReport::default();
        self.have_something();
        self.say(b"f");
        self.say(&std::process::id().to_le_bytes());
    }

    fn report_itself(&mut self) {
        self.latencies.sort_unstable();
        let median_ns = self.latencies.get(self.latencies.len() / 2).copied().unwrap_or(0);
        self.latencies.clear();
        let problems = self.runtime.problems().iter().map(|(_, count)| count).sum();
        let reported = WorkloadReport { problems, median_ns, ..self.reported };
        let numbers =
            [reported.allocations, reported.failed, reported.problems, reported.median_ns];
        self.say(b"s");
        self.say(&numbers.map(u64::to_le_bytes).concat());
    }

    /// Allocates, so that there is a ledger; others may have filled a space of the chip just now.
    fn have_something(&mut self) {
        while self.live.is_empty() {
            self.allocate_or_free();
        }
    }

    fn allocate_or_free(&mut self) {
        let wants_more = self.live.len() < MAX_BUFFERS && self.random.below(2) == 0;
        if wants_more || self.live.is_empty() {
            let chip = self.random.place(self.devices.len());
            let kind = MemoryKind::ALL[self.random.place(8)];
            let bytes = 1 + self.random.below(64 * 1024);
            let Ok(address) = self.client.allocate(chip, kind, bytes) else { return self.failed() };
            let begin = Instant::now();
            self.devices[chip].allocate(kind, address, bytes);
            if self.latencies.len() < MAX_LATENCIES {
                self.latencies.push(u64::try_from(begin.elapsed().as_nanos()).unwrap());
            }
            self.reported.allocations += 1;
            self.live.push((chip, kind, address));
        } else {
            let place = self.random.place(self.live.len());
            let (chip, kind, address) = self.live.swap_remove(place);
            self.devices[chip].free(kind, address);
            if self.client.free(chip, kind, address).is_err() {
                self.failed();
            }
        }
    }

    /// The device refused: either it is full, or it is gone and so is this.
    fn failed(&mut self) {
        self.reported.failed += 1;
        if self.client.usage(0).is_err() {
            lost();
        }
    }

    fn say(&mut self, bytes: &[u8]) {
        if self.line.write_all(bytes).is_err() {
            std::process::exit(0);
        }
    }
}

fn lost() -> ! {
    std::process::exit(LOST_ITS_DEVICE)
}
