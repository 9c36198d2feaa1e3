//! What is in the runtime directory, by name, up to a limit: anyone may fill an installed one.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::Dir;

use super::names::{DirectoryEntry, EntryKind, parse_name};

/// Entries, ours or not, that one listing checks.
pub const MOST_ENTRIES_LISTED: usize = 65_536;

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listing {
    /// Ledgers, by name.
    pub ledgers: Vec<DirectoryEntry>,
    /// Endpoints, by name.
    pub endpoints: Vec<DirectoryEntry>,
    /// Endpoints that have no name of their own yet, or never got one.
    pub temporaries: Vec<DirectoryEntry>,
    /// Entries whose names are none of ours.
    pub others: usize,
    /// There were more than [`MOST_ENTRIES_LISTED`]; the rest was not checked.
    pub truncated: bool,
}

pub(super) fn list(directory: BorrowedFd<'_>) -> io::Result<Listing> {
    let mut listing = Listing::default();
    let mut seen = 0;
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        if seen == MOST_ENTRIES_LISTED {
            listing.truncated = true;
            break;
        }
        seen += 1;
        match std::str::from_utf8(name).ok().and_then(parse_name) {
            Some(entry) => match entry.kind {
                EntryKind::Ledger { .. } => listing.ledgers.push(entry),
                EntryKind::Endpoint => listing.endpoints.push(entry),
                EntryKind::Temporary { .. } => listing.temporaries.push(entry),
            },
            None => listing.others += 1,
        }
    }
    // The kernel's order means nothing, and tables should not jump.
    for entries in [&mut listing.ledgers, &mut listing.endpoints, &mut listing.temporaries] {
        entries.sort_unstable_by(|a, b| (a.pid, &a.name).cmp(&(b.pid, &b.name)));
    }
    Ok(listing)
}
