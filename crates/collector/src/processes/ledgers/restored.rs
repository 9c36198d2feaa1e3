//! Ledgers of the dead whose processes live again: they were restored from a checkpoint.
//!
//! A process that is restored has its ledger mapped as before and takes its lock again. So a ledger of
//! the dead is judged once more when it is locked.

use std::collections::BTreeMap;

use telltale_ledger::{LedgerReader, LedgerSweep, is_locked};

use super::{Followed, Ledgers, ReaderState};
use crate::processes::identity::{Checks, Standing};
use crate::processes::listings::Listed;

/// Ledgers of the dead whose locks are checked in one round, on the average.
const CHECKED: usize = 64;

/// Rounds until a ledger is judged again that is locked and still a dead process's: a child that it
/// forked has the lock. Each time may cost a scan of `/proc`.
const ROUNDS_OF_A_CHILD: u32 = 32;

impl Ledgers {
    /// Takes up again the ledgers of this directory whose processes were restored.
    pub(super) fn revive(&mut self, listed: &Listed, checks: &Checks<'_>) {
        let (round, number) = (self.rounds, listed.number);
        let (sweep, followed) = (&mut self.sweep, &mut self.followed);
        let of_directory = followed.range_mut((number, String::new())..);
        let of_directory = of_directory.take_while(|((of, _), _)| *of == number);
        let dead = of_directory.filter(|(_, one)| one.standing == Standing::Dead);
        let dead: BTreeMap<&str, &mut Followed> =
            dead.map(|((_, name), one)| (name.as_str(), one)).collect();
        let pause = u32::try_from(1 + dead.len() / CHECKED).unwrap_or(u32::MAX);
        for (name, one) in dead.into_iter().filter(|(_, one)| one.next_look <= round) {
            let is_childs = one.rescan(listed, name, checks, sweep);
            let pause = if is_childs { ROUNDS_OF_A_CHILD } else { pause };
            one.next_look = round.saturating_add(pause);
        }
    }
}

impl Followed {
    /// Judges the ledger again if it is locked. Returns whether it is, and yet a dead process's.
    fn rescan(
        &mut self,
        listed: &Listed,
        name: &str,
        checks: &Checks<'_>,
        sweep: &mut LedgerSweep,
    ) -> bool {
        if !is_locked(&listed.directory, name) {
            return false;
        }
        let Ok(reader) = LedgerReader::open_at(&listed.directory, name) else { return true };
        let standing = checks.judge_ledger(&reader);
        // Of one whose end was seen, another process, invisible from here, may hold the lock.
        let is_back = match standing {
            Standing::Alive { .. } => true,
            Standing::Hidden => !self.ended,
            Standing::Dead | Standing::Refused(_) => false,
        };
        if !is_back || *reader.owner() != self.owner || reader.uid() != self.uid {
            return true;
        }
        self.withdraw(sweep);
        self.held = ReaderState::Alone(Box::new(reader));
        (self.standing, self.failed, self.final_read) = (standing, false, false);
        self.ended = false;
        false
    }
}
