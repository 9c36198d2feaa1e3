//! Rules: what is searched for, how long it must hold, and what comes with the program.

use serde::Serialize;
use telltale_schema::health::{FaultKind, HealthRule, HealthState, RULES};
use telltale_schema::memory::MemorySpace;

use super::Severity;

/// One rule.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rule {
    /// Its name, by which configuration changes it and people know it.
    pub name: String,
    /// How bad it is when it fires.
    pub severity: Severity,
    /// What is searched for.
    #[serde(flatten)]
    pub condition: Condition,
    /// How long it must hold before the alert fires, in seconds.
    pub for_seconds: u64,
    /// How long it must be clearly over before the alert is resolved, in seconds.
    pub clear_for_seconds: u64,
}

/// What a rule searches for. Thresholds come in pairs: one raises, a lower one clears.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "condition", rename_all = "snake_case")]
pub enum Condition {
    /// Use of a memory space as a share of its capacity.
    Capacity {
        /// The space.
        space: MemorySpace,
        /// Raised from this share on, 0 to 1.
        above_ratio: f64,
        /// Clear below this one.
        clear_ratio: f64,
    },
    /// A process's live memory on a device whose lowest level keeps rising.
    Leak {
        /// The space.
        space: MemorySpace,
        /// The time over which the level is checked, in seconds.
        window_seconds: u64,
        /// The rise over that time from which it is raised, in bytes.
        growth_bytes: u64,
        /// Raised only if the space would be full within this many seconds.
        exhausted_within_seconds: u64,
    },
    /// Memory of a device that rows of dead processes still claim.
    DeadMemory {
        /// Raised from this many bytes on.
        above_bytes: u64,
    },
    /// A process that keeps memory and records no allocation and no operation.
    IdleMemory {
        /// Raised from this many live bytes on.
        above_bytes: u64,
        /// How long nothing must have been recorded, in seconds.
        idle_seconds: u64,
    },
    /// A device's temperature as a share of the limit at which it throttles.
    Temperature {
        /// Raised from this share on.
        above_ratio: f64,
        /// Clear below this one.
        clear_ratio: f64,
    },
    /// A source that had errors at the last collection.
    SourceDown,
    /// What a rule of health has found of a device, a source or a part of the machine.
    Health {
        /// Which.
        fault: FaultKind,
    },
}

const MIB: u64 = 1 << 20;
const HOUR: u64 = 3600;
/// How long a finding of health must be over.
const HEALTH_CLEAR_SECONDS: u64 = 10;

impl Rule {
    /// The rules that hold where the configuration does not say otherwise. Their reasons:
    /// an allocator of which 95 % is in use refuses large buffers soon; a training's level is flat
    /// after its first steps, so half an hour of rising floors is no warm-up; a chip throttles at
    /// its limit, and 5 % below that its fans have nothing left to give. Those of health follow, see
    /// `docs/health.md`.
    #[must_use]
    pub fn defaults() -> Vec<Self> {
        let capacity =
            Condition::Capacity { space: MemorySpace::Dram, above_ratio: 0.95, clear_ratio: 0.90 };
        let leak = Condition::Leak {
            space: MemorySpace::Dram,
            window_seconds: HOUR / 2,
            growth_bytes: 64 * MIB,
            exhausted_within_seconds: 24 * HOUR,
        };
        let idle = Condition::IdleMemory { above_bytes: 1024 * MIB, idle_seconds: HOUR };
        let hot = Condition::Temperature { above_ratio: 0.95, clear_ratio: 0.90 };
        let dead = Condition::DeadMemory { above_bytes: MIB };
        let rule = |name: &str, severity, condition, for_seconds, clear_for_seconds| Self {
            name: name.to_owned(),
            severity,
            condition,
            for_seconds,
            clear_for_seconds,
        };
        let health = RULES.iter().filter(|rule| rule.state > HealthState::Ok);
        let own = [
            rule("device_memory_nearly_full", Severity::Warning, capacity, 30, 60),
            rule("memory_leak", Severity::Warning, leak, 0, 300),
            rule("memory_of_the_dead", Severity::Warning, dead, 60, 10),
            rule("idle_memory", Severity::Info, idle, 0, 0),
            rule("device_hot", Severity::Warning, hot, 30, 60),
            rule("source_down", Severity::Warning, Condition::SourceDown, 30, 30),
        ];
        own.into_iter().chain(health.map(Self::of_health)).collect()
    }

    /// The one that fires for what a rule of health finds. A device that comes and goes within
    /// [`HEALTH_CLEAR_SECONDS`] is one alert.
    pub(super) fn of_health(rule: &HealthRule) -> Self {
        Self {
            name: rule.alert.to_owned(),
            severity: match rule.state {
                HealthState::Ok | HealthState::Unknown => Severity::Info,
                HealthState::Warning => Severity::Warning,
                HealthState::Failed => Severity::Critical,
            },
            condition: Condition::Health { fault: rule.kind },
            for_seconds: rule.alert_after_seconds,
            clear_for_seconds: HEALTH_CLEAR_SECONDS,
        }
    }
}
