//! The faults of a real year, class by class: which rule finds each, and which none can.
//!
//! The classes and their numbers are those of 400 GPU servers (`tests/data/README.md`). What a rule is
//! said to find is injected by the tests of `collecting::health` and `hardware::nvidia::health`.

use std::collections::BTreeSet;

use telltale_schema::health::FaultKind;

use crate::{collecting, hardware};

/// What becomes of a class.
#[derive(Debug, Clone, Copy)]
enum Answer {
    /// This rule finds it.
    Found(FaultKind),
    /// It cannot be seen from a running machine's kernel and drivers, for this reason.
    NotDetectable(&'static str),
    /// It is none of a machine's state: found by a test, or of unknown cause.
    Outside(&'static str),
}

use Answer::{Found, NotDetectable, Outside};

const BMC: &str = "the management controller alone sees it: its event log, by IPMI or Redfish";
const UNKNOWN: &str = "of unknown cause";

/// The answer to each class, by its description.
const ANSWERS: [(&str, Answer); 36] = [
    ("GPU DBE(Double Bit ECC) > Threshold", Found(FaultKind::MemoryUncorrected)),
    ("Link Down", Found(FaultKind::NetworkLinkDown)),
    ("GPU device unknow error", Outside(UNKNOWN)),
    ("Speed Critical (Sensor)", Found(FaultKind::FanFailed)),
    ("GPU PCI link width low", Found(FaultKind::PcieWidthBelowSlot)),
    ("Power Supply Failure detected", Found(FaultKind::PowerSupplyFailed)),
    ("GPU xid Error", Found(FaultKind::XidError)),
    ("Rnic Gid Error", Found(FaultKind::RdmaGidMissing)),
    ("NIC Link Speed low", Found(FaultKind::NetworkSpeedLow)),
    ("nvidia-smi Timeout", Found(FaultKind::SourceHangs)),
    ("NIC Lost", Found(FaultKind::NetworkCardGone)),
    ("GPU Lost", Found(FaultKind::DeviceLost)),
    ("Motherboard Failed", NotDetectable(BMC)),
    ("GPU P2P Bandwidth Low", NotDetectable("no counter has it: a bandwidth test does")),
    ("GPU Temperature High", NotDetectable("an alert (`device_hot`) and no rule of health")),
    ("Redundancy Lost", NotDetectable(BMC)),
    (
        "Machine Check Exception ( Uncorrectable )",
        NotDetectable("the kernel's log has it (rasdaemon)"),
    ),
    ("NIC PCI link Width low", Found(FaultKind::NetworkPcieWidthBelowSlot)),
    ("Low", NotDetectable(BMC)),
    ("GPU SBE(Single Bit ECC) > Threshold", Found(FaultKind::MemoryCorrectedRising)),
    ("Configuration Error", NotDetectable(BMC)),
    ("Bus Correctable error", NotDetectable("of a RAID card, which is not watched")),
    ("RiserCard Fault", NotDetectable(BMC)),
    ("Silent Data Corruption", NotDetectable("nothing reports it: results must be checked")),
    ("GPU device not found", NotDetectable("it was not there when the service began")),
    ("Unknown Error", Outside(UNKNOWN)),
    ("Suspect Machine Offline", Outside("a suspicion of the operators")),
    ("Y-cables Taken offline", Outside("a change by the operators")),
    ("Temporarily Offline", Outside("a test of the operators")),
    ("Server down", Outside("nothing runs that could report it; the coordinator does")),
    ("Remote Optical Module Failure", Outside("of the switch, not of the machine")),
    ("Kubelet Date Absent", Outside("of Kubernetes")),
    ("FS: Multiple Disk FS Error", Outside("of disks, which are not watched")),
    ("Kernel Panic", Outside("nothing runs that could report it; the coordinator does")),
    ("Firmware mismatch", Outside("of an inventory")),
    ("FS Readonly", Outside("of disks, which are not watched")),
];

/// A row of the data.
struct Class {
    level: String,
    part: String,
    description: String,
    faults: u64,
}

fn classes() -> Vec<Class> {
    let text = include_str!("data/infinitehbd-classes.csv");
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        let [level, part, description, faults] = cells[..] else { panic!("{line}") };
        let [level, part, description] = [level, part, description].map(str::to_owned);
        Class { level, part, description, faults: faults.parse().unwrap() }
    };
    text.lines().skip(1).map(row).collect()
}

fn answer(class: &Class) -> Answer {
    let found = ANSWERS.iter().find(|(description, _)| *description == class.description);
    found.unwrap_or_else(|| panic!("{} has no answer", class.description)).1
}

#[test]
fn nine_in_ten_of_a_year_s_hardware_faults_with_a_cause_are_of_classes_that_are_found() {
    let injected: BTreeSet<FaultKind> = collecting::health::INJECTED
        .iter()
        .map(|injected| injected.1)
        .chain(hardware::nvidia::health::FOUND)
        .collect();
    let (mut found, mut named) = (0, 0);
    for class in classes() {
        match answer(&class) {
            Found(kind) => {
                assert!(injected.contains(&kind), "{} is not injected", kind.name());
                assert_eq!(class.level, "Hardware Failure");
                found += class.faults;
                named += class.faults;
            }
            NotDetectable(why) => {
                assert!(!why.is_empty() && class.level == "Hardware Failure", "{}", class.part);
                named += class.faults;
            }
            Outside(why) => assert!(!why.is_empty(), "{}", class.part),
        }
    }
    println!("{found} of {named} hardware faults with a cause are of classes that are found");
    assert!(found * 10 >= named * 9, "{found} of {named}");
}
