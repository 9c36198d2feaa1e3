//! What the allocation server's clients receive on request: from the snapshot, in their own
//! numbers. Pure.
//!
//! Totals are the device's, from any reporter, as a viewer expects; they used to be what the
//! server's own clients had said. What is unknown is 0, for the protocol has nothing else.

use telltale_schema::chip::{Architecture, ChipFacts};
use telltale_schema::memory::{MemoryKind, MemorySpace};
use telltale_schema::metric::MetricDefinition;
use telltale_schema::metric::definitions::{
    PROCESS_L1_RING_BUFFER_CAPACITY_BYTES, PROCESS_L1_RING_BUFFER_USED_BYTES,
};
use telltale_schema::snapshot::{Device, MetricValue, ProcessState, Snapshot};

use super::book::place;
use super::message::{
    ARCHITECTURE, CB, DEVICE_INFO_RESPONSE, DEVICES, DRAM, DRAM_CHANNELS, DRAM_PER_CHANNEL,
    IS_AVAILABLE, KERNEL, L1, L1_PER_CORE, L1_SMALL, LegacyAnswer, RESPONSE, RING_TOTAL, RING_USED,
    Request, TOTAL_DRAM, TOTAL_L1, TRACE, Verb,
};
use telltale_collector::limits::MAX_DEVICE_BYTES;

/// The largest ring buffer that is believed: the field has 32 bits.
const MOST_RING_BYTES: f64 = 4_294_967_295.0;

/// The number that asks how many devices there are.
const ALL_DEVICES: i32 = -1;

/// The answer to a request; none to one that the server did not answer either. It printed what
/// remained at its own terminal.
pub(super) fn answer(request: &Request, snapshot: &Snapshot) -> Option<LegacyAnswer> {
    let device = device(snapshot, request.device);
    let (code, fields) = match request.verb {
        Verb::Query => {
            let all = device.map(|device| {
                let mut fields = totals(device);
                fields.extend(ring(device, snapshot));
                fields
            });
            (RESPONSE, all.unwrap_or_default())
        }
        Verb::DeviceInfo if request.device == ALL_DEVICES => {
            let count = count(snapshot);
            let fields = vec![(&DEVICES, count), (&IS_AVAILABLE, u64::from(count > 0))];
            (DEVICE_INFO_RESPONSE, fields)
        }
        Verb::DeviceInfo => (DEVICE_INFO_RESPONSE, device.map(facts).unwrap_or_default()),
        _ => return None,
    };
    Some(LegacyAnswer { code, device: request.device, fields })
}

/// What the device of this number has in each space, as far as it is known; none where there is no
/// such device.
pub(super) fn capacity(snapshot: &Snapshot, number: i32) -> Option<[u64; 3]> {
    let device = device(snapshot, number)?;
    let mut all = [MAX_DEVICE_BYTES; 3];
    for space in [MemorySpace::Dram, MemorySpace::L1] {
        let known = device.space(space).and_then(|usage| usage.capacity_bytes.value());
        if let Some(bytes) = known {
            all[place(space)] = *bytes;
        }
    }
    Some(all)
}

/// The device that a number of tt-metal's means: the driver's number, of a chip on PCIe. Where
/// `TT_VISIBLE_DEVICES` hides some, tt-metal's numbers are others, which no message reports.
fn device(snapshot: &Snapshot, number: i32) -> Option<&Device> {
    let number = u32::try_from(number).ok();
    let is_it = |device: &&Device| ordinal(device).is_some() && ordinal(device) == number;
    snapshot.devices.iter().find(is_it)
}

/// The driver's number of a chip on PCIe.
fn ordinal(device: &Device) -> Option<u32> {
    device.identity.chip().filter(|chip| !chip.remote)?.driver_ordinal
}

/// How many numbers a client has to ask about.
fn count(snapshot: &Snapshot) -> u64 {
    snapshot.devices.iter().filter_map(ordinal).max().map_or(0, |last| u64::from(last) + 1)
}

type Fields = Vec<(&'static super::message::Field, u64)>;

fn totals(device: &Device) -> Fields {
    let total = |kind: MemoryKind| device.kind(kind).map_or(0, |parts| parts.total_bytes);
    let kernels =
        [MemoryKind::KernelApplication, MemoryKind::KernelFabric, MemoryKind::KernelDispatch];
    vec![
        (&DRAM, total(MemoryKind::Dram)),
        (&L1, total(MemoryKind::L1)),
        (&L1_SMALL, total(MemoryKind::L1Small)),
        (&TRACE, total(MemoryKind::Trace)),
        (&CB, total(MemoryKind::Cb)),
        (&KERNEL, kernels.into_iter().map(total).fold(0, u64::saturating_add)),
    ]
}

/// The ring buffer that kernels are loaded through, as the processes on the device tell it: the
/// largest one, and what all of them have in it.
fn ring(device: &Device, snapshot: &Snapshot) -> Fields {
    let reported = |metric: &'static MetricDefinition| {
        let living = snapshot.processes.iter().filter(|one| one.state == ProcessState::Alive);
        let samples = living.flat_map(|process| process.metrics.iter());
        samples.filter_map(move |sample| match sample.value {
            MetricValue::Gauge(bytes)
                if sample.name == metric.name
                    && sample.labels.iter().any(|it| it.0 == "device" && it.1 == device.id) =>
            {
                whole(bytes)
            }
            _ => None,
        })
    };
    let used = reported(PROCESS_L1_RING_BUFFER_USED_BYTES).fold(0, u64::saturating_add);
    let total = reported(PROCESS_L1_RING_BUFFER_CAPACITY_BYTES).max().unwrap_or(0);
    vec![(&RING_TOTAL, total), (&RING_USED, used)]
}

