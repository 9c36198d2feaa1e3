//! What ledgers and endpoints together say of each process. Pure.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use telltale_schema::clock::Timestamp;
use telltale_schema::process::ProcessIdentity;
use telltale_schema::snapshot::RecordingFaults;

use super::answers::Believed;
use super::claims;
use super::identity::Standing;
use super::ledgers::{Ledgers, TrustedLedger};
use crate::observation::MemoryClaim;

/// What is known of one identity.
pub(super) struct KnownProcess {
    pub(super) standing: Standing,
    pub(super) uid: u32,
    pub(super) name: String,
    pub(super) memory: MemoryClaim,
    pub(super) started_at: Option<Timestamp>,
    pub(super) faults: RecordingFaults,
}

// === impl KnownProcess ===

impl KnownProcess {
    fn by_ledger(reports: &TrustedLedger<'_>) -> Self {
        let TrustedLedger { standing, reading } = *reports;
        Self {
            standing: standing.clone(),
            uid: reading.uid,
            name: reading.name.clone(),
            memory: claims::of_ledger(reading),
            started_at: Some(reading.started_at),
            faults: reading.faults,
        }
    }

    fn by_answer(answer: Believed) -> Self {
        Self {
            standing: answer.standing,
            uid: answer.uid,
            name: answer.reports.name.clone(),
            memory: claims::of_report(&answer.reports),
            started_at: answer.reports.started_at,
            faults: answer.reports.faults,
        }
    }

    /// Takes in another ledger of this identity, if it is a part of the same process.
    fn take_part(&mut self, reports: &TrustedLedger<'_>) {
        let TrustedLedger { standing, reading } = *reports;
        let same = (&self.standing, self.uid) == (standing, reading.uid);
        if same && self.memory.take_part(claims::of_ledger(reading)) {
            self.started_at = self.started_at.min(Some(reading.started_at));
            self.faults = self.faults.plus(reading.faults);
        }
    }
}

/// Each identity once: by its ledger, or the two that are its parts, else by its endpoint. Where
/// another of these says that the process lives, a ledger that is a dead process's does not count.
pub(super) fn gather(
    ledgers: &Ledgers,
    mut believed: BTreeMap<ProcessIdentity, Believed>,
) -> BTreeMap<ProcessIdentity, KnownProcess> {
    let mut all: BTreeMap<ProcessIdentity, KnownProcess> = BTreeMap::new();
    for reports in ledgers.reports() {
        let lives = *reports.standing != Standing::Dead;
        match all.entry(reports.reading.owner) {
            Entry::Vacant(place) => _ = place.insert(KnownProcess::by_ledger(&reports)),
            Entry::Occupied(mut known) if lives && known.get().standing == Standing::Dead => {
                known.insert(KnownProcess::by_ledger(&reports));
            }
            Entry::Occupied(known) => known.into_mut().take_part(&reports),
        }
        if lives {
            believed.remove(&reports.reading.owner);
        }
    }
    for (identity, answer) in believed {
        if answer.standing != Standing::Dead || !all.contains_key(&identity) {
            all.insert(identity, KnownProcess::by_answer(answer));
        }
    }
    all
}
