//! The table of a port's addresses for RDMA (GIDs).
//!
//! It has up to 256 entries and each is a file. So the whole table is read every ten seconds, and in between
//! only the entry that shows whether the port has a routable address.

use telltale_schema::clock::Timestamp;

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
    /// The entry that was the last one known to be routable.
    watched: Option<String>,
}

// === impl GidTable ===

impl GidTable {
    /// Reads the table of a port, of which this is known.
    pub(super) fn read(
        port: &Directory,
        known: Option<&Self>,
        now: Timestamp,
    ) -> Result<Self, Unreadable> {
        let table = port.directory("gids")?;
        if let Some(known) = known.filter(|known| known.is_fresh(now))
            && known.is_so_still(&table)?
        {
            return Ok(known.clone());
        }
        let mut found = Self { read_at: now, set: 0, routable: 0, watched: None };
        for entry in table.names_up_to(MAX_GIDS)? {
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
        // One that was lost may be set again.
        found.watched = found.watched.or_else(|| known.and_then(|known| known.watched.clone()));
        Ok(found)
    }

    fn is_fresh(&self, now: Timestamp) -> bool {
        now.0.checked_sub(self.read_at.0).is_some_and(|age| age < MAX_AGE_NS)
    }

    /// Whether the entry that is watched says the same as the whole table did.
    fn is_so_still(&self, table: &Directory) -> Result<bool, Unreadable> {
        match &self.watched {
            Some(entry) => Ok(is_routable(&gid(table, entry)?) == (self.routable > 0)),
            None => Ok(true),
        }
    }
}

/// The text of an entry. Kernels before 4.1 have none for one that is not set.
fn gid(table: &Directory, entry: &str) -> Result<Vec<u8>, Unreadable> {
    match table.attribute(entry) {
        Err(Unreadable::Errno(rustix::io::Errno::INVAL)) => Ok(Vec::new()),
        other => other,
    }
}

fn is_routable(gid: &[u8]) -> bool {
    is_set(gid) && !gid.trim_ascii().starts_with(b"fe80:")
}

fn is_set(gid: &[u8]) -> bool {
    let gid = gid.trim_ascii();
    let is_gid = gid.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b':');
    is_gid && gid.iter().any(|byte| !b"0:".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::is_set;

    #[test]
    fn a_gid_of_zeros_is_not_set() {
        assert!(is_set(b"fe80:0000:0000:0000:b8ce:f603:0000:0001\n"));
        assert!(!is_set(b"0000:0000:0000:0000:0000:0000:0000:0000\n"));
        assert!(!is_set(b"") && !is_set(b"\xff\xfe") && !is_set(b"none"));
    }
}
