//! A Galaxy with 64 workloads, five of them of one name and user on one device, and a service for it.
//! Needs root: some are another user's.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Stdio};

use telltale_harness::{ChildGuard, Scratch, as_user, wait_until};
use telltale_schema::memory::MemorySpace;
use telltale_schema::snapshot::{Process, Snapshot};
use telltale_trace::{Description, Writer};

use crate::cli::command::{TIMEOUT, emulate, snapshot, telltale};
use crate::cli::serve::Serving;

/// The service's token.
pub(crate) const TOKEN: &str = "a-token-that-cannot-be-guessed-0123";
/// How many workloads there are, of these on the first chip, all of one name, and of another user.
pub(crate) const WORKLOADS: usize = 64;
pub(crate) const ALIKE: usize = 5;
pub(crate) const OF_ANOTHER: usize = 20;
/// That user, which has no name.
pub(crate) const ANOTHER: u32 = 61_005;
const CHIPS: usize = 32;
const MIB: u64 = 1 << 20;

/// All of it.
pub(crate) struct Galaxy {
    // Dropped in this order.
    service: Serving,
    pub(crate) workloads: Vec<ChildGuard>,
    _machine: ChildGuard,
    /// Where the service is scraped.
    pub(crate) address: String,
    /// What it holds; it does not change while all of them run.
    pub(crate) snapshot: Snapshot,
    _place: Scratch,
}

impl Galaxy {
    pub(crate) fn start() -> Self {
        let place = Scratch::new();
        place.set_mode(0o755);
        let root = place.join("m");
        let machine = emulate("galaxy-wormhole", &root, &[]);
        let workloads: Vec<ChildGuard> =
            (0..WORKLOADS).map(|number| work(&place, number)).collect();
        let (service, address) = serve(&place);
        let mut now = snapshot(&root);
        wait_until("the workloads to hold what they shall", TIMEOUT, || {
            now = snapshot(&root);
            let done = now.processes.iter().filter(|process| is_done(process)).count();
            done == WORKLOADS
        });
        Self { service, workloads, _machine: machine, address, snapshot: now, _place: place }
    }

    /// Those that hold this device, by its place, the one with most memory first.
    pub(crate) fn holders(&self, device: usize) -> Vec<&Process> {
        self.snapshot.holders(device).known.into_iter().map(|(process, _)| process).collect()
    }

    /// What all devices have in use, in DRAM and L1; of one device where its place is given.
    pub(crate) fn used_bytes(&self, device: Option<usize>) -> u64 {
        let devices = self.snapshot.devices.iter().enumerate();
        let devices = devices.filter(|(place, _)| device.is_none_or(|device| device == *place));
        let spaces = devices.flat_map(|(_, device)| &device.spaces);
        let spaces = spaces.filter(|usage| usage.space != MemorySpace::Host);
        spaces.map(|usage| usage.used_bytes.value().copied().unwrap()).sum()
    }

    pub(crate) fn end(self) {
        self.service.end();
    }
}

/// Bytes of a space that the process has on all devices.
pub(crate) fn held_bytes(process: &Process, space: MemorySpace) -> u64 {
    process.devices.iter().filter_map(|held| held.live_bytes(space)).sum()
}

/// Starts a workload. It allocates at once, each another number of bytes, and then waits.
fn work(place: &Scratch, number: usize) -> ChildGuard {
    let (name, device) = match number {
        0..ALIKE => ("train".to_owned(), 0),
        _ => (format!("serve-{number}"), 1 + number % (CHIPS - 1)),
    };
    let (link, trace) = (place.join(&name), place.join(format!("{number}.trace")));
    if !link.is_symlink() {
        symlink(env!("CARGO_BIN_EXE_telltale"), &link).unwrap();
    }
    let mebibytes = u64::try_from(number).unwrap() + 2;
    let description = Description {
        made_with: "a test".to_owned(),
        command: String::new(),
        page_bytes: 4096,
        threshold_bytes: 1,
    };
    let mut writer = Writer::new(File::create(&trace).unwrap(), description).unwrap();
    let more = writer.allocate(0, 0, MIB).unwrap();
    writer.allocate(0, 0, mebibytes * MIB).unwrap();
    // So that the peak is another number than what is held.
    writer.free(0, 0, more).unwrap();
    // Small enough for L1, and the last of what it does within an hour.
    writer.allocate(0, 0, 16 << 10).unwrap();
    writer.allocate(3_600_000_000_000, 0, 1).unwrap();
    writer.finish().unwrap();
    let mut command = Command::new(link);
    command.arg("replay").arg(&trace).args(["--device", &device.to_string()]);
    command.arg("--root").arg(place.join("m"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if number >= WORKLOADS - OF_ANOTHER {
        command = as_user(ANOTHER, ANOTHER, command);
    }
    ChildGuard::spawn(&mut command)
}

/// Whether a workload has come to where it waits.
fn is_done(process: &Process) -> bool {
    held_bytes(process, MemorySpace::L1) > 0
}

/// A service for the machine, and the address it is scraped at.
fn serve(place: &Scratch) -> (Serving, String) {
    let token = place.join("token");
    fs::write(&token, TOKEN).unwrap();
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
    let mut command = telltale();
    command.env("HOME", place.path()).env_remove("XDG_CONFIG_HOME").env_remove("TELLTALE_CONFIG");
    command.args(["serve", "--grpc", "off", "--interval", "0.5", "--http", "127.0.0.1:0"]);
    command.arg("--root").arg(place.join("m")).arg("--state-dir").arg(place.join("state"));
    command.arg("--token-file").arg(&token);
    let mut service = Serving::start(&mut command);
    let line = service.says("http listens on ");
    let address = line.rsplit(' ').next().unwrap().to_owned();
    (service, address)
}
