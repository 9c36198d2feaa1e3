//! `telltale smi topo`: the matrix of emulated machines.

use telltale_emulator::{Machine, MachineKind, MachineOptions};
use telltale_harness::Scratch;

use crate::cli::command::{Said, said, telltale};

/// What the command says of such a machine.
fn topo(kind: MachineKind, more: &[&str]) -> Said {
    let place = Scratch::new();
    let root = place.join("m");
    let _machine = Machine::create(&root, kind, &MachineOptions::default()).unwrap();
    let mut command = telltale();
    command.args(["smi", "topo", "--root"]).arg(&root).args(more);
    let said = said(&mut command);
    assert_eq!((said.status, said.err.as_str()), (Some(0), ""), "{said:?}");
    said
}

/// The words of the first lines.
fn rows(said: &Said, count: usize) -> Vec<Vec<&str>> {
    said.out.lines().take(count).map(|line| line.split_whitespace().collect()).collect()
}

#[test]
fn chips_of_one_board_and_of_one_socket_are_nearer_than_others() {
    let said = topo(MachineKind::T3000, &[]);
    let rows = rows(&said, 9);
    assert_eq!(rows[0][..5], ["#", "DEVICE", "0", "1", "2"], "{said:?}");
    let [x, brd, node, sys] = ["X", "BRD", "NODE", "SYS"];
    let near = ["0-31,64-95", "0"];
    let first = [&["0", "251732099", x, brd, node, node, sys, sys, sys, sys][..], &near].concat();
    assert_eq!(rows[1], first, "{said:?}");
    assert_eq!(rows[8][8..], [brd, x, "32-63,96-127", "1"], "{said:?}");
    for words in ["BRD  = on one board", "Ethernet links between boards and trays are not shown"] {
        assert!(said.out.contains(words), "{words}: {said:?}");
    }
    assert!(!said.out.contains("PIX"), "what is not there needs no legend: {said:?}");
}

#[test]
fn a_galaxy_is_a_row_for_each_tray() {
    let said = topo(MachineKind::GalaxyWormhole, &[]);
    let expected = [
        "# DEVICE 0-7 8-15 16-23 24-31 CPU AFFINITY NUMA AFFINITY",
        "0-7 T1:N0..T1:N7 PHB NODE SYS SYS 32-63,96-127 1",
        "8-15 T2:N0..T2:N7 NODE PHB SYS SYS 32-63,96-127 1",
        "16-23 T3:N0..T3:N7 SYS SYS PHB NODE 0-31,64-95 0",
        "24-31 T4:N0..T4:N7 SYS SYS NODE PHB 0-31,64-95 0",
    ];
    assert_eq!(rows(&said, 5).iter().map(|row| row.join(" ")).collect::<Vec<_>>(), expected);
}

#[test]
fn the_topology_is_json_too() {
    let said = topo(MachineKind::N300, &["--json"]);
    let found: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(found["connections"], serde_json::json!([["X", "BRD"], ["BRD", "X"]]));
    let [local, remote] = [0, 1].map(|place| &found["devices"][place]);
    assert_eq!(local["path"]["value"]["bridges"], serde_json::json!(["0000:00:03.1"]));
    assert_eq!((&local["pci"], &remote["pci"]), (&"0000:03:00.0".into(), &serde_json::Value::Null));
    assert_eq!((&remote["gateway"], &remote["numa_node"]["value"]), (&0.into(), &0.into()));
}

#[test]
fn where_no_device_is_there_is_no_topology() {
    let place = Scratch::new();
    let said = said(telltale().args(["smi", "topo", "--root"]).arg(place.path()));
    said.complains(2, &["nothing to show", "no Tenstorrent driver is loaded"]);
}
