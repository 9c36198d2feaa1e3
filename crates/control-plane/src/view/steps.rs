//! A job's training steps and where their time goes, as people and scripts read it.

use serde::Serialize;
use telltale_wire::cluster::message::{
    GetStepsResponse, RankWait, SlowLink, SlowRank, SlowStage, StepAnalysis, StepTime,
};

use super::evidence::LEAST_WITHHELD;
use super::words::duration;

/// A part of the lost time that is smaller is not mentioned.
const LEAST_PART: f64 = 0.05;
/// Fewer steps do not tell how long steps usually take.
const ENOUGH_BEFORE: usize = 10;
/// Steps that take less than this many times as long as before are not called slower.
const LEAST_SLOWER: f64 = 1.25;
/// What a step takes longer by less is not called slow.
const LEAST_LOSS: f64 = 0.02;

const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The job's training steps.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct JobStepsView {
    /// What is slow now and why, in sentences.
    pub text: Vec<String>,
    /// The latest steps; none before there are enough.
    pub latest: Option<AnalysisView>,
    /// All steps of the epoch that were analysed.
    pub all: Option<AnalysisView>,
    /// How long single steps took, the oldest first.
    pub times: Vec<StepTimeView>,
    /// Who waits for whom in the latest steps, the longest first.
    pub waits: Vec<WaitView>,
    /// Steps that were left out, since operations were missing or made no sense.
    pub left_out: u64,
}

/// How long one step took.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StepTimeView {
    /// Its number.
    pub step: u64,
    /// From its first operation to its last.
    pub seconds: f64,
}

/// How long a rank waits for another one: until that begins a communication that both take part in.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WaitView {
    /// Which waits.
    pub rank: u32,
    /// Its node.
    pub node: String,
    /// For which.
    pub awaited: u32,
    /// Its node.
    pub awaited_node: String,
    /// How long in one step, on the average.
    pub seconds: f64,
}

/// Where the time of some steps goes. Seconds are those of one step on the average.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AnalysisView {
    /// How many.
    pub steps: u64,
    /// The first of them.
    pub first_step: u64,
    /// The last of them.
    pub last_step: u64,
    /// How many times as long a step takes as with each operation at what is typical of its kind.
    pub slowdown: f64,
    /// What a step takes.
    pub actual_seconds: f64,
    /// What it would take if all ranks computed alike and no communication were slow.
    pub even_seconds: f64,
    /// What it takes longer, by what.
    pub lost_seconds: LostView,
    /// How the stages differ, slowest first.
    pub stages: Vec<StageView>,
    /// The slow ranks, costliest first.
    pub ranks: Vec<RankView>,
    /// The slow links, costliest first.
    pub links: Vec<LinkView>,
}

/// What a step takes longer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LostView {
    /// Since the model's stages differ.
    pub stages: f64,
    /// Since ranks of one stage differ for good.
    pub ranks: f64,
    /// Since computations vary with the data.
    pub data: f64,
    /// Since they vary otherwise.
    pub noise: f64,
    /// Since communications do not take what is typical of them.
    pub links: f64,
}

/// One stage.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StageView {
    /// Its place in the flow, from 0.
    pub stage: u32,
    /// How many times as long it computes as the others.
    pub ratio: f64,
    /// The same by kind of computation.
    pub kinds: Vec<(String, f64)>,
    /// How many ranks it has.
    pub rank_count: u32,
    /// The lowest of them.
    pub ranks: Vec<u32>,
}

/// A slow rank.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RankView {
    /// Which.
    pub rank: u32,
    /// The node that it runs on.
    pub node: String,
    /// How many times as long as is usual of its stage.
    pub ratio: f64,
    /// What a step would take less without that.
    pub cost_seconds: f64,
    /// In how many of the steps it was slow.
    pub slow_steps: u32,
    /// Of how many.
    pub steps: u32,
    /// Whether it takes longer between its operations alone, and computes as fast as others.
    pub is_between: bool,
    /// Which part of the time it wanted a processor and had none, 0 to 1.
    pub withheld_ratio: f64,
}

