//! The full-screen view on a terminal of its own, beside rivals that are installed: how soon it is
//! there, what it costs while it is looked at, and how long a frame takes to make.
//!
//! Frames are also made within this process, where nothing else is measured.

mod shown;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ratatui_core::backend::TestBackend;
use ratatui_core::terminal::Terminal;
use telltale_schema::snapshot::{Process, Snapshot};
use telltale_smi::screen::{Pane, Screen, Terms, ViewSettings};

use crate::machine::{BusyMachine, Size};
use crate::sample::{Effort, Measurements};
use crate::table::{Row, Table, Target, Unit};
pub(crate) use shown::TerminalProgram;
use shown::{Marks, SETTLING, SIZE, Used};

/// Workloads in a full or quick run, and when only the working is shown.
const WORKLOADS: u64 = 64;
const FEW_WORKLOADS: u64 = 3;
/// Processes of the large snapshot.
const MANY: usize = 100_000;
/// The first tray, then the details of the first process. The last row may be there before, while
/// the first snapshot is awaited, and is not painted again then.
const MARKS: Marks = ["T1:", "PEAK"];
/// Rivals, and what asks each for a second. btop is asked in its settings: not every one has `-u`.
const RIVALS: [(&str, &[&str]); 3] =
    [("all-smi", &["local", "--interval", "1"]), ("btm", &["--rate", "1000"]), ("btop", &[])];
const BTOP_SETTINGS: &str = "update_ms = 1000\n";

/// An installed rival, and its values.
struct Rival {
    name: &'static str,
    program: PathBuf,
    arguments: &'static [&'static str],
    /// Where it keeps its settings.
    home: PathBuf,
    starts: Vec<f64>,
    used: Option<Used>,
}

impl Rival {
    /// Those that are installed; their settings are in `root`.
    fn installed(root: &Path) -> io::Result<Vec<Self>> {
        let home = root.join("settings");
        fs::create_dir_all(home.join("btop"))?;
        fs::write(home.join("btop/btop.conf"), BTOP_SETTINGS)?;
        let found = RIVALS.into_iter().filter_map(|(name, arguments)| {
            let program = crate::launch::on_the_path(name)?;
            let (starts, used, home) = (Vec::new(), None, home.clone());
            Some(Self { name, program, arguments, home, starts, used })
        });
        Ok(found.collect())
    }

    fn start(&self) -> io::Result<TerminalProgram> {
        let mut command = Command::new(&self.program);
        command.args(self.arguments).env("XDG_CONFIG_HOME", &self.home);
        let named = |error| io::Error::other(format!("{}: {error}", self.name));
        TerminalProgram::start(&mut command, None).map_err(named)
    }
}

/// The view of a busy machine, beside rivals where they are installed. `telltale` is the command, and
/// `top` the program that is its view alone.
///
/// # Errors
/// When the machine or a program cannot be started, or does not paint.
pub fn table(worker: &Path, telltale: &Path, top: &Path, effort: Effort) -> io::Result<Table> {
    let workloads = if effort == Effort::Once { FEW_WORKLOADS } else { WORKLOADS };
    print_progress(&format!("starts {workloads} workloads"));
    let busy = BusyMachine::start(worker, Size::Galaxy, workloads)?;
    let mut rivals = Rival::installed(busy.root())?;
    let view = || {
        let mut command = Command::new(top);
        command.arg("--root").arg(busy.root()).env("XDG_CONFIG_HOME", busy.root());
        command
    };
    let mut rows = starts(effort, view, &mut rivals)?;
    rows.extend(watched(&busy, telltale, effort, view, &mut rivals)?);
    rows.extend(redraws(&busy.snapshot()?, effort));
    let mut remarks = vec![String::from(
        "a frame is whole when the details of its first process, its last part, have been read from \
         the terminal; of a rival, with the last piece before it is silent for 100 ms. Rivals see \
         this machine, and nothing of the emulated one",
    )];
    let missing = RIVALS.iter().filter(|(name, _)| rivals.iter().all(|rival| rival.name != *name));
    remarks.extend(missing.map(|(name, _)| format!("{name} is not installed and has no value")));
    let (chips, workloads, size) =
        (busy.size().chips(), busy.workloads(), format!("{} x {}", SIZE.0, SIZE.1));
    let heading = format!("The full-screen view, {chips} chips x {workloads} processes, {size}");
    Ok(Table { heading, rows, remarks })
}

/// Says on standard error how far the run has come, as it takes minutes.
fn print_progress(words: &str) {
    eprintln!("screen: {words}");
}

