//! The tree of each kind of machine, compared with recorded listings.
//!
//! `TELLTALE_BLESS=1` rewrites the listings; look at the difference before committing it.

#![allow(clippy::unwrap_used, reason = "a failed step is the report of a test")]

use std::fmt::Write;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use telltale_emulator::{DriverVersion, Machine, MachineKind, MachineOptions};
use telltale_harness::Scratch;
use telltale_schema::chip::BoardType;

/// One line for each entry under `directory`, sorted: links with their target, directories and
/// files with their mode, files with their text.
fn listing(root: &Path, directory: &Path, into: &mut String) {
    let mut paths: Vec<_> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        let name = path.strip_prefix(root).unwrap().display().to_string();
        if name.starts_with('.') {
            continue;
        }
        let metadata = fs::symlink_metadata(&path).unwrap();
        let mode = metadata.permissions().mode() & 0o7777;
        if metadata.is_symlink() {
            writeln!(into, "{name} -> {}", fs::read_link(&path).unwrap().display()).unwrap();
        } else if metadata.is_dir() {
            writeln!(into, "{name}/ {mode:o}").unwrap();
            listing(root, &path, into);
        } else {
            let text = fs::read_to_string(&path).unwrap();
            writeln!(into, "{name} {mode:o} {text:?}").unwrap();
        }
    }
}

fn check_golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("TELLTALE_BLESS").is_some() {
        fs::write(&path, text).unwrap();
    }
    let recorded = fs::read_to_string(&path).unwrap_or_default();
    for (number, (now, then)) in text.lines().zip(recorded.lines()).enumerate() {
        assert_eq!(now, then, "{name}, line {}", number + 1);
    }
    assert_eq!(text.lines().count(), recorded.lines().count(), "{name}: number of lines");
}

/// What the lines of the host's parts, which every machine has, have in their paths or targets.
const OF_PARTS: [&str; 6] = [
    "devices/platform",
    "0000:00:14.0",
    "0000:e",
    "sys/class/net",
    "sys/class/infiniband",
    "sys/devices/system",
];

/// The lines of what is not the host's parts, or of these alone.
fn lines_of(text: &str, are_parts: bool) -> String {
    let is_of_parts = |line: &str| OF_PARTS.iter().any(|part| line.contains(part));
    let lines = text.lines().filter(|line| is_of_parts(line) == are_parts);
    lines.map(|line| format!("{line}\n")).collect()
}

fn full_listing(kind: MachineKind, driver_version: DriverVersion) -> String {
    let scratch = Scratch::new();
    let options = MachineOptions { driver_version, ..MachineOptions::default() };
    let machine = Machine::create(&scratch.join("root"), kind, &options).unwrap();
    let mut text = String::new();
    listing(machine.root(), machine.root(), &mut text);
    text
}

#[test]
fn cards_show_what_the_driver_shows() {
    for kind in [MachineKind::N150, MachineKind::N300, MachineKind::P150, MachineKind::P300] {
        let text = full_listing(kind, DriverVersion::default());
        check_golden(&format!("{kind}.txt"), &lines_of(&text, false));
    }
}

#[test]
fn every_machine_has_the_parts_of_a_server() {
    for kind in [MachineKind::N150, MachineKind::P150] {
        let text = full_listing(kind, DriverVersion::default());
        check_golden("parts.txt", &lines_of(&text, true));
    }
}

#[test]
fn older_drivers_show_less() {
    let cases = [
        (MachineKind::N150, DriverVersion::new(2, 4, 1)),
        (MachineKind::P150, DriverVersion::new(2, 0, 0)),
        (MachineKind::P150, DriverVersion::new(2, 6, 0)),
    ];
    for (kind, driver) in cases {
        let text = lines_of(&full_listing(kind, driver), false);
        check_golden(&format!("{kind}-{driver}.txt"), &text);
    }
}

/// One line for each chip, read from the tree as a reader would.
#[test]
fn machines_with_many_chips_number_and_name_them_as_the_driver_does() {
    for kind in [MachineKind::T3000, MachineKind::GalaxyWormhole, MachineKind::GalaxyBlackhole] {
        let scratch = Scratch::new();
        let options = MachineOptions::default();
        let machine = Machine::create(&scratch.join("root"), kind, &options).unwrap();
        let mut text = String::new();
        for place in 0..machine.chip_count() {
            let ordinal = machine.ordinal(place).unwrap();
            let class = machine.root().join(format!("sys/class/tenstorrent/tenstorrent!{ordinal}"));
            let read = |name: &str| fs::read_to_string(class.join(name)).unwrap().trim().to_owned();
            let pci = fs::canonicalize(class.join("device")).unwrap();
            let hwmon = fs::read_dir(pci.join("hwmon")).unwrap().next().unwrap().unwrap();
            let identity = &machine.descriptions(place)[0].identity;
            assert_eq!(read("tt_serial").parse().ok(), identity.board_id);
            assert_eq!(read("tt_asic_id").parse().ok(), identity.asic_id);
            assert_eq!(BoardType::from_card_type(&read("tt_card_type")), identity.board_type);
            let address = pci.file_name().unwrap().to_str().unwrap().parse();
            assert_eq!(address.ok(), identity.pci);
            let shown: Vec<_> =
                machine.descriptions(place).iter().map(|chip| chip.identity.display_id()).collect();
            writeln!(
                text,
                "{ordinal} {} {} {} {} {} {}",
                pci.file_name().unwrap().display(),
                hwmon.file_name().display(),
                read("tt_card_type"),
                read("tt_serial"),
                read("tt_asic_id"),
                shown.join(" ")
            )
            .unwrap();
        }
        check_golden(&format!("{kind}.txt"), &text);
    }
}
