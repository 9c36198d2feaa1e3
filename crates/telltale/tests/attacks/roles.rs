//! The parts that actors play: workloads that are what they seem, and those that are not.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};
use telltale_collector::clock::SystemClock;
use telltale_ledger::directory::{Purpose, RuntimeDirectory, endpoint_name, ledger_name};
use telltale_ledger::{DeviceEntry, Ledger, LedgerOwner};
use telltale_runtime::{DeviceDescription, Options, Runtime};
use telltale_schema::chip::{AsicId, BoardType, ChipIdentity};
use telltale_schema::clock::{Clock, Timestamp};
use telltale_schema::history::{HistoryQuery, Subjects};
use telltale_schema::memory::{MemoryKind, MemoryUsage};
use telltale_schema::process::ProcessIdentity;
use telltale_schema::snapshot::{KindUsage, RecordingFaults};
use telltale_wire::{DeviceReport, FrameReader, Reply, Report, frame};

use crate::attacks::actor::{say, wait_for_the_end};
use crate::attacks::asking;
use crate::attacks::injection;
use crate::attacks::poison;

/// Plays a part.
pub(crate) fn play(part: &Value) {
    match part["role"].as_str().unwrap() {
        "workload" => workload(part),
        "ledger" => ledger(part),
        "endpoint" => endpoint(part),
        "copies" => copies(part),
        "entries" => entries(part),
        "odd_names" => odd_names(part),
        "crowd" => crowd(part),
        "snapshot" => {
            say(&serde_json::to_value(asking::snapshot(&path(part, "socket")).unwrap()).unwrap());
        }
        "past" => past(part),
        "http" => {
            let answer = asking::get_locally(&path(part, "socket"), part["path"].as_str().unwrap());
            say(&json!([answer.status, answer.body]));
        }
        "read" => read(part),
        other => panic!("nobody plays {other:?}"),
    }
}

fn path(part: &Value, key: &str) -> PathBuf {
    PathBuf::from(part[key].as_str().unwrap())
}

fn chips(part: &Value) -> Vec<ChipIdentity> {
    serde_json::from_value(part["chips"].clone()).unwrap()
}

/// Who the part says that it is, or who it is.
fn owner(part: &Value) -> LedgerOwner {
    let mut owner = LedgerOwner::of_this_process("attack 1", SystemClock.now()).unwrap();
    if let Some(name) = part["name"].as_str() {
        name.clone_into(&mut owner.name);
    }
    if !part["identity"].is_null() {
        let claimed: ProcessIdentity = serde_json::from_value(part["identity"].clone()).unwrap();
        owner.identity = claimed;
    }
    owner
}

/// A program that links the runtime, as any would.
fn workload(part: &Value) {
    let options = Options { directory: Some(path(part, "directory")), ..Options::new("work 1") };
    let runtime = Runtime::start(options);
    let secret = part["secret"].as_str().unwrap();
    if !secret.is_empty() {
        runtime
            .registry()
            .counter("steps")
            .help("Steps done.")
            .label("project", secret)
            .register()
            .add(7);
    }
    let described = (0..).zip(chips(part));
    let devices: Vec<_> = described
        .map(|(logical_id, identity)| {
            let described = DeviceDescription { identity, logical_id, facts: None };
            let device = runtime.open_device(described);
            device.allocate(MemoryKind::Dram, 0x1000, part["bytes"].as_u64().unwrap());
            device
        })
        .collect();
    say(&json!(std::process::id()));
    wait_for_the_end();
    drop(devices);
}

/// Keeps a ledger that says whatever the part wants.
fn ledger(part: &Value) {
    let directory = RuntimeDirectory::open(&path(part, "directory"), Purpose::Writing).unwrap();
    let made = Ledger::create(&directory, owner(part));
    let ledger = match made {
        Ok(ledger) => ledger,
        Err(error) => return say(&json!({ "error": error.to_string() })),
    };
    let invented = part["invented"].as_u64().unwrap_or(0);
    let seed = u64::from(std::process::id()) << 16;
    let invented = (0..invented).map(|number| ChipIdentity {
        asic_id: Some(AsicId(seed + number)),
        board_type: BoardType::N150,
        ..ChipIdentity::default()
    });
    let mut refused = 0;
    for identity in chips(part).into_iter().chain(invented) {
        let dram_capacity_bytes = part["capacity"].as_u64();
        let entry = DeviceEntry { identity, dram_capacity_bytes, ..DeviceEntry::default() };
        match ledger.add_device(&entry) {
            Ok(slot) => {
                let bytes = part["bytes"].as_u64().unwrap();
                ledger.recorder().allocated(slot, MemoryKind::Dram, bytes);
                ledger.recorder().freed(
                    slot,
                    MemoryKind::Dram,
                    part["freed"].as_u64().unwrap_or(0),
                );
            }
            Err(_) => refused += 1,
        }
    }
    say(&json!({ "identity": ledger.owner().identity, "file": ledger.file_name(),
        "refused": refused }));
    wait_for_the_end();
}

