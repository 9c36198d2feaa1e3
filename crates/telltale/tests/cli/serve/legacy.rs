//! `--legacy-allocation-socket`: programs that speak the old allocation server's protocol, in each
//! of its forms, beside a service that was started with it.

use std::fs::{DirBuilder, File, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use telltale_harness::{ChildGuard, Scratch, as_user, compile_c, needs_root, wait_until};
use telltale_schema::snapshot::{Process, ProcessSource, Snapshot};

use super::Serving;
use crate::cli::command::{TIMEOUT, emulate, said, telltale};
use crate::cli::terminal::Terminal;

/// A service with the old socket, and its machine.
struct Service {
    root: PathBuf,
    run: PathBuf,
    legacy: PathBuf,
    _machine: ChildGuard,
    serving: Serving,
}

impl Service {
    fn start(place: &Scratch) -> Self {
        let (root, run) = (place.join("m"), place.join("run"));
        let machine = emulate("n150", &root, &[]);
        std::fs::create_dir(&run).unwrap();
        // As the installation makes it.
        std::fs::set_permissions(&run, Permissions::from_mode(0o3777)).unwrap();
        let legacy = place.join("allocation.sock");
        let mut command = telltale();
        command.env("HOME", place.path()).args(["serve", "--http", "off", "--root"]).arg(&root);
        command.arg("--runtime-dir").arg(&run).arg("--state-dir").arg(place.join("state"));
        command.arg("--legacy-allocation-socket").arg(&legacy);
        let mut serving = Serving::start(&mut command);
        serving.says("collecting");
        Self { root, run, legacy, _machine: machine, serving }
    }
}

/// The machine as the service shows it.
fn shown(socket: &Path) -> Snapshot {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut client = telltale_client::connect(socket).await.unwrap();
        client.snapshot(true).await.unwrap()
    })
}

/// Its process of this pid, and what that holds.
fn held(snapshot: &Snapshot, pid: u32) -> Option<(&Process, u64)> {
    let process = snapshot.processes.iter().find(|one| one.pid == Some(pid))?;
    let kinds = process.devices.iter().flat_map(|device| &device.kinds);
    Some((process, kinds.map(|kind| kind.usage.live_bytes()).sum()))
}

/// A client of one form that has asked who is there, and has allocated so many bytes of DRAM.
fn reporting(place: &Scratch, legacy: &Path, form: usize, bytes: u64) -> ChildGuard {
    reporting_as(0, place, legacy, form, bytes)
}

/// The same of this user; of ours where that is 0.
fn reporting_as(user: u32, place: &Scratch, legacy: &Path, form: usize, bytes: u64) -> ChildGuard {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../node/tests/legacy/client.c");
    let program = place.join(format!("client_{form}"));
    compile_c(&source, &program, &[&format!("-DFORM={form}")]);
    let mut client = Command::new(&program);
    client.arg(legacy).stdin(Stdio::piped()).stdout(Stdio::piped());
    if user != 0 {
        client = as_user(user, user, client);
    }
    let mut client = ChildGuard::spawn(&mut client);
    let mut output = BufReader::new(client.child().stdout.take().unwrap());
    let input = client.child().stdin.as_mut().unwrap();
    // Who is there, and an allocation of DRAM: type, device, bytes, kind, buffer.
    writeln!(input, "6 -1 0 0 0").unwrap();
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert!(line.trim_end().ends_with("devices 1"), "{form}: {line}");
    writeln!(input, "1 0 {bytes} 0 64").unwrap();
    line.clear();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "sent\n", "{form}");
    client
}

/// What the command that checks once shows.
fn once(root: &Path, run: &Path) -> Snapshot {
    let mut command = telltale();
    command.args(["smi", "--json", "--root"]).arg(root).arg("--runtime-dir").arg(run);
    let said = said(&mut command);
    serde_json::from_str(&said.out).unwrap_or_else(|why| panic!("{why}: {said:?}"))
}

#[test]
fn programs_of_each_form_are_shown_as_long_as_they_are_connected() {
    let place = Scratch::new();
    let Service { root, run, legacy, _machine, serving } = Service::start(&place);
    let socket = run.join(telltale_node::grpc::SOCKET_NAME);

    let mut clients = Vec::new();
    for (form, bytes) in [(112, 1000), (128, 20_000), (144, 300_000)] {
        let client = reporting(&place, &legacy, form, bytes);
        clients.push((client, bytes));
    }
    for (client, bytes) in &clients {
        wait_until("its memory to be shown", TIMEOUT, || {
            let snapshot = shown(&socket);
            let found = held(&snapshot, client.id());
            found.is_some_and(|(process, held)| {
                process.known_by == Some(ProcessSource::Legacy) && held == *bytes
            })
        });
    }
    let total = |snapshot: &Snapshot| snapshot.devices[0].kinds[0].total_bytes;
    assert_eq!(total(&shown(&socket)), 321_000);
    // The command that checks once has the same of the service.
    let once = || once(&root, &run);
    let seen = once();
    assert_eq!(total(&seen), 321_000);
    for (client, bytes) in &clients {
        let (process, held) = held(&seen, client.id()).unwrap();
        assert_eq!((process.known_by, held), (Some(ProcessSource::Legacy), *bytes));
    }
    let source = seen.sources.iter().find(|source| source.name == "legacy").unwrap();
    assert_eq!(source.errors, []);
    let mut table = telltale();
    let table = said(table.args(["smi", "--root"]).arg(&root).arg("--runtime-dir").arg(&run));
    assert_eq!(table.out.matches("(legacy) client_").count(), 3, "{}", table.out);
    let (killed, _) = &mut clients[1];
    let pid = killed.id();
    killed.kill();
    wait_until("it to be gone", TIMEOUT, || held(&shown(&socket), pid).is_none());
    assert_eq!(total(&shown(&socket)), 301_000);
    assert_eq!(total(&once()), 301_000);
    serving.end();
    assert!(!legacy.exists() && !run.join(telltale_node::legacy::SOCKET_NAME).exists());
    // What it knew has gone with it, and that is no error.
    let after = once();
    assert!(after.processes.is_empty(), "{:?}", after.processes);
    assert!(after.sources.iter().all(|source| source.name != "legacy"));
}

