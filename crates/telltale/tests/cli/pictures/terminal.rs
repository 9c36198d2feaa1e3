//! `telltale top` in every size: what it writes on a terminal, drawn with the colours that a light and a dark
//! terminal have.

use telltale_harness::{Scratch, wait_until};

use super::cells::Cells;
use super::{Album, SCHEMES, drawn, workloads};
use crate::cli::command::TIMEOUT;
use crate::cli::page::browser::Browser;
use crate::cli::page::fixture::Fixture;
use crate::cli::terminal::{HIDE_CURSOR, Terminal};

/// Columns and rows.
const SIZES: [(usize, usize); 3] = [(80, 24), (120, 40), (200, 60)];
const CLEAR: &str = "\x1b[2J";

/// The view of a machine, open for as long as its graphs need.
pub(super) struct Watched {
    terminal: Terminal,
    _place: Scratch,
}

impl Watched {
    pub(super) fn start(test: &str, fixture: &Fixture) -> Option<Self> {
        let place = Scratch::new();
        let line = format!(
            "env LC_ALL=C.UTF-8 XDG_CONFIG_HOME={} {} top -w 0.5 --root {}",
            place.path().display(),
            env!("CARGO_BIN_EXE_telltale"),
            fixture.root.display()
        );
        let mut terminal = Terminal::start(test, SIZES[0], &line, &place)?;
        wait_until("processes in the view", TIMEOUT, || terminal.text().contains("pretrain"));
        // From the biggest down to a training, whose memory moves.
        terminal.type_in(&b"\x1b[B".repeat(5));
        Some(Self { terminal, _place: place })
    }

    /// The screen after it has been given this size.
    fn resized(&mut self, size: (usize, usize)) -> Cells {
        let before = self.terminal.text().len();
        self.terminal.resize(size);
        let mut cells = None;
        wait_until("a frame of another size", TIMEOUT, || {
            let text = self.terminal.text();
            let frame = text.get(before..).and_then(|text| {
                let begin = text.rfind(CLEAR)?;
                // A frame ends by hiding the cursor.
                let end = text.rfind(HIDE_CURSOR)?;
                text.get(begin..end)
            });
            cells = frame.map(|frame| Cells::painted(size, frame));
            cells.is_some()
        });
        cells.unwrap()
    }
}

/// Takes all pictures of the view.
pub(super) fn take(top: &mut Watched, browser: &mut Browser, album: &mut Album) {
    browser.open("about:blank");
    // The terminal has the first of them already, and paints only what changes.
    for (columns, rows) in SIZES.into_iter().rev() {
        let cells = top.resized((columns, rows));
        let text = cells.text();
        // The smallest has no room for all processes.
        let names = workloads::names().take(if columns < 100 { 1 } else { usize::MAX });
        for word in names.chain(["T1:N0", "DRAM", "Quit"]) {
            assert!(text.contains(word), "{word} in {columns}x{rows}: {text}");
        }
        for scheme in SCHEMES {
            let size = drawn::draw(browser, &cells, scheme);
            album.take(browser, &format!("top-{scheme}-{columns}x{rows}"), size);
        }
    }
}
