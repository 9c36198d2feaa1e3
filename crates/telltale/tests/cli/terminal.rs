//! What a terminal shows: `script` of util-linux makes one, and passes on what is typed.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::fs::{Mode, OFlags};
use rustix::termios::{Winsize, tcsetwinsize};
use telltale_harness::{ChildGuard, Scratch, skip, wait_until};
use unicode_width::UnicodeWidthStr;

use crate::cli::command::{COMPILE_TIMEOUT, TIMEOUT, alone, children, telltale};

/// Ctrl-C, as a terminal's keyboard sends it.
const CTRL_C: &[u8] = b"\x03";
pub(crate) const HIDE_CURSOR: &str = "\x1b[?25l";
pub(crate) const SHOW_CURSOR: &str = "\x1b[?25h";
/// What every frame begins with.
const HOME: &str = "\x1b[H";

/// The command on a terminal of its own.
pub(crate) struct Terminal {
    pub(crate) child: ChildGuard,
    shown: Arc<Mutex<Vec<u8>>>,
    reading: JoinHandle<()>,
    columns: usize,
    rows: usize,
}

impl Terminal {
    /// Runs `line` in a shell on a terminal of that size; none where there is no `script`.
    pub(crate) fn start(
        test: &str,
        size: (usize, usize),
        line: &str,
        place: &Scratch,
    ) -> Option<Self> {
        let (columns, rows) = size;
        if Command::new("script").arg("--version").stdout(Stdio::null()).status().is_err() {
            skip(&format!("telltale::cli::terminal::{test}"), "needs script of util-linux");
            return None;
        }
        let mut command = Command::new("script");
        // The environment of the other tests, for another program.
        for (name, value) in telltale().get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.env("TERM", "xterm").env("XDG_RUNTIME_DIR", place.path());
        let sized = format!("stty cols {columns} rows {rows}; exec {line}");
        command.args(["--quiet", "--return", "--command", &sized, "/dev/null"]);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = ChildGuard::new(child.unwrap());
        let mut screen = child.child().stdout.take().unwrap();
        let shown = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&shown);
        let reading = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = screen.read(&mut buffer) {
                sink.lock().unwrap().extend_from_slice(&buffer[..count]);
            }
        });
        Some(Self { child, shown, reading, columns, rows })
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }

    fn wait_for_frames(&self, count: usize) {
        let frames = || self.text().matches(HOME).count();
        wait_until("frames on the terminal", TIMEOUT, || frames() > count);
    }

    /// Gives the terminal another size, as a window that is dragged does.
    pub(crate) fn resize(&mut self, (columns, rows): (usize, usize)) {
        let number = |one: usize| u16::try_from(one).unwrap();
        // At once: `stty` would set one after the other, and what is painted between fits neither size.
        let size =
            Winsize { ws_row: number(rows), ws_col: number(columns), ws_xpixel: 0, ws_ypixel: 0 };
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        // Until `script` has started what it runs, that has no terminal yet.
        wait_until("the terminal", TIMEOUT, || {
            let shell = children(self.child.id()).into_iter().next();
            let device = shell.map(|shell| format!("/proc/{shell}/fd/0"));
            let device = device.and_then(|path| rustix::fs::open(path, flags, Mode::empty()).ok());
            device.is_some_and(|device| tcsetwinsize(device, size).is_ok())
        });
        (self.columns, self.rows) = (columns, rows);
    }

    /// Types something.
    pub(crate) fn type_in(&mut self, keys: &[u8]) {
        let keyboard = self.child.child().stdin.as_mut().unwrap();
        keyboard.write_all(keys).unwrap();
        keyboard.flush().unwrap();
    }

    /// Types Ctrl-C, waits for the end, and gives the exit status and everything shown.
    fn interrupt(mut self) -> (Option<i32>, String) {
        self.type_in(CTRL_C);
        self.end()
    }

    /// Waits for the end, and gives the exit status and everything shown.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let status = self.child.wait_within("the command to end", COMPILE_TIMEOUT).code();
        self.reading.join().unwrap();
        let text = String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned();
        (status, text)
    }
}

