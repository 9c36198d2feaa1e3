//! Endpoints that have to be asked, and what of their answers is believed.

use std::collections::BTreeMap;

use telltale_ledger::LedgerReader;
use telltale_ledger::directory::{Entry, Listing, RuntimeDirectory};
use telltale_schema::process::ProcessIdentity;
use telltale_schema::reading::Absence;
use telltale_wire::{DeviceSelector, Query, QueryKind, Report as Told};

use super::EndpointUse;
use super::endpoints::{Answer, AskError, Limits, ask};
use super::identity::{Checks, Lie, Standing};
use super::ledgers::{Ledgers, with_causes};
use crate::report::Report;

/// Endpoints of one directory that are asked in one round.
const MAX_ASKED: usize = 2048;

/// An answer that is believed.
#[derive(Debug)]
pub(crate) struct Believed {
    pub(crate) standing: Standing,
    pub(crate) uid: u32,
    pub(crate) told: Told,
}

/// Asks the endpoints of one directory and checks what they say. Ledgers that come along are
/// followed from then on.
pub(crate) fn collect(
    (number, directory): (u32, &RuntimeDirectory),
    listing: &Listing,
    which: EndpointUse,
    ledgers: &mut Ledgers,
    checks: &Checks<'_>,
    limits: Limits,
    report: &mut Report,
) -> BTreeMap<ProcessIdentity, Believed> {
    let mut believed = BTreeMap::new();
    let mut entries: Vec<&Entry> = match which {
        EndpointUse::Never => return believed,
        EndpointUse::Always => listing.endpoints.iter().collect(),
        EndpointUse::WhereNeeded => {
            let uid = |entry: &Entry| Some(directory.entry_status(&entry.name).ok()?.uid);
            let needed =
                |entry: &&Entry| uid(entry).is_some_and(|uid| !ledgers.covers(number, entry, uid));
            listing.endpoints.iter().filter(needed).collect()
        }
    };
    if entries.len() > MAX_ASKED {
        let detail = format!("{} endpoints, {MAX_ASKED} are asked", entries.len());
        report.error(directory.path().display().to_string(), Absence::Failed, detail);
        entries.truncate(MAX_ASKED);
    }
    let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    let kind = match which {
        EndpointUse::Always => QueryKind::All,
        EndpointUse::WhereNeeded | EndpointUse::Never => QueryKind::Memory,
    };
    let query = Query { kind, device: DeviceSelector::All, want_ledger: true };
    for (entry, answer) in entries.iter().zip(ask(directory, &names, &query, limits)) {
        match answer {
            Ok(answer) => match believe(entry, answer, checks) {
                Ok((one, ledger)) => {
                    if let Some(reader) = ledger.filter(|_| !ledgers.covers(number, entry, one.uid))
                    {
                        ledgers.adopt((number, entry.name.clone()), reader, one.standing.clone());
                    }
                    believed.insert(one.told.identity, one);
                }
                Err(lie) => report.error(&entry.name, Absence::Implausible, lie.to_string()),
            },
            Err(error) => complain(&entry.name, &error, report),
        }
    }
    believed
}

/// Compares an answer with what the kernel says of its sender and with the socket's name.
fn believe(
    entry: &Entry,
    answer: Answer,
    checks: &Checks<'_>,
) -> Result<(Believed, Option<LedgerReader>), Lie> {
    let Answer { peer, report: told, ledger } = answer;
    let standing = match checks.judge_peer(&told.identity, peer.pid, peer.uid) {
        Standing::Refused(lie) => return Err(lie),
        standing => standing,
    };
    if told.identity.pid != entry.pid {
        return Err(Lie::Name { claimed: told.identity.pid, named: entry.pid });
    }
    let reader = ledger.and_then(|descriptor| LedgerReader::from_descriptor(descriptor).ok());
    if let Some(reader) = &reader
        && (*reader.owner() != told.identity || reader.uid() != peer.uid)
    {
        return Err(Lie::ForeignLedger);
    }
    Ok((Believed { standing, uid: peer.uid, told: *told }, reader))
}

/// Reports why an endpoint gave nothing, unless its process has merely ended.
fn complain(name: &str, error: &AskError, report: &mut Report) {
    let gone = matches!(error, AskError::NobodyListens) || error.absence() == Absence::Gone;
    if !gone {
        report.error(name, error.absence(), with_causes(error));
    }
}
