//! The map holds in this repository, and each rule of it can fail.

use xtask::layout::{self, absences, circles, dependencies, described, map, spread, unsafe_code};
use xtask::repository::{SourceFile, root};

#[test]
fn the_repository_follows_the_map() {
    let findings = layout::check(&root()).unwrap();
    let report: String = findings.iter().map(|finding| format!("\n{finding}")).collect();
    assert!(findings.is_empty(), "{report}");
}

/// The findings about a workspace that has what the map asks for, with `changed` in it instead.
///
/// `changed` is a package's name and its dependencies, each `name`, `name kind` or `name optional`.
fn dependency_findings(changed: &str, dependencies: &[&str]) -> Vec<String> {
    let package = |name: &str, dependencies: &[&str]| {
        let lines: Vec<String> = dependencies
            .iter()
            .map(|line| match line.split_once(' ') {
                Some((name, "optional")) => {
                    format!(r#"{{"name":"{name}","kind":null,"optional":true}}"#)
                }
                Some((name, kind)) => format!(r#"{{"name":"{name}","kind":"{kind}"}}"#),
                None => format!(r#"{{"name":"{line}","kind":null}}"#),
            })
            .collect();
        format!(r#"{{"name":"{name}","dependencies":[{}]}}"#, lines.join(","))
    };
    let mut packages: Vec<String> = map::MEMBERS
        .iter()
        .filter(|member| member.package != changed)
        .map(|member| package(member.package, &[]))
        .collect();
    packages.push(package(changed, dependencies));
    let text = format!(r#"{{"packages":[{}]}}"#, packages.join(","));
    let packages = dependencies::parse(&text).expect("the sample is right");
    dependencies::check(&packages).into_iter().map(|finding| finding.message).collect()
}

#[test]
fn dependencies_that_the_map_allows_pass() {
    for (package, uses) in [
        ("telltale-schema", &["serde", "thiserror", "telltale-harness dev", "proptest dev"][..]),
        ("telltale-schema", &["serde", "schemars optional"]),
        ("telltale-runtime", &["telltale-ledger", "telltale-wire", "rustix", "telltale-node dev"]),
        ("telltale", &["telltale-smi", "telltale-emulator", "clap"]),
        ("telltale-bench", &["telltale-smi", "telltale-harness", "telltale"]),
    ] {
        assert_eq!(dependency_findings(package, uses), [""; 0], "{package}");
    }
}

#[test]
fn dependencies_that_the_map_forbids_are_found() {
    for (package, uses, expected) in [
        ("telltale-schema", "telltale-ledger", "must not depend on telltale-ledger"),
        ("telltale-schema", "rustix", "must do no I/O, so it must not use rustix"),
        ("telltale-schema", "rustix optional", "must do no I/O, so it must not use rustix"),
        ("telltale-schema", "schemars", "must do no I/O, so it must not use schemars"),
        ("telltale-ledger", "telltale-wire build", "must not depend on telltale-wire"),
        ("telltale-node", "telltale-runtime", "must not depend on telltale-runtime"),
        ("telltale-emulator", "telltale-trace", "must not depend on telltale-trace"),
        ("telltale", "telltale-harness", "must not depend on telltale-harness"),
        ("telltale", "telltale-bench", "must not depend on telltale-bench"),
        ("telltale-oddments", "serde", "is not on the map"),
    ] {
        let findings = dependency_findings(package, &[uses]);
        assert!(findings.iter().any(|message| message.contains(expected)), "{findings:?}");
    }
    let none = dependencies::check(&[]);
    assert!(none.iter().any(|one| one.message.contains("not in the workspace")), "{none:?}");
}

#[test]
fn an_async_runtime_anywhere_below_is_found() {
    let fine = "telltale-runtime v0.1.0 (/somewhere)\nrustix v1.1.0\ntokio-like v1.0.0 (*)\n";
    assert!(dependencies::check_no_async("telltale-runtime", fine).is_empty());
    let bad = format!("{fine}tokio v1.40.0\n");
    let findings = dependencies::check_no_async("telltale-runtime", &bad);
    assert!(findings[0].message.contains("built with tokio"), "{findings:?}");
}

#[test]
fn the_maker_of_schemas_in_the_shipped_program_is_found() {
    let fine = "telltale v0.1.0 (/somewhere)\nserde v1.0.0\n";
    assert!(dependencies::check_shipped(fine).is_empty());
    let findings = dependencies::check_shipped(&format!("{fine}schemars v1.2.0 (*)\n"));
    assert!(findings[0].message.contains("must do without schemars"), "{findings:?}");
}

/// The messages of the findings about one file.
fn unsafe_findings(path: &str, text: &str) -> Vec<String> {
    let findings = unsafe_code::check(&[SourceFile::new(path, text)]);
    findings.into_iter().map(|finding| finding.message).collect()
}

#[test]
fn unsafe_code_outside_its_places_is_found() {
    for code in [
        "fn a() { unsafe { b() } }",
        "unsafe fn a() {}",
        "unsafe impl Send for A {}",
        "#[unsafe(no_mangle)]\npub fn a() {}",
        "unsafe extern \"C\" {}",
        "macro_rules! a { () => { unsafe { b() } } }",
    ] {
        for path in ["crates/node/src/a.rs", "crates/runtime/src/a.rs", "crates/smi/tests/a.rs"] {
            assert!(unsafe_findings(path, code)[0].contains("does not belong"), "{code}");
        }
        for path in ["crates/ledger/src/a.rs", "crates/emulator/src/kernels/load.rs"] {
            assert_eq!(unsafe_findings(path, code), [""; 0], "{code}");
        }
    }
    assert_eq!(
        unsafe_findings("crates/node/src/a.rs", "/// unsafe\nfn a() { \"unsafe\"; }"),
        [""; 0]
    );
}

#[test]
fn a_crate_says_what_it_thinks_of_unsafe_code() {
    let forbids = "#![forbid(unsafe_code)]\nfn a() {}";
    let denies = "#![deny(unsafe_code)]\nfn a() {}";
    let silent = "#![deny(missing_docs)]\nfn a() {}";
    for (path, text, expected) in [
        ("crates/query/src/lib.rs", forbids, None),
        ("crates/query/src/lib.rs", denies, Some("needs #![forbid(unsafe_code)]")),
        ("crates/telltale/src/main.rs", silent, Some("needs #![forbid(unsafe_code)]")),
        ("crates/runtime/src/lib.rs", silent, Some("needs #![deny(unsafe_code)]")),
        ("crates/runtime/src/lib.rs", denies, None),
        ("crates/runtime/src/lib.rs", forbids, None),
        ("crates/ledger/src/lib.rs", silent, None),
        ("crates/node/src/other.rs", silent, None),
    ] {
        assert_eq!(unsafe_findings(path, text).first().map(String::as_str), expected, "{path}");
    }
}

/// The lines of the findings about one file.
fn absence_lines(path: &str, text: &str) -> Vec<usize> {
    let findings = absences::check(&[SourceFile::new(path, text)]);
    findings.into_iter().filter_map(|finding| finding.line).collect()
}

#[test]
fn schema_mentions_no_input_output_and_no_clock() {
    let schema = "crates/schema/src/a.rs";
    for bad in [
        "use std::fs;",
        "use std::fs::File;",
        "use std::{fmt, net::{TcpStream}};",
        "use std::env::{self};",
        "fn a() { std::process::id(); }",
        "fn a() { format!(\"{:?}\", std::env::args()); }",
        "use std::time::Instant; fn a() { Instant::now(); }",
        "fn a() { std::time::SystemTime::now(); }",
        "mod inner { use std::thread; }",
    ] {
        assert_eq!(absence_lines(schema, bad), [1], "{bad}");
        assert!(absence_lines("crates/node/src/a.rs", bad).is_empty(), "{bad}");
    }
    for fine in [
        "//! No std::fs here.\nuse std::fmt;",
        "fn a(fs: u8) -> u8 { fs }",
        "#[cfg(test)]\nmod tests { use std::fs; }",
        "use std::time::{Duration, Instant};",
    ] {
        assert!(absence_lines(schema, fine).is_empty(), "{fine}");
    }
}

#[test]
fn the_collector_never_names_a_device_node() {
    let collector = "crates/collector/src/a.rs";
    assert_eq!(absence_lines(collector, "\nconst A: &str = \"/dev/tenstorrent/0\";"), [2]);
    assert_eq!(absence_lines(collector, "fn a() { format!(\"/dev/tenstorrent/{b}\"); }"), [1]);
    assert!(absence_lines(collector, "/// Not `/dev/tenstorrent/0`.\nfn a() {}").is_empty());
    let machines = "crates/cluster/src/agent.rs";
    for code in
        ["use std::fs::File;", "fn a() { std::time::Instant::now(); }", "use std::net::TcpStream;"]
    {
        assert_eq!(absence_lines(machines, code).len(), 1, "{code}");
    }
    assert!(absence_lines(machines, "use std::net::IpAddr;").is_empty());
}

#[test]
fn the_architecture_page_shows_the_map() {
    let page = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let findings = |text: &str| described::check(&[SourceFile::new("ARCHITECTURE.md", text)]);
    assert!(findings(&page).is_empty());
    for (from, to, expected) in [
        ("| `ledger` |", "| `books` |", "lacks a row that starts with | `ledger` |"),
        ("| steps, wire |", "| steps |", "cluster may use steps, wire, not steps"),
    ] {
        assert!(page.contains(from), "{from}");
        let findings = findings(&page.replace(from, to));
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].message.contains(expected), "{}", findings[0]);
    }
}

#[test]
fn modules_that_use_each_other_are_found_however_they_say_it() {
    let files = |inner: &str| {
        [
            SourceFile::new(
                "crates/a/src/lib.rs",
                "mod one;\nmod two;\nmod three;\npub use one::One;\n",
            ),
            SourceFile::new("crates/a/src/one.rs", "use crate::two::Two;\npub struct One(Two);\n"),
            SourceFile::new(
                "crates/a/src/two.rs",
                "pub struct Two;\n#[cfg(test)]\nmod tests { use crate::One; }\n",
            ),
            SourceFile::new("crates/a/src/two/inner.rs", inner),
            SourceFile::new("crates/a/src/three.rs", "use crate::{one::One, two};\n"),
        ]
    };
    let found = |inner: &str| -> Vec<String> {
        let all = circles::check(&files(inner)).into_iter();
        let of_a = all.filter(|finding| finding.path == "crates/a/src");
        of_a.map(|finding| finding.message.split(' ').next().unwrap().to_owned()).collect()
    };
    for back in ["use crate::One;", "fn f() { crate::one::g() }", "use super::super::one;"] {
        assert_eq!(found(back), ["one", "two"], "{back}");
    }
    for no_way_back in ["use super::Two;", "use crate::two::Two;", "//! Of [`crate::One`].\n"] {
        assert_eq!(found(no_way_back), [""; 0], "{no_way_back}");
    }
}

#[test]
fn a_type_that_many_files_implement_is_found() {
    let files = |count: usize, body: &str| -> Vec<SourceFile> {
        let one = |n: usize| SourceFile::new(format!("crates/a/src/f{n}.rs"), body);
        (0..count).map(one).chain([SourceFile::new("crates/a/src/lib.rs", "struct T;")]).collect()
    };
    let of_a = |files: &[SourceFile]| {
        let all = spread::check(files);
        all.iter().filter(|finding| finding.path == "crates/a/src").count()
    };
    let inherent = "impl crate::T { fn f() {} }";
    assert_eq!(of_a(&files(spread::MOST_FILES, inherent)), 0);
    assert_eq!(of_a(&files(spread::MOST_FILES + 1, inherent)), 1);
    for other in ["impl Clone for T {}", "#[cfg(test)] mod tests { impl crate::T {} }"] {
        assert_eq!(of_a(&files(spread::MOST_FILES + 1, other)), 0, "{other}");
    }
    let each_its_own = "struct T; impl T {}";
    assert_eq!(of_a(&files(spread::MOST_FILES + 1, each_its_own)), 0);
}
