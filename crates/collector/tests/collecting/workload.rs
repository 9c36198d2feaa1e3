//! Processes that the tests look at: this test program itself, started again in a role.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use telltale_collector::{CollectOptions, Collector, EndpointUse};
use telltale_harness::ChildGuard;
use telltale_ledger::directory::{Purpose, RuntimeDirectory, endpoint_name};
use telltale_ledger::{DeviceEntry, Ledger, LedgerOwner};
use telltale_runtime::{Device, DeviceDescription, Options, Runtime};
use telltale_schema::chip::ChipIdentity;
use telltale_schema::clock::Clock;
use telltale_schema::memory::{MemoryKind, MemoryUsage};
use telltale_schema::snapshot::{KindUsage, RecordingFaults, Snapshot};
use telltale_wire::{DeviceReport, FrameReader, Reply, Report, frame};

const ROLE: &str = "TELLTALE_TEST_ROLE";
const DIRECTORY: &str = "TELLTALE_TEST_DIRECTORY";
/// The machine's root.
pub(crate) const ROOT: &str = "TELLTALE_TEST_ROOT";
const CHIPS: &str = "TELLTALE_TEST_CHIPS";
const BYTES: &str = "TELLTALE_TEST_BYTES";
const NAME: &str = "TELLTALE_TEST_NAME";
/// Where a child is to report by the allocation server's protocol, beside what its role says.
pub(crate) const SOCKET: &str = "TELLTALE_TEST_LEGACY_SOCKET";
const READY: &str = "the role is ready";
const DONE: &str = "snapshot ";

/// What a child does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Keeps a ledger.
    Ledger,
    /// Keeps a ledger and serves it at an endpoint.
    LedgerAndEndpoint,
    /// Serves an endpoint without a ledger.
    Endpoint,
    /// Serves an endpoint that hands out a ledger which is nowhere else.
    HandedLedger,
    /// Serves an endpoint under the name of the pid in [`Child::named`].
    Squatter,
    /// Waits for a byte of input, then links the runtime as a workload does.
    Runtime,
    /// Collects once and prints the snapshot.
    Collector,
    /// Removes what the dead left.
    Cleaner,
}

const ROLES: [Role; 8] = [
    Role::Ledger,
    Role::LedgerAndEndpoint,
    Role::Endpoint,
    Role::HandedLedger,
    Role::Squatter,
    Role::Runtime,
    Role::Collector,
    Role::Cleaner,
];

/// A child to be started.
pub(crate) struct Child<'a> {
    pub(crate) role: Role,
    /// Its runtime directory.
    pub(crate) directory: &'a Path,
    /// The chips it has memory on.
    pub(crate) chips: &'a [ChipIdentity],
    /// Bytes of DRAM on each of them.
    pub(crate) bytes: u64,
    /// The pid whose name a squatter takes.
    pub(crate) named: u32,
}

