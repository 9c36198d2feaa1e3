//! A described kernel as one C text: its constants, the kernel API, its source.

use std::fs::{Metadata, OpenOptions};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use telltale_program_cache::{KernelDescriptor, KernelSource, OptimisationLevel};

use super::directives;
use super::source_files::SourceFiles;

/// What every kernel's source begins with.
pub(super) const KERNEL_API: &str =
    concat!(include_str!("kernel_api.h"), include_str!("kernel_print.h"));

/// How large a kernel's source may be.
const MAX_SOURCE_BYTES: u64 = 1 << 20;

/// What the source's own lines follow: their numbers begin there.
const LINE_MARKER: &str = "#line 1 \"";
/// As much of a line as is shown with an error.
const MAX_SHOWN_CHARS: usize = 160;

/// What is compiled: equal texts are the same kernel.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct KernelText {
    /// Everything after the kernel API, or the preprocessed whole. Bytes, for what is in a text or a
    /// comment of C need not be UTF-8, and each byte counts.
    pub(super) body: Vec<u8>,
    /// Includes are put in, and so is the kernel API.
    pub(super) is_expanded: bool,
    pub(super) optimisation: &'static str,
    /// Where includes in quotes are searched for: beside the kernel's file, then at the root of
    /// kernels. Both are empty if nothing is included, so that they do not matter.
    pub(super) directory: PathBuf,
    pub(super) root: PathBuf,
}

/// Why a kernel's source could not be put together.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KernelSourceError {
    /// The file cannot be read.
    #[error("cannot read its source {path}: give a path that exists, or the source itself")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The source is too large.
    #[error("its source has more than {MAX_SOURCE_BYTES} bytes: split it")]
    TooLarge,
    /// A name in `defines` or `named_compile_time_arguments` that C does not have.
    #[error("{field} has the name {name:?}, which is no C identifier")]
    Name {
        /// The field of the descriptor.
        field: &'static str,
        /// The name.
        name: String,
    },
    /// A define that does not end on its line.
    #[error("the define {name} stands for more than one line")]
    Lines {
        /// Its name.
        name: String,
    },
}

impl KernelText {
    /// The text of a kernel and the file that it is in, if any; a path that is not absolute starts
    /// at `root`.
    pub(crate) fn of(
        kernel: &KernelDescriptor,
        root: &Path,
    ) -> Result<(Self, SourceFiles), KernelSourceError> {
        let mut body = Vec::new();
        for (index, value) in kernel.compile_time_arguments.iter().enumerate() {
            put(&mut body, format_args!("#define telltale_compile_time_argument_{index} {value}u"));
        }
        let mut named: Vec<_> = kernel.named_compile_time_arguments.iter().collect();
        named.sort_unstable();
        for (name, value) in named {
            check_name("named_compile_time_arguments", name)?;
            put(&mut body, format_args!("#define telltale_named_argument_{name} {value}u"));
        }
        let mut defines: Vec<_> = kernel.defines.iter().collect();
        defines.sort_unstable();
        for (name, value) in defines {
            check_name("defines", name)?;
            if value.contains(['\n', '\r']) {
                return Err(KernelSourceError::Lines { name: name.to_string() });
            }
            put(&mut body, format_args!("#define {name} {value}"));
        }
        // What the compiler calls the source in its messages.
        let shown: String =
            kernel.name.chars().map(|one| if is_plain(one) { one } else { '_' }).collect();
        put(&mut body, format_args!("{LINE_MARKER}{shown}\""));
        let mut files = SourceFiles::default();
        let (mut directory, mut root) = (root.to_path_buf(), root.to_path_buf());
        match &kernel.source {
            KernelSource::Text(text) if text.len() as u64 > MAX_SOURCE_BYTES => {
                return Err(KernelSourceError::TooLarge);
            }
            KernelSource::Text(text) => body.extend_from_slice(text.as_bytes()),
            KernelSource::Path(path) => {
                let path = root.join(path.as_ref());
                let (metadata, text) = read(&path)?;
                body.extend_from_slice(&text);
                directory = path.parent().unwrap_or(&root).to_path_buf();
                files.add_read(path, &metadata, &text);
            }
        }
        let optimisation = level(kernel.optimisation_level);
        if !directives::may_include(&body) {
            (directory, root) = (PathBuf::new(), PathBuf::new());
        }
        Ok((Self { body, is_expanded: false, optimisation, directory, root }, files))
    }

