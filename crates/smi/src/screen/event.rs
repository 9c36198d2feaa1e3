//! What reaches the view from a keyboard and a mouse, and what it asks of its driver.

use telltale_schema::clock::Timestamp;
use telltale_schema::process::ProcessIdentity;

use super::signal::Signal;

/// Something that a person did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputEvent {
    /// A key was pressed.
    Key(PressedKey),
    /// The first button of the mouse was pressed at this cell.
    Pressed {
        /// Columns to the left of it.
        column: u16,
        /// Rows above it.
        row: u16,
    },
    /// The wheel was turned over this cell.
    Wheel {
        /// Away from the person.
        up: bool,
        /// Rows above the cell.
        row: u16,
    },
}

/// A key, with what was held down beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PressedKey {
    /// A character.
    Char(char),
    /// A letter with Ctrl.
    Control(char),
    /// F1 to F12.
    Function(u8),
    /// Return.
    Enter,
    /// Escape.
    Escape,
    /// Tab.
    Tab,
    /// Backspace.
    Backspace,
    /// Delete.
    Delete,
    /// The arrow to the left.
    Left,
    /// The arrow to the right.
    Right,
    /// The arrow up.
    Up,
    /// The arrow down.
    Down,
    /// A page up.
    PageUp,
    /// A page down.
    PageDown,
    /// To the beginning.
    Home,
    /// To the end.
    End,
}

/// What the view cannot do itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// End.
    Quit,
    /// Give the terminal back and stop, as Ctrl-Z has it.
    Suspend,
    /// Repaint everything: another process has written on the terminal.
    Repaint,
    /// Find the machine at this past moment.
    ShowMoment(Timestamp),
    /// Go back or forth in the recording by so many snapshots, and stand still there.
    Step {
        /// Back.
        back: bool,
        /// Snapshots.
        steps: u64,
    },
    /// Play the recording, or stand still where it plays.
    Play,
    /// Read the texts of a process, if it is still the one that was shown.
    ReadTexts(ProcessTarget),
    /// Send a signal, if the process is still the one that was shown.
    Signal(ProcessTarget, Signal),
}

/// What a process was started with, as a terminal can show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessTexts {
    /// Its whole command line; none where it has none or it cannot be read.
    pub command: Option<String>,
    /// Its variables, `NAME=value`, or why they cannot be read.
    pub environment: Result<Vec<String>, String>,
    /// Whether it has more variables than these.
    pub is_environment_cut: bool,
}

/// The process that a signal is for, or whose texts are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessTarget {
    /// Its pid, as seen from here.
    pub pid: u32,
    /// Who it was when it was shown.
    pub identity: ProcessIdentity,
}
