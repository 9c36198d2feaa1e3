//! The driver's holders of each device, tied to processes.

use std::collections::HashMap;

use telltale_schema::reading::Reading;
use telltale_schema::snapshot::{Accounting, Holder, Process, ProcessState};

use super::{ProcessDraft, Reconciliation, held};

impl Reconciliation {
    /// Ties the driver's holders to processes. Those whom it lists without a pid become processes
    /// of their own, as far as no process that is known otherwise is behind them.
    pub(super) fn mark_holders(&mut self, living: &HashMap<u32, usize>) {
        for index in 0..self.devices.len() {
            let Reading::Value { value, .. } = &mut self.devices[index].holders else { continue };
            let mut holders = std::mem::take(value);
            for holder in &mut holders {
                match holder.pid {
                    Some(pid) => self.mark_seen(index, living.get(&pid), holder),
                    None => self.mark_hidden(index, holder),
                }
            }
            if let Reading::Value { value, .. } = &mut self.devices[index].holders {
                *value = holders;
            }
        }
    }

    fn mark_seen(&mut self, index: usize, place: Option<&usize>, holder: &mut Holder) {
        let Some(draft) = place.and_then(|place| self.processes.get_mut(*place)) else { return };
        let accounts = draft.accounts_for_itself();
        let held = held(&mut draft.process, index);
        held.open_descriptors = holder.open_descriptors;
        if accounts && held.accounting == Accounting::Unknown && held.refused.is_none() {
            held.accounting = Accounting::OpenOnly;
        }
        holder.memory_known = held.accounting != Accounting::Unknown;
    }

    /// All descriptors without a pid are one holder. Each hidden process that is known to
    /// use the device has at least one of them. The others are shown as one process a device,
    /// since nothing tells how many there are, or whether one has several devices.
    fn mark_hidden(&mut self, index: usize, holder: &mut Holder) {
        let uses = |draft: &&ProcessDraft| {
            let process = &draft.process;
            let mut here = process.devices.iter().filter(|held| held.device == index);
            process.state == ProcessState::Hidden
                && process.pid.is_none()
                && here.any(|held| held.accounting != Accounting::Unknown)
        };
        let known = self.processes.iter().filter(uses).count();
        let known = u32::try_from(known).unwrap_or(u32::MAX);
        let rest = holder.open_descriptors.saturating_sub(known);
        holder.memory_known = rest == 0;
        if rest > 0 {
            let mut process = Process::hidden(None, "");
            held(&mut process, index).open_descriptors = rest;
            self.processes.push(ProcessDraft::bare(process));
        }
    }
}
