//! What the ranks of a job that trains well report about themselves, second by second.
//!
//! Made up from a model: a rank's values of one second are drawn, not computed from its transfers one
//! by one. Each rank transfers with its neighbours in the ring of all and with everybody in its mesh of
//! eight, and waits in two kinds of collectives: its mesh's, and that of all, twice a second.

use std::f64::consts::TAU;
use std::ops::Range;

use telltale_cluster::group::GroupId;
use telltale_cluster::latency::{Collective, SizeBucket, WaitKey, WaitWindow, Window};
use telltale_cluster::observation::{GroupProgress, Observation};
use telltale_cluster::rank::Rank;

use crate::faults::machine::{Noise, SimulatedFault, SyntheticMachine, Topology};
use crate::random::Random;

use super::{STEPS_PER_EVALUATION, Workload};

/// Ranks in one mesh.
const MESH: u32 = 8;
/// The process group of the ring.
const RING: GroupId = GroupId::new(1);

/// Steps of a second, each with one collective of all.
const STEPS: u64 = 2;
/// Collectives of each mesh in a step.
const MESH_COLLECTIVES: u64 = 10;
/// Transfers of a rank in a second, in the ring.
const TRANSFERS: u64 = 200;
/// What a rank computes in one step, in nanoseconds.
const COMPUTE_NS: f64 = 400e6;
/// How different ranks are in that, and one rank's seconds: deviations, as shares.
const COMPUTE_SPREAD: f64 = 0.01;
const COMPUTE_JITTER: f32 = 0.01;
/// What a collective takes without waiting, of all and of a mesh, and the deviation, as a share.
const ALL_NS: f32 = 40e6;
const MESH_NS: f32 = 2e6;
const COLLECTIVE_JITTER: f32 = 0.05;

/// The ranks begin at different times, in seconds after their start, and all are there at the end of it.
const START: Range<u64> = 20..40;
/// Seconds in which the first steps get faster to a third: caches fill, kernels are compiled.
const WARM_UP: f64 = 10.0;
/// Seconds from one checkpoint, announced, to the next, how long one takes, and how much longer for rank 0.
const CHECKPOINT_EVERY: u64 = 1800;
const CHECKPOINT: Range<u64> = 20..60;
const CHECKPOINT_OF_FIRST: Range<u64> = 5..16;
/// Seconds from one evaluation, without collectives and not announced, to the next, and how long one takes.
const EVALUATION_EVERY: u64 = 7200;
const EVALUATION: Range<u64> = 60..181;
/// Within how many seconds the ranks begin and end a pause.
const RAGGED: u64 = 3;
/// How probable it is in a second that one rank stands still, and how long it does: slow input data, say.
const STALL: f64 = 1.0 / 900.0;
const STALL_SECONDS: Range<u64> = 1..4;
/// How probable it is that one rank has a hiccup in a second, and how long that is.
const HICCUP: f64 = 1.0 / 600.0;
const HICCUP_NS: Range<u64> = 50_000_000..200_000_000;
/// One rank collects garbage: each so many seconds, for so long.
const GARBAGE_EVERY: u64 = 30;
const GARBAGE_NS: f32 = 300e6;
/// How probable it is in a second that the transfers of one node become slower, by which factor, and for
/// how long.
const BURST: f64 = 1.0 / 21_600.0;
const BURST_RATIO: f64 = 2.0;
const BURST_SECONDS: Range<u64> = 1..4;
/// A day's load on the network, from the quietest hour to the busiest, and how much each rank's own
/// conditions change beside that; computing changes half as much. Renewed each so many seconds.
const DAY: f64 = 86_400.0;
const DAY_LOAD: f64 = 0.3;
const OWN_LOAD: f64 = 0.05;
const LOAD_EVERY: u64 = 60;

/// What all ranks do between two steps that lie further apart.
#[derive(Debug, Clone)]
struct Pause {
    /// Whether the ranks announce it.
    announced: bool,
    /// In which second it begins, and in which all go on.
    begin: u64,
    end: u64,
    /// From which second to which each rank is busy; afterwards it waits for the others.
    busy: Vec<Range<u64>>,
}

/// A rank.
#[derive(Debug, Clone)]
struct JobRank {
    /// What it computes in one step: usually, with the day's changes, and now.
    usual_ns: f32,
    today_ns: f32,
    now_ns: f32,
    /// Where its day begins.
    phase: f64,
    /// In which second after its start it begins.
    begins: u64,
    /// How long it waited in the last pause, not reported yet.
    waited_ns: f32,
}

