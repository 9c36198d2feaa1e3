//! What ranks post to their agents, as `docs/cluster-clients.md` has it: one record in a line.

use super::program::Program;
use super::run::{Done, RunSubject};

/// Bytes of a transfer, and of what a rank sends to the next in a collective: links are as fast in both.
pub(super) const BYTES: u64 = 1 << 24;
pub(super) const COLLECTIVE_BYTES: u64 = 5 * BYTES;

/// What a rank did in a step, by a clock that is ahead by so much.
pub(super) fn of_done(done: &Done, program: &Program, step: u64, ahead_us: f64) -> String {
    let [start, end] = [done.start_us, done.end_us].map(|at| (at + ahead_us) as i64);
    let Done { rank, what, .. } = *done;
    let world = program.actions.len();
    let kind = match what {
        RunSubject::Compute(name) => format!("\"opType\":\"compute\",\"name\":\"{name}\""),
        RunSubject::Sent { to, .. } => transfer("send", rank, to, world),
        RunSubject::Received { from } => transfer("recv", rank, from, world),
        RunSubject::Collective(group) => {
            let ranks = &program.groups[group];
            let place = ranks.iter().position(|other| *other == rank).unwrap_or(0);
            let size = ranks.len();
            format!(
                "\"opType\":\"all_reduce\",\"bytes\":{COLLECTIVE_BYTES},\"group\":\"g{group}\",\
                 \"context_rank\":{place},\"context_size\":{size}"
            )
        }
    };
    format!(
        "{{{kind},\"global_rank\":{rank},\"step\":{step},\"startTime\":{start},\"endTime\":{end},\"finished\":true}}"
    )
}

fn transfer(kind: &str, rank: u32, other: u32, world: usize) -> String {
    format!(
        "\"opType\":\"{kind}\",\"bytes\":{BYTES},\"remoteRank\":{other},\"context_rank\":{rank},\
         \"context_size\":{world}"
    )
}

/// A rank has ended a step.
pub(super) fn of_end(rank: u32, step: u64) -> String {
    format!("{{\"opType\":\"step\",\"global_rank\":{rank},\"step\":{step}}}")
}

/// The members of each group, which a client reports once.
pub(super) fn of_groups(program: &Program) -> Vec<String> {
    let of_group = |(number, members): (usize, &Vec<u32>)| {
        format!("{{\"opType\":\"group\",\"group\":\"g{number}\",\"ranks\":{members:?}}}")
    };
    program.groups.iter().enumerate().map(of_group).collect()
}
