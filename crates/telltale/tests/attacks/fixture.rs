//! The stage: an emulated machine, a runtime directory as the installation makes it, a service of
//! its own user, and what each user sees of it.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use telltale_emulator::{Machine, MachineKind, MachineOptions};
use telltale_harness::exposition::parse;
use telltale_harness::{ChildGuard, Scratch, as_user, needs_root, wait_until};
use telltale_schema::chip::ChipIdentity;
use telltale_schema::memory::MemorySpace;
use telltale_schema::snapshot::{Process, ProcessState, Snapshot};

use crate::attacks::actor::{Actor, for_everyone};
use crate::attacks::asking::{self, Answer};

/// How long anything may take here: much longer than it does, because machines are busy.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// The service's user and group.
pub(crate) const SERVICE: u32 = 60_000;
/// One who works here.
pub(crate) const ADA: u32 = 60_001;
/// One who means harm.
pub(crate) const MALLORY: u32 = 60_002;
/// One who helps him.
pub(crate) const EVE: u32 = 60_003;

/// What Ada's workload holds, in bytes of DRAM.
pub(crate) const ADAS_BYTES: u64 = 7_000_001;
/// What her processes are called in metrics of their own.
const ADAS_SECRET: &str = "adas-project";
/// The service's token.
pub(crate) const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A machine on which nothing has happened yet.
pub(crate) struct Stage {
    pub(crate) machine: Machine,
    pub(crate) chips: Vec<ChipIdentity>,
    pub(crate) run: PathBuf,
    pub(crate) state: PathBuf,
    pub(crate) token: PathBuf,
    pub(crate) place: Scratch,
}

/// A machine with a service and Ada's workload.
pub(crate) struct Fixture {
    pub(crate) ada: Actor,
    pub(crate) service: Service,
    pub(crate) stage: Stage,
}

/// A service that runs.
pub(crate) struct Service {
    pub(crate) child: ChildGuard,
    pub(crate) http: Option<SocketAddr>,
    pub(crate) grpc: Option<SocketAddr>,
    log: Receiver<String>,
}

// === impl Stage ===

impl Stage {
    /// Sets the stage; none, with a record, without root.
    pub(crate) fn set(test: &str) -> Option<Self> {
        if !needs_root(&format!("attacks::{test}")) {
            return None;
        }
        let place = Scratch::new();
        place.set_mode(0o755);
        let root = place.join("m");
        let machine = Machine::create(&root, MachineKind::N150, &MachineOptions::default());
        let machine = machine.unwrap();
        let described = (0..machine.chip_count()).flat_map(|chip| machine.descriptions(chip));
        let chips = described.map(|chip| chip.identity).collect();
        let (run, state, token) = (place.join("run"), place.join("state"), place.join("token"));
        for (path, mode) in [(&run, 0o3777), (&state, 0o700)] {
            fs::create_dir(path).unwrap();
            chown(path, Some(SERVICE), Some(SERVICE)).unwrap();
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        }
        fs::write(&token, TOKEN).unwrap();
        chown(&token, Some(SERVICE), Some(SERVICE)).unwrap();
        fs::set_permissions(&token, Permissions::from_mode(0o600)).unwrap();
        Some(Self { machine, chips, run, state, token, place })
    }

    /// The command of a service for this machine, as it is usual.
    pub(crate) fn command(&self) -> Command {
        let mut command = self.command_for_any_state();
        command.arg("--state-dir").arg(&self.state);
        command
    }

