//! The house style holds in this repository, and each rule of it can fail.

use xtask::finding::Finding;
use xtask::repository::{SourceFile, root};
use xtask::tidy;

#[test]
fn the_repository_is_tidy() {
    let findings = tidy::check(&root()).unwrap();
    let report: String = findings.iter().map(|finding| format!("\n{finding}")).collect();
    assert!(findings.is_empty(), "{report}");
}

/// Files by path and text.
fn tree(files: &[(&str, &str)]) -> Vec<SourceFile> {
    files.iter().map(|(path, text)| SourceFile::new(*path, *text)).collect()
}

/// Expects exactly one finding of `rule`, at `path`, whose message contains `message`.
#[track_caller]
fn finds(
    rule: fn(&[SourceFile]) -> Vec<Finding>,
    files: &[(&str, &str)],
    path: &str,
    message: &str,
) {
    let findings = rule(&tree(files));
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!(findings[0].path, path);
    assert!(findings[0].message.contains(message), "{}", findings[0]);
}

/// Expects no finding of `rule`.
#[track_caller]
fn passes(rule: fn(&[SourceFile]) -> Vec<Finding>, files: &[(&str, &str)]) {
    let findings = rule(&tree(files));
    assert!(findings.is_empty(), "{findings:?}");
}

#[test]
fn a_rust_file_needs_a_head() {
    let check = tidy::heads::check;
    finds(check, &[("crates/a/src/x.rs", "use b::c;\n")], "crates/a/src/x.rs", "must begin");
    passes(check, &[("crates/a/src/x.rs", "//! Counts.\n"), ("crates/a/src/y.rs", "/*! Y. */\n")]);
    passes(check, &[("crates/a/src/lib.rs", "#![doc = include_str!(\"../README.md\")]\n")]);
    passes(check, &[("crates/a/tests/x.rs", "use b::c;\n")]);
    passes(check, &[("crates/a/src/x.rs", "// Generated from y. Do not edit.\n")]);
}

#[test]
fn a_name_must_say_something() {
    for bad in ["crates/a/src/util.rs", "crates/helpers/src/lib.rs", "crates/a/src/b/mod.rs"] {
        let message = "says nothing";
        finds(tidy::names::check, &[(bad, "")], bad, message);
    }
    passes(tidy::names::check, &[("crates/a/src/utility_meter.rs", ""), ("docs/types.md", "")]);
}

#[test]
fn unfinished_and_private_words_are_found() {
    let unfinished = [
        concat!("    to", "do!()"),
        concat!("unimple", "mented!(\"later\")"),
        concat!("let a = db", "g!(b);"),
        concat!("#[ign", "ore]"),
        concat!("#[ign", "ore = \"slow\"]"),
        concat!("// TO", "DO: later"),
        concat!("# FIX", "ME"),
        concat!("// XX", "X why"),
    ];
    for line in unfinished {
        finds(tidy::words::check, &[("a/b.rs", line)], "a/b.rs", "finish it");
    }
    for line in
        [concat!("see /wo", "rk/a"), concat!("a Sub", "agent did"), concat!("ARTI", "FACTORY")]
    {
        finds(tidy::words::check, &[("a.md", line)], "a.md", "means nothing");
    }
    let fine = concat!("mktemp /tmp/a.XX", "XXXX; autoTO", "DOs; todo = \"deny\"");
    passes(tidy::words::check, &[("a.sh", fine)]);
}

#[test]
fn a_long_file_is_found_without_its_inline_tests() {
    let check = tidy::sizes::check_files;
    let code = "//! A.\n".repeat(600);
    let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "    // a\n".repeat(100));
    passes(check, &[("a/src/x.rs", &(code.clone() + &tests))]);
    finds(check, &[("a/src/x.rs", &(code.clone() + "//! B.\n"))], "a/src/x.rs", "601 lines");
    finds(check, &[("a/x.c", &(code.clone() + "int a;\n"))], "a/x.c", "601 lines");
    passes(check, &[("a/x.md", &(code.clone() + &code))]);
    let generated = format!("// Generated from y\n{code}");
    passes(check, &[("a/src/x.rs", &generated)]);
}

/// A function that is `lines` long.
fn function(lines: usize) -> String {
    format!("impl A {{\n#[inline]\nfn long() {{\n{}}}\n}}\n", "    a();\n".repeat(lines - 2))
}

fn ratchet(lines: usize, reason: &str) -> String {
    format!("[[function]]\nfile='a/src/x.rs'\nname='long'\nlines={lines}\nreason='{reason}'\n")
}

#[test]
fn a_long_function_is_found_unless_the_ratchet_holds_it() {
    let check = tidy::sizes::check_functions;
    let long = function(71);
    passes(check, &[("a/src/x.rs", &function(70))]);
    finds(check, &[("a/src/x.rs", &long)], "a/src/x.rs", "long has 71 lines");
    passes(check, &[("a/src/x.rs", &long), (tidy::sizes::RATCHET, &ratchet(71, "a table"))]);
}

