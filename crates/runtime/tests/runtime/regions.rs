//! tt-metal's regions, kept beside the ledger when the environment asks for it.

use std::sync::{Arc, Mutex};

use crate::runtime::asking::{ask, options, started};
use crate::runtime::roles::{Player, program, role};
use telltale_harness::Scratch;
use telltale_ledger::region::{Now, RegionKind, scan};
use telltale_runtime::{
    DeviceDescription, MemoryKind, Options, ProblemStep, RegionLayout, Regions, Runtime,
};
use telltale_schema::chip::{BoardId, ChipIdentity};
use telltale_wire::{Query, QueryKind};

/// The n300 of a T3000 whose ids are known.
const BOARD: BoardId = BoardId(0x0100_0146_1190_302b);

fn chip(logical_id: u32, location: u8) -> DeviceDescription {
    let board_id = Some(BOARD);
    let remote = location > 0;
    let identity = ChipIdentity { board_id, location, remote, ..ChipIdentity::default() };
    DeviceDescription { identity, logical_id, facts: None }
}

fn with_regions(scratch: &Scratch, layout: RegionLayout) -> Options {
    std::fs::create_dir_all(scratch.join("dev/shm")).expect("a directory");
    let mut chosen = options(&scratch.join("run"));
    std::fs::create_dir_all(scratch.join("run")).expect("a directory");
    chosen.root = Some(scratch.path().to_path_buf());
    chosen.regions = Some(Regions { per_pid: true, layout });
    chosen
}

fn region_names(scratch: &Scratch) -> Vec<String> {
    let entries = std::fs::read_dir(scratch.join("dev/shm")).expect("the directory is there");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a plain name"))
        .collect();
    names.sort();
    names
}

#[test]
fn a_chip_gives_the_same_file_whatever_its_number() {
    // The composite of board and location, and UMD's chip ids.
    for (layout, ids) in [
        (RegionLayout::V1, [0x1_4611_9030_2b00_u64, 0x1_4611_9030_2b01]),
        (RegionLayout::V3, [0x2_6190_302b, 0x3_6190_302b]),
        (RegionLayout::V4, [0x2_6190_302b, 0x3_6190_302b]),
    ] {
        let scratch = Scratch::new();
        for (logical_id, location) in [(0, 0), (3, 0), (1, 1)] {
            let runtime = Runtime::start(with_regions(&scratch, layout));
            let device = runtime.open_device(chip(logical_id, location));
            device.allocate(MemoryKind::Dram, 0, 100);
            drop(device);
            assert_eq!(runtime.problems(), []);
        }
        let mut expected = ids.map(|id| format!("tt_device_{id}_memory"));
        expected.sort();
        assert_eq!(region_names(&scratch), expected);
    }
}

#[test]
fn which_devices_are_visible_does_not_change_a_chips_file() {
    let seen = |visible: &str| {
        let scratch = Scratch::new();
        for directory in ["dev/shm", "run/tt"] {
            std::fs::create_dir_all(scratch.join(directory)).expect("a directory");
        }
        let mut command = role(&program(&scratch), "visible", scratch.path());
        command.env("TT_METAL_SHM_STATS_ENABLED", "1").env("TT_METAL_LOGGER_LEVEL", "DEBUG");
        command.env("TT_VISIBLE_DEVICES", visible);
        command.env_remove("TELLTALE_DISABLED").env("TELLTALE_SHM_LAYOUT", "1");
        let mut player = Player::start(&mut command);
        player.says("opened");
        (player.end(), region_names(&scratch))
    };
    let line = |logical_id: u32, board: &str, id: &str| {
        format!(
            "Device {logical_id}: board_id={board}, asic_location=0 -> asic_id={id} for SHM \
             tracking\n"
        )
    };
    let (first, second) = (("0x72a", "0x72a00"), ("0x77f", "0x77f00"));
    let (lines, files) = seen("1");
    assert_eq!(lines, line(0, second.0, second.1));
    assert_eq!(files, ["tt_device_491264_memory"]);
    let (lines, files) = seen("0,1");
    assert_eq!(lines, line(0, first.0, first.1) + &line(1, second.0, second.1));
    assert_eq!(files, ["tt_device_469504_memory", "tt_device_491264_memory"]);
}

#[test]
fn a_region_that_was_refused_is_not_kept_later_in_the_session() {
    let scratch = Scratch::new();
    let runtime = Runtime::start(with_regions(&scratch, RegionLayout::V1));
    let id = chip(0, 0).identity.composite_id().expect("the board is known").value;
    let path = scratch.join(format!("dev/shm/tt_device_{id}_memory"));
    std::fs::create_dir(&path).expect("a directory");
    let first = runtime.open_device(chip(0, 0));
    std::fs::remove_dir(&path).expect("it is empty");
    let second = runtime.open_device(chip(0, 0));
    second.allocate(MemoryKind::Dram, 0, 100);
    assert_eq!(region_names(&scratch), [""; 0]);
    assert_eq!(runtime.problems(), [(ProblemStep::Region, 1)]);
    drop((first, second));
    let _later = runtime.open_device(chip(0, 0));
    assert_eq!(region_names(&scratch).len(), 1);
}

