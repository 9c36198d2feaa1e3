//! Where a history is read: a file that this user may open, else the service on this host, which shows each user
//! their own.

use std::future::Future;
use std::path::{Path, PathBuf};

use telltale_client::{CallError, Client, connect};
use telltale_node::access::Visibility;
use telltale_node::history::{
    DatabaseError, HistoryReader, Past, ReadHistoryError, database_in, directory_for,
};
use telltale_schema::clock::Timestamp;
use telltale_schema::history::{HistoryAnswer, HistoryQuery, ProcessChoice, ProcessReport};
use telltale_schema::text::with_causes;
use tokio::runtime::Runtime;

/// The directory of the service that a package installs.
const SYSTEM: &str = "/var/lib/telltale";

/// Which host's history is wanted.
#[derive(Debug, Clone, Default)]
pub struct PastPlace {
    /// The history's own directory, where the user names it.
    pub state_dir: Option<PathBuf>,
    /// Where the host's file system is seen; none for this host.
    pub root: Option<PathBuf>,
    /// At which its service may answer, in this order.
    pub sockets: Vec<PathBuf>,
}

/// A history that can be asked.
#[derive(Debug)]
pub enum PastSource {
    /// The file.
    File(HistoryReader),
    /// The service that keeps it.
    Service {
        /// Where the client's calls run.
        runtime: Runtime,
        /// The service.
        client: Box<Client>,
    },
}

/// Why the past is not known.
#[derive(Debug, thiserror::Error)]
pub enum PastError {
    /// There is no history for this user. The text has the reasons of the file and of the service.
    #[error("{0}")]
    Nothing(String),
    /// The file is damaged, or of another version.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The file has no answer.
    #[error(transparent)]
    Read(#[from] ReadHistoryError),
    /// The service refuses. The text is its own.
    #[error("{0}")]
    Refused(String),
    /// The service does not answer.
    #[error(transparent)]
    Call(CallError),
}

// === impl PastSource ===

impl PastSource {
    /// Finds the history of a host.
    ///
    /// # Errors
    /// When this user can read no file and no service answers.
    pub fn find(place: &PastPlace) -> Result<Self, PastError> {
        let mut closed = None;
        let mut missing = None;
        for path in candidates(place) {
            match HistoryReader::open(&path) {
                Ok(reader) => return Ok(Self::File(reader)),
                Err(error @ DatabaseError::Missing { .. }) => {
                    missing.get_or_insert(error);
                }
                Err(error @ DatabaseError::Closed { .. }) => {
                    closed.get_or_insert(error);
                }
                Err(error) => return Err(error.into()),
            }
        }
        // Who names a directory means that one, unless it is closed.
        if place.state_dir.is_some() && closed.is_none() {
            return Err(nothing(None, missing));
        }
        Self::service(&place.sockets).map_err(|words| nothing(Some(words), closed.or(missing)))
    }

    /// The service on this host; else why it cannot be asked.
    fn service(sockets: &[PathBuf]) -> Result<Self, String> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| with_causes(&error))?;
        let mut words = String::from("there is no runtime directory with a service's socket");
        for socket in sockets {
            match runtime.block_on(connect(socket)) {
                Ok(client) => return Ok(Self::Service { runtime, client: Box::new(client) }),
                Err(error) => words = with_causes(&error),
            }
        }
        Err(words)
    }

    /// Series over time.
    ///
    /// # Errors
    /// When the history has no answer.
    pub fn query(self, query: &HistoryQuery) -> Result<HistoryAnswer, PastError> {
        match self {
            Self::File(reader) => Ok(reader.query(query, Visibility::Everything)?),
            Self::Service { runtime, mut client } => asked(&runtime, client.history(query)),
        }
    }

    /// The host at a moment.
    ///
    /// # Errors
    /// When the history does not go as far.
    pub fn snapshot_at(self, at: Timestamp) -> Result<Past, PastError> {
        match self {
            Self::File(reader) => Ok(reader.snapshot_at(at)?),
            Self::Service { runtime, mut client } => {
                let answer = asked(&runtime, client.snapshot_at(at))?;
                let resolution_ms = answer.resolution_ms.unwrap_or(0);
                Ok(Past { snapshot: answer.snapshot, resolution_ms })
            }
        }
    }

    /// What is kept of processes.
    ///
    /// # Errors
    /// When there is no such process.
    pub fn report(self, process: &ProcessChoice) -> Result<Vec<ProcessReport>, PastError> {
        match self {
            Self::File(reader) => Ok(reader.report(process, Visibility::Everything)?),
            Self::Service { runtime, mut client } => asked(&runtime, client.report(process)),
        }
    }
}

fn asked<T>(
    runtime: &Runtime,
    call: impl Future<Output = Result<T, CallError>>,
) -> Result<T, PastError> {
    runtime.block_on(call).map_err(|error| match error {
        // The service's own words say everything.
        CallError::Refused(status) => PastError::Refused(status.message().to_owned()),
        error => PastError::Call(error),
    })
}

/// Why there is no history: the file's reason, then that of the service.
fn nothing(service: Option<String>, file: Option<DatabaseError>) -> PastError {
    let file = file.map(|error| with_causes(&error));
    let reasons: Vec<String> = file.into_iter().chain(service).collect();
    PastError::Nothing(match reasons.is_empty() {
        true => String::from("there is no home directory; name a history's with --state-dir"),
        false => reasons.join("; "),
    })
}

/// The files to try, in this order.
#[must_use]
pub fn candidates(place: &PastPlace) -> Vec<PathBuf> {
    let root = place.root.as_deref().unwrap_or(Path::new("/"));
    let first = directory_for(place.state_dir.as_deref(), root);
    let is_named = place.state_dir.is_some() || root != Path::new("/");
    let system = (!is_named).then(|| PathBuf::from(SYSTEM));
    let mut paths: Vec<_> = first.into_iter().chain(system).collect();
    paths.dedup();
    paths.iter().map(|directory| database_in(directory)).collect()
}
