//! The journal beside the coordinator's task: its writing blocks, so it is done elsewhere.

use std::time::Duration;

use super::super::{ActorChannels, Gained, REST, StoreCommand, StoreEvent};
use super::directory::JournalDirectory;
use super::{Journal, JournalError, JournalSettings};
use crate::store::{MAX_INCIDENT_BYTES, StoreFailure};
use telltale_cluster::stored::StoreOutcome;

/// How often a directory that another coordinator has, or that cannot be used, is tried again.
const RETRY: Duration = Duration::from_millis(250);

/// Runs until the coordinator's task has let go of its store.
pub(in crate::store) async fn run(settings: JournalSettings, mut link: ActorChannels) {
    let Some(journal) = acquire(&settings, &mut link).await else { return };
    let mut journal = Some(journal);
    while let Some(open) = journal.take() {
        let Some(mut open) = lead(open, &mut link).await else { return };
        if !link.send(StoreEvent::Lost).await || !link.pause(REST).await {
            return;
        }
        journal = loop {
            let (again, begun) = blocking(open, Journal::begin_term).await;
            match begun {
                Ok(()) => break Some(again),
                Err(error) => link.complain(error),
            }
            open = again;
            if !link.pause(RETRY).await {
                return;
            }
        };
    }
}

/// The journal, once no other coordinator has it and it can be read; `None` when it is not wanted any
/// more. A lasting failure is logged once.
async fn acquire(
    settings: &JournalSettings,
    link: &mut ActorChannels,
) -> Option<Journal<JournalDirectory>> {
    let mut reported = String::new();
    loop {
        let directory = settings.directory.clone();
        let opened = tokio::task::spawn_blocking(move || {
            let failed = |source| JournalError::Open { directory: directory.clone(), source };
            match JournalDirectory::lock(&directory).map_err(failed)? {
                Some(locked) => Journal::open(locked),
                None => Err(JournalError::Taken { directory: directory.clone() }),
            }
        });
        match opened.await.expect("opening a journal does not panic") {
            Ok(journal) => return Some(journal),
            Err(error) => {
                let text = format!("{error:?}");
                if text != reported {
                    reported = text;
                    link.complain(error);
                }
            }
        }
        if !link.pause(RETRY).await {
            return None;
        }
    }
}

/// Leads until ordered to step down; `None` when the coordinator's task has let go of the store.
async fn lead(
    mut journal: Journal<JournalDirectory>,
    link: &mut ActorChannels,
) -> Option<Journal<JournalDirectory>> {
    let (term, stored, kept) = (journal.contents.term, journal.stored(), journal.contents.kept());
    link.authority.begin(term);
    link.authority.extend_for_ever();
    if !link.send(StoreEvent::Gained(Box::new(Gained { term, stored, kept }))).await {
        link.authority.end();
        return None;
    }
    while let Some(command) = link.commands.recv().await {
        match command {
            StoreCommand::Store(decision) => {
                let number = decision.number;
                let (again, (outcome, error)) =
                    blocking(journal, move |journal| journal.store(&decision)).await;
                journal = again;
                if let Some(error) = error {
                    link.complain(error);
                } else if matches!(outcome, StoreOutcome::Stored(_)) {
                    link.is_well().await;
                }
                link.send(StoreEvent::Stored { decision: number, outcome }).await;
            }
            StoreCommand::Keep(incident) if incident.content.len() > MAX_INCIDENT_BYTES => {
                link.leave_out(StoreFailure::LargeIncident { bytes: incident.content.len() });
            }
            StoreCommand::Keep(incident) => {
                let (again, kept) = blocking(journal, |journal| journal.keep(incident)).await;
                journal = again;
                match kept {
                    Ok(()) => link.is_well().await,
                    Err(error) => link.leave_out(error),
                }
            }
            StoreCommand::StepDown => {
                link.authority.end();
                return Some(journal);
            }
        }
    }
    link.authority.end();
    None
}

async fn blocking<T: Send + 'static>(
    mut journal: Journal<JournalDirectory>,
    work: impl FnOnce(&mut Journal<JournalDirectory>) -> T + Send + 'static,
) -> (Journal<JournalDirectory>, T) {
    let done = tokio::task::spawn_blocking(move || {
        let answer = work(&mut journal);
        (journal, answer)
    });
    done.await.expect("writing a journal does not panic")
}
