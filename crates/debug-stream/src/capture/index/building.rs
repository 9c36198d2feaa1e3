//! Builds an index, event by event.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{
    CaptureIndex, Entry, EventPlace, Form, Gap, IndexError, IndexLimits, MAX_FORMS, MAX_GAPS,
    MAX_INDEXED_EVENTS, records,
};
use crate::capture::{CapturedEvent, Directory, Item, OpenError, Payload, safe_file};

/// An index that grows.
struct Builder {
    index: CaptureIndex,
    /// The forms of the index, to find one that is there already.
    numbers: HashMap<Arc<Form>, u32>,
    limits: IndexLimits,
}

/// Goes through a directory or a file.
pub(super) fn build(
    path: &Path,
    limits: IndexLimits,
    goes_on: &mut dyn FnMut() -> bool,
) -> Result<CaptureIndex, IndexError> {
    let cannot = |error| OpenError::Open(path.to_owned(), error);
    let index = CaptureIndex {
        file: None,
        entries: Vec::new(),
        forms: Vec::new(),
        gaps: Vec::new(),
        more_gaps: 0,
    };
    let mut builder = Builder { index, numbers: HashMap::new(), limits };
    if fs::metadata(path).map_err(cannot)?.is_dir() {
        let directory = Directory::open_while(path, goes_on).map_err(cannot)?;
        let mut directory = directory.ok_or(IndexError::Interrupted)?;
        // Each item reads a file.
        while let Some(item) = directory.next_item() {
            if !goes_on() {
                return Err(IndexError::Interrupted);
            }
            builder.add(item, None)?;
        }
    } else {
        let file = safe_file::open_following(path).map_err(cannot)?;
        let file = file.ok_or_else(|| OpenError::OtherKind(path.to_owned()))?;
        records::read(&file, goes_on, &mut |item, place| builder.add(item, Some(place)))?;
        builder.index.file = Some(file);
    }
    Ok(builder.index)
}

// === impl Builder ===

impl Builder {
    fn add(&mut self, item: Item, place: Option<EventPlace>) -> Result<(), IndexError> {
        let index = &mut self.index;
        let event = match item {
            Item::Event(event) => *event,
            item if index.gaps.len() < MAX_GAPS => {
                index.gaps.push(Gap { before: index.entries.len(), item });
                return Ok(());
            }
            _ => {
                index.more_gaps += 1;
                return Ok(());
            }
        };
        let max_events = self.limits.events.min(MAX_INDEXED_EVENTS);
        if index.entries.len() >= max_events {
            return Err(IndexError::TooManyEvents(max_events));
        }
        let place = place.unwrap_or_else(|| match event.payload {
            Payload::File(path) => EventPlace::File(PathBuf::into_boxed_path(path)),
            Payload::LeftOut(found) => EventPlace::Facts(found.map(Box::new)),
            Payload::Held(_) => EventPlace::Facts(None),
        });
        let CapturedEvent { kind, core, pipe, prefix, dtype, shape, .. } = event;
        let form = self.form(Form { kind, core, pipe, prefix, dtype, shape })?;
        self.index.entries.push(Entry {
            form,
            place,
            bytes: event.bytes,
            sequence: event.sequence,
            time_ns: event.time_ns,
            iteration: event.iteration,
        });
        Ok(())
    }

    fn form(&mut self, form: Form) -> Result<u32, IndexError> {
        if let Some(number) = self.numbers.get(&form) {
            return Ok(*number);
        }
        let forms = &mut self.index.forms;
        let max_forms = self.limits.forms.min(MAX_FORMS);
        if forms.len() >= max_forms {
            return Err(IndexError::TooManyForms(max_forms));
        }
        let number = u32::try_from(forms.len()).expect("MAX_FORMS is below 2^32");
        let form = Arc::new(form);
        forms.push(Arc::clone(&form));
        self.numbers.insert(form, number);
        Ok(number)
    }
}
