//! A file for whoever helps: findings and snapshot, without what tells who and where this is.
//!
//! Names of people, hosts, programs, pods and devices become numbers, the same one for the same
//! name throughout, so that a reader still sees what belongs together. What is not known to be
//! harmless is left out.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde_json::{Map, Value, json};
use telltale_schema::snapshot::Snapshot;

use super::finding::Finding;
use crate::exit::Failure;

/// Fields whose value is a name, and what the number stands behind instead.
const NAMES: [(&str, &str); 16] = [
    ("user", "user"),
    ("name", "name"),
    ("command", "command"),
    ("id", "id"),
    ("asic_id", "asic"),
    ("board_id", "board"),
    ("uuid", "uuid"),
    ("serial", "serial"),
    ("parent", "id"),
    ("pod_uid", "pod"),
    ("namespace", "namespace"),
    ("container", "container"),
    ("boot_id", "boot"),
    ("subject", "subject"),
    ("uid", "uid"),
    ("ids", "id"),
];

/// Fields with free text of programs or paths, and those that nothing here can judge.
const LEFT_OUT: [&str; 4] = ["metrics", "detail", "firmware", "help"];

/// Names of sources, which are ours and tell nothing.
const OURS: [&str; 11] = [
    "tenstorrent",
    "drm",
    "neuron",
    "nvidia",
    "host",
    "ledgers",
    "endpoints",
    "regions",
    "processes",
    "pods",
    "kubelet",
];

/// Writes the file, which must not be there yet and is nobody else's to read.
pub(super) fn write(path: &Path, findings: &[Finding], snapshot: &Snapshot) -> Result<(), Failure> {
    let failed = |error: io::Error| {
        let remedy = match error.kind() {
            io::ErrorKind::AlreadyExists => "; choose another name, it is not overwritten",
            _ => "",
        };
        Failure::Told(format!("cannot write the bundle {}: {error}{remedy}", path.display()))
    };
    let mut file =
        File::options().write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
    let text = text(findings, snapshot);
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)
}

/// What is in the file.
fn text(findings: &[Finding], snapshot: &Snapshot) -> String {
    let mut veil = Veil::of(snapshot);
    let snapshot = serde_json::to_value(snapshot).expect("a snapshot has only string keys");
    let findings = serde_json::to_value(findings).expect("findings have only string keys");
    let snapshot = veil.value(snapshot);
    let bundle = json!({
        "schema_version": super::SCHEMA_VERSION,
        "version": env!("CARGO_PKG_VERSION"),
        "kernel": rustix::system::uname().release().to_string_lossy(),
        "findings": veil.texts(findings),
        "snapshot": snapshot,
    });
    serde_json::to_string_pretty(&bundle).expect("it has only string keys") + "\n"
}

/// Which name has which number.
struct Veil {
    numbers: BTreeMap<(&'static str, String), usize>,
    /// Names that must not be in any text, the longest first, and what stands there instead.
    words: Vec<(String, String)>,
}

// === impl Veil ===

impl Veil {
    fn of(snapshot: &Snapshot) -> Self {
        let mut veil = Self { numbers: BTreeMap::new(), words: Vec::new() };
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let mut words = vec![(host, String::from("HOST"))];
        for variable in ["HOME", "USER", "LOGNAME", "XDG_RUNTIME_DIR"] {
            let value = std::env::var(variable).unwrap_or_default();
            words.push((value, format!("${variable}")));
        }
        for process in &snapshot.processes {
            words.push((process.user.value().cloned().unwrap_or_default(), String::from("USER")));
        }
        for device in &snapshot.devices {
            words.push((device.id.clone(), veil.named("id", &device.id)));
        }
        // One letter is in every text.
        words.retain(|(word, _)| word.len() > 1 && word != "root");
        words.sort_by_key(|(word, _)| std::cmp::Reverse(word.len()));
        veil.words = words;
        veil
    }

    fn named(&mut self, kind: &'static str, name: &str) -> String {
        let next = self.numbers.keys().filter(|(of, _)| *of == kind).count() + 1;
        let number = *self.numbers.entry((kind, name.to_owned())).or_insert(next);
        format!("{kind}-{number}")
    }

    /// A value with names as numbers and free text left out.
    fn value(&mut self, value: Value) -> Value {
        match value {
            Value::Object(fields) => {
                let veiled = fields.into_iter().map(|(key, value)| {
                    let value = self.field(&key, value);
                    (key, value)
                });
                Value::Object(veiled.collect::<Map<_, _>>())
            }
            Value::Array(items) => items.into_iter().map(|item| self.value(item)).collect(),
            other => other,
        }
    }

    fn field(&mut self, key: &str, value: Value) -> Value {
        if LEFT_OUT.contains(&key) {
            return json!("left out");
        }
        match NAMES.iter().find(|(name, _)| *name == key) {
            Some((_, kind)) => self.names(kind, value),
            None => self.value(value),
        }
    }

    /// A name, or names within a reading or a list, as numbers.
    fn names(&mut self, kind: &'static str, value: Value) -> Value {
        match value {
            Value::String(name) if OURS.contains(&name.as_str()) => Value::String(name),
            Value::String(name) => Value::String(self.named(kind, &name)),
            Value::Number(number) => Value::String(self.named(kind, &number.to_string())),
            Value::Array(items) => items.into_iter().map(|item| self.names(kind, item)).collect(),
            Value::Object(mut fields) => match fields.remove("value") {
                Some(inner) => {
                    let inner = self.names(kind, inner);
                    let Value::Object(mut rest) = self.value(Value::Object(fields)) else {
                        return inner;
                    };
                    rest.insert("value".into(), inner);
                    Value::Object(rest)
                }
                None => self.value(Value::Object(fields)),
            },
            other => other,
        }
    }

    /// A value whose texts are ours, with the names in them replaced.
    fn texts(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(
                self.words
                    .iter()
                    .fold(text, |text, (word, instead)| text.replace(word.as_str(), instead)),
            ),
            Value::Array(items) => items.into_iter().map(|item| self.texts(item)).collect(),
            Value::Object(fields) => {
                let veiled = fields.into_iter().map(|(key, value)| (key, self.texts(value)));
                Value::Object(veiled.collect::<Map<_, _>>())
            }
            other => other,
        }
    }
}
