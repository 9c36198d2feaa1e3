//! What receivers get.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_server::{
    MetricsService, MetricsServiceServer,
};
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Point;
use opentelemetry_proto::tonic::metrics::v1::{Metric, NumberDataPoint};
use prost::Message;
use rcgen::{CertifiedKey, KeyPair};
use telltale_schema::clock::Timestamp;
use telltale_schema::health::{Fault, FaultKind};
use telltale_schema::snapshot::Snapshot;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};
use tonic::{Request, Response, Status};

use super::message::Messages;
use super::wishes::{Delay, Detail, Details, RetryInfo};
use super::{OtlpOptions, Protocol, serve};
use crate::samples::tests::fixture;
use crate::samples::{SampleOptions, Sampler};
use crate::service::{Control, Publisher};

const TIMEOUT: Duration = Duration::from_secs(20);

fn attributes(pairs: &[KeyValue]) -> Vec<(String, String)> {
    let value = |pair: &KeyValue| match pair.value.as_ref().and_then(|value| value.value.clone()) {
        Some(Any::StringValue(text)) => text,
        other => format!("{other:?}"),
    };
    pairs.iter().map(|pair| (pair.key.clone(), value(pair))).collect()
}

fn metrics(request: &ExportMetricsServiceRequest) -> Vec<&Metric> {
    let scopes = request.resource_metrics.iter().flat_map(|resource| &resource.scope_metrics);
    scopes.flat_map(|scope| &scope.metrics).collect()
}

fn numbers<'m>(request: &'m ExportMetricsServiceRequest, name: &str) -> &'m [NumberDataPoint] {
    let found = metrics(request).into_iter().find(|metric| metric.name == name);
    match found.and_then(|metric| metric.data.as_ref()) {
        Some(Data::Gauge(gauge)) => &gauge.data_points,
        Some(Data::Sum(sum)) => &sum.data_points,
        _ => &[],
    }
}

/// Makes messages of these snapshots, one after the other.
fn made(snapshots: Vec<std::sync::Arc<Snapshot>>) -> Vec<ExportMetricsServiceRequest> {
    let (mut messages, mut sampler) =
        (Messages::new(&OtlpOptions::default()), Sampler::new(SampleOptions::default()));
    let mut all = Vec::new();
    for (sequence, snapshot) in (1..).zip(snapshots) {
        let published = fixture::published(sequence, snapshot.clone());
        let samples = sampler.sample(&published, &snapshot, None);
        let mut requests = messages.make(&samples, &published);
        assert_eq!(requests.len(), 1);
        all.extend(requests.pop());
    }
    all
}

#[test]
fn devices_and_processes_have_the_conventions_names() {
    let request = made(vec![fixture::everything()]).remove(0);
    let resource = request.resource_metrics[0].resource.clone().unwrap();
    let resource = attributes(&resource.attributes);
    assert!(resource.contains(&("service.name".to_owned(), "telltale".to_owned())));
    assert!(resource.iter().any(|(name, _)| name == "host.name"));
    type PointFacts = (Vec<(String, String)>, Option<Point>);
    let of = |name: &str| -> Vec<PointFacts> {
        let points = numbers(&request, name).iter();
        points.map(|point| (attributes(&point.attributes), point.value)).collect()
    };
    let own = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    let temperature = own(&[("hw.id", "1001"), ("hw.sensor_location", "asic")]);
    assert_eq!(of("hw.temperature"), [(temperature, Some(Point::AsDouble(48.5)))]);
    let memory = own(&[("hw.id", "1001"), ("telltale.memory.space", "dram")]);
    let other = own(&[("hw.id", "0000:41:00.0"), ("telltale.memory.space", "dram")]);
    let used = Some(Point::AsInt(1000));
    assert_eq!(of("hw.gpu.memory.usage"), [(memory, used), (other, used)]);
    // Bytes received and sent are one metric there.
    assert_eq!(of("hw.gpu.io").len(), 3);
    let live = of("telltale.process.memory_live");
    assert_eq!(live.len(), 2);
    assert!(live[0].0.contains(&("container.id".to_owned(), "c".repeat(64))));
    assert!(
        live[1]
            .0
            .starts_with(&own(&[("process.executable.name", "train"), ("process.owner", "ada")]))
    );
    for metric in metrics(&request) {
        let gauge = |name: &str| metric.name == name;
        let Some(Data::Sum(sum)) = &metric.data else { continue };
        assert_eq!(sum.aggregation_temporality, 2, "cumulative");
        let both_ways = ["hw.gpu.memory.usage", "hw.gpu.memory.limit", "hw.status"];
        let both_ways = both_ways.into_iter().any(gauge);
        assert_eq!(sum.is_monotonic, !both_ways, "{}", metric.name);
    }
    let histogram = metrics(&request).into_iter().find_map(|metric| match &metric.data {
        Some(Data::Histogram(histogram)) => Some(histogram.data_points[0].clone()),
        _ => None,
    });
    let histogram = histogram.unwrap();
    assert_eq!((histogram.count, histogram.bucket_counts), (3, vec![1, 2]));
}

