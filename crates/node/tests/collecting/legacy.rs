//! Programs that speak the allocation server's protocol, in C and over the real socket.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use telltale_emulator::MachineKind;
use telltale_harness::{ChildGuard, compile_c, wait_until};
use telltale_node::legacy::{LegacyService, Roster};
use telltale_node::service::{LegacySocket, Service, ServiceOptions, View};
use telltale_schema::memory::MemoryKind;
use telltale_schema::snapshot::{Process, ProcessSource};
use telltale_server::listen::{Listener, SocketFile};
use tokio::sync::oneshot;

use crate::collecting::bench::Bench;
use crate::collecting::workload::{Role, SOCKET, command, started};

const TIMEOUT: Duration = Duration::from_secs(60);

/// A service with its socket. Its interval is an hour: what is seen was notified.
struct Serving {
    bench: Bench,
    path: PathBuf,
    roster: Roster,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
    service: Service,
    _file: Option<SocketFile>,
}

impl Serving {
    fn start() -> Self {
        let bench = Bench::new(MachineKind::N150);
        let roster = Roster::default();
        let (collect, legacy) = (bench.options(), Some(Arc::new(roster.clone()) as _));
        let interval = Duration::from_secs(3600);
        let service =
            Service::start(ServiceOptions { collect, interval, legacy, known: None }).unwrap();
        let path = bench.directory.with_file_name("allocation.sock");
        let address = format!("unix:{}", path.display()).parse().unwrap();
        let (listener, file) = Listener::bind(&address, None).unwrap();
        let legacy = LegacyService::new(vec![listener], roster.clone()).unwrap();
        let control = service.control().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let stopped = async {
                let _ = stopped.await;
            };
            runtime.unwrap().block_on(legacy.serve(control, stopped)).unwrap();
        });
        let (stop, thread) = (Some(stop), Some(thread));
        Self { bench, path, roster, stop, thread, service, _file: file }
    }

    fn view(&self) -> View {
        self.service.view()
    }

    /// A program of this form, compiled and connected.
    fn client(&self, form: usize) -> Client {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/legacy");
        let program = self.bench.directory.with_file_name(format!("client_{form}"));
        if !program.exists() {
            compile_c(&tests.join("client.c"), &program, &[&format!("-DFORM={form}")]);
        }
        let mut command = Command::new(program);
        command.arg(&self.path).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut guard = ChildGuard::spawn(&mut command);
        let output = BufReader::new(guard.child().stdout.take().unwrap());
        Client { guard, output }
    }

    fn process(&self, pid: u32) -> Option<Process> {
        let latest = self.view().latest();
        latest.snapshot.processes.iter().find(|one| one.pid == Some(pid)).cloned()
    }

    /// What all processes have of a kind on the device, and what this one has, in the next
    /// collection.
    fn bytes(&self, pid: u32, kind: MemoryKind) -> (u64, Option<u64>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let fresh = runtime.block_on(self.view().fresh(TIMEOUT)).unwrap();
        let snapshot = &fresh.snapshot;
        let total = snapshot.devices[0].kind(kind).map_or(0, |parts| parts.total_bytes);
        let process = snapshot.processes.iter().find(|one| one.pid == Some(pid));
        let kinds = process.into_iter().flat_map(|one| &one.devices).flat_map(|held| &held.kinds);
        let own: Vec<u64> =
            kinds.filter(|one| one.kind == kind).map(|one| one.usage.live_bytes()).collect();
        (total, own.first().copied())
    }

    #[track_caller]
    fn comes_to(&self, pid: u32, kind: MemoryKind, expected: (u64, Option<u64>)) {
        let what = format!("{} of {pid} to be {expected:?}", kind.name());
        wait_until(&what, TIMEOUT, || self.bytes(pid, kind) == expected);
    }

    fn refused(&self, reason: &str) -> u64 {
        let refused = self.roster.metrics().unwrap().refused;
        refused.iter().find(|(name, _)| *name == reason).map_or(0, |(_, count)| *count)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().map(std::thread::JoinHandle::join);
        assert!(std::thread::panicking() || ended.is_some_and(|ended| ended.is_ok()));
    }
}

