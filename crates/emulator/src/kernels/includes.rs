//! What a kernel's text includes: its preprocessed text, and the files that went into it.
//!
//! Only the compiler knows where an include is found, so it is asked. What it gives is compiled and
//! is the key of the compiled kernel, so that nothing can change between the two. Where it cannot say
//! what would be included later, the text is preprocessed at each dispatch.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use super::compiler::{Compiler, CompilerError};
use super::directives::{self, Includes};
use super::source::KernelText;
use super::source_files::SourceFiles;

/// Preprocessed texts that one process remembers.
const MAX_REMEMBERED: usize = 256;
/// How often a text is preprocessed while its files keep changing.
const MAX_ATTEMPTS: usize = 4;
/// The flag of a line marker that begins a file, and that of a file of the system.
const ENTERED: &str = "1";
const SYSTEM: &str = "3";

/// A text that includes nothing any more.
#[derive(Debug, Clone)]
pub(super) struct Expanded {
    pub(super) text: Arc<KernelText>,
    pub(super) files: SourceFiles,
    /// The assembler may read files, which are not in the text.
    pub(super) reads_in_assembly: bool,
}

/// A file that a line marker names.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Included {
    pub(super) path: PathBuf,
    /// The compiler found it where headers of a system are.
    pub(super) is_of_system: bool,
}

type Remembered = HashMap<(KernelText, [u64; 2]), Expanded>;

static REMEMBERED: Mutex<Option<Remembered>> = Mutex::new(None);

/// The text with all that it includes.
pub(super) fn expand(compiler: &Compiler, text: &KernelText) -> Result<Expanded, CompilerError> {
    let key = (text.clone(), compiler.identity());
    if let Some(found) = remembered(&key) {
        return Ok(found);
    }
    let expanded = expand_anew(compiler, text)?;
    let mut remembered = REMEMBERED.lock().unwrap_or_else(PoisonError::into_inner);
    let remembered = remembered.get_or_insert_default();
    if remembered.len() >= MAX_REMEMBERED {
        remembered.clear();
    }
    remembered.insert(key, expanded.clone());
    Ok(expanded)
}

fn remembered(key: &(KernelText, [u64; 2])) -> Option<Expanded> {
    let mut remembered = REMEMBERED.lock().unwrap_or_else(PoisonError::into_inner);
    let found = remembered.as_mut()?.get_mut(key)?;
    found.files.are_unchanged().then(|| found.clone())
}

fn expand_anew(compiler: &Compiler, text: &KernelText) -> Result<Expanded, CompilerError> {
    let mut files = SourceFiles::default();
    let mut attempts = 1..=MAX_ATTEMPTS;
    loop {
        let started = SystemTime::now();
        let body = compiler.preprocess(text)?;
        let is_last = attempts.next().is_none();
        // A file that changed while the compiler read it may not be what it read. It reads again:
        // what changes from here on is found changed by the next dispatch.
        let found = add_files(&mut files, &body, text, compiler, started);
        if !found.is_young || is_last {
            let reads_in_assembly = directives::reads_in_assembly(&body);
            if found.is_young || found.has_unknown || reads_in_assembly {
                files.distrust();
            }
            let text = Arc::new(text.expanded(body));
            return Ok(Expanded { text, files, reads_in_assembly });
        }
    }
}

/// What is known of the files that were added.
struct Added {
    /// One of them may have changed since the compiler began to read.
    is_young: bool,
    /// Others may be included later that are not among them.
    has_unknown: bool,
}

/// Adds what a preprocessed text was made from, and where a new file would be included instead of one
/// that was found, or where none was found: beside the file that includes it, or at the root.
fn add_files(
    files: &mut SourceFiles,
    body: &[u8],
    text: &KernelText,
    compiler: &Compiler,
    started: SystemTime,
) -> Added {
    let mut added = Added { is_young: false, has_unknown: compiler.hides_files() };
    let mut add_beside = |files: &mut SourceFiles, found: Includes, directory: &Path| {
        added.has_unknown |= found.has_unknown;
        for name in found.names {
            for directory in [directory, &text.root] {
                added.is_young |= files.add(directory.join(&name), started);
            }
        }
    };
    add_beside(files, directives::includes(&text.body), &text.directory);
    let mut is_young = false;
    for included in included(body).filter(|included| !compiler.owns(included)) {
        let path = text.directory.join(included.path);
        let content = std::fs::read(&path).unwrap_or_default();
        add_beside(files, directives::includes(&content), path.parent().unwrap_or(&text.root));
        is_young |= files.add(path, started);
    }
    added.is_young |= is_young;
    added
}

/// The files that line markers say were included.
pub(super) fn included(body: &[u8]) -> impl Iterator<Item = Included> {
    body.split(|byte| *byte == b'\n').filter_map(|line| {
        let (_number, rest) = split_at(line.strip_prefix(b"# ")?, b" \"")?;
        let end = rest.iter().rposition(|byte| *byte == b'"')?;
        let (name, flags) = (&rest[..end], String::from_utf8_lossy(&rest[end + 1..]));
        let mut flags = flags.split_whitespace();
        let is_entered = flags.next() == Some(ENTERED);
        let is_of_system = flags.any(|flag| flag == SYSTEM);
        is_entered.then(|| Included { path: PathBuf::from(unescaped(name)), is_of_system })
    })
}

/// A name without the backslashes that the compiler puts before quotes and backslashes, and in the
/// place of bytes that cannot be shown.
fn unescaped(name: &[u8]) -> OsString {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.iter().copied().peekable();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let mut number = None;
        while let Some(digit) = rest.next_if(|digit| (b'0'..=b'7').contains(digit)) {
            number = Some(number.unwrap_or(0_u8).wrapping_mul(8).wrapping_add(digit - b'0'));
        }
        bytes.extend(number.or_else(|| rest.next()));
    }
    OsString::from_vec(bytes)
}

/// What is before and behind the first `mark`.
fn split_at<'a>(bytes: &'a [u8], mark: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let place = bytes.windows(mark.len()).position(|found| found == mark)?;
    Some((&bytes[..place], &bytes[place + mark.len()..]))
}

#[cfg(test)]
mod tests {
    use super::{Included, included};

    #[test]
    fn included_files_are_read_from_line_markers() {
        let body = "# 0 \"<stdin>\"\n# 1 \"/usr/include/math.h\" 1 3 4\n# 1 \"my kernel\"\n\
            # 1 \"x \\\"1\\\".h\" 1\n# 2 \"sub/y.h\" 2\n# 1 \"\\303\\251.h\" 1\nint x;\n";
        // A byte that is no text does not hide the next line.
        let body = [&b"\xE9\n"[..], body.as_bytes()].concat();
        let found: Vec<_> = included(&body).collect();
        let expected = [("/usr/include/math.h", true), ("x \"1\".h", false), ("\u{e9}.h", false)];
        let expected =
            expected.map(|(path, is_of_system)| Included { path: path.into(), is_of_system });
        assert_eq!(found, expected);
    }
}
