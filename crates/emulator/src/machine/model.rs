//! How a chip's sensors move with load: a pure model, which reads no clock and writes no file.
//!
//! The values are of a plausible size for each generation and go the right way; they are not
//! measurements of any chip.

use telltale_schema::chip::Architecture;

use super::random::{mixed, swing};

/// What a chip did since the last step.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ChipLoad {
    /// The share of the time in which its cores worked, 0 to 1.
    pub busy_ratio: f64,
    /// Bytes that went from the host to the chip.
    pub host_to_device_bytes: u64,
    /// Bytes that went from the chip to the host.
    pub device_to_host_bytes: u64,
}

/// Limits that the firmware reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SensorLimits {
    pub(crate) temperature_millidegrees: u32,
    pub(crate) voltage_millivolts: u32,
    pub(crate) current_amperes: u32,
    pub(crate) power_watts: u64,
}

/// What the chip's sensors say, in the units of the driver's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sensors {
    pub(crate) aiclk_megahertz: u32,
    pub(crate) temperature_millidegrees: u32,
    pub(crate) voltage_millivolts: u32,
    pub(crate) current_amperes: u32,
    pub(crate) power_watts: u64,
    pub(crate) fan_revolutions_per_minute: u32,
    pub(crate) heartbeat: u32,
    pub(crate) thermal_trips: u32,
    /// In the order of the counter files; each wraps at 2^32.
    pub(crate) pcie_flits: [u32; 12],
    pub(crate) limits: SensorLimits,
}

/// What differs between the generations.
struct Constants {
    idle_megahertz: u32,
    busy_megahertz: u32,
    idle_watts: f64,
    busy_watts: f64,
    idle_millivolts: f64,
    busy_millivolts: f64,
    degrees_per_watt: f64,
    limits: SensorLimits,
}

const WORMHOLE: Constants = Constants {
    idle_megahertz: 500,
    busy_megahertz: 1_000,
    idle_watts: 21.0,
    busy_watts: 78.0,
    idle_millivolts: 720.0,
    busy_millivolts: 850.0,
    degrees_per_watt: 0.5,
    limits: SensorLimits {
        temperature_millidegrees: 75_000,
        voltage_millivolts: 950,
        current_amperes: 160,
        power_watts: 85,
    },
};

const BLACKHOLE: Constants = Constants {
    idle_megahertz: 800,
    busy_megahertz: 1_350,
    idle_watts: 38.0,
    busy_watts: 190.0,
    idle_millivolts: 710.0,
    busy_millivolts: 860.0,
    degrees_per_watt: 0.22,
    limits: SensorLimits {
        temperature_millidegrees: 95_000,
        voltage_millivolts: 950,
        current_amperes: 300,
        power_watts: 250,
    },
};

/// The temperature goes this far towards its goal (by a factor of e) in this time.
const THERMAL_INERTIA_SECONDS: f64 = 20.0;
/// The firmware refreshes its table, and counts its heartbeat, ten times a second.
const HEARTBEAT_NS: u64 = 100_000_000;
/// A flit of the on-chip network.
const FLIT_BYTES: u64 = 32;
/// Above this share of busy time the firmware raises the clock.
const BUSY_THRESHOLD: f64 = 0.01;
/// A longer pause between two steps counts as this long: enough for everything to settle.
const LONGEST_STEP_NS: u64 = 600_000_000_000;

/// One chip.
#[derive(Debug, Clone)]
pub(crate) struct ChipModel {
    blackhole: bool,
    seed: u64,
    steps: u64,
    ambient_celsius: f64,
    temperature_celsius: f64,
    heartbeat_rest_ns: u64,
    /// Bytes that do not fill a flit yet, to and from the device.
    rest_bytes: [u64; 2],
    is_stopped: bool,
    sensors: Sensors,
}

