//! `telltale demo` on a terminal: the full-screen view with the losses as a pane, its keys, how far the kernels
//! are, and what is there when it ends.

use std::path::Path;

use telltale_harness::{Scratch, wait_until};

use crate::cli::command::{COMPILE_TIMEOUT, KERNEL_CACHE, TIMEOUT, alone, children};
use crate::cli::pictures::cells::Cells;
use crate::cli::terminal::{HIDE_CURSOR, SHOW_CURSOR, Terminal, compiled_kernels};

const CLEAR: &str = "\x1b[2J";
const CTRL_C: &[u8] = b"\x03";
const CTRL_L: &[u8] = b"\x0c";
const TAB: &[u8] = b"\t";
/// The view gives the terminal back.
const MAIN: &str = "\x1b[?1049l";

/// A demo on a terminal.
pub(in crate::cli) struct DemoView {
    terminal: Terminal,
    size: (usize, usize),
    place: Scratch,
}

impl DemoView {
    /// Starts `telltale demo` with these arguments; none where there is no `script`.
    pub(in crate::cli) fn start(
        test: &str,
        size: (usize, usize),
        environment: &str,
        arguments: &str,
    ) -> Option<Self> {
        let place = Scratch::new();
        let program = env!("CARGO_BIN_EXE_telltale");
        let cache = format!("TELLTALE_KERNEL_CACHE={KERNEL_CACHE}");
        let line = format!("env LC_ALL=C.UTF-8 {cache} {environment} {program} demo {arguments}");
        let terminal = Terminal::start(test, size, &line, &place)?;
        Some(Self { terminal, size, place })
    }

    /// The whole screen, painted again.
    fn repainted(&mut self) -> Option<Cells> {
        let before = self.terminal.text().len();
        self.terminal.type_in(CTRL_L);
        let mut cells = None;
        wait_until("a frame", TIMEOUT, || {
            let text = self.terminal.text();
            let frame = text.get(before..).and_then(|text| {
                let begin = text.find(CLEAR)?;
                // A frame ends by hiding the cursor.
                let end = begin + text[begin..].find(HIDE_CURSOR)?;
                text.get(begin..end)
            });
            cells = frame.map(|frame| Cells::painted(self.size, frame));
            cells.is_some() || text.contains(MAIN)
        });
        cells
    }

    /// The first screen that has all of these; for losses the kernels may have to be compiled.
    #[track_caller]
    pub(in crate::cli) fn shows(&mut self, words: &[&str]) -> Cells {
        let mut last = None;
        wait_until(&format!("{words:?} on the screen"), COMPILE_TIMEOUT, || {
            let Some(cells) = self.repainted() else {
                let status = self.terminal.child.wait_within("the demo to end", TIMEOUT);
                let text = self.terminal.text();
                panic!(
                    "the view is gone, {status}: {}",
                    text.rsplit(MAIN).next().unwrap_or_default()
                )
            };
            let text = cells.text();
            let is_seen = words.iter().all(|word| text.contains(word));
            last = Some(cells);
            is_seen
        });
        last.unwrap()
    }

    pub(in crate::cli) fn type_in(&mut self, keys: &[u8]) {
        self.terminal.type_in(keys);
    }

    /// Gives the view another size, as a window that is dragged does.
    pub(in crate::cli) fn resize(&mut self, size: (usize, usize)) {
        self.terminal.resize(size);
        self.size = size;
    }

    /// Waits for the end, and gives what the terminal shows then; nothing is left of the demo.
    #[track_caller]
    fn end(self) -> String {
        let demos = children(self.terminal.child.id());
        let (status, text) = self.terminal.end();
        assert_eq!(status, Some(0), "{text}");
        assert!(demos.iter().all(|demo| children(*demo).is_empty()), "the workloads are gone");
        assert_eq!(std::fs::read_dir(self.place.path()).unwrap().count(), 0, "so is the directory");
        let (_, end) = text.rsplit_once(MAIN).expect("the terminal is given back");
        assert!(end.starts_with(SHOW_CURSOR) || end.contains(SHOW_CURSOR), "{end:?}");
        end.replace('\r', "")
    }
}

/// Checks what the demo has printed when it ended.
#[track_caller]
fn check_end(end: &str) {
    for words in ["At the end:", "PEAK", "The emulated machine and both processes are gone."] {
        assert!(end.contains(words), "{words}: {end}");
    }
    let (_, next) = end.split_once("\nTry next:\n").expect("there is something to try");
    let program = env!("CARGO_BIN_EXE_telltale");
    let lines: Vec<&str> = next.lines().collect();
    assert_eq!(lines.len(), 3, "{next}");
    assert!(lines.iter().all(|line| line.starts_with(&format!("  {program} "))), "{next}");
}

