//! torchrun's `--rdzv-conf`: what of it changes something here.

use std::time::Duration;

use crate::exit::Failure;

/// How long nodes beyond the least number are waited for, as under torchrun.
const LAST_CALL: Duration = Duration::from_secs(30);
/// How long the nodes that a job needs are waited for, as under torchrun.
const JOIN: Duration = Duration::from_secs(600);

/// What it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RendezvousConf {
    /// Whether this node runs the coordinator, if that is said.
    pub(super) is_host: Option<bool>,
    /// How long more than the least nodes are waited for.
    pub(super) last_call: Duration,
    /// How long the nodes that the job needs are waited for.
    pub(super) join: Duration,
}

// === impl RendezvousConf ===

impl RendezvousConf {
    /// Reads `KEY=VALUE,...`. Keys of torchrun that are about its own store change nothing.
    pub(super) fn read(text: &str) -> Result<Self, Failure> {
        let mut read = Self { is_host: None, last_call: LAST_CALL, join: JOIN };
        for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let wrong = |what: &str| {
                Failure::Usage(format!("--rdzv-conf {pair}: {what}; write KEY=VALUE,..."))
            };
            let (key, value) = pair.split_once('=').ok_or_else(|| wrong("it has no value"))?;
            let (key, value) = (key.trim(), value.trim());
            let seconds = || {
                let seconds = value.parse().ok();
                seconds.map(Duration::from_secs).ok_or_else(|| wrong("it is no number of seconds"))
            };
            match key {
                "is_host" => {
                    read.is_host =
                        Some(truth(value).ok_or_else(|| wrong("neither true nor false"))?);
                }
                "last_call_timeout" => read.last_call = seconds()?,
                "join_timeout" => read.join = seconds()?,
                _ => {}
            }
        }
        Ok(read)
    }
}

/// A truth value as torchrun writes it.
fn truth(value: &str) -> Option<bool> {
    match &*value.to_ascii_lowercase() {
        "1" | "true" | "t" | "yes" | "y" => Some(true),
        "0" | "false" | "f" | "no" | "n" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_as_torchrun_reads_it() {
        let read = |text| RendezvousConf::read(text).map_err(|error| error.to_string());
        let usual = RendezvousConf { is_host: None, last_call: LAST_CALL, join: JOIN };
        assert_eq!(read(""), Ok(usual));
        assert_eq!(read("timeout=900,read_timeout=60"), Ok(usual));
        let all = read("is_host=True, last_call_timeout=1,join_timeout=20").unwrap();
        assert_eq!((all.is_host, all.last_call.as_secs(), all.join.as_secs()), (Some(true), 1, 20));
        for wrong in ["nonsense", "is_host=maybe", "last_call_timeout=abc", "join_timeout=-1"] {
            assert!(read(wrong).unwrap_err().starts_with("--rdzv-conf "), "{wrong}");
        }
    }
}
