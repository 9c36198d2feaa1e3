//! The system's C compiler: which one it is, and compiling one kernel with it.

use std::ffi::OsString;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Access, MemfdFlags, access, memfd_create};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::includes::{Included, included};
use super::source::{KERNEL_API, KernelText};
use crate::interrupts;

/// How long a compiler may take for a kernel.
const TIMEOUT: Duration = Duration::from_secs(120);
/// How long it may take to say what it is.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// How often a compiler's end is looked for where the kernel cannot report it.
const END_PERIOD: Duration = Duration::from_millis(10);
/// As much of the compiler's messages as is kept.
const MAX_MESSAGE_BYTES: u64 = 16 << 10;
/// Compilers that one process knows: `$CC` rarely changes while it runs.
const MAX_KNOWN: usize = 8;
/// The largest stack frame of a function: a quarter of a kernel's stack.
const MAX_FRAME: &str = "-Werror=frame-larger-than=65536";

/// Flags of every kernel. Floating-point results must not depend on how the compiler combines
/// operations, so nothing is contracted or reassociated; what never changes a result is allowed.
/// Without unwind tables nothing can unwind through a kernel. A large frame touches each of its
/// pages, so that none reaches beyond the guard of the stack.
const FLAGS: [&str; 19] = [
    "-std=gnu11",
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
    "-fstack-clash-protection",
    "-fmax-errors=20",
    "-Wno-unused",
    "-Werror=implicit-function-declaration",
    "-Werror=incompatible-pointer-types",
    "-Werror=int-conversion",
    "-Werror=vla",
    MAX_FRAME,
];
/// What makes a library of it, without those of the API's functions that it does not use.
const LINK_FLAGS: [&str; 5] =
    ["-shared", "-Wl,-z,defs", "-Wl,-z,now", "-Wl,--build-id=none", "-Wl,--gc-sections"];
/// Where the system has its headers.
const SYSTEM_HEADERS: &str = "/usr/include";
/// Makes code for the processor that this is.
const NATIVE: &str = "-march=native";

/// A compiler that works.
#[derive(Debug)]
pub(crate) struct Compiler {
    /// The program, and the words that come before all others.
    words: Vec<OsString>,
    native: bool,
    /// Stands for the compiler, the processor it makes code for, the flags and the kernel API with
    /// the system's headers that it includes.
    identity: [u64; 2],
    /// Where its own headers are, if it says so.
    own_headers: Option<PathBuf>,
    /// Its options, or the environment, give each kernel files that are not the system's.
    adds_files: bool,
    /// A text that it has preprocessed may not name all files that it was made from.
    hides_files: bool,
}

/// What is installed as the compiler: another one, or another version in its place, is not equal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Installed {
    command: String,
    /// Where its program is; none if it is nowhere.
    program: Option<PathBuf>,
    /// The program's size and time.
    file: Option<(u64, i64, i64)>,
    environment: [Option<OsString>; ENVIRONMENT.len()],
}

/// Variables that decide what a compiler includes, links and starts.
const ENVIRONMENT: [&str; 5] =
    ["CPATH", "C_INCLUDE_PATH", "LIBRARY_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX"];

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
    /// It does not say what it is.
    #[error(
        "the C compiler {command:?} did not answer within {} s: start it by hand to see why, or name \
         another one in CC",
        ANSWER_TIMEOUT.as_secs()
    )]
    Silent {
        /// What was run.
        command: String,
    },
    /// A disk is full: that of its temporary files, or that of the compiled kernels.
    #[error(
        "there is no room for what the C compiler writes: make some, or set TMPDIR:\n{message}"
    )]
    NoRoom {
        /// What the compiler said.
        message: String,
    },
    /// It refused the kernel.
    #[error("the C compiler refuses its source:\n{message}")]
    Refused {
        /// What the compiler said.
        message: String,
    },
    /// It took too long.
    #[error("the C compiler took more than {} s: make the kernel simpler", TIMEOUT.as_secs())]
    TooSlow,
    /// The waiting for it was interrupted ([`crate::interrupt_waits`]), and it was stopped.
    #[error("waiting for the C compiler was interrupted")]
    Interrupted,
    /// A file could not be read or written.
    #[error("cannot keep the files of a compilation")]
    Files(#[source] io::Error),
}

/// Whether there is a C compiler that works.
///
/// # Errors
/// When there is none, or it fails.
pub fn check_compiler() -> Result<(), CompilerError> {
    Compiler::current().map(|_| ())
}

