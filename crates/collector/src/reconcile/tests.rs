use proptest::prelude::*;
use telltale_ledger::RegionMirror;
use telltale_schema::chip::{BoardType, ChipFacts, ChipIdentity, PciAddress};
use telltale_schema::clock::Timestamp;
use telltale_schema::memory::{MemoryKind, MemorySpace, MemoryUsage};
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::{
    Accounting, HeldUsage, Holder, KindUsage, Process, ProcessSource, ProcessState, Telemetry,
};

use super::{MAX_DEVICE_BYTES, Observations, Reconciled, reconcile};
use crate::observation::{
    Described, DeviceClaim, LegacyObservation, MemoryClaim, ProcessObservation, RegionObservation,
    RowObservation, RowOwner,
};
use crate::tenstorrent::ChipReading;

const DRAM: MemoryKind = MemoryKind::Dram;
const NOT: RegionMirror = RegionMirror::None;
const TOTALS: RegionMirror = RegionMirror::Totals;
const ROW: RegionMirror = RegionMirror::TotalsAndRow;
/// More references than a test has processes: others may be in the region.
const MANY: u32 = 64;

fn identity(bus: u8) -> ChipIdentity {
    let board_id = Some(telltale_schema::chip::BoardId(0x0100_0186_1180_0000 + u64::from(bus)));
    ChipIdentity {
        pci: Some(PciAddress { domain: 0, bus, device: 0, function: 0 }),
        board_type: BoardType::N150,
        board_id,
        ..ChipIdentity::default()
    }
}

fn region_id(bus: u8) -> u64 {
    identity(bus).composite_id().unwrap().value
}

fn chip(bus: u8, holders: &[(u32, u32)]) -> ChipReading {
    let holders = holders
        .iter()
        .map(|(pid, open_descriptors)| Holder {
            pid: Some(*pid),
            open_descriptors: *open_descriptors,
            memory_known: false,
        })
        .collect();
    ChipReading {
        identity: identity(bus),
        facts: Reading::new(ChipFacts::of_board(BoardType::N150).unwrap(), Timestamp(1)),
        telemetry: Telemetry::absent(Absence::Unsupported, ""),
        holders: Reading::new(holders, Timestamp(1)),
        faults: Vec::new(),
    }
}

fn process(pid: u32, state: ProcessState) -> Process {
    Process { pid: Some(pid), state, ..Process::hidden(None, "") }
}

fn row(pid: u32, kinds: &[(MemoryKind, u64)], owner: RowOwner) -> RowObservation {
    RowObservation { pid, name: "row".to_owned(), kinds: kinds.to_vec(), owner }
}

fn claim(bus: u8, mirror: RegionMirror, kinds: &[(MemoryKind, u64)]) -> DeviceClaim {
    let usage = |live_bytes| MemoryUsage { live_bytes, live_buffers: 1, ..MemoryUsage::default() };
    let kinds = kinds.iter().map(|(kind, bytes)| KindUsage { kind: *kind, usage: usage(*bytes) });
    DeviceClaim {
        device: identity(bus).into(),
        mirror,
        kinds: kinds.collect(),
        ..DeviceClaim::default()
    }
}

fn with_ledger(pid: u32, state: ProcessState, devices: Vec<DeviceClaim>) -> ProcessObservation {
    let memory = Some(MemoryClaim { source: ProcessSource::Ledger, devices });
    ProcessObservation { memory, ..ProcessObservation::bare(process(pid, state)) }
}

fn bare(pid: u32) -> ProcessObservation {
    ProcessObservation::bare(process(pid, ProcessState::Alive))
}

fn region(bus: u8, totals: &[(MemoryKind, u64)], rows: Vec<RowObservation>) -> RegionObservation {
    RegionObservation {
        name_id: region_id(bus),
        totals: totals.to_vec(),
        rows,
        references: MANY,
        ..Default::default()
    }
}

