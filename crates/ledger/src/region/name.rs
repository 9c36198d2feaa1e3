//! The names of region files. Nothing here opens one.
#![forbid(unsafe_code)]

const PREFIX: &str = "tt_device_";
const SUFFIX: &str = "_memory";

/// What a directory entry's name says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileName {
    /// The region of this id.
    Region(u64),
    /// Shaped like a region's name, but not with a decimal id as its writers print it.
    Malformed,
    /// Something else.
    Other,
}

/// The file name of the region with this id.
///
/// The id is the first tracker's composite in version 1 and UMD's chip id later; it is not the driver's
/// `tt_asic_id`.
#[must_use]
pub fn file_name(name_id: u64) -> String {
    format!("{PREFIX}{name_id}{SUFFIX}")
}

/// Reads a directory entry's name. Only the form that [`file_name`] gives is taken, so that two
/// names never mean one region.
#[must_use]
pub fn parse_file_name(name: &[u8]) -> FileName {
    let middle =
        name.strip_prefix(PREFIX.as_bytes()).and_then(|rest| rest.strip_suffix(SUFFIX.as_bytes()));
    let Some(middle) = middle else { return FileName::Other };
    let parsed = std::str::from_utf8(middle).ok().and_then(|text| text.parse::<u64>().ok());
    match parsed {
        Some(id) if file_name(id).as_bytes() == name => FileName::Region(id),
        Some(_) | None => FileName::Malformed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_printed_form_is_a_region() {
        let check = |name: &str, expected| assert_eq!(parse_file_name(name.as_bytes()), expected);
        check("tt_device_469504_memory", FileName::Region(469_504));
        check("tt_device_0_memory", FileName::Region(0));
        check("tt_device_18446744073709551615_memory", FileName::Region(u64::MAX));
        check("tt_device_18446744073709551616_memory", FileName::Malformed);
        check("tt_device_0469504_memory", FileName::Malformed);
        check("tt_device_+1_memory", FileName::Malformed);
        check("tt_device_-1_memory", FileName::Malformed);
        check("tt_device__memory", FileName::Malformed);
        check("tt_device_1_memory.old", FileName::Other);
        check("sem.tt_device_1_memory", FileName::Other);
        check("", FileName::Other);
    }
}
