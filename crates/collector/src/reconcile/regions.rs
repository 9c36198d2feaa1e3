//! Foreign regions: what is in them beyond what ledgers and endpoints say.
//!
//! A killed process stays in a region, in its row or in the totals alone, until a process takes it
//! out. Where its ledger is still there, we know better: such bytes are no ghosts.

use std::collections::{BTreeMap, BTreeSet};

use telltale_ledger::RegionMirror;
use telltale_schema::chip::{AsicId, BoardId, ChipIdentity};
use telltale_schema::snapshot::{Accounting, HeldUsage, Process, ProcessSource, ProcessState};

use super::parts::MemoryParts;
use super::{ClaimedDevice, Draft, ProcessDraft, Reconciliation, held, matching, put};
use crate::limits::MAX_DEVICES;
use crate::observation::{RegionObservation, RowObservation, RowOwner};

impl Reconciliation {
    /// Adds all regions.
    pub(super) fn add_regions(&mut self, regions: Vec<RegionObservation>) {
        let mut placed: Vec<(usize, RegionObservation)> = Vec::new();
        for region in regions {
            if let Some(index) = self.device_of_region(&region) {
                placed.push((index, region));
            }
        }
        let mut of_devices: BTreeMap<usize, (Vec<RowOwner>, u32)> = BTreeMap::new();
        for (index, region) in &mut placed {
            self.devices[*index].reported = true;
            let (owners, references) = of_devices.entry(*index).or_default();
            // Bytes without a reference are of a process that accounts for nothing.
            let is_strangers = region.references == 0 && region.totals.iter().any(|it| it.1 > 0);
            let more = if is_strangers { u32::MAX } else { region.references };
            *references = references.saturating_add(more);
            for row in std::mem::take(&mut region.rows) {
                owners.push(row.owner);
                self.add_row(*index, row, region.owner_uid);
            }
        }
        let accounted = of_devices.into_iter().filter(|(index, (owners, references))| {
            self.accounts_for_all(*index, owners, *references)
        });
        let accounted: BTreeSet<usize> = accounted.map(|(index, _)| index).collect();
        for (index, region) in placed {
            self.add_totals(index, region, accounted.contains(&index));
        }
    }

    /// The place of the device that the region is about, made if need be and possible.
    fn device_of_region(&mut self, region: &RegionObservation) -> Option<usize> {
        let is_it = |draft: &Draft| {
            let chip = draft.identity.chip();
            chip.is_some_and(|chip| matching::region_of(chip).any(|id| id == region.name_id))
        };
        let known = self.devices.iter().position(is_it);
        if known.is_some() {
            return known;
        }
        if self.devices.len() >= MAX_DEVICES {
            self.refuse(region.owner_uid, "regions", "name more devices than a machine can have");
            return None;
        }
        self.devices.push(Draft::named(identity_of(region).into(), "regions"));
        Some(self.devices.len() - 1)
    }

    fn add_totals(&mut self, index: usize, region: RegionObservation, is_ours: bool) {
        let RegionObservation { totals, owner_uid, .. } = region;
        for (kind, bytes) in totals {
            if bytes > self.devices[index].most_bytes(kind) {
                self.refuse(owner_uid, "regions", "a total is more than a device can have");
            } else if !is_ours {
                self.devices[index].regions.add_total(kind, bytes);
            }
        }
    }

    /// Whether the regions of this device hold nothing but what processes account for themselves,
    /// the living and the dead: each row is one of theirs, and as many are in them as they have
    /// references. A dead process that had a row is in one as long as the row is; one that had none
    /// for ever, since nothing in the region says that it was there.
    ///
    /// They are counted together (there is one for each layout), because a process does not say in which
    /// of them it is.
    fn accounts_for_all(&self, index: usize, owners: &[RowOwner], references: u32) -> bool {
        let claim = |draft: &ProcessDraft| {
            let claimed = draft.claimed.iter().find(|claimed| claimed.device == index);
            claimed.map(|claimed| (claimed.mirror, claimed.row_found))
        };
        let mut seen = Vec::new();
        for owner in owners {
            let RowOwner::Observed(place) = owner else { return false };
            let its = self.processes.get(*place).and_then(claim);
            if !matches!(its, Some((RegionMirror::TotalsAndRow, _))) || seen.contains(place) {
                return false;
            }
            seen.push(*place);
        }
        let is_in = |draft: &&ProcessDraft| match claim(draft) {
            None | Some((RegionMirror::None, _)) => false,
            Some((RegionMirror::Totals, _)) => true,
            Some((RegionMirror::TotalsAndRow, row_found)) => row_found || draft.lives(),
        };
        let members = self.processes.iter().filter(is_in).count();
        members > 0 && u32::try_from(members) == Ok(references)
    }

