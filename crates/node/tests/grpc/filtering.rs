//! Calls with a filter: the rows are those that the query language chooses anywhere else.

use std::sync::Arc;
use std::time::Duration;

use prost::Message;
use telltale_client::{CallError, Client};
use telltale_query::Query;
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::{HostUsage, ProcessUsage, Snapshot};
use telltale_wire::telemetry::message;
use tonic::Code;

use crate::grpc::machine::{NOW, machine, own_metrics};
use crate::grpc::serving::{Served, wait};

const FILTERS: [&str; 5] = [
    "user == alice",
    "dram > 102MiB and device == 251732001",
    "pid == 103 or board ~ /nothing/",
    "temperature > 90C",
    "  ",
];

fn chosen(filter: &str, snapshot: &Snapshot) -> Snapshot {
    Query::parse(filter).expect("a query").select(snapshot)
}

#[test]
fn each_method_answers_with_the_rows_that_the_language_chooses() {
    let whole = machine(3, 6);
    let served = Served::of(whole.clone());
    wait(async {
        let mut client = served.client().await;
        for filter in FILTERS {
            let expected = chosen(filter, &whole);
            let found = client.selected(filter, false).await.unwrap();
            assert_eq!(found, expected, "{filter}");
            let request =
                message::ListDevicesRequest { filter: filter.to_owned(), ..Default::default() };
            let bytes = client.unary("ListDevices", &request).await.unwrap();
            let devices = message::ListDevicesResponse::decode(bytes).unwrap().devices;
            let ids = |snapshot: &Snapshot| -> Vec<String> {
                snapshot.devices.iter().map(|device| device.id.clone()).collect()
            };
            assert!(devices.iter().map(|device| &device.id).eq(&ids(&expected)), "{filter}");
            let request =
                message::ListProcessesRequest { filter: filter.to_owned(), ..Default::default() };
            let bytes = client.unary("ListProcesses", &request).await.unwrap();
            let answer = message::ListProcessesResponse::decode(bytes).unwrap();
            assert_eq!(answer.processes.len(), expected.processes.len(), "{filter}");
            assert_eq!(answer.device_ids, ids(&expected), "{filter}");
        }
    });
}

#[test]
fn a_filter_goes_together_with_a_device_and_a_user() {
    let served = Served::of(machine(2, 4));
    let ask = async |client: &mut Client, device: &str, filter: &str| {
        let request = message::ListProcessesRequest {
            device_id: device.to_owned(),
            filter: filter.to_owned(),
            ..Default::default()
        };
        let bytes = client.unary("ListProcesses", &request).await?;
        let answer = message::ListProcessesResponse::decode(bytes).unwrap();
        Ok::<_, CallError>(answer.processes.len())
    };
    wait(async {
        let mut client = served.client().await;
        let (one, two) = ("251732000", "251732001");
        assert_eq!(ask(&mut client, one, "user == bob").await.unwrap(), 2);
        let elsewhere = format!("user == bob and device == {two}");
        assert_eq!(ask(&mut client, one, &elsewhere).await.unwrap(), 0);
        assert_eq!(ask(&mut client, two, &elsewhere).await.unwrap(), 2);
        assert!(ask(&mut client, "nowhere", "user == bob").await.is_err());
    });
}

/// A machine whose first process takes one processor, with what it uses or without.
fn busy(with_usage: bool) -> Arc<Snapshot> {
    let mut snapshot = (*machine(2, 3)).clone();
    if with_usage {
        snapshot.host = Some(Box::new(HostUsage {
            cpu_ratio: Reading::new(0.5, NOW),
            processors: Reading::new(2, NOW),
            used_bytes: Reading::new(1, NOW),
            memory_bytes: Reading::new(2, NOW),
            load_1: Reading::new(1.0, NOW),
            load_5: Reading::new(1.0, NOW),
            load_15: Reading::new(1.0, NOW),
        }));
        for (process, cpu) in snapshot.processes.iter_mut().zip([1.0, 0.0, 0.0]) {
            let mut usage = ProcessUsage::absent(Absence::Permission, "");
            usage.cpu_ratio = Reading::new(cpu, NOW);
            process.usage = Some(Box::new(usage));
        }
    }
    Arc::new(snapshot)
}

