//! The way to a service wherever it is: a socket file of this machine, or a port, with TLS or without.

use std::error::Error as _;
use std::future::Future;
use std::path::Path;
use std::time::Duration;

use tonic::Status;
use tonic::transport::{Channel, Endpoint};

use crate::address::ServiceAddress;
use crate::client::Client;
use crate::diagnosis::{Caller, Diagnosis};
use crate::error::ConnectError;
use crate::socket;
use crate::tls::Tls;

/// How often a connection over which nothing comes is tried, and how long the answer may take: a stream of a
/// service that is stopped would not end.
const KEEP_ALIVE: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(3));

/// How a service is reached: where it is, whom it must be, who the caller is, and how long it may take.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
///
/// use telltale_client::{Connector, Tls};
///
/// let mut client = Connector::new("node7:9436".parse()?)
///     .with_tls(Tls::with_authority(std::fs::read("authority.pem")?))
///     .with_token(std::fs::read_to_string("token")?.trim())
///     .with_timeout(Duration::from_secs(5))
///     .connect()
///     .await?;
/// println!("{} devices", client.devices().await?.devices.len());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Connector {
    way: Way,
    token: Option<String>,
    timeout: Option<Duration>,
}

/// Where a service is and how it is spoken to, which explains what is in the way.
#[derive(Debug, Clone)]
pub(crate) struct Way {
    pub(crate) address: ServiceAddress,
    pub(crate) tls: Option<Tls>,
}

// === impl Connector ===

impl Connector {
    /// The way to the service at this address.
    #[must_use]
    pub fn new(address: ServiceAddress) -> Self {
        Self { way: Way { address, tls: None }, token: None, timeout: None }
    }

    /// The same by TLS, which a port alone takes.
    #[must_use]
    pub fn with_tls(mut self, tls: Tls) -> Self {
        self.way.tls = Some(tls);
        self
    }

    /// The same with the service's token, which is sent with each call. It shows everything that the
    /// service knows, so it is sent by TLS or within this machine only.
    #[must_use]
    pub fn with_token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// The same where connecting, and each single answer afterwards, may take this long. Without it, a
    /// socket file has two seconds to connect, and what else is waited for is the caller's to decide.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Connects. Needs a tokio runtime with I/O and time, as all that follows does.
    ///
    /// # Errors
    /// When there is no answer in time, none to be trusted, or the token would not stay secret.
    pub async fn connect(&self) -> Result<Client, ConnectError> {
        let address = &self.way.address;
        if self.token.is_some() && self.way.tls.is_none() && !address.is_here() {
            return Err(ConnectError::TokenInTheClear(address.clone()));
        }
        let channel = self.in_time(self.way.channel(), |late| late).await?;
        let client = Client::of(channel, self.way.clone(), self.timeout);
        Ok(match &self.token {
            Some(token) => client.with_token(token)?,
            None => client,
        })
    }

    pub(crate) fn way(&self) -> &Way {
        &self.way
    }

    /// What comes of `work`, or that it took longer than the timeout.
    pub(crate) async fn in_time<T, E>(
        &self,
        work: impl Future<Output = Result<T, E>>,
        late: impl Fn(ConnectError) -> E,
    ) -> Result<T, E> {
        let Some(timeout) = self.timeout else { return work.await };
        let address = &self.way.address;
        let too_late = |_| late(ConnectError::Late { address: address.clone(), timeout });
        tokio::time::timeout(timeout, work).await.map_err(too_late)?
    }
}

impl std::fmt::Debug for Connector {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The token stays where it is.
        let Self { way, token, timeout } = self;
        let has_token = token.is_some();
        let mut to = to.debug_struct("Connector");
        to.field("way", way).field("has_token", &has_token).field("timeout", timeout).finish()
    }
}

/// Connects to the service at the socket file `path`, if that can be trusted: it must belong to root, to
/// this process's user, or to the owner of its directory. Needs a tokio runtime with I/O and time.
///
/// # Errors
/// When there is no answer, or one of another user.
pub async fn connect(path: &Path) -> Result<Client, ConnectError> {
    Connector::new(ServiceAddress::Unix(path.to_owned())).connect().await
}

/// Connects to the service of this machine: the first that answers at one of the
/// [usual sockets](crate::usual_sockets).
///
/// # Errors
/// When none does: with the reason of the first whose socket is there.
pub async fn connect_here() -> Result<Client, ConnectError> {
    let mut found: Option<ConnectError> = None;
    for path in socket::usual_sockets(None, None) {
        match connect(&path).await {
            Ok(client) => return Ok(client),
            Err(error) if found.as_ref().is_none_or(ConnectError::is_missing) => {
                found = Some(error)
            }
            Err(_) => {}
        }
    }
    Err(found.unwrap_or(ConnectError::NoDirectory))
}

// === impl Way ===

impl Way {
    /// A connection.
    pub(crate) async fn channel(&self) -> Result<Channel, ConnectError> {
        match (&self.address, &self.tls) {
            (ServiceAddress::Unix(path), None) => socket::channel(path).await,
            (ServiceAddress::Unix(_), Some(_)) => {
                Err(ConnectError::TlsOnSocket(self.address.clone()))
            }
            (ServiceAddress::Port(port), tls) => self.to_port(port, tls.as_ref()).await,
        }
    }

    async fn to_port(&self, port: &str, tls: Option<&Tls>) -> Result<Channel, ConnectError> {
        let unfit = |source| ConnectError::Unfit { address: self.address.clone(), source };
        let scheme = if tls.is_some() { "https" } else { "http" };
        let address = format!("{scheme}://{port}");
        let mut endpoint = kept_alive(Endpoint::from_shared(address).map_err(unfit)?);
        if let Some(tls) = tls {
            endpoint = endpoint.tls_config(tls.config()).map_err(unfit)?;
        }
        endpoint.connect().await.map_err(|error| ConnectError::Port {
            address: self.address.clone(),
            diagnosis: Diagnosis::of(&error, self.caller()),
        })
    }

    /// What was in the way of a call over a connection that there was, where the service itself did not
    /// refuse it. With TLS, a service says only then that it does not take its caller.
    pub(crate) fn in_the_way(&self, status: &Status) -> Option<ConnectError> {
        // What a service says has no source; what went wrong on the way has.
        let source = status.source();
        let source = source.filter(|_| matches!(self.address, ServiceAddress::Port(_)))?;
        let diagnosis = Diagnosis::of_call(source, self.caller());
        Some(ConnectError::Port { address: self.address.clone(), diagnosis })
    }

    fn caller(&self) -> Caller {
        let has_certificate = self.tls.as_ref().is_some_and(Tls::has_certificate);
        Caller { uses_tls: self.tls.is_some(), has_certificate }
    }
}

/// The same connection, tried while nothing comes over it and an answer is awaited.
pub(crate) fn kept_alive(endpoint: Endpoint) -> Endpoint {
    let (interval, timeout) = KEEP_ALIVE;
    endpoint.http2_keep_alive_interval(interval).keep_alive_timeout(timeout)
}
