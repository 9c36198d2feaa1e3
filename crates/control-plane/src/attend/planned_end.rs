//! How the last life of an agent ended, kept in its state directory for the next one.
//!
//! A goodbye is lost while no coordinator listens. So a life that is asked to end leaves a mark, and the
//! next one says so when it registers. The mark is taken away before it does, so a killed agent leaves none,
//! and not before it can: what fails to start leaves the mark to the start that follows.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use tracing::warn;

use telltale_cluster::node::Incarnation;

/// The mark of one state directory, which this process has for itself.
#[derive(Debug)]
pub(super) struct PlannedEnd {
    path: PathBuf,
    /// The first of the lives in a row that were asked to end, this one included should it be.
    first: Incarnation,
}

impl PlannedEnd {
    /// Takes away the mark that was left in `state`: what this life may leave, and since which life every one
    /// was asked to end.
    pub(super) fn take(state: &Path, present: Incarnation) -> (Self, Option<Incarnation>) {
        let path = state.join("planned-end");
        let since = taken(&path).unwrap_or_else(|error| {
            let path = path.display();
            warn!(path = %path, "the mark of a planned end, {path}, cannot be taken: {error}");
            None
        });
        // One of a clock that was set back says nothing.
        let since = since.filter(|since| *since < present);
        (Self { path, first: since.unwrap_or(present) }, since)
    }

    /// Leaves the mark: this life was asked to end, or its job is over.
    pub(super) fn leave(&self) {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let written = options
            .open(&self.path)
            .and_then(|mut file| file.write_all(format!("{}\n", self.first.number()).as_bytes()));
        if let Err(error) = written {
            warn!(
                "cannot write {}: {error}; unless a coordinator hears that this agent ends, its \
                    next start counts as a failure",
                self.path.display()
            );
        }
    }
}

/// What a mark says, which is not there any more after this, whatever happens to the host.
fn taken(path: &Path) -> io::Result<Option<Incarnation>> {
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    fs::remove_file(path)?;
    if let Some(state) = path.parent() {
        File::open(state)?.sync_all()?;
    }
    // A line that is not whole was not written to its end.
    let number = text.strip_suffix('\n').and_then(|number| number.parse().ok());
    Ok(number.map(Incarnation::new))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_of_all_lives_in_a_row_that_were_asked_to_end() {
        let scratch = telltale_harness::Scratch::new();
        let life = Incarnation::new;
        let (first, since) = PlannedEnd::take(scratch.path(), life(10));
        assert_eq!(since, None);
        first.leave();
        let (second, since) = PlannedEnd::take(scratch.path(), life(11));
        assert_eq!(since, Some(life(10)));
        second.leave();
        let (_, since) = PlannedEnd::take(scratch.path(), life(12));
        assert_eq!(since, Some(life(10)));
        // That one was killed.
        let (fourth, since) = PlannedEnd::take(scratch.path(), life(13));
        assert_eq!(since, None);
        fourth.leave();
        let (_, since) = PlannedEnd::take(scratch.path(), life(13));
        assert_eq!(since, None, "the clock was set back");
    }

    #[test]
    fn what_is_no_mark_says_nothing() {
        let scratch = telltale_harness::Scratch::new();
        for text in ["", "12", "x\n", "-1\n", "99999999999999999999\n"] {
            fs::write(scratch.join("planned-end"), text).unwrap();
            let (_, since) = PlannedEnd::take(scratch.path(), Incarnation::new(99));
            assert_eq!(since, None, "{text:?}");
            assert!(!scratch.join("planned-end").exists());
        }
    }
}
