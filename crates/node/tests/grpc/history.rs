//! The past by gRPC is the past in the database.

use std::sync::Arc;
use std::time::Duration;

use telltale_collector::clock::SystemClock;
use telltale_node::access::Visibility;
use telltale_node::grpc::GrpcOptions;
use telltale_node::history::{HistoryOptions, HistoryReader, HistoryWriter, database_in};
use telltale_schema::clock::{Clock, ManualClock, Timestamp};
use telltale_schema::health::{Evidence, Fault, FaultKind};
use telltale_schema::history::{HistoryQuery, Subjects};
use telltale_schema::reading::{Absence, Reading};

use telltale_client::CallError;
use telltale_wire::telemetry::message;
use tonic::Code;

use crate::grpc::machine::{NOW, machine};
use crate::grpc::serving::{Served, TIMEOUT, wait};
use telltale_harness::{Scratch, wait_until};

const SECOND_NS: u64 = 1_000_000_000;

fn later(seconds: u64) -> Timestamp {
    Timestamp(NOW.0 + seconds * SECOND_NS)
}

/// A database of half a minute, in which a temperature is not readable for a while.
fn recorded(scratch: &Scratch) -> HistoryReader {
    let (options, interval) = (HistoryOptions::default(), Duration::from_secs(1));
    let clock = Arc::new(ManualClock::default());
    let of_writer = Arc::clone(&clock) as _;
    let writer = HistoryWriter::start(scratch.path(), &options, interval, of_writer);
    let writer = writer.expect("a directory of ours");
    for second in 0..30 {
        let mut snapshot = (*machine(2, 3)).clone();
        snapshot.taken_at = later(second);
        snapshot.devices[0].telemetry.temperature_celsius = match second {
            10..20 => Reading::absent(Absence::Resetting, ""),
            _ => {
                Reading::new(40.0 + f64::from(u32::try_from(second).expect("small")), later(second))
            }
        };
        if (5..20).contains(&second) {
            let evidence = vec![Evidence { reading: "trips".into(), value: 1.0, at: later(5) }];
            let trip = Fault::new(FaultKind::ThermalTrip, later(5), String::from("too hot"));
            snapshot.devices[0].faults = vec![Fault { evidence, ..trip }];
            let down = Fault::new(FaultKind::NetworkLinkDown, later(5), String::from("no link"));
            snapshot.faults = vec![Fault { part: String::from("eth0"), ..down }];
        }
        writer.offer(Arc::new(snapshot));
        wait_until("it to be recorded", TIMEOUT, || writer.metrics().recorded > second);
        clock.advance_ns(SECOND_NS);
    }
    assert_eq!(writer.metrics().missed, 0);
    drop(writer);
    HistoryReader::open(&database_in(scratch.path())).expect("a database")
}

#[test]
fn what_was_is_reported_as_the_database_has_it() {
    let scratch = Scratch::new();
    let reader = recorded(&scratch);
    let served = Served::remembering(machine(1, 1), database_in(scratch.path()));
    let over = HistoryQuery::over(NOW, later(30));
    let queries = [
        over.clone(),
        HistoryQuery { subjects: Subjects::Devices, step_ms: Some(5_000), ..over.clone() },
        HistoryQuery { subjects: Subjects::Processes, ..over.clone() },
        HistoryQuery { processes: vec!["101".parse().unwrap()], ..over.clone() },
        HistoryQuery { metrics: vec![String::from("power")], ..over.clone() },
        HistoryQuery { subjects: Subjects::Faults, ..over.clone() },
    ];
    wait(async {
        let mut client = served.client().await;
        for query in &queries {
            let reported = client.history(query).await.unwrap();
            assert_eq!(reported, reader.query(query, Visibility::Everything).unwrap(), "{query:?}");
            let expected = if query.subjects == Subjects::Faults { 2 } else { 0 };
            assert_eq!(reported.faults.len(), expected, "{query:?}");
            assert_eq!(reported.series.is_empty(), expected > 0, "{query:?}");
        }
        let reported = client.history(&queries[0]).await.unwrap();
        let mut gaps = reported.series.iter().flat_map(|series| &series.absent).flatten();
        assert!(gaps.any(|reason| *reason == Absence::Resetting), "a gap has its reason");

        let past = client.snapshot_at(later(7)).await.unwrap();
        let kept = reader.snapshot_at(later(7)).unwrap();
        assert_eq!((past.snapshot.devices[0].faults.len(), past.snapshot.faults.len()), (1, 1));
        assert_eq!((past.sequence, past.resolution_ms), (None, Some(kept.resolution_ms)));
        assert_eq!(past.snapshot, kept.snapshot);

        let backwards = HistoryQuery { from: over.to, to: over.from, ..over.clone() };
        let error = client.history(&backwards).await.unwrap_err();
        assert!(error.to_string().contains("must be before"), "{error}");
        // What asks for no time is about the last hour.
        let unset = HistoryQuery { from: Timestamp(0), to: Timestamp(0), ..over.clone() };
        let before = SystemClock.now();
        let reported = client.history(&unset).await.unwrap();
        let hour = 3_600_000_000_000;
        let back = before.0 - reported.from.0;
        assert!((hour - hour / 30..hour + hour / 30).contains(&back), "{back}");
        let unknown = HistoryQuery { metrics: vec![String::from("luck")], ..over };
        let error = client.history(&unknown).await.unwrap_err();
        assert!(error.to_string().contains("no metric luck"), "{error}");
        for (filter, fits) in [("dram > 0", true), ("cpu > 50%", false)] {
            let request = message::GetSnapshotRequest {
                at_unix_ns: Some(later(7).0),
                filter: filter.to_owned(),
                ..Default::default()
            };
            let code = match client.unary("GetSnapshot", &request).await {
                Ok(_) => None,
                Err(CallError::Refused(status)) => Some(status.code()),
                Err(error) => panic!("{error}"),
            };
            assert_eq!(code, (!fits).then_some(Code::InvalidArgument), "{filter}");
        }
        let error = client.snapshot_at(Timestamp(1)).await.unwrap_err();
        assert!(error.to_string().contains("history"), "{error}");
    });
}

#[test]
fn who_sees_devices_alone_has_no_past_of_processes() {
    let scratch = Scratch::new();
    drop(recorded(&scratch));
    let options =
        GrpcOptions { listen: vec!["127.0.0.1:0".parse().unwrap()], ..GrpcOptions::default() };
    let served = Served::with_history(machine(1, 1), &options, database_in(scratch.path()));
    let address = format!("http://{}", served.address.unwrap());
    wait(async {
        let endpoint = tonic::transport::Endpoint::from_shared(address).unwrap();
        let mut client = telltale_client::Client::new(endpoint.connect().await.unwrap());
        let query = HistoryQuery::over(NOW, later(30));
        let reported = client.history(&query).await.unwrap();
        assert!(!reported.series.is_empty());
        assert!(reported.series.iter().all(|series| series.process.is_none()));
        let past = client.snapshot_at(later(7)).await.unwrap().snapshot;
        assert_eq!((past.processes.len(), past.withheld_processes), (0, 3));
    });
}
