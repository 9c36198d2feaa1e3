//! Network interfaces that were there and are not: the cards that fell off the bus.
//!
//! An interface that was renamed, or moved into a container, is gone from the list as well; its PCI
//! function is not.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use telltale_schema::clock::Timestamp;
use telltale_schema::reading::Reading;

use super::entry::Found;
use super::{HostPart, HostPartKind};
use crate::hardware::inquiry::Inquiry;
use crate::timeout::TaskName;

/// The reading that says whether an interface is there.
pub(super) const IS_THERE: &str = "is_there";

/// How long one that is gone is shown.
const KEPT_NS: u64 = 3600 * 1_000_000_000;

/// Interfaces by their entry, each with the PCI function that it had.
#[derive(Debug, Default)]
pub(super) struct Cards(BTreeMap<String, Card>);

#[derive(Debug)]
struct Card {
    name: String,
    function: String,
    /// Since when it has been gone, on the monotonic clock.
    gone_ns: Option<u64>,
}

// === impl Cards ===

impl Cards {
    /// Takes note of an interface that is there, by its part's name.
    pub(super) fn see(&mut self, entry: &str, name: &str, found: &Found) {
        if let Some(function) = found.place.clone() {
            let card = Card { name: name.to_owned(), function, gone_ns: None };
            self.0.insert(entry.to_owned(), card);
        }
    }

    /// Parts for those that are gone, with their function. `is_listed` says which are not.
    pub(super) fn gone(
        &mut self,
        (inquiry, deadline): (&Inquiry, Instant),
        group: u32,
        is_listed: impl Fn(&str) -> bool,
        now: Timestamp,
    ) -> Vec<HostPart> {
        let unseen: Vec<_> = self.0.iter().filter(|(entry, _)| !is_listed(entry)).collect();
        let task = |(item, (_, card)): (usize, &(&String, &Card))| {
            let item = u32::try_from(item).unwrap_or(u32::MAX);
            (TaskName { group, item }, (Arc::clone(&inquiry.tree), card.function.clone()))
        };
        let tasks = unseen.iter().enumerate().map(task).collect();
        let has_function = inquiry.run_until(deadline, tasks, |(tree, function)| {
            tree.root().directory(&format!("sys/bus/pci/devices/{function}")).is_ok()
        });
        let entries: Vec<String> = unseen.into_iter().map(|(entry, _)| entry.clone()).collect();
        let now_ns = inquiry.clock.monotonic_ns();
        let mut parts = Vec::new();
        for (entry, has_function) in entries.into_iter().zip(has_function) {
            match has_function {
                Some(false) => {
                    let card = self.0.get_mut(&entry).expect("it was listed");
                    let since = *card.gone_ns.get_or_insert(now_ns);
                    if now_ns.saturating_sub(since) > KEPT_NS {
                        self.0.remove(&entry);
                        continue;
                    }
                    let name = card.name.clone();
                    let readings = BTreeMap::from([(IS_THERE, Reading::new(0.0, now))]);
                    parts.push(HostPart { kind: HostPartKind::NetworkInterface, name, readings });
                }
                // Renamed, or in a container.
                Some(true) => drop(self.0.remove(&entry)),
                None => {}
            }
        }
        parts
    }
}
