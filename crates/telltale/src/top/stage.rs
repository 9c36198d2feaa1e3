//! The terminal: taken over, painted, and given back as it was, however the view ends.

use std::io::{self, BufWriter, Stdout, Write};
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};

use ratatui_core::terminal::{Frame, Terminal};
use ratatui_crossterm::CrosstermBackend;
use ratatui_crossterm::crossterm::cursor::{Hide, Show};
use ratatui_crossterm::crossterm::event::{DisableMouseCapture, EnableMouseCapture};
use ratatui_crossterm::crossterm::execute;
use ratatui_crossterm::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

/// A frame is written in one piece, if it is no larger.
const BUFFER_BYTES: usize = 64 << 10;

/// Whether the terminal is ours, for whoever gives it back.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal while it is taken over.
pub(super) struct Stage {
    terminal: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
}

impl Stage {
    /// Takes the terminal over. A panic, of whichever thread, gives it back before it is told.
    pub(super) fn enter() -> io::Result<Self> {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            give_back();
            usual(panic);
        }));
        take()?;
        let out = BufWriter::with_capacity(BUFFER_BYTES, io::stdout());
        // What was taken is given back where this fails.
        let terminal = Terminal::new(CrosstermBackend::new(out)).inspect_err(|_| give_back())?;
        Ok(Self { terminal })
    }

    /// Paints what has changed.
    pub(super) fn draw(&mut self, paint: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(paint).map(|_| ())
    }

    /// Gives the terminal back for a while.
    pub(super) fn leave(&mut self) {
        give_back();
    }

    /// Takes it again; somebody may have written on it meanwhile.
    pub(super) fn enter_again(&mut self) -> io::Result<()> {
        take()?;
        self.terminal.clear()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        give_back();
    }
}

fn take() -> io::Result<()> {
    enable_raw_mode()?;
    TAKEN.store(true, Ordering::Relaxed);
    execute!(io::stdout(), EnterAlternateScreen, EnableMouseCapture, Hide).inspect_err(|_| {
        give_back();
    })
}

/// Gives the terminal back, once. There is nobody to tell where that fails: the terminal is gone.
fn give_back() {
    if TAKEN.swap(false, Ordering::Relaxed) {
        let _ = execute!(io::stdout(), DisableMouseCapture, LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
        let _ = io::stdout().flush();
    }
}