/// Total, processes, unattributed, ghost of a kind on the first device.
fn parts(reconciled: &Reconciled, kind: MemoryKind) -> (u64, u64, u64, u64) {
    let found = reconciled.devices[0].kind(kind).expect("the kind has parts");
    (found.total_bytes, found.processes_bytes, found.unattributed_bytes, found.ghost_bytes)
}

fn observed(
    chips: Vec<ChipReading>,
    processes: Vec<ProcessObservation>,
    regions: Vec<RegionObservation>,
) -> Observations {
    let devices = chips.into_iter().map(ChipReading::into).collect();
    let taken_at = Timestamp(5);
    Observations { taken_at, devices, processes, regions, ..Observations::default() }
}

#[test]
fn a_process_with_ledger_and_row_counts_once() {
    let ledger = with_ledger(10, ProcessState::Alive, vec![claim(3, TOTALS, &[(DRAM, 100)])]);
    let rows = vec![row(10, &[(DRAM, 90)], RowOwner::Observed(0))];
    let input =
        observed(vec![chip(3, &[(10, 2)])], vec![ledger], vec![region(3, &[(DRAM, 90)], rows)]);
    let result = reconcile(input);
    assert_eq!(parts(&result, DRAM), (100, 100, 0, 0));
    let held = &result.processes[0].devices[0];
    assert_eq!((held.open_descriptors, held.kinds[0].usage.live_bytes()), (2, 100));
    assert!(result.devices[0].holders.value().unwrap()[0].memory_known);
}

#[test]
fn memory_of_the_host_is_of_the_machine_itself_and_of_no_chip() {
    let host = || DeviceClaim {
        is_host: true,
        device: ChipIdentity::default().into(),
        ..claim(3, NOT, &[(MemoryKind::SystemMemory, 100)])
    };
    let one = with_ledger(10, ProcessState::Alive, vec![host(), claim(3, NOT, &[(DRAM, 7)])]);
    let other = with_ledger(11, ProcessState::Alive, vec![host()]);
    let result = reconcile(observed(vec![chip(3, &[])], vec![one, other], Vec::new()));
    let [chip, machine] = result.devices.as_slice() else { panic!("{:?}", result.devices) };
    assert!(machine.identity.is_host() && machine.id == "host");
    assert_eq!(chip.kind(DRAM).unwrap().total_bytes, 7);
    assert!(chip.kind(MemoryKind::SystemMemory).is_none());
    assert_eq!(machine.kind(MemoryKind::SystemMemory).unwrap().processes_bytes, 200);
}

#[test]
fn a_region_speaks_before_the_legacy_socket_and_a_process_of_both_counts_once() {
    let chips = || vec![chip(3, &[(10, 1)]), chip(4, &[(10, 1)])];
    let reported = |bus, bytes| claim(bus, NOT, &[(DRAM, bytes)]);
    let legacy = |devices| LegacyObservation { process: 0, devices, faults: Default::default() };
    let rows = vec![row(10, &[(DRAM, 90)], RowOwner::Observed(0))];
    let mut both = observed(chips(), vec![bare(10)], vec![region(3, &[(DRAM, 90)], rows)]);
    both.legacy = vec![legacy(vec![reported(3, 100), reported(4, 7)])];
    let result = reconcile(both);
    assert_eq!(parts(&result, DRAM), (90, 90, 0, 0), "the region's, once");
    let [process] = result.processes.as_slice() else { panic!("{:?}", result.processes) };
    assert_eq!(process.known_by, Some(ProcessSource::Region));
    let live: Vec<u64> =
        process.devices.iter().map(|held| held.kinds[0].usage.live_bytes()).collect();
    assert_eq!(live, [90, 7], "on the other device nobody else speaks");
    assert!(matches!(process.devices[0].kinds[0].usage, HeldUsage::BytesOnly { .. }));

    let mut alone = observed(chips(), vec![bare(10)], Vec::new());
    alone.legacy = vec![legacy(vec![reported(3, 100)])];
    let result = reconcile(alone);
    assert_eq!(parts(&result, DRAM), (100, 100, 0, 0));
    assert_eq!(result.processes[0].known_by, Some(ProcessSource::Legacy));
}

