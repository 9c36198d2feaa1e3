//! How a program that was not found is come by: one thread makes it, the others wait for that one,
//! and who waited for something that was dropped meanwhile checks again.

use std::sync::Arc;

use super::counters::ThreadNumber;
use super::entry::{Entry, Made, Using, WantedKey};
use super::table::{Joined, Lead, ProgramTable};
use crate::waiting::{CannotWait, InterruptCheck};

/// How often a dispatch checks again for a program that others drop as fast as it is compiled.
/// After that it compiles one for itself alone.
const MAX_ATTEMPTS: usize = 8;

/// A compilation that gave an entry, not landed yet.
type Led<P, S, F> = (Lead<P, S, F>, Arc<Entry<P, S>>);

/// Why a program could not be made. Threads that wait for the same program share it.
pub(crate) trait Refusal: Clone {
    /// Whether each dispatch with the same key would have been refused. If not, those who wait for
    /// the program try themselves.
    fn concerns_all(&self) -> bool;
}

// === impl ProgramTable ===

impl<P, S, F: Refusal> ProgramTable<P, S, F> {
    /// Waits for the program with this key or makes it, and uses it. `make` and `use_it` are
    /// called once at most; `check` may end the waiting.
    ///
    /// # Errors
    /// What this thread's `make` gave or that of the thread it waited for, or what `use_it` gave; or why it did not
    /// wait.
    #[cold]
    pub(crate) fn obtain<R, E: From<F> + From<CannotWait>>(
        &self,
        wanted: &WantedKey<'_>,
        thread: ThreadNumber,
        check: Option<InterruptCheck>,
        make: impl FnOnce() -> Result<Made<P, S>, F>,
        use_it: impl FnOnce(Using<'_, P, S>) -> Result<R, E>,
    ) -> Result<R, E> {
        for _ in 0..MAX_ATTEMPTS {
            let entry = match self.join(wanted, thread)? {
                Joined::Here(entry) => entry,
                Joined::Wait(flight) => match flight.wait(check)? {
                    Some(landed) => landed?,
                    None => continue,
                },
                Joined::Lead(leading) => {
                    let (leading, entry) = self.lead(leading, make)?;
                    let mut in_use =
                        entry.enter(thread, || check)?.expect("no other thread has it yet");
                    drop(self.land(leading, &entry));
                    let program = in_use.program();
                    return use_it(Using { side: &entry.side, program, is_fresh: true });
                }
            };
            if let Some(mut in_use) = entry.enter(thread, || check)? {
                let program = in_use.program();
                return use_it(Using { side: &entry.side, program, is_fresh: false });
            }
            // Dropped since, or spoilt by a user that panicked.
            self.discard(&entry);
        }
        let Made { mut program, side, .. } = make()?;
        use_it(Using { side: &side, program: &mut program, is_fresh: true })
    }

    /// Makes the entry of a compilation that this thread leads, or ends it.
    fn lead(
        &self,
        leading: Lead<P, S, F>,
        make: impl FnOnce() -> Result<Made<P, S>, F>,
    ) -> Result<Led<P, S, F>, F> {
        match make() {
            Ok(made) => {
                let entry = Entry::new(leading.flight.key().clone(), made);
                Ok((leading, Arc::new(entry)))
            }
            Err(refusal) => {
                if refusal.concerns_all() {
                    self.fail(leading, refusal.clone());
                }
                Err(refusal)
            }
        }
    }
}
