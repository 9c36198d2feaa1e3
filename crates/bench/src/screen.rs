//! The full-screen view on a terminal of its own: how soon it is there, what it costs while it is
//! looked at, and how long a frame takes to make.
//!
//! The terminal is a pseudo-terminal of this process, whose other side is read to its end. Frames are
//! also made within this process, where nothing else is in the figure.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ratatui_core::backend::TestBackend;
use ratatui_core::terminal::Terminal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use telltale_schema::snapshot::{Process, Snapshot};
use telltale_smi::screen::{Pane, Screen, Settings, Terms};

use crate::machine::{BusyMachine, Size};
use crate::sample::{Effort, Figures};
use crate::table::{Row, Table, Target, Unit};

/// Columns and rows of the terminal.
const SIZE: (u16, u16) = (160, 50);
/// Workloads in a full or quick run, and when only the working is shown.
const WORKLOADS: u64 = 64;
const FEW_WORKLOADS: u64 = 3;
/// Processes of the large snapshot.
const MANY: usize = 100_000;
/// How long a view may take to paint its first frame.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long it runs before it is watched: the first seconds are its start.
const SETTLING: Duration = Duration::from_secs(5);
/// Rivals, of which the first that is installed is the baseline, and what asks each for a second.
const RIVALS: [(&str, &[&str]); 3] = [
    ("all-smi", &["view", "--interval", "1"]),
    ("btm", &["--rate", "1000"]),
    ("btop", &["--update", "1000"]),
];

/// A program on a terminal.
struct Shown {
    child: Child,
    reading: Option<JoinHandle<()>>,
    /// From its start to when the whole first frame had been read.
    first_frame: Duration,
}

impl Drop for Shown {
    fn drop(&mut self) {
        // One that has ended already needs neither.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(reading) = self.reading.take() {
            let _ = reading.join();
        }
    }
}

