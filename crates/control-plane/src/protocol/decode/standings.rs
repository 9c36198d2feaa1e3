//! Where workers stand that seem to hang.

use telltale_autopsy::activity::Activity;
use telltale_autopsy::standing::{BegunCollective, CodePlace, ProcessStanding};
use telltale_schema::text::printable;
use telltale_wire::cluster::message;

use super::super::ProtocolError;
use super::{epoch, rank};
use crate::examination::NodeStandings;

/// What a node says of its workers.
pub(super) fn standings(from: message::Standings) -> Result<NodeStandings, ProtocolError> {
    Ok(NodeStandings {
        epoch: epoch(from.epoch)?,
        ranks: from.ranks.into_iter().map(standing).collect::<Result<_, _>>()?,
        missing: from.missing.iter().map(|text| printable(text)).collect(),
    })
}

fn standing(from: message::RankStanding) -> Result<ProcessStanding, ProtocolError> {
    let text = |text: &String| printable(text);
    let given = |given: &String| (!given.is_empty()).then(|| text(given));
    let place = given(&from.file).map(|file| CodePlace {
        file,
        line: from.line,
        function: text(&from.function),
    });
    Ok(ProcessStanding {
        pid: from.pid,
        rank: Some(rank(from.rank)?.0),
        activity: Activity::named(&from.activity),
        operation: given(&from.operation),
        place,
        detail: given(&from.detail),
        is_stopped: from.is_stopped,
        has_moved: from.has_moved,
        is_busy: from.is_busy,
        collectives: from.collectives.iter().map(begun).collect(),
        stack: from.stack.iter().map(text).collect(),
    })
}

fn begun(from: &message::BegunCollective) -> BegunCollective {
    BegunCollective {
        group: from.group,
        number: from.number,
        name: printable(&from.name),
        size: from.size,
        has_ended: from.has_ended,
    }
}