    fn add_row(&mut self, index: usize, mut row: RowObservation, owner_uid: Option<u32>) {
        let before = row.kinds.len();
        let device = &self.devices[index];
        row.kinds.retain(|(kind, bytes)| *bytes <= device.most_bytes(*kind));
        if row.kinds.len() < before {
            self.refuse(owner_uid, "regions", "a row is more than a device can have");
        }
        let device = &mut self.devices[index];
        for (kind, bytes) in &row.kinds {
            device.regions.add_row(*kind, *bytes);
        }
        match row.owner {
            RowOwner::Observed(place) => match self.processes.get_mut(place) {
                Some(draft) if draft.lives() => draft.take_row(index, &row, &mut device.parts),
                Some(draft) => draft.leave_row(index, &row, &mut device.parts),
                None => device.parts.add_ghost(&row.kinds),
            },
            RowOwner::Hidden => {
                let process = Process::hidden(Some(row.pid), &row.name);
                let mut draft = ProcessDraft::bare(process);
                draft.take_row(index, &row, &mut device.parts);
                self.processes.push(draft);
            }
            RowOwner::NoProcess => device.parts.add_ghost(&row.kinds),
        }
    }
}

impl ProcessDraft {
    /// Whether the process lives, as far as anybody can tell.
    fn lives(&self) -> bool {
        self.process.state != ProcessState::Dead
    }

    /// Takes a row of a region for its own, unless ledger or endpoint speak for that device.
    fn take_row(&mut self, index: usize, row: &RowObservation, parts: &mut MemoryParts) {
        if let Some(claimed) = self.claimed.iter_mut().find(|claimed| claimed.device == index) {
            claimed.row_found = true;
            return;
        }
        let held = held(&mut self.process, index);
        (held.accounting, held.refused) = (Accounting::BytesOnly, None);
        for (kind, bytes) in &row.kinds {
            let usage = HeldUsage::BytesOnly { live_bytes: *bytes };
            parts.add_process(*kind, &usage);
            if *bytes > 0 {
                put(&mut self.process, index, *kind, usage);
            }
        }
        self.process.known_by.get_or_insert(ProcessSource::Region);
    }

    /// Leaves behind a row of a process that is dead: a ghost, unless the process itself says that
    /// it kept one.
    fn leave_row(&mut self, index: usize, row: &RowObservation, parts: &mut MemoryParts) {
        let kept = |claimed: &&mut ClaimedDevice| {
            claimed.device == index && claimed.mirror == RegionMirror::TotalsAndRow
        };
        match self.claimed.iter_mut().find(kept) {
            Some(claimed) => claimed.row_found = true,
            None => parts.add_ghost(&row.kinds),
        }
    }

    /// The devices for whose regions a living process says that it is in the totals, and has no
    /// row there.
    pub(super) fn in_totals_without_row(&self) -> impl Iterator<Item = &ClaimedDevice> {
        let in_totals = |one: &&ClaimedDevice| one.mirror != RegionMirror::None && !one.row_found;
        self.claimed.iter().filter(|_| self.lives()).filter(in_totals)
    }
}

/// What a region's name reports about its chip.
fn identity_of(region: &RegionObservation) -> ChipIdentity {
    match region.board_serial {
        Some(serial) => {
            let [.., location] = region.name_id.to_be_bytes();
            let board_id = BoardId(serial);
            let board_type = board_id.board_type();
            ChipIdentity {
                board_id: Some(board_id),
                board_type,
                location,
                ..ChipIdentity::default()
            }
        }
        None => ChipIdentity { asic_id: Some(AsicId(region.name_id)), ..ChipIdentity::default() },
    }
}
