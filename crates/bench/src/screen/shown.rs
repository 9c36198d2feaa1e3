//! A program on a terminal of its own: when its first frame is there, and what it uses from then on.
//!
//! The terminal is a pseudo-terminal of this process, whose other side is read to its end.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::cost;

/// Columns and rows of the terminal.
pub(super) const SIZE: (u16, u16) = (160, 50);
/// How long a program may take to paint its first frame.
const TIMEOUT: Duration = Duration::from_secs(30);
/// A program whose frames are not known has painted one when it has sent so many bytes, which is
/// more than it takes to prepare a terminal, and then is silent for this long.
const LEAST_BYTES: usize = 1024;
const SILENCE: Duration = Duration::from_millis(100);
/// A question to a terminal where its cursor is, for the answer to which some wait, and the answer.
const WHERE: &[u8] = b"\x1b[6n";
const HERE: &[u8] = b"\x1b[1;1R";
/// How long it runs before it is watched: the first seconds are its start.
pub(super) const SETTLING: Duration = Duration::from_secs(5);

/// What tells a whole frame: the second was painted after the first.
pub(super) type Marks = [&'static str; 2];

/// A program on a terminal, ended when this is dropped.
pub(crate) struct TerminalProgram {
    child: Child,
    reading: Option<JoinHandle<()>>,
    /// From its start to when the whole first frame had been read.
    pub(super) first_frame: Duration,
}

/// What a program used while it was watched.
#[derive(Debug, Clone, Copy)]
pub(super) struct Used {
    /// Share of one processor.
    pub(super) share: f64,
    /// Resident memory at the end, in bytes.
    pub(super) resident: f64,
    /// The most that was resident since its start, in bytes.
    pub(super) peak: f64,
    /// Of what is resident at the end, what is not of files: its own.
    pub(super) own: f64,
}

impl Drop for TerminalProgram {
    fn drop(&mut self) {
        // One that has ended already needs neither.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(reading) = self.reading.take() {
            let _ = reading.join();
        }
    }
}

impl TerminalProgram {
    /// Starts a program and waits for its first frame: until it has the marks, or, for a program
    /// whose frames are not known, until it is silent.
    pub(crate) fn start(command: &mut Command, marks: Option<Marks>) -> io::Result<Self> {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&terminal)?;
        unlockpt(&terminal)?;
        let (columns, rows) = SIZE;
        let size = Winsize { ws_col: columns, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&terminal, size)?;
        let name = ptsname(&terminal, Vec::new())?;
        let path = PathBuf::from(name.to_string_lossy().into_owned());
        let side = || File::options().read(true).write(true).open(&path);
        command.env("TERM", "xterm-256color").env("LC_ALL", "C.UTF-8").env_remove("NO_COLOR");
        command.stdin(Stdio::from(side()?)).stdout(Stdio::from(side()?)).stderr(Stdio::null());
        let started = Instant::now();
        let child = command.spawn();
        // The terminal ends with the last who has it open, and a command keeps what it gives.
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let (child, first_frame) = (child?, Duration::ZERO);
        let mut shown = Self { child, reading: None, first_frame };
        shown.first_frame = shown.wait_for_frame(terminal, marks, started)?;
        Ok(shown)
    }

    /// Reads until the frame is there, and on a thread of its own ever after.
    fn wait_for_frame(
        &mut self,
        terminal: OwnedFd,
        marks: Option<Marks>,
        started: Instant,
    ) -> io::Result<Duration> {
        let (sender, times) = channel();
        let done = Arc::new(AtomicBool::new(false));
        let is_done = Arc::clone(&done);
        self.reading = Some(std::thread::spawn(move || {
            read(File::from(terminal), marks, started, &sender, &is_done);
        }));
        let missed = |error| match error {
            RecvTimeoutError::Timeout => format!("no whole frame within {TIMEOUT:?}"),
            RecvTimeoutError::Disconnected => String::from("it ended by itself"),
        };
        let mut last = times.recv_timeout(TIMEOUT).map_err(|e| io::Error::other(missed(e)))?;
        // Of a program whose frames are not known, the last piece before a silence counts.
        while marks.is_none() {
            match times.recv_timeout(SILENCE) {
                Ok(later) => last = later,
                Err(RecvTimeoutError::Timeout) => break,
                Err(ended) => return Err(io::Error::other(missed(ended))),
            }
        }
        done.store(true, Ordering::Relaxed);
        Ok(last)
    }

    /// What it uses in a span that begins when it has settled.
    pub(super) fn watch(&self, span: Duration) -> io::Result<Used> {
        std::thread::sleep(SETTLING.min(span));
        let (began, used) = (Instant::now(), self.processor_ns()?);
        std::thread::sleep(span);
        let used = self.processor_ns()? - used;
        let share = used / began.elapsed().as_nanos() as f64;
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let bytes = |name| cost::field(&status, name).map(|kibibytes| kibibytes * 1024.0);
        let (resident, peak) = (bytes("VmRSS:")?, bytes("VmHWM:")?);
        Ok(Used { share, resident, peak, own: bytes("RssAnon:")? })
    }

    /// Processor time of all its threads so far.
    fn processor_ns(&self) -> io::Result<f64> {
        let mut sum = 0.0;
        for task in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let text = fs::read_to_string(task?.path().join("schedstat"))?;
            let ns = text.split_whitespace().next().and_then(|word| word.parse::<f64>().ok());
            sum += ns.ok_or_else(|| io::Error::other("no schedstat"))?;
        }
        Ok(sum)
    }
}

