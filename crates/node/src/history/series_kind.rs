//! What the history keeps of machines, devices and processes: one number for each kind of series,
//! with its metric, its label, its scale, and where in a snapshot it is.

use telltale_schema::clock::Timestamp;
use telltale_schema::memory::{MemoryKind, MemorySpace};
use telltale_schema::metric::MetricDefinition;
use telltale_schema::metric::definitions as defined;
use telltale_schema::reading::Reading;
use telltale_schema::sensor::{SENSORS, Sensor, SensorValue};
use telltale_schema::snapshot::Telemetry;

use super::samples::Item;

/// One kind of series. [`Self::code`] is its number in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SeriesKind {
    /// A sensor of a device.
    Sensor(&'static Sensor),
    /// Bytes in use of a space of a device.
    SpaceUsed(MemorySpace),
    /// Bytes that a space of a device has.
    SpaceCapacity(MemorySpace),
    /// Bytes in use of a kind on a device.
    KindTotal(MemoryKind),
    /// The part of it that a region has in its total and in no row.
    KindUnattributed(MemoryKind),
    /// The part of it that the dead still hold.
    KindGhost(MemoryKind),
    /// Buffers of a kind on a device.
    KindBuffers(MemoryKind),
    /// Bytes that a process has of a kind on a device.
    Live(MemoryKind),
    /// The same of a space.
    SpaceLive(MemorySpace),
    /// Buffers that a process has on a device.
    Buffers,
    /// How much is known of a process's memory on a device, by its place in the enumeration.
    Accounting,
    /// How many descriptors of a device a process has open.
    OpenDescriptors,
    /// Whether a process lives or is hidden.
    State,
    /// A count of recording faults, by its place in [`FAULTS`]; 0 where it is not there.
    Fault(usize),
    /// Processes of a machine that were closed to the service.
    Closed,
    /// Processes of a machine of which nothing distinguishes them from others, so that they are not
    /// kept.
    Anonymous,
}

/// Measures are kept in thousandths of a degree, a watt, an ampere, a volt, a share.
const MEASURE_SCALE: f64 = 1000.0;

/// How many kinds of faults there are: double frees, unknown frees, reused live addresses,
/// unrecorded events.
pub(crate) const FAULTS: usize = 4;

/// A whole number as the history keeps it: at most the largest that SQLite has.
pub(crate) fn kept(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A reading of a whole number as a sample.
pub(crate) fn whole(reading: &Reading<u64>) -> Item {
    match reading {
        Reading::Value { value, .. } => Item::Value(kept(*value)),
        Reading::Absent { absent, .. } => Item::Absent(*absent),
    }
}

/// A sample as a reading of a whole number.
pub(crate) fn reading(item: Item, at: Timestamp) -> Reading<i64> {
    match item {
        Item::Value(value) => Reading::new(value, at),
        Item::Absent(reason) => Reading::absent(reason, ""),
    }
}

/// What a sensor says as a sample; nothing where the device has no such part. Measures are kept in thousandths.
pub(crate) fn of_sensor(sensor: &Sensor, telemetry: &Telemetry) -> Option<Item> {
    Some(match sensor.read(telemetry)? {
        Reading::Value { value: SensorValue::Whole(value), .. } => Item::Value(kept(value)),
        // A float that does not fit becomes the nearest whole number, none is 0.
        Reading::Value { value: SensorValue::Float(value), .. } => {
            Item::Value((value * MEASURE_SCALE).round() as i64)
        }
        Reading::Absent { absent, .. } => Item::Absent(absent),
    })
}

/// Puts a sample of a sensor back.
pub(crate) fn put_sensor(sensor: &Sensor, telemetry: &mut Telemetry, item: Item, at: Timestamp) {
    let value = |kept: i64| match sensor.is_whole() {
        true => SensorValue::Whole(u64::try_from(kept).unwrap_or(0)),
        false => SensorValue::Float(kept as f64 / MEASURE_SCALE),
    };
    sensor.put(telemetry, reading(item, at).map(value));
}

/// The sensors that are kept.
pub(crate) fn sensors() -> impl Iterator<Item = &'static Sensor> {
    SENSORS.iter().filter(|sensor| sensor.history.is_some())
}