#[test]
fn health_is_a_status_in_the_states_of_the_conventions() {
    let mut snapshot = (*fixture::snapshot(vec![fixture::device(1)], vec![])).clone();
    let present = |snapshot: &Snapshot, name: &str| -> Vec<String> {
        let request = made(vec![Arc::new(snapshot.clone())]).remove(0);
        let points = numbers(&request, name).iter();
        let present = points.filter(|point| point.value == Some(Point::AsInt(1)));
        let states = present.flat_map(|point| attributes(&point.attributes));
        states.filter(|(name, _)| name == "hw.state").map(|(_, state)| state).collect()
    };
    for (kind, state) in [
        (FaultKind::ThermalTrip, "failed"),
        (FaultKind::PcieSpeedBelowSlot, "degraded"),
        (FaultKind::WasReset, "ok"),
    ] {
        let fault = Fault::new(kind, Timestamp(1), String::new());
        snapshot.devices[0].faults = vec![fault.clone()];
        snapshot.faults = vec![fault];
        assert_eq!(present(&snapshot, "hw.status"), [state]);
        assert_eq!(present(&snapshot, "telltale.host.health"), [state]);
    }
}

#[test]
fn what_has_gone_is_in_no_message_and_counters_say_since_when() {
    let at = |seconds: u64, processes| {
        let mut snapshot = (*fixture::snapshot(vec![fixture::device(1)], processes)).clone();
        snapshot.taken_at = Timestamp(fixture::NOW.0 + seconds * 1_000_000_000);
        std::sync::Arc::new(snapshot)
    };
    let one = |pid| fixture::process(pid, &format!("p{pid}"), "ada", 100);
    let mut restarted = at(30, vec![one(1)]);
    let device = &mut std::sync::Arc::make_mut(&mut restarted).devices[0];
    // The device was reset, and counts from zero.
    device.telemetry.heartbeat_total = telltale_schema::reading::Reading::new(3, fixture::NOW);
    let all = made(vec![at(0, vec![one(1), one(2)]), at(15, vec![one(1)]), restarted]);
    let since = |request, name| -> Vec<u64> {
        let start = |point: &NumberDataPoint| {
            point.start_time_unix_nano.saturating_sub(fixture::NOW.0) / 1_000_000_000
        };
        numbers(request, name).iter().map(start).collect()
    };
    let allocations = "telltale.process.memory_allocations";
    assert_eq!(since(&all[0], allocations), [0, 0]);
    assert_eq!(since(&all[1], allocations), [0], "the second process has ended");
    assert_eq!(since(&all[1], "telltale.device.heartbeats"), [0]);
    assert_eq!(since(&all[2], "telltale.device.heartbeats"), [15], "begun since the last message");
    let started = numbers(&all[0], "telltale.collections")[0].start_time_unix_nano;
    assert_eq!(started, fixture::own_metrics().started_at.0, "the service's own");
}

/// A receiver that is not there at first.
struct Receiver {
    refusals: std::sync::atomic::AtomicU32,
    got: mpsc::Sender<(ExportMetricsServiceRequest, Option<String>)>,
}

#[tonic::async_trait]
impl MetricsService for Receiver {
    async fn export(
        &self,
        request: Request<ExportMetricsServiceRequest>,
    ) -> Result<Response<ExportMetricsServiceResponse>, Status> {
        if self.refusals.fetch_add(1, std::sync::atomic::Ordering::Relaxed) < 1 {
            let delay = Delay { seconds: 0, nanos: 1_000_000 };
            let info = RetryInfo { retry_delay: Some(delay) }.encode_to_vec();
            let type_url = String::from("type.googleapis.com/google.rpc.RetryInfo");
            let details = Details { details: vec![Detail { type_url, value: info }] };
            let (code, details) = (tonic::Code::ResourceExhausted, details.encode_to_vec());
            return Err(Status::with_details(code, "in a moment", details.into()));
        }
        let key = request.metadata().get("x-key").and_then(|key| key.to_str().ok());
        let key = key.map(str::to_owned);
        // The test may have seen enough.
        let _ = self.got.send((request.into_inner(), key));
        Ok(Response::new(ExportMetricsServiceResponse::default()))
    }
}

