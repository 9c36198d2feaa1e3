//! Where workers stand that seem to hang, and what the stacks of all of them say.

use telltale_autopsy::explanation::{Explanation, Folded};
use telltale_autopsy::standing::{BegunCollective, ProcessStanding};
use telltale_wire::cluster::message;
use telltale_wire::limits::cluster::{
    MAX_FOLDED, MAX_FRAMES, MAX_LATEST_COLLECTIVES, MAX_MISSING, MAX_WORKERS,
};
use telltale_wire::limits::{MAX_NAME_BYTES, MAX_TEXT_BYTES};

use crate::examination::NodeStandings;

/// Lines of a folded stack that an incident keeps, and different stacks.
const KEPT_FRAMES: usize = 32;
const KEPT_STACKS: usize = 16;

/// Where the workers of a node stand.
pub(crate) fn standings(from: &NodeStandings) -> message::Standings {
    message::Standings {
        epoch: from.epoch.number(),
        ranks: from.ranks.iter().take(MAX_WORKERS).map(standing).collect(),
        missing: texts(&from.missing, MAX_MISSING),
    }
}

fn standing(from: &ProcessStanding) -> message::RankStanding {
    let place = from.place.as_ref();
    let name = |text: &str| cut(text, MAX_TEXT_BYTES);
    message::RankStanding {
        rank: from.rank.unwrap_or_default(),
        pid: from.pid,
        activity: from.activity.name().to_owned(),
        operation: name(from.operation.as_deref().unwrap_or_default()),
        file: name(place.map(|place| place.file.as_str()).unwrap_or_default()),
        line: place.map_or(0, |place| place.line),
        function: name(place.map(|place| place.function.as_str()).unwrap_or_default()),
        detail: cut(from.detail.as_deref().unwrap_or_default(), MAX_TEXT_BYTES),
        is_stopped: from.is_stopped,
        has_moved: from.has_moved,
        is_busy: from.is_busy,
        stack: texts(&from.stack, MAX_FRAMES),
        collectives: from.collectives.iter().take(MAX_LATEST_COLLECTIVES).map(begun).collect(),
    }
}

fn begun(from: &BegunCollective) -> message::BegunCollective {
    message::BegunCollective {
        group: from.group,
        number: from.number,
        name: cut(&from.name, MAX_NAME_BYTES),
        size: from.size,
        has_ended: from.has_ended,
    }
}

/// Why a job hung, as an incident keeps it.
pub(crate) fn hang(from: &Explanation, missing: &[String]) -> message::HangStacks {
    message::HangStacks {
        kind: from.kind.name().to_owned(),
        ranks: from.culprits.iter().copied().take(MAX_FOLDED).collect(),
        stacks: from.folded.iter().take(KEPT_STACKS).map(folded).collect(),
        missing: texts(missing, MAX_MISSING),
    }
}

fn folded(from: &Folded) -> message::FoldedStack {
    message::FoldedStack {
        count: u32::try_from(from.processes.len()).unwrap_or(u32::MAX),
        ranks: from.processes.iter().copied().take(MAX_FOLDED).collect(),
        activity: from.activity.name().to_owned(),
        stack: texts(&from.stack, KEPT_FRAMES),
    }
}

fn texts(from: &[String], count: usize) -> Vec<String> {
    from.iter().take(count).map(|text| cut(text, MAX_TEXT_BYTES)).collect()
}

fn cut(text: &str, bytes: usize) -> String {
    text[..text.floor_char_boundary(bytes)].to_owned()
}