// === impl SeriesKind ===

impl SeriesKind {
    /// The number in the database.
    pub(crate) fn code(self) -> u16 {
        let place = |place: usize| u16::try_from(place).expect("tables here are short");
        match self {
            Self::Closed => 1,
            Self::Anonymous => 2,
            Self::State => 16,
            Self::Fault(which) => 17 + place(which),
            Self::Buffers => 32,
            Self::Accounting => 33,
            Self::OpenDescriptors => 34,
            Self::SpaceLive(space) => 40 + space_place(space),
            Self::Live(kind) => 64 + kind.code(),
            Self::SpaceUsed(space) => 128 + space_place(space),
            Self::SpaceCapacity(space) => 136 + space_place(space),
            Self::Sensor(sensor) => 160 + sensor.history.expect("only such sensors are kept"),
            Self::KindTotal(kind) => 256 + kind.code(),
            Self::KindUnattributed(kind) => 320 + kind.code(),
            Self::KindGhost(kind) => 384 + kind.code(),
            Self::KindBuffers(kind) => 448 + kind.code(),
        }
    }

    /// The metric with this number; `None` for one that a newer version may know.
    pub(crate) fn from_code(code: u16) -> Option<Self> {
        let kind = |first: u16| MemoryKind::from_code(code - first);
        let space = |first: u16| MemorySpace::ALL.get(usize::from(code - first)).copied();
        let below = |first: u16, end: usize| {
            let place = usize::from(code - first);
            (place < end).then_some(place)
        };
        match code {
            1 => Some(Self::Closed),
            2 => Some(Self::Anonymous),
            16 => Some(Self::State),
            17..32 => below(17, FAULTS).map(Self::Fault),
            32 => Some(Self::Buffers),
            33 => Some(Self::Accounting),
            34 => Some(Self::OpenDescriptors),
            40..64 => space(40).map(Self::SpaceLive),
            64..128 => kind(64).map(Self::Live),
            128..136 => space(128).map(Self::SpaceUsed),
            136..160 => space(136).map(Self::SpaceCapacity),
            160..256 => {
                sensors().find(|sensor| sensor.history == Some(code - 160)).map(Self::Sensor)
            }
            256..320 => kind(256).map(Self::KindTotal),
            320..384 => kind(320).map(Self::KindUnattributed),
            384..448 => kind(384).map(Self::KindGhost),
            448..512 => kind(448).map(Self::KindBuffers),
            _ => None,
        }
    }

    /// The metric that it is a series of; none for what only puts snapshots together again.
    pub(crate) fn definition(self) -> Option<&'static MetricDefinition> {
        Some(match self {
            Self::Sensor(sensor) => sensor.metric,
            Self::SpaceUsed(_) | Self::KindTotal(_) => defined::DEVICE_MEMORY_USED_BYTES,
            Self::SpaceCapacity(_) => defined::DEVICE_MEMORY_CAPACITY_BYTES,
            Self::KindUnattributed(_) => defined::DEVICE_MEMORY_UNATTRIBUTED_BYTES,
            Self::KindGhost(_) => defined::DEVICE_MEMORY_GHOST_BYTES,
            Self::KindBuffers(_) => defined::DEVICE_MEMORY_BUFFERS,
            Self::Live(_) | Self::SpaceLive(_) => defined::PROCESS_MEMORY_LIVE_BYTES,
            Self::Buffers => defined::PROCESS_MEMORY_BUFFERS,
            Self::Accounting
            | Self::OpenDescriptors
            | Self::State
            | Self::Fault(_)
            | Self::Closed
            | Self::Anonymous => return None,
        })
    }

    /// The sensor that it is a series of.
    pub(crate) const fn sensor(self) -> Option<&'static Sensor> {
        match self {
            Self::Sensor(sensor) => Some(sensor),
            _ => None,
        }
    }

    /// What distinguishes it from other series of its metric and subject: a label's name and value.
    pub(crate) fn label(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Sensor(sensor) => sensor.label,
            Self::SpaceUsed(space) | Self::SpaceCapacity(space) | Self::SpaceLive(space) => {
                Some(("space", space.name()))
            }
            Self::KindTotal(kind)
            | Self::KindUnattributed(kind)
            | Self::KindGhost(kind)
            | Self::KindBuffers(kind)
            | Self::Live(kind) => Some(("kind", kind.name())),
            _ => None,
        }
    }

    /// How many of the kept units make one of the metric's.
    pub(crate) fn scale(self) -> f64 {
        match self {
            Self::Sensor(sensor) if !sensor.is_whole() => MEASURE_SCALE,
            _ => 1.0,
        }
    }
}

