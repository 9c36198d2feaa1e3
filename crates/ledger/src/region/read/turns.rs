//! Which files are read where a directory has more than are read at all: one of each user before anybody's
//! second. Nothing here opens a file.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, statat};

use super::super::name::file_name;
use super::Name;

/// Leaves at most `most` of these names, in turns by the owners of the files, and says how many files of
/// each user were left out. Further names of one file count as that file.
pub(super) fn take(
    directory: BorrowedFd<'_>,
    names: &mut BTreeSet<Name>,
    most: usize,
) -> BTreeMap<u32, u64> {
    let mut left_out = BTreeMap::new();
    // Hardly ever are there so many, and nothing need be checked.
    if names.len() <= most {
        return left_out;
    }
    let mut files = BTreeSet::new();
    let mut before: BTreeMap<u32, usize> = BTreeMap::new();
    let mut turns = Vec::with_capacity(names.len());
    for name in std::mem::take(names) {
        let found = match &name {
            Name::Region(id) => owner_of(directory, OsStr::new(&file_name(*id))),
            Name::Malformed(name) => owner_of(directory, name),
        };
        // One that has gone since needs no place.
        let Some((owner, file)) = found else { continue };
        if files.insert(file) {
            let turn = before.entry(owner).or_default();
            *turn += 1;
            turns.push((*turn, owner, name));
        }
    }
    turns.sort_by_key(|(turn, ..)| *turn);
    for (_, owner, _) in turns.drain(most.min(turns.len())..) {
        *left_out.entry(owner).or_default() += 1;
    }
    names.extend(turns.into_iter().map(|(.., name)| name));
    left_out
}

/// The owner of a file, and which one it is.
fn owner_of(directory: BorrowedFd<'_>, name: &OsStr) -> Option<(u32, (u64, u64))> {
    let stat = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some((stat.st_uid, (stat.st_dev, stat.st_ino)))
}