    /// A compiler's messages with the lines of the source that errors name, which it cannot show: it reads no file.
    pub(super) fn with_lines(&self, messages: &str) -> String {
        let body = String::from_utf8_lossy(&self.body);
        let begins = body.find(LINE_MARKER).map(|at| &body[at + LINE_MARKER.len()..]);
        let named = begins.and_then(|rest| rest.split_once("\"\n"));
        let Some((name, source)) = named.filter(|_| !self.is_expanded) else {
            return messages.to_owned();
        };
        let mut shown = String::with_capacity(messages.len());
        for message in messages.lines() {
            shown.push_str(message);
            shown.push('\n');
            let place = message.strip_prefix(name).and_then(|rest| rest.strip_prefix(':'));
            let number = place.and_then(|place| place.split_once(':')?.0.parse::<usize>().ok());
            let line = number.and_then(|number| source.lines().nth(number.checked_sub(1)?));
            if let (Some(line), true) = (line, message.contains(" error: ")) {
                let line: String = line.chars().take(MAX_SHOWN_CHARS).collect();
                shown.push_str(&format!("{:5} | {line}\n", number.unwrap_or_default()));
            }
        }
        shown.trim_end().to_owned()
    }

    /// Whether other files may belong to it.
    pub(super) fn may_include(&self) -> bool {
        !self.is_expanded && directives::may_include(&self.body)
    }

    /// The same as a text that may include something: its own directory is this one.
    pub(super) fn in_directory(&self, directory: PathBuf) -> Self {
        Self { root: directory.clone(), directory, ..self.clone() }
    }

    /// The same with all that it includes.
    pub(super) fn expanded(&self, body: Vec<u8>) -> Self {
        let (directory, root) = (PathBuf::new(), PathBuf::new());
        Self { body, is_expanded: true, optimisation: self.optimisation, directory, root }
    }

    /// What stands for it in the key of a compiled kernel.
    pub(super) fn key(&self, identity: [u64; 2]) -> Vec<u8> {
        let mut key = Vec::with_capacity(self.body.len() + 32);
        key.extend_from_slice(&identity[0].to_le_bytes());
        key.extend_from_slice(&identity[1].to_le_bytes());
        key.extend_from_slice(self.optimisation.as_bytes());
        key.extend_from_slice(&[0, self.is_expanded.into()]);
        key.extend_from_slice(&self.body);
        key
    }
}

fn put(body: &mut Vec<u8>, line: std::fmt::Arguments<'_>) {
    // Writing to memory cannot fail.
    let _ = writeln!(body, "{line}");
}

fn is_plain(one: char) -> bool {
    one.is_ascii_alphanumeric() || " ._-/+:()".contains(one)
}

fn level(level: Option<OptimisationLevel>) -> &'static str {
    match level {
        None | Some(OptimisationLevel::O3) => "-O3",
        Some(OptimisationLevel::O0) => "-O0",
        Some(OptimisationLevel::O1) => "-O1",
        Some(OptimisationLevel::O2) => "-O2",
        Some(OptimisationLevel::Os) => "-Os",
    }
}

fn check_name(field: &'static str, name: &str) -> Result<(), KernelSourceError> {
    let mut bytes = name.bytes();
    let starts = bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_');
    if starts && bytes.all(|one| one.is_ascii_alphanumeric() || one == b'_') {
        return Ok(());
    }
    let name = name.chars().take(64).collect();
    Err(KernelSourceError::Name { field, name })
}

