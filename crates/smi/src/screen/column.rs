//! The columns of the process table: what they are called, how wide they are, how they sort.

use std::cmp::Ordering;

use telltale_schema::quantity;
use telltale_schema::snapshot::{Process, Snapshot};

use super::row::RowValues;
use crate::processes::{command, owner};
use crate::usage;

/// A column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// The pid as seen from here.
    Pid,
    /// The user.
    User,
    /// The pod or container.
    Container,
    /// The device.
    Device,
    /// Bytes in DRAM.
    Dram,
    /// Bytes in L1.
    L1,
    /// Bytes of host memory that a device uses.
    Host,
    /// Buffers of all kinds.
    Buffers,
    /// Programs in the cache.
    Programs,
    /// The share of dispatches that found their program there.
    Hits,
    /// How long it has been recording.
    Up,
    /// The processor time that it takes.
    Cpu,
    /// Its bytes in the host's RAM.
    Rss,
    /// Its threads.
    Threads,
    /// Bytes a second that it reads from disks.
    Read,
    /// Bytes a second that it writes to disks.
    Write,
    /// When it was started.
    Started,
    /// Whether it lives.
    State,
    /// The command.
    Command,
}

/// What a cell says whose value is not known.
pub(super) const ABSENT: &str = "n/a";

/// What rows are ordered by.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum SortKey {
    Number(Option<f64>),
    Text(String),
}

impl Column {
    /// All columns.
    pub const ALL: [Self; 19] = [
        Self::Pid,
        Self::User,
        Self::Container,
        Self::Device,
        Self::Dram,
        Self::L1,
        Self::Host,
        Self::Buffers,
        Self::Programs,
        Self::Hits,
        Self::Up,
        Self::Cpu,
        Self::Rss,
        Self::Threads,
        Self::Read,
        Self::Write,
        Self::Started,
        Self::State,
        Self::Command,
    ];

    /// Those that are shown to who has chosen none, as far as there is room: 80 cells have those up
    /// to `Rss`, and the command. The others wait until the command has room.
    pub const USUAL: [Self; 13] = [
        Self::Pid,
        Self::User,
        Self::Device,
        Self::Dram,
        Self::L1,
        Self::Cpu,
        Self::Rss,
        Self::Up,
        Self::Buffers,
        Self::Threads,
        Self::Read,
        Self::Write,
        Self::Command,
    ];

