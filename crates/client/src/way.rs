//! The way to a service wherever it is: a socket file of this machine, or a port, with TLS or without.

use std::error::Error as _;

use tonic::Status;
use tonic::transport::{Channel, Endpoint};

use crate::address::ServiceAddress;
use crate::diagnosis::{Caller, Diagnosis};
use crate::error::ConnectError;
use crate::socket::{self, kept_alive};
use crate::tls::Tls;

/// Where a service is and how it is spoken to, which explains what is in the way.
#[derive(Debug, Clone)]
pub(crate) struct Way {
    pub(crate) address: ServiceAddress,
    pub(crate) tls: Option<Tls>,
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
