//! The names of entries in the runtime directory. The numbers in a name are a hint where to
//! look, never an identity.

/// What kind of entry a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EntryKind {
    /// A ledger, `ledger_<pid>_<start>.tt`.
    Ledger {
        /// The start time in clock ticks that the name gives.
        start_time_ticks: u64,
    },
    /// An endpoint, `metrics_<pid>.sock`.
    Endpoint,
    /// An endpoint's socket before it has its name, `.metrics_<pid>_<start>_<random>.new`: there
    /// for a moment, or left by a process that was killed in it.
    Temporary {
        /// The start time in clock ticks that the name gives.
        start_time_ticks: u64,
    },
}

/// An entry of the runtime directory by its name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DirectoryEntry {
    /// The name.
    pub name: String,
    /// What it stands for.
    pub kind: EntryKind,
    /// The pid it gives, as its process knows it.
    pub pid: u32,
    /// The PID namespace it gives, if it had to.
    pub pid_namespace: Option<u64>,
}

/// The name of a ledger; with the namespace if the plain one is another's.
pub fn ledger_name(pid: u32, start_time_ticks: u64, pid_namespace: Option<u64>) -> String {
    match pid_namespace {
        None => format!("ledger_{pid}_{start_time_ticks}.tt"),
        Some(namespace) => format!("ledger_{pid}_{start_time_ticks}-{namespace}.tt"),
    }
}

/// The name of an endpoint; with the namespace if the plain one is another's.
pub fn endpoint_name(pid: u32, pid_namespace: Option<u64>) -> String {
    match pid_namespace {
        None => format!("metrics_{pid}.sock"),
        Some(namespace) => format!("metrics_{pid}-{namespace}.sock"),
    }
}

/// The name of an endpoint's socket until it has its own. `random` keeps others from taking the
/// name first.
pub fn temporary_name(pid: u32, start_time_ticks: u64, random: u64) -> String {
    format!(".metrics_{pid}_{start_time_ticks}_{random:016x}.new")
}

/// What a name stands for; none if it is none of ours. Only the one spelling that
/// [`ledger_name`], [`endpoint_name`] and [`temporary_name`] give is accepted.
pub fn parse_name(name: &str) -> Option<DirectoryEntry> {
    let (kind, pid, pid_namespace, canonical);
    if let Some(rest) = name.strip_prefix("ledger_").and_then(|rest| rest.strip_suffix(".tt")) {
        let (pid_text, rest) = rest.split_once('_')?;
        let (start_text, namespace) = split_namespace(rest)?;
        let start_time_ticks = start_text.parse().ok()?;
        (kind, pid, pid_namespace) =
            (EntryKind::Ledger { start_time_ticks }, pid_text.parse().ok()?, namespace);
        canonical = ledger_name(pid, start_time_ticks, pid_namespace);
    } else if let Some(rest) = name.strip_prefix(".metrics_") {
        let mut parts = rest.strip_suffix(".new")?.splitn(3, '_');
        (pid, pid_namespace) = (parts.next()?.parse().ok()?, None);
        let start_time_ticks = parts.next()?.parse().ok()?;
        let random = u64::from_str_radix(parts.next()?, 16).ok()?;
        kind = EntryKind::Temporary { start_time_ticks };
        canonical = temporary_name(pid, start_time_ticks, random);
    } else {
        let rest = name.strip_prefix("metrics_")?.strip_suffix(".sock")?;
        let (pid_text, namespace) = split_namespace(rest)?;
        (kind, pid, pid_namespace) = (EntryKind::Endpoint, pid_text.parse().ok()?, namespace);
        canonical = endpoint_name(pid, pid_namespace);
    }
    (pid > 0 && canonical == name).then_some(DirectoryEntry {
        name: canonical,
        kind,
        pid,
        pid_namespace,
    })
}

fn split_namespace(text: &str) -> Option<(&str, Option<u64>)> {
    match text.split_once('-') {
        None => Some((text, None)),
        Some((first, namespace)) => Some((first, Some(namespace.parse().ok()?))),
    }
}

#[cfg(test)]
mod tests {
    use super::{EntryKind, endpoint_name, ledger_name, parse_name, temporary_name};

    #[test]
    fn names_survive_their_spelling() {
        for namespace in [None, Some(4_026_531_836)] {
            let ledger = parse_name(&ledger_name(12, 345, namespace)).unwrap();
            assert_eq!(ledger.kind, EntryKind::Ledger { start_time_ticks: 345 });
            assert_eq!((ledger.pid, ledger.pid_namespace), (12, namespace));
            let endpoint = parse_name(&endpoint_name(u32::MAX, namespace)).unwrap();
            assert_eq!(endpoint.kind, EntryKind::Endpoint);
            assert_eq!((endpoint.pid, endpoint.pid_namespace), (u32::MAX, namespace));
        }
        let temporary = parse_name(&temporary_name(12, 345, 6)).unwrap();
        assert_eq!(temporary.kind, EntryKind::Temporary { start_time_ticks: 345 });
        assert_eq!((temporary.pid, temporary.pid_namespace), (12, None));
    }

    #[test]
    fn other_names_are_not_ours() {
        let others = [
            "",
            "ledger_",
            "ledger_1.tt",
            "ledger_1_2",
            "ledger_01_2.tt",
            "ledger_1_+2.tt",
            "ledger_0_2.tt",
            "ledger_1_2-.tt",
            "ledger_1_2-3-4.tt",
            "ledger_4294967296_2.tt",
            "metrics_.sock",
            "metrics_-1.sock",
            "metrics_1.sock2",
            "metrics_ 1.sock",
            "metrics_1-x.sock",
            "../metrics_1.sock",
            "metrics_1/.sock",
            ".metrics_1.0.new",
            ".metrics_1_2_3.new",
            ".metrics_1_2_000000000000000A.new",
            ".metrics_1_2_0000000000000000a.new",
            ".metrics_0_2_000000000000000a.new",
            ".metrics_1_2_000000000000000a",
        ];
        for name in others {
            assert_eq!(parse_name(name), None, "{name}");
        }
    }
}