impl ChipModel {
    /// A chip that has been idle long enough for its temperature to have settled.
    pub(crate) fn new(architecture: Architecture, seed: u64) -> Self {
        let blackhole = architecture == Architecture::Blackhole;
        let constants = constants(blackhole);
        // Chips sit in different places of the air stream.
        let ambient_celsius = 25.5 + 2.0 * swing(seed, 1);
        let temperature_celsius =
            ambient_celsius + constants.idle_watts * constants.degrees_per_watt;
        let sensors = Sensors {
            aiclk_megahertz: constants.idle_megahertz,
            temperature_millidegrees: 0,
            voltage_millivolts: 0,
            current_amperes: 0,
            power_watts: 0,
            fan_revolutions_per_minute: 0,
            heartbeat: low_half(mixed(seed, 2)) >> 4,
            thermal_trips: 0,
            // Counters run from the last reset on, so a reader finds them anywhere.
            pcie_flits: std::array::from_fn(|index| {
                low_half(mixed(seed, 16 + u64::try_from(index).expect("an index below 12")))
            }),
            limits: constants.limits,
        };
        let mut model = Self {
            blackhole,
            seed,
            steps: 0,
            ambient_celsius,
            temperature_celsius,
            heartbeat_rest_ns: 0,
            rest_bytes: [0; 2],
            is_stopped: false,
            sensors,
        };
        model.step(0, ChipLoad::default());
        model
    }

    /// What the sensors say now.
    pub(crate) fn sensors(&self) -> &Sensors {
        &self.sensors
    }

    /// What a reset leaves: counters that start again at zero.
    pub(crate) fn reset(&mut self) {
        self.sensors.heartbeat = 0;
        self.sensors.pcie_flits = [0; 12];
        self.rest_bytes = [0; 2];
        self.heartbeat_rest_ns = 0;
    }

    /// Stops the firmware, which then refreshes nothing, or lets it go on.
    pub(crate) fn stop(&mut self, is_stopped: bool) {
        self.is_stopped = is_stopped;
    }

    /// Counts one more thermal trip.
    pub(crate) fn trip(&mut self) {
        self.sensors.thermal_trips = self.sensors.thermal_trips.wrapping_add(1);
    }

    /// Lets `elapsed_ns` pass under this load.
    pub(crate) fn step(&mut self, elapsed_ns: u64, load: ChipLoad) {
        let elapsed_ns = elapsed_ns.min(LONGEST_STEP_NS);
        self.steps += 1;
        let constants = constants(self.blackhole);
        let busy = if load.busy_ratio.is_finite() { load.busy_ratio.clamp(0.0, 1.0) } else { 0.0 };
        let between = |idle: f64, full: f64| idle + (full - idle) * busy;
        let watts = between(constants.idle_watts, constants.busy_watts)
            + 0.8 * swing(self.seed, self.steps << 8);
        let millivolts = between(constants.idle_millivolts, constants.busy_millivolts);
        let goal = self.ambient_celsius + watts * constants.degrees_per_watt;
        let seconds = std::time::Duration::from_nanos(elapsed_ns).as_secs_f64();
        let share = 1.0 - (-seconds / THERMAL_INERTIA_SECONDS).exp();
        self.temperature_celsius += (goal - self.temperature_celsius) * share;
        // The counters of the on-chip network are hardware.
        self.count_traffic(load);
        if self.is_stopped {
            return;
        }

        let sensors = &mut self.sensors;
        sensors.aiclk_megahertz =
            if busy > BUSY_THRESHOLD { constants.busy_megahertz } else { constants.idle_megahertz };
        sensors.temperature_millidegrees = whole(self.temperature_celsius * 1_000.0);
        sensors.voltage_millivolts = whole(millivolts);
        sensors.power_watts = u64::from(whole(watts));
        sensors.current_amperes = whole(watts / millivolts * 1_000.0);
        sensors.fan_revolutions_per_minute =
            whole(900.0 + 55.0 * (self.temperature_celsius - 30.0).max(0.0)) / 10 * 10;
        let heartbeat_ns = self.heartbeat_rest_ns + elapsed_ns;
        self.heartbeat_rest_ns = heartbeat_ns % HEARTBEAT_NS;
        sensors.heartbeat = sensors.heartbeat.wrapping_add(low_half(heartbeat_ns / HEARTBEAT_NS));
    }

    /// Spreads the bytes over the counters: the device's own transfers carry seven eighths of
    /// them, the host's the rest; network 0 carries three quarters of the former.
    fn count_traffic(&mut self, load: ChipLoad) {
        let moved = [load.host_to_device_bytes, load.device_to_host_bytes];
        // Master and slave counters (network 0, network 1) of each direction.
        let files = [[0usize, 1, 8, 9], [4, 5, 10, 11]];
        for ((bytes, rest), files) in moved.into_iter().zip(&mut self.rest_bytes).zip(files) {
            let bytes = bytes.saturating_add(*rest);
            *rest = bytes % FLIT_BYTES;
            let flits = bytes / FLIT_BYTES;
            let slave = flits / 8;
            let master = flits - slave;
            let second = master / 4;
            let parts = [master - second, second, slave - slave / 2, slave / 2];
            for (file, part) in files.into_iter().zip(parts) {
                let counter = &mut self.sensors.pcie_flits[file];
                *counter = counter.wrapping_add(low_half(part));
            }
        }
    }
}

