//! Child processes with a deadline, whose output is read to the end and kept up to a limit.

use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Bytes of each of a child's streams that are kept; the rest is read and dropped.
const MAX_OUTPUT_BYTES: usize = 4 << 20;

/// How often a child is asked whether it has ended, or has written what is awaited.
const POLL: Duration = Duration::from_millis(20);

/// How long a stream may stay open after its child has ended: others may have it open too.
const AFTER_END: Duration = Duration::from_secs(2);

/// What a child that has ended wrote.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) status: ExitStatus,
    pub(super) out: String,
    pub(super) err: String,
}

/// A child that runs. It is killed and waited for when this is dropped.
pub(super) struct Running {
    child: Child,
    name: String,
    out: Stream,
    err: Stream,
}

/// One of a child's streams, which a thread reads.
struct Stream {
    kept: Arc<Mutex<Vec<u8>>>,
    /// Closed when the stream has ended.
    ends: Receiver<()>,
}

// === impl Output ===

impl Output {
    /// The last line on stderr, else on stdout, and the status: why a program failed, for a person.
    pub(super) fn complaint(&self) -> String {
        let last = |text: &str| {
            let line = text.lines().rev().find(|line| !line.trim().is_empty());
            line.map(|line| line.trim().chars().take(300).collect::<String>())
        };
        let words = last(&self.err).or_else(|| last(&self.out));
        words.map_or_else(|| self.status.to_string(), |words| format!("{words} ({})", self.status))
    }
}

/// Whether a line that is awaited has come.
enum LineState {
    /// It has, with this after its mark.
    There(String),
    NotYet,
    /// It never will.
    Ended,
}

// === impl Running ===

impl Running {
    /// Starts a command whose stdin stays open until [`Self::finish`].
    pub(super) fn start(command: &mut Command) -> Result<Self, String> {
        let name = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => format!("there is no program {name}"),
            _ => format!("cannot start {name}: {error}"),
        })?;
        let out = Stream::of(child.stdout.take());
        let err = Stream::of(child.stderr.take());
        Ok(Self { child, name, out, err })
    }

    /// The rest of the first line on stdout that begins with `mark`. None where the child ended without one.
    pub(super) fn line(&mut self, mark: &str, timeout: Duration) -> Result<Option<String>, String> {
        let deadline = Instant::now() + timeout;
        loop {
            match self.look(mark)? {
                LineState::There(rest) => return Ok(Some(rest)),
                LineState::Ended => return Ok(None),
                LineState::NotYet => self.pause_until(deadline, timeout)?,
            }
        }
    }

    /// The same of several children, in their order, or the place of one that ended without such a line.
    pub(super) fn lines(
        all: &mut [Self],
        mark: &str,
        timeout: Duration,
    ) -> Result<Result<Vec<String>, usize>, String> {
        let deadline = Instant::now() + timeout;
        loop {
            let (mut found, mut late) = (Vec::new(), None);
            for (place, child) in all.iter_mut().enumerate() {
                match child.look(mark)? {
                    LineState::There(rest) => found.push(rest),
                    LineState::Ended => return Ok(Err(place)),
                    LineState::NotYet => late = late.or(Some(place)),
                }
            }
            match late {
                None => return Ok(Ok(found)),
                Some(place) => all[place].pause_until(deadline, timeout)?,
            }
        }
    }

    fn look(&mut self, mark: &str) -> Result<LineState, String> {
        // Asked first: what it wrote before it ended is there then.
        let has_ended = self.ended()?.is_some();
        if has_ended {
            self.out.has_ended(AFTER_END);
        }
        let text = self.out.text();
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let found = whole.lines().find_map(|line| line.strip_prefix(mark));
        Ok(match (found, has_ended) {
            (Some(rest), _) => LineState::There(rest.to_owned()),
            (None, true) => LineState::Ended,
            (None, false) => LineState::NotYet,
        })
    }

    /// Closes its stdin and waits until it has ended.
    pub(super) fn finish(mut self, timeout: Duration) -> Result<Output, String> {
        drop(self.child.stdin.take());
        let deadline = Instant::now() + timeout;
        let status = loop {
            if let Some(status) = self.ended()? {
                break status;
            }
            self.pause_until(deadline, timeout)?;
        };
        for stream in [&self.out, &self.err] {
            stream.has_ended(AFTER_END);
        }
        Ok(Output { status, out: self.out.text(), err: self.err.text() })
    }

    fn ended(&mut self) -> Result<Option<ExitStatus>, String> {
        self.child.try_wait().map_err(|error| format!("cannot wait for {}: {error}", self.name))
    }

    fn pause_until(&self, deadline: Instant, timeout: Duration) -> Result<(), String> {
        if Instant::now() >= deadline {
            return Err(format!("{} did not answer within {} s", self.name, timeout.as_secs()));
        }
        std::thread::sleep(POLL);
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail where it has ended and was waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a command to its end.
pub(super) fn run(command: &mut Command, timeout: Duration) -> Result<Output, String> {
    Running::start(command)?.finish(timeout)
}

// === impl Stream ===

impl Stream {
    fn of(source: Option<impl Read + Send + 'static>) -> Self {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let (running, ends) = channel::<()>();
        if let Some(source) = source {
            let kept = Arc::clone(&kept);
            std::thread::spawn(move || {
                read(source, &kept);
                drop(running);
            });
        }
        Self { kept, ends }
    }

    /// Whether it has ended, or does so within this time.
    fn has_ended(&self, within: Duration) -> bool {
        matches!(self.ends.recv_timeout(within), Err(RecvTimeoutError::Disconnected))
    }

    fn text(&self) -> String {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&kept).into_owned()
    }
}

