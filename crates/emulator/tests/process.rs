//! A machine in a process of its own: killed, and short of descriptors.
#![allow(clippy::unwrap_used, reason = "a failed step is the report of a test")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};
use std::time::Duration;

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv,
    send, socket_with,
};
use telltale_emulator::{
    CreateError, DeviceClient, Emulator, EmulatorOptions, EmulatorStartError, MachineKind,
};
use telltale_harness::{ChildGuard, Scratch, wait_until};

type Output = BufReader<ChildStdout>;

const TIMEOUT: Duration = Duration::from_secs(60);

/// The program of `examples/machine.rs`, started by a shell after `prepare`; returns once the
/// machine is ready.
fn machine(root: &Path, prepare: &str) -> (ChildGuard, Output) {
    let test = std::env::current_exe().unwrap();
    let program = test.ancestors().nth(2).unwrap().join("examples/machine");
    assert!(program.exists(), "{} is built by `cargo test` without --test", program.display());
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(format!("{prepare}; exec \"$0\" \"$1\" n150")).arg(program).arg(root);
    let mut child = ChildGuard::spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
    let mut output = BufReader::new(child.child().stdout.take().unwrap());
    assert_eq!(next_line(&mut output), "ready\n");
    (child, output)
}

fn next_line(output: &mut Output) -> String {
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    line
}

#[test]
fn a_killed_machine_is_replaced_and_a_running_one_is_not() {
    let scratch = Scratch::new();
    let root = scratch.join("m");
    let start = || Emulator::start(&root, MachineKind::P150, EmulatorOptions::default());
    let (mut child, _output) = machine(&root, "true");
    let refused = start().unwrap_err();
    assert!(matches!(refused, EmulatorStartError::Create(CreateError::InUse(_))), "{refused}");
    child.kill();
    assert!(root.join("sys/class/tenstorrent/tenstorrent!0/tt_eth_fw_ver").exists());
    assert!(DeviceClient::open(&root, 0).is_err());
    let emulator = start().unwrap();
    let class = root.join("sys/class/tenstorrent/tenstorrent!0");
    assert_eq!(fs::read_to_string(class.join("tt_card_type")).unwrap(), "p150a\n");
    assert!(!class.join("tt_eth_fw_ver").exists(), "a file that only Wormhole has");
    DeviceClient::open(&root, 0).unwrap();
    emulator.shutdown().unwrap();
    assert!(!root.exists(), "the one that was killed had made it");
}

#[test]
fn a_machine_that_is_reported_to_end_removes_its_root() {
    let scratch = Scratch::new();
    let root = scratch.join("m");
    let (mut child, _output) = machine(&root, "true");
    drop(child.child().stdin.take());
    assert!(child.wait_within("the machine to end", TIMEOUT).success());
    assert!(!root.exists());
}

fn answered(socket: &OwnedFd) -> bool {
    recv(socket, &mut [0u8; 512], RecvFlags::DONTWAIT | RecvFlags::PEEK)
        .is_ok_and(|(size, _)| size > 0)
}

#[test]
fn a_machine_out_of_descriptors_goes_on_once_it_has_some_again() {
    let scratch = Scratch::new();
    let root = scratch.join("m");
    let (mut child, mut output) = machine(&root, "ulimit -n 24");
    let describe = {
        let mut packet = [0u8; 40];
        (packet[0], packet[2]) = (1, 1);
        packet
    };
    let mut connections: Vec<OwnedFd> = (0..30)
        .map(|_| {
            let flags = SocketFlags::CLOEXEC;
            let socket =
                socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
            let path = root.join("dev/tenstorrent/0");
            connect(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
            send(&socket, &describe, SendFlags::NOSIGNAL).unwrap();
            socket
        })
        .collect();
    let descriptors = format!("/proc/{}/fd", child.id());
    wait_until("all descriptors to be in use", TIMEOUT, || {
        // Descriptors above the limit may have been inherited; they do not count.
        (0..24).all(|number| fs::symlink_metadata(format!("{descriptors}/{number}")).is_ok())
    });
    // The same thread accepts and answers: an answer now means that it has stopped accepting.
    wait_until("the first to be served", TIMEOUT, || answered(&connections[0]));
    recv(&connections[0], &mut [0u8; 512], RecvFlags::empty()).unwrap();
    send(&connections[0], &describe, SendFlags::NOSIGNAL).unwrap();
    while !connections.is_empty() {
        wait_until("the next ones to be served", TIMEOUT, || connections.iter().any(answered));
        connections.retain(|socket| !answered(socket));
    }
    let pids = root.join("proc/driver/tenstorrent/0/pids");
    wait_until("all lines to go", TIMEOUT, || fs::read_to_string(&pids).unwrap().is_empty());
    drop(child.child().stdin.take());
    let pauses = next_line(&mut output);
    assert!(pauses.ends_with(" pauses\n") && pauses != "0 pauses\n", "{pauses}");
}
