//! Files of a release, as `cargo xtask dist` left them.

use std::path::{Path, PathBuf};

use telltale_harness::{long, needs_root, skip};

/// The repository.
pub(super) fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Whether the trials are to run: they take minutes, packages from the network, and root.
pub(super) fn is_tried(test: &str) -> bool {
    let test = format!("packages::{test}");
    if !long() {
        skip(&test, "needs a release and bare systems; TELLTALE_LONG_TESTS=1 runs it");
        return false;
    }
    needs_root(&test)
}

/// The one file of the release whose name begins and ends so.
pub(super) fn made(begin: &str, end: &str) -> PathBuf {
    let dist = root().join("target/dist");
    let files = std::fs::read_dir(&dist).unwrap_or_else(|error| {
        panic!("{} cannot be read ({error}); make it: cargo xtask dist", dist.display())
    });
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let found: Vec<String> =
        names.filter(|name| name.starts_with(begin) && name.ends_with(end)).collect();
    let [one] = &found[..] else { panic!("one {begin}…{end} is wanted, there is: {found:?}") };
    dist.join(one)
}
