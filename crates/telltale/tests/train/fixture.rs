//! One run of `telltale train` in a directory of its own, and what it leaves there.

use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use telltale_harness::{ChildGuard, Scratch, wait_until};

/// How long anything may take on a machine that is busy with other tests.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(240);
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);
/// The variable by which a run's processes are known.
const MARK: &str = "TELLTALE_TRAIN_TEST";

/// A place for one or several runs.
pub(crate) struct Place {
    scratch: Scratch,
}

/// A run that goes on.
pub(crate) struct Running {
    pub(crate) process: ChildGuard,
    files: [PathBuf; 2],
}

/// A run that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) output: String,
    pub(crate) errors: String,
}

// === impl Place ===

impl Place {
    pub(crate) fn new() -> Self {
        let place = Self { scratch: Scratch::new() };
        fs::create_dir(place.path("run")).expect("a scratch directory");
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.scratch.join(name)
    }

    /// What is in a file; nothing while there is none.
    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    pub(crate) fn wait_for(&self, name: &str) {
        wait_until(&format!("the file {name}"), TIMEOUT, || self.path(name).exists());
    }

    /// A command that runs here, with its own files here as well.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.scratch.path());
        command.env("XDG_RUNTIME_DIR", self.path("run")).env(MARK, self.scratch.path());
        command.env_remove("PYTHONPATH").env_remove("OMP_NUM_THREADS");
        command
    }

    /// Starts `telltale train` with these arguments.
    pub(crate) fn start(&self, arguments: &[&str]) -> Running {
        self.start_with(arguments, &[])
    }

    /// The same with variables in its environment.
    pub(crate) fn start_with(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Running {
        let mut command = self.command(env!("CARGO_BIN_EXE_telltale"));
        command.arg("train").args(arguments).envs(variables.iter().copied());
        let number = fs::read_dir(self.scratch.path()).expect("a scratch directory").count();
        let files = ["out", "err"].map(|kind| self.path(&format!("{kind}-{number}")));
        let [output, errors] = files.each_ref().map(|file| File::create(file).expect("a file"));
        let command = command.stdin(Stdio::null()).stdout(output).stderr(errors);
        Running { process: ChildGuard::spawn(command), files }
    }

    /// Runs it to its end; nothing of it is left then.
    #[track_caller]
    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        let ended = self.start(arguments).wait();
        self.assert_nothing_left();
        ended
    }

    /// That no process and no file of a run that has ended is there.
    #[track_caller]
    pub(crate) fn assert_nothing_left(&self) {
        assert_eq!(self.left(), Vec::<String>::new());
    }

    /// Processes and files of runs.
    pub(crate) fn left(&self) -> Vec<String> {
        let mark = [MARK.as_bytes(), b"=", self.scratch.path().as_os_str().as_bytes()].concat();
        let mut left = Vec::new();
        for entry in fs::read_dir("/proc").expect("proc").flatten() {
            let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
            if environment.split(|byte| *byte == 0).any(|one| one == mark) {
                let command = fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
                left.push(command.replace('\0', " "));
            }
        }
        let files = fs::read_dir(self.path("run")).expect("a scratch directory").flatten();
        left.extend(files.map(|file| file.path().display().to_string()));
        left
    }
}

// === impl Running ===

impl Running {
    pub(crate) fn wait(mut self) -> Ended {
        let began = Instant::now();
        while self.process.is_running() {
            assert!(began.elapsed() < TIMEOUT, "it did not end, and said: {}", self.errors());
            std::thread::sleep(BETWEEN_LOOKS);
        }
        let status = self.process.wait_within("its status", TIMEOUT);
        let [output, errors] =
            self.files.map(|file| fs::read_to_string(file).expect("what was printed"));
        Ended { code: status.code(), output, errors }
    }

    /// What its workers have printed so far.
    pub(crate) fn output(&self) -> String {
        fs::read_to_string(&self.files[0]).expect("what was printed")
    }

    /// What it has said so far.
    pub(crate) fn errors(&self) -> String {
        fs::read_to_string(&self.files[1]).expect("what was printed")
    }
}