/// Serves an endpoint that says whatever the part wants, or nothing at all.
fn endpoint(part: &Value) {
    let directory = RuntimeDirectory::open(&path(part, "directory"), Purpose::Writing).unwrap();
    let owner = owner(part);
    let named = part["named"].as_u64().map_or(std::process::id(), |pid| pid.try_into().unwrap());
    let usage = MemoryUsage {
        live_bytes: part["bytes"].as_u64().unwrap_or(0),
        live_buffers: 1,
        ..MemoryUsage::default()
    };
    let kinds = vec![KindUsage { kind: MemoryKind::Dram, usage }];
    let device = |chip| DeviceReport { chip, kinds: kinds.clone(), ..DeviceReport::default() };
    let report = Report {
        identity: owner.identity,
        name: owner.name,
        runtime: "attack 1".to_owned(),
        started_at: Some(owner.started_at),
        uptime_ns: Some(u64::MAX),
        devices: chips(part).into_iter().map(device).collect(),
        faults: RecordingFaults::default(),
        programs: None,
        kernel_cache: None,
        metrics: match part["metrics"].as_str() {
            None => Vec::new(),
            Some("hostile") => injection::metrics(),
            Some("poisoned") => poison::metrics(),
            Some(other) => panic!("nobody has metrics {other:?}"),
        },
        metrics_omitted: u64::MAX,
        ledger_follows: false,
    };
    let answer = frame(&Reply::Report(Box::new(report)).encode().unwrap()).unwrap();
    let path = directory.path().join(endpoint_name(named, None));
    let listener = UnixListener::bind(&path).unwrap();
    let mode = std::fs::Permissions::from_mode(directory.endpoint_mode());
    std::fs::set_permissions(&path, mode).unwrap();
    let identity = owner.identity;
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut reader = FrameReader::default();
            let mut byte = [0; 1];
            while !reader.is_complete() && stream.read(&mut byte).unwrap_or(0) == 1 {
                reader.push(&byte).unwrap();
            }
            let _ = stream.write_all(&answer);
        }
    });
    say(&json!({ "identity": identity }));
    wait_for_the_end();
}

/// Makes many ledgers, each of another process that has ended: one, copied and renamed.
fn copies(part: &Value) {
    let path = path(part, "directory");
    let directory = RuntimeDirectory::open(&path, Purpose::Writing).unwrap();
    let ledger = Ledger::create(&directory, owner(part)).unwrap();
    let mode = std::fs::Permissions::from_mode(directory.ledger_mode());
    let from = u32::try_from(part["from"].as_u64().unwrap_or(1_000_000)).unwrap();
    for number in 0..u32::try_from(part["count"].as_u64().unwrap()).unwrap() {
        let copy = path.join(ledger_name(from + number, 7, None));
        std::fs::copy(path.join(ledger.file_name()), &copy).unwrap();
        std::fs::set_permissions(&copy, mode.clone()).unwrap();
    }
    say(&json!(null));
    wait_for_the_end();
}

/// Makes entries of a directory, from name to name, and keeps sockets open.
fn entries(part: &Value) {
    all_descriptors();
    let directory = path(part, "directory");
    let (before, after) = (part["before"].as_str().unwrap(), part["after"].as_str().unwrap());
    let from = part["from"].as_u64().unwrap_or(1);
    let mut listeners = Vec::new();
    for number in from..from + part["count"].as_u64().unwrap_or(1) {
        if part["except"] == number {
            continue;
        }
        // Without a number, one name.
        let number = if before.contains('.') { String::new() } else { number.to_string() };
        let path = directory.join(format!("{before}{number}{after}"));
        match part["kind"].as_str().unwrap() {
            "file" => std::fs::write(&path, "not what it seems").unwrap(),
            "directory" => std::fs::create_dir(&path).unwrap(),
            "link" => symlink(part["target"].as_str().unwrap(), &path).unwrap(),
            "pipe" => {
                let mode = rustix::fs::Mode::from_raw_mode(0o666);
                let kind = rustix::fs::FileType::Fifo;
                rustix::fs::mknodat(rustix::fs::CWD, &path, kind, mode, 0).unwrap();
            }
            "socket" => {
                // The name may be taken.
                let Ok(listener) = UnixListener::bind(&path) else { continue };
                listeners.push(listener);
                std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
            }
            other => panic!("nobody makes {other:?}"),
        }
    }
    say(&json!(null));
    wait_for_the_end();
}

