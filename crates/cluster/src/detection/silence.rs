//! Nodes that do not report any more.
//!
//! Whether many at once mean that the listener is deaf is judged by the caller.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::detection::finding::DetectorFinding;
use crate::detection::members::{Members, place};
use crate::time::Moment;
use crate::verdict::{Evidence, VerdictKind};

#[derive(Debug, Clone, Default)]
pub(super) struct Silence {
    last_heard: Vec<Moment>,
    /// Nodes whose connections were closed at their ends since then.
    closed: BTreeSet<u32>,
    /// Nodes whose workers have all ended well: none is missing.
    finished: BTreeSet<u32>,
}

impl Silence {
    /// A new epoch begins: who was not heard before gets the whole time from now.
    pub(super) fn set_ranks(&mut self, now: Moment, members: &Members) {
        self.last_heard.clear();
        self.last_heard.resize(members.count(), now);
        self.closed.clear();
        self.finished.clear();
    }

    pub(super) fn heard(&mut self, now: Moment, node: u32) {
        if let Some(last) = self.last_heard.get_mut(place(node)) {
            *last = now.max(*last);
        }
        self.closed.remove(&node);
    }

    /// A node's workers have all ended well.
    pub(super) fn finished(&mut self, node: u32) {
        self.finished.insert(node);
    }

    /// A node's connection was closed at its end.
    pub(super) fn closed(&mut self, node: u32) {
        self.closed.insert(node);
    }

    /// Whether a node is missed that was heard last before a moment: it is overdue by so much, or its connection was
    /// closed.
    pub(super) fn is_any_missed(
        &self,
        now: Moment,
        allowed: Duration,
        members: &Members,
        before: Moment,
    ) -> bool {
        let mut unfinished = members.holders().filter(|node| !self.finished.contains(node));
        unfinished.any(|node| {
            let last = self.last_heard[place(node)];
            last < before && (now.since(last) > allowed || self.closed.contains(&node))
        })
    }

    /// The nodes that were not heard for longer than this, and when they were heard last.
    pub(super) fn unheard(
        &self,
        now: Moment,
        allowed: Duration,
        members: &Members,
    ) -> Vec<(u32, Moment)> {
        let last = members.holders().map(|node| (node, self.last_heard[place(node)]));
        last.filter(|(_, last)| now.since(*last) > allowed).collect()
    }

    pub(super) fn findings(
        &self,
        now: Moment,
        allowed: Duration,
        members: &Members,
    ) -> Vec<DetectorFinding> {
        let silent = self.unheard(now, allowed, members).into_iter();
        silent
            .map(|(node, last)| {
                let metrics = vec![Evidence::Silence { silent: now.since(last), allowed }];
                DetectorFinding::of_node(VerdictKind::NodeSilent, node, 1.0, metrics)
            })
            .collect()
    }
}
