//! The machines on which the page's commands run: two GPUs of a library that stands in for NVIDIA's, with a service
//! and a process that holds one; and an emulated Galaxy.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use telltale_harness::{ChildGuard, Scratch, compile_c};

use crate::cli::command::{emulate, telltale};
use crate::cli::serve::Serving;

/// What the library reports of each GPU.
const VALUES: [(&str, &str); 34] = [
    ("handle", "1"),
    ("name", "NVIDIA H200"),
    ("serial", "1650123456789"),
    ("vbios", "96.00.74.00.01"),
    ("memory", "1073741824 85899345920"),
    ("utilization", "37 5"),
    ("encoder", "3"),
    ("decoder", "4"),
    ("temperature", "41"),
    ("slowdown", "89"),
    ("power", "119500"),
    ("power_limit", "700000"),
    ("power_default", "700000"),
    ("power_range", "200000 700000"),
    ("energy", "3600000"),
    ("sm_clock", "1980"),
    ("memory_clock", "3201"),
    ("pstate", "0"),
    // Its cap of power, and of temperature.
    ("throttled_by", "36"),
    ("corrected", "12"),
    ("uncorrected", "0"),
    ("corrected_lifetime", "15"),
    ("uncorrected_lifetime", "0"),
    ("remapped_rows", "6 7 0 0"),
    ("pcie_replays", "2"),
    ("pcie_rx", "81604378624"),
    ("pcie_tx", "17179869184"),
    ("nvlink_links", "18"),
    ("nvlink_up", "18"),
    // In units of 1024 bytes.
    ("nvlink_rx", "1000000"),
    ("nvlink_tx", "1000000"),
    ("mig_mode", "0"),
    ("events", "1"),
    // One of before.
    ("xid", "8"),
];
const ADDRESSES: [&str; 2] = ["00000000:41:00.0", "00000000:C1:00.0"];
/// An XID error of an application, which says nothing against the hardware.
const XID: &str = "13";

/// A machine on which lines are run in a shell.
pub(super) struct Machine {
    // Dropped in this order.
    pub(super) service: Option<(Serving, String)>,
    pub(super) workload: Option<ChildGuard>,
    _emulated: Option<ChildGuard>,
    /// The script that enters the machine and then runs the one that it is given.
    entry: PathBuf,
    pub(super) place: Scratch,
}

impl Machine {
    /// Two GPUs, of which a process holds the first. The library is found where the driver's is: by its name, once
    /// there is a driver in `/proc`, for which the caller needs mount namespaces.
    pub(super) fn of_gpus() -> Self {
        let place = Scratch::new();
        let workload = ChildGuard::spawn(Command::new("sleep").arg("3600").stdin(Stdio::null()));
        let library = place.join("nvml");
        for (at, address) in ADDRESSES.iter().enumerate() {
            let gpu = library.join(format!("gpu{at}"));
            fs::create_dir_all(&gpu).unwrap();
            let write = |name: &str, text: &str| fs::write(gpu.join(name), format!("{text}\n"));
            VALUES.iter().for_each(|(name, text)| write(name, text).unwrap());
            write("pci", address).unwrap();
            write("uuid", &format!("GPU-6f4d1a0e-0000-4000-8000-00000000000{at}")).unwrap();
        }
        let pid = workload.id();
        fs::write(library.join("gpu0/compute"), format!("{pid} 629145600\n")).unwrap();
        fs::write(library.join("gpu0/process_use"), format!("{pid} 30 1\n")).unwrap();
        fs::write(library.join("count"), "2\n").unwrap();
        fs::write(library.join("driver_version"), "580.95.05\n").unwrap();
        let source =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../collector/tests/hardware/nvml.c");
        let flags = ["-shared", "-fPIC", "-O1", "-ldl"];
        compile_c(&source, &library.join("libnvidia-ml.so.1"), &flags);
        let driver = place.join("driver");
        fs::create_dir_all(driver.join("nvidia")).unwrap();
        fs::write(driver.join("nvidia/version"), "NVRM version: NVIDIA UNIX 580.95.05\n").unwrap();
        let entry = format!(
            "mount --bind {} /proc/driver\nexport LD_LIBRARY_PATH={}\n",
            driver.display(),
            library.display()
        );
        let mut machine = Self::entered_by(&entry, place);
        machine.workload = Some(workload);
        machine
    }

    /// Thirty-two chips in four trays.
    pub(super) fn galaxy() -> Self {
        let place = Scratch::new();
        let root = place.join("m");
        let emulated = emulate("galaxy-wormhole", &root, &[]);
        let mut machine =
            Self::entered_by(&format!("export TELLTALE_ROOT={}\n", root.display()), place);
        machine._emulated = Some(emulated);
        machine
    }

    fn entered_by(entry: &str, place: Scratch) -> Self {
        let program = Path::new(env!("CARGO_BIN_EXE_telltale")).parent().unwrap().display();
        let at = place.path().display();
        let script = format!(
            "set -e\n{entry}export PATH={program}:$PATH XDG_RUNTIME_DIR={at} XDG_CONFIG_HOME={at} \
             TELLTALE_STATE_DIR={at}/state TELLTALE_HTTP_LISTEN=127.0.0.1:0\ncd {at}\n. \"$1\"\n"
        );
        let path = place.join("enter.sh");
        fs::write(&path, script).unwrap();
        Self { service: None, workload: None, _emulated: None, entry: path, place }
    }

    /// Starts the service of this machine.
    pub(super) fn serve(&mut self) {
        let mut service = Serving::start(&mut self.command("telltale serve --interval 0.2"));
        let line = service.says("http listens on ");
        let address = line.rsplit(' ').next().unwrap().to_owned();
        service.says("collecting");
        self.service = Some((service, address));
    }

    /// Lets the first GPU have an error of an application.
    pub(super) fn fail_once(&self) {
        let path = self.place.join("nvml/gpu0/xid");
        let before = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{before}{XID}\n")).unwrap();
    }

    /// The script of a line, as a line of a shell.
    pub(super) fn line(&self, line: &str) -> String {
        let name = format!(
            "line-{:x}.sh",
            line.bytes()
                .fold(7_u64, |sum, byte| { sum.wrapping_mul(31).wrapping_add(u64::from(byte)) })
        );
        let path = self.place.join(name);
        // In the place of the shell, so that signals reach it.
        fs::write(&path, format!("exec env {line}\n")).unwrap();
        format!("unshare --mount sh {} {}", self.entry.display(), path.display())
    }

    /// A command that becomes this line on the machine.
    pub(super) fn command(&self, line: &str) -> Command {
        let mut command = Command::new("sh");
        for (name, value) in telltale().get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.args(["-c", &format!("exec {}", self.line(line))]).stdin(Stdio::null());
        command
    }
}