#[test]
fn a_mirror_without_a_row_is_not_unattributed() {
    let ledger = with_ledger(10, ProcessState::Alive, vec![claim(3, TOTALS, &[(DRAM, 100)])]);
    let regions = vec![region(3, &[(DRAM, 130)], vec![])];
    let result = reconcile(observed(vec![chip(3, &[])], vec![ledger], regions.clone()));
    assert_eq!(parts(&result, DRAM), (130, 100, 30, 0));
    // Without the flag nothing tells that the two are about the same bytes.
    let ledger = with_ledger(10, ProcessState::Alive, vec![claim(3, NOT, &[(DRAM, 100)])]);
    let result = reconcile(observed(vec![chip(3, &[])], vec![ledger], regions));
    assert_eq!(parts(&result, DRAM), (230, 100, 130, 0));
}

#[test]
fn a_dead_process_takes_nothing_from_a_region_whatever_it_names_twice() {
    let devices = vec![claim(3, NOT, &[(DRAM, 60)]), claim(3, TOTALS, &[(DRAM, 40)])];
    let dead = with_ledger(10, ProcessState::Dead, devices);
    let regions = vec![region(3, &[(DRAM, 130)], vec![])];
    let result = reconcile(observed(vec![chip(3, &[])], vec![dead], regions));
    assert_eq!(parts(&result, DRAM), (130, 0, 130, 0));
}

#[test]
fn no_impossible_value_gets_through_and_what_does_adds_up() {
    let fields: [fn(&mut MemoryUsage) -> &mut u64; 6] = [
        |usage| &mut usage.live_bytes,
        |usage| &mut usage.live_buffers,
        |usage| &mut usage.peak_bytes,
        |usage| &mut usage.allocations,
        |usage| &mut usage.allocated_bytes,
        |usage| &mut usage.failed_allocations,
    ];
    for field in fields {
        let mut lies = claim(3, NOT, &[(DRAM, 1), (MemoryKind::L1, 5)]);
        *field(&mut lies.kinds[0].usage) = u64::MAX;
        let processes = vec![
            with_ledger(10, ProcessState::Alive, vec![lies]),
            with_ledger(11, ProcessState::Alive, vec![claim(3, NOT, &[(DRAM, 100)])]),
        ];
        let result = reconcile(observed(vec![chip(3, &[])], processes, vec![]));
        assert_eq!(parts(&result, DRAM), (100, 100, 0, 0));
        assert_eq!(result.devices[0].kind(DRAM).unwrap().live_buffers, Some(1));
        assert!(result.devices[0].kind(MemoryKind::L1).is_none(), "it is believed whole or not");
        assert_eq!(result.refused.len(), 1);
    }
}

#[test]
fn kernels_are_one_kind_in_a_region() {
    let kinds = [(MemoryKind::KernelFabric, 30), (MemoryKind::KernelDispatch, 20)];
    let ledger = with_ledger(10, ProcessState::Alive, vec![claim(3, TOTALS, &kinds)]);
    let regions = vec![region(3, &[(MemoryKind::KernelApplication, 55)], vec![])];
    let result = reconcile(observed(vec![chip(3, &[])], vec![ledger], regions));
    assert_eq!(parts(&result, MemoryKind::KernelApplication), (5, 0, 5, 0));
    assert_eq!(parts(&result, MemoryKind::KernelFabric), (30, 30, 0, 0));
}

