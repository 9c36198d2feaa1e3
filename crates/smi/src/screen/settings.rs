//! What a person may choose and keep, and what the view is told once at its start.

use std::time::Duration;

use super::column::Column;
use super::pane::Pane;
use super::theme::Theme;

/// What is kept from one run to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The colours.
    pub theme: Theme,
    /// The columns of the process table, in their order.
    pub columns: Vec<Column>,
    /// The column that rows are sorted by; it need not be shown.
    pub sort: Column,
    /// The largest first.
    pub descending: bool,
    /// Whether processes are shown as a tree.
    pub tree: bool,
    /// Whether there is a pane below the processes.
    pub details: bool,
    /// Which one it is.
    pub pane: Pane,
    /// Whether it has the place of the processes too.
    pub enlarged: bool,
    /// What the graphs of devices show.
    pub figure: Figure,
}

/// What a graph of a device shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Figure {
    /// The share of DRAM in use.
    #[default]
    Dram,
    /// The share of L1 in use.
    L1,
    /// The temperature.
    Temperature,
    /// The power.
    Power,
    /// The clock of whatever computes.
    Clock,
    /// The share of time in which it was computing, where its driver tells.
    Busy,
}

/// What the view is told at its start and does not change.
#[derive(Debug, Clone)]
pub struct Terms {
    /// How the machine is called in the tree.
    pub host: String,
    /// No signal is sent.
    pub readonly: bool,
    /// The terminal takes characters beyond ASCII.
    pub unicode: bool,
    /// The time from one snapshot to the next, from which follows which one is late.
    pub period: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            theme: Theme::default(),
            columns: Column::USUAL.to_vec(),
            sort: Column::Dram,
            descending: true,
            tree: false,
            details: true,
            pane: Pane::default(),
            enlarged: false,
            figure: Figure::default(),
        }
    }
}

impl Figure {
    /// All figures.
    pub const ALL: [Self; 6] =
        [Self::Dram, Self::L1, Self::Temperature, Self::Power, Self::Clock, Self::Busy];

    /// The name in the settings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dram => "dram",
            Self::L1 => "l1",
            Self::Temperature => "temperature",
            Self::Power => "power",
            Self::Clock => "clock",
            Self::Busy => "busy",
        }
    }

    /// The figure of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|figure| figure.name() == name)
    }

    /// What stands above its graphs.
    pub(super) const fn heading(self) -> &'static str {
        match self {
            Self::Dram => "DRAM",
            Self::L1 => "L1",
            Self::Temperature => "TEMP",
            Self::Power => "POWER",
            Self::Clock => "CLOCK",
            Self::Busy => "BUSY",
        }
    }

    pub(super) fn place(self) -> usize {
        Self::ALL.iter().position(|figure| *figure == self).unwrap_or(0)
    }

    pub(super) fn next(self) -> Self {
        Self::ALL[(self.place() + 1) % Self::ALL.len()]
    }
}