struct Client {
    guard: ChildGuard,
    output: BufReader<ChildStdout>,
}

impl Client {
    /// Sends a message and returns what the program says of it.
    fn say(&mut self, message: &str) -> String {
        let input = self.guard.child().stdin.as_mut().unwrap();
        writeln!(input, "{message}").unwrap();
        input.flush().unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}

#[test]
fn each_form_is_understood_and_answered_in_its_own() {
    let serving = Serving::start();
    for form in [112, 128, 144] {
        let mut client = serving.client(form);
        let pid = client.guard.id();
        // The first message alone: known by the silence after it.
        let info = client.say("6 0 0 0 0");
        assert!(info.starts_with("type 7 device 0 dram 0 "), "{form}: {info}");
        let board = "total 12884901888 arch 2 channels 6 available 1 devices 0";
        assert!(info.ends_with(board), "{form}: {info}");
        assert!(client.say("6 -1 0 0 0").ends_with("available 1 devices 1"), "{form}");
        assert!(client.say("6 7 0 0 0").ends_with("available 0 devices 0"), "{form}");
        for message in ["1 0 5000 0 64", "1 0 300 1 64", "1 0 20 4 8", "8 0 7 0 1", "10 0 9 1 1"] {
            assert_eq!(client.say(message), "sent", "{form}");
        }
        serving.comes_to(pid, MemoryKind::Dram, (5000, Some(5000)));
        serving.comes_to(pid, MemoryKind::KernelFabric, (9, Some(9)));
        let process = serving.process(pid).unwrap();
        assert_eq!(process.known_by, Some(ProcessSource::Legacy));
        assert_eq!(process.name, format!("client_{form}"));
        let sums = client.say("3 0 0 0 0");
        let programs = if form == 112 { "" } else { " cb 7 kernel 9" };
        let expected =
            format!("type 4 device 0 dram 5000 l1 300 l1_small 0 trace 20{programs} total");
        assert!(sums.starts_with(&expected), "{form}: {sums}");
        assert_eq!(client.say("2 0 0 0 8"), "sent");
        serving.comes_to(pid, MemoryKind::Trace, (0, Some(0)));
        drop(client.guard.child().stdin.take());
        serving.comes_to(pid, MemoryKind::Dram, (0, None));
    }
    assert_eq!(serving.refused("contradictory_form"), 0);
}

#[test]
fn what_a_killed_client_had_goes_at_once_and_addresses_of_others_stay() {
    let serving = Serving::start();
    let (mut one, mut other) = (serving.client(112), serving.client(144));
    for client in [&mut one, &mut other] {
        client.say("1 0 1000 0 64");
        client.say("1 0 1 0 65");
    }
    let (killed, left) = (one.guard.id(), other.guard.id());
    serving.comes_to(killed, MemoryKind::Dram, (2002, Some(1001)));
    one.guard.kill();
    // Not asked for: its end is noticed.
    wait_until("the killed one to be gone", TIMEOUT, || serving.process(killed).is_none());
    assert_eq!(serving.bytes(left, MemoryKind::Dram), (1001, Some(1001)));
    assert_eq!(other.say("2 0 0 0 64"), "sent");
    serving.comes_to(left, MemoryKind::Dram, (1, Some(1)));
}

#[test]
fn a_process_that_also_has_a_ledger_counts_once() {
    let serving = Serving::start();
    let child = serving.bench.child(Role::Ledger, 1000);
    let mut command = command(&child, |program| Command::new(program));
    command.env(SOCKET, &serving.path);
    let guard = started(command);
    serving.comes_to(guard.id(), MemoryKind::Dram, (1000, Some(1000)));
    wait_until("its message to be counted", TIMEOUT, || {
        let messages = serving.roster.metrics().unwrap().messages;
        messages.contains(&("alloc", 1))
    });
    assert_eq!(serving.bytes(guard.id(), MemoryKind::Dram), (1000, Some(1000)));
    assert_eq!(serving.process(guard.id()).unwrap().known_by, Some(ProcessSource::Ledger));
}

#[test]
fn liars_and_dawdlers_change_nothing() {
    let serving = Serving::start();
    let mut client = serving.client(128);
    let pid = client.guard.id();
    for poison in [
        "1 0 18446744073709551615 0 1",
        "1 0 12884901889 0 1",
        "1 5 10 0 1",
        "1 -7 10 0 1",
        "1 0 10 9 1",
        "2 0 0 0 1",
    ] {
        assert_eq!(client.say(poison), "sent");
    }
    assert_eq!(client.say("1 0 40 0 1"), "sent");
    serving.comes_to(pid, MemoryKind::Dram, (40, Some(40)));
    let refused = ["too_large", "unknown_device", "unknown_type", "unknown_free"];
    assert_eq!(refused.map(|reason| serving.refused(reason)), [2, 2, 1, 1]);
    let faults = serving.process(pid).unwrap().faults;
    assert_eq!((faults.unknown_frees, faults.unrecorded_events), (1, 5));

    // A message of the first form, then more of it than it has.
    let mut liar = UnixStream::connect(&serving.path).unwrap();
    let mut message = [0; 112];
    (message[0], message[8], message[24]) = (1, 9, 1);
    liar.write_all(&message).unwrap();
    serving.comes_to(std::process::id(), MemoryKind::Dram, (49, Some(9)));
    liar.write_all(&[0; 16]).unwrap();
    assert_eq!(liar.read(&mut [0; 1]).unwrap(), 0, "it is disconnected");
    serving.comes_to(pid, MemoryKind::Dram, (40, Some(40)));
    assert_eq!(serving.refused("contradictory_form"), 1);

    // As many as one user may have, all silent within a message: others still get in.
    let mut dawdlers = Vec::new();
    while serving.refused("too_many_connections") == 0 {
        let mut one = UnixStream::connect(&serving.path).unwrap();
        // Who is one too many may be hung up on before it has said anything.
        let said = one.write_all(&[1]).map_err(|error| error.kind());
        assert!(matches!(said, Ok(()) | Err(ErrorKind::BrokenPipe)), "{said:?}");
        dawdlers.push(one);
        assert!(dawdlers.len() < 1000);
    }
    assert_eq!(client.say("1 0 2 0 2"), "sent", "who is in stays in");
    serving.comes_to(pid, MemoryKind::Dram, (42, Some(42)));
}

#[test]
fn a_flood_grows_no_book_beyond_its_limit_and_keeps_nobody_waiting() {
    let serving = Serving::start();
    let flood = UnixStream::connect(&serving.path).unwrap();
    let ended = flood.try_clone().unwrap();
    let sender = std::thread::spawn(move || {
        let mut flood = flood;
        let mut message = [0; 144];
        message[0] = 1;
        // Until it is hung up on.
        for buffer in 0_u64.. {
            message[24..32].copy_from_slice(&buffer.to_le_bytes());
            if flood.write_all(&message).is_err() {
                return buffer;
            }
        }
        unreachable!("it would take centuries")
    });
    wait_until("the book to be full", TIMEOUT, || serving.refused("full") > 0);
    let mut client = serving.client(112);
    assert!(client.say("6 -1 0 0 0").ends_with("devices 1"));
    ended.shutdown(std::net::Shutdown::Both).unwrap();
    let sent = sender.join().unwrap();
    assert!(sent > 1 << 16, "{sent}");
    wait_until("the flood to be gone", TIMEOUT, || {
        serving.roster.metrics().unwrap().connections == 1
    });
}
