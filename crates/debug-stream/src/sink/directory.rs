//! The default consumer: one directory for each event below a chosen one, and a line for each to
//! the stream that it names. A stranger's prefix becomes one directory's name, never a path.
//!
//! An event's directory gets its number when all its files are in it, so what has a number is
//! whole. Nothing that has one is ever written to again, whatever made it.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::BuildHasher;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::{Fidelity, lines, raw};
use crate::{Event, NextEvent, Tensor, TextStyle, format_tensor};

/// The longest name that is kept whole; file systems take 255 bytes.
const MAX_NAME_BYTES: usize = 200;
/// For how many prefixes and cores the next number is remembered; it is looked up again after that.
const MAX_REMEMBERED: usize = 65_536;
/// Numbers of so many digits are taken for ours when a directory is scanned.
const MAX_NUMBER_DIGITS: usize = 15;
/// Numbers tried for one event when other processes write into the same directory.
const MAX_NUMBERS_TRIED: u32 = 1_000;

/// What a default consumer did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Events that it was given.
    pub events: u64,
    /// Events that were lost before they could be.
    pub lost: u64,
    /// Events of undefined types.
    pub unknown: u64,
    /// Tensors whose parts do not fit together.
    pub malformed: u64,
    /// Events whose files could not be written.
    pub unsaved: u64,
    /// Lines that could not be written.
    pub unprinted: u64,
}

/// What is saved of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Saved {
    /// Its bytes and, for a tensor, its numbers as text.
    #[default]
    BytesAndText,
    /// Its bytes alone.
    Bytes,
}

/// What could not be done with an event.
#[derive(Debug, thiserror::Error)]
pub enum TakeError {
    /// Its files could not be written; its line was.
    #[error("cannot save a debug event in {}", directory.display())]
    Unsaved {
        /// Where it should have gone.
        directory: PathBuf,
        /// Why it could not.
        #[source]
        source: io::Error,
    },
    /// Its line could not be written.
    #[error("cannot print a debug event")]
    Unprinted(#[source] io::Error),
}

/// Writes `<directory>/<prefix>/core_<n>/<iteration>/` for each event, with `metadata.txt`,
/// `tensor_data.bin` and, for tensors, `formatted_tensor.txt`. The iteration goes on from what the
/// directory holds.
#[derive(Debug)]
pub struct DefaultConsumer {
    directory: PathBuf,
    saved: Saved,
    style: TextStyle,
    /// The name under which an event's directory is filled, different for each consumer.
    unfinished: String,
    next_numbers: HashMap<(u32, String), u64>,
    totals: Totals,
}

// === impl DefaultConsumer ===

impl DefaultConsumer {
    /// Writes below this directory, which is made when the first event comes.
    #[must_use]
    pub fn new(directory: PathBuf, saved: Saved, style: TextStyle) -> Self {
        let random = RandomState::new().hash_one(0);
        Self {
            directory,
            saved,
            style,
            unfinished: format!(".unfinished-{random:016x}"),
            next_numbers: HashMap::new(),
            totals: Totals::default(),
        }
    }

    /// Writes what is next: the files, then the line to `out` or, if the event's pipe is not 0, to
    /// `err`. The event's iteration becomes the number of its directory.
    ///
    /// # Errors
    /// When the files or the line cannot be written; either is counted, and of both the files are
    /// reported.
    pub fn take(
        &mut self,
        mut next: NextEvent,
        out: &mut impl Write,
        err: &mut impl Write,
    ) -> Result<(), TakeError> {
        let saved = match &mut next {
            NextEvent::Lost(lost) => {
                self.totals.lost += lost.sum();
                Ok(())
            }
            NextEvent::Event(event) => {
                self.totals.events += 1;
                self.save(event)
            }
        };
        self.totals.unsaved += u64::from(saved.is_err());
        let printed = self.print(&next, out, err);
        self.totals.unprinted += u64::from(printed.is_err());
        saved.and(printed.map_err(TakeError::Unprinted))
    }

    /// What it did so far.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.totals
    }

