//! What is asked about: an emulated Galaxy with workloads of two users, one of which keeps growing, and a
//! service with a history of which a part is an hour old.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, OpenFlags};
use telltale_harness::{ChildGuard, Scratch, as_user, wait_until};
use telltale_trace::{Description, Writer};

use crate::cli::command::{TIMEOUT, emulate, said, snapshot, telltale};
use crate::cli::hosts::host_services::HostServices;
use crate::cli::serve::Serving;

/// A user of the machine beside root.
pub(super) const ADA: u32 = 61_005;
/// Bytes of what workloads are described by here.
pub(super) const MIB: u64 = 1 << 20;
/// The place of the device whose PCIe link trained badly, and how. No process holds it.
const REDUCED: &str = "link:2:8:4";
/// How fast the workload that takes ever more does so, at most.
pub(super) const GROWS_BYTES_PER_SECOND: f64 =
    (GROWS_MEBIBYTES * MIB * 1000 / GROWS_EVERY_MS) as f64;
const GROWS_MEBIBYTES: u64 = 2;
const GROWS_EVERY_MS: u64 = 500;
const HOUR_MS: i64 = 3_600_000;

/// What a workload does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing {
    /// It takes this much at once, and more than there is in vain if so, and keeps it.
    Keeps { mebibytes: u64, fails: bool },
    /// It takes ever more.
    Grows,
    /// It trains, and its device works.
    Trains,
}

/// A process of the machine.
#[derive(Debug)]
pub(super) struct Workload {
    pub(super) name: &'static str,
    pub(super) device: usize,
    pub(super) user: &'static str,
    pub(super) doing: Doing,
    pub(super) started: Instant,
    child: ChildGuard,
}

impl Workload {
    pub(super) fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// The device as it is called: eight in a tray.
    pub(super) fn device(&self) -> String {
        device_id(self.device)
    }
}

/// What the device of this place is called.
pub(super) fn device_id(place: usize) -> String {
    format!("T{}:N{}", place / 8 + 1, place % 8)
}

const fn keeps(mebibytes: u64) -> Doing {
    Doing::Keeps { mebibytes, fails: false }
}

/// Those that run. Each amount of memory is another one.
const RUNNING: [(&str, usize, &str, Doing); 6] = [
    ("notebook", 0, "ada", keeps(2048)),
    ("pretrain", 0, "root", Doing::Trains),
    ("evaluate", 1, "root", keeps(256)),
    ("leaky", 8, "root", Doing::Grows),
    ("serve", 9, "ada", keeps(128)),
    ("finetune", 21, "root", Doing::Keeps { mebibytes: 384, fails: true }),
];

/// The one that ran an hour ago, and was killed: at most it had more than at last.
pub(super) const ENDED: (&str, usize, u64, u64) = ("nightly", 27, 768, 512);

/// All of it.
pub(super) struct Galaxy {
    // Dropped in this order.
    service: Option<Serving>,
    pub(super) workloads: Vec<Workload>,
    _machine: ChildGuard,
    _others: HostServices,
    /// The page.
    pub(super) address: String,
    /// The pid of the one that has ended.
    pub(super) ended_pid: String,
    pub(super) hosts: Vec<String>,
    pub(super) place: Scratch,
}

impl Galaxy {
    /// The machine as it was an hour ago: one workload held a device, and was killed. No service runs.
    pub(super) fn start() -> Self {
        let place = Scratch::new();
        place.set_mode(0o755);
        let root = place.join("m");
        let machine = emulate("galaxy-wormhole", &root, &["--fault", REDUCED]);
        fs::create_dir_all(root.join("etc")).unwrap();
        fs::write(root.join("etc/passwd"), format!("root:x:0:0\nada:x:{ADA}:{ADA}\n")).unwrap();
        let others = HostServices::of(2);
        let hosts = others.addresses.clone();
        fs::write(place.join("hosts"), hosts.join("\n")).unwrap();
        fs::write(place.join("t.toml"), RULES).unwrap();
        let mut galaxy = Self {
            service: None,
            workloads: Vec::new(),
            _machine: machine,
            _others: others,
            address: String::new(),
            ended_pid: String::new(),
            hosts,
            place,
        };
        galaxy.remember();
        galaxy
    }

