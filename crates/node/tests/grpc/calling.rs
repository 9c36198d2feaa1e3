//! Calls that are answered once.

use std::time::{Duration, Instant};

use prost::Message;
use telltale_client::ConnectError;
use telltale_schema::clock::Timestamp;
use telltale_wire::telemetry::{Payload, RawCodec, SERVICE, message};
use tonic::transport::Endpoint;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, health_check_response::ServingStatus};

use crate::grpc::machine::{ALICE, machine, own_metrics};
use crate::grpc::serving::{Served, wait};

#[test]
fn a_snapshot_arrives_as_it_was_published() {
    let whole = machine(8, 100);
    let served = Served::of(whole.clone());
    let found = wait(async { served.client().await.snapshot(false).await.unwrap() });
    assert_eq!(found, *whole);
}

#[test]
fn a_fresh_one_is_waited_for_and_shared_by_those_who_wait() {
    let served = Served::of(machine(1, 1));
    let newer = machine(2, 3);
    let answers = std::thread::scope(|scope| {
        let asking = || wait(async { served.client().await.snapshot(true).await.unwrap() });
        let callers: Vec<_> = (0..4).map(|_| scope.spawn(asking)).collect();
        while !callers.iter().all(|caller| caller.is_finished()) {
            if served.publisher.is_wanted() {
                served.publisher.begin();
                served.publisher.publish(newer.clone(), own_metrics());
            }
            std::thread::yield_now();
        }
        callers.into_iter().map(|caller| caller.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(answers.iter().all(|answer| *answer == *newer));
    assert!(served.view.latest().sequence <= 5);
}

#[test]
fn lists_are_of_devices_and_of_the_processes_asked_for() {
    let served = Served::of(machine(3, 4));
    wait(async {
        let mut client = served.client().await;
        let request = message::ListDevicesRequest::default();
        let bytes = client.unary("ListDevices", &request).await.unwrap();
        let devices = message::ListDevicesResponse::decode(bytes).unwrap().devices;
        let ids: Vec<&str> = devices.iter().map(|device| device.id.as_str()).collect();
        assert_eq!(ids, ["251732000", "251732001", "251732002"]);

        let of = |uid, device_id: &str| message::ListProcessesRequest {
            device_id: device_id.to_owned(),
            uid,
            ..message::ListProcessesRequest::default()
        };
        for (request, count) in
            [(of(None, ""), 4), (of(Some(ALICE), ""), 2), (of(Some(1), ids[1]), 0)]
        {
            let bytes = client.unary("ListProcesses", &request).await.unwrap();
            let answer = message::ListProcessesResponse::decode(bytes).unwrap();
            assert_eq!(answer.processes.len(), count, "{request:?}");
        }
        let error = client.unary("ListProcesses", &of(None, "nowhere")).await.unwrap_err();
        assert!(error.to_string().contains("no device has this id"), "{error}");

        let bytes = client.unary("ListMetrics", &message::ListMetricsRequest {}).await.unwrap();
        let metrics = message::ListMetricsResponse::decode(bytes).unwrap().metrics;
        assert!(metrics.iter().any(|metric| metric.name == "telltale_device_power_watts"));
    });
}

#[test]
fn what_is_not_offered_is_refused_with_a_reason() {
    let served = Served::of(machine(1, 1));
    wait(async {
        let mut client = served.client().await;
        let error = client.snapshot_at(Timestamp(1)).await.unwrap_err();
        assert!(error.to_string().contains("no history"), "{error}");
        let nothing = message::ListMetricsRequest {};
        let error = client.unary("DropTables", &nothing).await.unwrap_err();
        assert!(error.to_string().contains("no such method"), "{error}");
        let long = message::ListProcessesRequest {
            device_id: "x".repeat(10_000),
            ..message::ListProcessesRequest::default()
        };
        assert!(client.unary("ListProcesses", &long).await.is_err());
        assert!(client.snapshot(false).await.is_ok(), "the connection goes on");
    });
}

#[test]
fn a_method_of_ours_at_the_end_of_another_path_is_not_ours() {
    let served = Served::of(machine(1, 1));
    let address = format!("unix:{}", served.socket().display());
    wait(async {
        let channel = Endpoint::from_shared(address).unwrap().connect().await.unwrap();
        let mut grpc = tonic::client::Grpc::new(channel);
        for (path, works) in [
            (format!("/{SERVICE}/ListMetrics"), true),
            (format!("/{SERVICE}/x/ListMetrics"), false),
            (format!("/{SERVICE}//ListMetrics"), false),
            (String::from("/other.v1.Service/ListMetrics"), false),
            (format!("/x/{SERVICE}/ListMetrics"), false),
        ] {
            grpc.ready().await.unwrap();
            let request = tonic::Request::new(Payload::default());
            let answer = grpc.unary(request, path.parse().unwrap(), RawCodec).await;
            let code = answer.err().map(|status| status.code());
            let expected = (!works).then_some(tonic::Code::Unimplemented);
            assert_eq!(code, expected, "{path}");
        }
    });
}

#[test]
fn health_is_the_truth_at_that_moment() {
    let mut served = Served::of(machine(1, 1));
    let status = |served: &Served, service: &str| {
        let request = HealthCheckRequest { service: service.to_owned() };
        let address = format!("unix:{}", served.socket().display());
        wait(async {
            let channel = Endpoint::from_shared(address).unwrap().connect().await.unwrap();
            let mut client = HealthClient::new(channel);
            client.check(request).await.map(|answer| answer.into_inner().status())
        })
    };
    for service in ["", SERVICE] {
        assert_eq!(status(&served, service).unwrap(), ServingStatus::Serving);
    }
    assert_eq!(status(&served, "nothing").unwrap_err().code(), tonic::Code::NotFound);
    // A publisher that is gone publishes no more.
    let (publisher, _) = telltale_node::service::Publisher::new(
        Duration::from_secs(1),
        machine(1, 1),
        own_metrics(),
    )
    .unwrap();
    drop(std::mem::replace(&mut served.publisher, publisher));
    for service in ["", SERVICE] {
        assert_eq!(status(&served, service).unwrap(), ServingStatus::NotServing);
    }
}

#[test]
fn a_stop_ends_streams_and_removes_the_socket() {
    let mut served = Served::of(machine(1, 1));
    let socket = served.socket();
    let asked = wait(async {
        let mut client = served.client().await;
        let mut updates = client.watch(Duration::ZERO).await.unwrap();
        assert!(updates.next().await.unwrap().is_some());
        served.ask_to_stop();
        let asked = Instant::now();
        let error = updates.next().await.unwrap_err();
        assert!(error.to_string().contains("stopping"), "{error}");
        asked
    });
    served.stop().unwrap();
    assert!(asked.elapsed() < Duration::from_secs(2), "nobody waits for the last moment");
    assert!(!socket.exists());
    let gone = wait(async { telltale_client::connect(&socket).await });
    assert!(matches!(gone, Err(ConnectError::Missing { .. })));
}
