//! What NVML refuses about one GPU, for the source's report.

use std::collections::BTreeSet;

use telltale_schema::clock::Timestamp;
use telltale_schema::reading::{Absence, Reading};

use super::library::{Said, absence_of};
use super::question::Question;
use crate::report::SourceReport;

/// What is wrong with one GPU, each reason once: one that fell off the bus fails in every call.
pub(super) struct Complaints<'a> {
    subject: String,
    reported: BTreeSet<Absence>,
    report: &'a mut SourceReport,
}

// === impl Complaints ===

impl<'a> Complaints<'a> {
    pub(super) fn of(subject: String, report: &'a mut SourceReport) -> Self {
        Self { subject, reported: BTreeSet::new(), report }
    }

    /// The GPU is called so from now on.
    pub(super) fn rename(&mut self, subject: String) {
        self.subject = subject;
    }

    pub(super) fn has(&self, reason: Absence) -> bool {
        self.reported.contains(&reason)
    }

    pub(super) fn add(&mut self, reason: Absence, detail: impl Into<String>) {
        if self.reported.insert(reason) {
            self.report.error(self.subject.as_str(), reason, detail);
        }
    }

    /// What was said, as a reading at `now` of a plausible value.
    pub(super) fn reading<T: std::fmt::Debug>(
        &mut self,
        question: Question,
        said: Said<T>,
        now: Timestamp,
        is_plausible: impl FnOnce(&T) -> bool,
    ) -> Reading<T> {
        match said {
            Ok(value) => Reading::new(value, now).keep_if(is_plausible),
            Err(error) => {
                let reason = absence_of(&error);
                let is_news =
                    !matches!(reason, Absence::Unsupported | Absence::Permission | Absence::NotYet);
                if is_news {
                    self.add(reason, format!("NVML does not tell {}: {error}", question.words()));
                }
                Reading::absent(reason, error.to_string())
            }
        }
    }
}
