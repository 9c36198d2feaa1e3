//! `telltale coordinator`: the coordinator of a job, from its configuration to its end.

use std::io;
use tracing::{error, info};

use sd_notify::NotifyState;
use telltale_control_plane::server::{Moderation, Server};
use telltale_control_plane::store::StoreLocation;
use telltale_schema::text::with_causes;
use telltale_server::listen::Address;
use telltale_server::log;
use tokio::signal::unix::{SignalKind, signal};

use crate::arguments::CoordinatorArguments;
use crate::exit::{Failure, Status};
use crate::parent;

/// Threads that serve connections; the coordinator's own work is in one task.
const THREADS: usize = 2;

/// Runs the command.
pub(crate) fn run(arguments: &CoordinatorArguments) -> Result<Status, Failure> {
    if arguments.end_with_parent.is_some_and(|parent| !parent::tie_to(parent)) {
        return Ok(Status::Fine);
    }
    let configuration = arguments.configuration().map_err(|error| Failure::because(&error))?;
    log::start(configuration.log_level, configuration.log_format);
    std::panic::set_hook(Box::new(|panic| error!("a part failed: {panic}")));
    let plan = configuration.plan().map_err(|error| match error.is_usage() {
        true => Failure::Usage(with_causes(&error)),
        false => Failure::because(&error),
    })?;
    if let StoreLocation::Journal(journal) = &plan.store
        && journal.directory.metadata().is_ok_and(|found| !found.is_dir())
    {
        return Err(Failure::Message(format!(
            "{} is no directory; --journal names the directory of the journal",
            journal.directory.display()
        )));
    }
    let proves = plan.access.token.is_some() || plan.access.client_authority.is_some();
    let is_open = !proves && plan.grpc.iter().any(|address| matches!(address, Address::Tcp(_)));
    let server = Server::bind(plan).map_err(|error| Failure::because(&error))?;
    for address in server.grpc_addresses() {
        info!(address = %address, "listens for agents and operators on {address}");
    }
    for address in server.http_addresses() {
        info!(address = %address, "listens for HTTP on {address}");
    }
    if is_open {
        info!("no token is asked for: only root and this user may call, from this host");
    }
    let moderation = Moderation::default();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .on_thread_park(move || moderation.before_wait())
        .enable_all()
        .build()
        .map_err(|error| Failure::because(&error))?;
    let outcome = runtime.block_on(async {
        let stop = asked_to_end().map_err(|error| Failure::because(&error))?;
        tell(NotifyState::Ready);
        server.serve(stop).await.map_err(|error| Failure::because(&error))
    });
    tell(NotifyState::Stopping);
    info!("ending");
    runtime.shutdown_background();
    outcome.map(|()| Status::Fine)
}

/// Ends with the first signal to end.
fn asked_to_end() -> io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Tells systemd, if it wants to know (sd_notify(3)).
fn tell(state: NotifyState<'_>) {
    // Without systemd there is no notification.
    let _ = sd_notify::notify(&[state]);
}
