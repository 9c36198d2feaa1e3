//! Test support: the skip file, scratch directories, child processes, other uids.
