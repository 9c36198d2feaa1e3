//! The commands in deploy/README.md are commands of the program, and the files are those it reports.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use crate::deploy::files::{deploy, text};

/// The lines of the blocks that a shell is to run, with those that go on joined.
fn shell_lines() -> Vec<String> {
    let text = text("README.md");
    let blocks = text.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    let joined: Vec<String> = blocks.map(|block| block.replace("\\\n", " ")).collect();
    joined.iter().flat_map(|block| block.lines()).map(|line| line.trim().to_owned()).collect()
}

#[test]
fn its_commands_of_the_program_have_arguments_that_exist() {
    let (mut seen, mut count) = (BTreeSet::new(), 0);
    for line in shell_lines() {
        let line = line.split(" #").next().unwrap_or_default().trim();
        let Some((before, words)) = line.rsplit_once("telltale ") else { continue };
        // In the place of a program, not of a user, a service or an image.
        let is_program = |end: &&str| before.ends_with(*end);
        if !before.is_empty() && !["exec telltale ", "/usr/bin/"].iter().any(is_program) {
            continue;
        }
        let words: Vec<&str> = words.split_whitespace().collect();
        let mut command = Command::new(env!("CARGO_BIN_EXE_telltale"));
        // What comes before is refused before help is given.
        let output = command.args(&words).arg("--help").output().unwrap();
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        seen.insert(words[0].to_owned());
        count += 1;
    }
    assert_eq!(seen.iter().map(String::as_str).collect::<Vec<_>>(), ["config", "health", "smi"]);
    assert!(count > 6, "{count}");
}

#[test]
fn it_reports_every_file_and_of_no_other() {
    let readme = text("README.md");
    let mut there = BTreeSet::new();
    let mut directories = vec![deploy("")];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => directories.push(path),
                false => _ = there.insert(path.strip_prefix(deploy("")).unwrap().to_owned()),
            }
        }
    }
    for path in &there {
        let name = path.to_str().unwrap();
        let reported = name == "README.md" || readme.contains(&format!("]({name})"));
        assert!(reported, "{name} is not listed");
    }
}
