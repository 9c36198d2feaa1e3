//! The parts of the service: what each is given, and in which order they start.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tracing::warn;

use telltale_node::access::AccessPolicy;
use telltale_node::configuration::Configuration;
use telltale_node::grpc::GrpcService;
use telltale_node::history::DirectoryError;
use telltale_node::http::{self, HttpService};
use telltale_node::otlp;
use telltale_node::parts::ServiceParts;
use telltale_node::service::Control;
use telltale_server::listen::{Address, BindError};
use telltale_server::token::{Token, TokenError};

use super::{alerts, history};

/// Why a part could not be started.
#[derive(Debug, thiserror::Error)]
pub(super) enum StartError {
    #[error(transparent)]
    Bind(#[from] BindError),
    #[error(transparent)]
    Token(#[from] TokenError),
    #[error(transparent)]
    State(#[from] DirectoryError),
    #[error("gRPC cannot be served")]
    Grpc(#[from] telltale_node::grpc::OptionsError),
    #[error("HTTP cannot be served")]
    Http(#[from] http::HttpServeError),
    #[error(transparent)]
    Otlp(#[from] otlp::OptionsError),
    #[error("cannot look at the runtime directory {path}")]
    Directory {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// Starts each part: its sockets, and its task. Gives who may see what, which a reload may change.
pub(super) fn start(
    parts: &mut ServiceParts,
    configuration: &Configuration,
    control: &Control,
    directory: Option<&Path>,
) -> Result<Arc<AccessPolicy>, StartError> {
    let past = history::start(parts, configuration, control)?;
    alerts::start(parts, configuration, control);
    if configuration.otlp.endpoint.is_some() {
        let stopped = parts.stopped();
        parts.run("otlp", otlp::serve(configuration.otlp.clone(), control.clone(), stopped)?);
    }
    let policy = Arc::new(policy(configuration, directory)?);
    let listeners = parts.listen("grpc", &reachable(&configuration.grpc.listen, directory))?;
    if !listeners.is_empty() {
        let mut service = GrpcService::new(listeners, &configuration.grpc)?;
        if let Some(past) = &past {
            service = service.with_history(past.clone());
        }
        service = service.following(parts.follow(|configuration| configuration.grpc.clone()));
        let stopped = parts.stopped();
        parts.run("grpc", service.serve(control.clone(), Arc::clone(&policy), stopped));
    }
    let listeners = parts.listen("http", &configuration.http.listen)?;
    if !listeners.is_empty() {
        let (options, stopped) = (configuration.http.clone(), parts.stopped());
        let mut service = HttpService::new(listeners, options, policy.has_token())?
            .following(parts.follow(|configuration| configuration.http.clone()));
        if let Some(past) = past {
            service = service.with_history(past);
        }
        parts.run("http", service.serve(control.view(), Arc::clone(&policy), stopped));
    }
    Ok(policy)
}

/// Those of the addresses that can be had: without a runtime directory no socket is in it, and the
/// service is worth having all the same.
fn reachable(addresses: &[Address], directory: Option<&Path>) -> Vec<Address> {
    let is_reachable = |address: &&Address| match address {
        Address::Unix(path) if path.is_relative() && directory.is_none() => {
            warn!(
                address = %address, "gRPC is not served at {address}, for want of a runtime directory to use; start the \
                 service again when there is one"
            );
            false
        }
        _ => true,
    };
    addresses.iter().filter(is_reachable).cloned().collect()
}

/// Who may see what.
fn policy(
    configuration: &Configuration,
    directory: Option<&Path>,
) -> Result<AccessPolicy, StartError> {
    let policy = match directory {
        Some(path) => AccessPolicy::of_directory(path)
            .map_err(|source| StartError::Directory { path: path.to_owned(), source })?,
        None => AccessPolicy::new(rustix::process::geteuid().as_raw(), None),
    };
    let policy = policy.knowing_loopback(configuration.loopback_users);
    Ok(match &configuration.token_file {
        Some(path) => policy.with_token(Token::read(path)?),
        None => policy,
    })
}
