//! What a broken machine looks like: the reason where the value would be, and the exit status.

use telltale_emulator::{Fault, Machine, MachineKind, MachineOptions};
use telltale_harness::Scratch;

use crate::cli::command::{Said, smi};

/// The details of an n150 with one fault.
fn with_fault(fault: &str) -> Said {
    let place = Scratch::new();
    let root = place.join("m");
    let mut machine =
        Machine::create(&root, MachineKind::N150, &MachineOptions::default()).unwrap();
    // Its heartbeat does not count, which would be one more fault.
    machine.inject("missing:0:tt_heartbeat".parse::<Fault>().unwrap()).unwrap();
    machine.inject(fault.parse::<Fault>().unwrap()).unwrap();
    smi(&root, &["-d"])
}

#[test]
fn every_fault_is_shown_as_what_it_is() {
    let cases = [
        ("missing:0:tt_aiclk", 0, "AICLK                 not available: not offered"),
        ("error:0:tt_aiclk:EIO", 1, "AICLK                 not available: reading failed"),
        ("error:0:tt_aiclk:EACCES", 1, "AICLK                 not available: permission denied"),
        ("error:0:tt_aiclk:ENODATA", 1, "AICLK                 not available: device is resetting"),
        ("error:0:tt_aiclk:ENODEV", 1, "AICLK                 not available: went away"),
        ("garbage:0:tt_aiclk", 1, "AICLK                 not available: implausible value"),
        ("garbage:0:temp1_input", 1, "temperature           not available: implausible value"),
        ("garbage:0:power1_input", 1, "power (ASIC core)     not available: implausible value"),
        ("garbage:0:tt_aiclk:minus-one", 1, "AICLK                 not available: implausible"),
        ("garbage:0:tt_aiclk:empty", 1, "AICLK                 not available: implausible"),
        ("garbage:0:tt_aiclk:binary", 1, "AICLK                 not available: implausible"),
        ("garbage:0:tt_aiclk:long", 1, "AICLK                 not available: implausible"),
        ("hang:0:tt_aiclk", 1, "AICLK                 not available: timed out"),
        ("reset:0", 1, "AICLK                 not available: device is resetting"),
        ("old-driver", 1, "open by               not available: not offered"),
        ("pids:0:zero", 0, "open by               hidden"),
        ("pids:0:duplicates", 0, "open by               no process"),
        ("pids:0:junk", 1, "open by               no process"),
    ];
    for (fault, status, line) in cases {
        let said = with_fault(fault);
        assert_eq!((said.status, said.err.as_str()), (Some(status), ""), "{fault}: {}", said.out);
        assert!(said.out.contains(&format!("\n  {line}")), "{fault}: {line}\n{}", said.out);
        let complains = said.out.contains("\ntenstorrent: ");
        assert_eq!(complains, status == 1, "{fault}: {}", said.out);
    }
}

#[test]
fn a_lost_chip_is_not_shown() {
    let said = with_fault("vanish:0");
    said.complains(2, &["driver is loaded and has no device"]);
}

#[test]
fn the_rest_of_the_machine_is_shown_all_the_same() {
    let place = Scratch::new();
    let root = place.join("m");
    let mut machine =
        Machine::create(&root, MachineKind::T3000, &MachineOptions::default()).unwrap();
    for fault in ["hang:0:temp1_input", "reset:1", "vanish:2"] {
        machine.inject(fault.parse::<Fault>().unwrap()).unwrap();
    }
    let said = smi::<&str>(&root, &[]);
    assert_eq!(said.status, Some(1));
    let row = |id: &str| {
        let line = said.out.lines().find(|line| line.split(' ').next() == Some(id));
        line.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    assert_eq!(
        row("251732099").unwrap(),
        "251732099 Wormhole_B0 n/a 22 W 500 MHz 0 B / 12.0 GiB 0 B / 91.5 MiB -"
    );
    // It was not seen before, and its firmware does not say who it is.
    assert_eq!(row("0000:41:00.0").unwrap(), "0000:41:00.0 n/a n/a n/a n/a 0 B n/a 0 B n/a -");
    assert_eq!(row("251732113"), None);
    assert!(row("251732142").unwrap().contains("36 C"), "{}", said.out);
}
