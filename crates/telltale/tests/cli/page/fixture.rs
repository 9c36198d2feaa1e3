//! A machine with workloads and a service for it, which a browser checks.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use telltale_harness::{ChildGuard, Scratch, wait_until};
use telltale_schema::snapshot::Snapshot;

use super::browser::Browser;
use crate::cli::command::{TIMEOUT, emulate, snapshot, telltale};
use crate::cli::serve::Serving;

/// The service's token, where it has one.
pub(crate) const TOKEN: &str = "a-token-that-cannot-be-guessed-0123";

/// Everything of a test but its browser.
pub(crate) struct Fixture {
    // Dropped in this order.
    service: Option<Serving>,
    workloads: Vec<ChildGuard>,
    pub(super) machine: ChildGuard,
    pub(crate) root: PathBuf,
    pub(crate) address: String,
    place: Scratch,
}

impl Fixture {
    /// A machine of this kind, without workloads or a service yet.
    pub(crate) fn new(kind: &str) -> Self {
        Self::with(kind, &[])
    }

    /// The same, with these options of `telltale emulate`.
    pub(crate) fn with(kind: &str, options: &[&str]) -> Self {
        let place = Scratch::new();
        let root = place.join("m");
        let machine = emulate(kind, &root, options);
        let (workloads, service) = (Vec::new(), None);
        Self { service, workloads, machine, root, address: String::new(), place }
    }

    /// Starts a workload that is called `name` on a chip, with `first` as its command's first word.
    pub(crate) fn work(&mut self, name: &str, first: &str, device: usize) {
        self.start(name, first, "train", device);
        self.wait_for_workloads();
    }

    /// The same with this trace, which may be a file of [`Self::place`], and without waiting for what it does.
    pub(crate) fn start(&mut self, name: &str, first: &str, trace: &str, device: usize) {
        let link = self.place.join(name);
        if !link.is_symlink() {
            symlink(env!("CARGO_BIN_EXE_telltale"), &link).unwrap();
        }
        let mut command = Command::new(link);
        let device = device.to_string();
        command.arg0(first).args(["replay", trace, "--loop", "--device", &device]);
        command.arg("--root").arg(&self.root).current_dir(self.place()).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        self.workloads.push(ChildGuard::spawn(&mut command));
    }

    /// Waits until each workload holds memory.
    pub(crate) fn wait_for_workloads(&self) {
        let count = self.workloads.len();
        wait_until("the workload to hold memory", TIMEOUT, || {
            let seen = snapshot(&self.root).processes;
            seen.iter().filter(|process| !process.devices.is_empty()).count() == count
        });
    }

    /// Where the files of this fixture are.
    pub(crate) fn place(&self) -> &Path {
        self.place.path()
    }

    /// Waits until one of the workloads holds more than so many bytes.
    pub(crate) fn grow(&self, least_bytes: u64) {
        wait_until("a workload to hold that much", TIMEOUT, || {
            let seen = snapshot(&self.root).processes;
            let mut held = seen.iter().flat_map(|process| &process.devices);
            held.any(|held| held.spaces.iter().any(|space| space.live_bytes > least_bytes))
        });
    }

    /// Stops the workloads where they are: what they hold does not change any more.
    pub(crate) fn freeze(&self) {
        for workload in &self.workloads {
            let pid = Pid::from_raw(i32::try_from(workload.id()).unwrap()).unwrap();
            kill_process(pid, Signal::STOP).unwrap();
        }
    }

    /// Starts a service with this configuration, on the port that an earlier one of this fixture had.
    pub(crate) fn serve(&mut self, interval: &str, has_token: bool, configuration: &str) {
        let (token, file) = (self.place.join("token"), self.place.join("t.toml"));
        fs::write(&token, TOKEN).unwrap();
        fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&file, configuration).unwrap();
        let mut command = telltale();
        command.env("HOME", self.place.path()).env("TELLTALE_HISTORY_WRITE_SECONDS", "1");
        command.args(["serve", "--grpc", "off", "--interval", interval]);
        command.arg("--root").arg(&self.root).arg("--state-dir").arg(self.place.join("state"));
        command.arg("--config").arg(&file);
        if !configuration.contains("loopback_users") {
            // The browser has our user, and stands for anybody's.
            command.env("TELLTALE_LOOPBACK_USERS", "false");
        }
        if has_token {
            command.arg("--token-file").arg(&token);
        }
        let socket = self.address.strip_prefix("http://").unwrap_or("127.0.0.1:0/");
        command.args(["--http", socket.trim_end_matches('/')]);
        let mut service = Serving::start(&mut command);
        let line = service.says("http listens on ");
        let socket = line.rsplit(' ').next().unwrap();
        self.address = format!("http://{socket}/");
        self.service = Some(service);
    }

    /// Ends the service.
    pub(crate) fn end_service(&mut self) {
        self.service.take().unwrap().end();
    }

    /// Opens the page, and with a token reads it as its owner does.
    pub(crate) fn open(&self, browser: &mut Browser, token: Option<&str>) {
        browser.open(&self.address);
        if let Some(token) = token {
            browser.value(&format!("sessionStorage.setItem('telltale-token', '{token}')"));
            browser.open(&self.address);
        }
        browser.until(LIVE);
    }

    /// What the service answers with the token, or without: as it is sent, and as it is read.
    pub(crate) fn reported(&self, browser: &mut Browser, token: Option<&str>) -> (Value, Snapshot) {
        let headers = token.map_or_else(String::new, |token| {
            format!("{{headers: {{Authorization: 'Bearer {token}'}}}}")
        });
        let text = browser
            .text(&format!("fetch('api/v1/snapshot', {headers}).then((answer) => answer.text())"));
        (serde_json::from_str(&text).unwrap(), serde_json::from_str(&text).unwrap())
    }
}

/// True in a page that shows values.
pub(crate) const LIVE: &str = "document.getElementById('connection').dataset.state === 'live'";
