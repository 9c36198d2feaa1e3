//! Workers that are started ahead: a Python that has imported what its script needs, and waits at a
//! gate until its rank is known.
//!
//! The gate is in the module that Python imports by itself ([`super::python`]), so the script needs no
//! change. Nothing of the script has run before the gate.

use std::ffi::OsString;

use thiserror::Error;

use super::python;

/// The variable with the descriptor at which a worker waits.
pub(super) const GATE: &str = "TELLTALE_GATE";
/// What a worker says when it has imported everything.
pub(super) const WARM: &[u8] = b"warm\n";

/// Why a command's workers cannot be started ahead.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WarmError {
    /// It is no Python.
    #[error(
        "{program:?} is no Python, and only a Python can wait at a gate; leave out --warm, or give python3 and the script behind `--`"
    )]
    NoPython {
        /// The command's program.
        program: OsString,
    },
    /// Python is configured not to look where the gate is.
    #[error("with {option:?} Python does not look for the gate; leave it out, or leave out --warm")]
    Blind {
        /// The option.
        option: OsString,
    },
}

/// Whether the workers of a command can wait at a gate.
///
/// # Errors
/// When the command is no Python, or one that ignores `PYTHONPATH` or `sitecustomize`.
pub fn can_be_warm(command: &[OsString]) -> Result<(), WarmError> {
    if !python::is_python(command) {
        return Err(WarmError::NoPython { program: command.first().cloned().unwrap_or_default() });
    }
    match python::blind_option(command) {
        Some(option) => Err(WarmError::Blind { option: option.clone() }),
        None => Ok(()),
    }
}

/// The environment as the gate reads it: its length on a line, then names and values, each with a
/// zero byte behind it.
pub(super) fn reported(environment: &[(&str, String)]) -> Vec<u8> {
    let words = environment.iter().flat_map(|(name, value)| [*name, value.as_str()]);
    let mut text = Vec::new();
    for word in words {
        text.extend(word.bytes().filter(|byte| *byte != 0));
        text.push(0);
    }
    [format!("{}\n", text.len()).into_bytes(), text].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_python_that_searches_for_the_gate_can_be_warm() {
        let check = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            can_be_warm(&words).is_ok()
        };
        for fine in [
            "python3 a.py",
            "/usr/bin/python3.11 -u a.py -S",
            "python -m job -E",
            "python -X importtime a.py",
            "python3 -Wignore::SyntaxWarning -XEIS a.py",
            "python3 -um job -S",
        ] {
            assert!(check(fine), "{fine}");
        }
        for wrong in [
            "./a.sh",
            "bash python",
            "python3 -S a.py",
            "python3 -uE a.py",
            "python3 -I -m job",
            "python3 -X dev -S a.py",
            "python3 -W ignore -uE a.py",
            "python3 --check-hash-based-pycs always -I a.py",
            "",
        ] {
            assert!(!check(wrong), "{wrong:?}");
        }
    }

    #[test]
    fn the_environment_is_reported_with_its_length() {
        let reported = reported(&[("RANK", "3".to_owned()), ("ODD", "a\0b".to_owned())]);
        assert_eq!(reported, b"14\nRANK\x003\x00ODD\x00ab\x00");
    }
}
