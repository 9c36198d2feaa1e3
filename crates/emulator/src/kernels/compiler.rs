//! The system's C compiler: which one it is, and compiling one kernel with it.

use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read, Seek};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::source::{KERNEL_API, KernelText};

/// How long a compiler may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// As much of the compiler's messages as is kept.
const MAX_MESSAGE_BYTES: u64 = 16 << 10;
/// Compilers that one process knows: `$CC` rarely changes while it runs.
const MAX_KNOWN: usize = 8;
/// The largest stack frame of a function: a quarter of a kernel's stack.
const MAX_FRAME: &str = "-Werror=frame-larger-than=65536";

/// Flags of every kernel. Floating-point results must not depend on how the compiler combines
/// operations, so nothing is contracted or reassociated; what never changes a result is allowed.
/// Without unwind tables nothing can unwind through a kernel.
const FLAGS: [&str; 22] = [
    "-std=gnu11",
    "-shared",
    "-fPIC",
    "-fvisibility=hidden",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-strict-aliasing",
    "-fwrapv",
    "-fopenmp-simd",
    "-fno-asynchronous-unwind-tables",
    "-fno-unwind-tables",
    "-fmax-errors=20",
    "-Wno-unused",
    "-Werror=implicit-function-declaration",
    "-Werror=incompatible-pointer-types",
    "-Werror=int-conversion",
    "-Werror=vla",
    MAX_FRAME,
    "-Wl,-z,defs",
    "-Wl,-z,now",
    "-Wl,--build-id=none",
];
/// Makes code for the processor that this is.
const NATIVE: &str = "-march=native";

/// A compiler that works.
#[derive(Debug)]
pub(crate) struct Compiler {
    words: Vec<String>,
    native: bool,
    /// Stands for the compiler, the processor it makes code for, the flags and the kernel API.
    identity: [u64; 2],
}

/// Why nothing was compiled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompilerError {
    /// There is no compiler.
    #[error("cannot run the C compiler {command:?}: install one, or name it in CC")]
    Missing {
        /// What was run.
        command: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It does not work at all.
    #[error("the C compiler {command:?} fails on an empty file: install one, or name it in CC")]
    Broken {
        /// What was run.
        command: String,
    },
    /// It refused the kernel.
    #[error("the C compiler refuses its source:\n{message}")]
    Refused {
        /// What the compiler said.
        message: String,
    },
    /// It took too long.
    #[error("the C compiler took more than {} s: make the kernel simpler", PATIENCE.as_secs())]
    TooSlow,
    /// A file could not be read or written.
    #[error("cannot keep the files of a compilation")]
    Files(#[source] io::Error),
}

impl Compiler {
    /// The compiler that `$CC` names, else `cc`.
    pub(crate) fn current() -> Result<Arc<Self>, CompilerError> {
        static KNOWN: Mutex<Vec<(String, Arc<Compiler>)>> = Mutex::new(Vec::new());
        let command = std::env::var("CC").unwrap_or_default();
        let command = if command.trim().is_empty() { "cc".to_owned() } else { command };
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, compiler)) = known.iter().find(|(name, _)| *name == command) {
            return Ok(Arc::clone(compiler));
        }
        let compiler = Arc::new(Self::find(&command)?);
        if known.len() == MAX_KNOWN {
            known.remove(0);
        }
        known.push((command, Arc::clone(&compiler)));
        Ok(compiler)
    }

    /// Asks a compiler for all its macros: they name its version and every feature of the
    /// processor that it makes code for.
    fn find(command: &str) -> Result<Self, CompilerError> {
        let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
        for native in [true, false] {
            let mut asked = Self::command(&words);
            asked.args(native.then_some(NATIVE)).args(["-dM", "-E", "-x", "c", "/dev/null"]);
            let output = asked.stdin(Stdio::null()).output();
            let output = output.map_err(|source| {
                let command = command.to_owned();
                CompilerError::Missing { command, source }
            })?;
            if output.status.success() {
                let identity = [0u8, 1].map(|half| {
                    let mut hasher = DefaultHasher::new();
                    (half, command, native, FLAGS, KERNEL_API, &output.stdout).hash(&mut hasher);
                    hasher.finish()
                });
                return Ok(Self { words, native, identity });
            }
        }
        Err(CompilerError::Broken { command: command.to_owned() })
    }

    /// See the field.
    pub(crate) fn identity(&self) -> [u64; 2] {
        self.identity
    }

    /// Compiles a kernel to the library `to`. `source` and `log` are files for this alone.
    pub(crate) fn compile(
        &self,
        text: &KernelText,
        source: File,
        log: File,
        to: &Path,
    ) -> Result<(), CompilerError> {
        let mut source = source;
        io::Write::write_all(&mut source, KERNEL_API.as_bytes())
            .and_then(|()| io::Write::write_all(&mut source, text.body.as_bytes()))
            .and_then(|()| source.rewind())
            .map_err(CompilerError::Files)?;
        let mut log = log;
        let outputs = log.try_clone().and_then(|out| Ok((out, log.try_clone()?)));
        let (out, errors) = outputs.map_err(CompilerError::Files)?;
        let mut command = Self::command(&self.words);
        command.args(FLAGS).arg(text.optimisation).args(self.native.then_some(NATIVE));
        command.args(["-x", "c", "-", "-o"]).arg(to).arg("-lm");
        let child = command.stdin(source).stdout(out).stderr(errors).spawn();
        let child = child.map_err(|source| {
            let command = self.words.join(" ");
            CompilerError::Missing { command, source }
        })?;
        let status = wait(child)?;
        if status.success() {
            return Ok(());
        }
        let mut message = Vec::new();
        log.rewind()
            .and_then(|()| log.take(MAX_MESSAGE_BYTES).read_to_end(&mut message))
            .map_err(CompilerError::Files)?;
        let message = String::from_utf8_lossy(&message).trim_end().to_owned();
        Err(CompilerError::Refused { message })
    }

    fn command(words: &[String]) -> Command {
        let (program, arguments) = words.split_first().expect("a command has at least one word");
        let mut command = Command::new(program);
        // Messages in English, in plain bytes, and nothing that depends on where it runs.
        command.args(arguments).env("LC_ALL", "C");
        command
    }
}

/// Waits for a child, for as long as a compiler may take.
fn wait(mut child: Child) -> Result<ExitStatus, CompilerError> {
    let ended = pidfd_open(Pid::from_child(&child), PidfdFlags::empty());
    let deadline = Instant::now() + PATIENCE;
    if let Ok(ended) = &ended {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let left = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: 0 };
            let mut ended = [PollFd::new(ended, PollFlags::IN)];
            match poll(&mut ended, Some(&left)) {
                Err(rustix::io::Errno::INTR) => {}
                Ok(0) if Instant::now() + Duration::from_secs(1) > deadline => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(CompilerError::TooSlow);
                }
                Ok(0) => {}
                Ok(_) | Err(_) => break,
            }
        }
    }
    child.wait().map_err(CompilerError::Files)
}
