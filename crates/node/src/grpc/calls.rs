//! The methods of the telemetry service. Each call answers with a stream of encoded messages, most
//! with one: until the client has taken it, the call counts against the limits.

use std::borrow::Cow;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use prost::Message;
use telltale_query::Query;
use telltale_schema::clock::Timestamp;
use telltale_schema::metric::DEFINITIONS;
use telltale_schema::snapshot::{Device, HeldDevice, Process, Snapshot};
use telltale_wire::telemetry::{MAX_REQUEST_BYTES, Payload, RawCodec, SERVICE, encode, message};
use tokio_stream::Stream;
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Bytes, Service, http};
use tonic::server::{Grpc, NamedService, ServerStreamingService};
use tonic::{Request, Response, Status};

use super::gate::Permit;
use super::history::History;
use super::watch::Watching;
use super::{Serving, until_stop};
use super::{alerts, filter};
use crate::access::{Visibility, chosen};
use crate::history::USAGE_NOT_KEPT;
use crate::service::{FreshError, Published};

/// How long a call waits for a fresh collection.
const FRESH_TIMEOUT: Duration = Duration::from_secs(5);
/// For those who do not see everything, a state of this age is fresh: no client can make the service
/// work without a pause.
const FRESH_ENOUGH: Duration = Duration::from_millis(250);

/// The telemetry service.
#[derive(Debug, Clone)]
pub(super) struct Telemetry(pub(super) Arc<Serving>);

/// What is called.
#[derive(Debug, Clone, Copy)]
enum Method {
    ListDevices,
    ListProcesses,
    GetSnapshot,
    Watch,
    QueryHistory,
    ReportProcess,
    ListMetrics,
    ListAlerts,
}

/// One call.
struct Call {
    serving: Arc<Serving>,
    method: Method,
}

type Payloads = Pin<Box<dyn Stream<Item = Result<Payload, Status>> + Send>>;

/// One message, and the right to have it on the way.
struct Once(Option<Payload>, #[expect(dead_code, reason = "held until it is dropped")] Permit);

// === impl Telemetry ===

impl NamedService for Telemetry {
    const NAME: &'static str = SERVICE;
}

impl Service<http::Request<Body>> for Telemetry {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<http::Response<Body>, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let serving = Arc::clone(&self.0);
        Box::pin(async move {
            let Some(method) = Method::of_path(request.uri().path()) else {
                return Ok(Status::unimplemented("no such method here").into_http());
            };
            let mut grpc = Grpc::new(RawCodec).max_decoding_message_size(MAX_REQUEST_BYTES);
            Ok(grpc.server_streaming(Call { serving, method }, request).await)
        })
    }
}

impl Method {
    /// The method of a whole path, `/SERVICE/METHOD`. The router hands over all that begins with our
    /// service's name, and a longer path with one of our methods at its end belongs to none.
    fn of_path(path: &str) -> Option<Self> {
        let method = path.strip_prefix('/')?.strip_prefix(SERVICE)?.strip_prefix('/')?;
        Some(match method {
            "ListDevices" => Self::ListDevices,
            "ListProcesses" => Self::ListProcesses,
            "GetSnapshot" => Self::GetSnapshot,
            "Watch" => Self::Watch,
            "QueryHistory" => Self::QueryHistory,
            "ReportProcess" => Self::ReportProcess,
            "ListMetrics" => Self::ListMetrics,
            "ListAlerts" => Self::ListAlerts,
            _ => return None,
        })
    }
}

// === impl Call ===

impl ServerStreamingService<Bytes> for Call {
    type Response = Payload;
    type ResponseStream = Payloads;
    type Future = BoxFuture<Response<Payloads>, Status>;

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        let (serving, method) = (Arc::clone(&self.serving), self.method);
        Box::pin(async move {
            let (visibility, permit) = serving.enter(request.extensions(), request.metadata())?;
            let bytes = request.into_inner();
            let payload = match method {
                Method::Watch => {
                    let asked: message::WatchRequest = decoded(&bytes)?;
                    let least = Duration::from_millis(asked.least_interval_ms.into());
                    let query = filter::read(&asked.filter)?;
                    let usage = visibility.gets_usage(asked.usage, query.as_ref());
                    let mut watching =
                        Watching::new(Arc::clone(&serving), visibility, least, query);
                    if usage {
                        watching.watch_usage();
                    }
                    let held = GuardedStream(watching, permit);
                    let watched: Payloads = Box::pin(until_stop(held, serving.stop.clone()));
                    return Ok(Response::new(watched));
                }
                Method::ListDevices => serving.devices(&decoded(&bytes)?, visibility).await?,
                Method::ListProcesses => serving.processes(&decoded(&bytes)?, visibility).await?,
                Method::GetSnapshot => serving.snapshot(&decoded(&bytes)?, visibility).await?,
                Method::QueryHistory => serving.query_history(decoded(&bytes)?, visibility).await?,
                Method::ReportProcess => {
                    serving.report_process(&decoded(&bytes)?, visibility).await?
                }
                Method::ListMetrics => encode::metrics(DEFINITIONS),
                Method::ListAlerts => {
                    let answer = alerts::response(&serving.view.latest(), visibility);
                    Payload { shared: Bytes::new(), own: answer.encode_to_vec() }
                }
            };
            let once: Payloads = Box::pin(Once(Some(payload), permit));
            Ok(Response::new(once))
        })
    }
}

fn decoded<T: Message + Default>(bytes: &Bytes) -> Result<T, Status> {
    T::decode(&bytes[..]).map_err(|error| Status::invalid_argument(error.to_string()))
}