#[test]
fn the_dead_are_ghosts_in_regions_and_in_no_total_by_ledger() {
    let dead = with_ledger(10, ProcessState::Dead, vec![claim(3, TOTALS, &[(DRAM, 100)])]);
    let rows = vec![
        row(10, &[(DRAM, 100)], RowOwner::Observed(0)),
        row(11, &[(DRAM, 7)], RowOwner::NoProcess),
        row(1, &[(DRAM, 5)], RowOwner::Hidden),
    ];
    let result =
        reconcile(observed(vec![chip(3, &[])], vec![dead], vec![region(3, &[(DRAM, 120)], rows)]));
    assert_eq!(parts(&result, DRAM), (120, 5, 8, 107));
    let states: Vec<_> = result.processes.iter().map(|process| process.state).collect();
    assert_eq!(states, [ProcessState::Dead, ProcessState::Hidden]);
}

#[test]
fn a_region_of_processes_with_ledgers_adds_nothing_to_what_they_say() {
    // One lives; one was killed, in the totals alone or with a row.
    let shown = |mirror: RegionMirror, references: u32, strangers: u64| {
        let processes = vec![
            with_ledger(10, ProcessState::Alive, vec![claim(3, mirror, &[(DRAM, 7)])]),
            with_ledger(11, ProcessState::Dead, vec![claim(3, mirror, &[(DRAM, 100)])]),
        ];
        let mut rows = Vec::new();
        if mirror == ROW {
            rows.push(row(10, &[(DRAM, 7)], RowOwner::Observed(0)));
            // Killed between the two: the region has a little more.
            rows.push(row(11, &[(DRAM, 104)], RowOwner::Observed(1)));
        }
        if strangers > 0 {
            rows.push(row(12, &[(DRAM, strangers)], RowOwner::NoProcess));
        }
        let total = 7 + 104 + strangers + 20;
        let region = RegionObservation { references, ..region(3, &[(DRAM, total)], rows) };
        parts(&reconcile(observed(vec![chip(3, &[])], processes, vec![region])), DRAM)
    };
    assert_eq!(shown(ROW, 2, 0), (7, 7, 0, 0));
    assert_eq!(shown(TOTALS, 2, 0), (7, 7, 0, 0));
    // Another process may be in it: only what ledgers report is known not to be its.
    assert_eq!(shown(ROW, 3, 0), (27, 7, 20, 0));
    assert_eq!(shown(ROW, 3, 9), (36, 7, 20, 9));
    assert_eq!(shown(TOTALS, 3, 0), (131, 7, 124, 0));
    assert_eq!(shown(NOT, 2, 0), (138, 7, 131, 0));
}

#[test]
fn a_dead_process_whose_row_was_taken_out_is_in_the_region_no_more() {
    let dead = with_ledger(11, ProcessState::Dead, vec![claim(3, ROW, &[(DRAM, 100)])]);
    let strangers = RegionObservation { references: 1, ..region(3, &[(DRAM, 60)], vec![]) };
    let result = reconcile(observed(vec![chip(3, &[])], vec![dead.clone()], vec![strangers]));
    assert_eq!(parts(&result, DRAM), (60, 0, 60, 0));
    // With two regions nothing tells in which of them a process is.
    let one = RegionObservation { references: 1, ..region(3, &[(DRAM, 60)], vec![]) };
    let alive = with_ledger(10, ProcessState::Alive, vec![claim(3, TOTALS, &[(DRAM, 60)])]);
    let input = observed(vec![chip(3, &[])], vec![alive.clone()], vec![one.clone(), one.clone()]);
    assert_eq!(parts(&reconcile(input), DRAM), (120, 60, 60, 0));
    // As many processes as both regions have references: each is in one of them.
    let other = with_ledger(12, ProcessState::Dead, vec![claim(3, TOTALS, &[(DRAM, 60)])]);
    let both = vec![alive, other];
    let input = observed(vec![chip(3, &[])], both.clone(), vec![one.clone(), one.clone()]);
    assert_eq!(parts(&reconcile(input), DRAM), (60, 60, 0, 0));
    // Bytes without a reference belong to none of them.
    let two = RegionObservation { references: 2, ..one.clone() };
    let strangers = RegionObservation { references: 0, ..one };
    let input = observed(vec![chip(3, &[])], both, vec![two, strangers]);
    assert_eq!(parts(&reconcile(input), DRAM), (120, 60, 60, 0));
}

