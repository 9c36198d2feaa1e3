//! Devices as processes see them: opened, used, closed, abused.
#![allow(clippy::unwrap_used, reason = "a failed step is the report of a test")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv,
    send, socket_with,
};
use telltale_emulator::{
    AllocateError, DeviceActivity, DeviceClient, DeviceError, Emulator, EmulatorOptions, Fault,
    MachineKind,
};
use telltale_harness::{ChildGuard, Scratch, wait_until};
use telltale_schema::memory::MemoryKind;

const TIMEOUT: Duration = Duration::from_secs(60);

fn start(scratch: &Scratch, kind: MachineKind) -> Emulator {
    let options = EmulatorOptions { tick: Duration::from_millis(20), ..Default::default() };
    Emulator::start(&scratch.join("m"), kind, options).unwrap()
}

fn pids(emulator: &Emulator, ordinal: u32) -> Vec<u32> {
    let path = emulator.root().join(format!("proc/driver/tenstorrent/{ordinal}/pids"));
    fs::read_to_string(path).unwrap().lines().map(|line| line.parse().unwrap()).collect()
}

fn nothing_is_allocated(emulator: &Emulator) -> bool {
    emulator.usage().iter().all(|chip| chip.total.is_empty())
}

/// The program of `examples/churn.rs`, which cargo builds beside the tests.
fn churn(emulator: &Emulator, ordinal: u32, seed: u64, steps: &str) -> ChildGuard {
    let test = std::env::current_exe().unwrap();
    let program = test.ancestors().nth(2).unwrap().join("examples/churn");
    assert!(program.exists(), "{} is built by `cargo test` without --test", program.display());
    let mut command = Command::new(program);
    command.arg(emulator.root()).args([ordinal.to_string(), seed.to_string(), steps.to_owned()]);
    ChildGuard::spawn(command.stdout(Stdio::piped()))
}

#[test]
fn opening_and_closing_a_device_shows_in_its_pids_at_once() {
    let scratch = Scratch::new();
    let emulator = start(&scratch, MachineKind::P300);
    let me = std::process::id();
    assert!(pids(&emulator, 0).is_empty());
    let first = DeviceClient::open(emulator.root(), 0).unwrap();
    let second = DeviceClient::open(emulator.root(), 0).unwrap();
    assert_eq!(pids(&emulator, 0), [me, me], "one line for each open connection");
    assert!(pids(&emulator, 1).is_empty());
    let link = emulator.root().join(format!("proc/{me}"));
    assert_eq!(fs::read_link(&link).unwrap(), PathBuf::from(format!("/proc/{me}")));
    drop(first);
    wait_until("one line to go", TIMEOUT, || pids(&emulator, 0) == [me]);
    drop(second);
    wait_until("the list to be empty", TIMEOUT, || pids(&emulator, 0).is_empty());
    assert!(fs::symlink_metadata(&link).is_err());
}

#[test]
fn a_device_says_which_chips_are_behind_it() {
    for (kind, ordinal, shown) in [
        (MachineKind::N300, 0, &["251732099", "251732099R"][..]),
        (MachineKind::T3000, 1, &["2517320d4", "2517320d4R"]),
        (MachineKind::GalaxyBlackhole, 9, &["T2:N1"]),
    ] {
        let scratch = Scratch::new();
        let emulator = start(&scratch, kind);
        let device = DeviceClient::open(emulator.root(), ordinal).unwrap();
        let names: Vec<_> = device.chips().iter().map(|chip| chip.identity.display_id()).collect();
        assert_eq!(names, shown);
        assert_eq!(emulator.ordinals().len(), usize::try_from(kind.driver_chips()).unwrap());
        let board = kind.board_type();
        assert!(device.chips().iter().all(|chip| chip.identity.board_type == board));
    }
}

