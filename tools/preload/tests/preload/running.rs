//! A program that runs with the library, and its ledgers.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

use telltale_harness::{ChildGuard, Scratch, cargo_library_directory, compile_c};
use telltale_ledger::directory::{Purpose, RuntimeDirectory};
use telltale_ledger::{LedgerReader, LedgerReading};
use telltale_schema::memory::{MemoryKind, MemoryUsage};

/// How long anything may take here: much longer than it does, because machines are busy.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The library, built once.
pub(crate) static LIBRARY: LazyLock<PathBuf> = LazyLock::new(|| {
    cargo_library_directory("telltale-preload", "telltale_preload").join("libtelltale_preload.so")
});

/// The C program, compiled once.
pub(crate) static WORKLOAD: LazyLock<PathBuf> = LazyLock::new(|| {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/workload.c");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("preload-workload");
    // -fno-builtin, or the compiler removes pairs of malloc and free.
    compile_c(&source, &program, &["-O1", "-fno-builtin", "-pthread"])
});

/// A runtime directory and what is run with it.
pub(crate) struct Place {
    pub(crate) folder: Scratch,
}

/// A program that says when there is something to see, and waits.
pub(crate) struct Running {
    pub(crate) child: ChildGuard,
    input: ChildStdin,
    lines: BufReader<ChildStdout>,
}

impl Place {
    pub(crate) fn new() -> Self {
        let folder = Scratch::new();
        folder.set_mode(0o700);
        Self { folder }
    }

    /// `program` with the library, as `telltale run --threshold 65536` would start it.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env("LD_PRELOAD", &*LIBRARY)
            .env("TELLTALE_RUN_THRESHOLD", "65536")
            .env("TT_METRICS_SOCKET_DIR", self.folder.path())
            .env_remove("TELLTALE_DISABLED");
        command
    }

    pub(crate) fn start(&self, what: &str) -> Running {
        Running::start(self.command(&*WORKLOAD).arg(what))
    }

    /// The ledgers that are there, by pid.
    pub(crate) fn ledgers(&self) -> Vec<(u32, LedgerReader)> {
        let directory = RuntimeDirectory::open(self.folder.path(), Purpose::Reading).unwrap();
        let entries = directory.list().unwrap().ledgers;
        let open = |name: &str| LedgerReader::open_at(&directory, name).unwrap();
        entries.iter().map(|entry| open(&entry.name)).map(|it| (it.owner().pid, it)).collect()
    }

    /// What the ledger of `pid` says.
    #[track_caller]
    pub(crate) fn reading(&self, pid: u32) -> LedgerReading {
        let mut found: Vec<_> = self.ledgers().into_iter().filter(|(of, _)| *of == pid).collect();
        assert_eq!(found.len(), 1, "one ledger of {pid}");
        let reading = found[0].1.read().unwrap();
        assert!(!reading.torn && !reading.implausible);
        assert_eq!(reading.faults, Default::default());
        reading.clone()
    }

    /// What `pid` has of the host's memory.
    #[track_caller]
    pub(crate) fn host(&self, pid: u32) -> MemoryUsage {
        let reading = self.reading(pid);
        let (slot, _) =
            reading.devices.iter().enumerate().find(|(_, device)| device.is_host).unwrap();
        let of_host = |row: &&(telltale_ledger::DeviceSlot, MemoryKind, MemoryUsage)| {
            row.0.index() == slot && row.1 == MemoryKind::SystemMemory
        };
        reading.usage.iter().find(of_host).unwrap().2
    }
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = ChildGuard::spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
        let input = child.child().stdin.take().unwrap();
        let lines = BufReader::new(child.child().stdout.take().unwrap());
        Self { child, input, lines }
    }

    /// Waits until the program says `what`, and gives the pid that said it.
    #[track_caller]
    pub(crate) fn says(&mut self, what: &str) -> u32 {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        let (said, pid) = line.trim_end().split_once(' ').unwrap_or((&line, ""));
        assert_eq!(said, what);
        pid.parse().unwrap()
    }

    /// Lets the program go on.
    pub(crate) fn go_on(&mut self) {
        self.input.write_all(b"go\n").unwrap();
    }

    #[track_caller]
    pub(crate) fn ends(&mut self) -> ExitStatus {
        self.child.wait_within("the program to end", TIMEOUT)
    }
}
