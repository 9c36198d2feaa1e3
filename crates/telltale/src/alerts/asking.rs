//! The question to the service of this host, which may not run, or run and not answer.

use std::path::{Path, PathBuf};

use telltale_client::{CallError, ConnectError, connect};
use telltale_node::alerts::VisibleAlerts;

use crate::arguments::LocationArguments;
use crate::exit::Failure;
use crate::service_timeout::{TIMEOUT, late};

/// What came of it.
pub(super) enum ServiceAnswer {
    /// The service at the socket said this.
    Alerts { socket: PathBuf, found: VisibleAlerts },
    /// None runs.
    None {
        /// The socket of one that was killed.
        left_behind: Option<PathBuf>,
    },
}

/// Why a service that is there gave no alerts.
#[derive(Debug, thiserror::Error)]
enum AskError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Call(#[from] CallError),
}

/// Asks the first service that runs at the place.
///
/// # Errors
/// When one runs, and does not answer in time or cannot be trusted.
pub(super) fn ask(place: &LocationArguments) -> Result<ServiceAnswer, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::because(&error))?;
    let mut left_behind = None;
    for socket in place.sockets().into_iter().filter(|socket| socket.exists()) {
        let question = async { tokio::time::timeout(TIMEOUT, alerts(&socket)).await };
        match runtime.block_on(question) {
            Ok(Ok(found)) => return Ok(ServiceAnswer::Alerts { socket, found }),
            Ok(Err(AskError::Connect(error))) if error.is_left_behind() => {
                left_behind.get_or_insert(socket);
            }
            Ok(Err(error)) => return Err(Failure::because(&error)),
            Err(_) => return Err(Failure::Message(late(&socket))),
        }
    }
    Ok(ServiceAnswer::None { left_behind })
}

async fn alerts(socket: &Path) -> Result<VisibleAlerts, AskError> {
    let mut client = connect(socket).await?;
    Ok(client.alerts().await?)
}

/// What is said of the socket of a service that was killed.
pub(super) fn left(socket: &Path) -> String {
    let socket = socket.display();
    format!("{socket} is left from a service that was killed; `telltale smi -c` removes it")
}

/// Why there was no service to ask.
pub(super) fn none(place: &LocationArguments, left_behind: Option<PathBuf>) -> String {
    if let Some(socket) = left_behind {
        return left(&socket);
    }
    let places = place.sockets();
    let first = places.first().map_or_else(String::new, |one| format!(" at {}", one.display()));
    format!("no service runs here{first}; start one with `telltale serve`")
}
