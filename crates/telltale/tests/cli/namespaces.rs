//! Nothing of a living process is removed or taken for dead, in whatever namespace it or the reader
//! is; what the dead left goes. Needs root.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use telltale_harness::{ChildGuard, Scratch, needs_pid_namespaces, wait_until};
use telltale_schema::snapshot::{ProcessState, Snapshot};

use crate::cli::command::{Said, TIMEOUT, children, said, telltale};
use crate::cli::serve::{Serving, serve};

/// Namespaces by the options with which `unshare` makes them.
const NAMESPACES: [(&str, &[&str]); 8] = [
    ("time, ahead", &["--time", "--boottime", "864000", "--monotonic", "864000"]),
    ("time, a little ahead", &["--time", "--boottime", "1"]),
    ("PID", &["--pid", "--mount-proc"]),
    ("PID, with the /proc of another", &["--pid"]),
    ("user", &["--user", "--map-root-user"]),
    ("user and time", &["--user", "--map-root-user", "--time", "--boottime", "5000"]),
    ("mount", &["--mount"]),
    ("network", &["--net"]),
];

/// `program` in these namespaces; with none of them, as it is.
fn within(options: &[&str], program: &Command) -> Command {
    let mut command = Command::new("unshare");
    command.args(options).args(["--fork", "--kill-child", "--"]);
    command.arg(program.get_program()).args(program.get_args());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    if options.is_empty() {
        let mut plain = Command::new(program.get_program());
        plain.args(program.get_args());
        return plain;
    }
    command
}

fn names(directory: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    entries.map(|name| name.into_string().unwrap()).collect()
}

/// A process that records and answers in `directory`, in these namespaces.
struct Workload {
    started: ChildGuard,
    pid: u32,
}

impl Workload {
    fn start(options: &[&str], directory: &Path) -> Self {
        let mut program = telltale();
        program.args(["replay", "train", "--loop", "--runtime-dir"]).arg(directory);
        let mut command = within(options, &program);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let started = ChildGuard::spawn(&mut command);
        let mut all = BTreeSet::new();
        wait_until("a ledger and an endpoint", TIMEOUT, || {
            all = names(directory);
            all.len() == 2 && all.iter().any(|name| name.starts_with("metrics_"))
        });
        let pid = if options.is_empty() { started.id() } else { children(started.id())[0] };
        Self { started, pid }
    }

    fn kill(mut self) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.pid).unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        self.started.wait_within("the workload's end", TIMEOUT);
    }
}

/// What `smi` says in these namespaces of what is in `directory`.
fn smi(options: &[&str], directory: &Path, more: &[&str]) -> Said {
    let mut program = telltale();
    program.args(["smi", "--runtime-dir"]).arg(directory).args(more);
    said(&mut within(options, &program))
}

#[test]
fn nothing_of_the_living_is_removed_and_what_the_dead_left_goes() {
    if !needs_pid_namespaces("cli::namespaces::nothing_of_the_living_is_removed") {
        return;
    }
    for (name, options) in NAMESPACES {
        for (side, inside, outside) in
            [("the cleaner", options, &[][..]), ("the workload", &[][..], options)]
        {
            let what = format!("{name} namespace, {side} inside");
            let place = Scratch::new();
            let directory = place.path();
            let workload = Workload::start(outside, directory);
            let before = names(directory);
            let cleaned = smi(inside, directory, &["-c", "-d"]);
            assert_eq!(names(directory), before, "{what}: {cleaned:?}");
            assert!(!cleaned.out.contains("removed "), "{what}: {cleaned:?}");
            let all = format!("{}{}", cleaned.out, cleaned.err);
            assert!(!all.contains("lies") && !all.contains("(ended"), "{what}: {cleaned:?}");
            // Only who cannot see it, or whose `/proc` numbers it otherwise, does not show it as living.
            let sees = !name.starts_with("PID") || side == "the workload";
            let command = "telltale replay train";
            assert_eq!(cleaned.out.contains(command), sees, "{what}: {cleaned:?}");

            workload.kill();
            let cleaned = smi(inside, directory, &["-c"]);
            assert_eq!(names(directory), BTreeSet::new(), "{what}: {cleaned:?}");
            assert_eq!(cleaned.out.matches("removed ").count(), 2, "{what}: {cleaned:?}");
        }
    }
}