/// A slow link.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LinkView {
    /// The rank that sends.
    pub from: u32,
    /// Its node.
    pub from_node: String,
    /// The rank that receives.
    pub to: u32,
    /// Its node.
    pub to_node: String,
    /// How many times as long as like transfers.
    pub ratio: f64,
    /// What a step would take less without that.
    pub cost_seconds: f64,
    /// In how many of the steps it was slow.
    pub slow_steps: u32,
    /// Of how many.
    pub steps: u32,
}

impl From<&GetStepsResponse> for JobStepsView {
    fn from(steps: &GetStepsResponse) -> Self {
        let latest = steps.latest.as_ref().map(AnalysisView::from);
        let mut text = latest.as_ref().map(AnalysisView::sentences).unwrap_or_default();
        if let Some(slower) =
            latest.as_ref().and_then(|latest| slower_than_before(latest, &steps.times))
        {
            text.insert(1.min(text.len()), slower);
        }
        let all = steps.all.as_ref().map(AnalysisView::from);
        text.extend(all.as_ref().and_then(AnalysisView::total));
        let times = steps
            .times
            .iter()
            .map(|one| StepTimeView { step: one.step, seconds: seconds(one.time_ns) });
        Self {
            text,
            latest,
            all,
            times: times.collect(),
            waits: steps.waits.iter().map(wait).collect(),
            left_out: steps.left_out,
        }
    }
}

impl JobStepsView {
    /// The times of the latest steps as a line of so many blocks at most, from nothing to the longest, with a word on both;
    /// nothing where no time is known.
    #[must_use]
    pub fn times_in_blocks(&self, columns: usize) -> Option<String> {
        let shown = &self.times[self.times.len().saturating_sub(columns)..];
        let (first, last) = (shown.first()?, shown.last()?);
        let longest = shown.iter().map(|one| one.seconds).fold(0.0, f64::max);
        let block = |seconds: f64| {
            let part = if longest > 0.0 { seconds / longest } else { 0.0 };
            BLOCKS[((part * 8.0).ceil() as usize).clamp(1, 8) - 1]
        };
        let line: String = shown.iter().map(|one| block(one.seconds)).collect();
        let most = in_words(longest);
        Some(format!("{line}  steps {} to {}, the longest {most}", first.step, last.step))
    }
}

impl From<&StepAnalysis> for AnalysisView {
    fn from(from: &StepAnalysis) -> Self {
        Self {
            steps: from.steps,
            first_step: from.first_step,
            last_step: from.last_step,
            slowdown: from.slowdown,
            actual_seconds: seconds(from.actual_ns),
            even_seconds: seconds(from.even_ns),
            lost_seconds: LostView {
                stages: from.stages_ns as f64 / 1e9,
                ranks: from.ranks_ns as f64 / 1e9,
                data: from.data_ns as f64 / 1e9,
                noise: from.noise_ns as f64 / 1e9,
                links: from.links_ns as f64 / 1e9,
            },
            stages: from.stages.iter().map(stage).collect(),
            ranks: from.ranks.iter().map(rank).collect(),
            links: from.links.iter().map(link).collect(),
        }
    }
}

impl AnalysisView {
    /// What a step takes longer than it would if all computed alike, in seconds.
    #[must_use]
    pub fn lost(&self) -> f64 {
        self.actual_seconds - self.even_seconds
    }

    /// What all of the steps took together, and what of that was lost to what; nothing where nothing was lost.
    fn total(&self) -> Option<String> {
        let lost = self.lost();
        if lost < LEAST_LOSS * self.even_seconds {
            return None;
        }
        let LostView { stages, ranks, data, noise, links } = self.lost_seconds;
        let mut parts = [
            (ranks, "slow ranks"),
            (stages, "stages that differ"),
            (data, "data that varies"),
            (noise, "noise of hosts"),
            (links, "communication"),
        ];
        parts.sort_by(|one, other| other.0.total_cmp(&one.0));
        let percent = |seconds: f64| format!("{:.0} %", 100.0 * seconds / self.actual_seconds);
        let parts: Vec<String> = parts
            .into_iter()
            .filter(|(seconds, _)| *seconds >= LEAST_PART * lost)
            .map(|(seconds, name)| format!("{} by {name}", percent(seconds)))
            .collect();
        let count = self.steps as f64;
        Some(format!(
            "All {} steps together took {}, of which {} were useful; lost: {}.",
            self.steps,
            in_words(count * self.actual_seconds),
            percent(self.even_seconds),
            parts.join(", ")
        ))
    }

