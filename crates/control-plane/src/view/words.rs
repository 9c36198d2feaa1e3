//! Words for what the protocol numbers, and for spans of time.

use telltale_wire::cluster::message::{
    ActivityKind, HealthState, HoldReason, IncidentStanding, JobOutcome, JobPhase, Mode, NodeBar,
    NodeState, SuspectKind, VerdictKind, WorkerEnd, WorkerState, worker_end,
};

/// What stands for a number that this version does not know.
pub(super) const UNKNOWN: &str = "unknown";

pub(super) fn phase(phase: JobPhase) -> &'static str {
    match phase {
        JobPhase::Unspecified => UNKNOWN,
        JobPhase::Forming => "forming",
        JobPhase::Preparing => "preparing",
        JobPhase::Committed => "committed",
        JobPhase::Over => "over",
    }
}

pub(super) fn outcome(outcome: JobOutcome) -> Option<&'static str> {
    match outcome {
        JobOutcome::Unspecified => None,
        JobOutcome::Finished => Some("finished"),
        JobOutcome::GivenUp => Some("given_up"),
    }
}

/// The word for a mode, which [`mode_of`] reads.
#[must_use]
pub const fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Unspecified => UNKNOWN,
        Mode::Observe => "observe",
        Mode::Recover => "recover",
        Mode::Act => "act",
    }
}

/// The mode that a word stands for.
#[must_use]
pub fn mode_of(word: &str) -> Option<Mode> {
    [Mode::Observe, Mode::Recover, Mode::Act].into_iter().find(|known| mode(*known) == word)
}

pub(super) fn node_state(state: NodeState) -> &'static str {
    match state {
        NodeState::Unspecified => UNKNOWN,
        NodeState::Active => "active",
        NodeState::Standby => "standby",
        NodeState::Silent => "silent",
        NodeState::Ended => "ended",
        NodeState::Barred => "barred",
    }
}

pub(super) fn bar(bar: NodeBar) -> Option<&'static str> {
    match bar {
        NodeBar::Unspecified => None,
        NodeBar::Quarantined => Some("quarantined"),
        NodeBar::Suspected => Some("suspected"),
        NodeBar::Draining => Some("draining"),
        NodeBar::Removed => Some("removed"),
        NodeBar::TooFewWorkers => Some("too few workers"),
    }
}

pub(super) fn activity(kind: ActivityKind) -> &'static str {
    match kind {
        ActivityKind::Unspecified => UNKNOWN,
        ActivityKind::Idle => "idle",
        ActivityKind::Preparing => "preparing",
        ActivityKind::Committed => "committed",
    }
}

pub(super) fn worker_state(state: WorkerState) -> &'static str {
    match state {
        WorkerState::Unspecified => UNKNOWN,
        WorkerState::Running => "running",
        WorkerState::Stopped => "stopped",
        WorkerState::Finished => "finished",
        WorkerState::Ended => "ended",
        WorkerState::Failed => "failed",
    }
}

pub(super) fn health(state: HealthState) -> Option<&'static str> {
    match state {
        HealthState::Unspecified => None,
        HealthState::Ok => Some("ok"),
        HealthState::Warning => Some("warning"),
        HealthState::Failed => Some("failed"),
        HealthState::Unknown => Some("unknown"),
    }
}

pub(super) fn standing(standing: IncidentStanding) -> &'static str {
    match standing {
        IncidentStanding::Unspecified => UNKNOWN,
        IncidentStanding::Collecting => "collecting",
        IncidentStanding::Held => "held",
        IncidentStanding::Answered => "answered",
        IncidentStanding::Passed => "passed",
        IncidentStanding::GivenUp => "given_up",
        IncidentStanding::Reset => "reset",
    }
}

pub(super) fn hold(hold: HoldReason) -> Option<&'static str> {
    match hold {
        HoldReason::Unspecified => None,
        HoldReason::Mode => Some("mode"),
        HoldReason::Grace => Some("grace"),
        HoldReason::MassSilence => Some("mass_silence"),
        HoldReason::EvictionBudget => Some("eviction_budget"),
        HoldReason::Unsure => Some("unsure"),
        HoldReason::NoSpare => Some("no_spare"),
        HoldReason::BeforeDrain => Some("before_drain"),
        HoldReason::RestartBudget => Some("restart_budget"),
    }
}

/// The reason that a word of [`hold`] stands for.
pub(super) fn hold_of(word: &str) -> HoldReason {
    let mut known = (0..).map_while(|number| HoldReason::try_from(number).ok());
    known.find(|one| hold(*one) == Some(word)).unwrap_or_default()
}

/// What is suspected, as far as it decides what is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Suspicion {
    /// One node, and nothing else, by a verdict of this kind.
    Node(VerdictKind),
    /// Something else, by a verdict of this kind.
    Other(VerdictKind),
    /// A node whose health has failed.
    Health,
}

