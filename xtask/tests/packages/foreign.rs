//! What is made for AArch64, under an emulator of its instructions.

use std::process::Command;

use super::made::{is_tried, made};
use super::system::{printed, scratch};

#[test]
fn programs_for_aarch64_start() {
    if !is_tried("foreign::programs_for_aarch64_start") {
        return;
    }
    let scratch = scratch();
    let mut tar = Command::new("tar");
    tar.args(["--extract", "--zstd", "--strip-components=1", "--file"]);
    tar.arg(made("telltale-", "aarch64-linux.tar.zst")).arg("--directory").arg(scratch.path());
    printed("tar", &tar.output().unwrap());
    let run = |words: &[&str]| {
        // Its loader is started by hand: an emulator that is given another root shows programs that one.
        let libraries = "/usr/aarch64-linux-gnu/lib";
        let mut command = Command::new("qemu-aarch64-static");
        command.arg(format!("{libraries}/ld-linux-aarch64.so.1"));
        command.args(["--library-path", libraries]).arg(scratch.join("bin").join(words[0]));
        let output = command.args(&words[1..]).output().expect(
            "needs qemu-aarch64-static and /usr/aarch64-linux-gnu: apt-get install qemu-user-static libc6-arm64-cross",
        );
        printed(&words.join(" "), &output)
    };
    for program in
        ["telltale", "telltale-serve", "telltale-top", "telltale-agent", "telltale-coordinator"]
    {
        assert!(run(&[program, "--version"]).contains(env!("CARGO_PKG_VERSION")), "{program}");
    }
    assert!(run(&["telltale", "smi", "--json"]).contains("\"id\":\"host\""));
    assert!(run(&["telltale", "smi", "--help"]).contains("telltale smi"));
    for (begin, end) in
        [("telltale_", "_arm64.deb"), ("telltale-", "aarch64.rpm"), ("telltale-", "aarch64.whl")]
    {
        made(begin, end);
    }
}
