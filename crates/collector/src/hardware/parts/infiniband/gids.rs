//! The table of a port's addresses for RDMA (GIDs).
//!
//! It has up to 256 entries and each is a file. So the whole table is read every ten seconds, and in between
//! only the entry that shows whether the port has a routable address. While it has none, all are read each
//! time: one is to be seen as soon as it is there.

use telltale_schema::clock::Timestamp;
use telltale_schema::reading::Reading;

use crate::hardware::parts::value::implausible;
use crate::tree::{Directory, Unreadable};

/// Entries of a table that are read.
const MAX_GIDS: usize = 256;
/// How old the whole table may be.
const MAX_AGE_NS: u64 = 10 * 1_000_000_000;

/// What is known of a port's table.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::hardware::parts) struct GidTable {
    /// When the whole table was read.
    pub(super) read_at: Timestamp,
    /// Entries that are set.
    pub(super) set: u16,
    /// Those of them that reach beyond the link.
    pub(super) routable: u16,
    /// One that is routable; none where none is.
    watched: Option<String>,
}

// === impl GidTable ===

impl GidTable {
    /// Reads the table of a port, of which this is known.
    pub(super) fn read(
        port: &Directory,
        known: Option<&Self>,
        now: Timestamp,
    ) -> Result<Self, Reading<f64>> {
        let table = port.directory("gids").map_err(Unreadable::reading)?;
        if let Some(known) = known.filter(|known| known.is_fresh(now))
            && let Some(entry) = &known.watched
            && is_routable(&gid(&table, entry)?)
        {
            return Ok(known.clone());
        }
        let mut found = Self { read_at: now, set: 0, routable: 0, watched: None };
        for entry in table.names_up_to(MAX_GIDS).map_err(Unreadable::reading)? {
            if !entry.bytes().all(|byte| byte.is_ascii_digit()) {
                continue;
            }
            let gid = gid(&table, &entry)?;
            found.set += u16::from(is_set(&gid));
            if is_routable(&gid) {
                found.routable += 1;
                found.watched = Some(entry);
            }
        }
        Ok(found)
    }

    fn is_fresh(&self, now: Timestamp) -> bool {
        now.0.checked_sub(self.read_at.0).is_some_and(|age| age < MAX_AGE_NS)
    }
}

/// The text of an entry. Kernels before 4.1 have none for one that is not set. A text that is no GID says
/// nothing of the port.
fn gid(table: &Directory, entry: &str) -> Result<Vec<u8>, Reading<f64>> {
    match table.attribute(entry) {
        Err(Unreadable::Errno(rustix::io::Errno::INVAL)) => Ok(Vec::new()),
        Err(error) => Err(error.reading()),
        Ok(text) if is_gid(text.trim_ascii()) => Ok(text),
        Ok(text) => Err(implausible(&String::from_utf8_lossy(text.trim_ascii()))),
    }
}

/// Eight groups of hexadecimal digits.
fn is_gid(text: &[u8]) -> bool {
    let is_group = |group: &[u8]| !group.is_empty() && group.iter().all(u8::is_ascii_hexdigit);
    let groups = text.split(|byte| *byte == b':');
    groups.clone().count() == 8 && groups.clone().all(is_group)
}

fn is_routable(gid: &[u8]) -> bool {
    is_set(gid) && !gid.trim_ascii().starts_with(b"fe80:")
}

fn is_set(gid: &[u8]) -> bool {
    gid.trim_ascii().iter().any(|byte| !b"0:".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::{is_gid, is_set};

    #[test]
    fn a_gid_of_zeros_is_not_set_and_other_texts_are_none() {
        let (set, zeros) = (
            b"fe80:0000:0000:0000:b8ce:f603:0000:0001",
            b"0000:0000:0000:0000:0000:0000:0000:0000",
        );
        assert!(is_gid(set) && is_set(set));
        assert!(is_gid(zeros) && !is_set(zeros) && !is_set(b""));
        for bad in [&b""[..], b"\xff\xfe", b"none", b"fe80::1", b"0:0:0:0:0:0:0:", &set[5..]] {
            assert!(!is_gid(bad), "{bad:?}");
        }
    }
}
