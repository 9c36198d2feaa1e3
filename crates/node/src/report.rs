//! How a source did: its errors, of which a bounded number is kept, and how long it took.

use telltale_schema::clock::Clock;
use telltale_schema::reading::Absence;
use telltale_schema::snapshot::{SourceError, SourceStatus};

/// Errors of one source that a snapshot carries; the rest is counted.
pub(crate) const MAX_ERRORS: usize = 64;

/// The longest detail of one error, in bytes.
const MAX_DETAIL_BYTES: usize = 512;

/// Collects what one source could not read.
#[derive(Debug, Default)]
pub(crate) struct Report {
    errors: Vec<SourceError>,
    dropped: u64,
}

impl Report {
    /// Notes one thing that could not be read.
    pub(crate) fn error(
        &mut self,
        subject: impl Into<String>,
        reason: Absence,
        detail: impl Into<String>,
    ) {
        if self.errors.len() == MAX_ERRORS {
            self.dropped += 1;
            return;
        }
        let (mut subject, mut detail) = (subject.into(), detail.into());
        shorten(&mut subject);
        shorten(&mut detail);
        self.errors.push(SourceError { subject, reason, detail });
    }

    /// The errors alone.
    pub(crate) fn into_errors(self) -> Vec<SourceError> {
        self.errors
    }

    /// The status of the source `name`, which began at `started_ns` of `clock`.
    pub(crate) fn finish(self, name: &str, clock: &dyn Clock, started_ns: u64) -> SourceStatus {
        SourceStatus {
            name: name.to_owned(),
            duration_ns: clock.monotonic_ns().saturating_sub(started_ns),
            errors: self.errors,
            errors_dropped: self.dropped,
        }
    }
}

fn shorten(text: &mut String) {
    if text.len() > MAX_DETAIL_BYTES {
        let mut end = MAX_DETAIL_BYTES;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_DETAIL_BYTES, MAX_ERRORS, Report};
    use telltale_schema::clock::ManualClock;
    use telltale_schema::reading::Absence;

    #[test]
    fn errors_are_bounded_and_the_rest_is_counted() {
        let mut report = Report::default();
        for _ in 0..MAX_ERRORS + 5 {
            report.error("a", Absence::Failed, "é".repeat(MAX_DETAIL_BYTES));
        }
        let clock = ManualClock::default();
        clock.advance_ns(7);
        let status = report.finish("test", &clock, 3);
        assert_eq!((status.errors.len(), status.errors_dropped), (MAX_ERRORS, 5));
        assert_eq!(status.errors[0].detail.len(), MAX_DETAIL_BYTES);
        assert_eq!(status.duration_ns, 4);
    }
}
