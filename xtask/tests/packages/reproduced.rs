//! The same source makes the same bytes, in another directory and at another time.

use std::fs;
use std::process::Command;

use super::made::{is_tried, made, root};
use super::system::{printed, scratch};

#[test]
fn a_second_build_elsewhere_makes_the_same_bytes() {
    if !is_tried("reproduced::a_second_build_elsewhere_makes_the_same_bytes") {
        return;
    }
    let sums = fs::read_to_string(made("telltale-", "x86_64.sha256")).unwrap();
    let elsewhere = scratch();
    let place = elsewhere.join("another");
    let mut git = Command::new("git");
    git.args(["clone", "--quiet"]).arg(root()).arg(&place);
    printed("git clone", &git.output().unwrap());
    fs::create_dir(place.join("target")).unwrap();
    let tools = fs::canonicalize(root().join("target/tools")).unwrap();
    std::os::unix::fs::symlink(tools, place.join("target/tools")).unwrap();
    let mut dist = Command::new(env!("CARGO"));
    dist.args(["xtask", "dist"]).current_dir(&place).env_remove("CARGO_TARGET_DIR");
    printed("cargo xtask dist", &dist.output().unwrap());
    let name = made("telltale-", "x86_64.sha256").file_name().unwrap().to_owned();
    let again = fs::read_to_string(place.join("target/dist").join(name)).unwrap();
    assert_eq!(again, sums, "of the commit, with nothing changed: {}", root().display());
}