#[test]
fn the_ratchet_only_shrinks() {
    let check = tidy::sizes::check_functions;
    let file = |lines| function(lines);
    let list = tidy::sizes::RATCHET;
    let cases = [
        (file(72), ratchet(71, "a table"), "a/src/x.rs", "grew from 71 to 72"),
        (file(71), ratchet(72, "a table"), "a/src/x.rs", "shrank to 71"),
        (file(71), ratchet(71, ""), "a/src/x.rs", "needs a reason"),
        (file(70), ratchet(71, "a table"), list, "drop the entry"),
        (file(70), "[[function]]\nfile = 1\n".to_owned(), list, "is wrong"),
    ];
    for (code, allowed, path, message) in cases {
        finds(check, &[("a/src/x.rs", &code), (list, &allowed)], path, message);
    }
}

#[test]
fn a_file_that_no_crate_compiles_is_found() {
    let check = tidy::reachable::check;
    let alive = [
        ("c/a/Cargo.toml", "[package]\nname = 'a'\n[[bench]]\nname = 'n'\npath = 'odd/n.rs'\n"),
        ("c/a/build.rs", ""),
        ("c/a/odd/n.rs", ""),
        ("c/a/src/lib.rs", "mod b;\nmod inner { mod e; }\n#[path = \"strange.rs\"]\nmod f;\n"),
        ("c/a/src/b.rs", "mod d;\ninclude!(\"b/g.rs\");\n"),
        ("c/a/src/b/d.rs", ""),
        ("c/a/src/b/g.rs", ""),
        ("c/a/src/inner/e.rs", ""),
        ("c/a/src/strange.rs", ""),
        ("c/a/src/bin/tool.rs", ""),
        ("c/a/tests/t.rs", "mod shared;\n"),
        ("c/a/tests/shared.rs", ""),
    ];
    passes(check, &alive);
    for dead in ["c/a/src/d.rs", "c/a/src/b/e.rs", "c/a/tests/deep/x.rs"] {
        finds(check, &[&alive[..], &[(dead, "")]].concat(), dead, "compiled by no crate");
    }
}

#[test]
fn a_link_that_leads_nowhere_is_found() {
    let check = tidy::links::check;
    let pages = [("docs/b.md", "# B\n## What's *in* `it`?\n"), ("src/a.rs", "")];
    let with = |text| [&pages[..], &[("docs/a.md", text)]].concat();
    for fine in [
        "[b](b.md) and [b](./b.md#whats-in-it), [own](#a)\n# A\n",
        "[code](../src/a.rs) [directory](../src) [web](https://example.org/x.md)\n",
        "```\n[not](a-link.md)\n```\nnor `[this](one.md)`\n",
        "[b]: b.md\n",
        "`src/a.rs` `docs/b.md` `docs/` `docs/x y` `docs/*.md`\n```\n`docs/c.md`\n```\n",
    ] {
        passes(check, &with(fine));
    }
    for (bad, message) in [
        ("[c](c.md)\n", "no file"),
        ("[c]: c.md\n", "no file"),
        ("[out](../../b.md)\n", "no file"),
        ("[b](b.md#elsewhere)\n", "no heading"),
        ("[own](#elsewhere)\n", "no heading"),
        ("see `docs/c.md`\n", "not in the repository"),
    ] {
        finds(check, &with(bad), "docs/a.md", message);
    }
}

#[test]
fn a_comment_that_names_no_page_is_found() {
    let check = tidy::links::check;
    let with = |text| [("docs/a.md", "# A\n"), ("c/src/b.rs", text)];
    for fine in [
        "//! See docs/a.md.\n",
        "/// All of (docs/), as in `docs/a.md`, and others/docs/b.md\n",
        "let page = \"docs/b.md\";\n",
    ] {
        passes(check, &with(fine));
    }
    for bad in ["//! See docs/b.md.\n", "a(); // as docs/decisions/a.md says\n"] {
        finds(check, &with(bad), "c/src/b.rs", "not in the repository");
    }
}

#[test]
fn a_manifest_takes_everything_from_the_workspace() {
    let check = tidy::manifests::check;
    let lints = "[lints]\nworkspace = true\n";
    let fine = format!("{lints}[dependencies]\na.workspace = true\nb = {{ workspace = true }}\n");
    passes(check, &[("c/a/Cargo.toml", &fine)]);
    let cases = [
        ("[package]\nname = 'a'\n".to_owned(), "needs [lints]"),
        ("[lints.rust]\nmissing_docs = 'allow'\n".to_owned(), "needs [lints]"),
        (format!("{lints}[dependencies]\na = '1.0'\n"), "a.workspace = true"),
        (format!("{lints}[dev-dependencies.a]\npath = '../a'\n"), "a.workspace = true"),
        (format!("{lints}[target.'cfg(unix)'.dependencies]\na = '1'\n"), "a.workspace = true"),
        ("[lints\n".to_owned(), "parse error"),
    ];
    for (text, message) in cases {
        finds(check, &[("c/a/Cargo.toml", &text)], "c/a/Cargo.toml", message);
    }
}

