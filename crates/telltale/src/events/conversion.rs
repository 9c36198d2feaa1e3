//! Events written in another form: one file of all, or a directory with a file for each tensor.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use telltale_debug_stream::capture::{
    CapturedEvent, Item, NoTensor, write_event_file_start, write_event_record, write_item_line,
};
use telltale_debug_stream::sink::{directory_name, write_npy, write_safetensors};
use telltale_debug_stream::{Tensor, TextStyle};
use telltale_schema::quantity::count;

use super::listing::Rows;
use super::source::STANDARD_INPUT;
use super::target::{NewDirectory, cannot_write};
use super::words::plural;
use crate::arguments::EventFormat;
use crate::exit::{self, Failure};
use crate::new_file::NewFile;
use crate::output::StandardOutput;

/// How often progress is shown on a terminal.
const TOLD_EVERY: Duration = Duration::from_millis(250);

/// Writes events into files.
pub(super) struct Conversion {
    form: EventFormat,
    target: ConversionTarget,
    wanted: PathBuf,
    rows: Rows,
    /// When progress was last shown on a terminal.
    reported_at: Option<Instant>,
    has_reported: bool,
    written: u64,
    no_tensors: u64,
    without_numbers: u64,
    malformed: u64,
}

enum ConversionTarget {
    StandardOutput(BufWriter<Stdout>),
    File(NewFile),
    Directory(NewDirectory),
}

impl Conversion {
    /// Begins to write.
    pub(super) fn begin(
        form: EventFormat,
        out: &Path,
        replaces: bool,
        style: TextStyle,
    ) -> Result<Self, Failure> {
        let is_directory = matches!(form, EventFormat::Npy | EventFormat::Safetensors);
        let mut target = if is_directory {
            ConversionTarget::Directory(NewDirectory::begin(out, replaces)?)
        } else if out.as_os_str() == STANDARD_INPUT {
            ConversionTarget::StandardOutput(BufWriter::new(io::stdout()))
        } else {
            let file = NewFile::begin(out, replaces);
            ConversionTarget::File(file.map_err(|error| cannot_write(out, &error))?)
        };
        let rows = Rows::new(Some(style), true, None);
        let started = match form {
            EventFormat::Raw => target.put(|out| write_event_file_start(out)),
            EventFormat::Text => target.put(|out| out.write_all(rows.heading().as_bytes())),
            EventFormat::Npy | EventFormat::Safetensors | EventFormat::Jsonl => Ok(()),
        };
        let conversion = Self {
            form,
            target,
            wanted: out.to_owned(),
            rows,
            reported_at: io::stderr().is_terminal().then(Instant::now),
            has_reported: false,
            written: 0,
            no_tensors: 0,
            without_numbers: 0,
            malformed: 0,
        };
        started.map_err(|error| conversion.cannot(&error))?;
        Ok(conversion)
    }

    /// Writes an item.
    pub(super) fn take(&mut self, item: &Item, started_ns: Option<u64>) -> Result<(), Failure> {
        let outcome = match self.form {
            EventFormat::Raw => self.target.put(|out| write_event_record(out, item)),
            EventFormat::Jsonl => {
                self.target.put(|out| write_item_line(out, item, Some(usize::MAX)))
            }
            EventFormat::Text => {
                let row = self.rows.row(item, started_ns);
                self.target.put(|out| out.write_all(row.as_bytes()))
            }
            EventFormat::Npy | EventFormat::Safetensors => self.tensor_file(item),
        };
        outcome.map_err(|error| self.cannot(&error))?;
        if let (Item::Event(event), false) = (item, self.has_directory()) {
            self.written += 1;
            // Raw bytes are all there is of it; of lines of JSON some have no numbers.
            let is_left_out = event.data().is_none() && self.form != EventFormat::Text;
            self.without_numbers += u64::from(is_left_out);
        }
        self.report_progress();
        Ok(())
    }

    /// Gives the files their names, says what was done, and how many events could not be written.
    pub(super) fn finish(mut self, output: &StandardOutput) -> Result<u64, Failure> {
        self.end_progress();
        let words = self.words();
        match self.target {
            ConversionTarget::StandardOutput(mut out) => {
                out.flush()?;
                exit::tell(&words);
            }
            ConversionTarget::File(file) => {
                file.finish().map_err(|error| cannot_write(&self.wanted, &error))?;
                output.print(&words)?;
            }
            ConversionTarget::Directory(directory) => {
                directory.finish()?;
                output.print(&words)?;
            }
        }
        Ok(self.without_numbers + self.malformed)
    }