/// How many rows a method answers with, of those that take more than half a processor.
async fn busy_rows(client: &mut Client, method: &'static str, fresh: bool) -> usize {
    let filter = String::from("cpu > 50%");
    match method {
        "ListDevices" => {
            let request = message::ListDevicesRequest { filter, fresh };
            let bytes = client.unary(method, &request).await.unwrap();
            message::ListDevicesResponse::decode(bytes).unwrap().devices.len()
        }
        "ListProcesses" => {
            let request = message::ListProcessesRequest { filter, fresh, ..Default::default() };
            let bytes = client.unary(method, &request).await.unwrap();
            message::ListProcessesResponse::decode(bytes).unwrap().processes.len()
        }
        _ => {
            let request = message::GetSnapshotRequest { filter, fresh, ..Default::default() };
            let bytes = client.unary(method, &request).await.unwrap();
            let answer = message::GetSnapshotResponse::decode(bytes).unwrap();
            answer.snapshot.unwrap().processes.len()
        }
    }
}

#[test]
fn what_processes_use_is_read_for_every_call_that_filters_by_it() {
    let expected = chosen("cpu > 50%", &busy(true));
    assert_eq!((expected.devices.len(), expected.processes.len()), (2, 1));
    let (devices, processes) = (expected.devices.len(), expected.processes.len());
    let methods =
        [("ListDevices", devices), ("ListProcesses", processes), ("GetSnapshot", processes)];
    for ((method, rows), fresh) in methods.into_iter().flat_map(|one| [(one, false), (one, true)]) {
        let served = Served::of(busy(false));
        // A service that reads it while a call wants it.
        let collecting = async {
            loop {
                served.publisher.begin();
                let next = busy(served.publisher.is_usage_watched());
                served.publisher.publish(next, own_metrics());
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let found = wait(async {
            let mut client = served.client().await;
            tokio::select! {
                rows = busy_rows(&mut client, method, fresh) => rows,
                () = collecting => unreachable!("it has no end"),
            }
        });
        assert_eq!(found, rows, "{method}, fresh: {fresh}");
    }
}

#[test]
fn a_watch_goes_on_with_the_rows_of_each_state() {
    let served = Served::of(machine(1, 2));
    wait(async {
        let mut client = served.client().await;
        let filter = "user == bob";
        let mut updates = client.watch_selected(Duration::ZERO, filter, false).await.unwrap();
        for processes in [2, 5, 1] {
            let state = machine(1, processes);
            if processes > 2 || served.view.latest().sequence > 1 {
                served.publisher.publish(state.clone(), own_metrics());
            }
            let update = updates.next().await.unwrap().unwrap();
            assert_eq!(update.snapshot, Some(chosen(filter, &state)), "{processes}");
        }
    });
}

#[test]
fn what_is_no_query_is_refused_with_its_column_and_what_could_stand_there() {
    let served = Served::of(machine(1, 1));
    let cases = [
        ("usr == root", "filter, column 1: there is no field `usr`; did you mean `user`?"),
        ("dram > 2Gi", "filter, column 8: `dram` is an amount of memory"),
        ("user", "filter, column 5: the query ends here, but a comparison"),
        ("pid == '\u{1b}[2J", "filter, column 8: "),
    ];
    wait(async {
        let mut client = served.client().await;
        for (filter, words) in cases {
            let refused = |error: CallError| match error {
                CallError::Refused(status) => (status.code(), status.message().to_owned()),
                other => panic!("{other}"),
            };
            let filter_of = || filter.to_owned();
            let (code, text) = refused(client.selected(filter, false).await.unwrap_err());
            assert_eq!(code, Code::InvalidArgument, "{filter}");
            assert!(text.starts_with(words), "{filter}: {text}");
            let request = message::ListDevicesRequest { filter: filter_of(), ..Default::default() };
            let error = client.unary("ListDevices", &request).await.unwrap_err();
            assert_eq!(refused(error), (code, text.clone()));
            let request =
                message::ListProcessesRequest { filter: filter_of(), ..Default::default() };
            let error = client.unary("ListProcesses", &request).await.unwrap_err();
            assert_eq!(refused(error), (code, text.clone()));
            let error = client.watch_selected(Duration::ZERO, filter, false).await;
            assert_eq!(refused(error.err().unwrap()), (code, text));
        }
        let long =
            client.selected(&format!("pid == 1{}", " ".repeat(2048)), false).await.unwrap_err();
        assert!(long.to_string().contains("longer than 2048 bytes"), "{long}");
        assert!(client.snapshot(false).await.is_ok(), "the connection goes on");
    });
}