/// A file's text, and its metadata from before it was read.
fn read(path: &Path) -> Result<(Metadata, Vec<u8>), KernelSourceError> {
    let unreadable = |source| KernelSourceError::Unreadable { path: path.to_path_buf(), source };
    let mut text = Vec::new();
    // A pipe would keep its opener waiting, so what it is comes first.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)
        .map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(unreadable(io::Error::other("it is not a regular file")));
    }
    file.take(MAX_SOURCE_BYTES + 1).read_to_end(&mut text).map_err(unreadable)?;
    if text.len() as u64 > MAX_SOURCE_BYTES {
        return Err(KernelSourceError::TooLarge);
    }
    Ok((metadata, text))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use telltale_program_cache::{
        ComputeConfig, CoreCoord, KernelConfig, KernelDescriptor, KernelSource,
    };

    use super::{KernelSourceError, KernelText};

    fn kernel(defines: &[(&'static str, &'static str)]) -> KernelDescriptor {
        let mut kernel = KernelDescriptor::new(
            "double \"it\"",
            KernelSource::Text("KERNEL_MAIN {}\n".into()),
            CoreCoord::new(0, 0),
            KernelConfig::Compute(ComputeConfig::default()),
        );
        kernel.defines =
            defines.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        kernel
    }

    fn text(kernel: &KernelDescriptor) -> Result<KernelText, KernelSourceError> {
        KernelText::of(kernel, Path::new("/nowhere")).map(|(text, _)| text)
    }

    #[test]
    fn the_order_of_defines_does_not_matter_and_a_name_cannot_break_the_text() {
        let one = text(&kernel(&[("A", "1"), ("B", "2")])).unwrap();
        assert_eq!(one, text(&kernel(&[("B", "2"), ("A", "1")])).unwrap());
        let expected = "#define A 1\n#define B 2\n#line 1 \"double _it_\"\nKERNEL_MAIN {}\n";
        assert_eq!(one.body, expected.as_bytes());
    }

    #[test]
    fn errors_are_shown_with_the_lines_that_they_name() {
        let mut broken = kernel(&[("A", "1")]);
        broken.source = KernelSource::Text("KERNEL_MAIN {\n  x = 1;\n}".into());
        let text = text(&broken).unwrap();
        let messages = "double _it_: In function 'f':\ndouble _it_:2:3: error: no x\n\
                        double _it_:2:3: note: once\ndouble _it_:9:1: error: beyond";
        let shown = "double _it_: In function 'f':\ndouble _it_:2:3: error: no x\n    2 |   x = 1;\n\
                     double _it_:2:3: note: once\ndouble _it_:9:1: error: beyond";
        assert_eq!(text.with_lines(messages), shown);
        assert_eq!(text.expanded(text.body.clone()).with_lines(messages), messages);
    }

    #[test]
    fn what_is_no_c_is_refused_by_field() {
        for (defines, expected) in [
            (("1A", "1"), "defines has the name \"1A\""),
            (("", "1"), "defines has the name \"\""),
            (("A B", "1"), "defines has the name \"A B\""),
            (("A", "1\n#include \"x\""), "the define A stands for more than one line"),
        ] {
            let error = text(&kernel(&[defines])).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
        let mut unknown = kernel(&[]);
        unknown.source = KernelSource::Path("missing.c".into());
        let error = text(&unknown).unwrap_err().to_string();
        assert!(error.contains("/nowhere/missing.c"), "{error}");
    }

    #[test]
    fn a_source_that_is_a_pipe_is_refused_and_keeps_nobody_waiting() {
        let scratch = telltale_harness::Scratch::new();
        let pipe = scratch.join("kernel.c");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        let error = super::read(&pipe).unwrap_err();
        assert!(matches!(error, KernelSourceError::Unreadable { .. }), "{error}");
    }
}
