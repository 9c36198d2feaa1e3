//! What a seed stands for: the cluster's size, its policy, and how much goes wrong.

use std::num::NonZeroU16;
use std::time::Duration;

use telltale_cluster::policy::{AgentPolicy, Job, Mode, NoSpare, Policy};
use telltale_cluster::rank::WorkersPerNode;

use crate::random::Random;

/// One simulated cluster, and what happens to it.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// The seed that everything else is drawn from.
    pub seed: u64,
    /// The job.
    pub job: Job,
    /// How the coordinators act.
    pub policy: Policy,
    /// How the agents act.
    pub agent: AgentPolicy,
    /// Nodes beyond those that the job needs.
    pub spares: u32,
    /// How long things go wrong.
    pub troubled: Duration,
    /// How many things go wrong meanwhile.
    pub troubles: u32,
    /// Which kinds of things go wrong.
    pub kinds: Kinds,
    /// How long workers take to stop, at least and at most.
    pub stopping: [Duration; 2],
    /// How long the job takes once all ranks run; it never ends without.
    pub work: Option<Duration>,
}

/// Which kinds of things go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kinds {
    /// All.
    All,
    /// Only those that concern coordinators and their store.
    Coordinators,
    /// The job finishes repeatedly, is restarted by an operator, and its agents are started again.
    PlannedReruns,
    /// Several nodes with a slot are cut off from the coordinators at once, for less than a minute. Their
    /// workers go on.
    CrowdCut,
    /// The same, or they stand still for as long, while workers of one or two others exit as survivors do. Workers
    /// take seconds to stop, and notice nothing of each other.
    CrowdCutAmongFailures,
    /// Several nodes with a slot lose power at once, for ever.
    CrowdDeath,
    /// An operator puts an older copy in the place of the store, or an empty one, and the newest back at the end of
    /// the troubled time.
    StoreBehind,
    /// One worker is killed at the end of the troubled time, and nothing else.
    OneCrash,
    /// One node with a slot loses power then, for ever.
    OneDeath,
    /// The agent of one node with a slot is asked to end then, and is not started again.
    OneDeparture,
    /// One node with a slot stands still then, for ever.
    OneFreeze,
    /// Detection names one node with a slot then, for ever.
    OneSuspicion,
    /// Detection suspects hundreds of links from the middle of the troubled time on, for ever, and one
    /// worker ends with an exit code at its end.
    CrashAmongSuspicions,
}

impl Scenario {
    /// The scenario of a seed.
    #[must_use]
    pub fn drawn(seed: u64) -> Self {
        let mut random = Random::new(seed).split();
        let count = |random: &mut Random, least: u32, most: u32| {
            let span = u64::from(most - least + 1);
            least + u32::try_from(random.below(span)).expect("below a number of 32 bits")
        };
        let slots = count(&mut random, 1, 6);
        let workers = WorkersPerNode::new(count(&mut random, 1, 3)).expect("1 to 3");
        let no_spare = if random.happens(0.3) {
            let timeout = random.duration(Duration::ZERO, Duration::from_secs(5));
            NoSpare::Shrink { least_slots: count(&mut random, 1, slots), timeout }
        } else {
            NoSpare::Hold
        };
        let policy = Policy {
            mode: if random.happens(0.5) { Mode::Act } else { Mode::Recover },
            eviction_budget: count(&mut random, 1, 20),
            budget_window: Duration::from_secs(60),
            restart_budget: 1000,
            failures_to_quarantine: count(&mut random, 2, 8),
            // Suspicions of some seconds are to matter.
            continuity_windows: 5,
            mass_silence_timeout: Duration::from_secs(20),
            prepare_deadline: Duration::from_secs(6),
            no_spare,
            // Few ports, so that the range is gone round.
            least_port: NonZeroU16::new(29_500).expect("not 0"),
            greatest_port: NonZeroU16::new(29_516).expect("not 0"),
            ..Policy::default()
        };
        let agent = AgentPolicy { stop_grace: Duration::from_secs(2), ..AgentPolicy::default() };
        let work = random
            .happens(0.3)
            .then(|| random.duration(Duration::from_secs(5), Duration::from_secs(40)));
        Self {
            seed,
            job: Job { name: "simulated".to_owned(), slots, workers },
            policy,
            agent,
            spares: count(&mut random, 0, 3),
            troubled: Duration::from_secs(30),
            troubles: count(&mut random, 0, 12),
            kinds: Kinds::All,
            stopping: [Duration::from_millis(5), Duration::from_millis(300)],
            work,
        }
    }

    /// A job of four nodes with one spare, to which little has happened yet.
    #[must_use]
    pub fn plain(seed: u64) -> Self {
        let drawn = Self::drawn(seed);
        let workers = WorkersPerNode::new(2).expect("2 is not 0");
        Self {
            job: Job { slots: 4, workers, ..drawn.job },
            policy: Policy { no_spare: NoSpare::Hold, mode: Mode::Act, ..drawn.policy },
            spares: 1,
            troubles: 0,
            work: None,
            ..drawn
        }
    }

    /// A job that an operator runs repeatedly.
    #[must_use]
    pub fn planned_reruns(seed: u64) -> Self {
        let drawn = Self::drawn(seed);
        let mut random = Random::new(seed ^ 0x5eed).split();
        let work = random.duration(Duration::from_millis(500), Duration::from_secs(5));
        Self {
            kinds: Kinds::PlannedReruns,
            // One of them would be spent at once, were they spent at all.
            policy: Policy { eviction_budget: 1, restart_budget: 1, ..drawn.policy },
            agent: AgentPolicy { restart_budget: 2, ..drawn.agent },
            troubled: Duration::from_secs(150),
            troubles: 0,
            work: Some(work),
            ..drawn
        }
    }

    /// A job of eight nodes with four spares, of which several fall silent at once.
    #[must_use]
    pub fn crowd(seed: u64, kinds: Kinds) -> Self {
        let plain = Self::plain(seed);
        let policy = Policy {
            eviction_budget: 20,
            mass_silence_timeout: Policy::default().mass_silence_timeout,
            ..plain.policy
        };
        let job = Job { slots: 8, ..plain.job };
        Self { kinds, job, policy, spares: 4, troubled: Duration::from_secs(80), ..plain }
    }

    /// The same crowd of which workers take longer to stop than it takes until a crowd that is back is acted on.
    #[must_use]
    pub fn crowd_that_stops_slowly(seed: u64) -> Self {
        let crowd = Self::crowd(seed, Kinds::CrowdCutAmongFailures);
        let prepare_deadline = Policy::default().prepare_deadline;
        Self {
            policy: Policy { prepare_deadline, ..crowd.policy },
            agent: AgentPolicy { stop_grace: AgentPolicy::default().stop_grace, ..crowd.agent },
            stopping: [Duration::from_secs(6), Duration::from_secs(12)],
            troubled: Duration::from_secs(100),
            ..crowd
        }
    }

    /// How long after everything is mended the job must run again: everybody who was frozen or cut
    /// off is noticed, registered and stopped, and the dead are replaced as the budget allows.
    #[must_use]
    pub fn recovery_bound(&self) -> Duration {
        let windows = 1 + self.spares.div_ceil(self.policy.eviction_budget.max(1));
        self.policy.budget_window * windows
            + self.policy.mass_silence_timeout
            + Duration::from_secs(60)
    }

    /// How many nodes there are.
    #[must_use]
    pub const fn hosts(&self) -> u32 {
        self.job.slots + self.spares
    }
}
