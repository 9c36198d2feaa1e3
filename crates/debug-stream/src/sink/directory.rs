//! The default consumer: one directory for each event below a chosen one, and a line for each to
//! the stream that it names. A stranger's prefix becomes one directory's name, never a path.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::{Shown, lines, raw};
use crate::{Event, Next, Tensor, TextStyle, format_tensor};

/// The longest name that is kept whole; file systems take 255 bytes.
const MAX_NAME_BYTES: usize = 200;

/// What a default consumer did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Events that it was given.
    pub events: u64,
    /// Events that were lost before they could be.
    pub lost: u64,
    /// Events of types that nobody has defined.
    pub unknown: u64,
    /// Tensors whose parts do not fit together.
    pub malformed: u64,
    /// Events whose files could not be written.
    pub unwritten: u64,
}

/// Writes `<directory>/<prefix>/core_<n>/<iteration>/` for each event, with `metadata.txt`,
/// `tensor_data.bin` and, for tensors, `formatted_tensor.txt`.
#[derive(Debug)]
pub struct DefaultConsumer {
    directory: PathBuf,
    style: TextStyle,
    totals: Totals,
}

// === impl DefaultConsumer ===

impl DefaultConsumer {
    /// Writes below this directory, which is made when the first event comes.
    #[must_use]
    pub fn new(directory: PathBuf, style: TextStyle) -> Self {
        Self { directory, style, totals: Totals::default() }
    }

    /// Writes what is next: the files, then the line to `out` or, if the event's pipe is not 0, to
    /// `err`. Files that cannot be written are counted and told of in the line.
    ///
    /// # Errors
    /// When the line cannot be written.
    pub fn take(
        &mut self,
        next: &Next,
        out: &mut impl Write,
        err: &mut impl Write,
    ) -> io::Result<()> {
        let mut line = Vec::new();
        let mut is_error = false;
        match next {
            Next::Lost(lost) => self.totals.lost += lost.sum(),
            Next::Event(event) => {
                self.totals.events += 1;
                is_error = event.pipe != 0;
                if let Err(error) = self.save(event) {
                    self.totals.unwritten += 1;
                    writeln!(line, "cannot save the event below: {error}")?;
                }
            }
        }
        match lines::write_text(&mut line, next, self.style)? {
            Shown::Whole => {}
            Shown::UnknownType => self.totals.unknown += 1,
            Shown::Malformed => self.totals.malformed += 1,
        }
        if is_error { err.write_all(&line) } else { out.write_all(&line) }
    }

    /// What it did so far.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Where an event's files go. Without an iteration, its sequence number tells it apart.
    #[must_use]
    pub fn directory_of(&self, event: &Event) -> PathBuf {
        let last = match event.iteration {
            Some(iteration) => iteration.to_string(),
            None => format!("sequence_{}", event.sequence),
        };
        self.directory
            .join(directory_name(&event.prefix))
            .join(format!("core_{}", event.core))
            .join(last)
    }

    fn save(&self, event: &Event) -> io::Result<()> {
        let directory = self.directory_of(event);
        fs::create_dir_all(&directory)?;
        let mut metadata = BufWriter::new(File::create(directory.join("metadata.txt"))?);
        raw::write_metadata(&mut metadata, event)?;
        metadata.into_inner().map_err(io::IntoInnerError::into_error)?;
        fs::write(directory.join("tensor_data.bin"), &event.data)?;
        save_text(&directory, event, self.style)
    }
}

fn save_text(directory: &Path, event: &Event, style: TextStyle) -> io::Result<()> {
    let Ok(tensor) = Tensor::of(event) else { return Ok(()) };
    let mut text = format_tensor(&tensor, style);
    text.push('\n');
    fs::write(directory.join("formatted_tensor.txt"), text)
}

/// The name of a prefix's directory: one component of a path, different for different prefixes.
/// What could leave the directory, hide, or steer a terminal becomes `%` and two hexadecimal
/// digits for each byte; what is too long ends in a hash of the whole.
#[must_use]
pub fn directory_name(prefix: &str) -> String {
    let mut name = String::new();
    for (position, character) in prefix.char_indices() {
        let plain = character.is_alphanumeric()
            || matches!(character, '_' | '-' | '+' | '=' | ',' | ' ' | '(' | ')' | '[' | ']' | '#')
            || (character == '.' && position > 0);
        if plain {
            name.push(character);
        } else {
            let mut bytes = [0; 4];
            for byte in character.encode_utf8(&mut bytes).bytes() {
                name.push_str(&format!("%{byte:02x}"));
            }
        }
    }
    if name.is_empty() {
        // No prefix gives this name otherwise.
        return "%".to_owned();
    }
    if name.len() > MAX_NAME_BYTES {
        let kept = name.floor_char_boundary(MAX_NAME_BYTES);
        // '%' with no digits behind it: no short prefix gives such a name.
        name = format!("{}%-{:016x}", &name[..kept], hash(prefix));
    }
    name
}

/// FNV-1a, 64 bits: the same on every machine and in every version.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
