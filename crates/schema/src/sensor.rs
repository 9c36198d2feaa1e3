//! Sensors of devices, each declared once (`sensors.toml`): what is shown, kept and asked of them loops over these.

/// Where a sensor of this kind of number is: in all telemetry, or in a part of it.
macro_rules! access {
    ($kind:ident, $field:ident) => {
        FieldPath::$kind(|telemetry| Some(&telemetry.$field), |telemetry| &mut telemetry.$field)
    };
    ($kind:ident, $part:ident: $of:ident, $field:ident) => {
        FieldPath::$kind(
            |telemetry| telemetry.$part.as_ref().map(|part| &part.$field),
            |telemetry| {
                let made = || Box::new($of::absent(Absence::NotKept, ""));
                &mut telemetry.$part.get_or_insert_with(made).$field
            },
        )
    };
}

/// The sensors.
mod definitions;

use std::fmt;

pub use definitions::SENSORS;

use crate::metric::{MetricDefinition, Unit};
use crate::quantity;
use crate::reading::Reading;
use crate::snapshot::Telemetry;

/// A reading that each device has at most one of.
pub struct Sensor {
    /// Where a snapshot has it, in JSON and in Rust.
    pub field: &'static str,
    /// The part of the telemetry that has it, where not all devices have that part.
    pub part: Option<&'static str>,
    /// Its number in the message of that part.
    pub proto: u32,
    /// The metric of which it is a series; its unit is the metric's.
    pub metric: &'static MetricDefinition,
    /// What distinguishes it from other series of that metric of the same device: a label's name and value.
    pub label: Option<(&'static str, &'static str)>,
    /// Its number in the history's databases; it is not kept without one.
    pub history: Option<u16>,
    /// What people read in details.
    pub title: &'static str,
    /// What queries call it.
    pub name: &'static str,
    /// What it means.
    pub help: &'static str,
    /// How many decimals are shown.
    pub decimals: usize,
    /// What stands above its column or graph.
    pub heading: &'static str,
    /// Whether tables of devices have a column of it.
    pub is_column: bool,
    /// Whether it is among what is drawn over time.
    pub is_graph: bool,
    /// Whether rows of devices in CSV have it without being asked.
    pub is_csv: bool,
    limit: Option<&'static str>,
    access: FieldPath,
}

/// Where it is in the telemetry of a device.
enum FieldPath {
    Float(fn(&Telemetry) -> Option<&Reading<f64>>, fn(&mut Telemetry) -> &mut Reading<f64>),
    Whole(fn(&Telemetry) -> Option<&Reading<u64>>, fn(&mut Telemetry) -> &mut Reading<u64>),
}

/// A sensor's reading in a snapshot.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SensorReading<'a> {
    /// Of a measure.
    Float(&'a Reading<f64>),
    /// Of a count, or a measure in whole units.
    Whole(&'a Reading<u64>),
}

/// What a sensor says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SensorValue {
    /// A measure.
    Float(f64),
    /// A count, or a measure in whole units.
    Whole(u64),
}

// === impl Sensor ===

impl Sensor {
    /// Its reading of a device; nothing where the device has no such part.
    pub fn reading<'a>(&self, telemetry: &'a Telemetry) -> Option<SensorReading<'a>> {
        match self.access {
            FieldPath::Float(of, _) => of(telemetry).map(SensorReading::Float),
            FieldPath::Whole(of, _) => of(telemetry).map(SensorReading::Whole),
        }
    }

    /// The same as one of any value.
    pub fn read(&self, telemetry: &Telemetry) -> Option<Reading<SensorValue>> {
        self.reading(telemetry).map(|reading| match reading {
            SensorReading::Float(reading) => reading.clone().map(SensorValue::Float),
            SensorReading::Whole(reading) => reading.clone().map(SensorValue::Whole),
        })
    }

    /// The value that it has of a device, if it has one.
    pub fn value(&self, telemetry: &Telemetry) -> Option<SensorValue> {
        match self.reading(telemetry)? {
            SensorReading::Float(reading) => reading.value().copied().map(SensorValue::Float),
            SensorReading::Whole(reading) => reading.value().copied().map(SensorValue::Whole),
        }
    }

    /// The device's limit of it, where one is known.
    pub fn limit(&self, telemetry: &Telemetry) -> Option<f64> {
        let limit = SENSORS.iter().find(|sensor| Some(sensor.field) == self.limit)?;
        limit.value(telemetry).map(SensorValue::as_f64)
    }

    /// Whether it is the limit of another one: it never changes.
    pub fn is_limit(&self) -> bool {
        SENSORS.iter().any(|other| other.limit == Some(self.field))
    }

    /// The value at which a graph of it is full: the limit, or the whole of a share.
    pub fn full(&self, telemetry: &Telemetry) -> Option<f64> {
        match self.metric.unit {
            Unit::Ratio => Some(1.0),
            _ => self.limit(telemetry),
        }
    }

    /// A value as people read it, and its unit: `71.5` and `C`, `1000` and `MHz`, `83` and `%`.
    pub fn parts(&self, value: f64, decimals: usize) -> (String, &'static str) {
        let (number, unit) = match self.metric.unit {
            Unit::Celsius => (value, "C"),
            Unit::Watts => (value, "W"),
            Unit::Amperes => (value, "A"),
            Unit::Volts => (value, "V"),
            Unit::Joules => (value, "J"),
            Unit::Seconds => (value, "s"),
            Unit::RevolutionsPerMinute => (value, "rpm"),
            Unit::Hertz => (value / 1e6, "MHz"),
            Unit::Ratio => (value * 100.0, "%"),
            Unit::Bytes => return (quantity::bytes(SensorValue::Float(value).as_u64()), ""),
            Unit::BytesPerSecond => {
                return (quantity::bytes(SensorValue::Float(value).as_u64()) + "/s", "");
            }
            Unit::Count | Unit::None => {
                return (quantity::count(SensorValue::Float(value).as_u64()), "");
            }
        };
        (format!("{number:.decimals$}"), unit)
    }

    /// The same in one piece: `71.5 C`.
    pub fn text(&self, value: f64, decimals: usize) -> String {
        let (number, unit) = self.parts(value, decimals);
        format!("{number} {unit}").trim_end().to_owned()
    }

    /// Whether it is among what a check of all devices shows, or the limit of such a one.
    pub fn is_main(&self) -> bool {
        let is_shown = |sensor: &Self| sensor.is_column || sensor.is_csv;
        is_shown(self)
            || SENSORS.iter().any(|other| is_shown(other) && other.limit == Some(self.field))
    }

    /// Whether it is a whole number.
    pub const fn is_whole(&self) -> bool {
        matches!(self.access, FieldPath::Whole(..))
    }

    /// Puts a reading into the telemetry of a device. A part that was not there is made, with all else in it not kept.
    pub fn put(&self, telemetry: &mut Telemetry, reading: Reading<SensorValue>) {
        match self.access {
            FieldPath::Float(_, place) => *place(telemetry) = reading.map(SensorValue::as_f64),
            FieldPath::Whole(_, place) => *place(telemetry) = reading.map(SensorValue::as_u64),
        }
    }
}