/// Makes a socket under the name of its endpoint and does not listen there yet.
const BOUND: &str = "
import os, socket, sys
os.chdir(sys.argv[1])
endpoint = socket.socket(socket.AF_UNIX)
endpoint.bind(f'metrics_{os.getpid()}.sock')
print('bound!', flush=True)
sys.stdin.read()
";

#[test]
fn a_socket_stays_whose_process_began_before_the_cleaners_clock() {
    if !needs_pid_namespaces("cli::namespaces::a_socket_stays_whose_process_began") {
        return;
    }
    let place = Scratch::new();
    let mut program = Command::new("python3");
    program.args(["-c", BOUND]).arg(place.path());
    let mut bound = ChildGuard::spawn(program.stdin(Stdio::piped()).stdout(Stdio::piped()));
    bound.child().stdout.as_mut().unwrap().read_exact(&mut [0; 7]).unwrap();
    let before = names(place.path());
    let uptime = || {
        let text = fs::read_to_string("/proc/uptime").unwrap();
        text.split(' ').next().unwrap().parse::<f64>().unwrap()
    };
    let bound_at = uptime();
    wait_until("the process to be older", TIMEOUT, || uptime() > bound_at + 2.0);
    // The clock there began a moment ago, after the process.
    let offset = format!("-{}", uptime().floor());
    for options in [&[][..], &["--time", "--boottime", &offset]] {
        let cleaned = smi(options, place.path(), &["-c"]);
        assert_eq!(names(place.path()), before, "{options:?}: {cleaned:?}");
    }
    bound.kill();
    let cleaned = smi(&[], place.path(), &["-c"]);
    assert_eq!(names(place.path()), BTreeSet::new(), "{cleaned:?}");
}

/// What CRIU leaves when it restores a process: one with the same pid in its PID namespace, which is a
/// new one, and another start, that maps the same file and holds its lock. `argv[3]`, where there is one, is
/// where it binds a socket, and `argv[4]` that it listens there.
const RESTORED: &str = "
import ctypes, fcntl, os, socket, struct, sys
file = os.open(sys.argv[1], os.O_RDWR)
if sys.argv[2] == 'locked':
    lock = struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, 0, 1, 0)
    fcntl.fcntl(file, 37, lock)
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
length = ctypes.c_size_t(524288)
libc.mmap(None, length, 3, 1, file, ctypes.c_long(0))
if sys.argv[2] != 'locked':
    os.close(file)
if sys.argv[3:]:
    endpoint = socket.socket(socket.AF_UNIX)
    os.chdir(os.path.dirname(sys.argv[3]))
    endpoint.bind(os.path.basename(sys.argv[3]))
    if sys.argv[4:]:
        endpoint.listen()
print('mapped', flush=True)
sys.stdin.read()
";

fn restored(options: &[&str], ledger: &Path, how: &str) -> ChildGuard {
    restored_with(options, ledger, &[OsStr::new(how)])
}

fn restored_with(options: &[&str], ledger: &Path, how: &[&OsStr]) -> ChildGuard {
    let mut program = Command::new("python3");
    program.args(["-c", RESTORED]).arg(ledger).args(how);
    let mut command = within(options, &program);
    let mut guard = ChildGuard::spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
    let mut said = [0; 7];
    guard.child().stdout.as_mut().unwrap().read_exact(&mut said).unwrap();
    guard
}

fn ledger(directory: &Path) -> PathBuf {
    let mut entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.find(|path| path.extension() == Some(OsStr::new("tt"))).unwrap()
}