impl Compiler {
    /// The compiler that `$CC` names, else `cc`.
    pub(crate) fn current() -> Result<Arc<Self>, CompilerError> {
        static KNOWN: Mutex<Vec<(Installed, Arc<Compiler>)>> = Mutex::new(Vec::new());
        let installed = Installed::current();
        let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let found = |known: &[(Installed, Arc<Self>)]| {
            let found = known.iter().find(|(other, _)| *other == installed);
            found.map(|(_, compiler)| Arc::clone(compiler))
        };
        if let Some(compiler) = found(&known()) {
            return Ok(compiler);
        }
        // Without the lock: another thread must not wait for a compiler that hangs. Several may ask it at once.
        let compiler = Arc::new(Self::find(&installed)?);
        let mut known = known();
        if let Some(compiler) = found(&known) {
            return Ok(compiler);
        }
        if known.len() == MAX_KNOWN {
            known.remove(0);
        }
        known.push((installed, Arc::clone(&compiler)));
        Ok(compiler)
    }

    /// Asks a compiler for the kernel API with all that it includes and all macros: they name its
    /// version and every feature of the processor that it makes code for.
    fn find(installed: &Installed) -> Result<Self, CompilerError> {
        let words = installed.words();
        for native in [true, false] {
            let mut asked = Self::command(&words);
            asked.args(native.then_some(NATIVE)).args(["-dD", "-E", "-x", "c", "-"]);
            let api = memory_file(KERNEL_API.as_bytes()).map_err(CompilerError::Files)?;
            if let Some(output) = answer(asked.stdin(api), &words)? {
                let identity = [0u8, 1].map(|half| {
                    let mut hasher = DefaultHasher::new();
                    (half, installed, native, FLAGS, LINK_FLAGS).hash(&mut hasher);
                    (KERNEL_API, &output).hash(&mut hasher);
                    hasher.finish()
                });
                let own_headers = own_headers(&words)?;
                let mut found = Self {
                    words,
                    native,
                    identity,
                    own_headers,
                    adds_files: false,
                    hides_files: false,
                };
                // The kernel API includes some.
                let names_none = included(&output).next().is_none();
                found.hides_files = names_none || found.words.iter().any(may_hide);
                found.adds_files =
                    found.hides_files || included(&output).any(|file| !found.owns(&file));
                return Ok(found);
            }
        }
        Err(CompilerError::Broken { command: shown(&words) })
    }

    /// See the field.
    pub(crate) fn identity(&self) -> [u64; 2] {
        self.identity
    }

    /// Whether a kernel that includes nothing may have files of others in it.
    pub(crate) fn adds_files(&self) -> bool {
        self.adds_files
    }

    /// Whether there may be files that a preprocessed text does not name.
    pub(crate) fn hides_files(&self) -> bool {
        self.hides_files
    }

    /// Whether a file came with the compiler or the system, so that it does not change while a process
    /// runs. One that is named in quotes is not meant, wherever it is.
    pub(super) fn owns(&self, file: &Included) -> bool {
        let own = [Some(Path::new(SYSTEM_HEADERS)), self.own_headers.as_deref()];
        file.is_of_system && own.into_iter().flatten().any(|own| file.path.starts_with(own))
    }

    /// Compiles a kernel to the library `to`. `source` and `log` are files for this alone.
    pub(crate) fn compile(
        &self,
        text: &KernelText,
        mut source: File,
        log: File,
        to: &Path,
    ) -> Result<(), CompilerError> {
        let api = if text.is_expanded { "" } else { KERNEL_API };
        source
            .write_all(api.as_bytes())
            .and_then(|()| source.write_all(&text.body))
            .and_then(|()| source.rewind())
            .map_err(CompilerError::Files)?;
        let mut command = self.flagged(text);
        let language = if text.is_expanded { "cpp-output" } else { "c" };
        command.args(LINK_FLAGS).args(["-x", language, "-", "-o"]).arg(to).arg("-lm");
        let out = log.try_clone().map_err(CompilerError::Files)?;
        self.run(text, &mut command, source, out, log)
    }

    /// The text with the kernel API and all that it includes in it.
    pub(crate) fn preprocess(&self, text: &KernelText) -> Result<Vec<u8>, CompilerError> {
        let source = [KERNEL_API.as_bytes(), &text.body].concat();
        let files = memory_file(&source).and_then(|source| {
            let out = memory_file(&[])?;
            Ok((source, out.try_clone()?, out, memory_file(&[])?))
        });
        let (source, mut expanded, out, log) = files.map_err(CompilerError::Files)?;
        let mut command = self.flagged(text);
        // Beside the including file first, as always; and at the root of kernels.
        command.current_dir(&text.directory).arg("-iquote").arg(&text.root);
        command.args(["-E", "-x", "c", "-"]);
        self.run(text, &mut command, source, out, log)?;
        let mut bytes = Vec::new();
        expanded
            .rewind()
            .and_then(|()| expanded.read_to_end(&mut bytes))
            .map_err(CompilerError::Files)?;
        Ok(bytes)
    }

