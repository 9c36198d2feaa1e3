//! A process that runs kernels from files: the example `run_kernel`, line by line.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::Pid;
use telltale_emulator::{Emulator, EmulatorOptions, MachineKind};
use telltale_harness::{ChildGuard, Scratch};

const TIMEOUT: Duration = Duration::from_secs(120);

/// A machine and a directory of kernels.
pub(crate) struct Kernels {
    emulator: Emulator,
    scratch: Scratch,
}

/// A process that runs them.
pub(crate) struct KernelProcess {
    child: ChildGuard,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Kernels {
    pub(crate) fn new() -> Self {
        let scratch = Scratch::new();
        let root = scratch.join("m");
        let emulator =
            Emulator::start(&root, MachineKind::N300, EmulatorOptions::default()).unwrap();
        fs::create_dir(scratch.join("kernels")).unwrap();
        Self { emulator, scratch }
    }

    pub(crate) fn path(&self, file: impl AsRef<Path>) -> PathBuf {
        self.scratch.join("kernels").join(file)
    }

    pub(crate) fn write(&self, file: &str, text: &str) {
        let path = self.path(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A kernel that gives the value of an expression.
    pub(crate) fn write_value(&self, file: &str, before: &str, value: &str) {
        self.write(
            file,
            &format!(
                "{before}\nKERNEL_MAIN {{\n  float value = {value};\n  \
                 noc_write_bytes(get_arg_val(0), 0, 4, &value);\n}}\n"
            ),
        );
    }

    pub(crate) fn start(&self, mode: &str) -> KernelProcess {
        self.start_with(mode, |_| {})
    }

    pub(crate) fn start_with(
        &self,
        mode: &str,
        change: impl FnOnce(&mut Command),
    ) -> KernelProcess {
        let test = std::env::current_exe().unwrap();
        let program = test.ancestors().nth(2).unwrap().join("examples/run_kernel");
        assert!(program.exists(), "{} is built by `cargo test`", program.display());
        let mut command = Command::new(program);
        command.arg(self.emulator.root()).arg(self.scratch.join("cache")).arg(self.path(""));
        command.arg(mode).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.env_remove("TELLTALE_KERNEL_CACHE").env_remove("CC");
        change(&mut command);
        let mut child = ChildGuard::spawn(&mut command);
        let input = child.child().stdin.take();
        let output = BufReader::new(child.child().stdout.take().unwrap());
        KernelProcess { child, input, output }
    }

    /// What one process says of one kernel.
    pub(crate) fn run_once(&self, file: &str) -> String {
        let mut process = self.start("on");
        let said = process.run(file);
        process.ends_well();
        said
    }
}

impl KernelProcess {
    /// Runs a kernel, or several with blanks between their files: what its number is then, or what
    /// failed. Empty if the process ended.
    pub(crate) fn run(&mut self, files: &str) -> String {
        let mut input = self.input.as_ref().unwrap();
        // A process that has ended says so by saying nothing.
        let _ = writeln!(input, "{files}");
        self.next_line()
    }

    pub(crate) fn next_line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    pub(crate) fn id(&mut self) -> Pid {
        Pid::from_child(self.child.child())
    }

    pub(crate) fn end(&mut self) -> ExitStatus {
        self.input = None;
        let status = self.child.wait_within("the process to end", TIMEOUT);
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "");
        status
    }

    pub(crate) fn ends_well(&mut self) {
        let status = self.end();
        assert!(status.success(), "{status}");
    }
}
