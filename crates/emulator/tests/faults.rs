//! Each fault as a reader of the tree meets it, and that clearing it leaves no trace.
#![allow(clippy::unwrap_used, reason = "a failed step is the report of a test")]

use std::fs;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use telltale_emulator::{
    ChipLoad, Emulator, EmulatorOptions, Fault, InjectError, MAX_FAULTS, Machine, MachineKind,
    MachineOptions,
};
use telltale_harness::{Scratch, wait_until};

const SECOND_NS: u64 = 1_000_000_000;

struct Fixture {
    machine: Machine,
    _scratch: Scratch,
}

impl Fixture {
    fn new(kind: MachineKind) -> Self {
        let scratch = Scratch::new();
        let machine =
            Machine::create(&scratch.join("m"), kind, &MachineOptions::default()).unwrap();
        Self { machine, _scratch: scratch }
    }

    fn class(&self, name: &str) -> PathBuf {
        self.machine.root().join("sys/class/tenstorrent/tenstorrent!0").join(name)
    }

    fn hwmon(&self, name: &str) -> PathBuf {
        self.machine.root().join("sys/class/hwmon/hwmon1").join(name)
    }

    fn pids(&self) -> PathBuf {
        self.machine.root().join("proc/driver/tenstorrent/0/pids")
    }

    /// Injects, lets `check` look, clears, and makes sure that all is as before.
    fn with(&mut self, fault: &str, check: impl FnOnce(&Self)) {
        let watched = [self.class("tt_aiclk"), self.hwmon("power1_input"), self.pids()];
        let before = watched.each_ref().map(|path| fs::read(path).unwrap());
        let fault: Fault = fault.parse().unwrap();
        self.machine.inject(fault.clone()).unwrap();
        // A tick must not undo it.
        self.machine.tick(SECOND_NS, &[]).unwrap();
        check(self);
        assert_eq!(self.machine.faults().count(), 1);
        self.machine.clear(&fault).unwrap();
        let lengths = |files: &[Vec<u8>; 3]| files.each_ref().map(Vec::len);
        let after = watched.each_ref().map(|path| fs::read(path).unwrap());
        assert_eq!(lengths(&after), lengths(&before), "{fault}");
    }
}

#[test]
fn files_go_missing_or_turn_into_errors() {
    let mut fixture = Fixture::new(MachineKind::N300);
    fixture.with("missing:0:tt_aiclk", |fixture| {
        assert!(fs::symlink_metadata(fixture.class("tt_aiclk")).is_err());
        assert!(fixture.class("tt_axiclk").exists());
    });
    fixture.with("error:0:power1_input:EIO", |fixture| {
        let path = fixture.hwmon("power1_input");
        assert_eq!(fs::read_link(&path).unwrap(), PathBuf::from("errno:EIO"));
        assert_eq!(fs::read(&path).unwrap_err().kind(), ErrorKind::NotFound);
    });
    fixture.with("missing:0:pids", |fixture| assert!(!fixture.pids().exists()));
}

#[test]
fn a_reset_hides_what_the_firmware_reports_and_restarts_its_counters() {
    let mut fixture = Fixture::new(MachineKind::N300);
    let no_data = Some(PathBuf::from("errno:ENODATA"));
    fixture.with("reset:0", |fixture| {
        for path in [
            fixture.class("tt_aiclk"),
            fixture.class("tt_serial"),
            fixture.class("pcie_perf_counters/slv_rd_data_word_sent1"),
            fixture.hwmon("temp1_input"),
        ] {
            assert_eq!(fs::read_link(&path).ok(), no_data, "{}", path.display());
        }
        assert_eq!(fs::read_to_string(fixture.hwmon("name")).unwrap(), "wormhole\n");
        assert_eq!(fs::read_to_string(fixture.pids()).unwrap(), "");
    });
    let heartbeat = fs::read_to_string(fixture.class("tt_heartbeat")).unwrap();
    assert_eq!(heartbeat, "0\n");
}