#[test]
fn rows_above_a_stored_total_leave_nothing_unattributed() {
    let rows = vec![
        row(10, &[(MemoryKind::Cb, 60)], RowOwner::Observed(0)),
        row(11, &[(MemoryKind::Cb, 50)], RowOwner::Observed(1)),
    ];
    let regions = vec![region(3, &[(MemoryKind::Cb, 50)], rows)];
    let result = reconcile(observed(vec![chip(3, &[])], vec![bare(10), bare(11)], regions));
    assert_eq!(parts(&result, MemoryKind::Cb), (110, 110, 0, 0));
    assert_eq!(result.processes[1].known_by, Some(ProcessSource::Region));
}

#[test]
fn what_a_region_does_not_tell_is_not_0() {
    let rows = vec![row(10, &[(DRAM, 9)], RowOwner::Observed(0))];
    let other = with_ledger(11, ProcessState::Alive, vec![claim(3, NOT, &[(DRAM, 1)])]);
    let regions = vec![region(3, &[(DRAM, 9)], rows)];
    let result = reconcile(observed(vec![chip(3, &[])], vec![bare(10), other], regions));
    let held = &result.processes[0].devices[0];
    assert_eq!((held.accounting, held.live_buffers), (Accounting::BytesOnly, None));
    assert_eq!(held.kinds[0].usage, HeldUsage::BytesOnly { live_bytes: 9 });
    assert_eq!(result.devices[0].kind(DRAM).unwrap().live_buffers, None);
}

#[test]
fn a_process_is_silent_only_about_devices_that_its_source_does_not_cover() {
    let holders = [(10, 1), (11, 1), (12, 1)];
    let ledger = with_ledger(10, ProcessState::Alive, vec![claim(3, NOT, &[(DRAM, 1)])]);
    let rows = vec![row(11, &[(DRAM, 9)], RowOwner::Observed(1))];
    let input = observed(
        vec![chip(3, &holders), chip(4, &holders)],
        vec![ledger, bare(11), bare(12)],
        vec![region(3, &[(DRAM, 9)], rows)],
    );
    let result = reconcile(input);
    let accounting = |place: usize| -> Vec<Accounting> {
        result.processes[place].devices.iter().map(|held| held.accounting).collect()
    };
    // Its ledger would say so if it had something on the second chip; a region is of one chip.
    assert_eq!(accounting(0), [Accounting::Recorded, Accounting::OpenOnly]);
    assert_eq!(accounting(1), [Accounting::BytesOnly, Accounting::Unknown]);
    assert_eq!(accounting(2), [Accounting::Unknown, Accounting::Unknown]);
    let known = |device: usize| -> Vec<bool> {
        let holders = result.devices[device].holders.value().unwrap();
        holders.iter().map(|holder| holder.memory_known).collect()
    };
    assert_eq!((known(0), known(1)), (vec![true, true, false], vec![true, false, false]));
}

