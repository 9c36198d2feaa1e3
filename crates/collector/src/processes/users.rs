//! Names of users, from `/etc/passwd` only: a name service may hang, and asks the network.

use std::collections::HashMap;

use telltale_schema::clock::Timestamp;
use telltale_schema::reading::{Absence, Reading};

use super::status::Procfs;

/// How long the file is believed when a user is not in it.
const RELOAD_NS: u64 = 60_000_000_000;

/// Users that are remembered.
const MAX_USERS: usize = 65_536;

/// The longest user name.
const MAX_NAME_BYTES: usize = 256;

/// Names by user id.
#[derive(Debug, Default)]
pub(crate) struct Users {
    names: HashMap<u32, String>,
    read_ns: Option<u64>,
}

impl Users {
    /// The name of `uid`.
    pub(crate) fn name(
        &mut self,
        uid: u32,
        procfs: &Procfs,
        (at, now_ns): (Timestamp, u64),
    ) -> Reading<String> {
        let recent = self.read_ns.is_some_and(|read| now_ns.saturating_sub(read) < RELOAD_NS);
        if !self.names.contains_key(&uid) && !recent {
            self.read_ns = Some(now_ns);
            if let Ok(text) = procfs.common("etc/passwd") {
                self.names = parse(&text);
            }
        }
        match self.names.get(&uid) {
            Some(name) => Reading::new(name.clone(), at),
            None => Reading::absent(Absence::Unknown, "not in /etc/passwd"),
        }
    }
}

/// The names in a passwd file; the first entry of a user id counts.
fn parse(text: &[u8]) -> HashMap<u32, String> {
    let mut names = HashMap::new();
    for line in text.split(|byte| *byte == b'\n') {
        let mut fields = line.split(|byte| *byte == b':');
        let (Some(name), Some(uid)) = (fields.next(), fields.nth(1)) else { continue };
        let uid = std::str::from_utf8(uid).ok().and_then(|uid| uid.parse().ok());
        let (Some(uid), 1..=MAX_NAME_BYTES) = (uid, name.len()) else { continue };
        if names.len() < MAX_USERS {
            names.entry(uid).or_insert_with(|| super::command::printable(name));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn the_first_entry_counts_and_junk_does_not() {
        let text = b"root:x:0:0::/root:/bin/sh\ntoor:x:0:0::/:\nada:x:1000:1000:A:/h:/b\n\n:x:5:\nx:y\nbad\x1b:x:7:\n";
        let names = parse(text);
        assert_eq!(names.get(&0).map(String::as_str), Some("root"));
        assert_eq!(names.get(&1000).map(String::as_str), Some("ada"));
        assert_eq!(names.get(&7).map(String::as_str), Some("bad\\u{1b}"));
        assert_eq!(names.len(), 3);
    }
}