    /// What is slow and why: first how long a step takes, then a sentence for each cause, the largest first.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        let [actual, even] = [self.actual_seconds, self.even_seconds].map(in_words);
        let of = match self.steps {
            1 => format!("step {}", self.last_step),
            _ => format!("steps {} to {}", self.first_step, self.last_step),
        };
        let lost = self.lost();
        if lost < LEAST_LOSS * self.even_seconds {
            return vec![format!("A step takes {actual} ({of}). Nothing slows it down.")];
        }
        let mut text = vec![format!(
            "A step takes {actual} ({of}); {even} if all ranks computed alike and no communication \
             were slow."
        )];
        let mut causes = self.slow_ranks();
        causes.extend(self.slow_links());
        let rest = |cost: f64, text: String| SlowCause { weight: cost, cost, text };
        let of_stages = self.stages.first().map(|slowest| stage_text(slowest, self.stages.len()));
        causes.extend(of_stages.map(|text| rest(self.lost_seconds.stages, text)));
        let data = "Computations vary from step to step with their data: no node is at fault.";
        causes.push(rest(self.lost_seconds.data, data.to_owned()));
        let noise =
            "Computations vary by themselves: noise of the hosts, such as garbage collection.";
        causes.push(rest(self.lost_seconds.noise, noise.to_owned()));
        if self.links.is_empty() {
            let links = "Communication varies; no link stands out.";
            causes.push(rest(self.lost_seconds.links, links.to_owned()));
        }
        causes.retain(|one| one.weight >= LEAST_PART * lost);
        causes.sort_by(|one, other| other.weight.total_cmp(&one.weight));
        let part = |cost: f64| (100.0 * cost / lost).min(100.0);
        let sentence =
            |one: SlowCause| format!("{} ({:.0} % of the loss)", one.text, part(one.cost));
        text.extend(causes.into_iter().map(sentence));
        text
    }

    /// The slow ranks: each with what a step takes once those before it take what is usual.
    fn slow_ranks(&self) -> Vec<SlowCause> {
        let mut with_seconds = self.actual_seconds;
        let mut causes = Vec::new();
        for one in &self.ranks {
            let without_seconds = (with_seconds - one.cost_seconds).max(0.0);
            let [with, without] = [with_seconds, without_seconds].map(in_words);
            let that = if causes.is_empty() { "that" } else { "that too" };
            let what = rank_text(one);
            let text = format!("{what}; without {that} a step takes {without} instead of {with}.");
            let cost = one.cost_seconds;
            causes.push(SlowCause { weight: cost, cost, text });
            with_seconds = without_seconds;
        }
        weighed(causes)
    }

    /// The slow links, both ways of one together.
    fn slow_links(&self) -> Vec<SlowCause> {
        let mut with_seconds = self.actual_seconds;
        let mut causes = Vec::new();
        for (place, one) in self.links.iter().enumerate() {
            let is_back = |other: &&LinkView| (other.from, other.to) == (one.to, one.from);
            if self.links[..place].iter().any(|other| is_back(&other)) {
                continue;
            }
            let back = self.links.iter().find(is_back);
            let cost = one.cost_seconds + back.map_or(0.0, |back| back.cost_seconds);
            let without_seconds = (with_seconds - cost).max(0.0);
            let [with, without] = [with_seconds, without_seconds].map(in_words);
            let that = if causes.is_empty() { "that" } else { "that too" };
            let what = link_text(one, back);
            let text = format!("{what}; without {that} a step takes {without} instead of {with}.");
            causes.push(SlowCause { weight: cost, cost, text });
            with_seconds = without_seconds;
        }
        weighed(causes)
    }
}

/// Why steps take longer than they need.
struct SlowCause {
    /// By which causes are in order: of a slow rank or link, what it costs with those that it hides.
    weight: f64,
    /// What a step takes less without it, in seconds.
    cost: f64,
    text: String,
}

