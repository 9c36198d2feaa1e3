//! What the allocation server's clients are told when they ask: from the snapshot, in their own
//! numbers. Pure.
//!
//! Totals are the device's, whoever reports them, as a viewer expects; they used to be what the
//! server's own clients had said. What nobody knows is 0, for the protocol has nothing else.

use telltale_schema::chip::{Architecture, ChipFacts};
use telltale_schema::memory::{MemoryKind, MemorySpace};
use telltale_schema::snapshot::{Device, Snapshot};

use super::book::place;
use super::message::{
    ARCHITECTURE, Answer, CB, DEVICE_INFO_RESPONSE, DEVICES, DRAM, DRAM_CHANNELS, DRAM_PER_CHANNEL,
    IS_AVAILABLE, KERNEL, L1, L1_PER_CORE, L1_SMALL, RESPONSE, Request, TOTAL_DRAM, TOTAL_L1,
    TRACE, Verb,
};
use crate::reconcile::MAX_DEVICE_BYTES;

/// The number that asks how many devices there are.
const ALL_DEVICES: i32 = -1;

/// The answer to a request; none to one that the server did not answer either. It printed what
/// remained at its own terminal.
pub(super) fn answer(request: &Request, snapshot: &Snapshot) -> Option<Answer> {
    let device = device(snapshot, request.device);
    let (code, fields) = match request.verb {
        Verb::Query => (RESPONSE, device.map(totals).unwrap_or_default()),
        Verb::DeviceInfo if request.device == ALL_DEVICES => {
            let count = count(snapshot);
            let fields = vec![(&DEVICES, count), (&IS_AVAILABLE, u64::from(count > 0))];
            (DEVICE_INFO_RESPONSE, fields)
        }
        Verb::DeviceInfo => (DEVICE_INFO_RESPONSE, device.map(facts).unwrap_or_default()),
        _ => return None,
    };
    Some(Answer { code, device: request.device, fields })
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
/// `TT_VISIBLE_DEVICES` hides some, tt-metal's numbers are others, which no message tells.
fn device(snapshot: &Snapshot, number: i32) -> Option<&Device> {
    let number = u32::try_from(number).ok();
    let is_it = |device: &&Device| {
        let chip = &device.identity;
        !chip.remote && chip.driver_ordinal.is_some() && chip.driver_ordinal == number
    };
    snapshot.devices.iter().find(is_it)
}

/// How many numbers a client has to ask about.
fn count(snapshot: &Snapshot) -> u64 {
    let local = snapshot.devices.iter().filter(|device| !device.identity.remote);
    let numbers = local.filter_map(|device| device.identity.driver_ordinal);
    numbers.max().map_or(0, |last| u64::from(last) + 1)
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
