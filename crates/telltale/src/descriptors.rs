//! How many files this process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit on open files to the hard one. A watch keeps two descriptors for each
/// process it follows, and the usual soft limit of 1024, which is there for programs that use
/// `select`, would end that at some 400 processes.
pub(crate) fn allow_all() {
    let limit = getrlimit(Resource::Nofile);
    // Where even this is refused, the sources say which files they could not open.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}
