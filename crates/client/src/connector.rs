//! How a service is reached wherever it is, as its caller says.

use std::future::Future;
use std::path::Path;
use std::time::Duration;

use crate::address::ServiceAddress;
use crate::client::Client;
use crate::error::ConnectError;
use crate::socket;
use crate::tls::Tls;
use crate::way::Way;

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
