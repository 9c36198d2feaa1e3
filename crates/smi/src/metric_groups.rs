//! The groups of metrics that `dmon` and `pmon` show by a letter, after nvidia-smi's letters. Which
//! sensors a group has follows from their declarations: a new sensor joins the group of its unit.

use telltale_query::Field;
use telltale_schema::metric::{MetricKind, Unit};
use telltale_schema::sensor::{SENSORS, Sensor};

use crate::columns::RowsOf;

/// Metrics that are shown together.
#[derive(Debug)]
struct MetricGroup {
    letter: char,
    meaning: &'static str,
    /// Whether a sensor of devices is among them.
    has: fn(&Sensor) -> bool,
    /// Fields beside sensors.
    fields: &'static [&'static str],
}

const OF_DEVICES: [MetricGroup; 6] = [
    MetricGroup {
        letter: 'p',
        meaning: "power and temperature",
        has: |sensor| {
            matches!(sensor.metric.unit, Unit::Watts | Unit::Celsius) && sensor.part.is_none()
        },
        fields: &[],
    },
    MetricGroup {
        letter: 'u',
        meaning: "utilisation",
        has: |sensor| sensor.metric.unit == Unit::Ratio && sensor.part == Some("load"),
        fields: &["device.dram_share", "device.l1_share"],
    },
    MetricGroup {
        letter: 'c',
        meaning: "clocks",
        has: |sensor| sensor.metric.unit == Unit::Hertz,
        fields: &[],
    },
    MetricGroup {
        letter: 'm',
        meaning: "memory",
        has: |sensor| sensor.metric.unit == Unit::Bytes && sensor.metric.kind == MetricKind::Gauge,
        fields: &["device.dram", "device.dram_capacity", "device.l1", "device.l1_capacity"],
    },
    MetricGroup {
        letter: 'e',
        meaning: "errors",
        has: |sensor| {
            let is_part = matches!(sensor.part, Some("memory_counts" | "errors"));
            is_part && sensor.metric.kind == MetricKind::Counter
        },
        fields: &["thermal_trips", "fault"],
    },
    MetricGroup {
        letter: 't',
        meaning: "PCIe and NVLink traffic",
        has: |sensor| sensor.metric.unit == Unit::BytesPerSecond,
        fields: &[],
    },
];

const OF_PROCESSES: [MetricGroup; 2] = [
    MetricGroup { letter: 'u', meaning: "utilisation", has: |_| false, fields: &["busy", "cpu"] },
    MetricGroup { letter: 'm', meaning: "memory", has: |_| false, fields: &["dram", "l1", "rss"] },
];

/// Why these are no groups.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MetricGroupsError {
    /// No group has this letter.
    #[error("there is no group `{letter}`; choose from {known}")]
    Unknown {
        /// What was asked for.
        letter: char,
        /// All groups, with their letters.
        known: String,
    },
    /// Nothing was asked for.
    #[error("no group is named; choose from {0}")]
    Nothing(String),
}

/// The fields of the groups of these letters, in the letters' order, each once.
pub(crate) fn fields(
    rows: RowsOf,
    letters: &str,
) -> Result<Vec<&'static Field>, MetricGroupsError> {
    let groups: &[MetricGroup] = match rows {
        RowsOf::Devices => &OF_DEVICES,
        RowsOf::Processes => &OF_PROCESSES,
    };
    let known = || {
        let all = groups.iter().map(|group| format!("{} ({})", group.letter, group.meaning));
        all.collect::<Vec<_>>().join(", ")
    };
    let mut fields: Vec<&'static Field> = Vec::new();
    // nvidia-smi takes the letters with commas between them too.
    for letter in letters.chars().filter(|letter| !matches!(letter, ',' | ' ')) {
        let group = groups.iter().find(|group| group.letter == letter);
        let group = group.ok_or_else(|| MetricGroupsError::Unknown { letter, known: known() })?;
        for field in group.fields() {
            if !fields.contains(&field) {
                fields.push(field);
            }
        }
    }
    if fields.is_empty() { Err(MetricGroupsError::Nothing(known())) } else { Ok(fields) }
}

impl MetricGroup {
    /// Sensors in the order of their declarations, then the others.
    fn fields(&self) -> impl Iterator<Item = &'static Field> {
        let sensors = SENSORS.iter().filter(|sensor| (self.has)(sensor) && !sensor.is_limit());
        let names = sensors.map(|sensor| sensor.name).chain(self.fields.iter().copied());
        names.map(|name| Field::named(name).expect("groups name fields there are"))
    }
}

#[cfg(test)]
mod tests {
    use super::{MetricGroupsError, fields};
    use crate::columns::RowsOf;

    fn names(rows: RowsOf, letters: &str) -> Vec<&'static str> {
        fields(rows, letters).unwrap().iter().map(|field| field.name).collect()
    }

    #[test]
    fn groups_have_the_sensors_of_their_kind_and_no_limits() {
        let of = |letters| names(RowsOf::Devices, letters);
        assert_eq!(of("p"), ["temperature", "power"]);
        let busy = ["busy", "memory_busy", "encoder", "decoder"];
        assert_eq!(of("u"), [&busy[..], &["device.dram_share", "device.l1_share"]].concat());
        assert_eq!(of("c"), ["clock", "axiclk", "arcclk", "memory_clock"]);
        assert_eq!(
            of("t,p,t"),
            ["pcie_rx", "pcie_tx", "nvlink_rx", "nvlink_tx", "temperature", "power"]
        );
        let errors = [
            "corrected_errors",
            "uncorrected_errors",
            "corrected_lifetime",
            "uncorrected_lifetime",
            "sram_errors",
            "sram_lifetime",
            "xid_errors",
            "xid_hardware",
            "pcie_replays",
            "thermal_trips",
            "fault",
        ];
        assert_eq!(of("e"), errors);
        assert_eq!(of("m").len(), 4);
        assert_eq!(names(RowsOf::Processes, "mu"), ["dram", "l1", "rss", "busy", "cpu"]);
    }

    #[test]
    fn what_is_no_group_is_refused_with_all_there_are() {
        let error = fields(RowsOf::Devices, "pz").unwrap_err();
        assert!(matches!(error, MetricGroupsError::Unknown { letter: 'z', .. }), "{error}");
        let error = fields(RowsOf::Processes, "p").unwrap_err().to_string();
        let expected = "there is no group `p`; choose from u (utilisation), m (memory)";
        assert_eq!(error, expected);
        assert!(matches!(fields(RowsOf::Devices, ","), Err(MetricGroupsError::Nothing(_))));
    }
}