fn constants(blackhole: bool) -> &'static Constants {
    if blackhole { &BLACKHOLE } else { &WORMHOLE }
}

/// What 32-bit hardware keeps of a number.
fn low_half(number: u64) -> u32 {
    u32::try_from(number & u64::from(u32::MAX)).expect("32 bits remain")
}

/// The nearest whole number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float has no try_from; `as` saturates and all inputs are small and positive"
)]
fn whole(value: f64) -> u32 {
    value.round() as u32
}

#[cfg(test)]
mod tests {
    use telltale_schema::chip::Architecture;

    use super::{ChipLoad, ChipModel, HEARTBEAT_NS};

    const SECOND_NS: u64 = 1_000_000_000;
    const BUSY: ChipLoad =
        ChipLoad { busy_ratio: 1.0, host_to_device_bytes: 0, device_to_host_bytes: 0 };

    #[test]
    fn load_raises_clock_power_and_slowly_the_temperature() {
        for (architecture, idle_mhz, busy_mhz) in
            [(Architecture::WormholeB0, 500, 1_000), (Architecture::Blackhole, 800, 1_350)]
        {
            let mut chip = ChipModel::new(architecture, 5);
            let idle = chip.sensors().clone();
            assert_eq!(idle.aiclk_megahertz, idle_mhz);
            chip.step(SECOND_NS, BUSY);
            let warming = chip.sensors().clone();
            assert_eq!(warming.aiclk_megahertz, busy_mhz);
            assert!(warming.power_watts > 2 * idle.power_watts);
            assert!(warming.temperature_millidegrees > idle.temperature_millidegrees);
            for _ in 0..200 {
                chip.step(SECOND_NS, BUSY);
            }
            let hot = chip.sensors().clone();
            assert!(hot.temperature_millidegrees > warming.temperature_millidegrees + 15_000);
            assert!(hot.temperature_millidegrees < hot.limits.temperature_millidegrees);
            assert!(hot.power_watts <= hot.limits.power_watts);
            assert!(hot.current_amperes <= hot.limits.current_amperes);
            assert!(hot.voltage_millivolts <= hot.limits.voltage_millivolts);
            chip.step(SECOND_NS, ChipLoad::default());
            assert_eq!(chip.sensors().aiclk_megahertz, idle_mhz);
            assert!(
                chip.sensors().temperature_millidegrees > idle.temperature_millidegrees + 10_000
            );
        }
    }

    #[test]
    fn counters_add_up_to_the_bytes_moved_and_wrap() {
        let mut chip = ChipModel::new(Architecture::WormholeB0, 9);
        chip.reset();
        let mut moved = [0u64; 2];
        for step in 0..4_000u64 {
            let load = ChipLoad {
                busy_ratio: 0.5,
                host_to_device_bytes: 70_000_001 + step,
                device_to_host_bytes: 33,
            };
            moved[0] += load.host_to_device_bytes;
            moved[1] += load.device_to_host_bytes;
            chip.step(HEARTBEAT_NS, load);
        }
        let flits = chip.sensors().pcie_flits;
        let sum = |files: [usize; 6]| {
            files.into_iter().fold(0u32, |sum, file| sum.wrapping_add(flits[file]))
        };
        let expected = |bytes: u64| u32::try_from((bytes / 32) & 0xFFFF_FFFF).unwrap();
        assert!(moved[0] / 32 > u64::from(u32::MAX), "the counters have wrapped");
        assert_eq!(sum([0, 1, 6, 7, 8, 9]), expected(moved[0]));
        assert_eq!(sum([2, 3, 4, 5, 10, 11]), expected(moved[1]));
        assert_eq!(chip.sensors().heartbeat, 4_000);
    }

    #[test]
    fn the_same_seed_lives_the_same_life() {
        let live = |seed| {
            let mut chip = ChipModel::new(Architecture::Blackhole, seed);
            (0..50).for_each(|_| chip.step(SECOND_NS, BUSY));
            chip.sensors().clone()
        };
        assert_eq!(live(3), live(3));
        assert_ne!(live(3), live(4));
    }
}
