//! What can go wrong with a part of the machine that is no accelerator: one table of failures.

use super::count;

/// A kind of part that failures are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailingKind {
    Fan,
    PowerSupply,
    Voltage,
    Nic,
    Port,
    Memory,
}

/// How a part fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartFailure {
    /// A fan stands still, and its alarm is on.
    FanStopped,
    /// A fan turns slower than its minimum, and its alarm is on.
    FanSlow,
    /// A power supply has no input and gives no power; its alarms are on.
    SupplyFailed,
    /// A voltage is below its minimum, and its alarm is on.
    VoltageAlarm,
    /// A network interface loses its carrier; it has it again when the fault is cleared.
    NicDown,
    /// A network interface has negotiated half its speed.
    NicSlow,
    /// The PCIe link of a network interface has a quarter of its lanes.
    NicNarrow,
    /// A network interface falls off the bus.
    NicGone,
    /// An InfiniBand port goes down; it is active again when the fault is cleared.
    PortDown,
    /// An InfiniBand port's link has recovered from errors so many more times.
    PortRecovered,
    /// An InfiniBand port loses its routable GID.
    PortWithoutGid,
    /// A memory controller has seen so many more errors that it could not correct.
    MemoryUncorrected,
}

/// A row of the table of failures.
struct FailureRow {
    failure: PartFailure,
    kind: FailingKind,
    name: &'static str,
    /// It adds a number to a counter, which keeps it when the fault is cleared.
    counts: bool,
}

const fn row(failure: PartFailure, kind: FailingKind, name: &'static str) -> FailureRow {
    FailureRow { failure, kind, name, counts: false }
}

const fn counting(failure: PartFailure, kind: FailingKind, name: &'static str) -> FailureRow {
    FailureRow { failure, kind, name, counts: true }
}

const FAILURES: [FailureRow; 12] = [
    row(PartFailure::FanStopped, FailingKind::Fan, "stopped"),
    row(PartFailure::FanSlow, FailingKind::Fan, "slow"),
    row(PartFailure::SupplyFailed, FailingKind::PowerSupply, "failed"),
    row(PartFailure::VoltageAlarm, FailingKind::Voltage, "alarm"),
    row(PartFailure::NicDown, FailingKind::Nic, "down"),
    row(PartFailure::NicSlow, FailingKind::Nic, "slow"),
    row(PartFailure::NicNarrow, FailingKind::Nic, "narrow"),
    row(PartFailure::NicGone, FailingKind::Nic, "gone"),
    row(PartFailure::PortDown, FailingKind::Port, "down"),
    row(PartFailure::PortWithoutGid, FailingKind::Port, "no-gid"),
    counting(PartFailure::PortRecovered, FailingKind::Port, "recovered"),
    counting(PartFailure::MemoryUncorrected, FailingKind::Memory, "uncorrected"),
];

const KINDS: [(FailingKind, &str); 6] = [
    (FailingKind::Fan, "fan"),
    (FailingKind::PowerSupply, "power-supply"),
    (FailingKind::Voltage, "voltage"),
    (FailingKind::Nic, "nic"),
    (FailingKind::Port, "port"),
    (FailingKind::Memory, "memory"),
];

// === impl FailingKind ===

impl FailingKind {
    /// Its name in the text of a fault.
    pub(crate) fn name(self) -> &'static str {
        super::name_of(&KINDS, self)
    }

    /// What it is, with the names of its parts on every machine.
    fn effect(self) -> &'static str {
        match self {
            Self::Fan => "a fan of the host: nct6798/fan1 to nct6798/fan4",
            Self::PowerSupply => "a power supply: pmbus-7-0058 or pmbus-7-0059",
            Self::Voltage => "a voltage of the board: nct6798/in0 to nct6798/in2",
            Self::Nic => "a network interface: eth0 or eth1",
            Self::Port => "an InfiniBand port: mlx5_0/1 or mlx5_1/1",
            Self::Memory => "a memory controller: mc0",
        }
    }
}

// === impl PartFailure ===

impl PartFailure {
    fn row(self) -> &'static FailureRow {
        FAILURES.iter().find(|row| row.failure == self).expect("the table has every failure")
    }

    /// The kind of part that fails so.
    pub(crate) fn kind(self) -> FailingKind {
        self.row().kind
    }

    /// The end of its text: the name of the failure and, where it counts, how much.
    pub(super) fn written(self, count: u32) -> String {
        let FailureRow { name, counts, .. } = self.row();
        if *counts { format!("{name}:{count}") } else { (*name).to_owned() }
    }
}

/// The failure that a text names, and how much it counts (1 where it does not say).
pub(super) fn parse(kind: &str, words: &[&str]) -> Option<(PartFailure, u32)> {
    let kind = super::value_of(&KINDS, kind)?;
    let (name, rest) = words.split_first()?;
    let row = FAILURES.iter().find(|row| row.kind == kind && row.name == *name)?;
    match rest {
        [] => Some((row.failure, 1)),
        [number] if row.counts => Some((row.failure, count(number)?)),
        _ => None,
    }
}

/// How failures of each kind of part are written, and what the part is with the names of its kind.
/// Those that count have a form of their own.
pub(super) fn forms() -> impl Iterator<Item = (String, &'static str)> {
    let with = |kind, counts| {
        let rows = FAILURES.iter().filter(move |row| row.kind == kind && row.counts == counts);
        rows.map(|row| row.name).collect::<Vec<_>>().join("|")
    };
    let form = move |(kind, name): &(FailingKind, &str)| {
        let (states, counters) = (with(*kind, false), with(*kind, true));
        let forms = [(states, ""), (counters, "[:COUNT]")];
        let forms = forms.map(|(failures, count)| {
            (!failures.is_empty()).then(|| format!("{name}:NAME:{failures}{count}"))
        });
        let effect = kind.effect();
        forms.into_iter().flatten().map(move |form| (form, effect))
    };
    KINDS.iter().flat_map(form)
}
