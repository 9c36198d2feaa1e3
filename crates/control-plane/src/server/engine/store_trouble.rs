//! What is wrong with the store, for people: what it said last, or that it says nothing.

use std::time::Duration;
use tracing::{error, info};

use telltale_schema::text::with_causes;

use super::Engine;
use crate::server::standing::Standing;
use crate::store::StoreFailure;
use telltale_cluster::time::Moment;

/// How long a decision may be on its way before the store counts as one that does not answer.
const SLOW: Duration = Duration::from_secs(2);
/// Characters of an error that are returned; the log has all.
const MAX_TROUBLE: usize = 1000;

/// What the store said of itself.
#[derive(Debug)]
pub(super) struct StoreTrouble {
    text: String,
    since: Moment,
}

/// What is wrong with a store that said this last, and has had a decision since it was `given`.
fn trouble(
    said: Option<&StoreTrouble>,
    given: Option<Moment>,
    now: Moment,
) -> Option<(String, Duration)> {
    if let Some(StoreTrouble { text, since }) = said {
        return Some((text.clone(), now.since(*since)));
    }
    let waited = now.since(given?);
    let text = "it does not answer to a decision; see whether its disk, or etcd's members, do";
    (waited >= SLOW).then(|| (text.to_owned(), waited))
}

impl Engine {
    /// Takes in what the store complains of.
    pub(super) fn note_trouble(&mut self, trouble: &StoreFailure) {
        let text = with_causes(trouble);
        error!("{text}");
        let since = self.trouble.take().map_or_else(|| self.clock.now(), |former| former.since);
        let text = text.chars().take(MAX_TROUBLE).collect();
        self.trouble = Some(StoreTrouble { text, since });
    }

    /// Takes in that the store works again.
    pub(super) fn forget_trouble(&mut self) {
        if self.trouble.take().is_some() {
            info!("the store is writable again");
        }
    }

    /// What is wrong with the store, and for how long.
    pub(in super::super) fn store_trouble(&self) -> Option<(String, Duration)> {
        if let (Some(behind), Some(since)) = (self.coordinator.behind(), self.behind_since) {
            return Some((behind.to_string(), self.clock.now().since(since)));
        }
        let given = self.storing.is_some().then_some(self.given);
        trouble(self.trouble.as_ref(), given, self.clock.now())
    }

    /// Logs when agents are found to know more than is stored, and when they do no more.
    pub(super) fn log_behind(&mut self, now: Moment) {
        match (self.coordinator.is_behind(), self.behind_since) {
            (true, None) => {
                if let Some(behind) = self.coordinator.behind() {
                    error!("the {} cannot be used: {behind}", self.store_name);
                }
                self.behind_since = Some(now);
            }
            (false, Some(_)) => {
                info!("the store is as recent as every agent");
                self.behind_since = None;
            }
            _ => {}
        }
    }

    pub(super) fn standing(&self) -> Standing {
        Standing {
            leads: self.coordinator.leads(),
            leader: self.leader.clone(),
            trouble: self.store_trouble().map(|(text, _)| text),
        }
    }

    /// Tells probes how it stands, if that has changed.
    pub(super) fn report_standing(&self) {
        let standing = self.standing();
        self.stands.send_if_modified(|former| {
            let changes = *former != standing;
            *former = standing;
            changes
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_says_nothing_is_in_trouble_too() {
        let at = |milliseconds: u64| Moment::from_ns(milliseconds * 1_000_000);
        let reported =
            |said, given, now| trouble(said, given, at(now)).map(|(text, time)| (text.len(), time));
        assert_eq!(reported(None, None, 9000), None);
        assert_eq!(reported(None, Some(at(1000)), 2999), None);
        let (text, time) = trouble(None, Some(at(1000)), at(3000)).unwrap();
        assert!(text.contains("does not answer") && time == SLOW, "{text}");
        let said = StoreTrouble { text: "full".to_owned(), since: at(500) };
        assert_eq!(
            reported(Some(&said), Some(at(2900)), 3000),
            Some((4, Duration::from_millis(2500)))
        );
    }
}
