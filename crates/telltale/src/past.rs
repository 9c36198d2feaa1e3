//! Where a history is read: a file that this user may open, else the service on this machine, which
//! shows each user their own.

use std::future::Future;
use std::path::{Path, PathBuf};

use telltale_client::{CallError, Client, connect};
use telltale_node::access::Visibility;
use telltale_node::history::{DatabaseError, HistoryReader, Past, database_in, directory_for};
use telltale_schema::clock::Timestamp;
use telltale_schema::history::{HistoryAnswer, HistoryQuery, ProcessChoice, ProcessReport};
use telltale_schema::text::with_causes;

use crate::arguments::{HistoryPlace, LocationArguments};
use crate::exit::Failure;
use crate::sockets::sockets;

/// The directory of the service that a package installs.
const SYSTEM: &str = "/var/lib/telltale";

/// A history that can be asked.
pub(crate) enum PastSource {
    /// The file.
    File(HistoryReader),
    /// The service that keeps it.
    Service { runtime: tokio::runtime::Runtime, client: Box<Client> },
}

// === impl PastSource ===

impl PastSource {
    /// Finds the history of a machine.
    pub(crate) fn find(history: &HistoryPlace, place: &LocationArguments) -> Result<Self, Failure> {
        let mut closed = None;
        let mut missing = None;
        for path in candidates(history, place) {
            match HistoryReader::open(&path) {
                Ok(reader) => return Ok(Self::File(reader)),
                Err(error @ DatabaseError::Missing { .. }) => {
                    missing.get_or_insert(error);
                }
                Err(error @ DatabaseError::Closed { .. }) => {
                    closed.get_or_insert(error);
                }
                Err(error) => return Err(Failure::because(&error)),
            }
        }
        // Who names a directory means that one, unless it is closed.
        if history.state_dir.is_some() && closed.is_none() {
            return Err(nothing(None, missing));
        }
        Self::service(place).map_err(|words| nothing(Some(words), closed.or(missing)))
    }

    /// The service on this machine; else why it cannot be asked.
    fn service(place: &LocationArguments) -> Result<Self, String> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| with_causes(&error))?;
        let mut words = String::from("there is no runtime directory with a service's socket");
        for socket in sockets(place) {
            match runtime.block_on(connect(&socket)) {
                Ok(client) => return Ok(Self::Service { runtime, client: Box::new(client) }),
                Err(error) => words = with_causes(&error),
            }
        }
        Err(words)
    }

    /// Series over time.
    pub(crate) fn query(self, query: &HistoryQuery) -> Result<HistoryAnswer, Failure> {
        match self {
            Self::File(reader) => reader
                .query(query, Visibility::Everything)
                .map_err(|error| Failure::because(&error)),
            Self::Service { runtime, mut client } => asked(&runtime, client.history(query)),
        }
    }

    /// The machine at a moment.
    pub(crate) fn snapshot_at(self, at: Timestamp) -> Result<Past, Failure> {
        match self {
            Self::File(reader) => reader.snapshot_at(at).map_err(|error| Failure::because(&error)),
            Self::Service { runtime, mut client } => {
                let answer = asked(&runtime, client.snapshot_at(at))?;
                let resolution_ms = answer.resolution_ms.unwrap_or(0);
                Ok(Past { snapshot: answer.snapshot, resolution_ms })
            }
        }
    }

    /// What is kept of processes.
    pub(crate) fn report(self, process: &ProcessChoice) -> Result<Vec<ProcessReport>, Failure> {
        match self {
            Self::File(reader) => reader
                .report(process, Visibility::Everything)
                .map_err(|error| Failure::because(&error)),
            Self::Service { runtime, mut client } => asked(&runtime, client.report(process)),
        }
    }
}

fn asked<T>(
    runtime: &tokio::runtime::Runtime,
    call: impl Future<Output = Result<T, CallError>>,
) -> Result<T, Failure> {
    runtime.block_on(call).map_err(|error| match error {
        // The service's own words say everything.
        CallError::Refused(status) => Failure::Message(status.message().to_owned()),
        error => Failure::because(&error),
    })
}

/// Why there is no history: the file's reason, then that of the service.
fn nothing(service: Option<String>, file: Option<DatabaseError>) -> Failure {
    let file = file.map(|error| with_causes(&error));
    let reasons: Vec<String> = file.into_iter().chain(service).collect();
    Failure::Message(match reasons.is_empty() {
        true => String::from("there is no home directory; name a history's with --state-dir"),
        false => reasons.join("; "),
    })
}

/// The files to try, in this order.
pub(crate) fn candidates(history: &HistoryPlace, place: &LocationArguments) -> Vec<PathBuf> {
    let root = place.root.as_deref().unwrap_or(Path::new("/"));
    let first = directory_for(history.state_dir.as_deref(), root);
    let is_named = history.state_dir.is_some() || root != Path::new("/");
    let system = (!is_named).then(|| PathBuf::from(SYSTEM));
    let mut paths: Vec<_> = first.into_iter().chain(system).collect();
    paths.dedup();
    paths.iter().map(|directory| database_in(directory)).collect()
}
