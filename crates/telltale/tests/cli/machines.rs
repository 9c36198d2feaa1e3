//! `telltale smi` on machines of every kind, in every form.

use std::collections::BTreeSet;

use serde_json::Value;
use telltale_emulator::{Machine, MachineKind, MachineOptions};
use telltale_harness::Scratch;

use crate::cli::command::{Said, smi};

/// What `telltale smi` says of a machine as it is made.
fn shown(kind: MachineKind, arguments: &[&str]) -> Said {
    let place = Scratch::new();
    let root = place.join("m");
    let _machine = Machine::create(&root, kind, &MachineOptions::default()).unwrap();
    let said = smi(&root, arguments);
    assert_eq!((said.status, said.err.as_str()), (Some(0), ""), "{kind}: {said:?}");
    said
}

/// Digits of temperature, power and clock are for the emulator to choose; their places are not.
fn normalised(table: &str) -> String {
    let mut text = String::new();
    for line in table.lines() {
        let units = [" C ", " W ", " MHz "];
        let mut line = line.to_owned();
        for unit in units {
            let Some(at) = line.find(unit) else { continue };
            let digits = line[..at].bytes().rev().take_while(u8::is_ascii_digit).count();
            line.replace_range(at - digits..at, &"#".repeat(digits));
        }
        text.push_str(&line);
        text.push('\n');
    }
    text
}

const N300: &str = "\
ID          ARCH         TEMP  POWER    CLOCK  DRAM USED  CAPACITY    L1 USED  CAPACITY    HELD BY
251732099   Wormhole_B0  ## C   ## W  ### MHz        0 B  / 12.0 GiB      0 B  / 91.5 MiB  -
251732099R  Wormhole_B0   n/a    n/a      n/a        0 B  / 12.0 GiB      0 B  / 91.5 MiB  n/a

No process holds a device or has recorded memory.
";

const T3000: &str = "\
ID          ARCH         TEMP  POWER    CLOCK  DRAM USED  CAPACITY    L1 USED  CAPACITY    HELD BY
251732099   Wormhole_B0  ## C   ## W  ### MHz        0 B  / 12.0 GiB      0 B  / 91.5 MiB  -
251732099R  Wormhole_B0   n/a    n/a      n/a        0 B  / 12.0 GiB      0 B  / 91.5 MiB  n/a
2517320d4   Wormhole_B0  ## C   ## W  ### MHz        0 B  / 12.0 GiB      0 B  / 91.5 MiB  -
2517320d4R  Wormhole_B0   n/a    n/a      n/a        0 B  / 12.0 GiB      0 B  / 91.5 MiB  n/a
251732113   Wormhole_B0  ## C   ## W  ### MHz        0 B  / 12.0 GiB      0 B  / 91.5 MiB  -
251732113R  Wormhole_B0   n/a    n/a      n/a        0 B  / 12.0 GiB      0 B  / 91.5 MiB  n/a
251732142   Wormhole_B0  ## C   ## W  ### MHz        0 B  / 12.0 GiB      0 B  / 91.5 MiB  -
251732142R  Wormhole_B0   n/a    n/a      n/a        0 B  / 12.0 GiB      0 B  / 91.5 MiB  n/a

No process holds a device or has recorded memory.
";

const N150: &str = "\
ID         ARCH         TEMP  POWER    CLOCK  DRAM USED  CAPACITY    L1 USED  CAPACITY     HELD BY
261732099  Wormhole_B0  ## C   ## W  ### MHz        0 B  / 12.0 GiB      0 B  / 102.9 MiB  -

No process holds a device or has recorded memory.
";

const P150: &str = "\
ID           ARCH       TEMP  POWER    CLOCK  DRAM USED  CAPACITY    L1 USED  CAPACITY     HELD BY
40231732058  Blackhole  ## C   ## W  ### MHz        0 B  / 32.0 GiB      0 B  / 180.0 MiB  -

No process holds a device or has recorded memory.
";

const P300: &str = "\
ID            ARCH       TEMP  POWER    CLOCK  DRAM USED  CAPACITY    L1 USED  CAPACITY     HELD BY
8a262e641320  Blackhole  ## C   ## W  ### MHz        0 B  / 32.0 GiB      0 B  / 180.0 MiB  -
8a262e641321  Blackhole  ## C   ## W  ### MHz        0 B  / 32.0 GiB      0 B  / 180.0 MiB  -

No process holds a device or has recorded memory.
";

/// What is below the tables of a machine without a service.
const NOT_SAMPLED: &str = "
No service answered: run `telltale smi -d` or `telltale alerts` to look for stopped heartbeats.
";

#[test]
fn cards_are_shown_with_their_remote_chips() {
    let cases = [
        (MachineKind::N150, N150),
        (MachineKind::N300, N300),
        (MachineKind::T3000, T3000),
        (MachineKind::P150, P150),
        (MachineKind::P300, P300),
    ];
    for (kind, table) in cases {
        assert_eq!(normalised(&shown(kind, &[]).out), format!("{table}{NOT_SAMPLED}"), "{kind}");
    }
}