/// Makes files with names of regions that no writer gives, of which one is no text.
fn odd_names(part: &Value) {
    let directory = path(part, "directory");
    let odd: [&[u8]; 3] = [b"\xff", b"\"'", b"\\"];
    for middle in odd {
        let name = [b"tt_device_", middle, b"_memory"].concat();
        std::fs::write(directory.join(OsStr::from_bytes(&name)), "").unwrap();
    }
    say(&json!(null));
    wait_for_the_end();
}

/// Holds many connections, each with these first bytes, until it is let go.
fn crowd(part: &Value) {
    all_descriptors();
    let bytes = part["bytes"].as_str().unwrap_or_default().as_bytes();
    let mut held: Vec<Box<dyn Write + Send>> = Vec::new();
    for _ in 0..part["count"].as_u64().unwrap() {
        let mut stream: Box<dyn Write + Send> = match part["address"].as_str() {
            Some(address) => match TcpStream::connect(address) {
                Ok(stream) => Box::new(stream),
                Err(_) => continue,
            },
            None => match UnixStream::connect(path(part, "socket")) {
                Ok(stream) => Box::new(stream),
                Err(_) => continue,
            },
        };
        let _ = stream.write_all(bytes);
        held.push(stream);
    }
    say(&json!(held.len()));
    // The busy ones ask repeatedly.
    if part["busy"].as_bool().unwrap_or(false) {
        std::thread::spawn(move || {
            loop {
                for stream in &mut held {
                    let _ = stream.write_all(b"GET /-/healthy HTTP/1.1\r\nHost: localhost\r\n\r\n");
                }
                std::thread::sleep(Duration::from_millis(200));
            }
        });
    }
    wait_for_the_end();
}

fn all_descriptors() {
    let most = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most }).unwrap();
}

/// Says all that gRPC tells this user of the past, and of alerts, about the pid `of`.
fn past(part: &Value) {
    let of = part["of"].as_u64().unwrap();
    let said = asking::wait(async {
        let socket = path(part, "socket");
        let mut client = telltale_client::connect(&socket).await.unwrap();
        let query = HistoryQuery {
            from: Timestamp(0),
            to: SystemClock.now(),
            step_ms: None,
            subjects: Subjects::All,
            devices: Vec::new(),
            processes: Vec::new(),
            metrics: vec![String::from("memory_live")],
        };
        let series = client.history(&query).await;
        let choice = of.to_string().parse().unwrap();
        let report = client.report(&choice).await;
        let then = client.snapshot_at(SystemClock.now()).await;
        let alerts = client.alerts().await;
        let mut updates = client.watch(Duration::ZERO).await.unwrap();
        let update = updates.next().await.unwrap().unwrap();
        json!({
            "series": series.map_err(|error| error.to_string()),
            "report": report.map_err(|error| error.to_string()),
            "then": then.map(|then| then.snapshot).map_err(|error| error.to_string()),
            "alerts": alerts.unwrap().alerts,
            "watched": update.snapshot,
        })
    });
    say(&said);
}

/// Tries to read each of these paths, as a file, as a directory and as a socket; says of each what
/// it got, or the error's number.
fn read(part: &Value) {
    let tried = part["paths"].as_array().unwrap().iter().map(|path| {
        let path = Path::new(path.as_str().unwrap());
        let number = |error: std::io::Error| json!(error.raw_os_error());
        let kind = std::fs::symlink_metadata(path).map(|found| found.file_type());
        use std::os::unix::fs::FileTypeExt;
        match kind {
            Err(error) => number(error),
            Ok(kind) if kind.is_socket() => match UnixStream::connect(path) {
                Ok(_) => json!("connected"),
                Err(error) => number(error),
            },
            Ok(kind) if kind.is_dir() => {
                std::fs::read_dir(path).map_or_else(number, |_| json!("listed"))
            }
            Ok(_) => std::fs::read(path).map_or_else(number, |_| json!("read")),
        }
    });
    say(&Value::Array(tried.collect()));
}
