//! tt-metal's regions, kept beside the ledger when the environment asks for it.

use crate::asking::{ask, options, started};
use crate::roles::{Player, program, role};
use telltale_harness::Scratch;
use telltale_ledger::region::{Now, RegionKind, scan};
use telltale_runtime::{DeviceDescription, MemoryKind, Options, RegionLayout, Regions, Runtime};
use telltale_schema::chip::{BoardId, ChipIdentity};
use telltale_wire::{Query, QueryKind};

const BOARD: BoardId = BoardId(1834);

fn chip(logical_id: u32, location: u8) -> DeviceDescription {
    let identity = ChipIdentity { board_id: Some(BOARD), location, ..ChipIdentity::default() };
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
    let scratch = Scratch::new();
    for (logical_id, location) in [(0, 0), (3, 0), (1, 1)] {
        let runtime = Runtime::start(with_regions(&scratch, RegionLayout::V1));
        let device = runtime.open_device(chip(logical_id, location));
        device.allocate(MemoryKind::Dram, 0, 100);
        drop(device);
        assert_eq!(runtime.problems(), []);
    }
    assert_eq!(region_names(&scratch), ["tt_device_469504_memory", "tt_device_469505_memory"]);
}

#[test]
fn totals_follow_the_ledger_and_go_with_the_device() {
    for layout in [RegionLayout::V1, RegionLayout::V3] {
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
    command.env_remove("TELLTALE_DISABLED").env_remove("TELLTALE_SHM_LAYOUT");
    let mut player = Player::start(&mut command);
    player.says("logged");
    assert_eq!(
        player.end(),
        "Device 0: board_id=0x727, asic_location=0 -> asic_id=0x72700 for SHM tracking\n"
    );
    assert_eq!(region_names(&scratch), ["tt_device_468736_memory"]);
}
