//! Tests in a process of their own: for code that changes its whole process, such as becoming the one
//! that orphans fall to.

use std::process::Command;

/// Set for the copy of a program that runs one test.
const OWN_PROCESS: &str = "TELLTALE_TEST_OWN_PROCESS";

/// Whether the calling test has this process for itself. If not, runs the test in a copy of this
/// program, and the caller is done:
///
/// ```ignore
/// if !has_own_process() {
///     return;
/// }
/// ```
///
/// The test runner names each test's thread after it. With one thread it does not, and tests follow
/// one another in one process.
///
/// # Panics
/// When the test fails in the copy.
#[must_use]
pub fn has_own_process() -> bool {
    if std::env::var_os(OWN_PROCESS).is_some() {
        return true;
    }
    let thread = std::thread::current();
    let Some(test) = thread.name().filter(|name| *name != "main") else { return true };
    let mut command = Command::new(std::env::current_exe().expect("a test knows its own path"));
    command.args(["--exact", test, "--nocapture"]).env(OWN_PROCESS, "1");
    let output = command.output().expect("a copy of this program can be started");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && out.contains("1 passed"), "{test}: {out}{errors}");
    print!("{out}");
    false
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::has_own_process;

    #[test]
    fn a_test_in_its_own_process_changes_no_other() {
        static CHANGED: AtomicBool = AtomicBool::new(false);
        if !has_own_process() {
            assert!(!CHANGED.load(Ordering::Relaxed));
            return;
        }
        CHANGED.store(true, Ordering::Relaxed);
    }
}