fn control() -> (Publisher, Control) {
    let interval = Duration::from_secs(60);
    let (publisher, _) =
        Publisher::new(interval, fixture::everything(), fixture::own_metrics()).unwrap();
    let control = publisher.control();
    (publisher, control)
}

/// Exports to this receiver until something has come.
fn exported<T>(options: OtlpOptions, got: &mpsc::Receiver<T>) -> T {
    let (publisher, control) = control();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let stop = async { stopped.await.unwrap_or(()) };
        runtime.block_on(async { serve(options, control, stop).unwrap().await })
    });
    let found = got.recv_timeout(TIMEOUT).expect("something is exported");
    drop(stop);
    thread.join().unwrap().unwrap();
    drop(publisher);
    found
}

fn to(endpoint: String, protocol: Protocol) -> OtlpOptions {
    OtlpOptions {
        endpoint: Some(endpoint),
        protocol,
        headers: vec!["x-key=secret".to_owned()],
        attributes: vec!["deployment.environment.name=lab".to_owned()],
        ..OtlpOptions::default()
    }
}

fn check(request: &ExportMetricsServiceRequest) {
    assert_eq!(numbers(request, "hw.power").len(), 1);
    let resource = request.resource_metrics[0].resource.clone().unwrap();
    let lab = ("deployment.environment.name".to_owned(), "lab".to_owned());
    assert!(attributes(&resource.attributes).contains(&lab));
}

#[test]
fn a_receiver_gets_all_by_grpc_also_when_it_refuses_at_first() {
    let (sender, got) = mpsc::channel();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    listener.set_nonblocking(true).unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            let incoming = tokio_stream::wrappers::TcpListenerStream::new(listener);
            let receiver = Receiver { refusals: 0.into(), got: sender };
            let server = tonic::transport::Server::builder()
                .add_service(MetricsServiceServer::new(receiver));
            let stopped = async { stopped.await.unwrap_or(()) };
            server.serve_with_incoming_shutdown(incoming, stopped).await
        })
    });
    let (request, key) = exported(to(format!("http://{address}"), Protocol::Grpc), &got);
    check(&request);
    assert_eq!(key.as_deref(), Some("secret"));
    drop(stop);
    thread.join().unwrap().unwrap();
}

/// One request over `stream`, answered with this status and headers.
fn answered(stream: impl Read + Write, answer: &str) -> (String, Vec<u8>) {
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(stream.read_line(&mut head).unwrap() > 0, "the request ends within its head");
    }
    let head = head.to_ascii_lowercase();
    let length = head.split("content-length: ").nth(1).unwrap().lines().next().unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut body).unwrap();
    let answer = format!("HTTP/1.1 {answer}\r\nContent-Length: 0\r\n\r\n");
    stream.get_mut().write_all(answer.as_bytes()).unwrap();
    (head, body)
}

/// What comes to a receiver by HTTP that refuses at first.
fn received(tls: Option<Arc<ServerConfig>>, authority: Option<PathBuf>) -> (String, Vec<u8>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let scheme = if tls.is_some() { "https" } else { "http" };
    let (sender, got) = mpsc::channel();
    std::thread::spawn(move || {
        for answer in ["503 Service Unavailable\r\nRetry-After: 0", "200 OK"] {
            let (stream, _) = listener.accept().unwrap();
            let request = match &tls {
                None => answered(stream, answer),
                Some(tls) => {
                    let connection = ServerConnection::new(Arc::clone(tls)).unwrap();
                    answered(StreamOwned::new(connection, stream), answer)
                }
            };
            if answer.contains("200 OK") {
                sender.send(request).unwrap();
            }
        }
    });
    let endpoint = format!("{scheme}://{address}/v1/metrics");
    let options = OtlpOptions { authority, ..to(endpoint, Protocol::Http) };
    let (head, body) = exported(options, &got);
    assert!(head.contains(&format!("host: {address}")), "{head}");
    (head, body)
}