/// The rows that a filter wants of what is visible to the caller, and all where there is none.
fn wanted<'s>(
    visible: &'s Snapshot,
    visibility: Visibility,
    query: Option<&Query>,
) -> Result<Cow<'s, Snapshot>, Status> {
    let Some(query) = query else { return Ok(Cow::Borrowed(visible)) };
    chosen(visible, visibility, query).map(Cow::Owned).map_err(filter::too_slow)
}

impl Serving {
    /// The state that a call is answered with. With `usage` it has what processes and the host use.
    async fn state(
        &self,
        fresh: bool,
        usage: bool,
        visibility: Visibility,
    ) -> Result<Arc<Published>, Status> {
        // Once it is read, a fresh collection has it too.
        let latest = match usage {
            true => self.view.with_usage().await,
            false => self.view.latest(),
        };
        let is_enough =
            visibility != Visibility::Everything && latest.made_at.elapsed() < FRESH_ENOUGH;
        if !fresh || is_enough {
            return Ok(latest);
        }
        self.view.fresh(FRESH_TIMEOUT).await.map_err(|error| match error {
            FreshError::TimedOut(_) => Status::deadline_exceeded(error.to_string()),
            FreshError::Stopped => Status::unavailable(error.to_string()),
        })
    }

    async fn devices(
        &self,
        asked: &message::ListDevicesRequest,
        visibility: Visibility,
    ) -> Result<Payload, Status> {
        let query = filter::read(&asked.filter)?;
        let usage = visibility.gets_usage(false, query.as_ref());
        let state = self.state(asked.fresh, usage, visibility).await?;
        let visible = self.policy.visible(&state.snapshot, visibility);
        let rows = wanted(&visible, visibility, query.as_ref())?;
        Ok(encode::devices(&rows, state.sequence))
    }

    async fn processes(
        &self,
        asked: &message::ListProcessesRequest,
        visibility: Visibility,
    ) -> Result<Payload, Status> {
        let query = filter::read(&asked.filter)?;
        let usage = visibility.gets_usage(false, query.as_ref());
        let state = self.state(asked.fresh, usage, visibility).await?;
        let visible = self.policy.visible(&state.snapshot, visibility);
        let id = asked.device_id.as_str();
        let is_it = |device: &Device| device.id == id;
        if !id.is_empty() && !visible.devices.iter().any(is_it) {
            return Err(Status::not_found("no device has this id; see ListDevices"));
        }
        let rows = wanted(&visible, visibility, query.as_ref())?;
        // A device that the filter leaves out has no processes left.
        let on = rows.devices.iter().position(is_it);
        let is_wanted = |process: &Process| {
            let is_on = |held: &HeldDevice| Some(held.device) == on;
            (id.is_empty() || process.devices.iter().any(is_on))
                && asked.uid.is_none_or(|uid| process.uid.value() == Some(&uid))
        };
        Ok(encode::processes(&rows, state.sequence, is_wanted))
    }

    async fn snapshot(
        &self,
        asked: &message::GetSnapshotRequest,
        visibility: Visibility,
    ) -> Result<Payload, Status> {
        let query = filter::read(&asked.filter)?;
        if let Some(at) = asked.at_unix_ns {
            if asked.fresh {
                return Err(Status::invalid_argument("the past cannot be fresh; leave one out"));
            }
            if query.as_ref().is_some_and(Query::asks_for_usage) {
                return Err(Status::invalid_argument(USAGE_NOT_KEPT));
            }
            let (past, resolution_ms) =
                self.history()?.snapshot_at(Timestamp(at), visibility).await?;
            let rows = wanted(&past, visibility, query.as_ref())?;
            return Ok(encode::past_answer(&rows, resolution_ms));
        }
        let usage = visibility.gets_usage(asked.usage, query.as_ref());
        let state = self.state(asked.fresh, usage, visibility).await?;
        if let Some(query) = &query {
            let rows = self.policy.chosen(&state.snapshot, visibility, query);
            let bytes = encode::snapshot(&rows.map_err(filter::too_slow)?);
            return Ok(encode::snapshot_answer(bytes, Some(state.sequence)));
        }
        let bytes = self.encodings.of(&state, &self.policy, visibility);
        Ok(encode::snapshot_answer(bytes, Some(state.sequence)))
    }
}

impl Serving {
    fn history(&self) -> Result<&History, Status> {
        let without = || Status::failed_precondition("this service keeps no history");
        self.history.as_ref().ok_or_else(without)
    }

    async fn query_history(
        &self,
        asked: message::QueryHistoryRequest,
        visibility: Visibility,
    ) -> Result<Payload, Status> {
        let answer = self.history()?.query(asked, visibility).await?;
        Ok(Payload { shared: Bytes::new(), own: answer.encode_to_vec() })
    }

    async fn report_process(
        &self,
        asked: &message::ReportProcessRequest,
        visibility: Visibility,
    ) -> Result<Payload, Status> {
        let answer = self.history()?.report(&asked.process, visibility).await?;
        Ok(Payload { shared: Bytes::new(), own: answer.encode_to_vec() })
    }
}

// === impl Once, Held ===

impl Stream for Once {
    type Item = Result<Payload, Status>;

    fn poll_next(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Payload, Status>>> {
        Poll::Ready(self.0.take().map(Ok))
    }
}

/// A stream, and the right to have it.
struct GuardedStream<S>(S, #[expect(dead_code, reason = "held until it is dropped")] Permit);

impl<S: Stream + Unpin> Stream for GuardedStream<S> {
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<S::Item>> {
        Pin::new(&mut self.0).poll_next(context)
    }
}
