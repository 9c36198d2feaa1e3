//! `telltale health`: whether the service serves, as an exit status.

use serde_json::json;
use telltale_client::{ConnectError, Connector, Health, HealthError, ServiceAddress, Tls};
use telltale_schema::text::with_causes;

use crate::arguments::HealthArguments;
use crate::exit::{self, Failure, Status};
use crate::output::StandardOutput;

/// Where it was asked, if anywhere, and what came of that.
struct HealthCheck {
    endpoint: Option<ServiceAddress>,
    health: Result<Health, String>,
}

/// Runs the command.
pub(crate) fn run(arguments: &HealthArguments) -> Result<Status, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::because(&error))?;
    let found = runtime.block_on(find(arguments));
    let output = StandardOutput::detect();
    if arguments.json {
        output.print(&found.as_json())?;
    } else {
        match &found.health {
            Ok(Health::Serving) => output.print("serving\n")?,
            Ok(Health::NotServing) => output.print("not serving\n")?,
            Err(reason) => exit::tell(&format!("telltale: {reason}")),
        }
    }
    Ok(match found.health {
        Ok(Health::Serving) => Status::Fine,
        Ok(Health::NotServing) => Status::NotServing,
        Err(_) => Status::Nothing,
    })
}

/// Asks where the arguments say; else the first socket at which a service answers. Where none
/// does, the first one that is there at all has the reason.
async fn find(arguments: &HealthArguments) -> HealthCheck {
    let places = match &arguments.endpoint {
        Some(endpoint) => vec![endpoint.clone()],
        None => arguments.place.sockets().into_iter().map(ServiceAddress::Unix).collect(),
    };
    let tls = match tls(arguments) {
        Ok(tls) => tls,
        Err(reason) => {
            return HealthCheck { endpoint: arguments.endpoint.clone(), health: Err(reason) };
        }
    };
    let none = String::from("there is no runtime directory with a service's socket");
    let mut found = HealthCheck { endpoint: None, health: Err(none) };
    let mut is_there = false;
    for endpoint in places {
        match connector(&endpoint, tls.as_ref(), arguments).health().await {
            Ok(health) => return HealthCheck { endpoint: Some(endpoint), health: Ok(health) },
            Err(error) => {
                let is_missing =
                    matches!(&error, HealthError::Connect(error) if error.is_missing());
                if found.endpoint.is_none() || (!is_there && !is_missing) {
                    found =
                        HealthCheck { endpoint: Some(endpoint), health: Err(with_causes(&error)) };
                }
                is_there |= !is_missing;
            }
        }
    }
    found
}

/// What the files for TLS have; a socket file takes none, whatever is in them.
fn tls(arguments: &HealthArguments) -> Result<Option<Tls>, String> {
    let Some(files) = arguments.tls() else { return Ok(None) };
    if let Some(socket @ ServiceAddress::Unix(_)) = &arguments.endpoint {
        return Err(ConnectError::TlsOnSocket(socket.clone()).to_string());
    }
    files.read().map(Some).map_err(|error| with_causes(&error))
}

fn connector(
    endpoint: &ServiceAddress,
    tls: Option<&Tls>,
    arguments: &HealthArguments,
) -> Connector {
    let connector = Connector::new(endpoint.clone()).with_timeout(arguments.timeout);
    match tls {
        Some(tls) => connector.with_tls(tls.clone()),
        None => connector,
    }
}

// === impl HealthCheck ===

impl HealthCheck {
    fn as_json(&self) -> String {
        let (status, reason) = match &self.health {
            Ok(Health::Serving) => ("serving", None),
            Ok(Health::NotServing) => ("not_serving", None),
            Err(reason) => ("unreachable", Some(reason)),
        };
        let endpoint = self.endpoint.as_ref().map(ServiceAddress::to_string);
        format!("{}\n", json!({"endpoint": endpoint, "status": status, "reason": reason}))
    }
}
