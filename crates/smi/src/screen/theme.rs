//! Colour themes: which colour a role has. What a colour says is also said by a character or a
//! word, so that the monochrome theme loses nothing.

use ratatui_core::style::{Color, Modifier, Style};

use crate::style::Tone;

/// A set of colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Theme {
    /// The sixteen colours of the terminal.
    #[default]
    Default,
    /// Blue and orange, distinguishable with any kind of colour vision; needs 256 colours.
    ColourBlind,
    /// No colour: bold, faint, underlined, reversed.
    Monochrome,
}

/// Colours that processes have.
pub(super) const HUES: u8 = 8;

/// Those of the sixteen colours of a terminal that say nothing else: red is an alarm, and green a bar.
const TERMINAL_HUES: [Color; HUES as usize] = [
    Color::LightBlue,
    Color::Yellow,
    Color::Magenta,
    Color::LightGreen,
    Color::LightCyan,
    Color::LightMagenta,
    Color::LightYellow,
    Color::Blue,
];

/// Colours that differ in brightness as well as in what is left of them to any kind of colour vision
/// (M. Okabe and K. Ito, "Color Universal Design", 2008), as numbers of a terminal with 256.
const COLOUR_BLIND_HUES: [u8; HUES as usize] = [32, 214, 37, 227, 175, 74, 166, 250];

/// What a piece of the screen is, from which its style follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Plain,
    Heading,
    Faint,
    Warning,
    Alarm,
    /// The selected row of the pane that keys go to.
    Selected,
    /// The selected row of the other pane.
    Remembered,
    Bar,
    /// A process's colour, one of [`HUES`].
    Hue(u8),
    Graph,
    Group,
    Key,
}

impl From<Tone> for Role {
    fn from(tone: Tone) -> Self {
        match tone {
            Tone::Plain => Self::Plain,
            Tone::Heading => Self::Heading,
            Tone::Faint => Self::Faint,
            Tone::Warning => Self::Warning,
            Tone::Alarm => Self::Alarm,
        }
    }
}

impl Theme {
    /// All themes.
    pub const ALL: [Self; 3] = [Self::Default, Self::ColourBlind, Self::Monochrome];

    /// The name in the settings and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::ColourBlind => "colour-blind",
            Self::Monochrome => "monochrome",
        }
    }

    /// The theme of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|theme| theme.name() == name)
    }

    /// The next one in [`Self::ALL`], after the last the first.
    pub(super) fn next(self) -> Self {
        let at = Self::ALL.iter().position(|theme| *theme == self).unwrap_or(0);
        Self::ALL[(at + 1) % Self::ALL.len()]
    }

    pub(super) fn style(self, role: Role) -> Style {
        let plain = Style::new();
        match role {
            Role::Plain => return plain,
            Role::Selected => return plain.add_modifier(Modifier::REVERSED),
            Role::Remembered => return plain.add_modifier(Modifier::UNDERLINED),
            Role::Faint => return plain.add_modifier(Modifier::DIM),
            _ => {}
        }
        let colour = |default, colour_blind: u8| match self {
            Self::Default => plain.fg(default),
            Self::ColourBlind => plain.fg(Color::Indexed(colour_blind)),
            Self::Monochrome => plain,
        };
        let mono = self == Self::Monochrome;
        match role {
            Role::Heading => colour(Color::Cyan, 74).add_modifier(Modifier::BOLD),
            Role::Warning if mono => plain.add_modifier(Modifier::BOLD),
            Role::Warning => colour(Color::Yellow, 214),
            Role::Alarm if mono => plain.add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
            Role::Alarm => colour(Color::Red, 202).add_modifier(Modifier::BOLD),
            Role::Bar => colour(Color::Green, 33),
            Role::Hue(hue) => {
                let at = usize::from(hue % HUES);
                colour(TERMINAL_HUES[at], COLOUR_BLIND_HUES[at])
            }
            // The dark blue of many terminals is hardly seen on their black.
            Role::Graph => colour(Color::LightBlue, 74),
            Role::Group => colour(Color::Magenta, 175).add_modifier(Modifier::BOLD),
            _ => colour(Color::Cyan, 33).add_modifier(Modifier::REVERSED),
        }
    }
}