impl fmt::Debug for Sensor {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "Sensor({})", self.field)
    }
}

impl PartialEq for Sensor {
    fn eq(&self, other: &Self) -> bool {
        self.field == other.field
    }
}

impl Eq for Sensor {}

impl SensorValue {
    /// As a float. Beyond 2^53 a whole number is rounded.
    #[must_use]
    pub const fn as_f64(self) -> f64 {
        match self {
            Self::Float(value) => value,
            Self::Whole(value) => value as f64,
        }
    }

    /// As a whole number, the nearest one from 0 on.
    #[must_use]
    pub fn as_u64(self) -> u64 {
        match self {
            Self::Float(value) => value.round() as u64,
            Self::Whole(value) => value,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::clock::Timestamp;
    use crate::reading::Absence;

    #[test]
    fn each_sensor_has_a_place_of_its_own() {
        for sensor in SENSORS {
            let mut telemetry = Telemetry::absent(Absence::NotKept, "");
            let value =
                if sensor.is_whole() { SensorValue::Whole(7) } else { SensorValue::Float(7.5) };
            sensor.put(&mut telemetry, Reading::new(value, Timestamp(3)));
            assert_eq!(sensor.value(&telemetry), Some(value), "{sensor:?}");
            let others = SENSORS.iter().filter(|other| *other != sensor);
            for other in others {
                assert_eq!(other.value(&telemetry), None, "{sensor:?}, {other:?}");
            }
        }
    }

    #[test]
    fn no_two_sensors_have_a_name_a_number_or_a_series_in_common() {
        let names: BTreeSet<&str> = SENSORS.iter().map(|sensor| sensor.name).collect();
        let series: BTreeSet<_> =
            SENSORS.iter().map(|sensor| (sensor.metric.name, sensor.label)).collect();
        assert_eq!([names.len(), series.len()], [SENSORS.len(); 2]);
        let mut numbers: Vec<u16> = SENSORS.iter().filter_map(|sensor| sensor.history).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..).take(numbers.len()).collect::<Vec<u16>>());
    }

    #[test]
    fn a_limit_is_a_sensor_of_the_same_unit() {
        for sensor in SENSORS {
            let Some(field) = sensor.limit else { continue };
            let limit = SENSORS.iter().find(|other| other.field == field).unwrap();
            assert_eq!((limit.metric.unit, limit.part), (sensor.metric.unit, sensor.part));
            let mut telemetry = Telemetry::absent(Absence::NotKept, "");
            assert_eq!(sensor.limit(&telemetry), None);
            limit.put(&mut telemetry, Reading::new(SensorValue::Float(95.5), Timestamp(3)));
            assert_eq!(sensor.limit(&telemetry), Some(95.5));
        }
    }

    #[test]
    fn values_are_read_with_their_unit() {
        for (field, value, text) in [
            ("temperature_celsius", 71.25, "71.2 C"),
            ("aiclk_hertz", 1.0e9, "1000 MHz"),
            ("busy_ratio", 0.834, "83 %"),
            ("thermal_trips_total", 12_345.0, "12,345"),
            ("pcie_sent_bytes_per_second", 1_572_864.0, "1.5 MiB/s"),
        ] {
            let sensor = SENSORS.iter().find(|sensor| sensor.field == field).unwrap();
            assert_eq!(sensor.text(value, sensor.decimals), text);
        }
    }

    #[test]
    fn a_sensor_is_a_field_of_the_json() {
        let mut telemetry = Telemetry::absent(Absence::NotKept, "");
        for sensor in SENSORS {
            sensor.put(&mut telemetry, Reading::absent(Absence::TimedOut, ""));
        }
        let json = serde_json::to_value(&telemetry).unwrap();
        for sensor in SENSORS {
            let parts = ["load", "memory_counts", "link", "power", "errors", "nvlink"];
            let parts = parts.map(|part| &json[part]).into_iter().chain([&json]);
            let found = parts.filter(|part| part.get(sensor.field).is_some()).count();
            assert_eq!(found, 1, "{sensor:?}");
        }
    }
}