/// The job's ranks.
#[derive(Debug, Clone)]
pub(super) struct WeekJob {
    machine: SyntheticMachine,
    members: Vec<JobRank>,
    random: Random,
    /// Since the beginning of all, and since the ranks were started, in seconds.
    second: u64,
    age: u64,
    steps: u64,
    pause: Option<Pause>,
    slow: Vec<(SimulatedFault, f64)>,
    burst: Option<(u32, u64)>,
    /// The slowest of each mesh, and of all, in this second.
    mesh_ns: Vec<f32>,
    all_ns: f32,
    /// How much all collectives are slower at this hour, and while the job warms up.
    load: f32,
}

impl WeekJob {
    /// A job of `ranks` ranks that have not been started.
    pub(super) fn new(ranks: u32, noise: Noise, seed: u64) -> Self {
        let mut groups = vec![Topology::Ring.edges(0, ranks)];
        let meshes = (0..ranks / MESH).map(|mesh| mesh * MESH);
        groups.extend(meshes.map(|first| Topology::Mesh.edges(first, MESH)));
        let machine = SyntheticMachine::new(ranks, &groups, noise, seed).with_senders(RING);
        let mut random = Random::new(seed ^ 1);
        let mut member = || {
            let usual_ns = (COMPUTE_NS * (COMPUTE_SPREAD * random.normal()).exp()) as f32;
            let (phase, begins) = (random.unit(), 0);
            JobRank {
                usual_ns,
                today_ns: usual_ns,
                now_ns: usual_ns,
                phase,
                begins,
                waited_ns: 0.0,
            }
        };
        let members: Vec<JobRank> = (0..ranks).map(|_| member()).collect();
        let mesh_ns = vec![0.0; members.len().div_ceil(place(MESH))];
        let mut job = Self {
            machine,
            members,
            random,
            second: 0,
            age: 0,
            steps: 0,
            pause: None,
            slow: Vec::new(),
            burst: None,
            mesh_ns,
            all_ns: 0.0,
            load: 1.0,
        };
        job.restart();
        job
    }

    fn slow_down(&mut self) {
        let burst = self.burst.map(|(rank, _)| (SimulatedFault::Node(rank), BURST_RATIO));
        let faults: Vec<(SimulatedFault, f64)> = self.slow.iter().copied().chain(burst).collect();
        self.machine.break_down(&faults);
    }

    /// Goes on to the next second.
    fn second(&mut self) {
        (self.second, self.age) = (self.second + 1, self.age + 1);
        if self.second % LOAD_EVERY == 1 || self.is_warming_up() {
            self.renew_load();
        }
        self.renew_burst();
        if self.pause.as_ref().is_some_and(|pause| pause.end <= self.age) {
            self.end_pause();
        }
        if self.pause.is_none() && self.age >= START.end {
            self.steps += STEPS;
            self.machine.window();
            self.compute();
            self.pause = self.begin_pause();
            // A rank that was in a collective at its last report has finished it before the pause.
            self.steps += if self.pause.is_some() { STEPS } else { 0 };
        }
    }

    fn is_warming_up(&self) -> bool {
        (START.end..START.end + LOAD_EVERY).contains(&self.age)
    }

    fn renew_load(&mut self) {
        let day = self.second as f64 / DAY;
        let warm_up = if self.age < START.end {
            3.0
        } else {
            1.0 + 2.0 * (-((self.age - START.end) as f64) / WARM_UP).exp()
        };
        let all = warm_up * (1.0 + DAY_LOAD * (1.0 - (TAU * day).cos()) / 2.0);
        let own = |phase: f64, share: f64| 1.0 + share * (TAU * (day + phase)).sin();
        for member in &mut self.members {
            member.today_ns = member.usual_ns * own(member.phase, OWN_LOAD / 2.0) as f32;
        }
        let own_loads: Vec<f64> =
            self.members.iter().map(|member| own(member.phase, OWN_LOAD)).collect();
        let of_rank = |rank: u32| own_loads[place(rank)];
        self.machine.load(|(from, to)| (all * of_rank(from) * of_rank(to)) as f32);
        self.load = all as f32;
    }

