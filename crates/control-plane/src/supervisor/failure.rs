//! What a worker that failed left: the exception that its Python wrote down, or the last words of its output; and
//! whether the kernel was killing processes for lack of memory.

use std::fs::{self, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use serde_json::Value;
use telltale_cluster::agent::Exit;
use telltale_cluster::observation::{FailureDetail, MAX_FAILURE_BYTES};

use super::output::{WorkerPosition, files};

/// Names the file in which PyTorch's `record` writes an exception
/// (`torch/distributed/elastic/multiprocessing/errors/error_handler.py`).
pub(super) const ERROR_FILE: &str = "TORCHELASTIC_ERROR_FILE";
/// Bytes of that file that are read.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Of the counters in `/proc/vmstat`, that of processes that the kernel killed for lack of memory (Linux 4.13).
const OOM_KILLS: &str = "oom_kill ";
const OUT_OF_MEMORY: &str = "the kernel killed processes of this host for lack of memory while it ran (oom_kill in /proc/vmstat)";

/// Where a worker's output and its exception are written.
#[derive(Debug, Clone)]
pub(super) struct FailureFiles {
    pub(super) log: PathBuf,
    pub(super) error: PathBuf,
}

/// What was known when a worker was started.
#[derive(Debug, Clone)]
pub(super) struct FailureWatch {
    logs: PathBuf,
    /// Whether what workers print is in files there.
    has_output: bool,
    oom_kills: Option<u64>,
}

// === impl FailureFiles ===

impl FailureFiles {
    /// Those of a worker below the directory of logs.
    pub(super) fn of(logs: &Path, place: WorkerPosition) -> Self {
        let directory = files::directory_of(logs, place.epoch);
        let file = |end: &str| directory.join(format!("{}.{end}", place.rank));
        Self { log: file("log"), error: file("error.json") }
    }

    /// Makes a place for the exception, where nothing is yet: another job may have had an epoch of this number.
    pub(super) fn prepare(&self) {
        // Without it only the exception's text is missing.
        if let Some(directory) = self.error.parent() {
            let _ = files::make_directory(directory);
        }
        let _ = fs::remove_file(&self.error);
    }
}

// === impl FailureWatch ===

impl FailureWatch {
    pub(super) fn start(logs: &Path, has_output: bool) -> Self {
        Self { logs: logs.to_owned(), has_output, oom_kills: oom_kills() }
    }

    /// What a worker that ended so left; `tail` is the end of what it wrote to standard error. Reads files.
    pub(super) fn detail(&self, place: WorkerPosition, exit: Exit, tail: &[u8]) -> FailureDetail {
        let files = FailureFiles::of(&self.logs, place);
        let killed = exit == Exit::Signal(9);
        let no_memory = || {
            let rose = self.oom_kills.zip(oom_kills()).is_some_and(|(before, now)| now > before);
            (killed && rose).then(|| OUT_OF_MEMORY.to_owned())
        };
        // One that was killed or asked to end had not written its end.
        let last_words = || match exit {
            Exit::Signal(9 | 15) => None,
            _ => last_words(&String::from_utf8_lossy(tail)),
        };
        let message = recorded(&files.error).or_else(no_memory).or_else(last_words);
        let log = if self.has_output { files.log.to_string_lossy() } else { "".into() };
        FailureDetail { message: cut(&message.unwrap_or_default()), log: cut(&log) }
    }
}

/// The message in the file of an exception.
fn recorded(path: &Path) -> Option<String> {
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    file.metadata().ok().filter(fs::Metadata::is_file)?;
    let mut text = String::new();
    file.take(MAX_FILE_BYTES).read_to_string(&mut text).ok()?;
    let value: Value = serde_json::from_str(&text).ok()?;
    let message = &value["message"];
    let text = message.as_str().or_else(|| message["message"].as_str())?;
    text.lines().find(|line| !line.trim().is_empty()).map(|line| line.trim().to_owned())
}

/// The exception at the end of a program's standard error, else its last line.
fn last_words(tail: &str) -> Option<String> {
    let lines: Vec<&str> = tail.lines().filter(|line| !line.trim().is_empty()).collect();
    // After a traceback or a syntax error, whose lines are indented.
    let python =
        lines.windows(2).rev().find(|pair| pair[0].starts_with("  ") && is_exception(pair[1]));
    let rust = || {
        let panic = lines.windows(2).rev();
        panic
            .into_iter()
            .find(|pair| pair[0].starts_with("thread '") && pair[0].contains("panicked at"))
    };
    let cpp = || lines.iter().rev().find_map(|line| line.trim_start().strip_prefix("what():"));
    let found = python.or_else(rust).map(|pair| pair[1]).or_else(cpp);
    found.or_else(|| lines.last().copied()).map(|line| line.trim().to_owned())
}

/// Whether a line is `module.Exception` or `module.Exception: message`.
fn is_exception(line: &str) -> bool {
    let name = line.split(':').next().unwrap_or_default();
    name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_')
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || "._".contains(letter))
}