fn space_place(space: MemorySpace) -> u16 {
    match space {
        MemorySpace::Dram => 0,
        MemorySpace::L1 => 1,
        MemorySpace::Host => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::{SeriesKind, of_sensor, put_sensor, sensors};
    use crate::history::samples::Item;
    use std::collections::BTreeSet;
    use telltale_schema::clock::Timestamp;
    use telltale_schema::reading::{Absence, Reading};
    use telltale_schema::snapshot::{Load, Telemetry};

    #[test]
    fn every_number_is_one_value_and_every_series_has_its_own_name() {
        let series_kinds: Vec<SeriesKind> =
            (0..u16::MAX).filter_map(SeriesKind::from_code).collect();
        assert_eq!(series_kinds.len(), 2 + 1 + 4 + 3 + 3 + 9 + 3 + 3 + sensors().count() + 4 * 9);
        let mut names = BTreeSet::new();
        for series_kind in series_kinds {
            assert_eq!(SeriesKind::from_code(series_kind.code()), Some(series_kind));
            if let Some(definition) = series_kind.definition() {
                assert!(names.insert((definition.name, series_kind.label())), "{series_kind:?}");
            }
        }
    }

    #[test]
    fn sensors_survive_to_a_thousandth_with_the_reason_for_what_is_absent() {
        let mut telemetry = Telemetry::absent(Absence::TimedOut, "");
        telemetry.temperature_celsius = Reading::new(-3.125, Timestamp(9));
        telemetry.aiclk_hertz = Reading::new(1_350_000_000, Timestamp(9));
        let mut found = Telemetry::absent(Absence::NotKept, "");
        for sensor in sensors() {
            if let Some(item) = of_sensor(sensor, &telemetry) {
                put_sensor(sensor, &mut found, item, Timestamp(9));
            }
        }
        telemetry.heartbeat_total = Reading::absent(Absence::NotKept, "");
        assert_eq!(found, telemetry);
        let huge = Telemetry { power_watts: Reading::new(1e300, Timestamp(1)), ..telemetry };
        let power = sensors().find(|sensor| sensor.field == "power_watts").unwrap();
        assert_eq!(of_sensor(power, &huge), Some(Item::Value(i64::MAX)));
    }

    #[test]
    fn a_device_that_never_reports_how_busy_it_is_has_no_series_of_it() {
        let mut telemetry = Telemetry::absent(Absence::Unsupported, "");
        let of_load =
            || sensors().filter(|sensor| [13, 14, 15].map(Some).contains(&sensor.history));
        assert!(of_load().all(|sensor| of_sensor(sensor, &telemetry).is_none()));
        let mut load = Load::absent(Absence::NotKept, "");
        load.busy_ratio = Reading::new(0.375, Timestamp(9));
        load.memory_busy_ratio = Reading::absent(Absence::Unsupported, "");
        load.memory_clock_hertz = Reading::new(1_593_000_000, Timestamp(9));
        telemetry.load = Some(Box::new(load));
        let mut found = Telemetry::absent(Absence::Unsupported, "");
        for sensor in of_load() {
            let item = of_sensor(sensor, &telemetry).unwrap();
            put_sensor(sensor, &mut found, item, Timestamp(9));
        }
        assert_eq!(found, telemetry);
    }
}
