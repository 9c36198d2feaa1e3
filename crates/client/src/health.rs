//! Asks a service whether it serves, as probes do (grpc.health.v1). Nothing else is asked, so that
//! anyone who may connect gets an answer.

use tonic::Status;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::address::ServiceAddress;
use crate::connector::Connector;
use crate::error::ConnectError;

/// What a service says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// It has a snapshot that is not too old, and more will come.
    Serving,
    /// It answers, and has none.
    NotServing,
}

/// Why nothing is known of a service.
#[derive(Debug, thiserror::Error)]
pub enum HealthError {
    /// There is no way to it, or it took too long.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The server there does not support this request.
    #[error("{address} does not tell its health; is it a node service?")]
    Refused {
        /// Where.
        address: ServiceAddress,
        /// What it said.
        #[source]
        status: Box<Status>,
    },
}

// === impl Connector ===

impl Connector {
    /// Asks whether the service serves, over a connection of its own. No token is sent, as none is needed.
    /// The timeout is that of connecting and of the answer together.
    ///
    /// # Errors
    /// When it cannot be reached or does not answer in time.
    pub async fn health(&self) -> Result<Health, HealthError> {
        self.in_time(self.ask_health(), HealthError::Connect).await
    }

    async fn ask_health(&self) -> Result<Health, HealthError> {
        let way = self.way();
        let channel = way.channel().await?;
        // The empty name is the whole server.
        let request = HealthCheckRequest { service: String::new() };
        let refused = |status| match way.in_the_way(&status) {
            Some(error) => error.into(),
            None => HealthError::Refused { address: way.address.clone(), status: Box::new(status) },
        };
        let answer = HealthClient::new(channel).check(request).await.map_err(refused)?;
        Ok(match answer.get_ref().status() {
            ServingStatus::Serving => Health::Serving,
            _ => Health::NotServing,
        })
    }
}