#[test]
fn each_user_sees_their_own_programs_alone_and_root_all() {
    if !needs_root("cli::serve::legacy::each_user_sees_their_own_programs_alone") {
        return;
    }
    let place = Scratch::new();
    place.set_mode(0o755);
    let Service { root, run, legacy, _machine, serving } = Service::start(&place);

    let (ada, bob) = (61_021, 61_022);
    let clients = [(ada, 112, 1000), (bob, 128, 20_000)]
        .map(|(user, form, bytes)| reporting_as(user, &place, &legacy, form, bytes));
    let [of_ada, of_bob] = clients.each_ref().map(ChildGuard::id);
    let smi = |user: u32, form: &[&str]| {
        // By its descriptor, because others may not reach the directory that it was built in.
        let mut command = Command::new("/proc/self/fd/0");
        command.stdin(File::open(env!("CARGO_BIN_EXE_telltale")).unwrap());
        command.arg("smi").args(form).arg("--root").arg(&root).arg("--runtime-dir").arg(&run);
        said(&mut as_user(user, user, command))
    };
    wait_until("root to see both", TIMEOUT, || {
        let seen: Snapshot = serde_json::from_str(&smi(0, &["--json"]).out).unwrap();
        let bytes = [of_ada, of_bob].map(|pid| held(&seen, pid).map(|(_, bytes)| bytes));
        bytes == [Some(1000), Some(20_000)]
    });
    for (user, expected) in [
        (0, vec![(of_ada, 1000), (of_bob, 20_000)]),
        (ada, vec![(of_ada, 1000)]),
        (bob, vec![(of_bob, 20_000)]),
        (61_023, vec![]),
    ] {
        let said = smi(user, &["--json"]);
        let seen: Snapshot = serde_json::from_str(&said.out).unwrap();
        let reported: Vec<_> = [of_ada, of_bob]
            .into_iter()
            .filter_map(|pid| held(&seen, pid).map(|(_, bytes)| (pid, bytes)))
            .collect();
        assert_eq!(reported, expected, "user {user}: {said:?}");
        let table = smi(user, &[]);
        let shown = table.out.matches("(legacy) client_").count();
        assert_eq!(shown, expected.len(), "user {user}: {table:?}");
    }
    serving.end();
}

#[test]
fn a_service_that_does_not_end_its_answer_is_an_error_and_not_an_idle_machine() {
    let place = Scratch::new();
    let machine = place.join("machine");
    let run = place.join("run");
    DirBuilder::new().create(&machine).unwrap();
    DirBuilder::new().mode(0o700).create(&run).unwrap();
    let service = UnixListener::bind(run.join(telltale_node::legacy::SOCKET_NAME)).unwrap();
    let smi = |answer: &'static [u8]| {
        std::thread::scope(|scope| {
            scope.spawn(|| service.accept().unwrap().0.write_all(answer).unwrap());
            once(&machine, &run)
        })
    };
    let errors = |snapshot: &Snapshot| {
        let legacy = snapshot.sources.iter().find(|source| source.name == "legacy").unwrap();
        legacy.errors.iter().map(|error| error.detail.clone()).collect::<Vec<_>>()
    };
    // At once, as a service with too many collectors did; and within a message.
    for part in [&b""[..], b"\x09\0\0\0abc"] {
        let [why] = <[String; 1]>::try_from(errors(&smi(part))).unwrap();
        assert!(why.contains("ended its answer too early"), "{why}");
    }
    assert_eq!(errors(&smi(b"\0\0\0\0")), [""; 0]);
}

#[test]
fn record_and_top_show_them_too() {
    let place = Scratch::new();
    let service = Service::start(&place);
    let client = reporting(&place, &service.legacy, 128, 20_000);
    wait_until("its memory", TIMEOUT, || {
        held(&once(&service.root, &service.run), client.id()).is_some()
    });
    let of_service = |command: &mut Command| {
        said(command.arg("--root").arg(&service.root).arg("--runtime-dir").arg(&service.run))
    };
    let recording = place.join("run.tt");
    let reported = of_service(telltale().args(["record", "--for", "1"]).arg(&recording));
    assert_eq!(reported.status, Some(0), "{reported:?}");
    let reported = said(telltale().args(["smi", "--json", "--replay"]).arg(&recording));
    let recorded: Snapshot = serde_json::from_str(&reported.out).unwrap();
    let (process, bytes) = held(&recorded, client.id()).unwrap();
    assert_eq!((process.known_by, bytes), (Some(ProcessSource::Legacy), 20_000));
    let [root, run] = [&service.root, &service.run].map(|path| path.display());
    let program = env!("CARGO_BIN_EXE_telltale");
    let line = format!("{program} top --root {root} --runtime-dir {run}");
    let test = "cli::serve::legacy::record_and_top_show_them_too";
    let Some(mut terminal) = Terminal::start(test, (120, 30), &line, &place) else { return };
    wait_until("the view to have it", TIMEOUT, || terminal.text().contains("client_128"));
    terminal.type_in(b"q");
    terminal.end();
}
