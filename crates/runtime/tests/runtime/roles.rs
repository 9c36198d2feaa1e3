//! Other processes for tests: this very test program, started again with a role.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::runtime::asking::{TIMEOUT, exchange, numbered, options};
use crate::runtime::debug_output::print_and_end;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use telltale_harness::{ChildGuard, Scratch};
use telltale_runtime::{ChipIdentity, DeviceDescription, MemoryKind, Runtime};
use telltale_schema::chip::BoardId;
use telltale_wire::{Query, QueryKind};

const ROLE: &str = "TELLTALE_TEST_ROLE";
const DIRECTORY: &str = "TELLTALE_TEST_DIRECTORY";

/// A copy of this program where every user can start it.
pub(crate) fn program(scratch: &Scratch) -> PathBuf {
    let copy = scratch.join("program");
    let own = std::env::current_exe().expect("a test knows its own path");
    // Copied by another process: a descriptor open for writing here could be inherited by a child
    // that another test starts meanwhile, and a file open for writing cannot be executed.
    let copied = Command::new("cp").arg(own).arg(&copy).status().expect("cp runs");
    assert!(copied.success(), "the scratch directory has no room");
    copy
}

/// A command that plays `role` with the runtime directory `directory`.
pub(crate) fn role(program: &Path, role: &str, directory: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(["--exact", "runtime::roles::play", "--nocapture", "--test-threads=1"]);
    command.env(ROLE, role).env(DIRECTORY, directory);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A process that plays a role, and what it says.
pub(crate) struct Player {
    child: ChildGuard,
    lines: BufReader<std::process::ChildStdout>,
}

impl Player {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = ChildGuard::spawn(command);
        let lines = BufReader::new(child.child().stdout.take().expect("it is piped"));
        Self { child, lines }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The next line that begins with `what`, without it. The test program's own lines are passed
    /// over.
    pub(crate) fn says(&mut self, what: &str) -> String {
        loop {
            let mut line = String::new();
            let count = self.lines.read_line(&mut line).expect("text");
            assert!(count > 0, "it ended without saying {what:?}");
            if let Some((_, rest)) = line.split_once(&format!("role {what}:")) {
                return rest.trim().to_owned();
            }
        }
    }

    /// Lets it go on with the next step.
    pub(crate) fn go_on(&mut self) {
        let input = self.child.child().stdin.as_mut().expect("it is piped");
        input.write_all(b"\n").expect("it listens");
    }

    /// Lets it end, and returns what it wrote to standard error.
    pub(crate) fn end(mut self) -> String {
        drop(self.child.child().stdin.take());
        let mut errors = self.child.child().stderr.take().expect("it is piped");
        assert!(self.child.wait_within("the role to end", TIMEOUT).success());
        std::io::read_to_string(&mut errors).expect("text")
    }
}

fn say(what: &str, text: impl std::fmt::Debug) {
    println!("role {what}: {text:?}");
}

fn wait_for_word() {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).expect("standard input is readable");
}

/// Nothing, unless this process was started by [`role`].
#[test]
fn play() {
    let (Ok(role), Some(directory)) = (std::env::var(ROLE), std::env::var_os(DIRECTORY)) else {
        return;
    };
    let directory = PathBuf::from(directory);
    match role.as_str() {
        "record" => record(&directory),
        "look" => look(&directory),
        "log" => log(&directory),
        "visible" => open_visible(&directory),
        "lower" => lower(&directory),
        other => match other.strip_prefix("print and ") {
            Some(end) => print_and_end(end),
            None => panic!("no role {other}"),
        },
    }
}

/// Waits, records 500 bytes, says what went wrong, and waits again.
fn record(directory: &Path) {
    say("waits", ());
    wait_for_word();
    let runtime = Runtime::start(options(directory));
    let device = runtime.open_device(numbered(0));
    for address in 0..5 {
        device.allocate(MemoryKind::Dram, address, 100);
    }
    device.free(MemoryKind::Dram, 99);
    let steps: Vec<_> = runtime.problems().into_iter().map(|(step, _)| step.name()).collect();
    say("recorded", steps);
    wait_for_word();
}

/// Tries to open everything in the directory, in the order of names, and says how that went.
fn look(directory: &Path) {
    let mut names: Vec<String> = std::fs::read_dir(directory)
        .expect("the directory is readable")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    let tries = names.iter().map(|name| {
        let path = directory.join(name);
        let outcome = match name.ends_with(".sock") {
            true => UnixStream::connect(path).map(|_| ()),
            false => std::fs::File::open(path).map(|_| ()),
        };
        outcome.map_err(|error| error.kind())
    });
    say("found", tries.collect::<Vec<_>>());
}

/// Lowers the limit on open files below what the endpoint waits for, lets the endpoint notice, and
/// closes the device.
fn lower(directory: &Path) {
    let runtime = Runtime::start(options(directory));
    let device = runtime.open_device(numbered(0));
    let name = format!("metrics_{}.sock", std::process::id());
    let [mut idle, mut asking] = [(); 2].map(|()| {
        let stream = UnixStream::connect(directory.join(&name)).expect("the endpoint listens");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout can be set");
        stream
    });
    // With this answer, the one that came first has been accepted too.
    exchange(&mut asking, &Query::of(QueryKind::Uptime).encode());
    let limit = Rlimit { current: Some(1), ..getrlimit(Resource::Nofile) };
    setrlimit(Resource::Nofile, limit).expect("limits may be lowered");
    idle.write_all(b"x").expect("the endpoint is there");
    // Half a query is given up at its deadline, which takes the endpoint a wait that fails.
    // If even the half was never read, the closing shows as a reset.
    match idle.read(&mut [0; 1]) {
        Ok(0) => {}
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {}
        other => panic!("the endpoint does not give up in time: {other:?}"),
    }
    drop(device);
    say("closed", ());
}

/// Opens the first chip of the board that tt-metal's documents use, as the environment says.
fn log(directory: &Path) {
    let mut options = telltale_runtime::Options::new("test 1");
    options.root = Some(directory.to_path_buf());
    let identity = ChipIdentity { board_id: Some(BoardId(0x727)), ..ChipIdentity::default() };
    let description = DeviceDescription { identity, ..numbered(0) };
    drop(Runtime::start(options).open_device(description));
    say("logged", ());
}

/// Opens the chips of two boards that `TT_VISIBLE_DEVICES` names, as tt-metal does: the n-th of
/// them is device n to the program, whatever the driver calls it.
fn open_visible(directory: &Path) {
    let mut options = telltale_runtime::Options::new("test 1");
    options.root = Some(directory.to_path_buf());
    let runtime = Runtime::start(options);
    let visible = std::env::var("TT_VISIBLE_DEVICES").expect("the test sets it");
    let devices = visible.split(',').zip(0..).map(|(ordinal, logical_id)| {
        let ordinal: u32 = ordinal.parse().expect("a number");
        let identity = ChipIdentity {
            driver_ordinal: Some(ordinal),
            board_id: Some(BoardId([1834, 1919][usize::try_from(ordinal).expect("small")])),
            ..ChipIdentity::default()
        };
        runtime.open_device(DeviceDescription { identity, ..numbered(logical_id) })
    });
    let devices: Vec<_> = devices.collect();
    say("opened", devices.len());
}
