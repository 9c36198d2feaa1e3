//! Who a process is: an identity that survives reuse of its pid, and the kernel's line from which
//! its start is known. Pure: who reads the line is another crate.

use serde::{Deserialize, Serialize};

/// A process, distinguished from any other that ever had the same pid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct ProcessIdentity {
    /// The kernel's boot id (`/proc/sys/kernel/random/boot_id`), as 16 bytes.
    #[serde(with = "boot_id_text")]
    #[cfg_attr(feature = "json-schema", schemars(with = "crate::json_schema::BootId"))]
    pub boot_id: [u8; 16],
    /// The inode number of the PID namespace in which `pid` counts.
    pub pid_namespace: u64,
    /// The pid in that namespace.
    pub pid: u32,
    /// Field 22 of `/proc/<pid>/stat`: clock ticks after boot when the process started.
    pub start_time_ticks: u64,
}

/// What a `/proc/<pid>/stat` line says, see proc_pid_stat(5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessStat<'a> {
    /// The process's short name (field 2), in which it may have put any bytes.
    pub name: &'a [u8],
    /// When it started, in clock ticks after boot (field 22).
    pub start_time_ticks: u64,
    /// It has ended and waits for its parent to take note.
    pub ended: bool,
}

impl<'a> ProcessStat<'a> {
    /// Reads a line. The name may hold brackets and spaces, so fields are counted from the last
    /// bracket.
    pub fn parse(line: &'a [u8]) -> Option<Self> {
        let open = line.iter().position(|byte| *byte == b'(')?;
        let close = line.iter().rposition(|byte| *byte == b')')?;
        let name = line.get(open + 1..close)?;
        let rest = std::str::from_utf8(&line[close + 1..]).ok()?;
        let mut fields = rest.split_ascii_whitespace();
        let state = fields.next()?;
        let threads = fields.nth(16)?;
        let start_time_ticks = fields.nth(1)?.parse().ok()?;
        // A first thread that has ended is a zombie too, while other threads go on.
        let ended = matches!(state, "Z" | "X") && matches!(threads, "0" | "1");
        Some(Self { name, start_time_ticks, ended })
    }
}

/// Parses a boot id as the kernel prints it, with or without hyphens.
pub fn parse_boot_id(text: &str) -> Option<[u8; 16]> {
    let mut bytes = [0u8; 16];
    let mut digits = text.trim().bytes().filter(|byte| *byte != b'-');
    for byte in &mut bytes {
        let high = char::from(digits.next()?).to_digit(16)?;
        let low = char::from(digits.next()?).to_digit(16)?;
        *byte = u8::try_from(high * 16 + low).ok()?;
    }
    digits.next().is_none().then_some(bytes)
}

/// Prints a boot id as the kernel does.
pub fn format_boot_id(boot_id: &[u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (index, byte) in boot_id.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

mod boot_id_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(id: &[u8; 16], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&super::format_boot_id(id))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<[u8; 16], D::Error> {
        let text = String::deserialize(from)?;
        super::parse_boot_id(&text).ok_or_else(|| D::Error::custom("not a boot id"))
    }
}

#[cfg(test)]
mod tests {
    use super::{ProcessStat, format_boot_id, parse_boot_id};

    #[test]
    fn a_hostile_name_moves_no_field() {
        let line =
            b"1 (a) R 9 9 9 (\xff\n) S 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 1 19 777 21 23";
        let name = &b"a) R 9 9 9 (\xff\n"[..];
        let expected = ProcessStat { name, start_time_ticks: 777, ended: false };
        assert_eq!(ProcessStat::parse(line), Some(expected));
        for bad in [&b""[..], b"1 (a", b")(", b"1 (a) R 9"] {
            assert_eq!(ProcessStat::parse(bad), None);
        }
    }

    #[test]
    fn a_zombie_has_ended_and_one_whose_other_threads_live_has_not() {
        let cases = [("S", 1, false), ("Z", 1, true), ("Z", 3, false), ("X", 0, true)];
        for (state, threads, ended) in cases {
            let line = format!("7 (x) {state} 1 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 {threads} 0 4242");
            let stat = ProcessStat::parse(line.as_bytes()).unwrap();
            assert_eq!((stat.ended, stat.start_time_ticks), (ended, 4242), "{line}");
        }
    }

    #[test]
    fn boot_ids_survive_text() {
        let text = "0f8fad5b-d9cb-469f-a165-70867728950e";
        let id = parse_boot_id(&format!("{text}\n")).unwrap();
        assert_eq!(format_boot_id(&id), text);
        for bad in ["", "0f8f", "zz8fad5b-d9cb-469f-a165-70867728950e", &format!("{text}00")] {
            assert_eq!(parse_boot_id(bad), None, "{bad}");
        }
    }
}