/// Reads to the end; a stream that fails has ended.
fn read(mut source: impl Read, kept: &Mutex<Vec<u8>>) {
    let mut piece = [0; 8192];
    while let Ok(count @ 1..) = source.read(&mut piece) {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        let room = MAX_OUTPUT_BYTES.saturating_sub(kept.len()).min(count);
        kept.extend_from_slice(&piece[..room]);
    }
}

#[cfg(test)]
mod tests {
    use super::{Running, run};
    use std::process::Command;
    use std::time::Duration;

    const ENOUGH: Duration = Duration::from_secs(60);

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_child_is_read_to_its_end_and_its_complaint_is_its_last_line() {
        let output = run(&mut shell("echo out; echo one >&2; echo two >&2; exit 3"), ENOUGH);
        let output = output.unwrap();
        assert_eq!((output.status.code(), output.out.as_str()), (Some(3), "out\n"));
        assert_eq!(output.complaint(), "two (exit status: 3)");
        let missing = run(&mut Command::new("/nowhere/program"), ENOUGH).unwrap_err();
        assert_eq!(missing, "there is no program /nowhere/program");
    }

    #[test]
    fn a_line_is_awaited_and_a_child_that_is_silent_is_given_up() {
        let mut running = Running::start(&mut shell("echo no; echo 'mark: x'; read line")).unwrap();
        assert_eq!(running.line("mark: ", ENOUGH), Ok(Some(String::from("x"))));
        assert!(running.finish(ENOUGH).is_ok(), "its stdin is closed");
        let mut running = Running::start(&mut shell("echo other")).unwrap();
        assert_eq!(running.line("mark: ", ENOUGH), Ok(None));
        let silent = run(&mut shell("exec sleep 600"), Duration::ZERO).unwrap_err();
        assert_eq!(silent, "sh did not answer within 0 s");
    }

    #[test]
    fn of_several_the_one_that_ended_is_named_at_once() {
        let waits = || Running::start(&mut shell("echo 'mark: x'; read line")).unwrap();
        let never = || Running::start(&mut shell("read line")).unwrap();
        let mut all = [never(), waits(), Running::start(&mut shell("exit 1")).unwrap()];
        assert_eq!(Running::lines(&mut all, "mark: ", ENOUGH), Ok(Err(2)));
        let mut all = [waits(), waits()];
        assert_eq!(Running::lines(&mut all, "mark: ", ENOUGH), Ok(Ok(vec!["x".to_owned(); 2])));
    }

    #[test]
    fn what_a_child_writes_beyond_the_limit_is_dropped() {
        let output = run(&mut shell("head -c 9000000 /dev/zero"), ENOUGH).unwrap();
        assert_eq!(output.out.len(), super::MAX_OUTPUT_BYTES);
    }
}