/// Why nothing is done, as the end of a sentence that begins with "nothing is done:". `suspected` has
/// what is suspected, where nothing has failed.
pub(crate) fn held(hold: HoldReason, suspected: &[Suspicion]) -> &'static str {
    let is_link = |one: &Suspicion| {
        matches!(
            one,
            Suspicion::Node(VerdictKind::SlowLink) | Suspicion::Other(VerdictKind::SlowLink)
        )
    };
    let are_links = suspected.iter().all(is_link);
    match (hold, suspected) {
        (HoldReason::Mode, []) => {
            return "in mode observe nothing is restarted; `telltale cluster mode recover` has it \
                    answered";
        }
        (_, []) => {}
        (HoldReason::Mode | HoldReason::Unsure, _) if are_links => return "links are not replaced",
        (HoldReason::Mode, _) if suspected.contains(&Suspicion::Health) => {
            return "a node that still runs is left alone though its health has failed; `telltale cluster mode act` \
                    has it drained";
        }
        (HoldReason::Mode, _) => {
            return "a node that only hangs or is slow is left alone; `telltale cluster mode act` has \
                    it replaced";
        }
        (HoldReason::Unsure, _)
            if suspected.iter().any(|one| !matches!(one, Suspicion::Other(_))) =>
        {
            return "it has not lasted for long enough";
        }
        (HoldReason::Unsure, _) => return "no single node is named",
        _ => {}
    }
    hold_sentence(hold)
}

/// Why nothing is done, as a sentence without its beginning and end.
fn hold_sentence(hold: HoldReason) -> &'static str {
    match hold {
        HoldReason::Unspecified => "for a reason that this version does not know",
        HoldReason::Mode => {
            "the mode does not allow to act on it; `telltale cluster mode` sets another"
        }
        HoldReason::Grace => "the coordinator has not led for long enough",
        HoldReason::MassSilence => {
            "so many nodes fell silent at once that the network or this coordinator is suspected, not they; they \
             are replaced if that lasts for `mass_silence_timeout` while others are heard, and by `telltale cluster remove` at once"
        }
        HoldReason::EvictionBudget => {
            "the eviction budget is used up (`eviction_budget`, `budget_window`); `telltale cluster remove` \
             takes a node out without it"
        }
        HoldReason::Unsure => "no single node is named, or not for long enough",
        HoldReason::NoSpare => "there is no spare",
        HoldReason::BeforeDrain => {
            "the command of `before_drain` runs; the drain goes on when it ends, or after `before_drain_timeout`"
        }
        HoldReason::RestartBudget => {
            "the restart budget is used up (`restart_budget`, `budget_window`), and the job still runs; \
             `telltale cluster drain` takes a node out without it"
        }
    }
}

/// Why an epoch waits, and for how much longer `at_most`. A mass silence without a bound is of every known node, or
/// has just ended: no node is replaced for it.
pub(crate) fn waiting(hold: HoldReason, at_most: Option<&str>) -> String {
    match (hold, at_most) {
        (HoldReason::MassSilence, None) => String::from(
            "so many nodes fell silent at once that the network or this coordinator is suspected, not they; while every \
             known node is silent, and shortly after, nodes are replaced by `telltale cluster remove` alone",
        ),
        (_, None) => hold_sentence(hold).to_owned(),
        (_, Some(time)) => format!("{}; for {time} at most", hold_sentence(hold)),
    }
}

pub(super) fn verdict(kind: VerdictKind) -> &'static str {
    match kind {
        VerdictKind::Unspecified => UNKNOWN,
        VerdictKind::Crash => "crash",
        VerdictKind::NodeSilent => "node_silent",
        VerdictKind::CommunicationHang => "communication_hang",
        VerdictKind::NonCommunicationHang => "non_communication_hang",
        VerdictKind::SlowNode => "slow_node",
        VerdictKind::SlowLink => "slow_link",
    }
}

/// The kind of a fault as a person calls it.
pub(super) fn verdict_words(kind: VerdictKind) -> &'static str {
    match kind {
        VerdictKind::Unspecified => "a fault of a kind that this version does not know",
        VerdictKind::Crash => "a worker died",
        VerdictKind::NodeSilent => "a node is not heard",
        VerdictKind::CommunicationHang => "a collective that all have entered does not end",
        VerdictKind::NonCommunicationHang => "others wait in a collective for a rank",
        VerdictKind::SlowNode => "slow node",
        VerdictKind::SlowLink => "slow link",
    }
}

pub(super) fn suspect(kind: SuspectKind) -> &'static str {
    match kind {
        SuspectKind::Unspecified => UNKNOWN,
        SuspectKind::Node => "node",
        SuspectKind::Sender => "sender",
        SuspectKind::Receiver => "receiver",
        SuspectKind::LinkOneWay => "link_one_way",
        SuspectKind::LinkBothWays => "link_both_ways",
    }
}