#[test]
fn a_link_trains_slower_or_narrower_than_its_slot_and_never_faster() {
    let mut fixture = Fixture::new(MachineKind::N300);
    let read = |fixture: &Fixture, name: &str| {
        fs::read_to_string(fixture.class("device").join(name)).unwrap()
    };
    let link = |fixture: &Fixture, place: &str| {
        let names = ["current_link_speed", "current_link_width", "max_link_speed"];
        names.map(|name| read(fixture, &format!("{place}{name}")))
    };
    for (fault, expected) in [
        ("link:0:8:4", ["8.0 GT/s PCIe\n", "4\n", "16.0 GT/s PCIe\n"]),
        ("link:0:16:8", ["16.0 GT/s PCIe\n", "8\n", "16.0 GT/s PCIe\n"]),
        ("link:0:32:16", ["16.0 GT/s PCIe\n", "16\n", "16.0 GT/s PCIe\n"]),
    ] {
        fixture.with(fault, |fixture| {
            assert_eq!(link(fixture, ""), expected, "{fault}");
            assert_eq!(link(fixture, "../"), expected, "{fault}, its port");
        });
        assert_eq!(read(&fixture, "current_link_width"), "16\n", "{fault} is over");
    }
    fixture.with("missing:0:max_link_width", |fixture| {
        assert!(!fixture.class("device/max_link_width").exists());
        assert_eq!(read(fixture, "../max_link_width"), "16\n");
    });
}

#[test]
fn files_fill_with_garbage() {
    let mut fixture = Fixture::new(MachineKind::P150);
    let cases: [(&str, &str, Vec<u8>); 6] = [
        ("in0_input", "implausible", b"3210000\n".to_vec()),
        ("power1_input", "implausible", b"4000000000\n".to_vec()),
        ("temp1_input", "minus-one", b"-1\n".to_vec()),
        ("temp1_input", "empty", Vec::new()),
        ("temp1_input", "binary", (0..=255).rev().collect()),
        ("temp1_input", "long", [vec![b'7'; 1 << 20], b"\n".to_vec()].concat()),
    ];
    for (attribute, garbage, bytes) in cases {
        fixture.with(&format!("garbage:0:{attribute}:{garbage}"), |fixture| {
            assert!(fs::read(fixture.hwmon(attribute)).unwrap() == bytes, "{attribute} {garbage}");
        });
    }
}