impl Shown {
    /// Starts a program and waits for its first frame: until `last` was painted after `first`, or,
    /// for a program whose frames are not known, until it is silent.
    fn start(command: &mut Command, marks: Option<[&'static str; 2]>) -> io::Result<Self> {
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
        let child = command.spawn()?;
        let mut shown = Self { child, reading: None, first_frame: Duration::ZERO };
        shown.first_frame = shown.wait_for_frame(terminal, marks, started)?;
        Ok(shown)
    }

    /// Reads until the frame is there, and on a thread of its own ever after.
    fn wait_for_frame(
        &mut self,
        terminal: OwnedFd,
        marks: Option<[&'static str; 2]>,
        started: Instant,
    ) -> io::Result<Duration> {
        let (sender, times) = std::sync::mpsc::channel();
        let done = Arc::new(AtomicBool::new(false));
        let is_done = Arc::clone(&done);
        self.reading = Some(std::thread::spawn(move || {
            let mut terminal = File::from(terminal);
            let mut seen = Vec::new();
            let mut part = [0; 65_536];
            while let Ok(count @ 1..) = terminal.read(&mut part) {
                if is_done.load(Ordering::Relaxed) {
                    seen = Vec::new();
                    continue;
                }
                seen.extend_from_slice(&part[..count]);
                let whole = marks.is_none_or(|[first, last]| {
                    let text = String::from_utf8_lossy(&seen);
                    text.find(first).is_some_and(|at| text[at..].contains(last))
                });
                if whole && sender.send(started.elapsed()).is_err() {
                    seen = Vec::new();
                }
            }
        }));
        let mut last = times.recv_timeout(PATIENCE).map_err(io::Error::other)?;
        // Of a program whose frames are not known, the last piece before a silence counts.
        while marks.is_none() {
            match times.recv_timeout(Duration::from_millis(100)) {
                Ok(later) => last = later,
                Err(_) => break,
            }
        }
        done.store(true, Ordering::Relaxed);
        Ok(last)
    }

    /// The share of a processor that it used in a span, and what it has resident after it.
    fn watch(&self, span: Duration) -> io::Result<[f64; 2]> {
        std::thread::sleep(SETTLING.min(span));
        let (began, used) = (Instant::now(), self.processor_ns()?);
        std::thread::sleep(span);
        let used = self.processor_ns()? - used;
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let resident =
            resident.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        let resident = resident.ok_or_else(|| io::Error::other("it has ended"))?;
        Ok([used / began.elapsed().as_nanos() as f64, resident * 1024.0])
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

/// The view of a busy machine, beside a rival where one is installed. `telltale` is the command.
///
/// # Errors
/// When the machine or a program cannot be started, or does not paint.
pub fn table(worker: &Path, telltale: &Path, effort: Effort) -> io::Result<Table> {
    let workloads = if effort == Effort::Once { FEW_WORKLOADS } else { WORKLOADS };
    let busy = BusyMachine::start(worker, Size::Galaxy, workloads)?;
    let rival = RIVALS
        .iter()
        .find_map(|(name, arguments)| Some((*name, crate::launch::on_the_path(name)?, *arguments)));
    let view = || {
        let mut command = Command::new(telltale);
        command.arg("top").arg("--root").arg(busy.root()).env("XDG_CONFIG_HOME", busy.root());
        command
    };
    let other = || {
        let (_, program, arguments) = rival.as_ref()?;
        let mut command = Command::new(program);
        command.args(*arguments).env("XDG_CONFIG_HOME", busy.root());
        Some(command)
    };
    let mut rows = starts(effort, view, other)?;
    rows.extend(watched(&busy, telltale, effort, view, other)?);
    let snapshot = busy.snapshot()?;
    rows.extend(redraws(&snapshot, effort));
    let baseline = rival.map_or("none is installed", |(name, ..)| name);
    Ok(Table {
        heading: format!(
            "The full-screen view, {} chips x {} processes, {} x {}; baseline: {baseline}",
            busy.size().chips(),
            busy.workloads(),
            SIZE.0,
            SIZE.1
        ),
        rows,
        remarks: vec![String::from(
            "a frame is whole when its last row has been read from the terminal; of a rival, when it \
             then is silent for 100 ms",
        )],
    })
}

/// From the start to the first whole frame.
fn starts(
    effort: Effort,
    view: impl Fn() -> Command,
    other: impl Fn() -> Option<Command>,
) -> io::Result<Vec<Row>> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..effort.repeats() {
        // The last row's last key, after the first chip.
        let shown = Shown::start(&mut view(), Some(["T1:N0", "Quit"]))?;
        ours.push(shown.first_frame.as_nanos() as f64);
        drop(shown);
        if let Some(mut command) = other() {
            theirs.push(Shown::start(&mut command, None)?.first_frame.as_nanos() as f64);
        }
    }
    Ok(vec![Row {
        what: String::from("start to the first full frame"),
        unit: Unit::Time,
        ours: Some(Figures::new(ours)),
        baseline: (!theirs.is_empty()).then(|| Figures::new(theirs)),
        target: Target { at_most: Some(35e6), ..Target::default() },
    }])
}

/// What the view costs at a frame a second, the service running beside it.
fn watched(
    busy: &BusyMachine,
    telltale: &Path,
    effort: Effort,
    view: impl Fn() -> Command,
    other: impl Fn() -> Option<Command>,
) -> io::Result<Vec<Row>> {
    let span = Duration::from_secs(match effort {
        Effort::Full => 30,
        Effort::Quick => 10,
        Effort::Once => 1,
    });
    let mut serve = Command::new(telltale);
    serve.args(["serve", "--http", "off", "--root"]).arg(busy.root());
    serve.arg("--state-dir").arg(busy.root().join("state"));
    serve.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let service = Service(serve.spawn()?);
    // The view takes what the service sends once that is there.
    std::thread::sleep(SETTLING.min(span));
    let [share, resident] = Shown::start(&mut view(), None)?.watch(span)?;
    drop(service);
    let theirs = match other() {
        Some(mut command) => Some(Shown::start(&mut command, None)?.watch(span)?),
        None => None,
    };
    let row = |what: &str, unit, ours, baseline: Option<f64>, at_most| Row {
        what: what.to_owned(),
        unit,
        ours: Some(Figures::new(vec![ours])),
        baseline: baseline.map(|figure| Figures::new(vec![figure])),
        target: Target { at_most: Some(at_most), ..Target::default() },
    };
    Ok(vec![
        row(
            "a frame a second beside the service: share of a processor",
            Unit::Share,
            share,
            theirs.map(|[share, _]| share),
            0.008,
        ),
        row(
            "the same: resident",
            Unit::Bytes,
            resident,
            theirs.map(|[_, resident]| resident),
            12.0 * 1024.0 * 1024.0,
        ),
    ])
}

/// The service, which ends with the table.
struct Service(Child);

impl Drop for Service {
    fn drop(&mut self) {
        // One that has ended already needs neither.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Taking a snapshot in and painting it, and painting alone.
fn redraws(snapshot: &Snapshot, effort: Effort) -> Vec<Row> {
    let limit = |at_most| Target { at_most, ..Target::default() };
    let mut rows: Vec<Row> = Pane::ALL
        .into_iter()
        .map(|pane| {
            let (taking, _) = frames(snapshot, pane, effort);
            row(format!("a snapshot and its frame, pane {}", pane.name()), taking, limit(Some(5e6)))
        })
        .collect();
    let many = many(snapshot, if effort == Effort::Once { 100 } else { MANY });
    let (taking, painting) = frames(&many, Pane::Details, effort);
    let count = many.processes.len();
    rows.push(row(format!("a frame after a key, {count} processes"), painting, limit(Some(5e6))));
    rows.push(row(format!("a snapshot and its frame, {count} processes"), taking, limit(None)));
    rows
}

fn row(what: String, ours: Figures, target: Target) -> Row {
    Row { what, unit: Unit::Time, ours: Some(ours), baseline: None, target }
}

/// Times of taking a snapshot in with its frame, and of a frame alone.
fn frames(snapshot: &Snapshot, pane: Pane, effort: Effort) -> (Figures, Figures) {
    let settings = Settings { pane, ..Settings::default() };
    let terms = Terms {
        host: String::from("bench"),
        readonly: true,
        unicode: true,
        period: Duration::from_secs(1),
    };
    let mut screen = Screen::new(settings, terms, None);
    let mut terminal = Terminal::new(TestBackend::new(SIZE.0, SIZE.1)).expect("it cannot fail");
    let snapshot = Arc::new(snapshot.clone());
    let (mut taking, mut painting) = (Vec::new(), Vec::new());
    for _ in 0..=effort.repeats() {
        let began = Instant::now();
        screen.update(Arc::clone(&snapshot), snapshot.taken_at);
        terminal.draw(|frame| screen.render(frame)).expect("it cannot fail");
        taking.push(began.elapsed().as_nanos() as f64);
        let began = Instant::now();
        terminal.draw(|frame| screen.render(frame)).expect("it cannot fail");
        painting.push(began.elapsed().as_nanos() as f64);
    }
    // The first of each filled what the others find.
    (Figures::new(taking.split_off(1)), Figures::new(painting.split_off(1)))
}

/// The snapshot with its processes again and again, each somebody else.
fn many(snapshot: &Snapshot, count: usize) -> Snapshot {
    let mut pid = 0;
    let mut another = |process: &Process| {
        pid += 1;
        let mut process = Process { metrics: Arc::clone(&process.metrics), ..process.clone() };
        process.pid = Some(pid);
        if let Some(identity) = &mut process.identity {
            identity.pid = pid;
        }
        process
    };
    let all = snapshot.processes.iter().cycle().take(count);
    Snapshot { processes: all.map(&mut another).collect(), ..snapshot.clone() }
}
