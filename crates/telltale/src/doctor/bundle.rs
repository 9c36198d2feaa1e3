//! A file for whoever helps: findings and snapshot, without what tells who and where this is.
//!
//! Names of people, hosts, programs, pods and devices become numbers, the same one for the same
//! name throughout, so that a reader still sees what belongs together. A text is kept only where its
//! field is known to be harmless; texts for people are cleaned word by word ([`words`]). Nothing of
//! the environment is in it.

mod identity;
mod numbers;
mod words;

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde_json::{Map, Value, json};
use telltale_schema::snapshot::Snapshot;

use super::finding::Finding;
use crate::exit::Failure;
use identity::Identity;
use numbers::Numbers;
use words::Cleaner;

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

/// Fields whose texts are words of ours, of a driver or of the kernel, and tell nobody's name.
const HARMLESS: [&str; 18] = [
    "absent",
    "accounting",
    "architecture",
    "board_type",
    "capacity_source",
    "class",
    "counter",
    "direction",
    "driver",
    "engine",
    "kind",
    "known_by",
    "pci",
    "reason",
    "source",
    "space",
    "state",
    "vendor",
];

/// Fields whose texts are cleaned word by word.
const CLEANED: [&str; 2] = ["model", "throttled_by"];

/// Fields that are left out whatever they have: free text of programs and devices, and paths.
const LEFT_OUT: [&str; 4] = ["metrics", "detail", "firmware", "help"];

/// Names of sources, which are ours and tell nothing.
const OURS: [&str; 12] = [
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
    "legacy",
];

/// Stands where something was left out.
const GONE: &str = "left out";

/// Letters of the longest harmless text.
const MAX_HARMLESS: usize = 64;

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
    let text = text(findings, snapshot, Identity::of_this_machine());
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)
}

/// What is in the file.
fn text(findings: &[Finding], snapshot: &Snapshot, mut identity: Identity) -> String {
    identity.learn(snapshot);
    let mut veil = Veil { numbers: Numbers::default() };
    let snapshot = serde_json::to_value(snapshot).expect("a snapshot has only string keys");
    let snapshot = veil.value(snapshot);
    let mut cleaner = Cleaner::new(&identity, veil.numbers);
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let bundle = json!({
        "schema_version": super::SCHEMA_VERSION,
        "version": env!("CARGO_PKG_VERSION"),
        "kernel": cleaner.release(&release),
        "findings": findings.iter().map(|finding| cleaned(finding, &mut cleaner)).collect::<Vec<_>>(),
        "snapshot": snapshot,
    });
    serde_json::to_string_pretty(&bundle).expect("it has only string keys") + "\n"
}

fn cleaned(finding: &Finding, cleaner: &mut Cleaner<'_>) -> Value {
    json!({
        "subject": finding.subject,
        "verdict": finding.verdict.name(),
        "what": cleaner.text(&finding.what),
        "remedy": finding.remedy.iter().map(|remedy| cleaner.text(remedy)).collect::<Vec<_>>(),
    })
}

/// What hides names in a snapshot.
struct Veil {
    numbers: Numbers,
}

// === impl Veil ===

impl Veil {
    /// A value with names as numbers, and texts left out that are not known to be harmless.
    fn value(&mut self, value: Value) -> Value {
        match value {
            Value::Object(fields) => self.fields(fields),
            Value::Array(items) => items.into_iter().map(|item| self.value(item)).collect(),
            Value::String(_) => json!(GONE),
            other => other,
        }
    }

    fn fields(&mut self, fields: Map<String, Value>) -> Value {
        let veiled = fields.into_iter().enumerate().map(|(place, (key, value))| {
            let value = self.field(&key, value);
            // Categories of a driver's memory are keys; any others are ours.
            let key = if is_plain(&key) { key } else { format!("key-{place}") };
            (key, value)
        });
        Value::Object(veiled.collect())
    }

    fn field(&mut self, key: &str, value: Value) -> Value {
        if LEFT_OUT.contains(&key) {
            return json!(GONE);
        }
        if let Some((_, kind)) = NAMES.iter().find(|(name, _)| *name == key) {
            return self.names(kind, value);
        }
        match value {
            Value::String(text) if HARMLESS.contains(&key) && is_plain(&text) => json!(text),
            Value::String(text) if CLEANED.contains(&key) => {
                json!(words::without_numbers(&text))
            }
            Value::Array(items) => items.into_iter().map(|item| self.within(key, item)).collect(),
            Value::Object(mut fields) if fields.contains_key("value") => {
                let inner = fields.remove("value").map(|inner| self.within(key, inner));
                let Value::Object(mut rest) = self.fields(fields) else { return json!(GONE) };
                rest.extend(inner.map(|inner| (String::from("value"), inner)));
                Value::Object(rest)
            }
            other => self.value(other),
        }
    }

    /// What is in a list, or in a reading, of the field `key`.
    fn within(&mut self, key: &str, item: Value) -> Value {
        match item {
            Value::String(_) | Value::Array(_) => self.field(key, item),
            other => self.value(other),
        }
    }

    /// A name, or names within a reading or a list, as numbers.
    fn names(&mut self, kind: &'static str, value: Value) -> Value {
        match value {
            Value::String(name) if OURS.contains(&name.as_str()) => Value::String(name),
            Value::String(name) => Value::String(self.numbers.named(kind, &name)),
            Value::Number(number) => Value::String(self.numbers.named(kind, &number.to_string())),
            Value::Array(items) => items.into_iter().map(|item| self.names(kind, item)).collect(),
            Value::Object(mut fields) => match fields.remove("value") {
                Some(inner) => {
                    let inner = self.names(kind, inner);
                    let Value::Object(mut rest) = self.fields(fields) else { return inner };
                    rest.insert("value".into(), inner);
                    Value::Object(rest)
                }
                None => self.fields(fields),
            },
            other => other,
        }
    }
}

/// Whether a text is a word as programmers make them, too short and plain to carry a secret.
fn is_plain(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-:.!".contains(&byte);
    text.len() <= MAX_HARMLESS && text.bytes().all(plain)
}

#[cfg(test)]
mod tests;
