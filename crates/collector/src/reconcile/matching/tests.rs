//! Every way to describe each chip of each machine that the emulator makes, against what the driver
//! shows of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use telltale_emulator::{ChipDescription, Machine, MachineKind, MachineOptions};
use telltale_harness::Scratch;
use telltale_schema::chip::{
    AsicId, BoardId, BoardType, ChipIdentity, GalaxyPosition, PciAddress, unique_id,
};
use telltale_schema::memory::{MemoryKind, MemoryUsage};
use telltale_schema::snapshot::{
    KindUsage, MetricSample, MetricValue, Process, ProcessSource, ProcessState,
};

use super::region_of;
use crate::clock::SystemClock;
use crate::observation::{Described, DeviceClaim, MemoryClaim, ProcessObservation};
use crate::reconcile::{Observations, Reconciled, reconcile};
use crate::source::DeviceReading;
use crate::tenstorrent::{Sensors, TenstorrentSource};
use crate::tree::Tree;

/// A chip of a machine as the runtime of its process may know it.
struct Physical {
    /// Everything there is to know.
    whole: ChipIdentity,
    /// The chip that has its link, if it has none itself.
    gateway: Option<ChipIdentity>,
}

/// A machine: what its driver shows, and its chips in the same order.
fn machine(kind: MachineKind) -> (Vec<DeviceReading>, Vec<Physical>) {
    let scratch = Scratch::new();
    let made = Machine::create(&scratch.join("m"), kind, &MachineOptions::default()).unwrap();
    let tree = Arc::new(Tree::open(made.root()).unwrap());
    let limits = (Duration::from_secs(5), Duration::from_secs(60));
    let mut source = TenstorrentSource::new(tree, Arc::new(SystemClock), Sensors::Main, limits);
    let shown: Vec<DeviceReading> =
        source.read_chips().chips.into_iter().map(DeviceReading::from).collect();
    let identity = |one: ChipDescription| one.identity;
    let mut chips = Vec::new();
    for place in 0..made.chip_count() {
        let mut with_link = made.descriptions(place).into_iter().map(identity);
        let gateway = with_link.next().unwrap();
        let behind: Vec<ChipIdentity> = with_link.collect();
        chips.push(Physical { whole: gateway.clone(), gateway: None });
        for whole in behind {
            chips.push(Physical { whole, gateway: Some(gateway.clone()) });
        }
    }
    let place = |chip: &Physical| {
        let same = |one: &DeviceReading| *one.identity.chip().unwrap() == chip.whole;
        shown.iter().position(same).unwrap()
    };
    chips.sort_by_key(place);
    (shown, chips)
}

/// An id of no device: what the firmware of a remote chip reports, or another source.
fn strange(whole: &ChipIdentity) -> AsicId {
    AsicId(whole.asic_id.unwrap().0 ^ 0x5_0000_0000_0000 ^ u64::from(whole.location))
}

/// Descriptions of a chip, and whether each of them distinguishes it from all others.
fn descriptions(chip: &Physical, remotes: usize) -> Vec<(ChipIdentity, bool)> {
    let Physical { whole, gateway } = chip;
    let linked = gateway.as_ref().unwrap_or(whole);
    let umd = unique_id(whole).map(AsicId);
    let ids = [None, Some(AsicId(0)), whole.asic_id, umd, Some(strange(whole))];
    let places = match gateway {
        None => vec![(false, whole.location)],
        Some(_) => vec![(true, whole.location), (true, 0), (false, whole.location)],
    };
    let mut all = Vec::new();
    for (asic_id, (remote, location)) in
        ids.into_iter().flat_map(|id| places.iter().map(move |it| (id, *it)))
    {
        for bits in 0..16u8 {
            let has = |bit: u8| bits & bit != 0;
            let board_id = whole.board_id.filter(|_| has(1));
            let described = ChipIdentity {
                driver_ordinal: linked.driver_ordinal.filter(|_| has(2)),
                pci: linked.pci.filter(|_| has(4)),
                asic_id,
                board_id,
                board_type: board_id.map_or(BoardType::Unknown, BoardId::board_type),
                location,
                galaxy: whole.galaxy.filter(|_| has(8)),
                remote,
            };
            let is_strange = asic_id == Some(strange(whole));
            let known_id = asic_id.is_some_and(|id| id.0 != 0) && !is_strange;
            let only_one = is_strange && remotes == 1 && remote && bits & 7 == 0;
            let alone = bits & 5 == 0 && described.galaxy.is_none() && !is_strange;
            let ordinal = has(2) && (gateway.is_some() || alone);
            let pci = has(4) && (gateway.is_some() || !is_strange);
            let tells = known_id
                || board_id.is_some()
                || pci
                || ordinal
                || described.galaxy.is_some()
                || only_one;
            all.push((described, tells));
        }
    }
    all
}

