//! Detection in a thread of its own, as the server has it, and what it says, counted.
//!
//! What it has seen at one evaluation is taken when the next is due, however fast it was: the same seed gives
//! the same run.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use telltale_cluster::detection::{DetectionCounts, DetectionSettings};
use telltale_cluster::lookout::{Lookout, LookoutState, Work};
use telltale_cluster::time::Moment;
use telltale_cluster::verdict::{Suspect, Suspects, Verdict, VerdictKind};

/// What was said of a machine; each verdict counts once, from its beginning to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Alarms {
    /// Looks that were made.
    pub evaluations: u64,
    /// Verdicts about one node.
    pub nodes: u64,
    /// Of these, those that lasted long enough for a coordinator to act on them.
    pub lasting: u64,
    /// Verdicts about one link, or one side of a node.
    pub links: u64,
    /// Verdicts that could not tell.
    pub ambiguous: u64,
    /// Of all these, those of something else than slowness: crashes, silence, hangs.
    pub not_slow: u64,
}

/// A verdict that is reported in so many windows in a row lasts.
pub const LASTING_EVALUATIONS: u32 = 10;

/// A verdict that lasted.
#[derive(Debug, Clone, PartialEq)]
pub struct Lasting {
    /// When it was first seen.
    pub first_seen: Moment,
    /// What kind it is.
    pub kind: VerdictKind,
    /// Who is suspected.
    pub suspects: Suspects,
    /// In how many windows in a row it was seen.
    pub evaluations: u32,
    /// The most that was said of how sure it is.
    pub confidence: f64,
}

impl fmt::Display for Lasting {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first_seen, suspects, evaluations, .. } = self;
        let names: Vec<String> = suspects.all().iter().map(ToString::to_string).collect();
        let at = first_seen.as_ns() / 1_000_000_000;
        write!(formatter, "[{}] from {at} s for {evaluations} windows", names.join(" or "))
    }
}

type Batch = Vec<Work>;

/// The coordinator's side of it.
#[derive(Debug)]
pub(super) struct CoordinatorWatch {
    to_thread: SyncSender<Batch>,
    from_thread: Receiver<(Option<LookoutState>, Batch)>,
    batch: Batch,
    is_looking: bool,
    /// After how many windows in a row a coordinator acts.
    continuity: u32,
    /// After how many windows in a row a verdict is kept.
    kept_evaluations: u32,
    /// What was said at the last evaluation, and whether it has lasted.
    reported: BTreeMap<(VerdictKind, Vec<Suspect>), bool>,
    alarms: Alarms,
    lasting: Vec<Lasting>,
    not_taken: DetectionCounts,
}

impl CoordinatorWatch {
    pub(super) fn start(
        settings: DetectionSettings,
        continuity: u32,
        kept_evaluations: u32,
    ) -> Self {
        let (to_thread, batches) = sync_channel::<Batch>(1);
        let (answers, from_thread) = sync_channel(1);
        thread::spawn(move || {
            let mut lookout = Lookout::new(settings);
            for batch in batches {
                let seen = batch.iter().filter_map(|work| lookout.take(work)).last();
                if answers.send((seen, batch)).is_err() {
                    return;
                }
            }
        });
        Self {
            to_thread,
            from_thread,
            batch: Vec::new(),
            is_looking: false,
            continuity,
            kept_evaluations,
            reported: BTreeMap::new(),
            alarms: Alarms::default(),
            lasting: Vec::new(),
            not_taken: DetectionCounts::default(),
        }
    }

    pub(super) fn apply(&mut self, work: Work) {
        self.batch.push(work);
    }

    /// Has detection look, after the reports received so far. Only when the last window was taken.
    pub(super) fn evaluate(&mut self, evaluate: Work) {
        self.batch.push(evaluate);
        let room = Vec::with_capacity(self.batch.len());
        let batch = std::mem::replace(&mut self.batch, room);
        self.to_thread.send(batch).expect("the thread ends only after this");
        self.is_looking = true;
    }

    /// What was seen at the last evaluation, if it was not taken yet.
    pub(super) fn seen(&mut self) -> Option<LookoutState> {
        if !std::mem::take(&mut self.is_looking) {
            return None;
        }
        // What was reported comes back, so that each thread frees only what it has made.
        let (seen, reported) = self.from_thread.recv().expect("the thread ends only after this");
        drop(reported);
        let seen = seen?;
        self.alarms.evaluations += 1;
        self.not_taken = seen.counts;
        self.count(&seen.verdicts);
        Some(seen)
    }

    fn count(&mut self, verdicts: &[Verdict]) {
        let before = std::mem::take(&mut self.reported);
        for verdict in verdicts {
            let identity = (verdict.kind, verdict.suspects.all().to_vec());
            let has_lasted = before.get(&identity).copied();
            let alarms = &mut self.alarms;
            let is_node = verdict.suspects.node().is_some();
            if has_lasted.is_none() {
                match verdict.suspects {
                    Suspects::Ambiguous(_) => alarms.ambiguous += 1,
                    Suspects::One(_) if is_node => alarms.nodes += 1,
                    Suspects::One(_) => alarms.links += 1,
                }
                let slow = [VerdictKind::SlowNode, VerdictKind::SlowLink];
                alarms.not_slow += u64::from(!slow.contains(&verdict.kind));
            }
            let lasts = verdict.windows >= self.continuity;
            alarms.lasting += u64::from(is_node && lasts && has_lasted != Some(true));
            self.reported.insert(identity, lasts);
            if verdict.windows >= self.kept_evaluations {
                self.lasts(verdict);
            }
        }
    }

    fn lasts(&mut self, verdict: &Verdict) {
        let Verdict { kind, suspects, first_seen, windows, confidence, .. } = verdict;
        let is_it = |one: &&mut Lasting| {
            (&one.kind, &one.suspects, &one.first_seen) == (kind, suspects, first_seen)
        };
        match self.lasting.iter_mut().find(is_it) {
            Some(known) => {
                known.evaluations = *windows;
                known.confidence = known.confidence.max(*confidence);
            }
            None => self.lasting.push(Lasting {
                first_seen: *first_seen,
                kind: *kind,
                suspects: suspects.clone(),
                evaluations: *windows,
                confidence: *confidence,
            }),
        }
    }

    pub(super) fn take_lasting(&mut self) -> Vec<Lasting> {
        std::mem::take(&mut self.lasting)
    }

    pub(super) const fn alarms(&self) -> Alarms {
        self.alarms
    }

    pub(super) const fn not_taken(&self) -> DetectionCounts {
        self.not_taken
    }
}