#[test]
fn a_hanging_file_can_be_opened_and_has_nothing_to_read() {
    let mut fixture = Fixture::new(MachineKind::N150);
    let mut reader = None;
    fixture.with("hang:0:temp1_input", |fixture| {
        let path = fixture.hwmon("temp1_input");
        assert!(fs::metadata(&path).unwrap().file_type().is_fifo());
        // Without waiting, because that would be for ever.
        let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap();
        let mut file = fs::OpenOptions::new().read(true).custom_flags(flags).open(&path).unwrap();
        let error = file.read(&mut [0; 8]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        reader = Some(file);
    });
    // A program that another test begins at this moment may hold the other end until it runs.
    let mut reader = reader.unwrap();
    let has_ended = || matches!(reader.read(&mut [0; 8]), Ok(0));
    wait_until("a waiting reader to continue", Duration::from_secs(20), has_ended);
}

#[test]
fn an_old_driver_lists_no_pids() {
    let mut fixture = Fixture::new(MachineKind::N150);
    let version = fixture.machine.root().join("sys/module/tenstorrent/version");
    fixture.with("old-driver", |fixture| {
        assert_eq!(fs::read_to_string(&version).unwrap(), "2.4.1\n");
        assert!(!fixture.machine.root().join("proc/driver").exists());
        assert!(!fixture.class("tt_heartbeat").exists());
        assert!(fixture.class("tt_asic_id").exists());
    });
    assert_eq!(fs::read_to_string(&version).unwrap(), "2.10.0\n");
}

#[test]
fn the_list_of_processes_can_lie() {
    let mut fixture = Fixture::new(MachineKind::N150);
    fixture.machine.set_holders(0, &[41, 0, 42]).unwrap();
    assert!(fs::symlink_metadata(fixture.machine.root().join("proc/0")).is_err());
    fixture.machine.set_holders(0, &[41, 42]).unwrap();
    let cases = [
        ("pids:0:zero", "41\n42\n0\n"),
        ("pids:0:duplicates", "41\n41\n41\n42\n42\n42\n"),
        ("pids:0:junk", "-3\nnot a pid\n\n99999999999999999999\n41\n42\n12x"),
        ("garbage:0:pids:minus-one", "-1\n"),
    ];
    for (fault, text) in cases {
        fixture.with(fault, |fixture| {
            assert_eq!(fs::read_to_string(fixture.pids()).unwrap(), text);
        });
    }
}

/// What a file of a chip says as a number.
fn number(fixture: &Fixture, name: &str) -> u64 {
    fs::read_to_string(fixture.class(name)).unwrap().trim().parse().unwrap()
}

#[test]
fn a_stopped_firmware_counts_no_heartbeat_until_it_goes_on() {
    let mut fixture = Fixture::new(MachineKind::T3000);
    let other = fixture.machine.root().join("sys/class/tenstorrent/tenstorrent!1/tt_heartbeat");
    let others = || fs::read_to_string(&other).unwrap().trim().parse::<u64>().unwrap();
    fixture.machine.tick(0, &[]).unwrap();
    let (before, others_before) = (number(&fixture, "tt_heartbeat"), others());
    let fault: Fault = "stop:0".parse().unwrap();
    fixture.machine.inject(fault.clone()).unwrap();
    fixture.machine.tick(SECOND_NS, &[]).unwrap();
    assert_eq!(number(&fixture, "tt_heartbeat"), before);
    assert_eq!(others(), others_before + 10, "that of another chip");
    fixture.machine.clear(&fault).unwrap();
    fixture.machine.tick(2 * SECOND_NS, &[]).unwrap();
    assert_eq!(number(&fixture, "tt_heartbeat"), before + 10);
}

#[test]
fn what_a_fault_counted_stays_counted() {
    let mut fixture = Fixture::new(MachineKind::P150);
    let total = |fixture: &Fixture, name: &str| {
        let text = fs::read_to_string(fixture.class("device").join(name)).unwrap();
        text.lines().last().unwrap().rsplit(' ').next().unwrap().parse::<u64>().unwrap()
    };
    fixture.with("trip:0", |_| {});
    fixture.with("trip:0", |fixture| assert_eq!(number(fixture, "tt_therm_trip_count"), 2));
    for (file, other) in [
        ("aer_dev_correctable", "aer_dev_nonfatal"),
        ("aer_dev_nonfatal", "aer_dev_fatal"),
        ("aer_dev_fatal", "aer_dev_correctable"),
    ] {
        let before = total(&fixture, other);
        fixture.with(&format!("raise:0:{file}"), |_| {});
        fixture.with(&format!("raise:0:{file}:70"), |fixture| {
            assert_eq!((total(fixture, file), total(fixture, other)), (71, before), "{file}");
        });
        assert_eq!(total(&fixture, file), 71, "{file}");
    }
    fixture.with("vanish:0", |_| {});
    assert_eq!(total(&fixture, "aer_dev_fatal"), 0, "of a function that was just found");
}

#[test]
fn an_adapter_that_is_gone_comes_back_and_its_port_stays() {
    let mut fixture = Fixture::new(MachineKind::N150);
    let path = |fixture: &Fixture, inside: &str| fixture.machine.root().join("sys").join(inside);
    fixture.with("nic:eth1:gone", |fixture| {
        for inside in ["class/net/eth1", "bus/pci/devices/0000:e2:00.0"] {
            assert!(fs::symlink_metadata(path(fixture, inside)).is_err(), "{inside}");
        }
        assert!(path(fixture, "class/net/eth0/carrier").exists());
        assert!(path(fixture, "bus/pci/devices/0000:e0:02.1/class").exists());
    });
    assert_eq!(fs::read_to_string(path(&fixture, "class/net/eth1/carrier")).unwrap(), "1\n");
    assert!(path(&fixture, "bus/pci/devices/0000:e2:00.0/vendor").exists());
}

#[test]
fn impossible_faults_are_refused() {
    let mut fixture = Fixture::new(MachineKind::P300);
    for bad in [
        "reset:2",
        "missing:0:tt_eth_fw_ver",
        "hang:0:../../vendor",
        "error:0:nothing:EIO",
        "vanish:0:1",
        "stop:2",
        "fan:nct6798/fan5:slow",
        "fan:eth0:slow",
    ] {
        assert!(fixture.machine.inject(bad.parse().unwrap()).is_err(), "{bad}");
    }
    let mut old = Fixture::new(MachineKind::N150);
    assert!(old.machine.inject("trip:0".parse().unwrap()).is_err(), "Wormhole counts no trips");
    let never = fixture.machine.clear(&Fault::OldDriver);
    assert!(matches!(never, Err(InjectError::NotInjected(Fault::OldDriver))));
    assert_eq!(fixture.machine.faults().count(), 0);
}

#[test]
fn a_vanished_chip_takes_its_files_with_it() {
    let mut fixture = Fixture::new(MachineKind::P300);
    let fault: Fault = "vanish:0:3".parse().unwrap();
    let pci = fs::canonicalize(fixture.class("device")).unwrap();
    fixture.machine.inject(fault.clone()).unwrap();
    fixture.machine.tick(SECOND_NS, &[]).unwrap();
    assert!(!pci.exists());
    assert!(fs::symlink_metadata(fixture.machine.root().join("sys/class/hwmon/hwmon1")).is_err());
    assert_eq!((fixture.machine.ordinal(0), fixture.machine.ordinal(1)), (None, Some(1)));
    fixture.machine.clear_all().unwrap();
    assert_eq!(fixture.machine.ordinal(0), Some(3));
    let back = fixture.machine.root().join("sys/class/tenstorrent/tenstorrent!3/device");
    assert_eq!(fs::canonicalize(back).unwrap(), pci);
}

#[test]
fn a_reader_never_finds_half_a_file() {
    let mut fixture = Fixture::new(MachineKind::P150);
    let path = fixture.hwmon("temp1_input");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut different = std::collections::BTreeSet::new();
            while !done.load(Ordering::Relaxed) {
                let text = fs::read_to_string(&path).unwrap();
                let number = text.strip_suffix('\n').unwrap().parse::<u32>().unwrap();
                assert!((20_000..100_000).contains(&number), "{text:?}");
                different.insert(number);
            }
            different.len()
        });
        let busy = ChipLoad { busy_ratio: 1.0, ..Default::default() };
        for step in 0..2_000u64 {
            fixture.machine.tick(step * SECOND_NS / 20, &[busy]).unwrap();
        }
        done.store(true, Ordering::Relaxed);
        assert!(reader.join().unwrap() > 1, "the reader has seen it move");
    });
}

