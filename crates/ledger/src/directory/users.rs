//! Which user ids identify a user, and which may be any user's.

use std::fs;

/// The user that stands for "none that this namespace knows" (user_namespaces(7)); never trusted, except where
/// every user of the system has an id of its own ([`has_own_users`]).
pub const OVERFLOW_UID: u32 = 65_534;

/// The whole of all users, as the first user namespace has it in `/proc/self/uid_map`.
const ALL_USERS: [&str; 3] = ["0", "0", "4294967295"];

/// Whether the users that the kernel names here are those of the machine. In a user namespace (a
/// container of a user who is not root) user 0 is its creator, and what its engine forwards
/// from the network to the container's loopback comes as that user.
#[must_use]
pub fn has_own_users() -> bool {
    // A kernel without user namespaces has no such file.
    fs::read_to_string("/proc/self/uid_map").map_or(true, |map| is_whole(&map))
}

fn is_whole(map: &str) -> bool {
    map.split_ascii_whitespace().eq(ALL_USERS)
}

#[cfg(test)]
mod tests {
    use super::is_whole;

    #[test]
    fn users_of_a_namespace_are_not_those_of_the_machine() {
        assert!(is_whole("         0          0 4294967295\n"));
        assert!(!is_whole("         0       1000          1\n"));
        assert!(!is_whole("0 1000 1\n1 100000 65536\n"));
        assert!(!is_whole(""));
    }
}