/// These with what each costs with all after it.
fn weighed(mut causes: Vec<SlowCause>) -> Vec<SlowCause> {
    let mut weight = 0.0;
    for one in causes.iter_mut().rev() {
        weight += one.cost;
        one.weight = weight;
    }
    causes
}

fn link_text(one: &LinkView, back: Option<&LinkView>) -> String {
    let LinkView { from, from_node, to, to_node, ratio, .. } = one;
    match back {
        None => format!(
            "Transfers from rank {from} on {from_node} to rank {to} on {to_node} take {ratio:.1} times as long \
             as like ones"
        ),
        Some(back) => format!(
            "Transfers between rank {from} on {from_node} and rank {to} on {to_node} take {ratio:.1} and {:.1} \
             times as long as like ones",
            back.ratio
        ),
    }
}

fn rank_text(one: &RankView) -> String {
    let RankView { rank, node, ratio, .. } = one;
    let withheld = 100.0 * one.withheld_ratio;
    match one.is_between {
        true => format!(
            "Rank {rank} on {node} computes as fast as others and takes {ratio:.2} times as long between \
             its operations (data, logs, checkpoints, other programs)"
        ),
        false if one.withheld_ratio >= LEAST_WITHHELD => format!(
            "Rank {rank} on {node} computes {ratio:.2} times as long as it should and has no processor for \
             {withheld:.0} % of the time (its control group's limit)"
        ),
        false => format!(
            "Rank {rank} on {node} computes {ratio:.2} times as long as ranks that do the same work"
        ),
    }
}

/// The sentence where the latest steps take longer than those before, whatever the cause.
fn slower_than_before(latest: &AnalysisView, times: &[StepTime]) -> Option<String> {
    let (before, now): (Vec<&StepTime>, Vec<&StepTime>) =
        times.iter().partition(|one| one.step < latest.first_step);
    if before.len() < ENOUGH_BEFORE {
        return None;
    }
    let [usual, now] = [&before, &now].map(|times| middle(times));
    let (first, last) = (before.first()?.step, before.last()?.step);
    (now >= LEAST_SLOWER * usual).then(|| {
        format!(
            "Steps take {:.1} times as long as before: {} in the middle of steps {first} to {last}.",
            now / usual,
            in_words(usual)
        )
    })
}

/// The time of the step in the middle, in seconds; 0 of none.
fn middle(times: &[&StepTime]) -> f64 {
    let mut all: Vec<u64> = times.iter().map(|one| one.time_ns).collect();
    all.sort_unstable();
    all.get(all.len() / 2).map_or(0.0, |ns| seconds(*ns))
}

fn stage_text(slowest: &StageView, stages: usize) -> String {
    let which = match usize::try_from(slowest.stage) {
        Ok(place) if place + 1 == stages => "The last stage".to_owned(),
        _ => format!("Stage {}", slowest.stage),
    };
    let kinds: Vec<String> =
        slowest.kinds.iter().map(|(name, ratio)| format!("{name} {ratio:.2}")).collect();
    let kinds = match kinds.is_empty() {
        true => String::new(),
        false => format!(" ({})", kinds.join(", ")),
    };
    let why = match slowest.rank_count {
        1 => "one rank alone does its work, so the model's partition or its node is slow",
        _ => "all its ranks do, so it is the model's partition and no node",
    };
    format!("{which} computes {:.2} times as long as the others{kinds}; {why}.", slowest.ratio)
}

fn stage(from: &SlowStage) -> StageView {
    StageView {
        stage: from.stage,
        ratio: from.ratio,
        kinds: from.work.iter().map(|one| (one.name.clone(), one.ratio)).collect(),
        rank_count: from.rank_count,
        ranks: from.ranks.clone(),
    }
}

fn rank(from: &SlowRank) -> RankView {
    RankView {
        rank: from.rank,
        node: from.node.clone(),
        ratio: from.ratio,
        cost_seconds: seconds(from.cost_ns),
        slow_steps: from.slow,
        steps: from.observed,
        is_between: from.is_between,
        withheld_ratio: from.withheld,
    }
}

fn link(from: &SlowLink) -> LinkView {
    LinkView {
        from: from.from,
        from_node: from.from_node.clone(),
        to: from.to,
        to_node: from.to_node.clone(),
        ratio: from.ratio,
        cost_seconds: seconds(from.cost_ns),
        slow_steps: from.slow,
        steps: from.observed,
    }
}