#[test]
fn a_line_breaks_or_mends_and_is_answered_in_one() {
    let scratch = Scratch::new();
    let options = EmulatorOptions::default();
    let emulator = Emulator::start(&scratch.join("m"), MachineKind::P150, options).unwrap();
    for (line, answer, left) in [
        ("list", "nothing is broken", 0),
        ("stop:0", "injected stop:0", 1),
        ("stop:0", "injected stop:0", 2),
        ("list", "broken: stop:0", 2),
        ("raise:0:aer_dev_fatal", "injected raise:0:aer_dev_fatal:1", 3),
        ("clear stop:0", "cleared stop:0", 1),
        ("clear stop:0", "refused: the fault stop:0 was not injected", 1),
        ("vanish:0:7", "injected vanish:0:7", 2),
        ("stop:0", "refused: there is no chip 0 on this machine now", 2),
        ("clear", "cleared raise:0:aer_dev_fatal:1, vanish:0:7", 0),
        ("stop:7", "injected stop:7", 1),
    ] {
        assert_eq!(emulator.command(line), answer, "{line}");
        assert_eq!(emulator.faults().len(), left, "{line}");
    }
    for line in ["help", "fire", "", "clear fire"] {
        let answer = emulator.command(line);
        assert!(answer.contains("vanish:N[:M]") && answer.lines().count() == 1, "{answer}");
    }
    emulator.shutdown().unwrap();
}

#[test]
fn a_machine_has_so_many_faults_and_no_more() {
    let mut fixture = Fixture::new(MachineKind::N150);
    let fault: Fault = "memory:mc0:uncorrected".parse().unwrap();
    (0..MAX_FAULTS).for_each(|_| fixture.machine.inject(fault.clone()).unwrap());
    let refused = fixture.machine.inject(fault.clone());
    assert!(matches!(refused, Err(InjectError::TooMany)), "{refused:?}");
    fixture.machine.clear(&fault).unwrap();
    fixture.machine.inject(fault).unwrap();
}
