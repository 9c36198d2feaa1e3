//! Who a process is: an identity that survives reuse of its pid.

use serde::{Deserialize, Serialize};

/// A process, told apart from any other that ever had the same pid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ProcessIdentity {
    /// The kernel's boot id (`/proc/sys/kernel/random/boot_id`), as 16 bytes.
    #[serde(with = "boot_id_text")]
    pub boot_id: [u8; 16],
    /// The inode number of the PID namespace in which `pid` counts.
    pub pid_namespace: u64,
    /// The pid in that namespace.
    pub pid: u32,
    /// Field 22 of `/proc/<pid>/stat`: clock ticks after boot when the process started.
    pub start_time_ticks: u64,
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
    use super::{format_boot_id, parse_boot_id};

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
