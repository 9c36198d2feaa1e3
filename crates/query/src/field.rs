//! The fields that a query can name, each defined once: the parser, the completion and the page of
//! documentation read this table.

use std::sync::LazyLock;

use telltale_schema::memory::{MemoryKind, MemorySpace};
use telltale_schema::sensor::{SENSORS, Sensor};
use telltale_schema::snapshot::{Device, HeldDevice, Process};

use crate::spelling::nearest;
use crate::subject::{Subject, Value};
use crate::unit::Dimension;

/// A field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// What can be compared with it.
    pub kind: FieldKind,
    /// Whose it is.
    pub owner: Owner,
    /// What it means, for a person.
    pub help: &'static str,
    pub(crate) get: Get,
}

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind {
    /// Text.
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A number.
    Number(Dimension),
}

/// Whose a field is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Owner {
    /// The process's, or what it has on the device of the row.
    Process,
    /// The device's, for any user.
    Device,
}

/// How a field is read off a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Get {
    Pid,
    NamespacePid,
    Name,
    Command,
    User,
    Uid,
    State,
    KnownBy,
    Accounting,
    Uptime,
    Started,
    Usage(UsageValue),
    Container,
    Engine,
    Pod,
    Namespace,
    Programs,
    HitRatio,
    HeldSpace(MemorySpace),
    HeldKind(MemoryKind),
    HeldPeak,
    HeldBuffers,
    HeldAllocations,
    HeldFailed,
    HeldBusy,
    Device,
    Board,
    Vendor,
    Model,
    Architecture,
    Pci,
    Sensor(&'static Sensor),
    Holders,
    Faults,
    Health,
    HealthCause,
    HealthSince,
    Used(MemorySpace),
    Free(MemorySpace),
    Capacity(MemorySpace),
    UsedShare(MemorySpace),
}

/// A value of what a process uses of its host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UsageValue {
    Cpu,
    Resident,
    Threads,
    DiskRead,
    DiskWritten,
}

const STATES: &[&str] = &["alive", "dead", "hidden"];
const HEALTH: &[&str] = &["ok", "unknown", "warning", "failed"];
const SOURCES: &[&str] = &["ledger", "endpoint", "region", "legacy", "driver"];
const ACCOUNTING: &[&str] = &["recorded", "bytes_only", "open_only", "unknown"];
const BYTES: FieldKind = FieldKind::Number(Dimension::Bytes);
const COUNT: FieldKind = FieldKind::Number(Dimension::Count);
const RATE: FieldKind = FieldKind::Number(Dimension::Rate);
const SHARE: FieldKind = FieldKind::Number(Dimension::Share);

const fn of_process(name: &'static str, kind: FieldKind, get: Get, help: &'static str) -> Field {
    Field { name, kind, owner: Owner::Process, help, get }
}

const fn of_device(name: &'static str, kind: FieldKind, get: Get, help: &'static str) -> Field {
    Field { name, kind, owner: Owner::Device, help, get }
}

/// All fields: a process's, then what it has on the device of the row, then the device's own. Sensors come from their
/// own declarations.
static FIELDS: LazyLock<Vec<Field>> = LazyLock::new(|| {
    let sensors = SENSORS.iter().map(|sensor| {
        let kind = FieldKind::Number(Dimension::of(sensor.metric.unit));
        of_device(sensor.name, kind, Get::Sensor(sensor), sensor.help)
    });
    let identity = OF_IDENTITY.into_iter().chain(sensors);
    OF_PROCESS.into_iter().chain(identity).chain(OF_DEVICE).collect()
});