#[test]
fn a_dependency_needs_a_reason() {
    let check = tidy::manifests::check;
    let root = |line| {
        format!(
            "[workspace]\nmembers = []\n[workspace.dependencies]\n{line}\n[profile.release]\nlto = true\n"
        )
    };
    let member = "[lints]\nworkspace = true\n[dev-dependencies]\na.workspace = true\n";
    let with = |line| [("Cargo.toml", root(line)), ("c/b/Cargo.toml", member.to_owned())];
    for fine in ["a = \"1.0\" # parses b", "a = { path = \"crates/a\" }"] {
        passes(check, &with(fine).each_ref().map(|(path, text)| (*path, text.as_str())));
    }
    for bad in ["a = \"1.0\"", "a = \"1.0\" #"] {
        let files = with(bad);
        let files = files.each_ref().map(|(path, text)| (*path, text.as_str()));
        finds(check, &files, "Cargo.toml", "why this dependency");
    }
}

#[test]
fn a_dependency_that_no_crate_takes_is_found() {
    let check = tidy::manifests::check;
    let root = "[workspace]\n[workspace.dependencies]\na = \"1.0\" # parses b\n";
    let member =
        |section: &str| format!("[lints]\nworkspace = true\n[{section}]\na.workspace = true\n");
    for section in ["dependencies", "build-dependencies", "target.'cfg(unix)'.dependencies"] {
        passes(check, &[("Cargo.toml", root), ("c/b/Cargo.toml", &member(section))]);
    }
    let other = "[lints]\nworkspace = true\n";
    finds(
        check,
        &[("Cargo.toml", root), ("c/b/Cargo.toml", other)],
        "Cargo.toml",
        "no crate takes",
    );
}

#[test]
fn rows_have_the_cells_of_their_heading() {
    let head = "| key | meaning |\n|---|---|\n";
    let page = |row: &str| format!("{head}| `a` | one |\n{row}\n\n| other |\n");
    finds(tidy::tables::check, &[("docs/a.md", &page("| `b` | | two |"))], "docs/a.md", "3 cells");
    finds(tidy::tables::check, &[("docs/a.md", &page("| `b` |"))], "docs/a.md", "1 cells");
    passes(tidy::tables::check, &[("docs/a.md", &page("| `b|c` | d \\| e |"))]);
    passes(tidy::tables::check, &[("docs/a.md", "```\n|-|\n| a | b |\n```\n")]);
}

#[test]
fn a_crate_that_others_link_has_what_a_registry_shows() {
    let lib = "#![doc = include_str!(\"../README.md\")]\n";
    let readme = "# a\n\n```rust\nassert!(true);\n```\n";
    let whole = "[package]\nname = \"a\"\ndescription = \"b\"\ncategories = []\ninclude = []\n\
        keywords = [\"c\"]\nreadme = \"README.md\"\nrepository.workspace = true\npublish = true\n\
        [package.metadata.docs.rs]\nall-features = true\n";
    let root = "[workspace.dependencies]\na = { path = \"crates/a\", version = \"1.0.0\" }\n\
        b = { path = \"crates/b\" }\n";
    let tree = |manifest: &str, root: &str, lib: &str, readme: &str| {
        let files = [
            ("Cargo.toml", root),
            ("crates/a/Cargo.toml", manifest),
            ("crates/a/README.md", readme),
            ("crates/a/src/lib.rs", lib),
        ];
        let found = tidy::published::check(&self::tree(&files));
        found.into_iter().map(|finding| finding.message).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(tree(whole, root, lib, readme), "");
    let many = whole.replace("\"c\"", "\"c\", \"d\", \"e\", \"f\", \"g\", \"h\"");
    for (found, expected) in [
        (tree(&whole.replace("categories = []\n", ""), root, lib, readme), "needs `categories`"),
        (tree(&many, root, lib, readme), "has 6 keywords"),
        (tree(&whole.replace("docs.rs", "deb"), root, lib, readme), "metadata.docs.rs"),
        (tree(whole, root, "//! A.\n", readme), "src/lib.rs begins with"),
        (tree(whole, root, lib, "# a\n\n```sh\nls\n```\n"), "an example in Rust"),
        (tree(whole, &root.replace(", version = \"1.0.0\"", ""), lib, readme), "a needs a version"),
        (
            tree(
                whole,
                &root.replace("crates/b\"", "crates/b\", version = \"1.0.0\""),
                lib,
                readme,
            ),
            "b must have no version",
        ),
    ] {
        assert!(found.contains(expected) && found.lines().count() == 1, "{found}: {expected}");
    }
}