fn wait(from: &RankWait) -> WaitView {
    WaitView {
        rank: from.rank,
        node: from.node.clone(),
        awaited: from.awaited,
        awaited_node: from.awaited_node.clone(),
        seconds: seconds(from.time_ns),
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn in_words(seconds: f64) -> String {
    duration((seconds.max(0.0) * 1e9) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(times_ms: impl Iterator<Item = u64>, first_step: u64) -> JobStepsView {
        let times: Vec<StepTime> = (0..)
            .zip(times_ms)
            .map(|(step, ms)| StepTime { step, time_ns: ms * 1_000_000 })
            .collect();
        let last_step = times.last().map_or(0, |one| one.step);
        let (actual_ns, even_ns) = (times.last().map_or(0, |one| one.time_ns), 10_000_000);
        let analysis = StepAnalysis {
            steps: last_step - first_step + 1,
            first_step,
            last_step,
            actual_ns,
            even_ns,
            ..StepAnalysis::default()
        };
        let response =
            GetStepsResponse { latest: Some(analysis), times, ..GetStepsResponse::default() };
        JobStepsView::from(&response)
    }

    #[test]
    fn a_rank_that_hides_another_comes_first_and_each_has_its_own_part() {
        let rank = |rank, cost_ms: u64| SlowRank {
            rank,
            node: format!("n{rank}"),
            ratio: 2.0,
            cost_ns: cost_ms * 1_000_000,
            ..SlowRank::default()
        };
        let analysis = StepAnalysis {
            steps: 10,
            last_step: 9,
            actual_ns: 200_000_000,
            even_ns: 100_000_000,
            ranks: vec![rank(5, 10), rank(2, 90)],
            ..StepAnalysis::default()
        };
        let text = AnalysisView::from(&analysis).sentences();
        let of = |rank: u32, rest: &str| {
            format!(
                "Rank {rank} on n{rank} computes 2.00 times as long as ranks that do the same work; {rest}"
            )
        };
        let first = "without that a step takes 190.0 ms instead of 200.0 ms. (10 % of the loss)";
        let second =
            "without that too a step takes 100.0 ms instead of 190.0 ms. (90 % of the loss)";
        assert_eq!(text[1..], [of(5, first), of(2, second)]);
    }

    #[test]
    fn both_ways_of_a_link_are_one_sentence() {
        let link = |from: u32, to: u32, ratio, cost_ms: u64| SlowLink {
            from,
            from_node: format!("n{from}"),
            to,
            to_node: format!("n{to}"),
            ratio,
            cost_ns: cost_ms * 1_000_000,
            ..SlowLink::default()
        };
        let analysis = StepAnalysis {
            steps: 10,
            last_step: 9,
            actual_ns: 200_000_000,
            even_ns: 100_000_000,
            links: vec![link(1, 2, 9.0, 30), link(2, 1, 8.0, 30), link(3, 0, 3.0, 40)],
            ..StepAnalysis::default()
        };
        assert_eq!(
            AnalysisView::from(&analysis).sentences()[1..],
            [
                "Transfers between rank 1 on n1 and rank 2 on n2 take 9.0 and 8.0 times as long as like ones; \
                 without that a step takes 140.0 ms instead of 200.0 ms. (60 % of the loss)",
                "Transfers from rank 3 on n3 to rank 0 on n0 take 3.0 times as long as like ones; without that \
                 too a step takes 100.0 ms instead of 140.0 ms. (40 % of the loss)",
            ]
        );
    }

    #[test]
    fn everybody_s_slowness_is_reported_by_the_steps_before() {
        let slower = steps((0..60).map(|step| if step < 50 { 10 } else { 25 }), 50);
        assert_eq!(
            slower.text[1],
            "Steps take 2.5 times as long as before: 10.0 ms in the middle of steps 0 to 49."
        );
        assert_eq!(steps((0..60).map(|_| 10), 50).text.len(), 1);
        // Of too few steps nothing is usual.
        assert_eq!(steps((0..15).map(|step| if step < 5 { 10 } else { 25 }), 5).text.len(), 1);
    }
}
