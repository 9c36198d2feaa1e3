//! The driver's list of openers, `/proc/driver/tenstorrent/N/pids`, and what its versions mean.
//!
//! One line for each open descriptor: repeated pids are normal. The number is 0 for an opener that
//! cannot be seen from our PID namespace, and it is the opener even after the descriptor was
//! handed to another process (tt-kmd `enumerate.c`).

use std::collections::BTreeMap;
use std::fmt;

use telltale_schema::snapshot::Holder;

/// Different pids that are kept; further ones are counted.
pub(super) const MAX_HOLDERS: usize = 4096;

/// The largest pid the kernel gives (`PID_MAX_LIMIT`).
const LARGEST_PID: u32 = 4 << 20;

/// The driver's version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DriverVersion {
    /// The first number.
    pub major: u32,
    /// The second number.
    pub minor: u32,
}

impl DriverVersion {
    /// The first driver that lists openers.
    pub const LISTS_OPENERS: Self = Self { major: 2, minor: 5 };
    /// The first driver whose list is right for openers in containers.
    pub const TRANSLATES_OPENERS: Self = Self { major: 2, minor: 7 };

    /// Reads `2.7.0` or `2.10.1-pre`; none for anything else.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?.trim();
        let mut parts = text.split(['.', '-']);
        let major = parts.next()?.parse().ok()?;
        Some(Self { major, minor: parts.next()?.parse().ok()? })
    }
}

impl fmt::Display for DriverVersion {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}.{}", self.major, self.minor)
    }
}

/// What the list says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Openers {
    /// Each opener once, by pid, those that are invisible from here last as one.
    pub(super) holders: Vec<Holder>,
    /// Lines that are no pid.
    pub(super) junk_lines: u32,
    /// Descriptors of openers beyond [`MAX_HOLDERS`].
    pub(super) dropped: u32,
}

/// Reads the list.
pub(super) fn parse(text: &[u8]) -> Openers {
    let mut openers = Openers::default();
    let mut by_pid: BTreeMap<u32, u32> = BTreeMap::new();
    let mut invisible = 0u32;
    for line in text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii) {
        match number(line) {
            _ if line.is_empty() => {}
            Some(0) => invisible += 1,
            Some(pid) if by_pid.len() < MAX_HOLDERS || by_pid.contains_key(&pid) => {
                *by_pid.entry(pid).or_default() += 1;
            }
            Some(_) => openers.dropped += 1,
            None => openers.junk_lines += 1,
        }
    }
    let holder = |pid, open_descriptors| Holder { pid, open_descriptors, memory_known: false };
    openers.holders = by_pid.into_iter().map(|(pid, count)| holder(Some(pid), count)).collect();
    if invisible > 0 {
        openers.holders.push(holder(None, invisible));
    }
    openers
}

fn number(line: &[u8]) -> Option<u32> {
    let clean = line.len() <= 10 && line.iter().all(u8::is_ascii_digit);
    let text = clean.then(|| std::str::from_utf8(line).ok())??;
    text.parse().ok().filter(|pid| *pid <= LARGEST_PID)
}

#[cfg(test)]
mod tests {
    use super::{DriverVersion, MAX_HOLDERS, parse};
    use proptest::prelude::*;

    fn check(text: &str, expected: &[(Option<u32>, u32)], junk_lines: u32) {
        let openers = parse(text.as_bytes());
        let found: Vec<_> =
            openers.holders.iter().map(|holder| (holder.pid, holder.open_descriptors)).collect();
        assert_eq!((found.as_slice(), openers.junk_lines), (expected, junk_lines), "{text:?}");
    }

    #[test]
    fn the_list_is_a_multiset_with_zeros_and_junk() {
        check("", &[], 0);
        check("7\n", &[(Some(7), 1)], 0);
        check("7\n9\n7\n7\n", &[(Some(7), 3), (Some(9), 1)], 0);
        check("0\n7\n0\n", &[(Some(7), 1), (None, 2)], 0);
        check("-1\nx\n+5\n4194305\n99999999999\n 8 \n\n", &[(Some(8), 1)], 5);
        check("12", &[(Some(12), 1)], 0);
    }

    #[test]
    fn the_number_of_openers_is_bounded() {
        let text: String = (1..=MAX_HOLDERS + 10).map(|pid| format!("{pid}\n")).collect();
        let openers = parse(text.as_bytes());
        assert_eq!((openers.holders.len(), openers.dropped), (MAX_HOLDERS, 10));
    }

    #[test]
    fn versions_compare_as_numbers() {
        let version = |text: &str| DriverVersion::parse(text.as_bytes());
        assert!(version("2.10.1-pre\n").unwrap() > DriverVersion::TRANSLATES_OPENERS);
        assert!(version("2.4.1\n").unwrap() < DriverVersion::LISTS_OPENERS);
        assert_eq!(version("2.5-rc1").map(|found| found.to_string()).as_deref(), Some("2.5"));
        for bad in ["", "two", "2", "2.x", "99999999999.1"] {
            assert_eq!(version(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_counted_line_by_line(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let openers = parse(&bytes);
            let lines = bytes.split(|byte| *byte == b'\n').count();
            let counted: u32 = openers.holders.iter().map(|holder| holder.open_descriptors).sum();
            prop_assert!((counted + openers.junk_lines) as usize <= lines);
        }
    }
}
