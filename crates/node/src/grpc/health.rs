//! The health service that probes ask (grpc.health.v1). It checks the moment it is asked: serving
//! means that a state was published lately and more will come.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use telltale_wire::telemetry::SERVICE;
use tokio::time::{Instant, Sleep};
use tokio_stream::Stream;
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::Health;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use super::gate::Permit;
use super::{Serving, until_stop};

/// How often a watched status is checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Answers for the whole server (the empty name) and for the telemetry service.
#[derive(Debug, Clone)]
pub(super) struct Truth(pub(super) Arc<Serving>);

/// The status now and each time it changes.
struct Statuses {
    serving: Arc<Serving>,
    is_known: bool,
    last: Option<ServingStatus>,
    next_check: Pin<Box<Sleep>>,
    _permit: Permit,
}

impl Truth {
    fn knows(request: &Request<HealthCheckRequest>) -> bool {
        let name = request.get_ref().service.as_str();
        name.is_empty() || name == SERVICE
    }
}

fn status(serving: &Serving) -> ServingStatus {
    match serving.view.is_ready() {
        Ok(()) => ServingStatus::Serving,
        Err(_) => ServingStatus::NotServing,
    }
}

#[tonic::async_trait]
impl Health for Truth {
    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        let (_sight, _permit) = self.0.enter(request.extensions(), request.metadata())?;
        if !Self::knows(&request) {
            return Err(Status::not_found("no such service here"));
        }
        Ok(Response::new(HealthCheckResponse { status: status(&self.0).into() }))
    }

    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let (_sight, permit) = self.0.enter(request.extensions(), request.metadata())?;
        let statuses = Statuses {
            serving: Arc::clone(&self.0),
            is_known: Self::knows(&request),
            last: None,
            next_check: Box::pin(tokio::time::sleep(Duration::ZERO)),
            _permit: permit,
        };
        Ok(Response::new(Box::pin(until_stop(statuses, self.0.stop.clone()))))
    }
}

impl Stream for Statuses {
    type Item = Result<HealthCheckResponse, Status>;

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<HealthCheckResponse, Status>>> {
        loop {
            ready!(self.next_check.as_mut().poll(context));
            self.next_check.as_mut().reset(Instant::now() + CHECK_INTERVAL);
            let now =
                if self.is_known { status(&self.serving) } else { ServingStatus::ServiceUnknown };
            if self.last != Some(now) {
                self.last = Some(now);
                return Poll::Ready(Some(Ok(HealthCheckResponse { status: now.into() })));
            }
        }
    }
}