    fn renew_burst(&mut self) {
        let is_over = self.burst.is_some_and(|(_, end)| end <= self.second);
        let begins = self.random.happens(BURST * self.members.len() as f64);
        if is_over {
            self.burst = None;
        }
        if begins && self.burst.is_none() {
            let rank = self.random.below(u64::try_from(self.members.len()).unwrap_or(0));
            let end = self.second + draw(&mut self.random, BURST_SECONDS);
            self.burst = u32::try_from(rank).ok().map(|rank| (rank, end));
        }
        if is_over || begins {
            self.slow_down();
        }
    }

    /// What each computes in this second's steps.
    fn compute(&mut self) {
        let collector = self.members.len() / 3;
        let collects = self.second.is_multiple_of(GARBAGE_EVERY);
        for (number, member) in self.members.iter_mut().enumerate() {
            let jitter = 1.0 + COMPUTE_JITTER * near_normal(&mut self.random);
            member.now_ns = member.today_ns * jitter;
            let steps = STEPS as f32;
            if self.random.happens(HICCUP) {
                member.now_ns += draw(&mut self.random, HICCUP_NS) as f32 / steps;
            }
            if collects && number == collector {
                member.now_ns += GARBAGE_NS / steps;
            }
        }
        let meshes = self.members.chunks(place(MESH));
        for (slowest, mesh) in self.mesh_ns.iter_mut().zip(meshes) {
            *slowest = mesh.iter().map(|member| member.now_ns).fold(0.0, f32::max);
        }
        self.all_ns = self.mesh_ns.iter().copied().fold(0.0, f32::max);
    }

    /// The pause that begins after this second, if one does.
    fn begin_pause(&mut self) -> Option<Pause> {
        let (next, random) = (self.age + 1, &mut self.random);
        let (announced, length) = if self.age.is_multiple_of(EVALUATION_EVERY) {
            (false, draw(random, EVALUATION))
        } else if self.age.is_multiple_of(CHECKPOINT_EVERY) {
            (true, draw(random, CHECKPOINT))
        } else if random.happens(STALL) {
            return Some(self.stall());
        } else {
            return None;
        };
        let mut busy: Vec<Range<u64>> = (0..self.members.len())
            .map(|_| next + draw(random, 0..RAGGED)..next + length + draw(random, 0..RAGGED))
            .collect();
        if announced {
            busy[0].end += draw(random, CHECKPOINT_OF_FIRST);
        } else {
            // No rank enters a collective before it has evaluated.
            busy.iter_mut().for_each(|one| one.start = next);
        }
        let end = busy.iter().map(|one| one.end).max().unwrap_or(next);
        Some(Pause { announced, begin: next, end, busy })
    }

    /// One rank stands still, and the others wait.
    fn stall(&mut self) -> Pause {
        let next = self.age + 1;
        let end = next + draw(&mut self.random, STALL_SECONDS);
        let mut busy = vec![next..next; self.members.len()];
        if let Some(one) = self.random.index(busy.len()) {
            busy[one] = next..end;
        }
        Pause { announced: false, begin: next, end, busy }
    }

    /// All go on, and who was there first has waited in the first collective.
    fn end_pause(&mut self) {
        let Some(pause) = self.pause.take() else { return };
        for (member, busy) in self.members.iter_mut().zip(&pause.busy) {
            let waited = pause.end.saturating_sub(busy.end);
            member.waited_ns = waited as f32 * 1e9;
        }
    }

    fn training(&mut self, rank: u32) -> Observation {
        let bits = self.random.bits();
        let is = |bit: u32| bits >> bit & 1 == 1;
        let progress = self.progress(rank, is(0), is(1), is(2) && is(3));
        let edges = self.machine.reports()[place(rank)].edges.clone();
        let noise = |shift: u32| COLLECTIVE_JITTER * near_normal_of(bits >> shift);
        let load = self.load;
        let member = &mut self.members[place(rank)];
        let mesh_ns = self.mesh_ns[place(rank / MESH)];
        let late_ns = (mesh_ns - member.now_ns).max(0.0) / MESH_COLLECTIVES as f32;
        let in_mesh_ns = MESH_NS * load * (1.0 + noise(8)) + late_ns;
        let waited_ns = std::mem::take(&mut member.waited_ns) / STEPS as f32;
        let in_all_ns = ALL_NS * load * (1.0 + noise(40)) + (self.all_ns - mesh_ns) + waited_ns;
        let collectives = [
            (GroupId::WORLD, Collective::AllReduce, 26, STEPS, in_all_ns),
            (mesh_of(rank), Collective::AllGather, 22, STEPS * MESH_COLLECTIVES, in_mesh_ns),
        ];
        let wait = |(group, collective, bytes, count, mean_ns): (_, _, u32, u64, f32)| WaitWindow {
            key: WaitKey {
                group,
                rank: Rank(rank),
                collective,
                bucket: SizeBucket::of(1 << bytes),
            },
            window: window(count, self.steps / STEPS * count, mean_ns),
        };
        let waits = collectives.map(wait).into();
        Observation { progress, edges, waits, ..Observation::default() }
    }

