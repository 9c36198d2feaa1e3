//! Data that one thread uses without a locked instruction for as long as no second one wants it.
//!
//! The order of things is in `bias`; here is the data, and why no two references to it meet.

use std::cell::UnsafeCell;
use std::marker::PhantomData;

use crate::bias::{Bias, Role, SpinLock};
use crate::sync::{Arc, Mutex, PoisonError, prepare_heavy_barrier};

/// A fixed number of shards of data, each used by one thread at a time.
///
/// A thread asks for an [`ThreadAccess`] once. While only one access has ever been wanted at a time, its
/// thread, the owner, goes in with plain loads and stores. The second thread that asks ends that
/// for ever, which takes it a system call and some microseconds; from then on each shard has a
/// lock that spins, then yields, then sleeps, and never parks a thread.
pub struct BiasedShards<T, const SHARDS: usize> {
    bias: Bias,
    /// Held while a thread asks, so that one does at a time.
    asking: Mutex<()>,
    shards: [Shard<T>; SHARDS],
}

/// A lock to a cache line, so that threads in different shards do not disturb each other.
#[repr(align(64))]
struct Shard<T> {
    lock: SpinLock,
    data: UnsafeCell<T>,
}

/// One thread's way to the data. It stays with the thread that asked for it.
pub struct ThreadAccess<T, const SHARDS: usize> {
    shared: Arc<BiasedShards<T, SHARDS>>,
    role: Role,
    stays_with_its_thread: PhantomData<*const ()>,
}

// SAFETY: a shard's data is touched only in `use_shard`, while `Bias::go_in` keeps everybody else
// outside: through the shard's lock, or because the caller is the one owner, is not inside already,
// and the bias holds. There is one owner at a time, `Access` cannot leave its thread, and `Bias`
// orders what it did before whatever the next one inside does. The data therefore goes from thread
// to thread (`T: Send`) and is never shared by two.
unsafe impl<T: Send, const SHARDS: usize> Sync for BiasedShards<T, SHARDS> {}

// === impl BiasedShards ===

impl<T, const SHARDS: usize> BiasedShards<T, SHARDS> {
    /// Shards with what `data` gives for each.
    pub fn new(mut data: impl FnMut() -> T) -> Self {
        prepare_heavy_barrier();
        let shards =
            std::array::from_fn(|_| Shard { lock: SpinLock::new(), data: UnsafeCell::new(data()) });
        Self { bias: Bias::new(), asking: Mutex::new(()), shards }
    }

    /// Access for the calling thread. Waits while the owner is inside; must not be called from
    /// within [`ThreadAccess::with`] or [`Self::for_each`], where it would wait for itself. None if the
    /// kernel has come to refuse what would end the owner's privilege.
    pub fn ask(self: &Arc<Self>) -> Option<ThreadAccess<T, SHARDS>> {
        let _one_at_a_time = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        let role = self.bias.ask()?;
        let shared = Arc::clone(self);
        Some(ThreadAccess { shared, role, stays_with_its_thread: PhantomData })
    }

    /// Runs `each` on every shard, one after the other, as a thread besides the owner: its
    /// privilege ends here. Returns whether it could be ended. As for [`Self::ask`], not to be called
    /// from inside.
    pub fn for_each(&self, mut each: impl FnMut(&mut T)) -> bool {
        let asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = self.bias.end();
        drop(asking);
        if ended {
            (0..SHARDS).for_each(|shard| {
                self.use_shard(Role::Other, shard, &mut each);
            });
        }
        ended
    }

    #[inline(always)]
    fn use_shard<R>(&self, role: Role, shard: usize, run: impl FnOnce(&mut T) -> R) -> Option<R> {
        let shard = &self.shards[shard];
        let _inside = self.bias.go_in(role, &shard.lock)?;
        // SAFETY: until `_inside` is dropped, also by a panic in `run`, no other reference to the
        // data exists: see the impl of `Sync` above. `role` is `Owner` only in the owner's
        // `Access`.
        Some(run(unsafe { &mut *shard.data.get() }))
    }
}

// === impl ThreadAccess ===

impl<T, const SHARDS: usize> ThreadAccess<T, SHARDS> {
    /// Runs `run` on a shard. None if this thread is inside already and would meet itself, as it
    /// can in a signal handler. Once several threads have access, being inside twice would be a
    /// wait without end instead, so `run` must not come back here.
    ///
    /// # Panics
    /// When there is no such shard.
    #[inline(always)]
    pub fn with<R>(&self, shard: usize, run: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.shared.use_shard(self.role, shard, run)
    }
}

impl<T, const SHARDS: usize> Drop for ThreadAccess<T, SHARDS> {
    fn drop(&mut self) {
        if self.role == Role::Owner {
            self.shared.bias.give_up();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BiasedShards, Role};
    use crate::sync::Arc;

    #[test]
    fn an_owner_that_meets_itself_is_turned_away_and_a_panic_inside_ends_it() {
        let shards = Arc::new(BiasedShards::<u32, 2>::new(|| 0));
        let access = shards.ask().expect("the first one always has access");
        if access.role != Role::Owner {
            telltale_harness::skip("an_owner_that_meets_itself", "the kernel refuses membarrier");
            return;
        }
        let met = access.with(0, |count| {
            *count += 1;
            // As a signal handler would, whichever shard it wants.
            (access.with(0, |_| ()), access.with(1, |_| ()))
        });
        assert_eq!(met, Some((None, None)));
        let panicked = std::panic::AssertUnwindSafe(|| access.with(0, |_| panic!("on purpose")));
        assert!(std::panic::catch_unwind(panicked).is_err());
        assert_eq!(access.with(0, |count| *count), Some(1));
    }

    #[test]
    fn threads_that_come_one_by_one_lose_nothing() {
        const ROUNDS: u32 = 20_000;
        let shards = Arc::new(BiasedShards::<u32, 2>::new(|| 0));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let access = shards.ask().expect("the barrier is granted throughout");
                    for round in 0..ROUNDS {
                        let shard = usize::from(round % 2 == 0);
                        access.with(shard, |count| *count += 1).expect("nobody is inside twice");
                    }
                });
            }
        });
        let mut counts = Vec::new();
        assert!(shards.for_each(|count| counts.push(*count)));
        assert_eq!(counts, [3 * ROUNDS / 2; 2]);
    }
}
