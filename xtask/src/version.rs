//! The version, which is one number in one place: `[workspace.package]` of the root's Cargo.toml. Other files
//! repeat it for programs that cannot read it there; they are written and compared here.

use std::io;
use std::path::{Path, PathBuf};

use crate::finding::Finding;

/// The file that has it, and what stands before it there.
const MANIFEST: &str = "Cargo.toml";
const OWN: &str = "\n[workspace.package]\nversion = \"";

/// The changes, whose newest heading is of this version.
const CHANGES: &str = "CHANGELOG.md";
const NEW_HEADING: &str = "### New\n\n### Changes for you\n\n### Mended\n\n";

/// How a file writes the version.
#[derive(Debug, Clone, Copy)]
enum Form {
    Whole,
    Major,
    Minor,
    Patch,
    MajorMinor,
}

/// A file that repeats the version: behind each of these texts.
struct Place {
    path: &'static str,
    before: &'static str,
    form: Form,
}

const fn place(path: &'static str, before: &'static str, form: Form) -> Place {
    Place { path, before, form }
}

const PLACES: [Place; 10] = [
    // What crates say of each other when they are published.
    place(MANIFEST, "\", version = \"", Form::Whole),
    place("crates/capi/include/telltale.h", "#define TELLTALE_VERSION_MAJOR ", Form::Major),
    place("crates/capi/include/telltale.h", "#define TELLTALE_VERSION_MINOR ", Form::Minor),
    place("crates/capi/include/telltale.h", "#define TELLTALE_VERSION_PATCH ", Form::Patch),
    place("crates/capi/Cargo.toml", "libtelltale0 (= ", Form::Whole),
    place("crates/capi/Cargo.toml", "libtelltale0 = \"= ", Form::Whole),
    place("clients/python/pyproject.toml", "\nversion = \"", Form::Whole),
    place("clients/python/telltale_ccl/__init__.py", "\n__version__ = \"", Form::Whole),
    place("docs/integrate.md", "find_package(telltale ", Form::MajorMinor),
    place(CHANGES, "\n## ", Form::Whole),
];

/// A version: three numbers with dots between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version([u32; 3]);

/// Why a version cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum VersionError {
    /// A file.
    #[error("{path} cannot be read or written")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The version stands nowhere.
    #[error(
        "Cargo.toml has no version below [workspace.package]; write one, such as version = \"0.1.0\""
    )]
    None,
    /// It would go back.
    #[error("{new} is not newer than {old}; give a newer one")]
    Old {
        /// What was asked for.
        new: Version,
        /// What there is.
        old: Version,
    },
}

// === impl Version ===

impl std::str::FromStr for Version {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers: Option<Vec<u32>> = text.split('.').map(|part| part.parse().ok()).collect();
        let numbers = numbers.and_then(|numbers| numbers.try_into().ok());
        numbers.map(Self).ok_or_else(|| format!("{text:?} is no version; write 0.2.0"))
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self([major, minor, patch]) = self;
        write!(to, "{major}.{minor}.{patch}")
    }
}

impl Version {
    fn written(self, form: Form) -> String {
        let Self([major, minor, patch]) = self;
        match form {
            Form::Whole => self.to_string(),
            Form::Major => major.to_string(),
            Form::Minor => minor.to_string(),
            Form::Patch => patch.to_string(),
            Form::MajorMinor => format!("{major}.{minor}"),
        }
    }
}

/// The version of the tree at `root`.
///
/// # Errors
/// When the manifest cannot be read, or has none.
pub fn of(root: &Path) -> Result<Version, VersionError> {
    let manifest = read(root, MANIFEST)?;
    let found = manifest.split_once(OWN).and_then(|(_, rest)| rest.split('"').next()?.parse().ok());
    found.ok_or(VersionError::None)
}

/// The files that say something else than the manifest.
///
/// # Errors
/// When one cannot be read.
pub fn check(root: &Path) -> Result<Vec<Finding>, VersionError> {
    let version = of(root)?;
    let mut findings = Vec::new();
    for place in &PLACES {
        let text = read(root, place.path)?;
        let expected = version.written(place.form);
        let mut found = text.split(place.before).skip(1).map(number).peekable();
        let is_there = found.peek().is_some();
        // Of the changes only the newest are of this version.
        let count = if place.path == CHANGES { 1 } else { usize::MAX };
        let is_right = found.take(count).all(|number| number == expected);
        if !is_there || !is_right {
            let before = place.before.trim();
            let message = format!("must have {expected} behind {before:?}, as Cargo.toml says");
            findings.push(Finding::whole(place.path, message));
        }
    }
    Ok(findings)
}

/// Writes a newer version everywhere, and its heading into the changes; returns the files' paths.
///
/// # Errors
/// When the version is not newer, or a file cannot be written.
pub fn write(root: &Path, new: Version) -> Result<Vec<&'static str>, VersionError> {
    let old = of(root)?;
    if new <= old {
        return Err(VersionError::Old { new, old });
    }
    let manifest = read(root, MANIFEST)?;
    save(root, MANIFEST, &replaced(&manifest, OWN, &new.to_string()))?;
    let mut paths = vec![MANIFEST];
    for place in &PLACES {
        let text = read(root, place.path)?;
        let text = match place.path {
            CHANGES => with_heading(&text, new),
            _ => replaced(&text, place.before, &new.written(place.form)),
        };
        save(root, place.path, &text)?;
        paths.push(place.path);
    }
    paths.dedup();
    Ok(paths)
}

/// The number that a text begins with.
fn number(text: &str) -> &str {
    let end = text.find(|it: char| !it.is_ascii_digit() && it != '.').unwrap_or(text.len());
    &text[..end]
}

/// The text with other numbers behind each `before`.
fn replaced(text: &str, before: &str, new: &str) -> String {
    let mut parts = text.split(before);
    let mut written = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        written.push_str(before);
        written.push_str(new);
        written.push_str(&part[number(part).len()..]);
    }
    written
}

fn with_heading(changes: &str, new: Version) -> String {
    let (head, rest) = changes.split_once("\n## ").unwrap_or((changes, ""));
    format!("{head}\n## {new}, not released\n\n{NEW_HEADING}## {rest}")
}

fn read(root: &Path, path: &str) -> Result<String, VersionError> {
    let path = root.join(path);
    std::fs::read_to_string(&path).map_err(|source| VersionError::File { path, source })
}

fn save(root: &Path, path: &str, text: &str) -> Result<(), VersionError> {
    let path = root.join(path);
    std::fs::write(&path, text).map_err(|source| VersionError::File { path, source })
}