/// A process that has each of these devices open, with so many bytes on it, and counts operations.
fn process(pid: u32, devices: Vec<(Described, u64)>) -> ProcessObservation {
    let mut process = Process::hidden(None, "train");
    (process.pid, process.state) = (Some(pid), ProcessState::Alive);
    let sample = |(described, _): &(Described, u64)| MetricSample {
        name: "telltale_process_operations_total".to_owned(),
        help: String::new(),
        unit: String::new(),
        labels: vec![("device".to_owned(), described.name())],
        value: MetricValue::Counter(1),
    };
    process.metrics = devices.iter().map(sample).collect();
    let measured = devices.iter().map(|(described, _)| described.clone()).collect();
    let claim = |(device, live_bytes)| DeviceClaim {
        device,
        kinds: vec![KindUsage {
            kind: MemoryKind::Dram,
            usage: MemoryUsage { live_bytes, live_buffers: 1, ..MemoryUsage::default() },
        }],
        ..DeviceClaim::default()
    };
    let devices = devices.into_iter().map(claim).collect();
    let memory = Some(MemoryClaim { source: ProcessSource::Ledger, devices });
    ProcessObservation { process, memory, measured }
}

fn together(devices: Vec<DeviceReading>, processes: Vec<ProcessObservation>) -> Reconciled {
    reconcile(Observations { devices, processes, ..Observations::default() })
}

/// What is in use of DRAM on each device, by its name.
fn used(result: &Reconciled) -> BTreeMap<&str, u64> {
    let dram = |device: &telltale_schema::snapshot::Device| {
        device.kind(MemoryKind::Dram).map_or(0, |it| it.total_bytes)
    };
    result.devices.iter().map(|device| (device.id.as_str(), dram(device))).collect()
}

#[test]
fn however_a_chip_is_described_it_is_one_row_and_one_series() {
    let mut tried = 0;
    for kind in MachineKind::ALL {
        let (shown, chips) = machine(kind);
        let remotes = chips.iter().filter(|chip| chip.gateway.is_some()).count();
        let names: Vec<String> = shown.iter().map(|one| one.identity.display_id()).collect();
        let mut expected: BTreeMap<&str, u64> = names.iter().map(|name| (&**name, 0)).collect();
        let mut processes = Vec::new();
        for (chip, name) in chips.iter().zip(&names) {
            for (described, tells) in descriptions(chip, remotes) {
                tried += 1;
                let described = Described { chip: described, logical_id: Some(7) };
                let one = process(1, vec![(described.clone(), 1)]);
                let result = together(shown.clone(), vec![one.clone()]);
                let rows = used(&result);
                let whole = rows.get(name.as_str()) == Some(&1) && rows.len() == names.len();
                assert_eq!(whole, tells, "{kind} {name}: {described:?} is in {rows:?}");
                let label = &result.processes[0].metrics[0].labels[0].1;
                let row = rows.iter().find(|(_, bytes)| **bytes == 1).map(|(id, _)| *id);
                assert_eq!(row, Some(label.as_str()), "{kind} {name}: {described:?}");
                if tells {
                    *expected.get_mut(name.as_str()).unwrap() += 1;
                    processes.push(one);
                }
            }
        }
        // All of them at once change nothing.
        let result = together(shown, processes);
        assert_eq!(used(&result), expected, "{kind}");
    }
    assert!(tried > 4000, "{tried}");
}

#[test]
fn the_second_chip_of_a_p300_is_itself_when_it_was_reached_through_the_first() {
    let (shown, chips) = machine(MachineKind::P300);
    let [first, second] = [&chips[0].whole, &chips[1].whole];
    let name = second.display_id();
    for (asic_id, board_id) in [
        (second.asic_id, None),
        (first.asic_id, None),
        (None, second.board_id),
        (first.asic_id, second.board_id),
        (Some(strange(second)), second.board_id),
    ] {
        let chip = ChipIdentity {
            asic_id,
            board_id,
            location: 1,
            remote: true,
            ..ChipIdentity::default()
        };
        let result = together(shown.clone(), vec![process(1, vec![(chip.clone().into(), 5)])]);
        assert_eq!((result.devices.len(), used(&result)[&*name]), (2, 5), "{chip:?}");
    }
}

