//! The service's parts on one asynchronous runtime: their sockets, their tasks and their end.
//!
//! A part that ends by itself, by an error or a panic, or whose socket file was removed, ends the
//! service: half a service that looks like a whole one does not help, and systemd starts it again.

use std::future::Future;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tracing::{info, warn};

use telltale_schema::text::with_causes;
use tokio::sync::watch;
use tokio::task::{Id, JoinSet};

use crate::configuration::Configuration;
use telltale_server::listen::{Address, BindError, Handed, Listener, SocketFile};

/// How long all parts together may take to end. Beyond that they are ended where they are.
pub const MOST_TIME_TO_END: Duration = Duration::from_millis(1500);

/// The time from one check of the socket files to the next.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// The parts that run.
#[derive(Debug)]
pub struct ServiceParts {
    directory: Option<PathBuf>,
    handed: Handed,
    files: Vec<SocketFile>,
    sockets: Vec<SocketName>,
    stop: watch::Sender<bool>,
    configuration: Arc<Configuration>,
    followers: Vec<Follower>,
    names: Vec<(Id, &'static str)>,
    running: JoinSet<Result<(), String>>,
}

/// Hands a part its options of a configuration that was read again.
struct Follower(Box<dyn Fn(&Configuration) + Send>);

impl std::fmt::Debug for Follower {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("Follower")
    }
}

/// By what name clients find a socket.
#[derive(Debug)]
struct SocketName {
    part: &'static str,
    path: PathBuf,
    identity: (u64, u64),
}

/// A part has ended, and with it the service.
#[derive(Debug, thiserror::Error)]
#[error("the service's part {part} has ended: {why}")]
pub struct PartEnded {
    /// The part.
    pub part: &'static str,
    /// What it said.
    pub why: String,
}

// === impl ServiceParts ===

impl ServiceParts {
    /// No parts yet. Sockets with a relative path are in `directory`, those that systemd handed
    /// over in `handed`.
    pub fn new(
        configuration: Arc<Configuration>,
        directory: Option<PathBuf>,
        handed: Handed,
    ) -> Self {
        Self {
            directory,
            handed,
            files: Vec::new(),
            sockets: Vec::new(),
            stop: watch::Sender::new(false),
            configuration,
            followers: Vec::new(),
            names: Vec::new(),
            running: JoinSet::new(),
        }
    }

    /// The sockets of the part of this name: those that systemd handed over, else those of these
    /// addresses, bound now.
    ///
    /// # Errors
    /// When one of them cannot be had.
    pub fn listen(
        &mut self,
        part: &'static str,
        addresses: &[Address],
    ) -> Result<Vec<Listener>, BindError> {
        let mut listeners = self.handed.take(part);
        if listeners.is_empty() {
            for address in addresses {
                let (listener, file) = Listener::bind(address, self.directory.as_deref())?;
                if let Some(Address::Unix(path)) = listener.address()
                    && let Some(identity) = identity(&path)
                {
                    self.sockets.push(SocketName { part, path, identity });
                }
                listeners.push(listener);
                self.files.extend(file);
            }
        }
        for listener in &listeners {
            let address = listener.address().map_or_else(String::new, |it| it.to_string());
            info!(address = %address, "{part} listens on {address}");
        }
        Ok(listeners)
    }

    /// A part's options, now and after each time that the configuration is read again.
    pub fn follow<T: Send + Sync + 'static>(
        &mut self,
        of: impl Fn(&Configuration) -> T + Send + 'static,
    ) -> watch::Receiver<T> {
        let (sender, receiver) = watch::channel(of(&self.configuration));
        self.followers.push(Follower(Box::new(move |configuration| {
            // A part that has ended takes nothing.
            let _ = sender.send(of(configuration));
        })));
        receiver
    }

    /// Hands out a configuration that was read again.
    pub fn reconfigure(&mut self, configuration: Arc<Configuration>) {
        self.followers.iter().for_each(|Follower(follow)| follow(&configuration));
        self.configuration = configuration;
    }

    /// Ends when the service is to stop.
    pub fn stopped(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut stop = self.stop.subscribe();
        async move {
            // An error means that the parts have gone, which is the end as well.
            let _ = stop.wait_for(|stop| *stop).await;
        }
    }

    /// Runs a part; on a current-thread runtime, that is, within it.
    pub fn run<E: std::error::Error>(
        &mut self,
        part: &'static str,
        task: impl Future<Output = Result<(), E>> + Send + 'static,
    ) {
        let handle = self.running.spawn(async move { task.await.map_err(|e| with_causes(&e)) });
        self.names.push((handle.id(), part));
    }

    /// Waits until a part ends by itself, or cannot be reached any more; for ever where there is none.
    pub async fn ended(&mut self) -> PartEnded {
        let ended = tokio::select! {
            ended = self.running.join_next_with_id(), if !self.running.is_empty() => ended,
            lost = lost(&self.sockets) => return lost,
        };
        let Some(ended) = ended else { return std::future::pending().await };
        let (id, why) = match ended {
            Ok((id, Ok(()))) => (id, String::from("without a reason")),
            Ok((id, Err(why))) => (id, why),
            Err(error) => (error.id(), String::from("it panicked; the lines above say where")),
        };
        let part = self.names.iter().find(|(of, _)| *of == id).map_or("?", |(_, name)| name);
        PartEnded { part, why }
    }

    /// Asks all to end, waits for them for [`MOST_TIME_TO_END`], and removes their socket files.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        let all = async { while self.running.join_next().await.is_some() {} };
        if tokio::time::timeout(MOST_TIME_TO_END, all).await.is_err() {
            warn!("some connections did not end in time and were cut");
            self.running.shutdown().await;
        }
    }
}

