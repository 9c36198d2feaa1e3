//! Where a history is read: a file that this user may open, else the service on this host, which shows each user
//! their own.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::Duration;

use telltale_client::{CallError, Client, connect};
use telltale_node::access::Visibility;
use telltale_node::history::{
    DatabaseError, HistoryReader, Past, ReadHistoryError, database_in, directory_for,
};
use telltale_schema::clock::Timestamp;
use telltale_schema::history::{HistoryAnswer, HistoryQuery, ProcessChoice, ProcessReport};
use telltale_schema::text::with_causes;
use tokio::runtime::Runtime;
use tokio::time::timeout;

/// The directory of the service that a package installs.
const SYSTEM: &str = "/var/lib/telltale";
/// How long a service may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a service may take for one answer. It reads a file that may be large.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

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
    /// The service took too long.
    #[error(
        "the service did not answer within {} s; ask for a shorter span", .0.as_secs()
    )]
    Late(Duration),
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
            match runtime.block_on(async { timeout(CONNECT_TIMEOUT, connect(socket)).await }) {
                Ok(Ok(client)) => return Ok(Self::Service { runtime, client: Box::new(client) }),
                Ok(Err(error)) => words = with_causes(&error),
                Err(_) => {
                    let (path, limit) = (socket.display(), CONNECT_TIMEOUT.as_secs());
                    words = format!("the service at {path} did not answer within {limit} s");
                }
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
            Self::Service { runtime, mut client } => {
                asked(&runtime, ANSWER_TIMEOUT, client.history(query))
            }
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
                let answer = asked(&runtime, ANSWER_TIMEOUT, client.snapshot_at(at))?;
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
            Self::Service { runtime, mut client } => {
                asked(&runtime, ANSWER_TIMEOUT, client.report(process))
            }
        }
    }
}

fn asked<T>(
    runtime: &Runtime,
    limit: Duration,
    call: impl Future<Output = Result<T, CallError>>,
) -> Result<T, PastError> {
    let answer = runtime.block_on(async { timeout(limit, call).await });
    let answer = answer.map_err(|_| PastError::Late(limit))?;
    answer.map_err(|error| match error {
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{PastError, asked};

    #[test]
    fn a_service_that_does_not_answer_is_given_up() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let limit = Duration::from_millis(20);
        let refused = asked::<()>(&runtime, limit, std::future::pending()).unwrap_err();
        assert!(matches!(refused, PastError::Late(late) if late == limit), "{refused}");
    }
}
