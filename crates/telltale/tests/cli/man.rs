//! The manual pages: one for each command, in a form that readers of pages take.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use telltale_harness::{Scratch, skip};

use crate::cli::command::{said, telltale};

/// 2026-11-21, for pages that are the same each time.
const EPOCH: &str = "1795221296";

/// All pages, by their file names.
fn pages(place: &Path) -> BTreeSet<PathBuf> {
    let mut command = telltale();
    let said = said(command.env("SOURCE_DATE_EPOCH", EPOCH).arg("man").arg("--output").arg(place));
    assert_eq!((said.status, said.out.as_str(), said.err.as_str()), (Some(0), "", ""));
    fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// The commands in the help text of `words`, and those below each.
fn commands(words: &[String]) -> Vec<Vec<String>> {
    let help = said(telltale().args(words).arg("--help"));
    assert_eq!(help.status, Some(0), "{words:?}");
    let mut found = vec![words.to_vec()];
    let list = help.out.split("\nCommands:\n").nth(1).unwrap_or_default();
    for line in list.lines().take_while(|line| !line.is_empty()) {
        // A name has two columns before it; what continues a text has more.
        let name = line.strip_prefix("  ").filter(|rest| !rest.starts_with(' '));
        if let Some(name) = name.and_then(|rest| rest.split(' ').next()).filter(|it| *it != "help")
        {
            found.extend(commands(&[words, &[name.to_owned()]].concat()));
        }
    }
    found
}

#[test]
fn every_command_has_a_page_with_what_its_help_says() {
    let place = Scratch::new();
    let found: BTreeSet<String> = pages(place.path())
        .iter()
        .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    let all = commands(&[]);
    assert!(all.len() > 15, "{all:?}");
    let name =
        |words: &Vec<String>| [&[String::from("telltale")], words.as_slice()].concat().join("-");
    let mut expected: BTreeSet<String> = all.iter().map(|words| name(words) + ".1").collect();
    expected.insert("telltale.toml.5".to_owned());
    assert_eq!(found, expected);
    for words in &all {
        let page = fs::read_to_string(place.join(name(words) + ".1")).unwrap();
        assert!(page.contains(&format!(".TH {} 1 \"2026-11-21\" ", name(words))), "{page}");
        let help = said(telltale().args(words).arg("--help")).out;
        let sections = [("Exit status:", "\"EXIT STATUS\""), ("Example", "EXAMPLES")];
        for (heading, section) in sections {
            let in_help = help.lines().any(|line| line.starts_with(heading));
            assert_eq!(page.contains(&format!(".SH {section}\n")), in_help, "{words:?}: {section}");
        }
        let option = |line: &str| {
            line.trim_start().split(' ').find(|it| it.starts_with("--")).map(str::to_owned)
        };
        for option in
            help.lines().filter(|line| line.trim_start().starts_with('-')).filter_map(option)
        {
            let escaped = option.trim_end_matches([',', '.']).replace('-', "\\-");
            assert!(page.contains(&format!("\\fB{escaped}\\fR")), "{words:?}: {option}");
        }
    }
}

#[test]
fn linters_have_nothing_to_say_of_the_pages() {
    let place = Scratch::new();
    let pages = pages(place.path());
    let mut lint = Command::new("mandoc");
    lint.args(["-T", "lint", "-W", "warning"]).args(&pages);
    match lint.output() {
        Err(_) => skip("cli::man::linters", "there is no mandoc"),
        Ok(output) => assert_eq!(String::from_utf8_lossy(&output.stdout), ""),
    }
    for page in &pages {
        let mut groff = Command::new("groff");
        groff.args(["-man", "-Tutf8", "-ww", "-z"]).arg(page);
        match groff.output() {
            Err(_) => return skip("cli::man::linters", "there is no groff"),
            Ok(output) => assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{page:?}"),
        }
    }
}

#[test]
fn a_directory_that_is_not_there_is_made_and_what_is_none_is_reported() {
    let place = Scratch::new();
    assert!(pages(&place.join("new/pages")).len() > 15);
    fs::write(place.join("file"), "").unwrap();
    let said = said(telltale().args(["man", "--output"]).arg(place.join("file")));
    said.complains(2, &["/file: File exists", "name a directory that this user may write"]);
}