/// Bytes that a process reports; none where it tells a number that no memory has.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn whole(bytes: f64) -> Option<u64> {
    (0.0..=MOST_RING_BYTES).contains(&bytes).then_some(bytes as u64)
}

fn facts(device: &Device) -> Fields {
    let Some(facts) = device.facts.value() else { return Vec::new() };
    let ChipFacts { architecture, dram_capacity_bytes, dram_channels, l1_per_core_bytes, .. } =
        *facts;
    vec![
        (&IS_AVAILABLE, 1),
        (&ARCHITECTURE, architecture_code(architecture)),
        (&DRAM_CHANNELS, u64::from(dram_channels)),
        (&DRAM_PER_CHANNEL, dram_capacity_bytes / u64::from(dram_channels.max(1))),
        (&L1_PER_CORE, l1_per_core_bytes),
        (&TOTAL_DRAM, dram_capacity_bytes),
        (&TOTAL_L1, facts.l1_capacity_bytes()),
    ]
}

/// tt-metal's number (`tt::ARCH` of UMD).
fn architecture_code(architecture: Architecture) -> u64 {
    match architecture {
        Architecture::Grayskull => 1,
        Architecture::WormholeB0 => 2,
        Architecture::Blackhole => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::{Request, Verb, answer};
    use crate::legacy::message::{MessageForm, RING_TOTAL, RING_USED};
    use crate::samples::tests::fixture::{device, metric, process, snapshot};
    use std::sync::Arc;
    use telltale_schema::device::DeviceIdentity;
    use telltale_schema::metric::definitions::{
        PROCESS_L1_RING_BUFFER_CAPACITY_BYTES as CAPACITY,
        PROCESS_L1_RING_BUFFER_USED_BYTES as USED,
    };
    use telltale_schema::snapshot::{MetricValue, ProcessState};

    #[test]
    fn the_longest_form_has_the_ring_buffer_that_processes_report() {
        let mut chip = device(1);
        let DeviceIdentity::Chip(identity) = &mut chip.identity else { panic!("no chip") };
        (identity.driver_ordinal, identity.remote) = (Some(3), false);
        let id = chip.id.clone();
        let telling = |pid, capacity, used| {
            let gauge = |name, bytes| metric(name, &[("device", &id)], MetricValue::Gauge(bytes));
            let mut one = process(pid, "train", "ada", 5);
            one.metrics = [gauge(CAPACITY.name, capacity), gauge(USED.name, used)].into();
            one
        };
        let mut dead = telling(9, 999_999.0, 999_999.0);
        dead.state = ProcessState::Dead;
        let mut elsewhere = telling(10, 999_999.0, 999_999.0);
        let mut samples = elsewhere.metrics.to_vec();
        samples.iter_mut().for_each(|one| one.labels[0].1 = String::from("other"));
        elsewhere.metrics = samples.into();
        let processes = vec![
            telling(7, 70_656.0, 1_000.0),
            telling(8, 4_096.0, 24.0),
            telling(11, f64::NAN, -1.0),
            telling(12, 1e20, f64::INFINITY),
            dead,
            elsewhere,
        ];
        let machine = snapshot(vec![chip], processes);
        let request = Request {
            verb: Verb::Query,
            device: 3,
            size: 0,
            buffer_type: 0,
            process: 0,
            buffer: 0,
        };
        let reported = answer(&request, &Arc::clone(&machine)).unwrap();
        let of = |field| reported.fields.iter().find(|one| std::ptr::eq(one.0, field)).unwrap().1;
        assert_eq!((of(&RING_TOTAL), of(&RING_USED)), (70_656, 1_024));
        let bytes = reported.encode(MessageForm::Ring);
        assert_eq!(bytes[128..132], 70_656u32.to_le_bytes());
        assert_eq!(bytes[132..136], 1_024u32.to_le_bytes());
        assert_eq!(bytes[136..], [0; 8], "programs are not counted by device");
        assert_eq!(reported.encode(MessageForm::Programs).len(), 128);
    }
}