#[rustfmt::skip]
const OF_PROCESS: [Field; 36] = [
    of_process("pid", COUNT, Get::Pid, "pid in the service's PID namespace"),
    of_process("namespace_pid", COUNT, Get::NamespacePid, "pid in the process's own PID namespace, where that differs"),
    of_process("name", FieldKind::Text, Get::Name, "short name of the process"),
    of_process("command", FieldKind::Text, Get::Command, "command line, arguments separated by spaces"),
    of_process("user", FieldKind::Text, Get::User, "name of its user, or the number where there is no name"),
    of_process("uid", COUNT, Get::Uid, "number of its user"),
    of_process("state", FieldKind::Word(STATES), Get::State, "whether it lives"),
    of_process("source", FieldKind::Word(SOURCES), Get::KnownBy, "the source of its memory values"),
    of_process("accounting", FieldKind::Word(ACCOUNTING), Get::Accounting, "how much is known of its memory on the device"),
    of_process("uptime", FieldKind::Number(Dimension::Time), Get::Uptime, "time since its runtime began to record"),
    of_process("started", FieldKind::Text, Get::Started, "when it was started, in UTC"),
    of_process("cpu", SHARE, Get::Usage(UsageValue::Cpu), "time of processors that it takes; 100 % is one processor"),
    of_process("rss", BYTES, Get::Usage(UsageValue::Resident), "its memory that is in the host's RAM, shared pages included"),
    of_process("threads", COUNT, Get::Usage(UsageValue::Threads), "its threads"),
    of_process("disk_read", RATE, Get::Usage(UsageValue::DiskRead), "what it makes storage read; only its owner and root may know"),
    of_process("disk_write", RATE, Get::Usage(UsageValue::DiskWritten), "what it makes storage write; only its owner and root may know"),
    of_process("container", FieldKind::Text, Get::Container, "id of its container"),
    of_process("engine", FieldKind::Text, Get::Engine, "engine of its container"),
    of_process("pod", FieldKind::Text, Get::Pod, "name of its pod"),
    of_process("namespace", FieldKind::Text, Get::Namespace, "namespace of its pod"),
    of_process("programs", COUNT, Get::Programs, "programs in its cache"),
    of_process("hit_ratio", SHARE, Get::HitRatio, "share of dispatches that found their program in the cache"),
    of_process("dram", BYTES, Get::HeldSpace(MemorySpace::Dram), "what it has in the device's DRAM"),
    of_process("l1", BYTES, Get::HeldSpace(MemorySpace::L1), "what it has in the device's L1"),
    of_process("host", BYTES, Get::HeldSpace(MemorySpace::Host), "host memory that it lends the device"),
    of_process("dram_buffers", BYTES, Get::HeldKind(MemoryKind::Dram), "its plain buffers in DRAM"),
    of_process("trace", BYTES, Get::HeldKind(MemoryKind::Trace), "its recorded command traces"),
    of_process("l1_buffers", BYTES, Get::HeldKind(MemoryKind::L1), "its plain buffers in L1"),
    of_process("l1_small", BYTES, Get::HeldKind(MemoryKind::L1Small), "its small buffers in L1"),
    of_process("cb", BYTES, Get::HeldKind(MemoryKind::Cb), "its circular buffers"),
    of_process("kernels", BYTES, Get::HeldKind(MemoryKind::KernelApplication), "code of its kernels"),
    of_process("peak", BYTES, Get::HeldPeak, "the most that one kind of its memory on the device ever was"),
    of_process("buffers", COUNT, Get::HeldBuffers, "its buffers on the device"),
    of_process("allocations", COUNT, Get::HeldAllocations, "its allocations on the device so far"),
    of_process("failed", COUNT, Get::HeldFailed, "its allocations on the device that failed"),
    of_process("process_busy", SHARE, Get::HeldBusy, "share of the last second in which its work ran on the device, where the driver counts it for each process"),
];

#[rustfmt::skip]
const OF_IDENTITY: [Field; 6] = [
    of_device("device", FieldKind::Text, Get::Device, "id of the device"),
    of_device("board", FieldKind::Text, Get::Board, "type of its board"),
    of_device("vendor", FieldKind::Text, Get::Vendor, "whose device it is"),
    of_device("model", FieldKind::Text, Get::Model, "what its vendor calls it, where the driver says"),
    of_device("arch", FieldKind::Text, Get::Architecture, "generation of its chip"),
    of_device("pci", FieldKind::Text, Get::Pci, "its PCI address"),
];

#[rustfmt::skip]
const OF_DEVICE: [Field; 15] = [
    of_device("holders", COUNT, Get::Holders, "processes that have it open"),
    of_device("fault", FieldKind::Text, Get::Faults, "names of what is wrong with it, with a space between two (`docs/health.md`); absent where no fault is known"),
    of_device("health", FieldKind::Word(HEALTH), Get::Health, "how the device is"),
    of_device("health_cause", FieldKind::Text, Get::HealthCause, "the most severe of what is wrong with it, and what to do; absent where nothing is known to be"),
    of_device("health_since", FieldKind::Text, Get::HealthSince, "since when that is so, in UTC"),
    of_device("device.dram", BYTES, Get::Used(MemorySpace::Dram), "DRAM in use, by whomever"),
    of_device("device.dram_free", BYTES, Get::Free(MemorySpace::Dram), "DRAM that is free"),
    of_device("device.dram_capacity", BYTES, Get::Capacity(MemorySpace::Dram), "DRAM there is"),
    of_device("device.dram_share", SHARE, Get::UsedShare(MemorySpace::Dram), "share of its DRAM that is in use"),
    of_device("device.l1", BYTES, Get::Used(MemorySpace::L1), "L1 in use, by whomever"),
    of_device("device.l1_free", BYTES, Get::Free(MemorySpace::L1), "L1 that is free"),
    of_device("device.l1_capacity", BYTES, Get::Capacity(MemorySpace::L1), "L1 there is"),
    of_device("device.l1_share", SHARE, Get::UsedShare(MemorySpace::L1), "share of its L1 that is in use"),
    of_device("device.host", BYTES, Get::Used(MemorySpace::Host), "host memory that processes lend it"),
    of_device("device.host_capacity", BYTES, Get::Capacity(MemorySpace::Host), "host memory that it can use"),
];

