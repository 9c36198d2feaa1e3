//! Looking back: a past moment is shown until the view is told to go on with the present. Who
//! drives the view finds the moments.

use std::sync::Arc;

use telltale_schema::clock::Timestamp;
use telltale_schema::quantity;
use telltale_schema::snapshot::Snapshot;

use super::Screen;
use super::event::{Action, Key};

/// Steps of a long stride.
pub(super) const STRIDE: u64 = 60;
/// The least step, however often the view looks.
const LEAST_STEP_NS: u64 = 1_000_000_000;

/// The past that is looked at.
#[derive(Debug, Clone)]
pub(super) struct Past {
    /// The moment that was asked for last, from which the next step goes.
    sought: Timestamp,
    /// The machine at that moment, or at the one before while this is not known yet.
    snapshot: Option<Arc<Snapshot>>,
}

impl Screen {
    /// Shows what was found for a moment that was asked for.
    pub fn show_past(&mut self, sought: Timestamp, snapshot: Arc<Snapshot>) {
        let Some(past) = &mut self.past else { return };
        // Whoever has gone further meanwhile is shown that.
        if past.sought == sought {
            past.snapshot = Some(snapshot);
            self.select();
        }
    }

    /// Goes on with the present, since the past cannot be had, and says why.
    pub fn refuse_past(&mut self, why: impl Into<String>) {
        self.go_on();
        self.tell(why);
    }

    /// What a key does to the time that is shown; none for other keys.
    pub(super) fn key_in_time(&mut self, key: Key) -> Option<Option<Action>> {
        if let Some(action) = self.key_in_recording(key) {
            return Some(Some(action));
        }
        let (back, steps) = match key {
            Key::Char('[') => (true, 1),
            Key::Char(']') => (false, 1),
            Key::Char('{') => (true, STRIDE),
            Key::Char('}') => (false, STRIDE),
            Key::Char('p') => {
                self.go_on();
                return Some(None);
            }
            _ => return None,
        };
        Some(self.step_in_time(back, steps))
    }

    fn step_in_time(&mut self, back: bool, steps: u64) -> Option<Action> {
        if self.fleet.is_some() {
            self.tell("the past is that of one machine: open `telltale top` there");
            return None;
        }
        let newest = self.snapshot.as_ref()?.taken_at;
        let from = self.past.as_ref().map_or(newest, |past| past.sought);
        let period_ns = u64::try_from(self.terms.period.as_nanos()).unwrap_or(u64::MAX);
        let span_ns = period_ns.max(LEAST_STEP_NS).saturating_mul(steps);
        let sought = Timestamp(match back {
            true => from.0.saturating_sub(span_ns),
            false => from.0.saturating_add(span_ns),
        });
        if sought >= newest {
            self.go_on();
            return None;
        }
        let snapshot = self.past.take().and_then(|past| past.snapshot);
        self.past = Some(Past { sought, snapshot });
        Some(Action::Look(sought))
    }

    fn go_on(&mut self) {
        if self.past.take().is_some() {
            self.select();
        }
    }

    /// The machine at the time that is shown.
    pub(super) fn displayed(&self) -> Option<&Arc<Snapshot>> {
        let past = self.past.as_ref().and_then(|past| past.snapshot.as_ref());
        past.or(self.snapshot.as_ref())
    }

    /// How far back the view looks, in words; none in the present.
    pub(super) fn past_words(&self) -> Option<String> {
        let past = self.past.as_ref()?;
        let Some(snapshot) = &past.snapshot else { return Some(String::from("LOOKING BACK")) };
        // Spans of time are shown to the second.
        #[allow(clippy::cast_precision_loss)]
        let ago = quantity::span(self.now.since_ns(snapshot.taken_at) as f64 / 1e9);
        Some(format!("PAST: {ago} ago (p: now)"))
    }
}
