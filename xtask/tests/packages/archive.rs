//! The archive, on a system whose glibc is older than the one it was built beside, and the versions that it asks for.

use std::process::Command;

use super::made::{is_tried, made};
use super::system::{System, printed};

/// The newest version of glibc that a symbol may be of: that of 2018.
const GLIBC: (u32, u32) = (2, 28);

#[test]
fn it_runs_where_glibc_is_older() {
    if !is_tried("archive::it_runs_where_glibc_is_older") {
        return;
    }
    let system = System::debian("bullseye", &[]);
    let archive = made("telltale-", "x86_64-linux.tar.zst");
    let place = system.path("/opt");
    let mut tar = Command::new("tar");
    tar.args(["--extract", "--zstd", "--file"]).arg(archive).arg("--directory").arg(&place);
    printed("tar", &tar.output().unwrap());
    let name = system.ok("cd /opt && ls -d telltale-*").trim().to_owned();
    let glibc = system.ok("ldd --version | head -n 1");
    assert!(glibc.contains("2.31"), "{glibc}");
    for program in
        ["telltale", "telltale-serve", "telltale-top", "telltale-agent", "telltale-coordinator"]
    {
        let version = system.ok(&format!("/opt/{name}/bin/{program} --version"));
        assert!(version.starts_with(program), "{version}");
    }
    system.ok(&format!("/opt/{name}/bin/telltale smi"));
    // `run` finds the library that it preloads beside the program.
    let recorded =
        system.ok(&format!("PATH=$PATH:/opt/{name}/bin telltale run -- sh -c 'echo $LD_PRELOAD'"));
    assert!(recorded.contains("libtelltale_preload.so"), "{recorded}");
    let demo = system.ok(&format!("/opt/{name}/bin/telltale demo --seconds 2"));
    assert!(demo.contains("loss"), "{demo}");
    for file in [
        "include/telltale.h",
        "lib/libtelltale.so.0",
        "share/man/man1/telltale.1",
        "share/doc/telltale/LICENSE",
        "share/doc/telltale/THIRD-PARTY.txt",
    ] {
        assert!(place.join(&name).join(file).exists(), "{file}");
    }
}

#[test]
fn no_symbol_is_of_a_newer_glibc() {
    if !is_tried("archive::no_symbol_is_of_a_newer_glibc") {
        return;
    }
    let stage = super::made::root().join("target/stage");
    let mut seen = 0;
    for place in ["programs/usr/bin", "programs/usr/lib/telltale", "library/usr/lib"] {
        for file in std::fs::read_dir(stage.join(place)).expect("made by cargo xtask dist") {
            let path = file.unwrap().path();
            let is_linked = place.ends_with("bin") || path.to_str().unwrap().contains(".so");
            if !is_linked || path.is_symlink() {
                continue;
            }
            let output = Command::new("objdump").arg("-T").arg(&path).output().unwrap();
            let symbols = printed("objdump", &output);
            let versions = symbols.split("GLIBC_").skip(1).filter_map(|rest| {
                let version =
                    rest.split(|letter: char| !letter.is_ascii_digit() && letter != '.').next()?;
                let mut parts = version.split('.').map(|part| part.parse().unwrap());
                Some((parts.next()?, parts.next()?))
            });
            let newest = versions.max().unwrap();
            assert!(newest <= GLIBC, "{} asks for {newest:?}", path.display());
            seen += 1;
        }
    }
    assert_eq!(seen, 9, "five programs, two libraries that are preloaded, two that are linked");
}