/// Kernels in a directory that keeps them.
pub(crate) fn compiled_kernels(cache: &Path) -> usize {
    let names = std::fs::read_dir(cache).unwrap().map(|file| file.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().ends_with(".so")).count()
}

/// The frames in what a terminal was sent, as lines without colours.
fn frames(text: &str) -> Vec<Vec<String>> {
    let painted = text.split(HOME).skip(1);
    let frame = |frame: &str| {
        let page = frame.split("\x1b[J").next().unwrap_or_default();
        page.lines().map(|line| plain(line.trim_end_matches('\r'))).collect()
    };
    painted.map(frame).collect()
}

/// `line` without escape sequences.
fn plain(line: &str) -> String {
    let mut parts = line.split('\x1b');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| c.is_ascii_alphabetic()).map_or(part.len(), |at| at + 1);
        text.push_str(&part[end..]);
    }
    text
}

/// Runs the demo at a size until it has painted some frames, then ends it with Ctrl-C.
fn demo(test: &str, size: (usize, usize), environment: &str) -> Option<(Vec<Vec<String>>, String)> {
    demo_of(test, size, environment, "demo")
}

/// The same with arguments.
fn demo_of(
    test: &str,
    size: (usize, usize),
    environment: &str,
    arguments: &str,
) -> Option<(Vec<Vec<String>>, String)> {
    let place = Scratch::new();
    let line = format!("env {environment} {} {arguments}", env!("CARGO_BIN_EXE_telltale"));
    let terminal = Terminal::start(test, size, &line, &place)?;
    terminal.wait_for_frames(2);
    let (columns, rows) = (terminal.columns, terminal.rows);
    let demos = children(terminal.child.id());
    let (status, text) = terminal.interrupt();
    assert_eq!(status, Some(0), "{text}");
    assert!(demos.iter().all(|demo| children(*demo).is_empty()), "the workloads are gone");
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "so is the directory");
    let frames = frames(&text);
    for frame in &frames {
        assert!(frame.len() <= rows, "{} lines in {rows} rows: {frame:#?}", frame.len());
        for line in frame {
            assert!(line.width() <= columns, "{} columns in {columns}: {line:?}", line.width());
        }
    }
    let hidden = text.rfind(HIDE_CURSOR).expect("the cursor was hidden");
    assert!(text[hidden..].contains(SHOW_CURSOR), "the cursor is given back");
    Some((frames, text))
}

#[test]
fn below_the_size_of_the_view_the_demo_repaints_tables_until_ctrl_c() {
    let test = "below_the_size_of_the_view_the_demo_repaints_tables_until_ctrl_c";
    let Some((frames, text)) = demo(test, (100, 23), "A=b") else { return };
    assert!(frames[0][0].len() <= 80, "the title fits the usual width: {}", frames[0][0]);
    for frame in &frames[..2] {
        assert!(frame[0].contains(" UTC. Ctrl-C ends this demo: emulated n300"), "{frame:#?}");
        assert!(
            frame[1].starts_with("ID          TEMP") && frame[1].ends_with("HELD BY"),
            "{frame:#?}"
        );
        assert!(frame.iter().any(|line| line.contains("telltale gpt --device 0")), "{frame:#?}");
    }
    assert!(text.contains("\x1b[1mID"), "headings are bright");
    let (_, end) = text.rsplit_once(SHOW_CURSOR).unwrap();
    assert!(end.contains("At the end:") && end.contains("PEAK"), "{end}");
    assert!(end.contains("Try next:"), "{end}");
    assert!(!plain(end).contains('\x1b'));
}

#[test]
fn the_demo_of_a_cluster_repaints_a_row_for_each_node_until_ctrl_c() {
    let test = "the_demo_of_a_cluster_repaints_a_row_for_each_node_until_ctrl_c";
    for size in [(80, 24), (30, 8)] {
        let Some((frames, _)) = demo_of(test, size, "A=b", "demo --cluster") else { return };
        let (first, last) = (&frames[0], frames.last().unwrap());
        assert!(first[0].starts_with("Ctrl-C ends this demo: one GPT"), "{first:#?}");
        assert!(last[0].starts_with("This demo has ended: one GPT"), "{last:#?}");
        assert!(last[1].starts_with("NODE     IS        RANK"), "{last:#?}");
        assert!(last[2].starts_with("node-a") && last[5].starts_with("node-d"), "{last:#?}");
    }
}