#[test]
fn a_restored_process_keeps_its_ledger_and_is_shown_as_living() {
    if !needs_pid_namespaces("cli::namespaces::a_restored_process_keeps_its_ledger") {
        return;
    }
    let container: &[&str] = &["--pid", "--mount-proc"];
    for (options, how) in
        [(container, "locked"), (container, "mapped alone"), (&[], "mapped alone")]
    {
        let place = Scratch::new();
        let directory = place.path();
        Workload::start(container, directory).kill();
        let restored = restored(options, &ledger(directory), how);
        let cleaned = smi(&[], directory, &["-c"]);
        assert!(ledger(directory).exists(), "{how}: {cleaned:?}");
        assert!(cleaned.out.matches("removed ").count() <= 1, "{how}: {cleaned:?}");
        if how == "locked" {
            // It has no other name than its program's, and it counts.
            assert!(cleaned.out.contains("python3 -c"), "{cleaned:?}");
            assert!(!cleaned.out.contains("(ended"), "{cleaned:?}");
        } else {
            assert!(cleaned.out.contains("left ") && cleaned.out.contains(" maps its file"));
        }
        drop(restored);
        wait_until("its leftover to go", TIMEOUT, || {
            smi(&[], directory, &["-c"]);
            names(directory).is_empty()
        });
    }
}

#[test]
fn a_restored_process_keeps_its_sockets() {
    if !needs_pid_namespaces("cli::namespaces::a_restored_process_keeps_its_sockets") {
        return;
    }
    let container: &[&str] = &["--pid", "--mount-proc"];
    for more in [&["listening"][..], &[]] {
        let place = Scratch::new();
        let directory = place.path();
        Workload::start(container, directory).kill();
        let ledger = ledger(directory);
        let of_ledger = ledger.file_stem().unwrap().to_str().unwrap();
        let of_process = of_ledger.strip_prefix("ledger_").unwrap();
        // CRIU binds the socket again by the name under which it was first bound.
        let bound = directory.join(format!(".metrics_{of_process}_0123456789abcdef.new"));
        let mut how = vec![OsStr::new("locked"), bound.as_os_str()];
        how.extend(more.iter().map(OsStr::new));
        let restored = restored_with(container, &ledger, &how);
        let before = names(directory);
        assert_eq!(before.len(), 3, "a ledger, the endpoint's name and the socket: {before:?}");
        let cleaned = smi(&[], directory, &["-c"]);
        assert_eq!(names(directory), before, "{more:?}: {cleaned:?}");
        assert!(!cleaned.out.contains("removed "), "{more:?}: {cleaned:?}");
        drop(restored);
        wait_until("its leftover to go", TIMEOUT, || {
            smi(&[], directory, &["-c"]);
            names(directory).is_empty()
        });
    }
}

#[test]
fn an_endpoint_is_asked_at_the_name_by_which_it_was_first_bound() {
    let place = Scratch::new();
    let directory = place.join("run");
    fs::create_dir(&directory).unwrap();
    let workload = Workload::start(&[], &directory);
    let named = directory.join(format!("metrics_{}.sock", workload.pid));
    let bound = format!(".metrics_{}_7_0123456789abcdef.new", workload.pid);
    fs::rename(named, directory.join(bound)).unwrap();
    let shown = Shown::by_service(&place);
    wait_until("what the endpoint alone reports", TIMEOUT, || {
        shown.snapshot().processes.iter().any(|process| !process.metrics.is_empty())
    });
    shown.service.end();
    workload.kill();
}

/// What a service for an empty machine shows of the only process with a ledger.
struct Shown {
    service: Serving,
    socket: PathBuf,
    runtime: tokio::runtime::Runtime,
}

