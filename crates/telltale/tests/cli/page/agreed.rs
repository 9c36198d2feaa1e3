//! What the page computes itself agrees with what every other view has: who holds a device and in which
//! order, and how a link is.

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use proptest::{collection, option, prop_oneof};
use serde_json::{Value, json};
use telltale_schema::chip::ChipIdentity;
use telltale_schema::clock::Timestamp;
use telltale_schema::device::{DeviceClass, DeviceIdentity, OtherIdentity};
use telltale_schema::memory::MemorySpace;
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::{
    Accounting, Device, HeldDevice, HeldSpace, Holder, LinkState, PcieLink, Process, ProcessState,
    Snapshot,
};

use super::browser::Browser;
use super::fixture::Fixture;

/// Snapshots that are compared, and links.
const CASES: usize = 300;

fn processes() -> impl Strategy<Value = Vec<Process>> {
    let state = prop_oneof![
        proptest::strategy::Just(ProcessState::Alive),
        proptest::strategy::Just(ProcessState::Dead)
    ];
    let one = (1u32..60, state, option::of(0u64..4), 0u32..3, 0u64..4);
    collection::vec(one, 0..8).prop_map(|all| {
        type Drawn = (u32, ProcessState, Option<u64>, u32, u64);
        let process = |(at, (pid, state, bytes, open_descriptors, l1)): (usize, Drawn)| {
            let space = |space, live_bytes| HeldSpace { space, live_bytes, live_buffers: None };
            let held = HeldDevice {
                open_descriptors,
                accounting: if bytes.is_some() {
                    Accounting::Recorded
                } else {
                    Accounting::Unknown
                },
                spaces: bytes.map_or_else(Vec::new, |bytes| {
                    vec![space(MemorySpace::Dram, bytes), space(MemorySpace::L1, l1)]
                }),
                ..HeldDevice::default()
            };
            // Pids differ, as they do on a machine.
            let pid = Some(pid * 10 + u32::try_from(at).unwrap());
            Process { pid, state, devices: vec![held], ..Process::hidden(None, "") }
        };
        all.into_iter().enumerate().map(process).collect()
    })
}

fn device() -> impl Strategy<Value = Device> {
    let holder = (option::of(1u32..600), proptest::bool::ANY)
        .prop_map(|(pid, memory_known)| Holder { pid, open_descriptors: 1, memory_known });
    let number = || {
        prop_oneof![
            (1u64..7).prop_map(|it| Reading::new(it, Timestamp(1))),
            proptest::strategy::Just(Reading::absent(Absence::Unknown, ""))
        ]
    };
    let link = (number(), number(), number(), number()).prop_map(
        |(generation, width, fastest, widest)| PcieLink {
            pcie_generation: generation,
            pcie_width: width,
            pcie_generation_max: fastest,
            pcie_width_max: widest,
            ..PcieLink::absent(Absence::Unknown, "")
        },
    );
    let identity = proptest::bool::ANY.prop_map(|gpu| match gpu {
        true => DeviceIdentity::from(OtherIdentity::new("0", "nvidia", DeviceClass::Gpu)),
        false => DeviceIdentity::from(ChipIdentity::default()),
    });
    (collection::vec(holder, 0..6), link, identity).prop_map(|(holders, link, identity)| {
        let mut device = Device::unread("0", identity);
        device.holders = Reading::new(holders, Timestamp(1));
        device.telemetry.link = Some(Box::new(link));
        device
    })
}

fn snapshot() -> impl Strategy<Value = Snapshot> {
    (device(), processes()).prop_map(|(device, processes)| Snapshot {
        collected_in_ns: 1,
        devices: vec![device],
        processes,
        ..Snapshot::empty(Timestamp(1))
    })
}

/// What the other views have of it.
fn expected(snapshot: &Snapshot) -> Value {
    let holders = snapshot.holders(0);
    let pids: Vec<_> = holders.known.iter().map(|(process, _)| process.pid).collect();
    let device = &snapshot.devices[0];
    let link = device.telemetry.link.as_ref().unwrap();
    let reduced = link.state(&device.identity) == Some(LinkState::Reduced);
    let link = link.words().value().map(|words| json!([words, reduced]));
    json!([pids, holders.others, link])
}

#[test]
fn holders_and_links_are_those_of_every_other_view() {
    let test = "page::agreed::holders_and_links_are_those_of_every_other_view";
    let Some(mut browser) = Browser::start(test) else { return };
    let mut fixture = Fixture::new("n150");
    fixture.serve("3600", false, "");
    fixture.open(&mut browser, None);
    let mut runner = TestRunner::deterministic();
    let strategy = snapshot();
    for _ in 0..CASES {
        let snapshot = strategy.new_tree(&mut runner).unwrap().current();
        let text = serde_json::to_string(&snapshot).unwrap();
        let found = browser.value(&format!(
            "Promise.all([import('/assets/holders.js'), import('/assets/device.js')]).then(([theirs, its]) => {{
                const snapshot = {text};
                const [device] = snapshot.devices;
                const {{ known, others }} = theirs.holders(snapshot, device);
                const link = its.link(device);
                return [known.map(({{ process }}) => process.pid), others, link ? [link.text, link.isReduced] : null];
            }})"
        ));
        assert_eq!(found, expected(&snapshot), "{text}");
    }
}
