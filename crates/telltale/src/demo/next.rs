//! The commands that a demo names at its end, as they can be typed where it was started.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

/// A command to try next, without the program's name, and what it shows.
pub(super) struct NextCommand(&'static str, &'static str);

/// After the demo of one machine.
pub(super) const AFTER_MACHINE: [NextCommand; 3] = [
    NextCommand("smi", "devices and processes of this machine"),
    NextCommand("serve", "metrics, history and a page: http://127.0.0.1:9435/"),
    NextCommand("demo --cluster", "a training goes on when one of its nodes is killed"),
];

/// After the demo of a cluster.
pub(super) const AFTER_CLUSTER: [NextCommand; 3] = [
    NextCommand("demo", "two trainings on one machine, in the full-screen view"),
    NextCommand("gpt --steps 20", "the training alone, with its loss after each step"),
    NextCommand("smi", "devices and processes of this machine"),
];

/// A line for each, after an empty one and a heading.
pub(super) fn words(commands: &[NextCommand]) -> String {
    let program = program();
    let lines: Vec<String> =
        commands.iter().map(|NextCommand(arguments, _)| format!("{program} {arguments}")).collect();
    let width = lines.iter().map(String::len).max().unwrap_or_default();
    let lines = lines.iter().zip(commands);
    let lines = lines.map(|(line, NextCommand(_, shows))| format!("  {line:width$}   {shows}\n"));
    format!("\nTry next:\n{}", lines.collect::<String>())
}

/// How this program is called: as it was, but shorter where it lies below the current directory, as cargo's
/// programs do, or in the PATH.
fn program() -> String {
    let called = env::args_os().next().unwrap_or_else(|| OsString::from("telltale"));
    let path = Path::new(&called);
    if path.components().count() < 2 {
        return quoted(&called.to_string_lossy());
    }
    if let Some(name) = path.file_name().filter(|name| is_in_path(Path::new(name), path)) {
        return quoted(&name.to_string_lossy());
    }
    let here = env::current_dir().ok();
    let below = here.and_then(|here| path.strip_prefix(here).ok().map(Path::to_owned));
    quoted(&match below {
        Some(below) if below.components().count() < 2 => format!("./{}", below.display()),
        Some(below) => below.display().to_string(),
        None => path.display().to_string(),
    })
}

/// Whether a shell that is given this name starts this file.
fn is_in_path(name: &Path, file: &Path) -> bool {
    let directories = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&directories).map(|directory| directory.join(name));
    let first = found.into_iter().find(|candidate| candidate.is_file());
    let same = |one: &Path| fs::canonicalize(one).ok();
    first.is_some_and(|first| same(&first).is_some() && same(&first) == same(file))
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "/._-+@%:,".contains(it);
    match word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_word_is_quoted_where_a_shell_would_split_it() {
        assert_eq!(quoted("target/release/telltale"), "target/release/telltale");
        assert_eq!(quoted("/my dir/it's"), r"'/my dir/it'\''s'");
    }
}