/// A row of ours, and one more for each rival that has a value.
fn beside(
    what: &str,
    unit: Unit,
    ours: &Measurements,
    at_most: Option<f64>,
    theirs: impl Iterator<Item = (&'static str, Measurements)>,
) -> Vec<Row> {
    let row = |what: String, baseline, at_most| Row {
        what,
        unit,
        ours: Some(ours.clone()),
        baseline,
        target: Target { at_most, ..Target::default() },
    };
    let first = row(what.to_owned(), None, at_most);
    let theirs =
        theirs.map(|(name, values)| row(format!("{what}; baseline: {name}"), Some(values), None));
    std::iter::once(first).chain(theirs).collect()
}

/// From the start to the first whole frame, in turns.
fn starts(
    effort: Effort,
    view: impl Fn() -> Command,
    rivals: &mut [Rival],
) -> io::Result<Vec<Row>> {
    print_progress("first frames");
    let mut ours = Vec::new();
    for _ in 0..=effort.repeats() {
        ours.push(TerminalProgram::start(&mut view(), Some(MARKS))?.first_frame.as_nanos() as f64);
        for rival in &mut *rivals {
            let first_frame = rival.start()?.first_frame;
            rival.starts.push(first_frame.as_nanos() as f64);
        }
    }
    // The first of each goes unrecorded.
    let values = |starts: &[f64]| Measurements::new(starts[1..].to_vec());
    let theirs = rivals.iter().map(|rival| (rival.name, values(&rival.starts)));
    let what = "start to the first full frame";
    Ok(beside(what, Unit::Time, &values(&ours), Some(25e6), theirs))
}

/// What the view costs at a frame a second, the service running beside it.
fn watched(
    busy: &BusyMachine,
    telltale: &Path,
    effort: Effort,
    view: impl Fn() -> Command,
    rivals: &mut [Rival],
) -> io::Result<Vec<Row>> {
    let span = Duration::from_secs(match effort {
        Effort::Full => 60,
        Effort::Quick => 10,
        Effort::Once => 1,
    });
    print_progress("watches the view");
    let mut serve = Command::new(telltale);
    serve.args(["serve", "--http", "off", "--root"]).arg(busy.root());
    serve.arg("--state-dir").arg(busy.root().join("state"));
    serve.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let service = ServiceProcess(serve.spawn()?);
    // The view takes what the service sends once that is there.
    std::thread::sleep(SETTLING.min(span));
    let ours = TerminalProgram::start(&mut view(), Some(MARKS))?.watch(span)?;
    drop(service);
    for rival in &mut *rivals {
        print_progress(&format!("watches {}", rival.name));
        rival.used = Some(rival.start()?.watch(span)?);
    }
    let rows = |what: &str, unit, at_most, of: fn(&Used) -> f64| {
        let one = |used: &Used| Measurements::new(vec![of(used)]);
        let used = rivals.iter().filter_map(|rival| Some((rival.name, one(rival.used.as_ref()?))));
        beside(what, unit, &one(&ours), at_most, used)
    };
    let share = "a frame a second beside the service: share of a processor";
    let most_resident = Some(12.0 * 1024.0 * 1024.0);
    let mut all = rows(share, Unit::Share, Some(0.008), |used| used.share);
    all.extend(rows("the same: resident at most", Unit::Bytes, most_resident, |used| used.peak));
    all.extend(rows("the same: resident at the end", Unit::Bytes, None, |used| used.resident));
    all.extend(rows("of it, without pages of files", Unit::Bytes, None, |used| used.own));
    Ok(all)
}

/// The service, which ends with the table.
struct ServiceProcess(Child);

impl Drop for ServiceProcess {
    fn drop(&mut self) {
        // One that has ended already needs neither.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Taking a snapshot in and painting it, and painting alone.
fn redraws(snapshot: &Snapshot, effort: Effort) -> Vec<Row> {
    print_progress("frames");
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

fn row(what: String, ours: Measurements, target: Target) -> Row {
    Row { what, unit: Unit::Time, ours: Some(ours), baseline: None, target }
}

/// Times of taking a snapshot in with its frame, and of a frame alone.
fn frames(snapshot: &Snapshot, pane: Pane, effort: Effort) -> (Measurements, Measurements) {
    let settings = ViewSettings { pane, ..ViewSettings::default() };
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
    (Measurements::new(taking.split_off(1)), Measurements::new(painting.split_off(1)))
}

/// The snapshot with its processes repeated, each with another identity.
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