    /// How far a rank is in each of its groups: whether it is within a collective of all, of its mesh, and
    /// a transfer with its neighbour.
    fn progress(
        &self,
        rank: u32,
        in_all: bool,
        in_mesh: bool,
        transfers: bool,
    ) -> Vec<GroupProgress> {
        let next = if place(rank) + 1 < self.members.len() { rank + 1 } else { 0 };
        let sends_to = if transfers { vec![Rank(next)] } else { Vec::new() };
        let transferred = self.steps / STEPS * TRANSFERS;
        let ring = GroupProgress { sends_to, transferred, ..progress(RING, rank, 0, false) };
        let of_mesh = progress(mesh_of(rank), rank, self.steps * MESH_COLLECTIVES, in_mesh);
        vec![progress(GroupId::WORLD, rank, self.steps, in_all), of_mesh, ring]
    }
}

impl Workload for WeekJob {
    fn restart(&mut self) {
        (self.age, self.steps, self.pause) = (0, 0, None);
        for member in &mut self.members {
            member.begins = draw(&mut self.random, START);
            member.waited_ns = 0.0;
        }
    }

    fn break_down(&mut self, faults: &[(SimulatedFault, f64)]) {
        self.slow = faults.to_vec();
        self.slow_down();
    }

    fn go_on(&mut self, step: u64) {
        if step.is_multiple_of(STEPS_PER_EVALUATION) {
            self.second();
        }
    }

    /// What a node reports about its rank now, since its last report; how its workers are is not in it.
    fn report(&mut self, rank: u32) -> Observation {
        let member = &self.members[place(rank)];
        if self.age < member.begins {
            return Observation::default();
        }
        if self.age < START.end {
            let progress = vec![progress(GroupId::WORLD, rank, 0, true)];
            return Observation { progress, ..Observation::default() };
        }
        let Some(pause) = self.pause.as_ref().filter(|pause| self.age >= pause.begin) else {
            return self.training(rank);
        };
        let busy = &pause.busy[place(rank)];
        let is_busy = busy.contains(&self.age);
        let waits = self.age >= busy.end;
        let progress = self.progress(rank, waits, false, false);
        Observation { progress, excused: pause.announced && is_busy, ..Observation::default() }
    }
}

fn mesh_of(rank: u32) -> GroupId {
    GroupId::new(u64::from(rank / MESH) + 2)
}

fn progress(group: GroupId, rank: u32, finished: u64, is_inside: bool) -> GroupProgress {
    let entered = finished + u64::from(is_inside);
    let (rank, sends_to, receives_from) = (Rank(rank), Vec::new(), Vec::new());
    GroupProgress { group, rank, entered, finished, sends_to, receives_from, transferred: 0 }
}

fn window(count: u64, last_sequence: u64, mean_ns: f32) -> Window {
    let (count, mean_ns) = (u32::try_from(count).unwrap_or(u32::MAX), mean_ns as u64);
    let (median_ns, deviation_ns, high_ns) = (mean_ns, mean_ns / 20, mean_ns);
    Window {
        count,
        mean_ns,
        median_ns,
        deviation_ns,
        high_ns,
        last_sequence,
        late: 0,
        overlapped: 0,
    }
}

fn place(rank: u32) -> usize {
    usize::try_from(rank).expect("a u32 fits in a usize")
}

fn draw(random: &mut Random, range: Range<u64>) -> u64 {
    range.start + random.below(range.end - range.start)
}

/// A number of about the normal distribution, which is cheap: the sum of four even ones.
fn near_normal(random: &mut Random) -> f32 {
    let bits = random.bits();
    (near_normal_of(bits) + near_normal_of(bits >> 32)) * std::f32::consts::FRAC_1_SQRT_2
}

/// The same of 32 bits: the sum of four bytes, less its mean, by its deviation (of a byte: 73.9).
fn near_normal_of(bits: u64) -> f32 {
    let sum: u16 = bits.to_le_bytes()[..4].iter().map(|byte| u16::from(*byte)).sum();
    (f32::from(sum) - 510.0) / 147.8
}