fn oom_kills() -> Option<u64> {
    let text = fs::read_to_string("/proc/vmstat").ok()?;
    text.lines().find_map(|line| line.strip_prefix(OOM_KILLS)?.parse().ok())
}

/// As much of a text as is passed on.
fn cut(text: &str) -> String {
    let mut end = text.len().min(MAX_FAILURE_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use telltale_cluster::epoch::Epoch;
    use telltale_harness::Scratch;

    #[test]
    fn the_exception_is_found_in_what_programs_write_at_their_end() {
        let traceback = "Traceback (most recent call last):\n  File \"t.py\", line 2, in <module>\n    \
             raise ValueError('no')\nValueError: no\n";
        let cases = [
            (traceback.to_owned(), "ValueError: no"),
            (format!("KeyError: 1\n{traceback}[W socket.cpp] warning\n"), "ValueError: no"),
            (
                format!(
                    "{traceback}\nDuring handling of the above exception, another occurred:\n\n\
                     Traceback (most recent call last):\n  File \"t.py\", line 9\ntorch.cuda.OutOfMemoryError: CUDA out\n"
                ),
                "torch.cuda.OutOfMemoryError: CUDA out",
            ),
            (
                "  File \"t.py\", line 1\n    def (\n        ^\nSyntaxError: invalid syntax\n"
                    .to_owned(),
                "SyntaxError: invalid syntax",
            ),
            (
                "thread 'main' panicked at a.rs:1:2:\nindex out of bounds\nnote: run with\n"
                    .to_owned(),
                "index out of bounds",
            ),
            ("terminate called\n  what():  boom\n".to_owned(), "boom"),
            ("one\nmake: *** no target\n\n".to_owned(), "make: *** no target"),
        ];
        for (text, expected) in cases {
            assert_eq!(last_words(&text).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(last_words("\n \n"), None);
    }

    #[test]
    fn a_written_exception_comes_first_and_odd_files_are_passed_over() {
        let scratch = Scratch::new();
        let place = WorkerPosition { epoch: Epoch::new(4), rank: 2, local: 0 };
        let files = FailureFiles::of(scratch.path(), place);
        files.prepare();
        let watch = FailureWatch::start(scratch.path(), true);
        let message = |text: &str| {
            fs::write(&files.error, text).unwrap();
            watch.detail(place, Exit::Code(1), b"last line\n").message
        };
        let torch =
            r#"{"message": {"message": "ValueError: no\nmore", "extraInfo": {"timestamp": "1"}}}"#;
        assert_eq!(message(torch), "ValueError: no");
        assert_eq!(message(r#"{"message": "killed", "errorCode": 3}"#), "killed");
        let long = format!(r#"{{"message": "{}"}}"#, "ä".repeat(200));
        assert_eq!(message(&long).len(), MAX_FAILURE_BYTES);
        for odd in ["", "[]", "{\"message\": 3}", "{\"message\": \"\"}"] {
            assert_eq!(message(odd), "last line", "{odd}");
        }
        fs::remove_file(&files.error).unwrap();
        let fifo = rustix::fs::mknodat(
            rustix::fs::CWD,
            &files.error,
            rustix::fs::FileType::Fifo,
            0o600.into(),
            0,
        );
        fifo.unwrap();
        let detail = watch.detail(place, Exit::Code(1), b"last line\n");
        assert_eq!(detail.message, "last line");
        assert_eq!(Path::new(&detail.log), scratch.join("epoch-4/2.log"));
        assert_eq!(watch.detail(place, Exit::Signal(15), b"last line\n").message, "");
        files.prepare();
        assert!(!files.error.exists());
    }
}
