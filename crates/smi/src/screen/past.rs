//! Looking back: a past moment is shown until the user returns with the present. Who
//! drives the view finds the moments.

use std::sync::Arc;

use telltale_schema::clock::Timestamp;
use telltale_schema::snapshot::Snapshot;

use super::Screen;
use super::event::{Action, PressedKey};

/// Steps of a long stride.
pub(super) const STRIDE: u64 = 60;
/// The least step, however often the view looks.
const LEAST_STEP_NS: u64 = 1_000_000_000;

/// The past that is shown.
#[derive(Debug, Clone)]
pub(super) struct Past {
    /// The moment that was asked for last, from which the next step goes.
    pub(super) sought: Timestamp,
    /// The machine at that moment, or at the one before while this is not known yet.
    pub(super) snapshot: Option<Arc<Snapshot>>,
}

impl Screen {
    /// Shows what was found for a moment that was asked for.
    pub fn show_past(&mut self, sought: Timestamp, snapshot: Arc<Snapshot>) {
        let Some(past) = &mut self.view.past else { return };
        // If the user has gone further meanwhile, that is shown.
        if past.sought == sought {
            past.snapshot = Some(snapshot);
            self.view.select();
        }
    }

    /// Goes on with the present, since the past cannot be had, and says why.
    pub fn refuse_past(&mut self, why: impl Into<String>) {
        self.go_on();
        self.tell(why);
    }

    /// What a key does to the time that is shown; none for other keys.
    pub(super) fn key_in_time(&mut self, key: PressedKey) -> Option<Option<Action>> {
        if let Some(action) = self.view.key_in_recording(key) {
            return Some(Some(action));
        }
        let (back, steps) = match key {
            PressedKey::Char('[') => (true, 1),
            PressedKey::Char(']') => (false, 1),
            PressedKey::Char('{') => (true, STRIDE),
            PressedKey::Char('}') => (false, STRIDE),
            PressedKey::Char('p') => {
                self.go_on();
                return Some(None);
            }
            _ => return None,
        };
        Some(self.step_in_time(back, steps))
    }

    fn step_in_time(&mut self, back: bool, steps: u64) -> Option<Action> {
        if self.view.fleet.is_some() {
            self.tell("the past is that of one machine: open `telltale top` there");
            return None;
        }
        let newest = self.view.snapshot.as_ref()?.taken_at;
        let from = self.view.past.as_ref().map_or(newest, |past| past.sought);
        let period_ns = u64::try_from(self.view.terms.period.as_nanos()).unwrap_or(u64::MAX);
        let span_ns = period_ns.max(LEAST_STEP_NS).saturating_mul(steps);
        let sought = Timestamp(match back {
            true => from.0.saturating_sub(span_ns),
            false => from.0.saturating_add(span_ns),
        });
        if sought >= newest {
            self.go_on();
            return None;
        }
        let snapshot = self.view.past.take().and_then(|past| past.snapshot);
        self.view.past = Some(Past { sought, snapshot });
        Some(Action::ShowMoment(sought))
    }

    fn go_on(&mut self) {
        if self.view.past.take().is_some() {
            self.view.select();
        }
    }
}