#[test]
fn devices_of_which_a_process_says_only_its_own_numbers_are_as_many_as_the_numbers() {
    let numbered = |number| Described { logical_id: Some(number), ..Described::default() };
    let one = process(1, vec![(numbered(0), 1), (numbered(1), 2)]);
    let other = process(2, vec![(numbered(1), 4)]);
    let (shown, _) = machine(MachineKind::N150);
    for (shown, before) in [(Vec::new(), 0), (shown, 1)] {
        let result = together(shown, vec![one.clone(), other.clone()]);
        let rows = used(&result);
        assert_eq!(rows.len(), before + 2, "{rows:?}");
        assert_eq!((rows["unknown:0"], rows["unknown:1"]), (1, 6));
        let labels = result.processes[0].metrics.iter().map(|it| it.labels[0].1.as_str());
        assert_eq!(labels.collect::<Vec<_>>(), ["unknown:0", "unknown:1"]);
    }
}

#[test]
fn devices_that_would_have_one_name_are_numbered() {
    let alike = |bus| {
        let pci = Some(PciAddress { domain: 0, bus, device: 0, function: 0 });
        let galaxy = Some(GalaxyPosition { tray: 1, nibble: 1 });
        DeviceReading::new(ChipIdentity { pci, galaxy, ..ChipIdentity::default() })
    };
    let at = |bus| Described::from(alike(bus).identity.chip().unwrap().clone());
    let result = together(vec![alike(1), alike(2)], vec![process(1, vec![(at(1), 1), (at(2), 2)])]);
    assert_eq!(used(&result), BTreeMap::from([("T1:N0", 1), ("T1:N0#2", 2)]));
}

fn n300() -> ChipIdentity {
    ChipIdentity {
        driver_ordinal: Some(0),
        pci: Some("0000:03:00.0".parse().unwrap()),
        asic_id: Some(AsicId(0x2_5173_2099)),
        board_id: Some(BoardId(0x0100_0146_1190_302b)),
        board_type: BoardType::N300,
        ..ChipIdentity::default()
    }
}

#[test]
fn what_is_contradicted_is_another_chip() {
    let known = n300();
    let none = ChipIdentity::default();
    let elsewhere = Some("0000:04:00.0".parse().unwrap());
    let cases = [
        (ChipIdentity { pci: known.pci, asic_id: Some(AsicId(7)), ..none.clone() }, false),
        (ChipIdentity { pci: elsewhere, driver_ordinal: Some(0), ..none.clone() }, false),
        (ChipIdentity { driver_ordinal: Some(1), ..none.clone() }, false),
        (ChipIdentity { board_id: known.board_id, location: 1, ..none.clone() }, false),
        (ChipIdentity { remote: true, location: 1, ..n300() }, false),
        (ChipIdentity { remote: true, pci: known.pci, ..none.clone() }, false),
        // What is surer decides.
        (ChipIdentity { pci: elsewhere, ..n300() }, true),
        (ChipIdentity { asic_id: Some(AsicId(7)), ..n300() }, true),
        (ChipIdentity { driver_ordinal: Some(1), ..n300() }, true),
    ];
    for (chip, same) in cases {
        let shown = vec![DeviceReading::new(n300())];
        let result = together(shown, vec![process(1, vec![(chip.clone().into(), 1)])]);
        assert_eq!(result.devices.len() == 1, same, "{chip:?}");
    }
}

#[test]
fn regions_are_found_by_each_of_tt_metals_names() {
    let local: Vec<u64> = region_of(&n300()).collect();
    assert!(local.contains(&0x0001_4611_9030_2b00), "the composite of version 1");
    assert!(local.contains(&0x2_6190_302b), "the chip id of a T3000 sample");
    let remote = ChipIdentity { remote: true, location: 1, pci: None, ..n300() };
    let remote: Vec<u64> = region_of(&remote).collect();
    assert!(remote.contains(&0x0001_4611_9030_2b01));
    assert!(remote.contains(&0x3_6190_302b));
    assert!(remote.iter().all(|id| !local.contains(id)));
}
