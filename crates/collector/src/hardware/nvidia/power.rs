//! Energy that a GPU used, and what its power can be limited to.

use nvml_wrapper::Device;
use telltale_schema::clock::Timestamp;
use telltale_schema::reading::Reading;
use telltale_schema::snapshot::Power;

use super::complaints::Complaints;
use super::library::Said;
use super::question::Question;

/// More than any GPU may draw.
pub(super) const MAX_MILLIWATTS: u32 = 3_000_000;

/// What NVML said of them.
#[derive(Debug)]
pub(super) struct PowerCounts {
    /// In millijoules, since the driver was loaded.
    energy: Said<u64>,
    /// In milliwatts.
    default: Said<u32>,
    /// The lowest and the highest limit, in milliwatts.
    range: Said<(u32, u32)>,
}

// === impl PowerCounts ===

impl PowerCounts {
    pub(super) fn of(device: &Device<'_>) -> Self {
        let range = device.power_management_limit_constraints();
        Self {
            energy: device.total_energy_consumption(),
            default: device.power_management_limit_default(),
            range: range.map(|range| (range.min_limit, range.max_limit)),
        }
    }

    pub(super) fn readings(self, now: Timestamp, complaints: &mut Complaints<'_>) -> Power {
        const QUESTION: Question = Question::Energy;
        let watts = |milliwatts: Reading<u32>| milliwatts.map(|it| f64::from(it) / 1e3);
        let range = complaints
            .reading(QUESTION, self.range, now, |(min, max)| min <= max && *max <= MAX_MILLIWATTS);
        let default =
            complaints.reading(QUESTION, self.default, now, |limit| *limit <= MAX_MILLIWATTS);
        let energy = complaints.reading(QUESTION, self.energy, now, |_| true);
        Power {
            energy_joules_total: energy.map(joules),
            power_limit_default_watts: watts(default),
            power_limit_min_watts: watts(range.clone().map(|(min, _)| min)),
            power_limit_max_watts: watts(range.map(|(_, max)| max)),
        }
    }
}

/// Exact to the millijoule for 285 years at one kilowatt.
#[allow(clippy::cast_precision_loss)]
fn joules(millijoules: u64) -> f64 {
    millijoules as f64 / 1e3
}
