//! The terminal: taken over, painted, and given back as it was, however the view ends.

use std::io::{self, BufWriter, Stdout, Write};
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};

use ratatui_core::layout::Rect;
use ratatui_core::terminal::{Frame, Terminal, TerminalOptions, Viewport};
use ratatui_crossterm::CrosstermBackend;
use ratatui_crossterm::crossterm::cursor::{Hide, Show};
use ratatui_crossterm::crossterm::event::{DisableMouseCapture, EnableMouseCapture};
use ratatui_crossterm::crossterm::execute;
use ratatui_crossterm::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode, size,
};

/// A frame is written in one piece, if it is no larger.
const BUFFER_BYTES: usize = 64 << 10;

/// What a terminal that does not tell its size is taken for, as other programs do.
const USUAL: (u16, u16) = (80, 24);
/// The most columns and rows that are painted on: more would cost gigabytes.
const MOST: (u16, u16) = (1000, 500);

/// Whether the terminal is ours, for the code that gives it back.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal while it is taken over.
pub(super) struct Stage {
    terminal: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
    area: Rect,
}

impl Stage {
    /// Takes the terminal over. A panic, of whichever thread, gives it back before it is reported.
    pub(super) fn enter() -> io::Result<Self> {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            give_back();
            usual(panic);
        }));
        take()?;
        let area = area();
        // What was taken is given back where this fails.
        let terminal = terminal(area).inspect_err(|_| give_back())?;
        Ok(Self { terminal, area })
    }

    /// Paints what has changed.
    pub(super) fn draw(&mut self, paint: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        let area = area();
        if area != self.area {
            self.area = area;
            self.repaint()?;
        }
        self.terminal.draw(paint).map(|_| ())
    }

    /// Has the next frame painted as a whole: another process may have written on the terminal.
    pub(super) fn repaint(&mut self) -> io::Result<()> {
        // To clear by itself it would ask the terminal where the cursor is, and the answer comes to
        // the reader of keys.
        self.terminal = terminal(self.area)?;
        execute!(io::stdout(), Clear(ClearType::All))
    }

    /// Gives the terminal back for a while.
    pub(super) fn leave(&mut self) {
        give_back();
    }

    /// Takes it again; another process may have written on it meanwhile.
    pub(super) fn enter_again(&mut self) -> io::Result<()> {
        take()?;
        self.repaint()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        give_back();
    }
}

/// A terminal of that size on which nothing has been painted yet.
fn terminal(area: Rect) -> io::Result<Terminal<CrosstermBackend<BufWriter<Stdout>>>> {
    let out = BufWriter::with_capacity(BUFFER_BYTES, io::stdout());
    let options = TerminalOptions { viewport: Viewport::Fixed(area) };
    Terminal::with_options(CrosstermBackend::new(out), options)
}

/// What is painted on: the terminal as large as it says it is, within reason.
fn area() -> Rect {
    let (columns, rows) = size().unwrap_or((0, 0));
    let (columns, rows) = if columns == 0 || rows == 0 { USUAL } else { (columns, rows) };
    Rect::new(0, 0, columns.min(MOST.0), rows.min(MOST.1))
}

fn take() -> io::Result<()> {
    enable_raw_mode()?;
    TAKEN.store(true, Ordering::Relaxed);
    execute!(io::stdout(), EnterAlternateScreen, EnableMouseCapture, Hide).inspect_err(|_| {
        give_back();
    })
}

/// Gives the terminal back, once. There is no one to notify where that fails: the terminal is gone.
fn give_back() {
    if TAKEN.swap(false, Ordering::Relaxed) {
        let _ = execute!(io::stdout(), DisableMouseCapture, LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
        let _ = io::stdout().flush();
    }
}