impl Shown {
    fn by_service(place: &Scratch) -> Self {
        let mut service = Serving::start(serve(place).args(["--interval", "0.1"]));
        service.says("collecting");
        let socket = place.join("run").join(telltale_node::grpc::SOCKET_NAME);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { service, socket, runtime }
    }

    fn snapshot(&self) -> Snapshot {
        self.runtime.block_on(async {
            let mut client = telltale_client::connect(&self.socket).await.unwrap();
            client.snapshot(false).await.unwrap()
        })
    }

    /// Waits until it is shown so, and its bytes are in the device's total or not.
    #[track_caller]
    fn wait_for(&self, what: &str, state: ProcessState, pid: Option<u32>) {
        wait_until(what, TIMEOUT, || {
            let seen = self.snapshot();
            let processes: Vec<_> = seen.processes.iter().map(|one| (one.state, one.pid)).collect();
            let kinds = seen.devices.iter().flat_map(|device| &device.kinds);
            let counts = kinds.map(|one| one.processes_bytes).sum::<u64>() > 0;
            processes == [(state, pid)] && counts == (state == ProcessState::Alive)
        });
    }
}

#[test]
fn a_service_shows_a_restored_process_as_living_again() {
    if !needs_pid_namespaces("cli::namespaces::a_service_shows_a_restored_process") {
        return;
    }
    let container: &[&str] = &["--pid", "--mount-proc"];
    let place = Scratch::new();
    let directory = place.join("run");
    fs::create_dir(&directory).unwrap();
    let workload = Workload::start(container, &directory);
    let shown = Shown::by_service(&place);
    shown.wait_for("the workload", ProcessState::Alive, Some(workload.pid));
    workload.kill();
    shown.wait_for("its end", ProcessState::Dead, None);
    // Twice: it is watched again after it came back.
    for _ in 0..2 {
        let restored = restored(container, &ledger(&directory), "locked");
        let pid = children(restored.id())[0];
        shown.wait_for("it to live again", ProcessState::Alive, Some(pid));
        drop(restored);
        shown.wait_for("its end after that", ProcessState::Dead, None);
    }
    shown.service.end();
}

#[test]
fn an_endpoint_that_answers_is_believed_and_not_a_ledger_that_nobody_has() {
    let place = Scratch::new();
    let directory = place.join("run");
    fs::create_dir(&directory).unwrap();
    let workload = Workload::start(&[], &directory);
    let shown = Shown::by_service(&place);
    shown.wait_for("the workload", ProcessState::Alive, Some(workload.pid));
    // A copy has the name, and neither the lock nor a map.
    let (named, copy) = (ledger(&directory), place.join("copy"));
    fs::copy(&named, &copy).unwrap();
    fs::rename(&copy, &named).unwrap();
    let seen = smi(&[], &directory, &[]);
    assert!(seen.out.contains("telltale replay train"), "{seen:?}");
    assert!(!seen.out.contains("(ended"), "{seen:?}");
    let before = shown.snapshot().taken_at;
    let mut rounds = BTreeSet::new();
    wait_until("three rounds", TIMEOUT, || {
        rounds.extend(Some(shown.snapshot().taken_at).filter(|at| *at > before));
        rounds.len() > 3
    });
    let pid = Some(workload.pid);
    shown.wait_for("it to live on", ProcessState::Alive, pid);
    workload.kill();
    shown.wait_for("its end", ProcessState::Dead, pid);
    shown.service.end();
}

