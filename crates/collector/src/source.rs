//! What every source of devices says, whichever maker's they are.

use telltale_schema::chip::ChipFacts;
use telltale_schema::device::DeviceIdentity;
use telltale_schema::health::Fault;
use telltale_schema::memory::MemoryKind;
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::{Device, Holder, SourceStatus, Telemetry};

/// What a source says of one device.
#[derive(Debug, Clone)]
pub struct DeviceReading {
    /// Who it is.
    pub identity: DeviceIdentity,
    /// What the type of a Tenstorrent board reports.
    pub facts: Reading<ChipFacts>,
    /// What its sensors say.
    pub telemetry: Telemetry,
    /// Who has it open.
    pub holders: Reading<Vec<Holder>>,
    /// What the driver counts of its memory; none where it counts nothing, as Tenstorrent's.
    pub memory: Option<DriverMemory>,
    /// What is wrong with it as a whole.
    pub faults: Vec<Fault>,
}

/// What a driver counts of a device's own memory.
#[derive(Debug, Clone)]
pub struct DriverMemory {
    /// In use, by any process.
    pub used_bytes: Reading<u64>,
    /// What there is.
    pub capacity_bytes: Reading<u64>,
    /// What processes have, each once.
    pub processes: Vec<DriverUsage>,
}

/// What a driver counts for one process.
#[derive(Debug, Clone, PartialEq)]
pub struct DriverUsage {
    /// Its pid in our PID namespace.
    pub pid: u32,
    /// Bytes by kind: the device's own memory is DRAM, the host's that it uses system memory.
    /// Empty where the driver does not count them.
    pub kinds: Vec<(MemoryKind, u64)>,
    /// The share of the last second in which its work ran, 0 to 1, where the driver counts it.
    pub busy_ratio: Option<f64>,
}

/// What a source says of the machine.
#[derive(Debug, Clone)]
pub struct SourceReading {
    /// Its devices, in a stable order.
    pub devices: Vec<DeviceReading>,
    /// How it went.
    pub status: SourceStatus,
    /// Why it has no device, where it has none; for a person.
    pub absent: Option<String>,
}

/// One place that readings of devices come from.
pub trait HardwareSource: Send {
    /// Its name in snapshots.
    fn name(&self) -> &'static str;

    /// Reads every device once, within the time that it was given.
    fn read(&mut self) -> SourceReading;

    /// Reads who holds the devices; the rest is as it was read last, with its own time. None where
    /// the source cannot read that without touching the driver: then all is as it was read last.
    fn read_holders(&mut self) -> Option<SourceReading> {
        None
    }

    /// Reads the devices' heartbeats, for [`Self::awaits_heartbeats`].
    fn read_heartbeats(&mut self) {}

    /// Whether a device has a heartbeat that has not been seen to count, and which may still do so.
    fn awaits_heartbeats(&self) -> bool {
        false
    }

    /// Takes over what another reader of this machine, which has watched it for longer, knows of its
    /// devices' faults.
    fn learn_faults(&mut self, _devices: &[Device]) {}
}

// === impl DeviceReading ===

impl DeviceReading {
    /// A device of which nothing but its identity is known.
    pub fn new(identity: impl Into<DeviceIdentity>) -> Self {
        let unsaid = "the driver does not say";
        Self {
            identity: identity.into(),
            facts: Reading::absent(Absence::Unsupported, "known of Tenstorrent boards alone"),
            telemetry: Telemetry::absent(Absence::Unsupported, unsaid),
            holders: Reading::absent(Absence::Unsupported, unsaid),
            memory: None,
            faults: Vec::new(),
        }
    }
}