    /// The same, which names no state directory.
    pub(crate) fn command_for_any_state(&self) -> Command {
        let mut command = Command::new(for_everyone(env!("CARGO_BIN_EXE_telltale").as_ref()));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("TELLTALE_") {
                command.env_remove(name);
            }
        }
        command.env("HOME", self.place.path()).env_remove("XDG_CONFIG_HOME");
        command.args(["serve", "--interval", "0.2", "--root"]).arg(self.machine.root());
        command.arg("--runtime-dir").arg(&self.run);
        command.arg("--token-file").arg(&self.token);
        command.args(["--http", "127.0.0.1:0", "--http", "unix:http.sock"]);
        command.env("TELLTALE_HISTORY_WRITE_SECONDS", "1");
        // These tests are root, and stand for strangers at the port.
        command.env("TELLTALE_LOOPBACK_USERS", "false");
        command
    }

    /// Runs this command as the service's user, until it collects.
    pub(crate) fn serve(&self, command: Command) -> Service {
        Service::start(as_user(SERVICE, SERVICE, command))
    }

    /// What a service that cannot begin says.
    pub(crate) fn refused(&self, command: Command) -> String {
        let mut command = as_user(SERVICE, SERVICE, command);
        let output = command.stdin(Stdio::null()).stdout(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    /// A workload of this user with memory on each chip, as any program has it.
    pub(crate) fn workload(&self, uid: u32, bytes: u64) -> Actor {
        let part = json!({
            "role": "workload",
            "directory": self.run,
            "chips": self.chips,
            "bytes": bytes,
            "secret": if uid == ADA { ADAS_SECRET } else { "" },
        });
        let mut actor = Actor::start(uid, &part);
        actor.says();
        actor
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.run.join(telltale_node::grpc::SOCKET_NAME)
    }

    pub(crate) fn http_socket(&self) -> PathBuf {
        self.run.join("http.sock")
    }
}

// === impl Service ===

impl Service {
    fn start(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = ChildGuard::spawn(&mut command);
        let lines = BufReader::new(child.child().stderr.take().unwrap()).lines();
        let (sender, log) = channel();
        // Read to its end, so that the service never waits for us.
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let mut service = Self { child, http: None, grpc: None, log };
        loop {
            let line = service.next_line();
            let address = |part: &str| line.split_once(part)?.1.parse::<SocketAddr>().ok();
            service.http = service.http.or_else(|| address("http listens on "));
            service.grpc = service.grpc.or_else(|| address("grpc listens on "));
            if line.contains("collecting each") {
                return service;
            }
        }
    }

    #[track_caller]
    fn next_line(&self) -> String {
        self.log.recv_timeout(TIMEOUT).expect("the service goes on with its log")
    }

    /// Waits for a line of its log with these words.
    #[track_caller]
    pub(crate) fn says(&self, words: &str) {
        while !self.next_line().contains(words) {}
    }

    /// Ends it; the rest of its log.
    pub(crate) fn end(&mut self) -> String {
        self.child.kill();
        self.log.iter().collect::<Vec<_>>().join("\n")
    }
}

// === impl Fixture ===

impl Fixture {
    /// A fixture with a usual service; none, with a record, without root.
    pub(crate) fn set(test: &str) -> Option<Self> {
        Self::with(test, |_, _| {})
    }

    /// A fixture whose service's command was changed.
    pub(crate) fn with(test: &str, change: impl FnOnce(&Stage, &mut Command)) -> Option<Self> {
        let stage = Stage::set(test)?;
        let mut command = stage.command();
        change(&stage, &mut command);
        let service = stage.serve(command);
        let ada = stage.workload(ADA, ADAS_BYTES);
        let fixture = Self { stage, service, ada };
        fixture.still_serves();
        Some(fixture)
    }

    /// A part for Mallory, on this stage.
    pub(crate) fn mallory(&self, part: Value) -> Actor {
        Actor::start(MALLORY, &self.part(part))
    }

    /// A part with what all parts know of the stage.
    pub(crate) fn part(&self, mut part: Value) -> Value {
        let reported = part.as_object_mut().unwrap();
        reported.entry("directory").or_insert_with(|| json!(self.stage.run));
        reported.entry("chips").or_insert_with(|| json!(self.stage.chips));
        part
    }

    /// What a user is shown at the service's socket.
    pub(crate) fn seen_by(&self, uid: u32) -> Snapshot {
        let part = json!({ "role": "snapshot", "socket": self.stage.socket() });
        serde_json::from_value(Actor::start(uid, &part).says()).unwrap()
    }

    /// What root is shown, collected for this call. A machine that is busy may need several.
    #[track_caller]
    pub(crate) fn whole(&self) -> Snapshot {
        let mut shown = Err(String::new());
        wait_until("a fresh snapshot", TIMEOUT, || {
            shown = asking::snapshot(&self.stage.socket());
            shown.is_ok()
        });
        shown.expect("it was Ok just now")
    }

    /// Asks by HTTP, without a token.
    pub(crate) fn get(&self, path: &str) -> Answer {
        asking::get(self.service.http.unwrap(), path, &[])
    }

    /// Asks by HTTP, with the token.
    pub(crate) fn get_all(&self, path: &str) -> Answer {
        let token = format!("Authorization: Bearer {TOKEN}");
        asking::get(self.service.http.unwrap(), path, &[&token])
    }

    /// A value of the service's own metrics; 0 where there is none yet.
    pub(crate) fn metric(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let answer = self.get_all("/metrics");
        let families = parse(&answer.body, false).unwrap();
        let samples = families.iter().flat_map(|family| &family.samples);
        let fits = |sample: &&telltale_harness::exposition::ParsedSample| {
            let has = |(key, value): &(&str, &str)| {
                sample.labels.get(*key).is_some_and(|found| found == value)
            };
            sample.name == name && labels.iter().all(has)
        };
        samples.filter(fits).map(|sample| sample.value).sum()
    }

    /// Waits until a metric of the service is at least this.
    #[track_caller]
    pub(crate) fn metric_reaches(&self, name: &str, labels: &[(&str, &str)], least: f64) {
        let what = format!("{name} {labels:?} to reach {least}");
        wait_until(&what, TIMEOUT, || self.metric(name, labels) >= least);
    }

    /// Asserts that Ada, root and Prometheus are served, and soon; that Ada's values are hers, and
    /// the device's sum is what she and the others truly have.
    #[track_caller]
    pub(crate) fn still_serves(&self) {
        self.serves_beside(0);
    }

    /// The same with so many bytes of others that are believed.
    #[track_caller]
    pub(crate) fn serves_beside(&self, others: u64) {
        let begun = Instant::now();
        wait_until("Ada to be shown with her memory", TIMEOUT, || {
            let whole = self.whole();
            adas(&whole, self.ada.id()) == Some(ADAS_BYTES)
                && used(&whole) == Some(ADAS_BYTES + others)
        });
        let shown = self.seen_by(ADA);
        assert_eq!(adas(&shown, self.ada.id()), Some(ADAS_BYTES), "she sees herself");
        // A busy machine may have kept the last snapshot for longer than it counts as new.
        wait_until("the service to be ready", TIMEOUT, || self.get_all("/-/ready").status == 200);
        let scrape = self.get_all("/metrics");
        assert_eq!(scrape.status, 200);
        assert!(scrape.body.contains(&format!("user=\"{ADA}\"")), "{}", scrape.body);
        assert!(begun.elapsed() < TIMEOUT, "it took {:?}", begun.elapsed());
    }
}

/// What Ada's process is shown to hold.
fn adas(snapshot: &Snapshot, pid: u32) -> Option<u64> {
    let process = process(snapshot, pid)?;
    let kinds = process.devices.iter().flat_map(|device| &device.kinds);
    Some(kinds.map(|kind| kind.usage.live_bytes()).sum())
}

/// The DRAM in use of the first device.
pub(crate) fn used(snapshot: &Snapshot) -> Option<u64> {
    snapshot.devices.first()?.space(MemorySpace::Dram)?.used_bytes.value().copied()
}

/// The living process of this pid.
pub(crate) fn process(snapshot: &Snapshot, pid: u32) -> Option<&Process> {
    let mut living = snapshot.processes.iter().filter(|one| one.state == ProcessState::Alive);
    living.find(|one| one.pid == Some(pid))
}

/// All errors of the sources, as text.
pub(crate) fn complaints(snapshot: &Snapshot) -> Vec<String> {
    let errors = snapshot.sources.iter().flat_map(|source| &source.errors);
    let errors = errors.map(|error| format!("{}: {}", error.subject, error.detail));
    let notes = snapshot.sources.iter().flat_map(|source| &source.notes);
    errors.chain(notes.map(|note| format!("{}: {}", note.subject, note.detail))).collect()
}

/// Asserts that nothing that strangers do makes a source fail.
#[track_caller]
pub(crate) fn no_source_fails(snapshot: &Snapshot) {
    let failed: Vec<_> = snapshot.sources.iter().flat_map(|source| &source.errors).collect();
    assert!(failed.is_empty(), "{failed:?}");
}

/// Asserts that nothing of Ada's process is in `text`.
#[track_caller]
pub(crate) fn shows_nothing_of_ada(fixture: &Fixture, text: &str) {
    let pid = fixture.ada.id().to_string();
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-');
    let found: Vec<&str> =
        words.filter(|word| *word == pid || *word == ADAS_SECRET || *word == "60001").collect();
    assert!(found.is_empty(), "{found:?} in {text}");
}
