//! Runs cases and adds up what came of them.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use telltale_cluster::policy::Mode;
use telltale_cluster::verdict::VerdictKind;

use super::baselines::Baseline;
use super::case::Case;
use super::job::Steps;
use super::judging::{NamedSuspects, judge, tally};
use super::outside::{self, Outside};
use super::score::Score;
use crate::faults::machine::SimulatedFault;
use crate::faults::week::{Lasting, Workload as _, check_job};

/// Runs all cases, on all processors.
///
/// # Panics
/// When a case does.
#[must_use]
pub fn score(cases: &[Case]) -> Score {
    let on_all = of_each(cases, |case| Ok::<_, io::Error>(with_baselines(case, &watch(case))));
    on_all.expect("nothing fails")
}

/// The same of a detector that is another program. The first case that it fails ends it.
///
/// # Errors
/// When the program does not run, does not end, or says what is no verdict.
pub fn score_outside(cases: &[Case], program: &Outside) -> Result<Score, outside::Error> {
    of_each(cases, |case| Ok(with_baselines(case, &program.watch(case)?)))
}

fn of_each<Failure: Send>(
    cases: &[Case],
    score: impl Fn(&Case) -> Result<Score, Failure> + Sync,
) -> Result<Score, Failure> {
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(None);
    let work = || {
        let mut sum = Score::default();
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            match score(case) {
                Ok(one) => sum.add(&one),
                Err(failure) => {
                    next.store(cases.len(), Ordering::Relaxed);
                    failed.lock().expect("nothing panics with it").get_or_insert(failure);
                }
            }
        }
        sum
    };
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let all = thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let mut all = Score::default();
        threads.into_iter().for_each(|one| all.add(&one.join().expect("no case panics")));
        all
    });
    match failed.into_inner().expect("nothing panics with it") {
        Some(failure) => Err(failure),
        None => Ok(all),
    }
}

/// The score of what was said, and those of the usual rules.
fn with_baselines(case: &Case, said: &[NamedSuspects]) -> Score {
    let mut score = judge(case, said);
    let named = by_baselines(case);
    score.baselines = named.iter().map(|(rule, named)| (*rule, tally(case, named))).collect();
    score
}

/// What is shipped says this.
fn watch(case: &Case) -> Vec<NamedSuspects> {
    let plan = case.plan(case.time(), Mode::Observe, 0);
    let job = Steps::new(case.traits, false, case.seed);
    let slow_kinds = [VerdictKind::SlowNode, VerdictKind::SlowLink];
    let lasting = check_job(&plan, job).lasting.into_iter();
    lasting.filter(|one| slow_kinds.contains(&one.kind)).map(NamedSuspects::from).collect()
}

/// What the usual rules say of a job of the same chance.
fn by_baselines(case: &Case) -> BTreeMap<Baseline, BTreeSet<SimulatedFault>> {
    let mut job = Steps::new(case.traits, true, case.seed);
    for second in 0..case.time().as_secs() {
        let slow = case.slow.iter().filter(|one| one.is_now(Duration::from_secs(second)));
        job.break_down(&slow.map(|one| (one.fault, one.ratio)).collect::<Vec<_>>());
        job.go_on(10 * (second + 1));
    }
    Baseline::ALL.into_iter().map(|one| (one, one.named(&job.all))).collect()
}

impl From<Lasting> for NamedSuspects {
    fn from(one: Lasting) -> Self {
        Self {
            at_seconds: one.first_seen.as_ns() as f64 / 1e9,
            suspects: one.suspects.all().to_vec(),
            confidence: Some(one.confidence),
        }
    }
}
