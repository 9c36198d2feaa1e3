//! `table.toml`, in which each attack is a row: each test that it names exists, each test here is
//! in it, and docs/security.md shows it.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

const TABLE: &str = include_str!("table.toml");
const BEGIN: &str = "<!-- Made from crates/telltale/tests/attacks/table.toml -->\n";
const END: &str = "<!-- End -->\n";
/// With this variable the document is written instead of compared.
const WRITE: &str = "TELLTALE_WRITE_DOCS";

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn rows() -> Vec<toml::Table> {
    let table: toml::Table = TABLE.parse().unwrap();
    let rows = table["attack"].as_array().unwrap();
    rows.iter().map(|row| row.as_table().unwrap().clone()).collect()
}

fn text<'r>(row: &'r toml::Table, key: &str) -> &'r str {
    row.get(key).map_or("", |value| value.as_str().unwrap())
}

fn tests(row: &toml::Table) -> Vec<&str> {
    row["tests"].as_array().unwrap().iter().map(|test| test.as_str().unwrap()).collect()
}

/// The tests of a source file.
fn tests_of(source: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    // A property's test has its attribute within a macro, and is written alike.
    for part in source.split("#[test]").skip(1) {
        let Some((_, rest)) = part.split_once("fn ") else { continue };
        let end = rest.find('(').unwrap_or(0);
        names.insert(rest[..end].to_owned());
    }
    names
}

#[test]
fn each_row_names_tests_that_exist() {
    for row in rows() {
        assert!(!tests(&row).is_empty(), "{row:?}");
        for test in tests(&row) {
            let (path, function) = test.split_once("::").unwrap();
            let source = std::fs::read_to_string(crates().join(path))
                .unwrap_or_else(|error| panic!("{path}: {error}"));
            assert!(tests_of(&source).contains(function), "{test} is not there");
        }
    }
}

#[test]
fn each_test_here_is_in_a_row() {
    let rows = rows();
    let named: BTreeSet<&str> = rows.iter().flat_map(tests).collect();
    let directory = crates().join("telltale/tests/attacks");
    for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        if !name.ends_with(".rs") || ["actor.rs", "table.rs"].contains(&name.as_str()) {
            continue;
        }
        for test in tests_of(&std::fs::read_to_string(entry.path()).unwrap()) {
            let full = format!("telltale/tests/attacks/{name}::{test}");
            assert!(named.contains(full.as_str()), "{full} is in no row");
        }
    }
}

/// The table as the document has it.
fn shown() -> String {
    let mut shown = String::new();
    for row in rows() {
        let group = text(&row, "group");
        if !group.is_empty() {
            let head = "| attack | defence | what others see | what counts it | tests |";
            write!(shown, "\n### {group}\n\n{head}\n|---|---|---|---|---|\n").unwrap();
        }
        let cells = ["threat", "defence", "others", "counted"].map(|key| text(&row, key));
        let links = tests(&row).into_iter().map(|test| {
            let (path, function) = test.split_once("::").unwrap();
            format!("[`{function}`](../crates/{path})")
        });
        let links = links.collect::<Vec<_>>().join(", ");
        writeln!(shown, "| {} | {links} |", cells.join(" | ")).unwrap();
    }
    shown
}

#[test]
fn the_document_shows_the_table() {
    let path = crates().join("../docs/security.md");
    let document = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = document.split_once(BEGIN).expect("the document has a place for it");
    let (found, after) = rest.split_once(END).expect("the place has an end");
    let shown = format!("{}\n", shown());
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{shown}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(found, shown, "docs/security.md is not what the table says; {WRITE}=1 writes it");
}