#[test]
fn holders_without_a_pid_are_processes_unless_they_are_known_otherwise() {
    let unseen = Holder { pid: None, open_descriptors: 3, memory_known: false };
    let shown = |rows: u32| -> (Vec<(u32, Accounting)>, bool) {
        let chips =
            vec![ChipReading { holders: Reading::new(vec![unseen], Timestamp(1)), ..chip(3, &[]) }];
        let rows = (1..=rows).map(|pid| row(pid, &[(DRAM, 5)], RowOwner::Hidden)).collect();
        let result = reconcile(observed(chips, vec![], vec![region(3, &[], rows)]));
        assert!(result.processes.iter().all(|process| process.state == ProcessState::Hidden));
        let held = result.processes.iter().map(|process| &process.devices[0]);
        let silent = held.filter(|held| held.accounting == Accounting::Unknown);
        (
            silent.map(|held| (held.open_descriptors, held.accounting)).collect(),
            result.devices[0].holders.value().unwrap()[0].memory_known,
        )
    };
    assert_eq!(shown(0), (vec![(3, Accounting::Unknown)], false));
    assert_eq!(shown(2), (vec![(1, Accounting::Unknown)], false));
    assert_eq!(shown(3), (vec![], true));
}

#[test]
fn use_is_unknown_when_holders_say_nothing() {
    let used = |chips, processes| {
        let result = reconcile(observed(chips, processes, vec![]));
        result.devices[0].space(MemorySpace::Dram).unwrap().used_bytes.clone()
    };
    assert_eq!(used(vec![chip(3, &[])], vec![]).value(), Some(&0));
    let unknown = used(vec![chip(3, &[(10, 1)])], vec![bare(10)]);
    let words = "held by pid 10, whose memory cannot be read from here; run as its user or as root, \
                 or start it with the Telltale recorder";
    assert_eq!(unknown.absence(), Some((Absence::Unknown, words)));
    let input = observed(vec![chip(3, &[(10, 1)])], vec![bare(10)], vec![]);
    let of_root = reconcile(Observations { as_root: true, ..input });
    let (_, words) =
        of_root.devices[0].space(MemorySpace::Dram).unwrap().used_bytes.absence().unwrap();
    assert!(
        words.ends_with("; start it with the Telltale recorder"),
        "root is not sent to root: {words}"
    );
    let known = with_ledger(11, ProcessState::Alive, vec![claim(3, NOT, &[(DRAM, 9)])]);
    let partly = used(vec![chip(3, &[(10, 1), (11, 1)])], vec![bare(10), known]);
    assert_eq!(partly.value(), Some(&9));
    let unread =
        ChipReading { holders: Reading::absent(Absence::Permission, "EACCES"), ..chip(3, &[]) };
    assert_eq!(used(vec![unread], vec![]).absence(), Some((Absence::Permission, "EACCES")));
}

#[test]
fn devices_that_only_processes_or_regions_name_come_last() {
    let ledger = with_ledger(10, ProcessState::Alive, vec![claim(9, NOT, &[(DRAM, 4)])]);
    let regions =
        vec![RegionObservation { name_id: 77, totals: vec![(DRAM, 5)], ..Default::default() }];
    let result = reconcile(observed(vec![chip(3, &[])], vec![ledger], regions));
    let ids: Vec<&str> = result.devices.iter().map(|device| device.id.as_str()).collect();
    assert_eq!(ids[1..], ["0100018611800009:0", "4d"]);
    assert_eq!(result.processes[0].devices[0].device, 1);
    assert_eq!(result.devices[2].kind(DRAM).unwrap().unattributed_bytes, 5);
}

#[test]
fn a_value_that_cannot_be_true_is_refused_and_reported() {
    let kinds = [(DRAM, u64::MAX), (MemoryKind::L1, 8)];
    let liar = with_ledger(10, ProcessState::Alive, vec![claim(3, NOT, &kinds)]);
    let regions = vec![region(3, &[(DRAM, u64::MAX - 100)], vec![])];
    let result = reconcile(observed(vec![chip(3, &[])], vec![liar], regions));
    assert_eq!(result.devices[0].kinds, []);
    let held = &result.processes[0].devices[0];
    assert_eq!((held.accounting, held.live_bytes(MemorySpace::Dram)), (Accounting::Unknown, None));
    assert!(held.refused.as_ref().unwrap().contains("that no process can have"), "{held:?}");
    assert_eq!(result.refused.len(), 2);
    assert_eq!(result.refused[0].subject, "pid 10 ()");
}

