//! Signals that can be sent, and the dialog that asks which one and whether.

use super::event::{PressedKey, ProcessTarget};

/// A signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGTERM.
    Term,
    /// SIGINT.
    Int,
    /// SIGHUP.
    Hup,
    /// SIGQUIT.
    Quit,
    /// SIGKILL.
    Kill,
    /// SIGSTOP.
    Stop,
    /// SIGCONT.
    Cont,
    /// SIGUSR1.
    Usr1,
    /// SIGUSR2.
    Usr2,
}

impl Signal {
    /// All of them, in the order of the dialog: the gentle one first.
    pub const ALL: [Self; 9] = [
        Self::Term,
        Self::Int,
        Self::Hup,
        Self::Quit,
        Self::Kill,
        Self::Stop,
        Self::Cont,
        Self::Usr1,
        Self::Usr2,
    ];

    /// The name, as in signal(7).
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.words().0
    }

    /// Name and meaning.
    pub(super) const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Term => ("SIGTERM", "ask it to end"),
            Self::Int => ("SIGINT", "interrupt it, as Ctrl-C does"),
            Self::Hup => ("SIGHUP", "its terminal is gone, or: reload the settings"),
            Self::Quit => ("SIGQUIT", "end it with a core dump"),
            Self::Kill => ("SIGKILL", "end it at once; it cannot clean up"),
            Self::Stop => ("SIGSTOP", "halt it"),
            Self::Cont => ("SIGCONT", "let it go on"),
            Self::Usr1 => ("SIGUSR1", "its own meaning"),
            Self::Usr2 => ("SIGUSR2", "its own meaning"),
        }
    }
}

/// The dialog: a process, a choice, and then a question.
#[derive(Debug, Clone)]
pub(super) struct Dialog {
    pub(super) target: ProcessTarget,
    /// How the process is called in the dialog.
    pub(super) name: String,
    pub(super) chosen: usize,
    /// The choice is made, and yes is waited for.
    pub(super) asks: bool,
}

/// What a key did to the dialog.
pub(super) enum DialogAnswer {
    Open,
    Closed,
    Send(Signal),
}

impl Dialog {
    pub(super) fn new(target: ProcessTarget, name: String) -> Self {
        Self { target, name, chosen: 0, asks: false }
    }

    pub(super) fn signal(&self) -> Signal {
        Signal::ALL[self.chosen.min(Signal::ALL.len() - 1)]
    }

    /// Takes a key. Only `y` sends: Return may have been pressed once too often.
    pub(super) fn key(&mut self, key: PressedKey) -> DialogAnswer {
        match (self.asks, key) {
            (true, PressedKey::Char('y' | 'Y')) => return DialogAnswer::Send(self.signal()),
            (true, PressedKey::Enter) => {}
            (true, _) => self.asks = false,
            (false, PressedKey::Escape | PressedKey::Char('q')) => return DialogAnswer::Closed,
            (false, PressedKey::Up | PressedKey::Char('K')) => {
                self.chosen = self.chosen.saturating_sub(1)
            }
            (false, PressedKey::Down | PressedKey::Char('J')) => {
                self.chosen = (self.chosen + 1).min(Signal::ALL.len() - 1);
            }
            (false, PressedKey::Enter) => self.asks = true,
            _ => {}
        }
        DialogAnswer::Open
    }
}