/// Reads a terminal to its end, and tells when a whole frame was there, or each piece of one where
/// frames are not known.
fn read(
    mut terminal: File,
    marks: Option<Marks>,
    started: Instant,
    times: &Sender<Duration>,
    is_done: &AtomicBool,
) {
    let mut seen = Vec::new();
    let mut part = vec![0; 65_536];
    while let Ok(count @ 1..) = terminal.read(&mut part) {
        if part[..count].windows(WHERE.len()).any(|bytes| bytes == WHERE) {
            // A program that has gone meanwhile needs none.
            let _ = terminal.write_all(HERE);
        }
        if is_done.load(Ordering::Relaxed) {
            seen = Vec::new();
            continue;
        }
        let now = started.elapsed();
        seen.extend_from_slice(&part[..count]);
        let whole = match marks {
            None => seen.len() >= LEAST_BYTES,
            Some([first, last]) => {
                let text = String::from_utf8_lossy(&seen);
                text.find(first).is_some_and(|at| text[at..].contains(last))
            }
        };
        // No more waiting once there was enough.
        if whole && times.send(now).is_err() {
            seen = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Duration;

    use super::TerminalProgram;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_program_is_there_with_its_frame_and_goes_while_its_command_stays() {
        // It waits for the cursor position.
        let asks = "stty raw -echo; printf '\\033[6n'; head -c 6 > /dev/null";
        let paints = "printf 'first row%1100slast row' ''; exec sleep 60";
        let mut command = shell(&format!("{asks}; {paints}"));
        let shown = TerminalProgram::start(&mut command, Some(["first", "last"])).unwrap();
        assert!(shown.watch(Duration::ZERO).unwrap().resident > 0.0);
        // Both would wait for ever for a terminal that the command still had.
        drop(shown);
        drop(TerminalProgram::start(&mut command, None).unwrap());
    }

    #[test]
    fn a_program_that_ends_by_itself_has_no_frame() {
        for marks in [None, Some(["no", "such"])] {
            let ended =
                TerminalProgram::start(&mut shell("echo wrong; exit 3"), marks).err().unwrap();
            assert_eq!(ended.to_string(), "it ended by itself", "{marks:?}");
        }
    }
}
