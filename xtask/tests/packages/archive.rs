//! The archive, on a system whose glibc is older than the one it was built beside, and the versions that it asks for.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::made::{is_tried, made};
use super::system::{System, printed, scratch};

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
    unpack(&archive, &place);
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
    // There is no compiler, so that nothing can be trained.
    assert!(demo.contains("At the end:") && demo.contains("telltale replay train"), "{demo}");
    for file in [
        "include/telltale.h",
        "lib/libtelltale.so.0",
        "share/man/man1/telltale.1",
        "share/doc/telltale/LICENSE",
        "share/doc/telltale/THIRD-PARTY.txt",
        "share/doc/telltale/docs/cluster.md",
        "share/doc/telltale/deploy/systemd/telltale-nvidia.conf",
    ] {
        assert!(place.join(&name).join(file).exists(), "{file}");
    }
    let mut asked = Command::new("pkg-config");
    asked.env("PKG_CONFIG_PATH", place.join(&name).join("lib/pkgconfig"));
    let flags = printed("pkg-config", &asked.args(["--libs", "telltale"]).output().unwrap());
    let flags: Vec<&str> = flags.split_whitespace().collect();
    let directory = flags.iter().find_map(|flag| flag.strip_prefix("-L")).expect("a directory");
    let directory = std::fs::canonicalize(directory).expect("it is there");
    assert_eq!(directory, std::fs::canonicalize(place.join(&name).join("lib")).unwrap());
}

#[test]
fn no_symbol_is_of_a_newer_glibc() {
    if !is_tried("archive::no_symbol_is_of_a_newer_glibc") {
        return;
    }
    for processor in ["x86_64", "aarch64"] {
        let place = scratch();
        unpack(&made("telltale-", &format!("{processor}-linux.tar.zst")), place.path());
        let tree = std::fs::read_dir(place.path()).unwrap().next().unwrap().unwrap().path();
        let places = ["bin", "lib/telltale", "lib"].map(|place| tree.join(place));
        let files = places.iter().flat_map(|place| std::fs::read_dir(place).unwrap());
        let files = files.map(|file| file.unwrap().path());
        let is_linked = |path: &PathBuf| {
            !path.is_symlink() && (path.parent().unwrap().ends_with("bin") || has_so(path))
        };
        let linked: Vec<PathBuf> = files.filter(is_linked).collect();
        // Five programs, two libraries that are preloaded, two that are linked.
        assert_eq!(linked.len(), 9, "{linked:?}");
        for path in linked {
            let newest = newest_glibc(&path);
            assert!(newest <= GLIBC, "{} asks for {newest:?}", path.display());
        }
    }
}

fn has_so(path: &Path) -> bool {
    path.file_name().unwrap().to_str().unwrap().contains(".so")
}

/// The newest version of glibc that a symbol of a program or library is of.
fn newest_glibc(path: &Path) -> (u32, u32) {
    // Whatever processor it is for.
    let output = Command::new("readelf").args(["--wide", "--dyn-syms"]).arg(path).output().unwrap();
    let symbols = printed("readelf", &output);
    let versions = symbols.split("GLIBC_").skip(1).filter_map(|rest| {
        let version =
            rest.split(|letter: char| !letter.is_ascii_digit() && letter != '.').next()?;
        let mut parts = version.split('.').map(|part| part.parse().unwrap());
        Some((parts.next()?, parts.next()?))
    });
    versions.max().unwrap()
}

/// Unpacks an archive as docs/install.md has it.
fn unpack(archive: &Path, to: &Path) {
    let script = "zstd -dc \"$1\" | tar -x --directory \"$2\"";
    let output = Command::new("sh").args(["-c", script, "sh"]).arg(archive).arg(to).output();
    printed(script, &output.unwrap());
}
