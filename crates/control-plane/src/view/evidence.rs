//! Verdicts, whom they suspect, and their evidence.

use serde::Serialize;
use telltale_wire::cluster::message::evidence::Kind;
use telltale_wire::cluster::message::{
    BandwidthEvidence, BehindEvidence, Evidence, InsideEvidence, SlowStepsEvidence, StuckEvidence,
    Suspect, SuspectKind, Verdict, WaitsLeastEvidence,
};

use super::words::{self, duration};

/// What was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VerdictView {
    /// `crash`, `node_silent`, `communication_hang`, `non_communication_hang`, `slow_node` or
    /// `slow_link`.
    pub kind: &'static str,
    /// Who is suspected.
    pub suspects: Vec<SuspectView>,
    /// Whether it is the one suspect for certain; otherwise it is one of them, and no node is evicted.
    pub is_certain: bool,
    /// How sure it is, 0 to 1.
    pub confidence: f64,
    /// In how many looks in a row it was seen.
    pub windows: u32,
    /// When it was first seen.
    pub first_seen_unix_ms: u64,
    /// The evidence, strongest first.
    pub evidence: Vec<EvidenceView>,
    /// All but the evidence in one sentence.
    pub text: String,
}

/// One who may be at fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SuspectView {
    /// `node`, `sender`, `receiver`, `link_one_way` or `link_both_ways`.
    pub kind: &'static str,
    /// The node; of a link, the end that sends.
    pub node: String,
    /// Of a link, the other end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// The same in words.
    pub text: String,
}

/// One value behind a verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EvidenceView {
    /// Which value.
    pub kind: &'static str,
    /// What it says, as a sentence.
    pub text: String,
}

impl From<&Verdict> for VerdictView {
    fn from(verdict: &Verdict) -> Self {
        let suspects: Vec<_> = verdict.suspects.iter().map(SuspectView::from).collect();
        let named: Vec<_> = suspects.iter().map(|suspect| suspect.text.as_str()).collect();
        let who = match (verdict.is_certain, named.as_slice()) {
            (_, []) => "no node can be named".to_owned(),
            (true, _) => named.join(", "),
            (false, [one]) => format!("perhaps {one}"),
            (false, _) => format!("one of: {}", named.join(", ")),
        };
        let kind = words::verdict_words(verdict.kind());
        let (confidence, windows) = (verdict.confidence, verdict.windows);
        let text = format!(
            "{kind}: {who}; confidence {confidence:.2}, in {windows} {} in a row",
            if windows == 1 { "window" } else { "windows" }
        );
        Self {
            kind: words::verdict(verdict.kind()),
            suspects,
            is_certain: verdict.is_certain,
            confidence,
            windows,
            first_seen_unix_ms: verdict.first_seen_unix_ms,
            evidence: verdict.evidence.iter().filter_map(EvidenceView::of).collect(),
            text,
        }
    }
}

impl From<&Suspect> for SuspectView {
    fn from(suspect: &Suspect) -> Self {
        let Suspect { node, peer, .. } = suspect;
        let text = match suspect.kind() {
            SuspectKind::Unspecified | SuspectKind::Node => format!("node {node}"),
            SuspectKind::Sender => format!("all that {node} sends"),
            SuspectKind::Receiver => format!("all that {node} receives"),
            SuspectKind::LinkOneWay => format!("link from {node} to {peer}"),
            SuspectKind::LinkBothWays => format!("link between {node} and {peer}"),
        };
        let peer = (!peer.is_empty()).then(|| peer.clone());
        Self { kind: words::suspect(suspect.kind()), node: node.clone(), peer, text }
    }
}