fn certified() -> CertifiedKey<KeyPair> {
    rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap()
}

/// TLS as a receiver with this certificate has it.
fn server_tls(certified: &CertifiedKey<KeyPair>) -> Arc<ServerConfig> {
    let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key)
        .unwrap();
    Arc::new(config)
}

#[test]
fn a_receiver_gets_all_by_http_with_and_without_tls_also_when_it_refuses_at_first() {
    let scratch = telltale_harness::Scratch::new();
    let certified = certified();
    let authority = scratch.join("authority.pem");
    std::fs::write(&authority, certified.cert.pem()).unwrap();
    let plain = received(None, None);
    let secured = received(Some(server_tls(&certified)), Some(authority));
    for (head, body) in [plain, secured] {
        check(&ExportMetricsServiceRequest::decode(body.as_slice()).unwrap());
        assert!(head.starts_with("post /v1/metrics http/1.1\r\n"), "{head}");
        for line in ["content-type: application/x-protobuf", "x-key: secret"] {
            assert!(head.contains(line), "{head}");
        }
    }
}

#[test]
fn a_receiver_that_another_authority_speaks_for_gets_nothing() {
    let scratch = telltale_harness::Scratch::new();
    let authority = scratch.join("authority.pem");
    std::fs::write(&authority, certified().cert.pem()).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let tls = server_tls(&certified());
    let thread = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut stream = StreamOwned::new(ServerConnection::new(tls).unwrap(), stream);
        let mut bytes = Vec::new();
        (stream.read_to_end(&mut bytes).is_err(), bytes)
    });
    let options = OtlpOptions {
        authority: Some(authority),
        ..to(format!("https://{address}/"), Protocol::Http)
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut sender = super::send::Sender::new(&options).unwrap();
    let error = runtime.block_on(sender.send(&made(vec![fixture::everything()])[0])).unwrap_err();
    assert!(matches!(error, super::SendError::Unreachable(_)), "{error}");
    drop(runtime);
    assert_eq!(thread.join().unwrap(), (true, Vec::new()), "not even the headers");
}

#[test]
fn a_receivers_refusal_is_a_sentence_without_what_steers_a_terminal() {
    let said = super::send::words(&tonic::Status::unavailable("try\u{1b} later"));
    let (code, rest) = said.rsplit_once(": ").unwrap();
    assert_eq!(code, tonic::Code::Unavailable.description());
    assert!(rest.starts_with("try") && rest.ends_with(" later"), "{said}");
    assert!(!said.contains('\u{1b}'), "{said:?}");
    let silent = tonic::Status::new(tonic::Code::Internal, "");
    assert_eq!(super::send::words(&silent), tonic::Code::Internal.description());
}

#[test]
fn a_message_may_take_no_longer_than_the_interval() {
    let options = |interval_seconds| OtlpOptions { interval_seconds, ..OtlpOptions::default() };
    assert_eq!(options(3.0).timeout(), Duration::from_secs(3));
    assert_eq!(options(15.0).timeout(), Duration::from_secs(10));
}

#[test]
fn options_that_make_no_sense_are_refused_with_what_to_do() {
    let good = || to("http://127.0.0.1:4317".to_owned(), Protocol::Grpc);
    let secured = |protocol| to("https://x".to_owned(), protocol);
    let nowhere = || Some("/nowhere/authority.pem".into());
    let cases: [(OtlpOptions, &str); 6] = [
        (OtlpOptions::default(), "write http://HOST:PORT"),
        (OtlpOptions { authority: nowhere(), ..secured(Protocol::Http) }, "otlp.authority"),
        (OtlpOptions { authority: nowhere(), ..secured(Protocol::Grpc) }, "otlp.authority"),
        (OtlpOptions { headers: vec!["a b=c".to_owned()], ..good() }, "write name=value"),
        (OtlpOptions { timeout_seconds: 0.0, ..good() }, "otlp.timeout_seconds is 0; it must"),
        (OtlpOptions { interval_seconds: 0.5, ..good() }, "otlp.interval_seconds is 0.5; it must"),
    ];
    let (_publisher, control) = control();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for (options, text) in cases {
        let refused = runtime.block_on(async { serve(options, control.clone(), async {}).err() });
        let error = refused.expect("it is refused before anything is sent").to_string();
        assert!(error.contains(text), "{error}");
    }
}
