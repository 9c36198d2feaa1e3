//! Reading what processes have recorded, and no more: no description, no driver, no region.

use telltale_ledger::LedgerReading;
use telltale_wire::{DeviceSelector, Query, QueryKind};

use super::answers::{MAX_ASKED, believe};
use super::closed::Closed;
use super::endpoints::{AskLimits, EndpointLocation, ask};
use super::identity::{Checks, Seen};
use super::ledgers::Speaking;
use super::listings::Listed;
use super::{Holders, Processes};
use crate::report::SourceReport;

impl Processes {
    /// Copies the ledgers of living processes and hands each to `take`, with its process's pid.
    pub(crate) fn sweep(&mut self, take: impl FnMut(u32, &LedgerReading)) {
        self.ledgers.sweep(take);
    }

    /// Opens the ledgers of the main runtime directory and hands `take` those of living processes.
    pub(crate) fn read_once(&mut self, mut take: impl FnMut(u32, &LedgerReading)) {
        let mut report = SourceReport::default();
        let listed = self.list_main(&mut report);
        let mut closed = Closed::default();
        self.read_ledgers(&Holders::default(), &listed, (&mut report, &mut closed));
        self.descriptions.take_seen(Seen::new());
        for ledger in self.ledgers.reports() {
            if let Some(pid) = ledger.standing.pid() {
                take(pid, ledger.reading);
            }
        }
    }

    /// Asks all endpoints of the main runtime directory at once and hands `take` the answers that
    /// are believed.
    pub(crate) fn ask_once(&mut self, mut take: impl FnMut(u32, &telltale_wire::Report)) {
        let listed = self.list_main(&mut SourceReport::default());
        let checks = Checks::new(&self.procfs, &self.standpoint, []);
        let limits = AskLimits { peer: self.places.timeout, all: self.places.deadline };
        let (kind, device) = (QueryKind::Memory, DeviceSelector::All);
        let query = Query { kind, device, want_ledger: false, is_last: true, knows_memory: false };
        for Listed { directory, listing, .. } in &listed {
            let entries = &listing.endpoints[..listing.endpoints.len().min(MAX_ASKED)];
            let names = entries.iter().map(|entry| entry.name.as_str());
            let places: Vec<_> =
                names.map(|name| EndpointLocation { directory, name, query }).collect();
            for (entry, answer) in entries.iter().zip(ask(&places, limits)) {
                let believed = answer.map(|one| believe(entry, one, &checks, &Speaking::new()));
                if let Ok(Ok((one, _))) = believed
                    && let Some(pid) = one.standing.pid()
                {
                    take(pid, &one.reports);
                }
            }
        }
    }
}