impl Field {
    /// All fields.
    #[must_use]
    pub fn all() -> &'static [Self] {
        &FIELDS
    }

    /// What it holds for a process, for what that has on one device, and for the device.
    #[must_use]
    pub fn read<'a>(
        &self,
        process: Option<&'a Process>,
        held: Option<&'a HeldDevice>,
        device: Option<&'a Device>,
    ) -> Value<'a> {
        Subject { process, held, device }.value(self)
    }

    /// Whether it can differ from one device of a process to the next.
    #[must_use]
    pub fn is_by_device(&self) -> bool {
        self.owner == Owner::Device
            || matches!(
                self.get,
                Get::Accounting
                    | Get::HeldSpace(_)
                    | Get::HeldKind(_)
                    | Get::HeldPeak
                    | Get::HeldBuffers
                    | Get::HeldAllocations
                    | Get::HeldFailed
                    | Get::HeldBusy
            )
    }

    /// Whether it is of what a process uses of its host, which is read only where it is asked for.
    #[must_use]
    pub fn is_of_usage(&self) -> bool {
        matches!(self.get, Get::Usage(_))
    }

    /// Whether it holds how a device is, which takes a look at its heartbeat for some time.
    #[must_use]
    pub fn is_of_health(&self) -> bool {
        matches!(self.get, Get::Faults | Get::Health | Get::HealthCause | Get::HealthSince)
    }

    /// Whether its value is the difference of two snapshots, so that the first one has none.
    #[must_use]
    pub fn is_rate(&self) -> bool {
        self.get == Get::Usage(UsageValue::Cpu)
            || matches!(self.kind, FieldKind::Number(Dimension::Rate))
    }

    /// Whether its numbers are whole ones.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        match (self.get, self.kind) {
            (Get::Sensor(sensor), _) => sensor.is_whole(),
            (_, FieldKind::Number(dimension)) => {
                matches!(dimension, Dimension::Bytes | Dimension::Rate | Dimension::Count)
            }
            _ => false,
        }
    }

    /// The field with this name, in any case.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        FIELDS.iter().find(|field| field.name.eq_ignore_ascii_case(name))
    }

    /// The field whose name is closest to `name`, if one is close.
    #[must_use]
    pub fn close_to(name: &str) -> Option<&'static Self> {
        let name = name.to_ascii_lowercase();
        let names = || FIELDS.iter().map(|field| field.name);
        // A beginning of two letters or more: the shortest of the names that have it.
        let is_begun = |known: &&str| name.len() > 1 && known.starts_with(&name);
        let begun = || names().filter(is_begun).min_by_key(|known| known.len());
        nearest(&name, names()).or_else(begun).and_then(Self::named)
    }
}

impl FieldKind {
    /// The base unit, in which its numbers are; none where there is no unit to speak of.
    #[must_use]
    pub fn unit(self) -> Option<&'static str> {
        match self {
            Self::Number(Dimension::Count | Dimension::Share) | Self::Text | Self::Word(_) => None,
            Self::Number(Dimension::Time) => Some("s"),
            Self::Number(dimension) => dimension.units().next(),
        }
    }

    /// The words for what can be compared with it.
    #[must_use]
    pub fn words(self) -> String {
        match self {
            Self::Text => String::from("text"),
            Self::Word(words) => words.join(", "),
            // What is counted has no unit that anybody asks for.
            Self::Number(Dimension::Count) => Dimension::Count.words().to_owned(),
            Self::Number(dimension) => {
                let units: Vec<_> = dimension.units().collect();
                format!("{} ({})", dimension.words(), units.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FIELDS, Field};
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_can_be_typed() {
        let names: BTreeSet<_> = FIELDS.iter().map(|field| field.name).collect();
        assert_eq!(names.len(), FIELDS.len());
        let fits = |name: &str| {
            name.bytes()
                .all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || b"_.".contains(&it))
        };
        assert!(names.iter().all(|name| fits(name)));
    }

    #[test]
    fn a_slip_finds_the_field_that_was_meant() {
        for (slip, meant) in [
            ("usr", Some("user")),
            ("temprature", Some("temperature")),
            ("zzz", None),
            ("temp", Some("temperature")),
            ("up", Some("uptime")),
            ("u", None),
            ("", None),
        ] {
            assert_eq!(Field::close_to(slip).map(|field| field.name), meant, "{slip}");
        }
    }
}
