//! Four processes allocate and free without pause, one at a time is killed at a random moment:
//! what the collector says of the living equals the emulator's own values to the byte, and
//! cleaning leaves nothing of the dead.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use telltale_collector::{CollectOptions, Collector};
use telltale_emulator::{DeviceClient, Emulator, EmulatorOptions, MachineKind};
use telltale_harness::{ChildGuard, Scratch, rounds, wait_until};
use telltale_runtime::{Device, DeviceDescription, Options, Runtime};
use telltale_schema::memory::MemoryKind;
use telltale_schema::snapshot::Snapshot;

const TEST: &str = "killed_workloads::totals_of_the_living_stay_exact_who_is_killed";
/// Set in a workload: the machine's root.
const ROOT: &str = "TELLTALE_TEST_MACHINE";
/// Set in a workload: what its random choices follow from.
const SEED: &str = "TELLTALE_TEST_SEED";
const WORKLOADS: usize = 4;
const LONGEST_WAIT: Duration = Duration::from_secs(20);

/// xorshift64*: enough to be unpredictable to the code under test, and repeatable.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) % limit
    }
}

#[test]
fn totals_of_the_living_stay_exact_who_is_killed() {
    if let Some(root) = std::env::var_os(ROOT) {
        return workload(Path::new(&root));
    }
    let scratch = Scratch::new();
    let root = scratch.join("machine");
    let emulator = Emulator::start(&root, MachineKind::N300, EmulatorOptions::default()).unwrap();
    let options = CollectOptions { root: root.clone(), ..CollectOptions::default() };
    let mut collector = Collector::new(options).unwrap();
    let mut random = Random(0x1CEB_00DA);
    let mut workloads: Vec<Workload> =
        (0..WORKLOADS).map(|_| Workload::start(&root, random.below(u64::MAX))).collect();

    for round in 0..rounds(40, 500) {
        // The moment is what is random: a wait for a condition would choose it.
        std::thread::sleep(Duration::from_micros(random.below(15_000)));
        let victim = usize::try_from(random.below(WORKLOADS as u64)).unwrap();
        let pid = workloads[victim].process.id();
        workloads[victim].process.kill();
        let living: Vec<u32> = others(&mut workloads, victim).map(|w| w.process.id()).collect();
        others(&mut workloads, victim).for_each(Workload::pause);
        wait_until("the emulator frees what the dead process had", LONGEST_WAIT, || {
            emulator.usage().iter().all(|chip| chip.processes.iter().all(|(held, _)| *held != pid))
        });
        compare(&emulator, &collector.collect(), &format!("round {round}"));

        let report = collector.clean();
        let left = owners_of_files(&root.join("run/tt"));
        let expected: BTreeMap<u32, usize> = living.iter().map(|pid| (*pid, 2)).collect();
        assert_eq!(left, expected, "round {round}: {report:?}");

        others(&mut workloads, victim).for_each(Workload::resume);
        workloads[victim] = Workload::start(&root, random.below(u64::MAX));
    }
    for workload in &mut workloads {
        workload.stop();
    }
    assert_eq!(owners_of_files(&root.join("run/tt")), BTreeMap::new());
    // It learns of their end from their connections, a moment after their parent has.
    wait_until("the emulator notices that all have ended", LONGEST_WAIT, || {
        emulator.usage().iter().all(|chip| chip.processes.is_empty())
    });
    compare(&emulator, &collector.collect(), "the end");
    emulator.shutdown().unwrap();
}

fn others(workloads: &mut [Workload], victim: usize) -> impl Iterator<Item = &mut Workload> {
    workloads.iter_mut().enumerate().filter(move |(place, _)| *place != victim).map(|(_, w)| w)
}

/// Files in the runtime directory, counted by the pid in their names.
fn owners_of_files(directory: &Path) -> BTreeMap<u32, usize> {
    let mut owners = BTreeMap::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let digits: String = name
            .chars()
            .skip_while(|c| !c.is_ascii_digit())
            .take_while(char::is_ascii_digit)
            .collect();
        *owners.entry(digits.parse().unwrap()).or_default() += 1;
    }
    owners
}

