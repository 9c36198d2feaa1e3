//! Words of our own that the field has better ones for, and names of types that mean too many things.
//!
//! Names, help texts, comments and documents may not have them.

use std::collections::BTreeMap;

use crate::finding::Finding;
use crate::repository::SourceFile;
use crate::size::is_document;

/// What is refused, put together from halves so that this file does not hold it itself; and what to write.
const WORDS: [(&str, &str); 5] = [
    (concat!("to", "ld"), "name the thing that the type holds"),
    (concat!("pati", "ence"), "timeout or deadline"),
    (concat!("de", "sk"), "mailbox or channel"),
    (concat!("door", "bell"), "wake-up"),
    (concat!("who", "ever"), "name who it is: the client, the user"),
];
/// The first of the words is refused as a type and as a file alone: the verb is everybody's.
const TYPES_ALONE: &str = WORDS[0].0;
/// In so many files a type's name may be defined.
const MAX_MODULES: usize = 3;

/// Finds such words, and such types.
#[must_use]
pub fn check(files: &[SourceFile]) -> Vec<Finding> {
    let code = files.iter().filter(|file| file.is_rust() && !file.is_generated());
    let mut findings: Vec<Finding> = code.clone().flat_map(check_code).collect();
    let documents = files.iter().filter(|file| is_document(&file.path));
    findings.extend(documents.flat_map(|file| check_lines(file, |line| line.to_lowercase())));
    findings.extend(check_types(code.filter(|file| !file.is_test())));
    findings
}

fn check_code(file: &SourceFile) -> Vec<Finding> {
    let name = file.path.rsplit('/').next().unwrap_or_default().trim_end_matches(".rs");
    let mut findings = Vec::new();
    if let Some((word, instead)) = WORDS.iter().find(|(word, _)| has_part(name, word)) {
        findings.push(Finding::at(&file.path, 1, message(word, instead)));
    }
    findings.extend(check_lines(file, str::to_owned));
    findings
}

fn check_lines(file: &SourceFile, counted: impl Fn(&str) -> String) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        let line = counted(line);
        let names = line.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
        for name in names {
            let found = WORDS.iter().find(|(word, _)| match *word == TYPES_ALONE {
                true => {
                    name.starts_with(char::is_uppercase) && has_part(name, word) && is_type(name)
                }
                false => has_part(name, word),
            });
            if let Some((word, instead)) = found {
                findings.push(Finding::at(&file.path, number, message(word, instead)));
            }
        }
    }
    findings
}

fn message(word: &str, instead: &str) -> String {
    format!("{word:?} is no word of the field: {instead}")
}

/// Whether a name is a type's and no word at the beginning of a sentence.
fn is_type(name: &str) -> bool {
    let mut rest = name.chars().skip(1);
    rest.clone().any(char::is_uppercase) && rest.any(char::is_lowercase)
}

/// Whether one of the words that a name is made of is this one.
fn has_part(name: &str, word: &str) -> bool {
    let mut parts = vec![String::new()];
    let mut was_lower = false;
    for letter in name.chars() {
        if letter == '_' || (letter.is_uppercase() && was_lower) {
            parts.push(String::new());
        }
        was_lower = letter.is_lowercase();
        let last = parts.last_mut().expect("it begins with one");
        last.extend(letter.to_lowercase().filter(|letter| *letter != '_'));
    }
    parts.iter().any(|part| part == word)
}

fn check_types<'a>(files: impl Iterator<Item = &'a SourceFile>) -> Vec<Finding> {
    let mut found: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    for file in
        files.filter(|file| !file.path.contains("/tests") && !file.path.contains("/benches/"))
    {
        for (number, line) in (1..).zip(file.text.lines()) {
            if let Some(name) = defined(line) {
                found.entry(name).or_default().entry(&file.path).or_insert(number);
            }
        }
    }
    let many = found.into_iter().filter(|(_, files)| files.len() > MAX_MODULES);
    many.map(|(name, files)| {
        let (first, line) = files.iter().next().expect("there are many");
        let count = files.len();
        let message = format!(
            "`{name}` is a type in {count} files, at most {MAX_MODULES}: {}",
            files.keys().copied().collect::<Vec<_>>().join(", ")
        );
        Finding::at(first, *line, message)
    })
    .collect()
}

/// The type that a line defines.
fn defined(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(')')?.1,
        Some(rest) => rest,
        None => line,
    };
    let line = line.trim_start();
    let rest =
        ["struct ", "enum ", "trait ", "union "].iter().find_map(|word| line.strip_prefix(word))?;
    let end = rest.find(|letter: char| !letter.is_alphanumeric()).unwrap_or(rest.len());
    Some(&rest[..end]).filter(|name| name.starts_with(char::is_uppercase))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> usize {
        check(&[SourceFile::new(path, text)]).len()
    }

    #[test]
    fn words_are_refused_in_names_comments_and_documents() {
        let word = WORDS[1].0;
        assert_eq!(found("crates/a/src/b.rs", &format!("let {word} = 1;\n")), 1);
        assert_eq!(
            found("crates/a/src/b.rs", &format!("const A_{}: u8 = 1;\n", word.to_uppercase())),
            1
        );
        assert_eq!(found("crates/a/src/b.rs", &format!("/// {word}\nlet im{word} = 1;\n")), 1);
        assert_eq!(found("docs/a.md", &format!("One's {word}.\n")), 1);
        assert_eq!(found(&format!("crates/a/src/{word}.rs"), ""), 1);
    }

    #[test]
    fn one_word_is_refused_as_a_part_of_a_type_alone() {
        let word = "Told";
        assert_eq!(found("crates/a/src/b.rs", &format!("struct {word}Again;\n")), 1);
        assert_eq!(found("crates/a/src/b.rs", "let told = 1;\n"), 0);
    }

    #[test]
    fn a_type_is_defined_in_three_files_at_most() {
        let file = |number: usize| {
            SourceFile::new(format!("crates/a/src/f{number}.rs"), "pub(super) struct Same {\n}\n")
        };
        let files: Vec<SourceFile> = (0..4).map(file).collect();
        assert_eq!(check(&files[..3]).len(), 0);
        assert_eq!(check(&files).len(), 1);
    }
}
