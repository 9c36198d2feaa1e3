//! `telltale serve`: the node service, from its configuration to its end.

mod alerts;
mod history;
mod legacy;
mod parts;
mod systemd;

use std::io;
use std::panic::PanicHookInfo;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tracing::{error, info, warn};

use telltale_ledger::directory::{DirectoryEnvironment, RuntimeDirectory};
use telltale_node::access::AccessPolicy;
use telltale_node::configuration::{Configuration, ConfigurationError, Effective, Layers};
use telltale_node::grpc::OptionsError;
use telltale_node::legacy::Roster;
use telltale_node::parts::ServiceParts;
use telltale_node::service::{Control, Service};
use telltale_schema::text::with_causes;
use telltale_server::door::TlsError;
use telltale_server::listen::Handed;
use telltale_server::log;
use telltale_server::token::{Token, TokenError};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::arguments::ServeArguments;
use crate::exit::{Failure, Status};
use systemd::Notifier;

/// The parts that systemd may hand sockets to, by the names these have in its units.
const PARTS_WITH_SOCKETS: [&str; 3] = ["grpc", "http", legacy::PART];

/// Runs the command.
pub(crate) fn run(arguments: &ServeArguments) -> Result<Status, Failure> {
    let layers = arguments.layers();
    let effective = layers.load().map_err(|error| Failure::because(&error))?;
    log::start(effective.configuration.log_level, effective.configuration.log_format);
    std::panic::set_hook(Box::new(log_panic));
    effective.remarks.iter().for_each(|remark| warn!("{remark}"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(2)
        .build()
        .map_err(|error| Failure::because(&error))?;
    let outcome = runtime.block_on(serve(&layers, effective));
    // A read of the history that still runs is not waited for.
    runtime.shutdown_background();
    outcome
}

/// Serves until it is asked to end, or cannot go on.
async fn serve(layers: &Layers, effective: Effective) -> Result<Status, Failure> {
    let mut signals = Signals::listen().map_err(|error| Failure::because(&error))?;
    let mut notifier = Notifier::from_environment();
    let handed =
        Handed::from_environment(&PARTS_WITH_SOCKETS).map_err(|error| Failure::because(&error))?;
    let mut configuration = Arc::new(effective.configuration);
    let roster = Roster::default();
    let mut options = configuration.service();
    options.legacy = Some(Arc::new(roster.clone()));
    options.known = history::known_faults(&configuration);
    let service = Service::start(options).map_err(|error| Failure::because(&error))?;
    let (control, view) = (service.control(), service.view());
    let directory = runtime_directory(&configuration);
    let mut parts = ServiceParts::new(Arc::clone(&configuration), directory.clone(), handed);
    let policy = parts::start(&mut parts, &configuration, control, directory.as_deref())
        .map_err(|error| Failure::because(&error))?;
    legacy::start(&mut parts, &configuration, control, (roster, &policy, directory.is_some()))?;
    info!("collecting each {} s", configuration.interval_seconds);
    notifier.ready(&view);
    let outcome = loop {
        tokio::select! {
            asked = signals.next() => match asked {
                SignalRequest::End => break Ok(Status::Fine),
                SignalRequest::Reload => {
                    notifier.reloading();
                    if let Some(new) = reload(layers, &configuration, control, &policy) {
                        configuration = new;
                        parts.reconfigure(Arc::clone(&configuration));
                    }
                    notifier.ready(&view);
                }
            },
            ended = parts.ended() => break Err(Failure::because(&ended)),
            () = view.stopped() => {
                let text = "the collecting thread has ended; the lines above say why";
                break Err(Failure::Message(String::from(text)));
            }
            () = notifier.due() => notifier.alive(&view),
        }
    };
    info!("ending");
    notifier.stopping();
    parts.stop().await;
    drop(service);
    outcome
}

/// Reads the configuration again, with the files that it names, and takes over what can be; says
/// which keys cannot, each time for as long as they differ from what the service goes by. None when
/// it is refused, and all stays as it is.
fn reload(
    layers: &Layers,
    old: &Configuration,
    control: &Control,
    policy: &AccessPolicy,
) -> Option<Arc<Configuration>> {
    let read = read_again(layers, old);
    control.note_reload(read.is_ok());
    let (new, token) = match read {
        Ok(read) => read,
        Err(error) => {
            for line in with_causes(&error).lines() {
                error!("the configuration stays as it was: {line}");
            }
            return None;
        }
    };
    if let Some(token) = token {
        policy.replace_token(token);
    }
    let (taken, left) = old.taking_over(&new);
    log::set_level(taken.log_level);
    control.set_interval(taken.interval());
    if taken.alerts != old.alerts {
        alerts::follow(&taken, control);
    }
    info!("configuration read again; collecting each {} s", taken.interval_seconds);
    for key in left {
        warn!("{key} has changed, which takes effect after a restart");
    }
    Some(Arc::new(taken))
}

/// A configuration and the token that it names, when both make sense, and the certificates too.
fn read_again(
    layers: &Layers,
    old: &Configuration,
) -> Result<(Configuration, Option<Token>), RefusedReload> {
    let new = layers.load()?.configuration;
    let token = new.token_file.as_deref().map(Token::read).transpose()?;
    new.grpc.check_files(&old.grpc.listen)?;
    if let Some(files) = new.http.tls_files()? {
        files.usable()?;
    }
    Ok((new, token))
}

/// Why a configuration is not taken over.
#[derive(Debug, thiserror::Error)]
enum RefusedReload {
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    #[error(transparent)]
    Token(#[from] TokenError),
    #[error(transparent)]
    Grpc(#[from] OptionsError),
    #[error(transparent)]
    Http(#[from] TlsError),
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
            warn!("{}", with_causes(&error));
            None
        }
    }
}

/// Tells a panic in the log's form.
fn log_panic(panic: &PanicHookInfo<'_>) {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("without a name");
    error!("thread {name}: {panic}");
}

/// The signals that the service minds.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
    /// Never asked for: that a listener exists turns a file that may not grow (`ulimit -f`) into an
    /// error of its writer instead of the end of the service.
    _file_too_large: Signal,
}

/// What a signal asks for.
enum SignalRequest {
    /// To end.
    End,
    /// To read the configuration again.
    Reload,
}

impl Signals {
    fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
            _file_too_large: signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?,
        })
    }

    /// Waits for the next one.
    async fn next(&mut self) -> SignalRequest {
        tokio::select! {
            _ = self.terminate.recv() => SignalRequest::End,
            _ = self.interrupt.recv() => SignalRequest::End,
            _ = self.hang_up.recv() => SignalRequest::Reload,
        }
    }
}
