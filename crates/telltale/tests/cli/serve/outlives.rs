//! The service outlives what it reports: with 32 MiB of memory, under systemd's watchdog, each fault of a
//! machine is reported by name, and the service answers on.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use telltale_emulator::{Fault, Machine, MachineKind, MachineOptions};
use telltale_harness::{Scratch, wait_until};

use super::Serving;
use crate::cli::command::{TIMEOUT, said, telltale};

const MEMORY_BYTES: u64 = 32 << 20;

/// What is injected, one after the other, and which rule reports it.
const FAULTS: [(&str, &str); 21] = [
    ("stop:0", "heartbeat_stopped"),
    ("trip:0", "thermal_trip"),
    ("vanish:0", "vanished"),
    ("link:0:32:4", "pcie_width_below_slot"),
    ("link:0:2.5:16", "pcie_speed_below_slot"),
    ("raise:0:aer_dev_fatal:1", "pcie_errors_fatal"),
    ("raise:0:aer_dev_nonfatal:1", "pcie_errors_nonfatal"),
    ("raise:0:aer_dev_correctable:100", "pcie_errors_corrected_rising"),
    ("hang:0:temp1_input", "call_hangs"),
    ("fan:nct6798/fan1:stopped", "fan_failed"),
    ("fan:nct6798/fan2:slow", "fan_failed"),
    ("power-supply:pmbus-7-0059:failed", "power_supply_failed"),
    ("voltage:nct6798/in0:alarm", "voltage_out_of_range"),
    ("nic:eth0:down", "network_link_down"),
    ("nic:eth0:slow", "network_speed_low"),
    ("nic:eth0:narrow", "network_pcie_width_below_slot"),
    ("nic:eth1:gone", "network_card_gone"),
    ("port:mlx5_0/1:down", "infiniband_port_down"),
    ("port:mlx5_0/1:no-gid", "rdma_gid_missing"),
    ("port:mlx5_1/1:recovered:3", "infiniband_recoveries_rising"),
    ("memory:mc0:uncorrected:1", "host_memory_uncorrected"),
];

/// A group of processes with so much memory, pages of files included.
struct Group(PathBuf);

impl Group {
    /// None where this machine allows none.
    fn new() -> Option<Self> {
        let name = format!("telltale-test-{}", std::process::id());
        for (hierarchy, limit) in
            [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")]
        {
            let group = Path::new(hierarchy).join(&name);
            if !Path::new(hierarchy).join("cgroup.procs").exists()
                || fs::create_dir(&group).is_err()
            {
                continue;
            }
            let made = Self(group);
            if fs::write(made.0.join(limit), MEMORY_BYTES.to_string()).is_ok() {
                return Some(made);
            }
        }
        None
    }

    /// The command, in this group.
    fn holding(&self, inner: &Command) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]);
        command.arg(self.0.join("cgroup.procs")).arg(inner.get_program()).args(inner.get_args());
        for (name, value) in inner.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// A machine whose firmware counts as time passes.
struct Running {
    machine: Machine,
    began: Instant,
}

impl Running {
    fn tick(&mut self) {
        let now_ns = u64::try_from(self.began.elapsed().as_nanos()).unwrap();
        self.machine.tick(now_ns, &[]).unwrap();
    }

    /// Lets it run until `telltale alerts` is as it should be; true if that is in time.
    fn runs_until(&mut self, root: &Path, is_so: impl Fn(&str) -> bool) -> bool {
        let began = Instant::now();
        while began.elapsed() < TIMEOUT {
            self.tick();
            let asked = said(telltale().args(["alerts", "--json", "--root"]).arg(root));
            if is_so(&asked.out) {
                return true;
            }
            thread::sleep(Duration::from_millis(100));
        }
        false
    }
}

/// A manager that reads each message at once, as systemd does, and counts signs of life.
struct Listening(Arc<AtomicU64>);

impl Listening {
    fn new(place: &Scratch) -> Self {
        let socket = UnixDatagram::bind(place.join("notify")).unwrap();
        let lives = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&lives);
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length) = socket.recv(&mut buffer) {
                let is_life = buffer[..length].starts_with(b"WATCHDOG=1");
                counted.fetch_add(u64::from(is_life), Ordering::Relaxed);
            }
        });
        Self(lives)
    }

    fn lives(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[test]
fn with_little_memory_it_reports_each_fault_and_answers_the_watchdog() {
    // Where no such group can be made, what it has of its own is measured at the end.
    let group = Group::new();
    let place = Scratch::new();
    let root = place.join("machine");
    let machine = Machine::create(&root, MachineKind::P150, &MachineOptions::default()).unwrap();
    let mut running = Running { machine, began: Instant::now() };
    running.tick();
    let manager = Listening::new(&place);
    let mut inner = telltale();
    inner.env("HOME", place.path()).env_remove("XDG_CONFIG_HOME").env_remove("TELLTALE_CONFIG");
    inner.arg("serve").arg("--root").arg(&root).arg("--state-dir").arg(place.join("state"));
    inner.args(["--http", "127.0.0.1:0"]).env("NOTIFY_SOCKET", place.join("notify"));
    inner.env("WATCHDOG_USEC", Duration::from_secs(2).as_micros().to_string());
    let mut command = match &group {
        Some(group) => group.holding(&inner),
        None => inner,
    };
    let service = Serving::start(&mut command);
    assert!(running.runs_until(&root, |out| out.contains("\"alerts\":[]")), "it is well at first");
    for (text, rule) in FAULTS {
        let fault: Fault = text.parse().unwrap();
        running.machine.inject(fault.clone()).unwrap();
        // The name of the alert is that of the rule but for one.
        let name = format!("{}\"", rule.replace("vanished", "device_vanished"));
        assert!(running.runs_until(&root, |out| out.contains(&name)), "{text} is not reported");
        let before = manager.lives();
        wait_until("the watchdog to be answered", TIMEOUT, || manager.lives() > before);
        running.machine.clear(&fault).unwrap();
        running.tick();
    }
    let status = fs::read_to_string(format!("/proc/{}/status", service.id())).unwrap();
    let own = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    let kibibytes: u64 = own.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kibibytes << 10 <= MEMORY_BYTES, "{kibibytes} KiB");
    service.end();
}