    fn print(
        &mut self,
        next: &NextEvent,
        out: &mut impl Write,
        err: &mut impl Write,
    ) -> io::Result<()> {
        let mut line = Vec::new();
        match lines::write_text(&mut line, next, self.style)? {
            Fidelity::Whole => {}
            Fidelity::UnknownType => self.totals.unknown += 1,
            Fidelity::Malformed => self.totals.malformed += 1,
        }
        let is_error = matches!(next, NextEvent::Event(event) if event.pipe != 0);
        if is_error { err.write_all(&line) } else { out.write_all(&line) }
    }

    fn save(&mut self, event: &mut Event) -> Result<(), TakeError> {
        let place =
            self.directory.join(directory_name(&event.prefix)).join(format!("core_{}", event.core));
        let unfinished = place.join(&self.unfinished);
        let number = self.number(event, &place);
        let saved = self.save_as(event, number, &place, &unfinished);
        // A number that could not be written is used up: its gap reports the event.
        let last = *saved.as_ref().unwrap_or(&number);
        if let Some(next) = self.next_numbers.get_mut(&(event.core, event.prefix.clone())) {
            *next = last + 1;
        }
        saved.map(|_| ()).map_err(|source| {
            // What a full disk let through takes room away from what comes next.
            let _ = fs::remove_dir_all(&unfinished);
            TakeError::Unsaved { directory: place, source }
        })
    }

    /// The number of the next event of this core and prefix.
    fn number(&mut self, event: &Event, place: &Path) -> u64 {
        if self.next_numbers.len() >= MAX_REMEMBERED {
            self.next_numbers.clear();
        }
        let key = (event.core, event.prefix.clone());
        *self.next_numbers.entry(key).or_insert_with(|| number_after(place))
    }

    /// Saves an event under the first free number from `number` on, which is returned.
    fn save_as(
        &self,
        event: &mut Event,
        number: u64,
        place: &Path,
        unfinished: &Path,
    ) -> io::Result<u64> {
        make_directory(unfinished, place)?;
        event.iteration = Some(number);
        fs::write(unfinished.join("tensor_data.bin"), &event.data)?;
        if self.saved == Saved::BytesAndText
            && let Ok(tensor) = Tensor::of(event)
        {
            let mut text = format_tensor(&tensor, self.style);
            text.push('\n');
            fs::write(unfinished.join("formatted_tensor.txt"), text)?;
        }
        let mut refused = None;
        for number in (number..).take(usize::try_from(MAX_NUMBERS_TRIED).unwrap_or(usize::MAX)) {
            event.iteration = Some(number);
            let mut metadata = Vec::new();
            raw::write_metadata(&mut metadata, event)?;
            fs::write(unfinished.join("metadata.txt"), metadata)?;
            match fs::rename(unfinished, place.join(number.to_string())) {
                Ok(()) => return Ok(number),
                Err(error) if is_taken(&error) => refused = Some(error),
                Err(error) => return Err(error),
            }
        }
        Err(refused.unwrap_or_else(|| ErrorKind::AlreadyExists.into()))
    }
}

/// Makes an empty directory, and those above it if need be.
fn make_directory(unfinished: &Path, place: &Path) -> io::Result<()> {
    match fs::create_dir(unfinished) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            fs::create_dir_all(place)?;
            fs::create_dir(unfinished)
        }
        // Left by an event that could not be saved and could not be removed either.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            fs::remove_dir_all(unfinished)?;
            fs::create_dir(unfinished)
        }
        outcome => outcome,
    }
}

/// Whether a directory could not get its name because there is something under it.
fn is_taken(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::AlreadyExists | ErrorKind::DirectoryNotEmpty | ErrorKind::NotADirectory
    )
}

/// One more than the largest number in a directory; 0 if there is none.
fn number_after(place: &Path) -> u64 {
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| {
        let name = entry.file_name();
        let name = name.to_str()?;
        let is_ours = name.len() <= MAX_NUMBER_DIGITS && name.bytes().all(|b| b.is_ascii_digit());
        if is_ours { name.parse::<u64>().ok() } else { None }
    });
    numbers.max().map_or(0, |last| last + 1)
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
