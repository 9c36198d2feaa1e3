//! `telltale events`: captured debug events, shown as they are or written in another form.

mod comparison;
mod conversion;
mod follow;
mod listing;
mod selection;
mod source;
mod summary;
mod tally;
mod target;
mod words;

use std::path::Path;

use telltale_debug_stream::capture::{Item, Unreadable};

use crate::arguments::EventsArguments;
use crate::exit::{self, Failure, Status};
use crate::interrupt::Interrupt;
use crate::output::StandardOutput;
pub(crate) use follow::{Follower, follow};
pub(crate) use listing::{describe, facts_heading};

use comparison::Comparison;
use conversion::Conversion;
use listing::EventPrinter;
use selection::{Last, Selection};
use source::Source;
use summary::EventSummary;
use tally::Tally;

/// What becomes of the items of a capture.
struct Events<'arguments> {
    selection: Selection<'arguments>,
    /// Until the end of what is there when it starts.
    last: Option<Last>,
    tally: Tally,
    reading: Reading<'arguments>,
}

/// What is made of them.
enum Reading<'arguments> {
    Listing(EventPrinter<'arguments>),
    Summary(EventSummary),
    Conversion(Box<Conversion>),
    Comparison(Box<Comparison>, &'arguments StandardOutput),
}

/// Runs the command.
pub(crate) fn run(arguments: &EventsArguments) -> Result<Status, Failure> {
    let output = StandardOutput::detect();
    if arguments.follow {
        let interrupt = Interrupt::listen().map_err(|error| Failure::because(&error))?;
        let mut events = Events::begin(arguments, &output)?;
        follow::run(&arguments.capture, &interrupt, &mut events)?;
        return events.finish(&arguments.capture, &output);
    }
    // A mere reader may be ended at any time.
    let interrupt = arguments.conversion.convert.map(|_| Interrupt::listen()).transpose();
    let interrupt = interrupt.map_err(|error| Failure::because(&error))?;
    let mut source = Source::open(&arguments.capture, interrupt.as_ref())?;
    let mut events = Events::begin(arguments, &output)?;
    events.take_all(&mut source, interrupt.as_ref())?;
    events.finish(&arguments.capture, &output)
}

// === impl Events ===

impl<'arguments> Events<'arguments> {
    fn begin(
        arguments: &'arguments EventsArguments,
        output: &'arguments StandardOutput,
    ) -> Result<Self, Failure> {
        let (conversion, shown) = (&arguments.conversion, &arguments.shown);
        let reading = match (conversion.convert, &conversion.output) {
            (Some(form), Some(out)) => {
                let conversion = Conversion::begin(form, out, conversion.force, shown.style())?;
                Reading::Conversion(Box::new(conversion))
            }
            _ if let Some(other) = &arguments.comparison.diff => {
                let tolerance = arguments.comparison.tolerance;
                let wanted = &arguments.wanted;
                let comparison = Comparison::begin(other, wanted, tolerance, shown.json)?;
                Reading::Comparison(Box::new(comparison), output)
            }
            _ if shown.summary => Reading::Summary(EventSummary::new(shown.json)),
            _ => Reading::Listing(EventPrinter::new(shown, output)),
        };
        Ok(Self {
            selection: Selection::new(&arguments.wanted),
            last: arguments.wanted.last.map(Last::new),
            tally: Tally::default(),
            reading,
        })
    }

    /// Takes what there is, to its end.
    fn take_all(
        &mut self,
        source: &mut Source<'_>,
        interrupt: Option<&Interrupt>,
    ) -> Result<(), Failure> {
        let check = || match interrupt {
            Some(interrupt) if interrupt.asked() => {
                Err(Failure::Message(String::from("interrupted; nothing was written")))
            }
            _ => Ok(()),
        };
        while let Some(item) = source.next_item()? {
            check()?;
            self.take(item)?;
        }
        check()?;
        while let Some(item) = source.next_left() {
            self.take(item)?;
        }
        Ok(())
    }

    /// Takes the next item of the capture.
    fn take(&mut self, item: Item) -> Result<(), Failure> {
        if !self.selection.wants(&item) {
            return Ok(());
        }
        match &mut self.last {
            Some(last) => {
                last.push(item);
                Ok(())
            }
            None => self.use_item(item),
        }
    }

    /// Shows what was held back, and from now on everything at once.
    fn catch_up(&mut self) -> Result<(), Failure> {
        if let Some(last) = self.last.take() {
            self.tally.not_held = last.too_many;
            for item in last.into_items() {
                self.use_item(item)?;
            }
        }
        self.flush()
    }

    fn flush(&mut self) -> Result<(), Failure> {
        match &mut self.reading {
            Reading::Listing(listing) => listing.flush(),
            Reading::Summary(_) | Reading::Conversion(_) | Reading::Comparison(..) => Ok(()),
        }
    }

    fn use_item(&mut self, item: Item) -> Result<(), Failure> {
        let item = loaded(item);
        self.tally.count(&item);
        let started_ns = self.selection.started_ns;
        match &mut self.reading {
            Reading::Listing(listing) => listing.take(&item, started_ns),
            Reading::Summary(summary) => {
                summary.take(&item);
                Ok(())
            }
            Reading::Conversion(conversion) => conversion.take(&item, started_ns),
            Reading::Comparison(comparison, output) => match comparison.take(&item) {
                Some(line) => Ok(output.print(&line)?),
                None => Ok(()),
            },
        }
    }

    fn finish(mut self, capture: &Path, output: &StandardOutput) -> Result<Status, Failure> {
        self.catch_up()?;
        if self.tally.events + self.tally.unreadable == 0 && !self.selection.wants_none() {
            self.report_nothing(capture);
        }
        let mut is_partial = false;
        match self.reading {
            Reading::Listing(_) => {}
            Reading::Summary(summary) => {
                let (started_ns, width) = (self.selection.started_ns, output.style().width);
                output.print(&summary.page(&self.tally, started_ns, width))?;
            }
            Reading::Conversion(conversion) => is_partial = conversion.finish(output)? > 0,
            Reading::Comparison(mut comparison, output) => {
                output.print(&comparison.end())?;
                comparison.tally.tell();
                is_partial =
                    comparison.found_differences() || comparison.tally.status() != Status::Fine;
            }
        }
        self.tally.tell();
        Ok(self.tally.status().after(is_partial))
    }

    /// A wrong path must not look like a program that printed nothing.
    fn report_nothing(&self, capture: &Path) {
        let capture = source::name(capture);
        exit::tell(&match self.selection.seen {
            0 => format!("telltale: there is no event in {capture}"),
            seen => {
                let events = words::plural(seen, "event");
                format!("telltale: {capture} has {events}, of which none is as wanted")
            }
        });
    }
}

/// The item with its data, which may be in a file that cannot be read.
fn loaded(mut item: Item) -> Item {
    if let Item::Event(event) = &mut item
        && let Err(error) = event.load()
    {
        let place = words::name_of(event);
        return Item::Unreadable(Unreadable { place, reason: format!("its data: {error}") });
    }
    item
}
