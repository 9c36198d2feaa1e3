//! Each command line of `telltale` in the documents is one that the program takes.

use std::fs;
use std::path::{Path, PathBuf};

use super::definition;

/// The pages, with their texts.
fn pages() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let inside = ["docs", "deploy"].into_iter().flat_map(|directory| {
        let entries = fs::read_dir(root.join(directory)).unwrap();
        entries.map(|entry| entry.unwrap().path())
    });
    let pages = inside.filter(|path| path.extension().is_some_and(|kind| kind == "md"));
    let pages = pages.chain(["README.md", "CONTRIBUTING.md"].map(|name| root.join(name)));
    pages.map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

/// Lines that a shell is given: those of fenced shell blocks and of indented ones, continued lines as one.
fn shell_lines(page: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut fence: Option<bool> = None;
    let mut begun = String::new();
    for line in page.lines() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            let opens = fence.is_none();
            fence = opens.then(|| ["", "sh", "console"].contains(&language));
            continue;
        }
        if !fence.unwrap_or_else(|| line.starts_with("    ")) {
            continue;
        }
        match line.strip_suffix('\\') {
            Some(part) => begun.push_str(part),
            None => lines.push(std::mem::take(&mut begun) + line),
        }
    }
    lines
}

/// The arguments of each `telltale` in a shell's line, to where another command starts.
fn commands(line: &str) -> Vec<Vec<String>> {
    let Some(words) = shlex::split(line) else { return Vec::new() };
    let mut commands: Vec<Vec<String>> = Vec::new();
    let mut is_inside = false;
    let mut before = String::from("|");
    for word in words {
        let is_end = ["|", ">", ">>", "2>", "&", "&&", "||", ";", "<"].contains(&word.as_str());
        let starts = ["|", "&&", "||", ";", "&", "$", "sudo"].contains(&before.as_str())
            || before.contains('=');
        let is_program = word == "telltale" || (word.ends_with("/telltale") && !word.contains('='));
        if is_end {
            is_inside = false;
        } else if is_inside && word.starts_with('[') {
            // What may be left out.
        } else if is_inside {
            commands.last_mut().expect("one was begun").push(word.clone());
        } else if is_program && starts {
            commands.push(vec![word.clone()]);
            is_inside = true;
        }
        before = word;
    }
    commands
}

#[test]
fn each_documented_command_line_is_taken() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for (path, text) in pages() {
        for line in shell_lines(&text) {
            for command in commands(&line) {
                count += 1;
                let error = definition().try_get_matches_from(&command).err();
                let error = error.filter(clap::Error::use_stderr);
                wrong.extend(error.map(|error| format!("{}: {line}\n{error}", path.display())));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 60, "only {count} were found");
}