    /// Runs it to its end, with these files as its input and outputs.
    fn run(
        &self,
        text: &KernelText,
        command: &mut Command,
        input: File,
        out: File,
        mut log: File,
    ) -> Result<(), CompilerError> {
        let errors = log.try_clone().map_err(CompilerError::Files)?;
        let child = command.stdin(input).stdout(out).stderr(errors).spawn();
        let mut child = child.map_err(|source| missing(&self.words, source))?;
        let status = wait(&mut child, TIMEOUT)?.ok_or(CompilerError::TooSlow)?;
        if status.success() {
            return Ok(());
        }
        let mut message = Vec::new();
        log.rewind()
            .and_then(|()| log.take(MAX_MESSAGE_BYTES).read_to_end(&mut message))
            .map_err(CompilerError::Files)?;
        let message = String::from_utf8_lossy(&message).trim_end().to_owned();
        let message = text.with_lines(&message);
        // With LC_ALL=C, compilers and linkers have the system's words for it.
        Err(match message.contains("No space left on device") {
            true => CompilerError::NoRoom { message },
            false => CompilerError::Refused { message },
        })
    }

    /// The command with all flags that decide what the code is.
    fn flagged(&self, text: &KernelText) -> Command {
        let mut command = Self::command(&self.words);
        command.args(FLAGS).arg(text.optimisation).args(self.native.then_some(NATIVE));
        command
    }

    fn command(words: &[OsString]) -> Command {
        let (program, arguments) = words.split_first().expect("a command has at least one word");
        let mut command = Command::new(program);
        // Messages in English, in plain bytes, and nothing that depends on where it runs.
        command.args(arguments).env("LC_ALL", "C");
        command
    }
}

/// Whether an option may have a preprocessed text name fewer files than were read: `-imacros` does, `-P`
/// does, and some hand others on.
fn may_hide(option: &OsString) -> bool {
    let option = option.as_encoded_bytes();
    let begins = [&b"-imacros"[..], b"--imacros", b"--no-line", b"-Wp,", b"-Xpreprocessor", b"@"];
    option == b"-P" || begins.into_iter().any(|beginning| option.starts_with(beginning))
}

/// The directory in which a compiler has the headers that are its own. Options are left out: some give it
/// another one.
///
/// # Errors
/// When it cannot be asked: what it has is then not known, which is not the same as none.
fn own_headers(words: &[OsString]) -> Result<Option<PathBuf>, CompilerError> {
    let is_option = |word: &&OsString| word.as_encoded_bytes().starts_with(b"-");
    let program: Vec<_> = words.iter().take_while(|word| !is_option(word)).cloned().collect();
    let mut asked = Compiler::command(&program);
    let output = answer(asked.arg("-print-file-name=include").stdin(Stdio::null()), &program)?;
    let Some(text) = output.and_then(|output| String::from_utf8(output).ok()) else {
        return Ok(None);
    };
    let path = PathBuf::from(text.trim_end());
    let parent = path.parent().filter(|_| path.is_absolute() && path.ends_with("include"));
    // There is `include-fixed` as well.
    Ok(parent.map(Path::to_path_buf))
}

/// What a command writes to its standard output; none if it fails.
fn answer(command: &mut Command, words: &[OsString]) -> Result<Option<Vec<u8>>, CompilerError> {
    // A file and no pipe: what the command has started may keep a pipe open after its own end.
    let mut answer = memory_file(&[]).map_err(CompilerError::Files)?;
    let out = answer.try_clone().map_err(CompilerError::Files)?;
    let child = command.stdout(out).stderr(Stdio::null()).spawn();
    let mut child = child.map_err(|source| missing(words, source))?;
    let silent = || CompilerError::Silent { command: shown(words) };
    let status = wait(&mut child, ANSWER_TIMEOUT)?.ok_or_else(silent)?;
    if !status.success() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    answer.rewind().and_then(|()| answer.read_to_end(&mut bytes)).map_err(CompilerError::Files)?;
    Ok(Some(bytes))
}

fn missing(words: &[OsString], source: io::Error) -> CompilerError {
    CompilerError::Missing { command: shown(words), source }
}

fn shown(words: &[OsString]) -> String {
    words.join(" ".as_ref()).to_string_lossy().into_owned()
}

/// A file that is nowhere on disk, with this content, at its beginning.
fn memory_file(content: &[u8]) -> io::Result<File> {
    let mut file = File::from(memfd_create("telltale-kernel", MemfdFlags::CLOEXEC)?);
    file.write_all(content)?;
    file.rewind()?;
    Ok(file)
}

// === impl Installed ===

