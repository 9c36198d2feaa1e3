//! Memory alone, in one look from nothing: by ledger files, or by endpoints. Processes are checked
//! as ever, but not described, and nothing is remembered but the ledgers.

use telltale_ledger::LedgerReading;
use telltale_wire::{DeviceSelector, Query, QueryKind, Report as Told};

use super::answers::{MAX_ASKED, believe};
use super::closed::Closed;
use super::endpoints::{Limits, Place, ask};
use super::identity::{Checks, Seen};
use super::ledgers::Speaking;
use super::listings::Listed;
use super::{Holders, Processes};
use crate::report::Report;

impl Processes {
    /// Opens the ledgers of the main runtime directory and hands `take` those of living processes.
    pub(crate) fn read_once(&mut self, mut take: impl FnMut(u32, &LedgerReading)) {
        let mut report = Report::default();
        let listed = self.list_main(&mut report);
        let mut closed = Closed::default();
        self.read_ledgers(&Holders::default(), &listed, (&mut report, &mut closed));
        self.descriptions.take_seen(Seen::new());
        for told in self.ledgers.told() {
            if let Some(pid) = told.standing.pid() {
                take(pid, told.reading);
            }
        }
    }

    /// Asks all endpoints of the main runtime directory at once and hands `take` the answers that
    /// are believed.
    pub(crate) fn ask_once(&mut self, mut take: impl FnMut(u32, &Told)) {
        let listed = self.list_main(&mut Report::default());
        let checks = Checks::new(&self.procfs, &self.standpoint, []);
        let limits = Limits { peer: self.places.patience, all: self.places.deadline };
        let (kind, device) = (QueryKind::Memory, DeviceSelector::All);
        let query = Query { kind, device, want_ledger: false, is_last: true, knows_memory: false };
        for Listed { directory, listing, .. } in &listed {
            let entries = &listing.endpoints[..listing.endpoints.len().min(MAX_ASKED)];
            let names = entries.iter().map(|entry| entry.name.as_str());
            let places: Vec<_> = names.map(|name| Place { directory, name, query }).collect();
            for (entry, answer) in entries.iter().zip(ask(&places, limits)) {
                let believed = answer.map(|one| believe(entry, one, &checks, &Speaking::new()));
                if let Ok(Ok((one, _))) = believed
                    && let Some(pid) = one.standing.pid()
                {
                    take(pid, &one.told);
                }
            }
        }
    }
}
