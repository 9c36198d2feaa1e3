//! Texts of what was published last, by who may see what: made for the first who asks, shared with
//! the others, and let go of when something newer is published. With thousands of series a text
//! has megabytes, and most scrapers come every fifteenth second: long ones are not kept.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use axum::body::Bytes;
use serde::Serialize;
use telltale_schema::snapshot::Snapshot;
use telltale_wire::exposition::Format;

use super::App;
use crate::access::Visibility;
use crate::alerts::VisibleAlerts;
use crate::samples::{SampleOptions, Sampler, Samples, Writing};
use crate::service::Published;

/// Kinds of readers whose texts are kept. One more, and the one that asked longest ago is
/// forgotten, with the counters of processes that ended before.
const MAX_SIGHTS: usize = 16;

/// Metrics that are longer are made for each reader as it takes them.
const MAX_TEXT_BYTES: usize = 512 << 10;

#[derive(Debug)]
pub(super) struct Cache {
    options: SampleOptions,
    kept: Mutex<Vec<OfVisibility>>,
}

#[derive(Debug)]
struct OfVisibility {
    visibility: Visibility,
    asked: Instant,
    sequence: u64,
    sampler: Sampler,
    texts: [Option<Bytes>; Format::ALL.len()],
    /// How long the last text was, which the next will be about; more than [`MAX_TEXT_BYTES`] where
    /// it was not kept.
    text_bytes: usize,
    json: Option<Bytes>,
}

/// A snapshot, and beside its fields the alerts that it caused and for whom it was made.
#[derive(Serialize)]
struct SnapshotDocument<'a> {
    #[serde(flatten)]
    snapshot: &'a Snapshot,
    #[serde(flatten)]
    alerts: VisibleAlerts,
    reader: ClientView,
}

/// What a reader may know of its own place, so that it can say why something is not shown.
#[derive(Serialize)]
struct ClientView {
    /// `everything`, `own` for the processes of one user, or `devices`.
    sees: &'static str,
    /// Whether the service has a token, by which a reader would see everything.
    has_token: bool,
    /// Whether the service keeps a history.
    has_history: bool,
    /// Whether callers on the loopback of the service's machine are known as its users.
    knows_loopback: bool,
}

/// What `visibility` covers of a publication, or the rows of it that are wanted, with what is beside them.
pub(super) fn whole(app: &App, of: &Published, visibility: Visibility, rows: &Snapshot) -> Bytes {
    let alerts = of.alerts.visible(visibility);
    let sees = match visibility {
        Visibility::Everything => "everything",
        Visibility::Own { .. } => "own",
        Visibility::DevicesOnly => "devices",
    };
    let (has_token, has_history) = (app.policy.has_token(), app.history.is_some());
    let knows_loopback = app.policy.knows_loopback();
    let reader = ClientView { sees, has_token, has_history, knows_loopback };
    let whole = SnapshotDocument { snapshot: rows, alerts, reader };
    serde_json::to_vec(&whole).expect("a snapshot is JSON").into()
}

impl Cache {
    pub(super) fn new(options: SampleOptions) -> Self {
        Self { options, kept: Mutex::default() }
    }

    /// The metrics as text; none where that is longer than what is kept.
    pub(super) fn metrics(
        &self,
        app: &App,
        of: &Published,
        visibility: Visibility,
        format: Format,
    ) -> Option<Bytes> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let of_visibility = self.of_visibility(&mut kept, of, visibility);
        let place = usize::from(format == Format::OpenMetrics);
        if let Some(text) = &of_visibility.texts[place] {
            return Some(text.clone());
        }
        if of_visibility.text_bytes > MAX_TEXT_BYTES {
            return None;
        }
        let began = Instant::now();
        let visible = app.policy.visible(&of.snapshot, visibility);
        let samples = of_visibility.sampler.sample(of, &visible, Some(&app.counts.metrics()));
        let mut room =
            String::with_capacity(of_visibility.text_bytes + of_visibility.text_bytes / 16);
        let more = Writing::new(&samples, format).next_part(MAX_TEXT_BYTES, &mut room);
        of_visibility.text_bytes = room.len();
        if more {
            of_visibility.text_bytes = MAX_TEXT_BYTES + 1;
            return None;
        }
        app.counts.made_text(began.elapsed(), samples.dropped());
        // The C library keeps as much of what is freed later as the largest block it was given back.
        room.shrink_to_fit();
        let text = Bytes::from(room);
        of_visibility.texts[place] = Some(text.clone());
        Some(text)
    }

    /// The samples for a text that is not kept. `visible` is what a reader of this visibility may see.
    pub(super) fn sample<'a>(
        &self,
        app: &App,
        of: &'a Published,
        visible: &'a Arc<Snapshot>,
        visibility: Visibility,
    ) -> Samples<'a> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let of_visibility = self.of_visibility(&mut kept, of, visibility);
        of_visibility.sampler.sample(of, visible, Some(&app.counts.metrics()))
    }

    /// Notes how long a text was that was not kept.
    pub(super) fn was_long(&self, visibility: Visibility, text_bytes: usize) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(one) = kept.iter_mut().find(|one| one.visibility == visibility) {
            one.text_bytes = text_bytes;
        }
    }

    /// The snapshot as JSON, in one line.
    pub(super) fn json(&self, app: &App, of: &Published, visibility: Visibility) -> Bytes {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let of_visibility = self.of_visibility(&mut kept, of, visibility);
        let made = of_visibility.json.get_or_insert_with(|| {
            whole(app, of, visibility, &app.policy.visible(&of.snapshot, visibility))
        });
        made.clone()
    }

    /// Lets go of what was made of older publications than the one with this number.
    pub(super) fn forget_before(&self, sequence: u64) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        for one in kept.iter_mut().filter(|one| one.sequence < sequence) {
            one.texts = [None, None];
            one.json = None;
        }
    }

    fn of_visibility<'k>(
        &self,
        kept: &'k mut Vec<OfVisibility>,
        of: &Published,
        visibility: Visibility,
    ) -> &'k mut OfVisibility {
        let place = kept.iter().position(|one| one.visibility == visibility).unwrap_or_else(|| {
            if kept.len() >= MAX_SIGHTS {
                let oldest = kept.iter().enumerate().min_by_key(|(_, one)| one.asked);
                let oldest = oldest.map_or(0, |(place, _)| place);
                kept.swap_remove(oldest);
            }
            kept.push(OfVisibility {
                visibility,
                asked: Instant::now(),
                sequence: 0,
                sampler: Sampler::new(self.options),
                texts: [None, None],
                text_bytes: 0,
                json: None,
            });
            kept.len() - 1
        });
        let found = &mut kept[place];
        found.asked = Instant::now();
        if found.sequence != of.sequence {
            found.sequence = of.sequence;
            found.texts = [None, None];
            found.json = None;
        }
        found
    }
}
