//! `--legacy-allocation-socket`: programs that speak the old allocation server's protocol, in each
//! of its forms, beside a service that was started with it.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use telltale_harness::{ChildGuard, Scratch, compile_c, wait_until};
use telltale_schema::snapshot::{Process, ProcessSource, Snapshot};

use super::Serving;
use crate::command::{PATIENCE, emulate, said, telltale};

/// The machine as the service shows it.
fn shown(socket: &Path) -> Snapshot {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut client = telltale_node::grpc::connect(socket).await.unwrap();
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
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../node/tests/legacy/client.c");
    let program = place.join(format!("client_{form}"));
    compile_c(&source, &program, &[&format!("-DFORM={form}")]);
    let mut client = Command::new(&program);
    client.arg(legacy).stdin(Stdio::piped()).stdout(Stdio::piped());
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

/// What the command that looks once shows.
fn once(root: &Path, run: &Path) -> Snapshot {
    let mut command = telltale();
    command.args(["smi", "--json", "--root"]).arg(root).arg("--runtime-dir").arg(run);
    let said = said(&mut command);
    serde_json::from_str(&said.out).unwrap_or_else(|why| panic!("{why}: {said:?}"))
}

#[test]
fn programs_of_each_form_are_shown_as_long_as_they_are_connected() {
    let place = Scratch::new();
    let (root, run) = (place.join("m"), place.join("run"));
    let _machine = emulate("n150", &root, &[]);
    std::fs::create_dir(&run).unwrap();
    let legacy = place.join("allocation.sock");
    let mut command = telltale();
    command.env("HOME", place.path()).args(["serve", "--http", "off", "--root"]).arg(&root);
    command.arg("--runtime-dir").arg(&run).arg("--state-dir").arg(place.join("state"));
    command.arg("--legacy-allocation-socket").arg(&legacy);
    let mut service = Serving::start(&mut command);
    service.says("collecting");
    let socket = run.join(telltale_node::grpc::SOCKET_NAME);

    let mut clients = Vec::new();
    for (form, bytes) in [(112, 1000), (128, 20_000), (144, 300_000)] {
        let client = reporting(&place, &legacy, form, bytes);
        clients.push((client, bytes));
    }
    for (client, bytes) in &clients {
        wait_until("its memory to be shown", PATIENCE, || {
            let snapshot = shown(&socket);
            let found = held(&snapshot, client.id());
            found.is_some_and(|(process, held)| {
                process.known_by == Some(ProcessSource::Legacy) && held == *bytes
            })
        });
    }
    let total = |snapshot: &Snapshot| snapshot.devices[0].kinds[0].total_bytes;
    assert_eq!(total(&shown(&socket)), 321_000);
    // The command that looks once has the same of the service.
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
    wait_until("it to be gone", PATIENCE, || held(&shown(&socket), pid).is_none());
    assert_eq!(total(&shown(&socket)), 301_000);
    assert_eq!(total(&once()), 301_000);
    service.end();
    assert!(!legacy.exists() && !run.join(telltale_node::legacy::SOCKET_NAME).exists());
    // What it knew has gone with it, and that is no error.
    let after = once();
    assert!(after.processes.is_empty(), "{:?}", after.processes);
    assert!(after.sources.iter().all(|source| source.name != "legacy"));
}