/// Each value of the snapshot against the emulator's own.
fn compare(emulator: &Emulator, snapshot: &Snapshot, when: &str) {
    let chips = emulator.usage();
    assert_eq!(snapshot.devices.len(), chips.len(), "{when}");
    for (index, chip) in chips.iter().enumerate() {
        let id = chip.description.identity.display_id();
        let (place, device) = snapshot
            .devices
            .iter()
            .enumerate()
            .find(|(_, device)| device.id == id)
            .unwrap_or_else(|| panic!("{when}: chip {index} ({id}) is not in the snapshot"));
        for kind in MemoryKind::ALL {
            let truth = chip.total.of(kind);
            let shown = device.kind(kind);
            let total = shown.map_or(0, |parts| parts.total_bytes);
            assert_eq!(total, truth.requested_bytes, "{when}: {} of {id}", kind.name());
            let buffers = shown.map_or(Some(0), |parts| parts.live_buffers);
            assert_eq!(buffers, Some(truth.buffers), "{when}: {} buffers of {id}", kind.name());
            for (pid, usage) in &chip.processes {
                let process = snapshot
                    .processes
                    .iter()
                    .find(|process| process.pid == Some(*pid))
                    .unwrap_or_else(|| panic!("{when}: process {pid} is not in the snapshot"));
                let held = process.devices.iter().find(|held| held.device == place);
                let recorded = held
                    .and_then(|held| held.kinds.iter().find(|found| found.kind == kind))
                    .map_or(0, |found| found.usage.live_bytes());
                let truth = usage.of(kind).requested_bytes;
                assert_eq!(recorded, truth, "{when}: {} of {pid} on {id}", kind.name());
            }
        }
    }
}

/// A process that allocates and frees, and the line that orders its pauses.
struct Workload {
    process: ChildGuard,
    line: UnixStream,
}

impl Workload {
    fn start(root: &Path, seed: u64) -> Self {
        let (line, theirs) = UnixStream::pair().unwrap();
        line.set_read_timeout(Some(LONGEST_WAIT)).unwrap();
        let process = ChildGuard::spawn(
            Command::new(std::env::current_exe().unwrap())
                .args([TEST, "--exact", "--nocapture"])
                .env(ROOT, root)
                .env(SEED, seed.to_string())
                .stdin(Stdio::from(OwnedFd::from(theirs)))
                .stdout(Stdio::null()),
        );
        let mut workload = Self { process, line };
        workload.hear(b'r');
        workload
    }

    /// Returns when the workload stands still and the device has seen all it did.
    fn pause(&mut self) {
        self.line.write_all(b"p").unwrap();
        self.hear(b'p');
    }

    fn resume(&mut self) {
        self.line.write_all(b"r").unwrap();
    }

    /// Ends it as a program ends.
    fn stop(&mut self) {
        self.line.write_all(b"q").unwrap();
        let status = self.process.wait_within("the workload ends", LONGEST_WAIT);
        assert!(status.success(), "{status}");
    }

    fn hear(&mut self, expected: u8) {
        let mut heard = [0];
        self.line.read_exact(&mut heard).expect("the workload answers");
        assert_eq!(heard[0], expected);
    }
}

/// What a workload does.
fn workload(root: &Path) {
    let stdin = std::io::stdin();
    let mut line = UnixStream::from(stdin.as_fd().try_clone_to_owned().unwrap());
    let mut random = Random(std::env::var(SEED).unwrap().parse::<u64>().unwrap() | 1);
    let client = DeviceClient::open(root, 0).unwrap();
    let options = Options { root: Some(root.to_owned()), ..Options::new("kill test") };
    let runtime = Runtime::start(options);
    let devices: Vec<Device> = client
        .chips()
        .iter()
        .zip(0..)
        .map(|(chip, logical_id)| {
            runtime.open_device(DeviceDescription {
                identity: chip.identity.clone(),
                logical_id,
                facts: Some(chip.facts),
            })
        })
        .collect();
    line.write_all(b"r").unwrap();
    let mut live: Vec<(usize, MemoryKind, u64)> = Vec::new();
    loop {
        line.set_nonblocking(true).unwrap();
        let mut reported = [0];
        match line.read(&mut reported) {
            Ok(0) => return,
            Ok(_) if reported == *b"q" => return,
            Ok(_) => {
                // A question that is answered shows that the frees before it were seen.
                client.usage(0).unwrap();
                line.set_nonblocking(false).unwrap();
                line.write_all(b"p").unwrap();
                if line.read(&mut reported).unwrap_or(0) == 0 {
                    return;
                }
            }
            Err(_) => churn(&client, &devices, &mut random, &mut live),
        }
    }
}

/// One allocation or one free.
fn churn(
    client: &DeviceClient,
    devices: &[Device],
    random: &mut Random,
    live: &mut Vec<(usize, MemoryKind, u64)>,
) {
    if live.len() < 200 && random.below(2) == 0 || live.is_empty() {
        let chip = usize::try_from(random.below(devices.len() as u64)).unwrap();
        let kind = MemoryKind::ALL[usize::try_from(random.below(8)).unwrap()];
        let bytes = 1 + random.below(64 * 1024);
        match client.allocate(chip, kind, bytes) {
            Ok(address) => {
                devices[chip].allocate(kind, address, bytes);
                live.push((chip, kind, address));
            }
            Err(_) => devices[chip].allocation_failed(kind),
        }
    } else {
        let place = usize::try_from(random.below(live.len() as u64)).unwrap();
        let (chip, kind, address) = live.swap_remove(place);
        devices[chip].free(kind, address);
        client.free(chip, kind, address).unwrap();
    }
}