/// Waits until one of these is not there any more, or another file has its name. Files that systemd
/// made are its own affair.
async fn lost(sockets: &[SocketName]) -> PartEnded {
    loop {
        if let Some(lost) = sockets.iter().find(|one| identity(&one.path) != Some(one.identity)) {
            let why = format!(
                "its socket {} was removed, and clients cannot reach it",
                lost.path.display()
            );
            return PartEnded { part: lost.part, why };
        }
        tokio::time::sleep(CHECK_INTERVAL).await;
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    let found = path.symlink_metadata().ok()?;
    Some((found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    use super::{MOST_TIME_TO_END, ServiceParts};
    use std::convert::Infallible;
    use std::io;
    use std::path::PathBuf;
    use std::sync::Arc;
    use std::time::{Duration, Instant};
    use telltale_harness::Scratch;
    use telltale_server::listen::Handed;

    fn parts(directory: Option<PathBuf>) -> ServiceParts {
        ServiceParts::new(Arc::default(), directory, Handed::default())
    }

    fn wait<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(future)
    }

    #[test]
    fn the_end_of_one_part_is_reported_by_its_name() {
        wait(async {
            let mut parts = parts(None);
            let stopped = parts.stopped();
            parts.run("one", async move {
                stopped.await;
                Ok::<(), Infallible>(())
            });
            parts.run("two", async { Err(io::Error::other("no more")) });
            let ended = parts.ended().await;
            assert_eq!((ended.part, ended.why.as_str()), ("two", "no more"));
            parts.run("three", async { panic!("as it may happen") as Result<(), Infallible> });
            assert_eq!(parts.ended().await.part, "three");
            parts.stop().await;
        });
    }

    #[test]
    fn a_part_whose_socket_somebody_removed_has_ended() {
        let place = Scratch::new();
        wait(async {
            let mut parts = parts(Some(place.path().to_owned()));
            let addresses = ["unix:s".parse().unwrap(), "127.0.0.1:0".parse().unwrap()];
            let _listeners = parts.listen("grpc", &addresses).unwrap();
            let stopped = parts.stopped();
            parts.run("grpc", async move {
                stopped.await;
                Ok::<(), Infallible>(())
            });
            let none = tokio::time::timeout(Duration::from_millis(50), parts.ended()).await;
            assert!(none.is_err(), "it is there: {none:?}");
            std::fs::remove_file(place.join("s")).unwrap();
            std::fs::write(place.join("s"), "another").unwrap();
            let ended = parts.ended().await;
            assert_eq!(ended.part, "grpc");
            assert!(ended.why.contains("/s was removed"), "{ended}");
            parts.stop().await;
        });
        assert!(place.join("s").exists(), "another's file stays");
    }

    #[test]
    fn sockets_go_with_the_parts_even_when_one_does_not_end() {
        let place = Scratch::new();
        wait(async {
            let mut parts = parts(Some(place.path().to_owned()));
            let address = "unix:s".parse().unwrap();
            let listeners = parts.listen("http", &[address]).unwrap();
            assert!(place.join("s").exists());
            parts.run("http", async move {
                let _listeners = listeners;
                std::future::pending::<Result<(), Infallible>>().await
            });
            let asked = Instant::now();
            parts.stop().await;
            assert!(asked.elapsed() >= MOST_TIME_TO_END);
        });
        assert!(!place.join("s").exists());
    }
}