impl EvidenceView {
    /// The view of a value; `None` for one that this version does not know.
    fn of(evidence: &Evidence) -> Option<Self> {
        let (kind, text) = match evidence.kind.as_ref()? {
            Kind::Silence(silence) => {
                let [silent, allowed] = [silence.silent_ns, silence.allowed_ns].map(duration);
                ("silence", format!("not heard for {silent}; {allowed} is allowed"))
            }
            Kind::Exit(exit) => {
                let end = exit.end.as_ref().map_or_else(|| words::UNKNOWN.to_owned(), words::end);
                let when = match exit.after_ns {
                    0 => "the first to fail".to_owned(),
                    after_ns => format!("{} after the first failure", duration(after_ns)),
                };
                ("exit", format!("the worker of rank {} ended: {end}; {when}", exit.rank))
            }
            Kind::Echoes(1) => ("echoes", "1 worker failed afterwards, as an echo".to_owned()),
            Kind::Echoes(workers) => {
                ("echoes", format!("{workers} workers failed afterwards, as echoes"))
            }
            Kind::Behind(behind) => ("behind", behind_text(behind)),
            Kind::Inside(inside) => ("inside", inside_text(inside)),
            Kind::Stuck(stuck) => ("stuck", stuck_text(stuck)),
            Kind::ProcessStopped(rank) => (
                "process_stopped",
                format!("the system says that rank {rank}'s process is stopped"),
            ),
            Kind::Slower(slower) => {
                let [usual, now] = [slower.usual_ns, slower.now_ns].map(duration);
                let times = slower.now_ns as f64 / slower.usual_ns.max(1) as f64;
                let (from, to) = (&slower.from, &slower.to);
                ("slower", format!("{from} to {to} takes {now}, usually {usual}: x{times:.2}"))
            }
            Kind::Agreement(agreement) => {
                let (slow, observed) = (agreement.slow, agreement.observed);
                ("agreement", format!("{slow} of {observed} connections of the suspect are slow"))
            }
            Kind::HeldUp(connections) => (
                "held_up",
                format!(
                    "{connections} slow connections were measured while their ranks waited for others: \
                     one of them may hold up the rest"
                ),
            ),
            Kind::Explanations(explanations) => {
                let count = explanations.count;
                let text = match (explanations.cut_short, count) {
                    (true, _) => format!("at least {count} explanations; the search was cut short"),
                    (false, 1) => "no other explanation is as small".to_owned(),
                    (false, _) => format!("{count} explanations are equally small"),
                };
                ("explanations", text)
            }
            Kind::WaitsLeast(waits) => ("waits_least", waits_text(waits)),
            Kind::SlowSteps(slow) => ("slow_steps", slow_steps_text(slow)),
            Kind::Bandwidth(bandwidth) => ("bandwidth", bandwidth_text(bandwidth)),
            Kind::Outlier(outlier) => {
                let [average, bound] = [outlier.average_ns, outlier.bound_ns].map(duration);
                ("outlier", format!("its average of {average} is beyond mean + 2 sigma, {bound}"))
            }
        };
        Some(Self { kind, text })
    }
}

/// A processor that is withheld for less of the time is not mentioned.
pub(super) const LEAST_WITHHELD: f64 = 0.05;

fn slow_steps_text(slow: &SlowStepsEvidence) -> String {
    let SlowStepsEvidence { rank, peer, ratio, cost_ns, step_ns, slow, observed, withheld } = slow;
    let who = match peer {
        None if *withheld >= LEAST_WITHHELD => format!(
            "rank {rank} computes {ratio:.2} times as long as it should and has no processor for {:.0} % of the time \
             (its control group's limit)",
            100.0 * withheld
        ),
        None => {
            format!("rank {rank} computes {ratio:.2} times as long as ranks that do the same work")
        }
        Some(peer) => {
            format!(
                "transfers from rank {rank} to {peer} take {ratio:.2} times as long as like ones"
            )
        }
    };
    let [without, with] = [step_ns.saturating_sub(*cost_ns), *step_ns].map(duration);
    format!(
        "{who}, in {slow} of {observed} steps; without that a step takes {without} instead of {with}"
    )
}

fn bandwidth_text(bandwidth: &BandwidthEvidence) -> String {
    let BandwidthEvidence { from, to, lost_ratio, slow, observed, .. } = bandwidth;
    let [now, usual] = [bandwidth.bytes_per_second, bandwidth.usual_bytes_per_second]
        .map(|rate| format!("{}/s", telltale_schema::quantity::bytes(rate as u64)));
    format!(
        "connections from {from} to {to} carry {now} while there is something to send, like ones {usual}: {:.0} % of \
         the time is lost by it, in {slow} of {observed} reports",
        100.0 * lost_ratio
    )
}

fn behind_text(behind: &BehindEvidence) -> String {
    let (group, stalled) = (words::group(behind.group), duration(behind.stalled_ns));
    format!(
        "rank {} has entered {} collectives of group {group}, and others wait in number {}; nothing \
         has moved for {stalled}",
        behind.rank, behind.entered, behind.awaited
    )
}

fn inside_text(inside: &InsideEvidence) -> String {
    let (group, stalled) = (words::group(inside.group), duration(inside.stalled_ns));
    format!(
        "rank {} is in collective number {} of group {group}, where nothing has moved for {stalled}",
        inside.rank, inside.sequence
    )
}

fn stuck_text(stuck: &StuckEvidence) -> String {
    let (group, stalled) = (words::group(stuck.group), duration(stuck.stalled_ns));
    let StuckEvidence { from, to, .. } = stuck;
    format!(
        "what rank {from} sends to rank {to} in group {group} does not arrive; nothing has moved for \
         {stalled}"
    )
}

fn waits_text(waits: &WaitsLeastEvidence) -> String {
    let group = words::group(waits.group);
    let [suspect, others, usual] =
        [waits.suspect_ns, waits.others_ns, waits.usual_ns].map(duration);
    format!(
        "in collectives of group {group} it spends {suspect}, the others {others}, where {usual} is \
         usual: they wait for it"
    )
}