/// Gives a copy of a ledger the identity of this process, as if it recorded there: it makes the file without a
/// name and links it, as a ledger is made, locks it and maps it. `argv[3]`: `closed`, and it closes all
/// descriptors; `restored`, and it has another start than the ledger says.
const ON_OVERLAY: &str = "
import ctypes, fcntl, os, struct, sys
bytes = bytearray(open(sys.argv[1], 'rb').read())
stat = open('/proc/self/stat').read()
start = int(stat[stat.rindex(')') + 2:].split()[19]) - 500 * (sys.argv[3] == 'restored')
struct.pack_into('<Q', bytes, 56, start)
struct.pack_into('<I', bytes, 64, os.getpid())
file = os.open(sys.argv[2], os.O_RDWR | os.O_TMPFILE, 0o600)
os.write(file, bytes)
libc = ctypes.CDLL(None)
name = f'{sys.argv[2]}/ledger_{os.getpid()}_{start}.tt'
assert libc.linkat(-100, f'/proc/self/fd/{file}'.encode(), -100, name.encode(), 0x400) == 0
fcntl.fcntl(file, 37, struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, 0, 1, 0))
libc.mmap.restype = ctypes.c_void_p
libc.mmap(None, ctypes.c_size_t(len(bytes)), 3, 1, file, ctypes.c_long(0))
if sys.argv[3] == 'closed':
    os.close(file)
print('mapped', flush=True)
sys.stdin.read()
";

/// Mounts an overlay file system, as a container's, and becomes the program that follows.
const OVERLAY: &str = "cd \"$1\" && shift && mkdir lower upper merged && mount -t tmpfs none upper && \
    mkdir upper/upper upper/work && \
    mount -t overlay none -o lowerdir=lower,upperdir=upper/upper,workdir=upper/work merged && \
    mkdir -m 700 merged/tt && exec \"$@\"";

#[test]
fn a_living_process_on_overlayfs_keeps_its_ledger() {
    if !needs_pid_namespaces("cli::namespaces::a_living_process_on_overlayfs") {
        return;
    }
    let other = Scratch::new();
    let recorded = Workload::start(&[], other.path());
    for how in ["closed", "restored"] {
        let place = Scratch::new();
        let directory = place.join("merged/tt");
        let mut command = Command::new("unshare");
        command.args(["--mount", "--", "sh", "-c", OVERLAY, "sh"]).arg(place.path());
        command.args(["python3", "-c", ON_OVERLAY]).arg(ledger(other.path()));
        command.arg(&directory).arg(how).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut mapping = ChildGuard::spawn(&mut command);
        mapping.child().stdout.as_mut().unwrap().read_exact(&mut [0; 7]).unwrap();
        // A process that sees the directory: a process of that mount namespace. This one stays to look.
        let mut sleeper = Command::new("nsenter");
        let target = mapping.id().to_string();
        sleeper.args(["--mount", "--target", &target, "sleep", "600"]);
        let sleeper = ChildGuard::spawn(&mut sleeper);
        let clean = || {
            let mut command = Command::new("nsenter");
            command.args(["--mount", "--target", &sleeper.id().to_string()]);
            command.arg(env!("CARGO_BIN_EXE_telltale")).args(["smi", "-c", "--runtime-dir"]);
            said(command.arg(&directory))
        };
        wait_until("its mount namespace to be entered", TIMEOUT, || {
            let namespace = |pid: u32| fs::read_link(format!("/proc/{pid}/ns/mnt")).unwrap();
            namespace(sleeper.id()) == namespace(mapping.id())
        });
        let cleaned = clean();
        assert!(cleaned.out.contains("python3 -c"), "{how}: {cleaned:?}");
        assert!(!cleaned.out.contains("(ended"), "{how}: {cleaned:?}");
        assert!(cleaned.out.ends_with("nothing to clean\n"), "{how}: {cleaned:?}");
        mapping.kill();
        let cleaned = clean();
        assert_eq!(cleaned.out.matches("removed ").count(), 1, "{how}: {cleaned:?}");
    }
    recorded.kill();
}

#[test]
fn a_frozen_process_is_alive() {
    let place = Scratch::new();
    let mut workload = Workload::start(&[], place.path());
    workload.started.pause();
    let before = names(place.path());
    let cleaned = smi(&[], place.path(), &["-c"]);
    assert_eq!(names(place.path()), before, "{cleaned:?}");
    workload.started.resume();
    workload.kill();
}
