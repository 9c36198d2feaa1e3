//! The numbers of the enumerations in `telemetry.proto`: a value's place in its list, plus one,
//! because protobuf keeps 0 for "not set".

use telltale_schema::chip::{Architecture, BoardType, FactSource};
use telltale_schema::device::DeviceClass;
use telltale_schema::health::FaultKind;
use telltale_schema::memory::{MemoryKind, MemorySpace};
use telltale_schema::metric::{MetricKind, Scope};
use telltale_schema::reading::Absence;
use telltale_schema::snapshot::{Accounting, ProcessSource, ProcessState, TrafficDirection};

/// A value that has a number on the wire.
pub(crate) trait Code: Copy + PartialEq + 'static {
    /// The values in the order of their numbers.
    const ALL: &'static [Self];

    /// The number; 0 for a value without one.
    fn code(self) -> u64 {
        let place = Self::ALL.iter().position(|one| *one == self);
        place.map_or(0, |place| u64::try_from(place).unwrap_or(u64::MAX).saturating_add(1))
    }

    /// The value of a number; none for 0 and for numbers that a newer version may know.
    fn of_code(code: i32) -> Option<Self> {
        let place = usize::try_from(code).ok()?.checked_sub(1)?;
        Self::ALL.get(place).copied()
    }
}

macro_rules! codes {
    ($type:ty: $all:expr) => {
        impl Code for $type {
            const ALL: &'static [Self] = $all;
        }
    };
}

codes!(Absence: &Absence::ALL);
codes!(MemoryKind: &MemoryKind::ALL);
codes!(MemorySpace: &MemorySpace::ALL);
codes!(Architecture: &[Self::Grayskull, Self::WormholeB0, Self::Blackhole]);
codes!(FactSource: &[Self::BoardTable, Self::Ledger, Self::Driver]);
codes!(DeviceClass: &DeviceClass::ALL);
codes!(FaultKind: &FaultKind::ALL);
codes!(TrafficDirection: &[Self::HostToDevice, Self::DeviceToHost]);
codes!(ProcessState: &[Self::Alive, Self::Dead, Self::Hidden]);
codes!(ProcessSource: &[
    Self::Ledger,
    Self::Endpoint,
    Self::Region,
    Self::Legacy,
    Self::Driver,
]);
// Unknown boards and unknown accounting are what 0 stands for.
codes!(Accounting: &[Self::Recorded, Self::BytesOnly, Self::OpenOnly]);
codes!(BoardType: &[
    Self::N150,
    Self::N300,
    Self::GalaxyWormhole,
    Self::P100,
    Self::P150,
    Self::P300,
    Self::GalaxyBlackhole,
]);
codes!(MetricKind: &[Self::Counter, Self::Gauge, Self::Histogram, Self::Info]);
codes!(Scope: &[Self::Device, Self::Process, Self::Source, Self::Service]);

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use super::{
        Absence, Accounting, Architecture, BoardType, Code, DeviceClass, FactSource, FaultKind,
        MemoryKind, MemorySpace, MetricKind, ProcessSource, ProcessState, Scope, TrafficDirection,
    };
    use crate::telemetry::message;

    /// The name of a Rust value as protobuf writes it: `KernelFabric` is `KERNEL_FABRIC`.
    fn proto_name(prefix: &str, value: &impl Debug) -> String {
        let mut name = prefix.to_owned();
        for character in format!("{value:?}").chars() {
            if character.is_ascii_uppercase() {
                name.push('_');
            }
            name.push(character.to_ascii_uppercase());
        }
        name
    }

    fn check<T: Code + Debug>(prefix: &str, name_of: impl Fn(i32) -> Option<&'static str>) {
        for (number, value) in (1..).zip(T::ALL) {
            assert_eq!(value.code(), u64::try_from(number).unwrap());
            assert_eq!(T::of_code(number), Some(*value));
            assert_eq!(name_of(number), Some(proto_name(prefix, value).as_str()));
        }
        let beyond = i32::try_from(T::ALL.len()).unwrap() + 1;
        for number in [i32::MIN, -1, 0, beyond, i32::MAX] {
            assert_eq!(T::of_code(number), None);
        }
        assert_eq!(name_of(beyond), None, "{prefix} has a value that is not known here");
    }

    macro_rules! check {
        ($type:ty, $message:ident, $prefix:literal) => {
            check::<$type>($prefix, |number| {
                message::$message::try_from(number).ok().map(|value| value.as_str_name())
            });
        };
    }

    #[test]
    fn numbers_and_names_are_those_of_the_proto_file() {
        check!(Absence, AbsenceReason, "ABSENCE_REASON");
        check!(MemoryKind, MemoryKind, "MEMORY_KIND");
        check!(MemorySpace, MemorySpace, "MEMORY_SPACE");
        check!(FactSource, FactSource, "FACT_SOURCE");
        check!(DeviceClass, DeviceClass, "DEVICE_CLASS");
        check!(FaultKind, FaultKind, "FAULT_KIND");
        check!(TrafficDirection, TrafficDirection, "TRAFFIC_DIRECTION");
        check!(ProcessState, ProcessState, "PROCESS_STATE");
        check!(ProcessSource, ProcessSource, "PROCESS_SOURCE");
        check!(Accounting, Accounting, "ACCOUNTING");
        check!(BoardType, BoardType, "BOARD_TYPE");
        check!(MetricKind, MetricKind, "METRIC_KIND");
        check!(Scope, MetricScope, "METRIC_SCOPE");
        check!(Architecture, Architecture, "ARCHITECTURE");
    }
}