#[test]
fn a_galaxy_is_shown_tray_by_tray() {
    let cases = [
        (MachineKind::GalaxyWormhole, "Wormhole_B0", "/ 12.0 GiB      0 B  / 114.4 MiB"),
        (MachineKind::GalaxyBlackhole, "Blackhole", "/ 32.0 GiB      0 B  / 195.0 MiB"),
    ];
    for (kind, architecture, memory) in cases {
        let mut table = format!(
            "{:<5}  {:<2$}  TEMP  POWER    CLOCK  DRAM USED  CAPACITY    L1 USED  CAPACITY     HELD BY\n",
            "ID",
            "ARCH",
            architecture.len()
        );
        for (tray, chip) in (1..=4).flat_map(|tray| (0..8).map(move |chip| (tray, chip))) {
            let start = format!("T{tray}:N{chip}  {architecture}  ## C   ## W  ### MHz");
            table.push_str(&format!("{start}        0 B  {memory}  -\n"));
        }
        table.push_str("\nNo process holds a device or has recorded memory.\n");
        assert_eq!(normalised(&shown(kind, &[]).out), format!("{table}{NOT_SAMPLED}"), "{kind}");
    }
}

#[test]
fn details_say_why_a_remote_chip_has_no_sensors() {
    let page = shown(MachineKind::N300, &["-d"]).out;
    let (_, remote) = page.split_once("\nDevice 251732099R\n").expect("it has its section");
    let (remote, _) = remote.split_once("\nHost\n").expect("the host is the last");
    assert_eq!(
        remote,
        "  board                 n300
  board id              0100014511732099
  health                unknown
  sensors               not available: not offered by this device or driver (reached through \
         251732099; the driver shows nothing of it)
  DRAM used             0 B
  DRAM capacity         12.0 GiB (from the table of boards)
  L1 used               0 B
  L1 capacity           91.5 MiB (from the table of boards)
  open by               not available: not offered by this device or driver (reached through \
         251732099; the driver shows nothing of it)
"
    );
    let galaxy = shown(MachineKind::GalaxyBlackhole, &["-d"]).out;
    let (_, first) = galaxy.split_once("\nDevice T1:N0\n").expect("it has its section");
    for line in ["board                 galaxy-blackhole", "tray, chip (driver)   1, 1 (from 1)"] {
        assert!(first.contains(line), "{first}");
    }
}

#[test]
fn csv_has_a_row_a_device_with_raw_numbers() {
    let text = shown(MachineKind::N300, &["--csv"]).out;
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(
        rows[0],
        [
            "taken_at_unix_ns",
            "id",
            "board_type",
            "architecture",
            "pci_address",
            "temperature_celsius",
            "power_watts",
            "aiclk_hertz",
            "dram_used_bytes",
            "dram_capacity_bytes",
            "l1_used_bytes",
            "l1_capacity_bytes",
            "faults"
        ]
    );
    assert_eq!(rows.len(), 3);
    assert!(rows.iter().all(|row| row.len() == rows[0].len()));
    assert_eq!(rows[1][1..5], ["251732099", "n300", "wormhole_b0", "0000:03:00.0"]);
    assert!(rows[1][5..12].iter().all(|field| field.parse::<f64>().is_ok()), "{:?}", rows[1]);
    let remote = ["", "", "", "", "0", "12884901888", "0", "95944704", ""];
    assert_eq!(rows[2][4..], remote);
    let processes = shown(MachineKind::N300, &["--csv", "-d"]).out;
    assert_eq!(processes.lines().count(), 1, "nobody is there");
    assert!(processes.starts_with("taken_at_unix_ns,pid,user,name,command,state,device,kind,"));
}

#[test]
fn json_has_numbers_as_numbers_and_a_reason_for_each_absence() {
    let text = shown(MachineKind::T3000, &["--json"]).out;
    assert_eq!(text.lines().count(), 1);
    let snapshot: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(snapshot["schema_version"], 1);
    assert!(snapshot["taken_at"].is_u64() && snapshot["collected_in_ns"].is_u64());
    let devices = snapshot["devices"].as_array().unwrap();
    let ids: BTreeSet<&str> = devices.iter().filter_map(|one| one["id"].as_str()).collect();
    assert_eq!(ids.len(), 8);
    let (local, remote) = (&devices[0], &devices[1]);
    assert!(local["telemetry"]["temperature_celsius"]["value"].is_f64());
    assert!(local["telemetry"]["aiclk_hertz"]["value"].is_u64());
    assert_eq!(remote["telemetry"]["power_watts"]["absent"], "unsupported");
    assert_eq!(remote["identity"]["remote"], true);
    for space in remote["spaces"].as_array().unwrap() {
        assert_eq!(space["used_bytes"]["value"], 0);
        assert!(space["capacity_bytes"]["value"].is_u64());
    }
    let sources = snapshot["sources"].as_array().unwrap();
    assert!(sources.iter().all(|source| source["errors"].as_array().unwrap().is_empty()));
}
