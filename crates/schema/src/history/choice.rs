//! Naming a process: by its identity, by pid, by pid and start, or by name.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::process::{ProcessIdentity, format_boot_id, parse_boot_id};

/// Which processes are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessChoice {
    /// Just this one: `BOOT:NAMESPACE:PID:START`.
    Identity(ProcessIdentity),
    /// Those that had this pid, in the service's PID namespace or their own: `4242`.
    Pid(u32),
    /// The one that had this pid and started at this clock tick after boot: `4242@1234567`.
    PidAndStart(u32, u64),
    /// Those of this name, or with this word in their command line: `python3`, `train.py`; with `name:`
    /// before it for a name that looks like a pid.
    Name(String),
}

/// An identity as one word, which [`ProcessChoice`] reads.
#[must_use]
pub fn identity_text(identity: &ProcessIdentity) -> String {
    let ProcessIdentity { boot_id, pid_namespace, pid, start_time_ticks } = identity;
    format!("{}:{pid_namespace}:{pid}:{start_time_ticks}", format_boot_id(boot_id))
}

fn identity(text: &str) -> Option<ProcessIdentity> {
    let mut parts = text.split(':');
    let boot_id = parse_boot_id(parts.next()?)?;
    let pid_namespace = parts.next()?.parse().ok()?;
    let pid = parts.next()?.parse().ok()?;
    let start_time_ticks = parts.next()?.parse().ok()?;
    let whole = ProcessIdentity { boot_id, pid_namespace, pid, start_time_ticks };
    parts.next().is_none().then_some(whole)
}

// === impl ProcessChoice ===

impl FromStr for ProcessChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err(String::from("a process is named by its pid, pid@start, identity or name"));
        }
        if let Some(name) = text.strip_prefix("name:") {
            return Ok(Self::Name(name.to_owned()));
        }
        if let Ok(pid) = text.parse() {
            return Ok(Self::Pid(pid));
        }
        if let Some((pid, start)) = text.split_once('@')
            && let (Ok(pid), Ok(start)) = (pid.parse(), start.parse())
        {
            return Ok(Self::PidAndStart(pid, start));
        }
        Ok(identity(text).map_or_else(|| Self::Name(text.to_owned()), Self::Identity))
    }
}

impl fmt::Display for ProcessChoice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Identity(identity) => formatter.write_str(&identity_text(identity)),
            Self::Pid(pid) => write!(formatter, "{pid}"),
            Self::PidAndStart(pid, start) => write!(formatter, "{pid}@{start}"),
            Self::Name(name) => match name.parse::<Self>() {
                Ok(Self::Name(same)) if same == *name => formatter.write_str(name),
                _ => write!(formatter, "name:{name}"),
            },
        }
    }
}

impl Serialize for ProcessChoice {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ProcessChoice {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::ProcessChoice;

    #[test]
    fn every_way_to_name_a_process_survives_text() {
        let identity = "0f8fad5b-d9cb-469f-a165-70867728950e:4026531836:42:777";
        for (text, is) in [
            ("42", "pid"),
            ("42@777", "start"),
            (identity, "identity"),
            ("python3", "name"),
            ("name:42", "name"),
            ("a@b", "name"),
            ("a:b:c:d", "name"),
        ] {
            let choice: ProcessChoice = text.parse().unwrap();
            let found = match &choice {
                ProcessChoice::Identity(_) => "identity",
                ProcessChoice::Pid(_) => "pid",
                ProcessChoice::PidAndStart(..) => "start",
                ProcessChoice::Name(_) => "name",
            };
            assert_eq!((found, choice.to_string().as_str()), (is, text));
        }
        assert!("".parse::<ProcessChoice>().is_err());
    }
}
