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

/// The number of the first field after the name, as proc_pid_stat(5) counts.
const FIRST_AFTER_NAME: usize = 3;
/// Fields after the name that are read: the last is field 24.
const FIELDS_AFTER_NAME: usize = 22;

/// What a `/proc/<pid>/stat` line says, see proc_pid_stat(5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessStat<'a> {
    /// The process's short name (field 2), in which it may have put any bytes.
    pub name: &'a [u8],
    /// Its state (field 3): `R`, `S`, `D`, `Z`, `T`, `t` and so on.
    pub state: u8,
    /// Its parent's pid (field 4), 0 where that is in another PID namespace.
    pub parent: i32,
    /// Its session (field 6), -1 once it has been reaped.
    pub session: i32,
    /// The time that its threads have had in user code and in the kernel, in clock ticks (fields 14 and
    /// 15).
    pub cpu_ticks: u64,
    /// How many threads it has (field 20), 0 once it has been reaped.
    pub threads: u64,
    /// When it started, in clock ticks after boot (field 22).
    pub start_time_ticks: u64,
    /// Its memory that is resident, in pages (field 24).
    pub resident_pages: u64,
}

impl<'a> ProcessStat<'a> {
    /// Reads a line. The name may hold brackets and spaces, so fields are counted from the last
    /// bracket.
    pub fn parse(line: &'a [u8]) -> Option<Self> {
        let open = line.iter().position(|byte| *byte == b'(')?;
        let close = line.iter().rposition(|byte| *byte == b')')?;
        let name = line.get(open + 1..close)?;
        let rest = std::str::from_utf8(&line[close + 1..]).ok()?;
        let mut words = rest.split_ascii_whitespace();
        let mut fields = [""; FIELDS_AFTER_NAME];
        for field in &mut fields {
            *field = words.next()?;
        }
        let field = |number: usize| fields[number - FIRST_AFTER_NAME];
        let number = |of: usize| field(of).parse::<u64>().ok();
        Some(Self {
            name,
            state: *field(3).as_bytes().first()?,
            parent: field(4).parse().ok()?,
            session: field(6).parse().ok()?,
            cpu_ticks: number(14)?.checked_add(number(15)?)?,
            threads: number(20)?,
            start_time_ticks: number(22)?,
            resident_pages: number(24)?,
        })
    }

    /// Whether it has ended and waits for its parent to take note.
    pub fn has_ended(&self) -> bool {
        // A first thread that has ended is a zombie too, while other threads go on.
        matches!(self.state, b'Z' | b'X') && self.threads <= 1
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
        let expected = ProcessStat {
            name,
            state: b'S',
            parent: 2,
            session: 4,
            cpu_ticks: 12 + 13,
            threads: 1,
            start_time_ticks: 777,
            resident_pages: 23,
        };
        assert_eq!(ProcessStat::parse(line), Some(expected));
        let cut = &line[..line.len() - 3];
        let most = format!("1 (a) S{} 20", format!(" {}", u64::MAX).repeat(20));
        for bad in [&b""[..], b"1 (a", b")(", b"1 (a) R 9", cut, most.as_bytes()] {
            assert_eq!(ProcessStat::parse(bad), None);
        }
    }

    #[test]
    fn a_zombie_has_ended_and_one_whose_other_threads_live_has_not() {
        let cases = [("S", 1, false), ("Z", 1, true), ("Z", 3, false), ("X", 0, true)];
        for (state, threads, ended) in cases {
            let line =
                format!("7 (x) {state} 1 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 {threads} 0 4242 1 2");
            let stat = ProcessStat::parse(line.as_bytes()).unwrap();
            assert_eq!((stat.has_ended(), stat.start_time_ticks), (ended, 4242), "{line}");
        }
        let reaped = b"7 (x) X 0 -1 -1 0 -1 4 0 0 0 0 0 0 0 0 20 0 0 0 4242 0 0";
        let stat = ProcessStat::parse(reaped).unwrap();
        assert_eq!((stat.parent, stat.session, stat.has_ended()), (0, -1, true));
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