/// How a worker ended, as the end of a sentence.
#[must_use]
pub fn end(end: &WorkerEnd) -> String {
    match end.kind {
        Some(worker_end::Kind::Code(code)) => format!("exit code {code}"),
        Some(worker_end::Kind::Signal(signal)) => match signal_name(signal) {
            Some(name) => format!("signal {signal} ({name})"),
            None => format!("signal {signal}"),
        },
        Some(worker_end::Kind::NotStarted(_)) => "it could not be started".to_owned(),
        None => "it is not known how".to_owned(),
    }
}

/// Names of the signals that workers end by (signal(7), x86 and ARM).
fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        1 => "HUP",
        2 => "INT",
        3 => "QUIT",
        4 => "ILL",
        6 => "ABRT",
        7 => "BUS",
        8 => "FPE",
        9 => "KILL",
        11 => "SEGV",
        13 => "PIPE",
        15 => "TERM",
        24 => "XCPU",
        31 => "SYS",
        _ => return None,
    })
}

/// A process group as a person calls it.
pub(super) fn group(number: u64) -> String {
    telltale_cluster::group::GroupId::new(number).to_string()
}

/// A span of time with the unit that fits: `850 ns`, `12.5 us`, `3.1 ms`, `5.2 s`, `3m05s`, `2h10m`.
#[must_use]
pub fn duration(nanoseconds: u64) -> String {
    let (units, seconds) = (nanoseconds as f64, nanoseconds / 1_000_000_000);
    match nanoseconds {
        0..1_000 => format!("{nanoseconds} ns"),
        // Not 1000.0 us.
        1_000..999_950 => format!("{:.1} us", units / 1e3),
        999_950..999_950_000 => format!("{:.1} ms", units / 1e6),
        999_950_000..60_000_000_000 => format!("{:.1} s", units / 1e9),
        _ if seconds < 3_600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3_600, seconds / 60 % 60),
    }
}

/// How long ago something was, which changes too fast to be shown in milliseconds: `0.7 s`, `3m05s`.
#[must_use]
pub fn age(nanoseconds: u64) -> String {
    match nanoseconds {
        0..60_000_000_000 => format!("{:.1} s", nanoseconds as f64 / 1e9),
        _ => duration(nanoseconds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_the_unit_that_fits() {
        for (nanoseconds, expected) in [
            (0, "0 ns"),
            (12_500, "12.5 us"),
            (999_960, "1.0 ms"),
            (3_140_000, "3.1 ms"),
            (5_200_000_000, "5.2 s"),
            (185_000_000_000, "3m05s"),
            (7_800_000_000_000, "2h10m"),
        ] {
            assert_eq!(duration(nanoseconds), expected);
        }
    }

    #[test]
    fn what_is_not_done_for_the_mode_is_reported_with_what_helps() {
        let node = Suspicion::Node(VerdictKind::SlowNode);
        let link = Suspicion::Other(VerdictKind::SlowLink);
        let hang = Suspicion::Other(VerdictKind::NonCommunicationHang);
        let health = Suspicion::Health;
        for (hold, suspected, expected) in [
            (HoldReason::Mode, &[][..], "`telltale cluster mode recover`"),
            (HoldReason::Mode, &[node], "`telltale cluster mode act`"),
            (HoldReason::Mode, &[node, link], "`telltale cluster mode act`"),
            (HoldReason::Mode, &[health], "though its health has failed"),
            (HoldReason::Mode, &[health, link], "`telltale cluster mode act`"),
            (HoldReason::RestartBudget, &[health], "`restart_budget`"),
            (HoldReason::Mode, &[link], "links are not replaced"),
            (HoldReason::Unsure, &[link], "links are not replaced"),
            (HoldReason::Unsure, &[node, link], "it has not lasted for long enough"),
            (HoldReason::Unsure, &[hang], "no single node is named"),
            (HoldReason::NoSpare, &[node], "there is no spare"),
        ] {
            let said = held(hold, suspected);
            assert!(said.contains(expected), "{expected}: {said}");
        }
    }

    #[test]
    fn an_age_is_reported_in_tenths_of_seconds() {
        let cases = [(0, "0.0 s"), (665_200_000, "0.7 s"), (185_000_000_000, "3m05s")];
        for (nanoseconds, expected) in cases {
            assert_eq!(age(nanoseconds), expected);
        }
    }

    #[test]
    fn a_mode_is_read_as_it_is_written() {
        for known in [Mode::Observe, Mode::Recover, Mode::Act] {
            assert_eq!(mode_of(mode(known)), Some(known));
        }
        assert_eq!(mode_of(UNKNOWN), None);
    }

    #[test]
    fn a_reason_is_read_as_it_is_written() {
        for known in (1..).map_while(|number| HoldReason::try_from(number).ok()) {
            assert_eq!(hold_of(hold(known).unwrap()), known);
        }
        assert_eq!(hold_of(UNKNOWN), HoldReason::Unspecified);
    }
}
