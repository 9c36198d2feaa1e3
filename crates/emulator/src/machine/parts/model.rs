//! How the host's parts move: a pure model, which reads no clock and writes no file.

use super::super::fault::PartFailure;
use super::super::random::{mixed, swing};
use super::layout::{FANS, NICS, PORTS, SUPPLIES};

/// What fans turn at, in revolutions per minute.
const FAN_SPEED: f64 = 6_200.0;
/// What the host itself takes, in watts, beside its chips.
const HOST_WATTS: f64 = 420.0;
/// What comes out of a wall socket for each watt that a supply gives.
const CONVERSION_LOSS: f64 = 1.06;

/// The counters and sensors of the host's parts.
#[derive(Debug, Clone)]
pub(crate) struct PartsModel {
    seed: u64,
    steps: u64,
    pub(crate) fans_revolutions_per_minute: [u32; FANS],
    /// What each supply takes.
    pub(crate) supplies_microwatts: [u64; SUPPLIES],
    pub(crate) nics: [NicCounters; NICS.len()],
    pub(crate) ports: [PortCounters; PORTS.len()],
    pub(crate) uncorrected_errors: u64,
}

/// What the kernel counts of a network interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NicCounters {
    pub(crate) carrier_ups: u64,
    pub(crate) carrier_downs: u64,
}

/// What an InfiniBand port counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PortCounters {
    pub(crate) link_downs: u64,
    pub(crate) recoveries: u64,
}

// === impl PartsModel ===

impl PartsModel {
    pub(crate) fn new(seed: u64) -> Self {
        let mut model = Self {
            seed: mixed(seed, 0x70_6172_7473),
            steps: 0,
            fans_revolutions_per_minute: [0; FANS],
            supplies_microwatts: [0; SUPPLIES],
            nics: [NicCounters::NEW; NICS.len()],
            ports: [PortCounters::default(); PORTS.len()],
            uncorrected_errors: 0,
        };
        model.step(0);
        model
    }

    /// Lets time pass while the chips take so many watts together.
    pub(crate) fn step(&mut self, chips_watts: u64) {
        self.steps += 1;
        let noise = |item: u64| swing(self.seed, (self.steps << 8) | item);
        for (item, speed) in (0..).zip(&mut self.fans_revolutions_per_minute) {
            *speed = whole(FAN_SPEED + 40.0 * noise(item)) / 10 * 10;
        }
        let chips_watts = u32::try_from(chips_watts).unwrap_or(u32::MAX);
        let taken = (HOST_WATTS + f64::from(chips_watts)) * CONVERSION_LOSS;
        for (item, microwatts) in (64..).zip(&mut self.supplies_microwatts) {
            // Supplies share the load, not quite evenly.
            let share = taken * (0.5 + 0.01 * noise(item));
            *microwatts = u64::from(whole(share)) * 1_000_000;
        }
    }

    /// What a failure that begins does to counters of the part at this place among its kind.
    pub(crate) fn begin(&mut self, failure: PartFailure, place: usize, count: u32) {
        match failure {
            PartFailure::NicDown => self.nics[place].carrier_downs += 1,
            PartFailure::PortDown => self.ports[place].link_downs += 1,
            PartFailure::PortRecovered => self.ports[place].recoveries += u64::from(count),
            PartFailure::MemoryUncorrected => self.uncorrected_errors += u64::from(count),
            _ => {}
        }
    }

    /// What its end does.
    pub(crate) fn end(&mut self, failure: PartFailure, place: usize) {
        match failure {
            PartFailure::NicDown => self.nics[place].carrier_ups += 1,
            PartFailure::NicGone => self.nics[place] = NicCounters::NEW,
            _ => {}
        }
    }
}

impl NicCounters {
    /// Of an interface that got its carrier when it was set up.
    const NEW: Self = Self { carrier_ups: 1, carrier_downs: 0 };
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
