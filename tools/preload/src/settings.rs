//! What `telltale run` says to the library, by the environment that every process of the command
//! has. Read once, before the program can change it.

use std::ffi::{CStr, c_char};
use std::os::fd::AsFd;

use telltale_ledger::directory::DirectoryEnvironment;

/// The smallest size that is recorded, in bytes. Without it the library does nothing.
const THRESHOLD: &CStr = c"TELLTALE_RUN_THRESHOLD";
/// The process that `telltale run` became: the one that may say what does not work.
const TELLER: &CStr = c"TELLTALE_RUN_PID";
/// What switches all of Telltale off.
const DISABLED: &CStr = c"TELLTALE_DISABLED";

/// How this process is recorded.
#[derive(Debug)]
pub(crate) struct Settings {
    /// Blocks of the host's memory from this size on.
    pub(crate) threshold_bytes: usize,
    /// Where the ledger goes; with the user of that time.
    pub(crate) environment: DirectoryEnvironment,
    /// What standard error is, in the process that may complain there.
    standard_error: Option<(u64, u64)>,
}

impl Settings {
    /// None if nothing is recorded.
    pub(crate) fn of_this_process() -> Option<Self> {
        if is_secure() || variable(DISABLED) == Some(b"1") {
            return None;
        }
        let threshold = std::str::from_utf8(variable(THRESHOLD)?).ok()?.parse::<usize>().ok()?;
        let pid = rustix::process::getpid().as_raw_nonzero().get().to_string();
        let may_tell = variable(TELLER) == Some(pid.as_bytes());
        Some(Self {
            threshold_bytes: threshold.max(1),
            environment: DirectoryEnvironment::of_this_process(),
            standard_error: may_tell.then(standard_error).flatten(),
        })
    }

    /// One line, because the user asked for a record and gets none. Nothing is said where standard
    /// error is not any more what it was: it may be any file of the program's now.
    pub(crate) fn complain(&self, text: &str) {
        if self.standard_error.is_some() && self.standard_error == standard_error() {
            let line = format!("telltale: nothing is recorded: {text}\n");
            let _ = rustix::io::write(std::io::stderr().as_fd(), line.as_bytes());
        }
    }
}

/// Whether the program runs with rights that its user has not.
fn is_secure() -> bool {
    // SAFETY: the function takes a number.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

fn variable(name: &CStr) -> Option<&'static [u8]> {
    // SAFETY: the name is a C string. No other thread exists yet that could change the environment,
    // and values are only used before this library's constructor returns.
    unsafe {
        let value: *const c_char = libc::getenv(name.as_ptr());
        (!value.is_null()).then(|| CStr::from_ptr(value).to_bytes())
    }
}

/// File system and inode of standard error.
fn standard_error() -> Option<(u64, u64)> {
    let stat = rustix::fs::fstat(std::io::stderr().as_fd()).ok()?;
    Some((stat.st_dev, stat.st_ino))
}