#[test]
fn a_process_whose_claim_is_refused_has_what_others_say_of_it() {
    let liar = || with_ledger(10, ProcessState::Alive, vec![claim(3, TOTALS, &[(DRAM, 13 << 30)])]);
    let result = reconcile(observed(vec![chip(3, &[(10, 1)])], vec![liar()], Vec::new()));
    let used = &result.devices[0].space(MemorySpace::Dram).unwrap().used_bytes;
    assert_eq!(used.absence().map(|(reason, _)| reason), Some(Absence::Unknown));
    let rows = vec![row(10, &[(DRAM, 90)], RowOwner::Observed(0))];
    let regions = vec![region(3, &[(DRAM, 90)], rows)];
    let result = reconcile(observed(vec![chip(3, &[(10, 1)])], vec![liar()], regions));
    assert_eq!(parts(&result, DRAM), (90, 90, 0, 0));
    let held = &result.processes[0].devices[0];
    assert_eq!((held.accounting, held.refused.is_none()), (Accounting::BytesOnly, true));
}

#[test]
fn what_a_process_says_twice_of_a_device_is_believed_whole_or_not_at_all() {
    let (lie, truth) = (13 << 30, 90);
    // Each could be true alone, and both cannot.
    let halves = [7 << 30, 7 << 30];
    for (claims, expected) in
        [([lie, truth], None), ([truth, lie], None), (halves, None), ([truth, truth], Some(180))]
    {
        let devices = claims.map(|bytes| claim(3, NOT, &[(DRAM, bytes)])).to_vec();
        let ledger = with_ledger(10, ProcessState::Alive, devices);
        let result = reconcile(observed(vec![chip(3, &[(10, 1)])], vec![ledger], Vec::new()));
        let held = &result.processes[0].devices[0];
        assert_eq!(held.live_bytes(MemorySpace::Dram), expected, "{claims:?}: {held:?}");
        assert_eq!(held.refused.is_none(), expected.is_some(), "{claims:?}: {held:?}");
        let counted = result.devices[0].kind(DRAM).map(|parts| parts.total_bytes);
        assert_eq!(counted, expected, "{claims:?}");
        assert_eq!(result.refused.len(), usize::from(expected.is_none()), "{claims:?}");
    }
}

#[test]
fn a_refusal_names_its_device_as_the_table_does() {
    let nameless = |number| DeviceClaim {
        device: Described { logical_id: Some(number), ..Described::default() },
        ..claim(3, NOT, &[(DRAM, MAX_DEVICE_BYTES + 1)])
    };
    let liar = with_ledger(10, ProcessState::Alive, vec![nameless(0), nameless(1)]);
    let result = reconcile(observed(Vec::new(), vec![liar], Vec::new()));
    for (device, refused) in result.devices.iter().zip(&result.refused) {
        let words = format!("on device {}; none of it is counted", device.id);
        assert!(refused.detail.ends_with(&words), "{refused:?}");
    }
    let ids: Vec<&str> = result.devices.iter().map(|device| &*device.id).collect();
    assert_eq!((ids, result.refused.len()), (vec!["unknown:0", "unknown:1"], 2));
}

#[test]
fn capacities_come_from_processes_that_agree_else_from_the_table() {
    let capacity = |claims: &[u64]| {
        let ledgers = (10..).zip(claims).map(|(pid, bytes)| {
            let device = DeviceClaim { dram_capacity_bytes: Some(*bytes), ..claim(3, NOT, &[]) };
            with_ledger(pid, ProcessState::Alive, vec![device])
        });
        let result = reconcile(observed(vec![chip(3, &[])], ledgers.collect(), vec![]));
        *result.devices[0].space(MemorySpace::Dram).unwrap().capacity_bytes.value().unwrap()
    };
    assert_eq!(capacity(&[]), 12 << 30);
    assert_eq!(capacity(&[10 << 30, 10 << 30]), 10 << 30);
    assert_eq!(capacity(&[10 << 30, 11 << 30]), 12 << 30);
    assert_eq!(capacity(&[1 << 30]), 12 << 30, "no board has lost that much");
    assert_eq!(capacity(&[u64::MAX]), 12 << 30);
}

