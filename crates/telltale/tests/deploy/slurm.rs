//! A node's health as Slurm takes it: its own daemons on the loopback, with the program of `deploy/slurm`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use telltale_harness::{ChildGuard, Scratch, needs_root, skip, wait_until};

use crate::deploy::files::deploy;

const TELLTALE: &str = env!("CARGO_BIN_EXE_telltale");
const TIMEOUT: Duration = Duration::from_secs(120);

/// An emulated machine with its node service.
struct Machine {
    _emulator: ChildGuard,
    _service: ChildGuard,
}

impl Machine {
    fn start(at: &Path, faults: &[&str]) -> Self {
        fs::create_dir_all(at.join("run")).unwrap();
        let mut emulate = Command::new(TELLTALE);
        emulate.args(["emulate", "--machine", "n150", "--root"]).arg(at.join("root"));
        emulate.args(faults.iter().flat_map(|fault| ["--fault", fault])).stderr(Stdio::piped());
        let mut emulator = ChildGuard::spawn(&mut emulate);
        let mut line = String::new();
        let errors = emulator.child().stderr.take().unwrap();
        BufReader::new(errors).read_line(&mut line).unwrap();
        assert!(line.starts_with("An emulated "), "{line}");
        fs::write(at.join("toml"), "interval_seconds = 0.2\n[http]\nlisten = []\n").unwrap();
        let mut serve = Command::new(TELLTALE);
        serve.arg("serve").arg("--root").arg(at.join("root"));
        serve.arg("--runtime-dir").arg(at.join("run")).arg("--state-dir").arg(at.join("state"));
        serve.arg("--config").arg(at.join("toml")).env("HOME", at).stderr(Stdio::null());
        Self { _emulator: emulator, _service: ChildGuard::spawn(&mut serve) }
    }
}

/// Slurm's daemons with one node.
struct Slurm {
    scratch: Scratch,
    name: String,
    _daemons: Vec<ChildGuard>,
}

impl Slurm {
    /// None where it is not installed, which is recorded for `test`.
    fn start(test: &str) -> Option<Self> {
        if !needs_root(test) {
            return None;
        }
        for daemon in ["munged", "slurmctld", "slurmd"] {
            if Command::new(daemon).arg("-V").output().is_err() {
                skip(test, &format!("{daemon} is not installed (Debian's slurm-wlm)"));
                return None;
            }
        }
        let scratch = Scratch::new();
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let name = host.split('.').next().unwrap().to_owned();
        let path = |file: &str| scratch.join(file);
        fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(path("munge.key"), [7; 128]).unwrap();
        fs::set_permissions(path("munge.key"), fs::Permissions::from_mode(0o400)).unwrap();
        ["spool", "saved"]
            .into_iter()
            .for_each(|directory| fs::create_dir(path(directory)).unwrap());
        fs::write(path("slurm.conf"), configuration(&scratch, &name)).unwrap();
        let log = |file: &str| fs::File::create(path(file)).unwrap();
        let mut munged = Command::new("munged");
        munged.args(["--foreground", "--force"]);
        for (option, file) in
            [("key-file", "munge.key"), ("socket", "munge"), ("pid-file", "munge.pid")]
        {
            munged.arg(format!("--{option}={}", path(file).display()));
        }
        munged.arg(format!("--seed-file={}", path("munge.seed").display()));
        let mut daemons = vec![ChildGuard::spawn(munged.stderr(log("munge.log")))];
        wait_until("munged to listen", TIMEOUT, || path("munge").exists());
        for daemon in ["slurmctld", "slurmd"] {
            let mut command = Command::new(daemon);
            command.arg("-D").arg("-f").arg(path("slurm.conf"));
            let log = log(&format!("{daemon}.log"));
            daemons.push(ChildGuard::spawn(command.stdout(Stdio::null()).stderr(log)));
        }
        Some(Self { scratch, name, _daemons: daemons })
    }

    fn path(&self, file: &str) -> PathBuf {
        self.scratch.join(file)
    }

    /// Has the health program ask this machine's service.
    fn ask(&self, machine: &Path) {
        let script = format!(
            "#!/bin/sh\nexport SLURM_CONF={:?} PATH={:?}\nexec {:?} --root {:?} --runtime-dir {:?}\n",
            self.path("slurm.conf"),
            Path::new(TELLTALE).parent().unwrap(),
            deploy("slurm/telltale-health"),
            machine.join("root"),
            machine.join("run"),
        );
        let (new, program) = (self.path("health.new"), self.path("health"));
        fs::write(&new, script).unwrap();
        fs::set_permissions(&new, fs::Permissions::from_mode(0o755)).unwrap();
        fs::rename(new, program).unwrap();
    }

    /// The state of the node and its reason.
    fn node(&self) -> String {
        let mut sinfo = Command::new("sinfo");
        sinfo.args(["--noheader", "--format", "%T %E"]).env("SLURM_CONF", self.path("slurm.conf"));
        String::from_utf8_lossy(&sinfo.output().unwrap().stdout).trim().to_owned()
    }

    fn wait_node(&self, wanted: &str) {
        wait_until(&format!("the node to be {wanted:?}"), TIMEOUT, || {
            self.node().starts_with(wanted)
        });
    }

    fn update(&self, words: &[&str]) {
        let mut scontrol = Command::new("scontrol");
        scontrol.arg("update").arg(format!("nodename={}", self.name)).args(words);
        assert!(scontrol.env("SLURM_CONF", self.path("slurm.conf")).status().unwrap().success());
    }
}

fn configuration(scratch: &Scratch, name: &str) -> String {
    let ports = [0, 0].map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    let [controller, node] = ports.map(|port| port.local_addr().unwrap().port());
    let at = scratch.path().display();
    format!(
        "ClusterName=test\nSlurmctldHost={name}(127.0.0.1)\nSlurmUser=root\n\
         AuthType=auth/munge\nAuthInfo=socket={at}/munge\n\
         SlurmctldPort={controller}\nSlurmdPort={node}\n\
         SlurmctldPidFile={at}/slurmctld.pid\nSlurmdPidFile={at}/slurmd.pid\n\
         SlurmdSpoolDir={at}/spool\nStateSaveLocation={at}/saved\n\
         ProctrackType=proctrack/pgid\nTaskPlugin=task/none\nReturnToService=2\n\
         HealthCheckProgram={at}/health\nHealthCheckInterval=1\n\
         NodeName={name} NodeAddr=127.0.0.1 CPUs=1 State=UNKNOWN\n\
         PartitionName=all Nodes={name} Default=YES State=UP\n"
    )
}

#[test]
fn slurm_drains_a_node_whose_chip_stopped_and_resumes_what_was_drained_for_that() {
    let Some(slurm) = Slurm::start("deploy::slurm") else { return };
    let (well, broken) = (slurm.path("well"), slurm.path("broken"));
    let _well = Machine::start(&well, &[]);
    let _broken = Machine::start(&broken, &["stop:0"]);
    slurm.ask(&well);
    slurm.wait_node("idle");
    slurm.ask(&broken);
    slurm.wait_node("drained telltale: heartbeat_stopped device ");
    slurm.ask(&well);
    slurm.wait_node("idle");
    // What an operator drained is left alone, whatever the health is.
    slurm.update(&["state=drain", "reason=maintenance"]);
    slurm.ask(&broken);
    slurm.wait_node("drained maintenance");
    let mut program = Command::new(slurm.path("health"));
    assert!(program.status().unwrap().success());
    slurm.ask(&well);
    assert!(Command::new(slurm.path("health")).status().unwrap().success());
    assert_eq!(slurm.node(), "drained maintenance");
}