#[test]
fn memory_is_given_counted_and_refused() {
    let scratch = Scratch::new();
    let emulator = start(&scratch, MachineKind::N300);
    let device = DeviceClient::open(emulator.root(), 0).unwrap();
    let address = device.allocate(1, MemoryKind::Dram, 1_000_000).unwrap();
    device.allocate(0, MemoryKind::L1, 500).unwrap();
    let me = std::process::id();
    for (chip, kind, bytes) in [(1, MemoryKind::Dram, 1_000_000), (0, MemoryKind::L1, 500)] {
        assert_eq!(device.usage(chip).unwrap().usage.of(kind).requested_bytes, bytes);
        assert_eq!(device.usage_of(chip, me).unwrap().usage.of(kind).requested_bytes, bytes);
        assert_eq!(emulator.usage()[chip].total.of(kind).requested_bytes, bytes);
        assert_eq!(emulator.usage()[chip].processes[0].0, me);
        assert_eq!(emulator.usage()[chip].processes[0].1.of(kind).requested_bytes, bytes);
    }
    assert!(device.usage_of(1, 1).unwrap().usage.is_empty());
    let refused = device.allocate(0, MemoryKind::Dram, 1 << 50).unwrap_err();
    assert!(matches!(
        refused,
        DeviceError::Allocate(AllocateError::OutOfMemory {
            requested_bytes: 0x4_0000_0000_0000,
            ..
        })
    ));
    assert!(matches!(device.allocate(2, MemoryKind::Dram, 1), Err(DeviceError::NoSuchChip(2))));
    device.free(1, MemoryKind::L1, address).unwrap();
    device.free(1, MemoryKind::Dram, address).unwrap();
    device.free(1, MemoryKind::Dram, address).unwrap();
    let usage = device.usage(1).unwrap();
    assert!(usage.usage.is_empty());
    assert_eq!(usage.invalid_frees, 2, "the wrong kind, and the second time");
    let other = DeviceClient::open(emulator.root(), 0).unwrap();
    assert_eq!(other.usage(1).unwrap().invalid_frees, 0, "counted for who did it");
}

#[test]
fn threads_share_an_open_device() {
    let scratch = Scratch::new();
    let emulator = start(&scratch, MachineKind::N300);
    let device = DeviceClient::open(emulator.root(), 0).unwrap();
    std::thread::scope(|scope| {
        for thread in 1..=4u64 {
            let device = &device;
            scope.spawn(move || {
                for round in 0..200 {
                    let bytes = thread * 1_000 + round;
                    let address = device.allocate(0, MemoryKind::Dram, bytes).unwrap();
                    device.free(0, MemoryKind::Dram, address).unwrap();
                }
                device.allocate(1, MemoryKind::L1, thread).unwrap();
            });
        }
    });
    // Requests are answered in order, so the frees before this one have happened.
    let usage = device.usage(0).unwrap();
    assert!(usage.usage.is_empty());
    assert_eq!(usage.invalid_frees, 0, "every thread got its own replies");
    assert_eq!(device.usage(1).unwrap().usage.of(MemoryKind::L1).requested_bytes, 1 + 2 + 3 + 4);
}

#[test]
fn a_killed_process_leaves_nothing_behind() {
    let scratch = Scratch::new();
    let emulator = start(&scratch, MachineKind::N300);
    for seed in 1..6 {
        let mut child = churn(&emulator, 0, seed, "-");
        wait_until("the child to allocate", TIMEOUT, || !nothing_is_allocated(&emulator));
        assert_eq!(pids(&emulator, 0), [child.id()]);
        child.kill();
        wait_until("its memory to be free", TIMEOUT, || nothing_is_allocated(&emulator));
        wait_until("its line to go", TIMEOUT, || pids(&emulator, 0).is_empty());
    }
}

#[test]
fn ten_processes_churn_and_the_sums_come_out_even() {
    let scratch = Scratch::new();
    let emulator = start(&scratch, MachineKind::N300);
    let keeper = DeviceClient::open(emulator.root(), 0).unwrap();
    keeper.allocate(0, MemoryKind::Dram, 12_345).unwrap();
    let children: Vec<_> = (1..=10).map(|seed| churn(&emulator, 0, seed, "2000")).collect();
    for mut child in children {
        let output = child.child().stdout.take().unwrap();
        let lines: Vec<_> = BufReader::new(output).lines().map(Result::unwrap).collect();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(child.wait_within("the child to end", TIMEOUT).success());
    }
    wait_until("only the keeper to be left", TIMEOUT, || pids(&emulator, 0).len() == 1);
    let usage = emulator.usage();
    assert_eq!(usage[0].total.of(MemoryKind::Dram).requested_bytes, 12_345);
    assert_eq!(usage[0].total.kinds().count(), 1);
    assert!(usage[1].total.is_empty());
    drop(keeper);
    wait_until("all to be free", TIMEOUT, || nothing_is_allocated(&emulator));
    assert_eq!(emulator.counters().closed_for_garbage, 0);
    assert_eq!(emulator.counters().tree_errors, 0);
}