fn any_bytes() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0u64..1 << 40,
        1 => Just(MAX_DEVICE_BYTES),
        1 => Just(u64::MAX),
        1 => any::<u64>(),
    ]
}

fn any_kinds() -> impl Strategy<Value = Vec<(MemoryKind, u64)>> {
    prop::collection::vec((prop::sample::select(&MemoryKind::ALL[..]), any_bytes()), 0..6)
}

fn any_state() -> impl Strategy<Value = ProcessState> {
    prop_oneof![Just(ProcessState::Alive), Just(ProcessState::Dead), Just(ProcessState::Hidden)]
}

fn any_mirror() -> impl Strategy<Value = RegionMirror> {
    prop_oneof![Just(NOT), Just(TOTALS), Just(ROW)]
}

fn any_process() -> impl Strategy<Value = ProcessObservation> {
    let claims = prop::collection::vec((0u8..6, any_mirror(), any_kinds()), 0..4);
    (1u32..50, any_state(), prop::option::of(claims)).prop_map(|(pid, state, claims)| {
        let claims = claims.map(|claims| {
            claims.iter().map(|(bus, mirror, kinds)| claim(*bus, *mirror, kinds)).collect()
        });
        match claims {
            Some(claims) => with_ledger(pid, state, claims),
            None => ProcessObservation::bare(process(pid, state)),
        }
    })
}

fn any_row() -> impl Strategy<Value = RowObservation> {
    let owner = prop_oneof![
        (0usize..8).prop_map(RowOwner::Observed),
        Just(RowOwner::Hidden),
        Just(RowOwner::NoProcess)
    ];
    (1u32..50, any_kinds(), owner).prop_map(|(pid, kinds, owner)| row(pid, &kinds, owner))
}

fn any_region() -> impl Strategy<Value = RegionObservation> {
    let rows = prop::collection::vec(any_row(), 0..5);
    (0u8..6, 0u32..4, any_kinds(), rows).prop_map(|(bus, references, totals, rows)| {
        RegionObservation { references, ..region(bus, &totals, rows) }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(telltale_harness::rounds(256, 20_000)))]
    #[test]
    fn the_parts_add_up_whatever_is_observed(
        holders in prop::collection::vec(prop::collection::vec((1u32..50, 1u32..5), 0..4), 0..4),
        processes in prop::collection::vec(any_process(), 0..6),
        regions in prop::collection::vec(any_region(), 0..5),
    ) {
        let chips = (0u8..).zip(&holders).map(|(bus, holders)| chip(bus, holders)).collect();
        let result = reconcile(observed(chips, processes, regions));
        for (index, device) in result.devices.iter().enumerate() {
            for one in &device.kinds {
                let parts = u128::from(one.processes_bytes)
                    + u128::from(one.unattributed_bytes)
                    + u128::from(one.ghost_bytes);
                prop_assert_eq!(parts, u128::from(one.total_bytes));
                let shown: u128 = result
                    .processes
                    .iter()
                    .filter(|process| process.state != ProcessState::Dead)
                    .flat_map(|process| &process.devices)
                    .filter(|held| held.device == index)
                    .flat_map(|held| &held.kinds)
                    .filter(|usage| usage.kind == one.kind)
                    .map(|usage| u128::from(usage.usage.live_bytes()))
                    .sum();
                prop_assert_eq!(shown, u128::from(one.processes_bytes), "{:?}", one.kind);
            }
        }
        for process in &result.processes {
            prop_assert!(process.devices.iter().all(|held| held.device < result.devices.len()));
        }
    }
}
