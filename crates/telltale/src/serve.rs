//! `telltale serve`: the node service, from its configuration to its end.

use std::path::{Path, PathBuf};

use telltale_ledger::directory::{DirectoryEnvironment, RuntimeDirectory};
use telltale_node::configuration::Configuration;
use telltale_node::listen::{BindError, Handed};
use telltale_node::log;
use telltale_node::parts::Parts;
use telltale_node::service::{Service, View};
use telltale_schema::text::with_causes;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::arguments::ServeArguments;
use crate::exit::{Failure, Status};

/// The parts that systemd may hand sockets to, by the names these have in its units.
const PARTS_WITH_SOCKETS: [&str; 2] = ["grpc", "http"];

/// Runs the command.
pub(crate) fn run(arguments: &ServeArguments) -> Result<Status, Failure> {
    let configuration = configuration(arguments);
    log::set_level(configuration.log_level);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(2)
        .build()
        .map_err(|error| Failure::because(&error))?;
    runtime.block_on(serve(&configuration))
}

/// Serves until it is asked to end, or cannot go on.
async fn serve(configuration: &Configuration) -> Result<Status, Failure> {
    let mut ends = Ends::listen().map_err(|error| Failure::because(&error))?;
    let handed =
        Handed::from_environment(&PARTS_WITH_SOCKETS).map_err(|error| Failure::because(&error))?;
    let service =
        Service::start(configuration.service()).map_err(|error| Failure::because(&error))?;
    let view = service.view();
    let mut parts = Parts::new(runtime_directory(configuration), handed);
    start(&mut parts, configuration, &view).map_err(|error| Failure::because(&error))?;
    log::info(&format!("collecting each {} s", configuration.interval_seconds));
    let outcome = tokio::select! {
        () = ends.asked() => Ok(Status::Fine),
        ended = parts.ended() => Err(Failure::because(&ended)),
        () = view.stopped() => {
            Err(Failure::Told(String::from("the collecting thread has ended; see above")))
        }
    };
    log::info("ending");
    parts.stop().await;
    drop(service);
    outcome
}

/// Starts each part: its sockets, and its task.
fn start(_: &mut Parts, _: &Configuration, _: &View) -> Result<(), BindError> {
    Ok(())
}

/// The configuration: what the arguments say, else what holds by itself.
fn configuration(arguments: &ServeArguments) -> Configuration {
    let mut configuration = Configuration::default();
    if let Some(root) = &arguments.place.root {
        configuration.root = root.clone();
    }
    configuration.runtime_dir = arguments.place.runtime_dir.clone();
    configuration.state_dir = arguments.state_dir.clone();
    if let Some(interval) = arguments.interval {
        configuration.interval_seconds = interval.as_secs_f64();
    }
    configuration.log_level = arguments.log_level.unwrap_or_default();
    configuration
}

/// The directory that the service's own socket is in, where a runtime would put its own.
fn runtime_directory(configuration: &Configuration) -> Option<PathBuf> {
    let emulated = configuration.root != Path::new("/");
    let under_root = emulated.then(|| configuration.root.join("run/tt"));
    let explicit = configuration.runtime_dir.clone().or(under_root);
    let environment = DirectoryEnvironment::of_this_process();
    match RuntimeDirectory::for_writing(explicit.as_deref(), &environment) {
        Ok(directory) => Some(directory.path().to_owned()),
        Err(error) => {
            log::warn(&with_causes(&error));
            None
        }
    }
}

/// The signals that end the service.
struct Ends {
    terminate: Signal,
    interrupt: Signal,
}

impl Ends {
    fn listen() -> std::io::Result<Self> {
        let terminate = signal(SignalKind::terminate())?;
        Ok(Self { terminate, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn asked(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