    fn words(&self) -> String {
        let events = if self.has_directory() { "tensor" } else { "event" };
        let place = self.wanted.to_string_lossy();
        let place = telltale_schema::text::printable(&place);
        let mut words = format!("{} written to {place}\n", plural(self.written, events));
        let without = match self.form {
            EventFormat::Npy | EventFormat::Safetensors => {
                "left out: the capture does not have their numbers"
            }
            _ => "without data: the capture does not have it",
        };
        for (number, what) in [
            (self.no_tensors, "left out: they are no tensors"),
            (self.malformed, "left out: they are malformed"),
            (self.without_numbers, without),
        ] {
            if number > 0 {
                words.push_str(&format!("{} {what}\n", count(number)));
            }
        }
        words
    }

    fn has_directory(&self) -> bool {
        matches!(self.target, ConversionTarget::Directory(_))
    }

    fn cannot(&self, error: &io::Error) -> Failure {
        match self.target {
            ConversionTarget::StandardOutput(_) => {
                Failure::from(io::Error::new(error.kind(), error.to_string()))
            }
            ConversionTarget::File(_) | ConversionTarget::Directory(_) => {
                cannot_write(&self.wanted, error)
            }
        }
    }

    fn tensor_file(&mut self, item: &Item) -> io::Result<()> {
        let (Item::Event(event), ConversionTarget::Directory(directory)) = (item, &self.target)
        else {
            return Ok(());
        };
        let tensor = match event.tensor() {
            Ok(tensor) => tensor,
            Err(reason) => {
                match reason {
                    NoTensor::OtherKind => self.no_tensors += 1,
                    NoTensor::LeftOut => self.without_numbers += 1,
                    NoTensor::Malformed(_) => self.malformed += 1,
                }
                return Ok(());
            }
        };
        let out = new_file(directory.path(), event, self.extension(), self.written)?;
        let mut out = BufWriter::new(out);
        self.put_tensor(&mut out, event, &tensor)?;
        out.flush()?;
        self.written += 1;
        Ok(())
    }

    fn put_tensor(
        &self,
        out: &mut impl Write,
        event: &CapturedEvent,
        tensor: &Tensor<'_>,
    ) -> io::Result<()> {
        match self.form {
            EventFormat::Safetensors => write_safetensors(out, &event.prefix, tensor),
            _ => write_npy(out, tensor),
        }
    }

    fn extension(&self) -> &'static str {
        match self.form {
            EventFormat::Safetensors => "safetensors",
            _ => "npy",
        }
    }

    fn report_progress(&mut self) {
        if self.reported_at.is_none_or(|reported_at| reported_at.elapsed() < TOLD_EVERY) {
            return;
        }
        // A terminal that has gone needs no output.
        let _ = write!(io::stderr(), "\r{} so far", plural(self.written, "event"));
        (self.reported_at, self.has_reported) = (Some(Instant::now()), true);
    }

    fn end_progress(&mut self) {
        if self.has_reported {
            let _ = write!(io::stderr(), "\r\x1b[K");
            self.has_reported = false;
        }
    }
}

impl ConversionTarget {
    /// Writes into the one file that there is.
    fn put(
        &mut self,
        write: impl FnOnce(&mut Box<dyn Write + '_>) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut out: Box<dyn Write + '_> = match self {
            Self::StandardOutput(out) => Box::new(out),
            Self::File(file) => Box::new(file),
            Self::Directory(_) => return Ok(()),
        };
        write(&mut out)
    }
}

/// Makes the file of an event: `<prefix>/core_<n>/<iteration>`, with a number of its own where
/// that is not known or there is one already.
fn new_file(
    directory: &Path,
    event: &CapturedEvent,
    extension: &str,
    number: u64,
) -> io::Result<File> {
    let core = event.core.map_or_else(|| String::from("unknown"), |core| core.to_string());
    let place = directory.join(directory_name(&event.prefix)).join(format!("core_{core}"));
    fs::create_dir_all(&place)?;
    let name = match (event.iteration, event.sequence) {
        (Some(iteration), _) => iteration.to_string(),
        (None, Some(sequence)) => format!("sequence_{sequence}"),
        (None, None) => format!("event_{number}"),
    };
    let create =
        |name: String| OpenOptions::new().write(true).create_new(true).open(place.join(name));
    match create(format!("{name}.{extension}")) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            create(format!("{name}-event_{number}.{extension}"))
        }
        outcome => outcome,
    }
}
