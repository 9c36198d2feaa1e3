//! Standard output: what it can show, and repainting it.

use std::env;
use std::io::{self, IsTerminal, Write};

use telltale_smi::Style;

/// A terminal with fewer rows shows no title.
const TALL_ROWS: usize = 8;

/// Standard output as it was found at the start.
pub(crate) struct StandardOutput {
    /// It is a terminal, whose size can be asked for.
    terminal: bool,
    /// It understands the sequences that repainting takes.
    repaints: bool,
    color: bool,
    unicode: bool,
}

impl StandardOutput {
    /// Checks standard output and the environment.
    pub(crate) fn detect() -> Self {
        let terminal = io::stdout().is_terminal();
        let set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = env::var_os("TERM").is_none_or(|term| term == "dumb" || term.is_empty());
        let forced = env::var_os("CLICOLOR_FORCE").is_some_and(|value| value != "0");
        let color = !set("NO_COLOR") && (forced || (terminal && !dumb));
        // The first of these that is set decides, as in locale(7).
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
            .into_iter()
            .find_map(|name| env::var(name).ok().filter(|value| !value.is_empty()));
        let unicode = locale.is_some_and(|locale| {
            let locale = locale.to_ascii_lowercase();
            locale.contains("utf-8") || locale.contains("utf8")
        });
        Self { terminal, repaints: terminal && !dumb, color, unicode }
    }

    /// Whether it is a terminal that can be repainted.
    pub(crate) fn is_repainted(&self) -> bool {
        self.repaints
    }

    /// Whether it is a terminal that can be repainted, with a line to spare for something else
    /// than numbers.
    pub(crate) fn is_tall(&self) -> bool {
        self.repaints && self.size().is_some_and(|(_, rows)| rows >= TALL_ROWS)
    }

    /// The style for text written now: a terminal may have changed its width.
    pub(crate) fn style(&self) -> Style {
        let width = self.size().map(|(columns, _)| columns);
        Style { width, color: self.color, unicode: self.unicode }
    }

    /// How many rows a page may have to be repainted whole below a title; none where nothing is
    /// repainted, which takes pages of any length.
    pub(crate) fn rows_of_a_page(&self) -> Option<usize> {
        let (_, rows) = self.size().filter(|_| self.repaints)?;
        Some(rows.saturating_sub(2))
    }

    /// How many rows the terminal has; none where it is no terminal.
    pub(crate) fn rows(&self) -> Option<usize> {
        self.size().map(|(_, rows)| rows)
    }

    fn size(&self) -> Option<(usize, usize)> {
        if !self.terminal {
            return None;
        }
        let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
        // Terminals that do not know say 0.
        let known = |cells: u16, usual: usize| if cells == 0 { usual } else { usize::from(cells) };
        Some((known(size.ws_col, 80), known(size.ws_row, 24)))
    }

    /// Writes `text` as it is.
    pub(crate) fn print(&self, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// Writes `page` over the page before, cut to the height of the terminal; on anything that
    /// cannot be repainted, below it.
    pub(crate) fn repaint(&self, page: &str) -> io::Result<()> {
        let size = self.size().filter(|_| self.repaints);
        let Some((_, rows)) = size else { return self.print(&format!("{page}\n")) };
        let lines: Vec<&str> = page.lines().collect();
        let room = rows.saturating_sub(1).max(1);
        let shown = if lines.len() > room { room - 1 } else { lines.len() };
        let rest = (shown < lines.len()).then(|| {
            let words = format!("{} more lines do not fit into this window", lines.len() - shown);
            telltale_smi::title(&words, &self.style())
        });
        let mut frame = String::from("\x1b[?25l\x1b[H");
        for line in lines[..shown].iter().copied().chain(rest.as_deref().map(str::trim_end)) {
            frame.push_str(line);
            frame.push_str("\x1b[K");
            // A single row would scroll away.
            frame.push_str(if rows > 1 { "\r\n" } else { "" });
        }
        frame.push_str("\x1b[J");
        self.print(&frame)
    }

    /// Clears the terminal for the first [`Self::repaint`].
    pub(crate) fn begin_repainting(&self) -> io::Result<()> {
        if self.repaints { self.print("\x1b[2J") } else { Ok(()) }
    }

    /// Gives the cursor back, and wipes out the `^C` that the terminal may have shown.
    pub(crate) fn end_repainting(&self) -> io::Result<()> {
        if self.repaints { self.print("\r\x1b[K\x1b[?25h") } else { Ok(()) }
    }
}