impl Installed {
    fn current() -> Self {
        let command = std::env::var("CC").unwrap_or_default();
        let command = if command.trim().is_empty() { "cc".to_owned() } else { command };
        let name = command.split_whitespace().next().unwrap_or_default();
        let program = Self::find(name);
        let file = program.as_deref().and_then(|program| std::fs::metadata(program).ok());
        let file = file.map(|file| (file.len(), file.mtime(), file.mtime_nsec()));
        let environment = ENVIRONMENT.map(std::env::var_os);
        Self { command, program, file, environment }
    }

    /// Where a program is that is named as in a shell.
    fn find(name: &str) -> Option<PathBuf> {
        if name.contains('/') {
            return std::path::absolute(name).ok();
        }
        let path = std::env::var_os("PATH")?;
        let found = std::env::split_paths(&path).map(|directory| directory.join(name));
        let mut found = found.filter_map(|program| std::path::absolute(program).ok());
        found.find(|program| access(program, Access::EXEC_OK).is_ok() && program.is_file())
    }

    fn words(&self) -> Vec<OsString> {
        let mut words: Vec<OsString> = self.command.split_whitespace().map(Into::into).collect();
        // Whatever directory it is started in.
        if let (Some(first), Some(program)) = (words.first_mut(), &self.program) {
            *first = program.into();
        }
        words
    }
}

/// Waits for a child; none if it took too long. It is stopped then, and when the waiting is interrupted.
fn wait(child: &mut Child, timeout: Duration) -> Result<Option<ExitStatus>, CompilerError> {
    let end = pidfd_open(Pid::from_child(child), PidfdFlags::empty()).ok();
    let deadline = Instant::now() + timeout;
    let mut next_check = Instant::now() + interrupts::PERIOD;
    loop {
        if let Some(status) = child.try_wait().map_err(CompilerError::Files)? {
            return Ok(Some(status));
        }
        let now = Instant::now();
        let is_too_slow = now >= deadline;
        let is_interrupted = now >= next_check && interrupts::end_waiting();
        if is_too_slow || is_interrupted {
            let _ = child.kill();
            let _ = child.wait();
            return if is_too_slow { Ok(None) } else { Err(CompilerError::Interrupted) };
        }
        if now >= next_check {
            next_check = now + interrupts::PERIOD;
        }
        wait_for_end(end.as_ref(), deadline.min(next_check).saturating_duration_since(now));
    }
}

/// Waits until a process ends, but not for longer than so; or for a moment, where its end is not reported.
fn wait_for_end(end: Option<&OwnedFd>, timeout: Duration) {
    let (Some(end), Ok(timespec)) = (end, Timespec::try_from(timeout)) else {
        std::thread::sleep(timeout.min(END_PERIOD));
        return;
    };
    if let Err(error) = poll(&mut [PollFd::new(end, PollFlags::IN)], Some(&timespec))
        && error != rustix::io::Errno::INTR
    {
        std::thread::sleep(timeout.min(END_PERIOD));
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::os::unix::fs::PermissionsExt;

    use telltale_harness::Scratch;

    use super::*;

    thread_local! {
        /// Whether this thread is interrupted: other tests are not.
        static PENDING: Cell<bool> = const { Cell::new(false) };
    }

    #[test]
    fn a_compiler_that_hangs_is_stopped_when_its_time_is_over() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let start = Instant::now();
        assert_eq!(wait(&mut child, Duration::from_millis(50)).unwrap(), None);
        assert!(start.elapsed() < Duration::from_secs(60));
        assert!(child.try_wait().unwrap().is_some(), "it has ended");
        let mut child = Command::new("true").spawn().unwrap();
        assert!(wait(&mut child, TIMEOUT).unwrap().is_some_and(|status| status.success()));
    }

    #[test]
    fn a_compiler_that_does_not_say_what_it_is_can_be_interrupted() {
        interrupts::interrupt_waits(|| PENDING.get());
        let place = Scratch::new();
        let program = place.join("cc");
        let installed = |script: &str| {
            std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
            std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
            let command = program.to_str().unwrap().to_owned();
            Installed { command, program: Some(program.clone()), ..Installed::current() }
        };
        PENDING.set(true);
        let start = Instant::now();
        let hangs = installed("exec sleep 600");
        assert!(matches!(Compiler::find(&hangs), Err(CompilerError::Interrupted)));
        // It answers what is asked first, and then hangs.
        let hangs = installed(r#"case "$*" in *print-file*) exec sleep 600;; esac; exec cc "$@""#);
        assert!(matches!(Compiler::find(&hangs), Err(CompilerError::Interrupted)));
        assert!(start.elapsed() < ANSWER_TIMEOUT);
        PENDING.set(false);
        let fails = installed("exit 1");
        assert!(matches!(Compiler::find(&fails), Err(CompilerError::Broken { .. })));
    }
}
