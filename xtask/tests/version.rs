//! The version is the same wherever it stands, and is written everywhere at once.

use std::fs;

use telltale_harness::Scratch;
use xtask::repository::root;
use xtask::version::{self, Version, VersionError};

/// The files that have it.
const FILES: [&str; 7] = [
    "CHANGELOG.md",
    "Cargo.toml",
    "clients/python/pyproject.toml",
    "clients/python/telltale_ccl/__init__.py",
    "crates/capi/Cargo.toml",
    "crates/capi/include/telltale.h",
    "docs/integrate.md",
];

/// A copy of them.
fn copied() -> Scratch {
    let scratch = Scratch::new();
    for file in FILES {
        let to = scratch.join(file);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(root().join(file), to).unwrap();
    }
    scratch
}

#[test]
fn everything_that_has_the_version_says_the_same() {
    let findings = version::check(&root()).unwrap();
    assert!(findings.is_empty(), "{findings:?}");
    assert_eq!(version::of(&root()).unwrap().to_string(), env!("CARGO_PKG_VERSION"));
}

#[test]
fn a_newer_version_is_written_everywhere_and_an_older_one_nowhere() {
    let tree = copied();
    let parsed = |text: &str| text.parse::<Version>().unwrap();
    let new = parsed("9.8.7");
    let mut written = version::write(tree.path(), new).unwrap();
    written.sort_unstable();
    assert_eq!(written, FILES);
    assert_eq!(version::of(tree.path()).unwrap(), new);
    assert!(version::check(tree.path()).unwrap().is_empty());
    let header = fs::read_to_string(tree.join("crates/capi/include/telltale.h")).unwrap();
    assert!(header.contains("TELLTALE_VERSION_PATCH 7\n"));
    let changes = fs::read_to_string(tree.join("CHANGELOG.md")).unwrap();
    let (old, new_heading) =
        (format!("\n## {}", env!("CARGO_PKG_VERSION")), "\n## 9.8.7, not released\n");
    assert!(changes.find(new_heading) < changes.find(&old), "the newest is first");
    for old in ["9.8.7", "0.0.1"] {
        let refused = version::write(tree.path(), parsed(old));
        assert!(matches!(refused, Err(VersionError::Old { .. })), "{refused:?}");
    }
    assert!(["", "1.2", "1.2.3.4", "1.2.x"].iter().all(|bad| bad.parse::<Version>().is_err()));
}

#[test]
fn a_file_that_says_something_else_is_found() {
    for file in FILES {
        let tree = copied();
        let text = fs::read_to_string(tree.join(file)).unwrap();
        let text = match file {
            // The first number is the place itself, and the others are compared with it.
            "Cargo.toml" => text.replacen("version = \"0", "version = \"7", 1),
            "docs/integrate.md" => {
                text.replace("find_package(telltale 0", "find_package(telltale 7")
            }
            "crates/capi/include/telltale.h" => text.replace("VERSION_MINOR ", "VERSION_MINOR 7"),
            "CHANGELOG.md" => text.replacen("\n## ", "\n## 7", 1),
            "crates/capi/Cargo.toml" => {
                text.replace("libtelltale0 = \"= 0", "libtelltale0 = \"= 7")
            }
            _ => text
                .replace("version = \"0", "version = \"7")
                .replace("version__ = \"0", "version__ = \"7"),
        };
        fs::write(tree.join(file), text).unwrap();
        assert!(!version::check(tree.path()).unwrap().is_empty(), "{file}");
    }
}