    /// Runs what has ended since, under a service, which then ends too.
    fn remember(&mut self) {
        let (name, device, most, least) = ENDED;
        self.serve();
        let steps =
            [Step { after_ms: 0, mebibytes: most - least }, Step { after_ms: 0, mebibytes: least }];
        let mut ended = self.work(name, device, "root", &steps, true);
        self.ended_pid = ended.pid();
        let report = |galaxy: &Self| said(galaxy.command().args(["report", name])).out;
        wait_until("some seconds of history", TIMEOUT, || {
            let [first, last] = self.lifetime_ms().unwrap_or_default();
            last - first > 4000
        });
        ended.child.kill();
        wait_until("its end to be recorded", TIMEOUT, || {
            report(self).contains("left its ledger behind")
        });
        self.service.take().unwrap().end();
        // What it has left behind would still be listed.
        assert_eq!(said(self.command().args(["smi", "--clean"])).status, Some(0));
    }

    fn history(&self, flags: OpenFlags) -> Option<Connection> {
        Connection::open_with_flags(self.place.join("state/history.db"), flags).ok()
    }

    /// When the one that has ended was first and last seen.
    fn lifetime_ms(&self) -> Option<[i64; 2]> {
        let query = "SELECT first_seen_ms, last_seen_ms FROM process WHERE name = ?1";
        let row = |row: &rusqlite::Row<'_>| Ok([row.get(0)?, row.get(1)?]);
        let history = self.history(OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        history.query_row(query, [ENDED.0], row).ok()
    }

    /// Makes the history older, so that an hour ago is a second after that workload was first seen. No
    /// service may run.
    pub(super) fn age(&self) {
        assert!(self.service.is_none());
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
        let [first, _] = self.lifetime_ms().unwrap();
        let by_ms = first + 1000 - (i64::try_from(now).unwrap() - HOUR_MS);
        let history = self.history(OpenFlags::SQLITE_OPEN_READ_WRITE).unwrap();
        for (table, columns) in TIMES {
            let set: Vec<String> =
                columns.iter().map(|column| format!("{column} = {column} - {by_ms}")).collect();
            let update = format!("UPDATE {table} SET {}", set.join(", "));
            history.execute(&update, []).unwrap();
        }
    }

    /// Starts what runs now, and a service.
    pub(super) fn go_on(&mut self) {
        for (name, device, user, doing) in RUNNING {
            let workload = match doing {
                Doing::Trains => self.train(name, device, user),
                Doing::Grows => {
                    let more = Step { after_ms: GROWS_EVERY_MS, mebibytes: GROWS_MEBIBYTES };
                    let mut steps = vec![more; 1000];
                    steps[0].after_ms = 0;
                    self.work(name, device, user, &steps, false)
                }
                Doing::Keeps { mebibytes, fails } => {
                    let too_much = Step { after_ms: 0, mebibytes: 1 << 16 };
                    let once = Step { after_ms: 0, mebibytes };
                    let steps = if fails { vec![too_much, once] } else { vec![once] };
                    self.work(name, device, user, &steps, false)
                }
            };
            self.workloads.push(Workload { doing, ..workload });
        }
        self.serve();
    }

    /// The workload of that name.
    pub(super) fn workload(&self, name: &str) -> &Workload {
        self.workloads.iter().find(|one| one.name == name).unwrap()
    }

    /// The command in the environment of a user of this machine.
    pub(super) fn command(&self) -> Command {
        let mut command = telltale();
        command.env("HOME", self.place.path()).env("XDG_CONFIG_HOME", self.place.join("config"));
        command.env("TELLTALE_ROOT", self.place.join("m")).env_remove("TELLTALE_CONFIG");
        command.env("TELLTALE_STATE_DIR", self.place.join("state"));
        command.current_dir(self.place.path());
        command
    }

    fn serve(&mut self) {
        let mut command = self.command();
        command.env("TELLTALE_HISTORY_WRITE_SECONDS", "1");
        command.args(["serve", "--interval", "0.5", "--http", "127.0.0.1:0", "--config", "t.toml"]);
        let mut service = Serving::start(&mut command);
        let line = service.says("http listens on ");
        self.address = format!("http://{}/", line.rsplit(' ').next().unwrap());
        self.service = Some(service);
    }

    fn train(&self, name: &'static str, device: usize, user: &'static str) -> Workload {
        let arguments = ["replay", "train", "--loop", "--device", &device.to_string()];
        self.spawn(name, device, user, &arguments)
    }

    /// A workload that takes memory in these steps, and gives the first back where `gives` is set.
    fn work(
        &self,
        name: &'static str,
        device: usize,
        user: &'static str,
        steps: &[Step],
        gives: bool,
    ) -> Workload {
        let trace = format!("{name}.trace");
        let description = Description {
            made_with: "a test".to_owned(),
            command: String::new(),
            page_bytes: 4096,
            threshold_bytes: 1,
        };
        let file = File::create(self.place.join(&trace)).unwrap();
        let mut writer = Writer::new(file, description).unwrap();
        let ids: Vec<u32> = steps
            .iter()
            .map(|step| {
                writer.allocate(step.after_ms * 1_000_000, 0, step.mebibytes * MIB).unwrap()
            })
            .collect();
        if gives {
            writer.free(0, 0, ids[0]).unwrap();
        }
        // Small enough for L1, and the last of what it does within an hour.
        writer.allocate(0, 0, 16 << 10).unwrap();
        writer.allocate(3_600_000_000_000, 0, 1).unwrap();
        writer.finish().unwrap();
        self.spawn(name, device, user, &["replay", &trace, "--device", &device.to_string()])
    }

    fn spawn(
        &self,
        name: &'static str,
        device: usize,
        user: &'static str,
        arguments: &[&str],
    ) -> Workload {
        let link = self.place.join(name);
        symlink(env!("CARGO_BIN_EXE_telltale"), &link).unwrap();
        let mut command = Command::new(link);
        command.args(arguments).current_dir(self.place.path());
        command.env("TELLTALE_ROOT", self.place.join("m"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if user == "ada" {
            command = as_user(ADA, ADA, command);
        }
        let child = ChildGuard::spawn(&mut command);
        let workload =
            Workload { name, device, user, doing: Doing::Grows, started: Instant::now(), child };
        wait_until("a workload to hold memory", TIMEOUT, || {
            let seen = snapshot(&self.place.join("m")).processes;
            let mut mine = seen.iter().filter(|one| one.pid == Some(workload.child.id()));
            mine.any(|process| !process.devices.is_empty())
        });
        workload
    }
}

/// An allocation of a workload.
#[derive(Debug, Clone, Copy)]
struct Step {
    after_ms: u64,
    mebibytes: u64,
}

/// Times of the history, by table.
const TIMES: [(&str, &[&str]); 4] = [
    ("device", &["first_seen_ms", "last_seen_ms"]),
    ("process", &["recording_ms", "first_seen_ms", "last_seen_ms", "ended_ms"]),
    ("usage", &["peak_ms"]),
    ("block", &["start_ms", "end_ms"]),
];

/// Rules whose windows are short, so that nothing waits for hours.
const RULES: &str = "\
[[alerts.rule]]
name = \"memory_leak\"
window_seconds = 60
growth_bytes = 33554432
exhausted_within_seconds = 1000000
[[alerts.rule]]
name = \"idle_memory\"
idle_seconds = 5
";