#[test]
fn the_demo_is_the_full_screen_view_with_the_losses_as_its_pane() {
    let _alone = alone();
    let test = "the_demo_is_the_full_screen_view_with_the_losses_as_its_pane";
    let Some(mut view) = DemoView::start(test, (120, 40), "", "") else { return };
    // The pane, with the loss of both and what their kernels printed.
    let welcome = "Demo: emulated n300, two small GPTs in training. h: the keys, q: end.";
    wait_until(welcome, TIMEOUT, || view.terminal.text().contains(welcome));
    // Any key makes room for the row of keys.
    view.shows(&["2 devices", "2 processes", "  emulated n300 CPU ", "251732099R", "F10Quit"]);
    let losses = ["[7 Losses]", "TOKENS/S", "LOSS, 0 TO ", "1.found", "1.shares", "--device 1"];
    let text = view.shows(&losses).text();
    let rows = |end: &str| text.lines().filter(|line| line.contains(end)).count();
    assert!(rows("telltale gpt --device") >= 2, "the table of processes is above: {text}");
    // The keys of the view: panes, what a device has, sorting, help.
    view.type_in(b"1");
    view.shows(&["[1 Details]", "PEAK", "BUFFERS", " 7 Losses "]);
    view.type_in(TAB);
    view.shows(&["held by", "UNATTR."]);
    view.type_in(b"7");
    view.shows(&["[7 Losses]", "TOKENS/S"]);
    view.type_in(b"\x1b[17~");
    view.shows(&["Sort by"]);
    view.type_in(b"\x1b[A\rh");
    view.shows(&["this page"]);
    view.type_in(b"hq");
    check_end(&view.end());
}

#[test]
fn ctrl_c_and_the_time_end_the_view_as_well() {
    let test = "ctrl_c_and_the_time_end_the_view_as_well";
    for (arguments, keys) in [("--workload trace", CTRL_C), ("--workload trace --seconds 2", b"")] {
        let Some(mut view) = DemoView::start(test, (80, 24), "", arguments) else { return };
        if !keys.is_empty() {
            view.shows(&["2 processes", "251732099R", "[1 Details]"]);
            view.type_in(keys);
        }
        let end = view.end();
        check_end(&end);
        assert!(!end.contains("loss"), "traces have none: {end}");
    }
}

#[test]
fn no_setting_is_read_or_kept() {
    let test = "no_setting_is_read_or_kept";
    let settings = Scratch::new();
    let environment = format!("XDG_CONFIG_HOME={}", settings.path().display());
    let arguments = "--workload trace";
    let Some(mut view) = DemoView::start(test, (80, 24), &environment, arguments) else { return };
    view.shows(&["251732099R", "COMMAND"]);
    view.type_in(b"t");
    view.shows(&["TREE"]);
    view.type_in(b"q");
    check_end(&view.end());
    assert!(!Path::new(&settings.join("telltale")).exists(), "settings were kept");
}

#[test]
fn while_kernels_compile_the_pane_counts_them() {
    let _alone = alone();
    let test = "while_kernels_compile_the_pane_counts_them";
    let cache = Scratch::new();
    let environment = format!("TELLTALE_KERNEL_CACHE={}", cache.path().display());
    let Some(mut view) = DemoView::start(test, (80, 24), &environment, "") else { return };
    let text = view.shows(&["compiling kernel ", " of "]).text();
    let [kernel, all] = progress(&text).unwrap_or_else(|| panic!("no progress in {text}"));
    assert!((1..=all).contains(&kernel), "{text}");
    view.shows(&["LOSS, 0 TO "]);
    view.type_in(b"q");
    check_end(&view.end());
    let count = compiled_kernels(cache.path());
    // Each training prints another activation, by a kernel of its own, but not in its first step.
    assert!((all..=all + 2).contains(&count), "{count} compiled, {all} announced");
}

/// The first `compiling kernel 7 of 23`.
fn progress(text: &str) -> Option<[usize; 2]> {
    let (_, rest) = text.split_once("compiling kernel ")?;
    let mut words = rest.split_whitespace();
    let kernel = words.next()?.parse().ok()?;
    let all = words.nth(1)?.parse().ok()?;
    Some([kernel, all])
}