#[test]
fn a_region_that_somebody_locks_holds_up_nobody() {
    let scratch = Scratch::new();
    let runtime = Runtime::start(with_regions(&scratch, RegionLayout::V1));
    drop(runtime.open_device(chip(0, 0)));
    let path = scratch.join("dev/shm").join(&region_names(&scratch)[0]);
    let holder = std::fs::File::open(path).expect("the region stays");
    holder.lock().expect("a reader can lock the file");
    drop(runtime.open_device(chip(0, 0)));
    assert_eq!(runtime.problems(), [(ProblemStep::Region, 1)]);
    holder.unlock().expect("it is locked");
    let device = runtime.open_device(chip(0, 0));
    holder.lock().expect("nobody holds the lock");
    drop(device);
    assert_eq!(runtime.problems(), [(ProblemStep::Region, 2)]);
}

#[test]
fn settings_that_are_not_understood_are_reported_once_with_the_choices() {
    let reported = |set: &[(&str, &str)]| {
        let scratch = Scratch::new();
        let reported = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&reported);
        let mut chosen = Options::from_variables("test 1", |name| {
            set.iter().find(|(found, _)| *found == name).map(|(_, value)| value.into())
        });
        let places = with_regions(&scratch, RegionLayout::V1);
        (chosen.directory, chosen.root) = (places.directory, places.root);
        chosen.on_problem = Some(Arc::new(move |problem| {
            sink.lock().expect("no panic").push(problem.to_string());
        }));
        let runtime = Runtime::start(chosen);
        for _ in 0..2 {
            drop([runtime.open_device(chip(0, 0)), runtime.open_device(chip(1, 1))]);
        }
        let reported = reported.lock().expect("no panic");
        reported.clone()
    };
    assert_eq!(
        reported(&[("TT_METAL_SHM_STATS_ENABLED", "true"), ("TELLTALE_DISABLED", "no")]),
        [
            "telltale: a setting is not understood: TELLTALE_DISABLED is \"no\", which is not 0 or 1, \
          so it is taken as 0; TT_METAL_SHM_STATS_ENABLED is \"true\", which is not 0 or 1, so it \
          is taken as 0; correct it and start the program again"
        ]
    );
    assert_eq!(
        reported(&[("TT_METAL_SHM_STATS_ENABLED", "1"), ("TELLTALE_SHM_LAYOUT", "2")]),
        ["telltale: a setting is not understood: TELLTALE_SHM_LAYOUT is \"2\", which is not 1, \
          3 or 4, so it is taken as 3; correct it and start the program again"]
    );
}

#[test]
fn totals_follow_the_ledger_and_go_with_the_device() {
    for (_, layout) in RegionLayout::NUMBERED {
        let scratch = Scratch::new();
        let runtime = Runtime::start(with_regions(&scratch, layout));
        let device = runtime.open_device(chip(0, 0));
        device.allocate(MemoryKind::Dram, 0, 100);
        device.allocate(MemoryKind::Trace, 64, 7);
        device.allocate_sized(MemoryKind::Cb, 5);
        device.allocate(MemoryKind::SystemMemory, 0, 1000);
        device.free(MemoryKind::Trace, 64);
        let totals = || {
            let found =
                scan(&scratch.join("dev/shm"), Now { monotonic_ns: u64::MAX, epoch_ns: u64::MAX })
                    .expect("the directory is readable");
            let first = found.regions.into_iter().next().expect("one region");
            let region = first.expect("a sound region").region;
            [RegionKind::Dram, RegionKind::Trace, RegionKind::Cb]
                .map(|kind| region.totals.get(kind).expect("counted in each version"))
        };
        assert_eq!(totals(), [100, 0, 5]);
        drop(device);
        assert_eq!(totals(), [0, 0, 0]);
        assert_eq!(runtime.problems(), []);
    }
}

#[test]
fn no_region_is_made_unless_asked_for() {
    let scratch = Scratch::new();
    let runtime = started(&scratch);
    let _device = runtime.open_device(chip(0, 0));
    assert!(!ask(&scratch, Query::of(QueryKind::Memory)).devices[0].mirrored);
}

#[test]
fn the_identity_line_is_that_of_the_first_tracker() {
    let scratch = Scratch::new();
    for directory in ["dev/shm", "run/tt"] {
        std::fs::create_dir_all(scratch.join(directory)).unwrap();
    }
    let mut command = role(&program(&scratch), "log", scratch.path());
    command.env("TT_METAL_SHM_STATS_ENABLED", "1").env("TT_METAL_LOGGER_LEVEL", "DEBUG");
    command.env_remove("TELLTALE_DISABLED").env("TELLTALE_SHM_LAYOUT", "1");
    let mut player = Player::start(&mut command);
    player.says("logged");
    assert_eq!(
        player.end(),
        "Device 0: board_id=0x727, asic_location=0 -> asic_id=0x72700 for SHM tracking\n"
    );
    assert_eq!(region_names(&scratch), ["tt_device_468736_memory"]);
}
