//! Names that must be in no text of a bundle: those of this machine, its people, and of what the
//! snapshot shows.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use telltale_schema::device::DeviceIdentity;
use telltale_schema::process::format_boot_id;
use telltale_schema::snapshot::Snapshot;

/// The beginning of a list of users or of an id that is read.
const MAX_BYTES: u64 = 1 << 20;

/// The first number of a person; those below are the system's (`login.defs`).
const FIRST_PERSON: u32 = 1000;

/// Variables of the environment with names of people, hosts and places.
const VARIABLES: [&str; 6] = ["HOME", "USER", "LOGNAME", "SUDO_USER", "HOSTNAME", "SSH_CLIENT"];

/// Names that are too common to tell anything.
const COMMON: [&str; 6] = ["root", "nobody", "telltale", "localhost", "host", "node"];

/// The names, each with the kind of its number.
#[derive(Debug, Default)]
pub(super) struct Identity {
    names: Vec<(&'static str, String)>,
}

// === impl Identity ===

impl Identity {
    /// What this machine calls itself and its people.
    pub(super) fn of_this_machine() -> Self {
        let mut identity = Self::default();
        let uname = rustix::system::uname();
        let host = uname.nodename().to_string_lossy();
        identity.add("host", &host);
        // Whoever writes of a machine leaves its domain out.
        identity.add("host", host.split('.').next().unwrap_or_default());
        identity.add("host", &uname.domainname().to_string_lossy());
        for path in ["/etc/hostname", "/etc/machine-id", "/proc/sys/kernel/random/boot_id"] {
            identity.add("host", beginning(Path::new(path)).trim());
        }
        for variable in VARIABLES {
            let value = std::env::var(variable).unwrap_or_default();
            identity.add("user", value.split(' ').next().unwrap_or_default());
        }
        identity.add_people(&beginning(Path::new("/etc/passwd")));
        identity
    }

    /// Adds the people of a list of users (passwd(5)) by name, full name and home.
    pub(super) fn add_people(&mut self, passwd: &str) {
        for line in passwd.lines() {
            let fields: Vec<&str> = line.split(':').collect();
            let [name, _, uid, _, about, home, ..] = fields[..] else { continue };
            if uid.parse().is_ok_and(|uid: u32| uid >= FIRST_PERSON) {
                self.add("user", name);
                self.add("user", home);
                about.split([',', ' ']).for_each(|word| self.add("user", word));
            }
        }
    }

    /// Adds what the snapshot shows of people, programs and devices.
    pub(super) fn learn(&mut self, snapshot: &Snapshot) {
        for process in &snapshot.processes {
            self.add("name", &process.name);
            self.add("user", process.user.value().map_or("", String::as_str));
            if let Some(identity) = &process.identity {
                self.add("boot", &format_boot_id(&identity.boot_id));
            }
            if let Some(container) = &process.container {
                self.add("id", &container.id);
                self.add("pod", container.pod_uid.as_deref().unwrap_or_default());
                if let Some(pod) = &container.pod {
                    self.add("name", &pod.name);
                    self.add("namespace", &pod.namespace);
                    self.add("container", pod.container.as_deref().unwrap_or_default());
                }
            }
        }
        for device in &snapshot.devices {
            self.add("id", &device.id);
            if let DeviceIdentity::Other(other) = &device.identity {
                self.add("serial", other.serial.as_deref().unwrap_or_default());
                self.add("uuid", other.uuid.as_deref().unwrap_or_default());
            }
        }
    }

    /// A name, unless it is in every text.
    pub(super) fn add(&mut self, kind: &'static str, name: &str) {
        let is_common = COMMON.contains(&name.to_ascii_lowercase().as_str());
        let letters = name.chars().count();
        if letters > 2 && !is_common && !self.names.iter().any(|(_, known)| known == name) {
            self.names.push((kind, name.to_owned()));
        }
    }

    /// The kind of a name's number, whatever its case; none where the text is no name.
    pub(super) fn kind_of(&self, text: &str) -> Option<&'static str> {
        let same = |name: &str| name.eq_ignore_ascii_case(text);
        self.names.iter().find(|(_, name)| same(name)).map(|(kind, _)| *kind)
    }
}

fn beginning(path: &Path) -> String {
    let mut bytes = Vec::new();
    let read = File::open(path).map(|file| file.take(MAX_BYTES).read_to_end(&mut bytes));
    match read {
        Ok(Ok(_)) => String::from_utf8_lossy(&bytes).into_owned(),
        _ => String::new(),
    }
}
