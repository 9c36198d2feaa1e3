//! A disk that is soon full: a file system of its own in memory, which the test alone sees.

use std::path::Path;
use std::process::Command;

use crate::{Scratch, needs_pid_namespaces};

/// Set for the copy of a test that has a small disk, to where that is mounted.
const SMALL_DISK: &str = "TELLTALE_TEST_SMALL_DISK";

/// Runs `part` of the test that the test runner calls `test` with the path of an empty disk of so many
/// KiB: in a copy of this program, in a mount namespace of its own. Where there can be none, the test
/// is recorded as skipped.
///
/// # Panics
/// When `part` does, or no test has this name.
pub fn on_small_disk(test: &str, kibibytes: u32, part: impl FnOnce(&Path)) {
    if let Some(directory) = std::env::var_os(SMALL_DISK) {
        return part(Path::new(&directory));
    }
    // The same right is needed for a mount of one's own as for a PID namespace.
    if !needs_pid_namespaces(test) {
        return;
    }
    let scratch = Scratch::new();
    let script = format!("mount -t tmpfs -o size={kibibytes}k none \"$0\" && exec \"$@\"");
    let mut command = Command::new("unshare");
    command.args(["--mount", "--", "sh", "-c", &script]).arg(scratch.path());
    command.arg(std::env::current_exe().expect("a test knows its own path"));
    command.args(["--exact", test, "--nocapture"]).env(SMALL_DISK, scratch.path());
    let output = command.output().expect("unshare runs, as it did before");
    let reported = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, errors) = (reported(&output.stdout), reported(&output.stderr));
    assert!(output.status.success() && out.contains("1 passed"), "on a small disk: {out}{errors}");
}

#[cfg(test)]
mod tests {
    use super::on_small_disk;

    #[test]
    fn it_is_full_after_so_many_bytes_and_nobody_else_sees_it() {
        let test = "small_disk::tests::it_is_full_after_so_many_bytes_and_nobody_else_sees_it";
        on_small_disk(test, 64, |disk| {
            let error = std::fs::write(disk.join("big"), vec![1; 65 << 10]).unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
            std::fs::remove_file(disk.join("big")).unwrap();
            std::fs::write(disk.join("small"), vec![1; 32 << 10]).unwrap();
        });
    }
}