fn raw_connection(root: &Path, ordinal: u32) -> OwnedFd {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
    let path = root.join(format!("dev/tenstorrent/{ordinal}"));
    connect(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
    socket
}

fn is_closed(socket: &OwnedFd) -> bool {
    let mut packet = [0u8; 512];
    loop {
        match recv(socket, &mut packet, RecvFlags::DONTWAIT) {
            Ok((0, _)) | Err(rustix::io::Errno::CONNRESET) => return true,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
}

#[test]
fn hostile_clients_lose_their_connection_and_disturb_nobody() {
    let scratch = Scratch::new();
    let emulator = start(&scratch, MachineKind::N150);
    let bystander = DeviceClient::open(emulator.root(), 0).unwrap();
    bystander.allocate(0, MemoryKind::Dram, 77).unwrap();
    let describe = {
        let mut packet = [0u8; 40];
        (packet[0], packet[2]) = (1, 1);
        packet
    };
    let mut wrong_version = describe;
    wrong_version[0] = 9;
    let mut wrong_kind = describe;
    wrong_kind[10] = 200;
    let packets: [&[u8]; 5] =
        [b"x", &[0xFF; 40], &wrong_version, &wrong_kind, &[describe, [0; 40]].concat()];
    for packet in packets {
        let socket = raw_connection(emulator.root(), 0);
        send(&socket, packet, SendFlags::NOSIGNAL).unwrap();
        wait_until("the connection to be closed", TIMEOUT, || is_closed(&socket));
    }
    assert_eq!(emulator.counters().closed_for_garbage, 5);
    let deaf = raw_connection(emulator.root(), 0);
    wait_until("who does not read to be closed", TIMEOUT, || {
        send(&deaf, &describe, SendFlags::NOSIGNAL | SendFlags::DONTWAIT).is_err()
            && emulator.counters().closed_for_not_reading == 1
    });
    let usage = bystander.usage(0).unwrap().usage;
    assert_eq!(usage.of(MemoryKind::Dram).requested_bytes, 77);
    wait_until("their lines to go", TIMEOUT, || pids(&emulator, 0).len() == 1);
}

#[test]
fn a_device_that_vanishes_takes_its_connections_with_it_and_returns_elsewhere() {
    let scratch = Scratch::new();
    let emulator = start(&scratch, MachineKind::P300);
    let device = DeviceClient::open(emulator.root(), 0).unwrap();
    device.allocate(0, MemoryKind::Dram, 1).unwrap();
    let fault: Fault = "vanish:0:5".parse().unwrap();
    emulator.inject(fault.clone()).unwrap();
    assert!(matches!(device.allocate(0, MemoryKind::Dram, 1), Err(DeviceError::Gone(_))));
    assert!(nothing_is_allocated(&emulator));
    assert_eq!(emulator.ordinals(), [1]);
    assert!(DeviceClient::open(emulator.root(), 0).is_err());
    let entries = |inside: &str| fs::read_dir(emulator.root().join(inside)).unwrap().count();
    let places = ["sys/class/tenstorrent", "proc/driver/tenstorrent", "dev/tenstorrent"];
    assert_eq!(places.map(entries), [1; 3]);
    emulator.clear(&fault).unwrap();
    assert_eq!(places.map(entries), [2; 3]);
    let device = DeviceClient::open(emulator.root(), 5).unwrap();
    assert_eq!(device.chips()[0].identity.driver_ordinal, Some(5));
    assert_eq!(pids(&emulator, 5).len(), 1);
}

#[test]
fn use_moves_the_sensors() {
    let scratch = Scratch::new();
    let emulator = start(&scratch, MachineKind::N150);
    let class = emulator.root().join("sys/class/tenstorrent/tenstorrent!0");
    let read = |path: &str| -> u64 {
        fs::read_to_string(class.join(path)).unwrap().trim().parse().unwrap()
    };
    let power = || read("device/hwmon/hwmon1/power1_input");
    let traffic = || read("pcie_perf_counters/mst_rd_data_word_received0");
    let (idle_power, idle_traffic) = (power(), traffic());
    assert_eq!(read("tt_aiclk"), 500);
    let device = DeviceClient::open(emulator.root(), 0).unwrap();
    wait_until("the clock to rise", TIMEOUT, || {
        let activity = DeviceActivity {
            busy_ns: 1_000_000_000,
            host_to_device_bytes: 1 << 20,
            device_to_host_bytes: 0,
        };
        device.report_activity(activity).unwrap();
        read("tt_aiclk") == 1_000 && power() > 2 * idle_power && traffic() != idle_traffic
    });
    wait_until("the clock to fall", TIMEOUT, || read("tt_aiclk") == 500);
}

#[test]
fn memory_that_comes_and_goes_moves_the_counters_of_both_directions() {
    let scratch = Scratch::new();
    let emulator = start(&scratch, MachineKind::N300);
    let class = emulator.root().join("sys/class/tenstorrent/tenstorrent!0/pcie_perf_counters");
    let count = |name: &str| fs::read_to_string(class.join(name)).unwrap();
    let counts = || ["mst_rd_data_word_received0", "mst_posted_wr_data_word_sent0"].map(count);
    let before = counts();
    let device = DeviceClient::open(emulator.root(), 0).unwrap();
    wait_until("both counters to move", TIMEOUT, || {
        let address = device.allocate(0, MemoryKind::Dram, 1 << 20).unwrap();
        device.free(0, MemoryKind::Dram, address).unwrap();
        counts().iter().zip(&before).all(|(now, then)| now != then)
    });
}

#[test]
fn no_more_goes_over_a_link_than_it_carries_as_it_trained() {
    const FLIT_BYTES: u64 = 32;
    // PCIe 3.0 x1.
    const LINK_BYTES_PER_SECOND: f64 = 984_600_000.0;
    let scratch = Scratch::new();
    let begun = Instant::now();
    let emulator = start(&scratch, MachineKind::N150);
    emulator.inject("link:0:8:1".parse::<Fault>().unwrap()).unwrap();
    let class = emulator.root().join("sys/class/tenstorrent/tenstorrent!0/pcie_perf_counters");
    let read = |name: String| -> u64 {
        fs::read_to_string(class.join(name)).unwrap().trim().parse().unwrap()
    };
    let received = || -> u64 {
        let kinds = ["mst_rd_data_word_received", "slv_posted_wr_data_word_received"];
        kinds.iter().flat_map(|kind| [0, 1].map(|network| read(format!("{kind}{network}")))).sum()
    };
    let device = DeviceClient::open(emulator.root(), 0).unwrap();
    let before = received();
    for _ in 0..5 {
        let earlier = received();
        wait_until("the counters to move", TIMEOUT, || {
            let host_to_device_bytes = 1 << 40;
            let activity = DeviceActivity { host_to_device_bytes, ..DeviceActivity::default() };
            device.report_activity(activity).unwrap();
            received() > earlier
        });
    }
    let carried = (received() - before) * FLIT_BYTES;
    assert!(carried as f64 <= LINK_BYTES_PER_SECOND * begun.elapsed().as_secs_f64(), "{carried}");
}

#[test]
fn sockets_work_under_a_root_whose_path_is_long() {
    let scratch = Scratch::new();
    let root = scratch.join("x".repeat(120));
    let emulator = Emulator::start(&root, MachineKind::N150, EmulatorOptions::default()).unwrap();
    let device = DeviceClient::open(&root, 0).unwrap();
    assert!(device.allocate(0, MemoryKind::Dram, 1).is_ok());
    drop(device);
    emulator.shutdown().unwrap();
    assert!(!root.exists());
}
