//! What a terminal shows after it was sent a frame: characters with their colours. It knows the few controls that
//! the full-screen view sends, and refuses others.

use unicode_width::UnicodeWidthChar;

/// A colour that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Shade {
    /// One of the 256 that terminals have; the terminal decides on the first 16.
    Numbered(u8),
    Exact([u8; 3]),
}

/// How a character looks; no colour is the terminal's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::cli) struct Look {
    pub(in crate::cli) ink: Option<Shade>,
    pub(in crate::cli) ground: Option<Shade>,
    pub(in crate::cli) is_bold: bool,
    pub(in crate::cli) is_faint: bool,
    pub(in crate::cli) is_underlined: bool,
    pub(in crate::cli) is_reversed: bool,
}

/// One character; blank where nothing was written, or where a wide one goes on.
pub(in crate::cli) type Cell = (char, Look);

/// All of them.
pub(in crate::cli) struct Cells {
    pub(in crate::cli) rows: Vec<Vec<Cell>>,
    at: (usize, usize),
    look: Look,
}

impl Cells {
    /// The screen of this many columns and rows after `frame`, which it was sent when it was blank.
    #[track_caller]
    pub(in crate::cli) fn painted((columns, rows): (usize, usize), frame: &str) -> Self {
        let blank = vec![(' ', Look::default()); columns];
        let mut cells = Self { rows: vec![blank; rows], at: (0, 0), look: Look::default() };
        let mut rest = frame;
        while let Some(first) = rest.chars().next() {
            rest = match rest.strip_prefix("\x1b[") {
                Some(sequence) => {
                    let end = sequence.find(|one: char| matches!(one, '@'..='~')).expect("it ends");
                    cells.control(&sequence[..end], &sequence[end..=end]);
                    &sequence[end + 1..]
                }
                None => {
                    cells.write(first);
                    &rest[first.len_utf8()..]
                }
            };
        }
        cells
    }

    /// The lines, without what blanks end them.
    pub(in crate::cli) fn text(&self) -> String {
        let line = |row: &Vec<Cell>| row.iter().map(|(letter, _)| letter).collect::<String>();
        self.rows.iter().map(|row| format!("{}\n", line(row).trim_end())).collect()
    }

    #[track_caller]
    fn write(&mut self, letter: char) {
        assert!(!letter.is_control(), "{letter:?} is no character of a frame");
        let (row, column) = self.at;
        let columns = self.rows[0].len();
        let cell = self.rows.get_mut(row).and_then(|cells| cells.get_mut(column));
        *cell.unwrap_or_else(|| panic!("{letter:?} is at {:?} of {columns} columns", self.at)) =
            (letter, self.look);
        self.at.1 += letter.width().unwrap_or(0);
    }

    #[track_caller]
    fn control(&mut self, numbers: &str, what: &str) {
        match what {
            "H" => {
                let (row, column) = numbers.split_once(';').unwrap_or(("1", "1"));
                let place = |one: &str| one.parse::<usize>().unwrap() - 1;
                self.at = (place(row), place(column));
            }
            "J" => {
                assert_eq!(numbers, "2", "the whole screen is cleared");
                self.rows.iter_mut().flatten().for_each(|cell| *cell = (' ', Look::default()));
            }
            "m" => self.look.change(numbers),
            // Modes: the cursor, the mouse.
            "h" | "l" => assert!(numbers.starts_with('?'), "{numbers}{what}"),
            _ => panic!("{numbers:?} {what:?} is not known here"),
        }
    }
}

impl Look {
    #[track_caller]
    fn change(&mut self, numbers: &str) {
        let mut codes = numbers.split(';').map(|one| one.parse::<u8>().unwrap_or(0));
        while let Some(code) = codes.next() {
            match code {
                0 => *self = Self::default(),
                1 => self.is_bold = true,
                2 => self.is_faint = true,
                4 => self.is_underlined = true,
                7 => self.is_reversed = true,
                22 => (self.is_bold, self.is_faint) = (false, false),
                24 => self.is_underlined = false,
                27 => self.is_reversed = false,
                30..=37 => self.ink = Some(Shade::Numbered(code - 30)),
                38 => self.ink = Some(shade(&mut codes)),
                39 => self.ink = None,
                40..=47 => self.ground = Some(Shade::Numbered(code - 40)),
                48 => self.ground = Some(shade(&mut codes)),
                49 => self.ground = None,
                // The line below keeps the colour of the text.
                59 => {}
                90..=97 => self.ink = Some(Shade::Numbered(code - 82)),
                100..=107 => self.ground = Some(Shade::Numbered(code - 92)),
                _ => panic!("{code} of {numbers:?} is no look that is known here"),
            }
        }
    }
}

fn shade(codes: &mut impl Iterator<Item = u8>) -> Shade {
    let mut next = || codes.next().expect("a colour has numbers");
    match next() {
        5 => Shade::Numbered(next()),
        2 => Shade::Exact([next(), next(), next()]),
        kind => panic!("{kind} is no kind of colour"),
    }
}
