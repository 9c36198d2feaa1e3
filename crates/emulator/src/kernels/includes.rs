//! What a kernel's text includes: its preprocessed text, and the files that went into it.
//!
//! Only the compiler knows where an include is found, so it is asked. What it gives is compiled and
//! is the key of the compiled kernel, so that nothing can change between the two.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use super::compiler::{Compiler, CompilerError};
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
        let is_sure = !add_files(&mut files, &body, text, started);
        if is_sure || is_last {
            if !is_sure {
                files.distrust();
            }
            return Ok(Expanded { text: Arc::new(text.expanded(body)), files });
        }
    }
}

/// Adds what a preprocessed text was made from. Whether a file among it may have changed since
/// `started`.
fn add_files(files: &mut SourceFiles, body: &[u8], text: &KernelText, started: SystemTime) -> bool {
    let included: Vec<PathBuf> = included(body).map(|path| text.directory.join(path)).collect();
    let mut is_young = false;
    let mut names = quoted_names(&text.body);
    let mut directories = vec![text.directory.clone(), text.root.clone()];
    for path in included {
        let content = std::fs::read(&path).unwrap_or_default();
        names.extend(quoted_names(&content));
        directories.extend(path.parent().map(Path::to_path_buf));
        is_young |= files.add(path, started);
    }
    names.sort();
    names.dedup();
    directories.sort();
    directories.dedup();
    // Where a new file would be included instead of one that was found, or where none was found.
    for name in &names {
        for directory in &directories {
            is_young |= files.add(directory.join(name), started);
        }
    }
    is_young
}

/// The files that line markers say were included, but for the system's.
fn included(body: &[u8]) -> impl Iterator<Item = PathBuf> {
    body.split(|byte| *byte == b'\n').filter_map(|line| {
        let (_number, rest) = split_at(line.strip_prefix(b"# ")?, b" \"")?;
        let end = rest.iter().rposition(|byte| *byte == b'"')?;
        let (name, flags) = (&rest[..end], String::from_utf8_lossy(&rest[end + 1..]));
        let mut flags = flags.split_whitespace();
        let is_entered = flags.next() == Some(ENTERED);
        (is_entered && !flags.any(|flag| flag == SYSTEM)).then(|| PathBuf::from(unescaped(name)))
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

/// The names in quotes behind `include` and its like, wherever they stand: a few too many do no
/// harm.
fn quoted_names(text: &[u8]) -> Vec<OsString> {
    let mut names = Vec::new();
    let mut left = text;
    while let Some((_, rest)) = split_at(left, b"include") {
        left = rest;
        let rest = rest.strip_prefix(b"_next").unwrap_or(rest);
        let spaces = rest.iter().take_while(|byte| b" \t(".contains(byte)).count();
        if let Some(rest) = rest[spaces..].strip_prefix(b"\"")
            && let Some((name, _)) = split_at(rest, b"\"")
            && !name.iter().any(|byte| b"\n\0".contains(byte))
        {
            names.push(OsString::from_vec(name.to_vec()));
        }
    }
    names
}

/// What is before and behind the first `mark`.
fn split_at<'a>(bytes: &'a [u8], mark: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let place = bytes.windows(mark.len()).position(|found| found == mark)?;
    Some((&bytes[..place], &bytes[place + mark.len()..]))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::{included, quoted_names};

    #[test]
    fn included_files_are_read_from_line_markers() {
        let body = "# 0 \"<stdin>\"\n# 1 \"/usr/include/math.h\" 1 3 4\n# 1 \"my kernel\"\n\
            # 1 \"x \\\"1\\\".h\" 1\n# 2 \"sub/y.h\" 2\n# 1 \"\\303\\251.h\" 1\nint x;\n";
        // A byte that is no text does not hide the next line.
        let body = [&b"\xE9\n"[..], body.as_bytes()].concat();
        let found: Vec<_> = included(&body).collect();
        assert_eq!(found, ["x \"1\".h", "\u{e9}.h"].map(std::path::PathBuf::from));
    }

    #[test]
    fn names_in_quotes_are_found() {
        let text = "#include \"a.h\"\n # include_next\t\"b/c.h\"\n#if __has_include(\"d.h\")\n\
            #include <math.h>\n// include \"\n\"";
        assert_eq!(quoted_names(text.as_bytes()), ["a.h", "b/c.h", "d.h"]);
        assert_eq!(quoted_names(b"include \"\xE9.h\""), [OsStr::from_bytes(b"\xE9.h")]);
    }
}