#[test]
fn no_color_is_respected_and_changes_nothing_else() {
    let test = "no_color_is_respected_and_changes_nothing_else";
    let Some((frames, text)) = demo(test, (100, 23), "NO_COLOR=1") else { return };
    assert!(frames[0].iter().any(|line| line.starts_with("251732099R")), "{frames:#?}");
    let colours = text.split("\x1b[").filter(|part| {
        part.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').starts_with('m')
    });
    assert_eq!(colours.count(), 0, "{text:?}");
}

#[test]
fn narrow_and_tiny_terminals_lose_columns_and_lines_but_never_wrap() {
    let test = "narrow_and_tiny_terminals_lose_columns_and_lines_but_never_wrap";
    let Some((narrow, _)) = demo(test, (36, 12), "A=b") else { return };
    let shown =
        |frames: &[Vec<String>], word: &str| frames[0].iter().any(|line| line.contains(word));
    for word in ["251732099R", "DRAM USED", "L1", "PID", "Ctrl-C"] {
        assert!(shown(&narrow, word), "{word}: {narrow:#?}");
    }
    assert!(!shown(&narrow, "COMMAND"), "{narrow:#?}");
    let Some((tiny, _)) = demo(test, (12, 4), "A=b") else { return };
    assert!(shown(&tiny, "2517320"), "{tiny:#?}");
    assert!(demo(test, (1, 1), "A=b").is_some());
}

#[test]
fn a_terminal_that_cannot_repaint_gets_plain_pages_of_its_width() {
    let place = Scratch::new();
    let test = "a_terminal_that_cannot_repaint_gets_plain_pages_of_its_width";
    for environment in ["TERM=dumb", "-u TERM"] {
        let program = env!("CARGO_BIN_EXE_telltale");
        let line = format!("env {environment} {program} demo --seconds 1");
        let Some(mut terminal) = Terminal::start(test, (60, 24), &line, &place) else { return };
        let status = terminal.child.wait_within("the demo to end", TIMEOUT);
        terminal.reading.join().unwrap();
        let text = String::from_utf8_lossy(&terminal.shown.lock().unwrap()).into_owned();
        assert!(status.success(), "{text}");
        assert!(!text.contains('\x1b') && text.contains("At the end:"), "{text}");
        let (tables, _) = text.split_once("At the end:").unwrap();
        for line in tables.lines() {
            assert!(line.width() <= 60, "{environment}: {line:?}");
        }
    }
}

#[test]
fn a_first_step_shows_how_many_kernels_it_has_compiled() {
    let _alone = alone();
    let place = Scratch::new();
    let program = env!("CARGO_BIN_EXE_telltale");
    let cache = place.join("kernels");
    let sizes = "--layers 1 --heads 1 --width 8 --context 4 --batch 1";
    let line =
        format!("env TELLTALE_KERNEL_CACHE={} {program} gpt --steps 2 {sizes}", cache.display());
    let test = "a_first_step_shows_how_many_kernels_it_has_compiled";
    let Some(terminal) = Terminal::start(test, (100, 30), &line, &place) else { return };
    let (status, text) = terminal.end();
    assert_eq!(status, Some(0), "{text}");
    let before = text.split("step 1 ").next().expect("there is a first part");
    let (_, progress) = before.split_once("\rcompiling kernel ").expect("there is progress");
    assert!(before.ends_with("\r\x1b[K"), "{text:?}");
    let all: usize = progress.split_whitespace().nth(2).unwrap().parse().unwrap();
    assert_eq!(compiled_kernels(&cache), all, "{text:?}");
    assert!(!text[before.len()..].contains("compiling"), "they are compiled once: {text:?}");
}