/// This test program, to be started in a role, whatever starts it: `wrap` may put another program
/// before it.
pub(crate) fn command(child: &Child<'_>, wrap: impl FnOnce(&OsStr) -> Command) -> Command {
    let program = std::env::current_exe().unwrap();
    let mut command = wrap(program.as_os_str());
    command.args(["--exact", "collecting::workload::role", "--nocapture"]);
    command.env(ROLE, format!("{:?}", child.role));
    command.env(DIRECTORY, child.directory);
    command.env(CHIPS, serde_json::to_string(child.chips).unwrap());
    command.env(BYTES, child.bytes.to_string());
    command.env(NAME, child.named.to_string());
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// Starts a child and waits until it does what its role says.
pub(crate) fn start(child: &Child<'_>) -> ChildGuard {
    started(command(child, |program| Command::new(program)))
}

/// As [`start`], for a command that was changed.
pub(crate) fn started(mut command: Command) -> ChildGuard {
    let mut guard = ChildGuard::spawn(&mut command);
    line_with(&mut guard, READY);
    guard
}

/// The rest of the first line with `mark` that the child prints.
fn line_with(guard: &mut ChildGuard, mark: &str) -> String {
    let output = guard.child().stdout.as_mut().unwrap();
    for line in BufReader::new(output).lines() {
        let line = line.unwrap();
        if let Some((_, rest)) = line.split_once(mark) {
            return rest.to_owned();
        }
    }
    panic!("the child ended without saying {mark:?}");
}

/// A snapshot made by a child that was changed by `wrap`, perhaps into another user.
pub(crate) fn collected(
    root: &Path,
    directory: &Path,
    change: impl FnOnce(Command) -> Command,
) -> Snapshot {
    let child = Child { role: Role::Collector, directory, chips: &[], bytes: 0, named: 0 };
    let mut command = command(&child, |program| Command::new(program));
    command.env(ROOT, root);
    let mut guard = ChildGuard::spawn(&mut change(command));
    serde_json::from_str(&line_with(&mut guard, DONE)).unwrap()
}

/// What a child of user `uid` removes and leaves when it cleans `directory`, as two counts.
pub(crate) fn cleaned_by(uid: u32, root: &Path, directory: &Path) -> (usize, usize) {
    let child = Child { role: Role::Cleaner, directory, chips: &[], bytes: 0, named: 0 };
    let mut command = command(&child, |program| Command::new(program));
    command.env(ROOT, root);
    let mut guard = ChildGuard::spawn(&mut telltale_harness::as_user(uid, uid, command));
    serde_json::from_str(&line_with(&mut guard, DONE)).unwrap()
}

/// Not a test of its own: what the children of the tests do.
#[test]
fn role() {
    let Ok(name) = std::env::var(ROLE) else { return };
    let role = ROLES.into_iter().find(|role| format!("{role:?}") == name).unwrap();
    let path = PathBuf::from(std::env::var_os(DIRECTORY).unwrap());
    if matches!(role, Role::Collector | Role::Cleaner) {
        let root = PathBuf::from(std::env::var_os(ROOT).unwrap());
        let options = CollectOptions {
            root,
            runtime_dir: Some(path),
            endpoints: EndpointUse::Always,
            usage: true,
            ..CollectOptions::default()
        };
        if role == Role::Cleaner {
            let report = telltale_collector::clean(options).unwrap();
            println!("\n{DONE}[{}, {}]", report.removed.len(), report.left.len());
            return;
        }
        let snapshot = Collector::new(options).unwrap().collect();
        println!("\n{DONE}{}", serde_json::to_string(&snapshot).unwrap());
        return;
    }
    if role == Role::Runtime {
        return linked(path);
    }
    let directory = RuntimeDirectory::open(&path, Purpose::Writing).unwrap();
    let work = Work::begin(role, &directory);
    let _reporting = report_if_asked();
    println!("\n{READY}");
    std::io::stdout().flush().unwrap();
    // The parent keeps the other end as long as it wants the child.
    let _ = std::io::stdin().read(&mut [0; 1]);
    drop(work);
}

/// A workload that links the runtime, as any would.
fn linked(directory: PathBuf) {
    std::io::stdin().read_exact(&mut [0; 1]).unwrap();
    let chips: Vec<ChipIdentity> = serde_json::from_str(&std::env::var(CHIPS).unwrap()).unwrap();
    let bytes: u64 = std::env::var(BYTES).unwrap().parse().unwrap();
    // With a root it may be asked to keep regions there.
    let root = std::env::var_os(ROOT).map(PathBuf::from);
    let variable = |name: &str| root.as_ref().and_then(|_| std::env::var_os(name));
    let options = Options::from_variables("test 1", variable);
    let options = Options { directory: Some(directory), root, ..options };
    let runtime = Runtime::start(options);
    runtime.registry().counter("steps").help("Steps done.").register().add(7);
    let devices: Vec<Device> = (0..)
        .zip(chips)
        .map(|(logical_id, identity)| {
            let device =
                runtime.open_device(DeviceDescription { identity, logical_id, facts: None });
            device.allocate(MemoryKind::Dram, 0x1000, bytes);
            device.allocate(MemoryKind::L1, 0x1000, 64);
            device.free(MemoryKind::L1, 0x1000);
            device.count_operations(11);
            device
        })
        .collect();
    println!("\n{READY}");
    std::io::stdout().flush().unwrap();
    let _ = std::io::stdin().read(&mut [0; 1]);
    drop(devices);
}

/// Lets a child in the role [`Role::Runtime`] begin, and waits until it has.
pub(crate) fn let_begin(guard: &mut ChildGuard) {
    guard.child().stdin.as_mut().unwrap().write_all(b"b").unwrap();
    line_with(guard, READY);
}

/// What a child has while it lives.
struct Work {
    _ledger: Option<Ledger>,
}

impl Work {
    fn begin(role: Role, directory: &RuntimeDirectory) -> Self {
        let chips: Vec<ChipIdentity> =
            serde_json::from_str(&std::env::var(CHIPS).unwrap()).unwrap();
        let bytes: u64 = std::env::var(BYTES).unwrap().parse().unwrap();
        let (ledger, owner) = recorded(directory, &chips, bytes);
        let name = match role {
            Role::Ledger => return Self { _ledger: Some(ledger) },
            Role::Squatter => endpoint_name(std::env::var(NAME).unwrap().parse().unwrap(), None),
            _ => endpoint_name(std::process::id(), None),
        };
        let report = report(&owner, chips, bytes);
        if role != Role::LedgerAndEndpoint {
            ledger.remove();
        }
        let handed = matches!(role, Role::HandedLedger | Role::LedgerAndEndpoint);
        let handed = handed.then(|| ledger.read_only_descriptor().unwrap());
        serve(&directory.path().join(name), directory.endpoint_mode(), report, handed);
        Self { _ledger: Some(ledger) }
    }
}

/// Makes a ledger of this process that is in no directory and serves it at `name`.
pub(crate) fn hand_out(
    directory: &RuntimeDirectory,
    name: &str,
    chips: Vec<ChipIdentity>,
    bytes: u64,
) -> Ledger {
    let (ledger, owner) = recorded(directory, &chips, bytes);
    ledger.remove();
    let handed = Some(ledger.read_only_descriptor().unwrap());
    let report = report(&owner, chips, bytes);
    serve(&directory.path().join(name), directory.endpoint_mode(), report, handed);
    ledger
}

/// A ledger of this process with `bytes` of DRAM on each of the chips, and its owner.
fn recorded(
    directory: &RuntimeDirectory,
    chips: &[ChipIdentity],
    bytes: u64,
) -> (Ledger, LedgerOwner) {
    let now = telltale_collector::clock::SystemClock.now();
    let owner = LedgerOwner::of_this_process("test workload", now).unwrap();
    let ledger = Ledger::create(directory, owner.clone()).unwrap();
    let recorder = ledger.recorder();
    for chip in chips {
        let entry = DeviceEntry { identity: chip.clone(), ..DeviceEntry::default() };
        let slot = ledger.add_device(&entry).unwrap();
        recorder.allocated(slot, MemoryKind::Dram, bytes);
    }
    (ledger, owner)
}

fn report(owner: &LedgerOwner, chips: Vec<ChipIdentity>, bytes: u64) -> Report {
    let usage = MemoryUsage { live_bytes: bytes, live_buffers: 1, ..MemoryUsage::default() };
    let kinds = vec![KindUsage { kind: MemoryKind::Dram, usage }];
    let device = |chip| DeviceReport { chip, kinds: kinds.clone(), ..DeviceReport::default() };
    Report {
        identity: owner.identity,
        name: owner.name.clone(),
        runtime: "test workload".to_owned(),
        started_at: Some(owner.started_at),
        uptime_ns: Some(1),
        devices: chips.into_iter().map(device).collect(),
        faults: RecordingFaults::default(),
        programs: None,
        kernel_cache: None,
        metrics: Vec::new(),
        metrics_omitted: 0,
        ledger_follows: false,
    }
}

/// Answers every query in a thread, until the process ends.
fn serve(path: &Path, mode: u32, mut report: Report, ledger: Option<std::os::fd::OwnedFd>) {
    use std::os::unix::fs::PermissionsExt;
    let listener = UnixListener::bind(path).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    report.ledger_follows = ledger.is_some();
    let answer = frame(&Reply::Report(Box::new(report)).encode().unwrap()).unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut reader = FrameReader::default();
            let mut byte = [0; 1];
            while !reader.is_complete() && stream.read(&mut byte).unwrap_or(0) == 1 {
                reader.push(&byte).unwrap();
            }
            let descriptors: Vec<_> = ledger.iter().map(AsFd::as_fd).collect();
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            if !descriptors.is_empty() {
                control.push(SendAncillaryMessage::ScmRights(&descriptors));
            }
            let parts = [std::io::IoSlice::new(&answer)];
            let _ = sendmsg(&stream, &parts, &mut control, SendFlags::NOSIGNAL);
        }
    });
}

/// Reports 77 bytes from this process, if a test asks for it; a message of the first form.
fn report_if_asked() -> Option<UnixStream> {
    let path = std::env::var_os(SOCKET)?;
    let mut stream = UnixStream::connect(path).unwrap();
    let mut message = [0; 112];
    (message[0], message[8], message[24]) = (1, 77, 1);
    stream.write_all(&message).unwrap();
    Some(stream)
}