    /// The name in the settings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pid => "pid",
            Self::User => "user",
            Self::Container => "container",
            Self::Device => "device",
            Self::Dram => "dram",
            Self::L1 => "l1",
            Self::Host => "host",
            Self::Buffers => "buffers",
            Self::Programs => "programs",
            Self::Hits => "hits",
            Self::Up => "up",
            Self::Cpu => "cpu",
            Self::Rss => "rss",
            Self::Threads => "threads",
            Self::Read => "read",
            Self::Write => "write",
            Self::Started => "started",
            Self::State => "state",
            Self::Command => "command",
        }
    }

    /// The column of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|column| column.name() == name)
    }

    pub(super) fn heading(self) -> String {
        self.name().to_uppercase()
    }

    /// What it shows, for the menu.
    pub(super) const fn help(self) -> &'static str {
        match self {
            Self::Pid => "pid as seen from here",
            Self::User => "who runs it",
            Self::Container => "pod or container",
            Self::Device => "device that the row is of",
            Self::Dram => "bytes in the device's DRAM",
            Self::L1 => "bytes in its L1",
            Self::Host => "host memory that devices use",
            Self::Buffers => "buffers of all kinds",
            Self::Programs => "programs in its cache",
            Self::Hits => "dispatches that found theirs",
            Self::Up => "time since it records",
            Self::Cpu => "processor time (100 % is one CPU)",
            Self::Rss => "its memory in the host's RAM",
            Self::Threads => "its threads",
            Self::Read => "bytes/s it reads from disks",
            Self::Write => "bytes/s it writes to disks",
            Self::Started => "when it was started",
            Self::State => "alive, dead or hidden",
            Self::Command => "program and arguments",
        }
    }

    /// Cells it takes; the command has what is left.
    pub(super) const fn width(self) -> u16 {
        match self {
            Self::Pid | Self::Hits | Self::Up | Self::Cpu | Self::State => 7,
            Self::User | Self::Buffers | Self::Threads => 8,
            Self::L1 | Self::Host | Self::Programs | Self::Rss => 9,
            Self::Dram => 10,
            Self::Read | Self::Write => 11,
            Self::Started => 20,
            Self::Device => 12,
            Self::Container => 16,
            Self::Command => 11,
        }
    }

    /// Whether it waits until the command has room.
    pub(super) const fn matters_less(self) -> bool {
        matches!(
            self,
            Self::Buffers
                | Self::Programs
                | Self::Hits
                | Self::Up
                | Self::Threads
                | Self::Read
                | Self::Write
                | Self::Started
                | Self::State
        )
    }

    /// Whether it is a number, which is right-aligned, and whose largest are of interest.
    pub(super) const fn is_number(self) -> bool {
        !matches!(
            self,
            Self::User
                | Self::Container
                | Self::Device
                | Self::Started
                | Self::State
                | Self::Command
        )
    }

    /// What the column says of a process and its values; empty where that is nothing.
    pub(super) fn text(
        self,
        snapshot: &Snapshot,
        process: &Process,
        device: Option<usize>,
        shown_metrics: &RowValues,
    ) -> String {
        let programs = || process.programs();
        match self {
            Self::Pid => crate::processes::pid(process.pid),
            Self::User => owner(process).text().to_owned(),
            Self::Container => container(process).unwrap_or_default(),
            Self::Device => match device.and_then(|device| snapshot.devices.get(device)) {
                Some(device) => device.id.clone(),
                None => several(crate::rows::devices(&process.devices).iter().flatten().count()),
            },
            Self::Programs => programs().map_or_else(String::new, |it| quantity::count(it.cached)),
            Self::Hits => programs()
                .and_then(|it| it.hit_ratio())
                .map_or_else(String::new, |share| format!("{:.1} %", share * 100.0)),
            Self::Up => {
                let up = process.uptime_seconds.value();
                up.map_or_else(|| ABSENT.to_owned(), |seconds| quantity::span(*seconds))
            }
            Self::Started => usage::started(process).unwrap_or_else(|| ABSENT.to_owned()),
            Self::State => process.state.name().to_owned(),
            Self::Command => command(process).text().to_owned(),
            _ => self.sum(shown_metrics).unwrap_or_default(),
        }
    }

    /// What it says of values that add up; none where it shows no such values.
    pub(super) fn sum(self, shown_metrics: &RowValues) -> Option<String> {
        let words: fn(u64) -> String = match self {
            Self::Cpu => {
                let cpu = shown_metrics.cpu;
                return Some(cpu.map_or_else(|| ABSENT.to_owned(), usage::percent));
            }
            Self::Dram | Self::L1 | Self::Host | Self::Rss => quantity::bytes,
            Self::Buffers | Self::Threads => quantity::count,
            Self::Read | Self::Write => usage::rate,
            _ => return None,
        };
        Some(self.number(shown_metrics).map_or_else(|| ABSENT.to_owned(), words))
    }

    /// The whole number that it shows of a row's values.
    fn number(self, shown_metrics: &RowValues) -> Option<u64> {
        match self {
            Self::Dram => shown_metrics.dram,
            Self::L1 => shown_metrics.l1,
            Self::Host => shown_metrics.host,
            Self::Buffers => shown_metrics.buffers,
            Self::Rss => shown_metrics.rss,
            Self::Threads => shown_metrics.threads,
            Self::Read => shown_metrics.read,
            Self::Write => shown_metrics.written,
            _ => None,
        }
    }

    /// What a row is sorted by.
    pub(super) fn key(
        self,
        snapshot: &Snapshot,
        process: &Process,
        device: Option<usize>,
        shown_metrics: &RowValues,
    ) -> SortKey {
        let number = |shown_metric: Option<u64>| {
            SortKey::Number(shown_metric.map(|shown_metric| shown_metric as f64))
        };
        match self {
            Self::Pid => number(process.pid.map(u64::from)),
            Self::Dram
            | Self::L1
            | Self::Host
            | Self::Buffers
            | Self::Rss
            | Self::Threads
            | Self::Read
            | Self::Write => number(self.number(shown_metrics)),
            Self::Programs => number(process.programs().map(|it| it.cached)),
            Self::Hits => SortKey::Number(process.programs().and_then(|it| it.hit_ratio())),
            Self::Up => SortKey::Number(process.uptime_seconds.value().copied()),
            Self::Cpu => SortKey::Number(shown_metrics.cpu),
            _ => SortKey::Text(self.text(snapshot, process, device, shown_metrics)),
        }
    }
}

fn several(devices: usize) -> String {
    match devices {
        0 => String::new(),
        1 => String::from("1 device"),
        many => format!("{many} devices"),
    }
}

/// The pod by its names, else the container by the beginning of its id.
pub(super) fn container(process: &Process) -> Option<String> {
    let container = process.container.as_ref()?;
    Some(match &container.pod {
        Some(pod) => match &pod.container {
            Some(name) => format!("{}/{} {name}", pod.namespace, pod.name),
            None => format!("{}/{}", pod.namespace, pod.name),
        },
        None => {
            let id: String = container.id.chars().take(12).collect();
            format!("{} {id}", container.engine)
        }
    })
}

impl SortKey {
    /// The order of two rows; what is not known comes last either way.
    pub(super) fn compare(&self, other: &Self, descending: bool) -> Ordering {
        let turned = |order: Ordering| if descending { order.reverse() } else { order };
        match (self, other) {
            (Self::Number(Some(one)), Self::Number(Some(two))) => turned(one.total_cmp(two)),
            (Self::Number(one), Self::Number(two)) => two.is_some().cmp(&one.is_some()),
            (Self::Text(one), Self::Text(two)) => turned(one.cmp(two)),
            (Self::Number(_), Self::Text(_)) => Ordering::Less,
            (Self::Text(_), Self::Number(_)) => Ordering::Greater,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::{Column, SortKey};

    #[test]
    fn what_is_not_known_comes_last_whichever_way() {
        let [some, none] = [SortKey::Number(Some(1.0)), SortKey::Number(None)];
        for descending in [false, true] {
            assert_eq!(some.compare(&none, descending), Ordering::Less);
            assert_eq!(none.compare(&some, descending), Ordering::Greater);
            assert_eq!(none.compare(&none, descending), Ordering::Equal);
        }
    }

    #[test]
    fn names_are_found_again() {
        for column in Column::ALL {
            assert_eq!(Column::named(column.name()), Some(column));
        }
    }
}
