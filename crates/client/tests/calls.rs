//! What each call brings from a service at its socket file.

use std::time::Duration;

use telltale_client::{CallError, Connector, Health, ServiceAddress, connect};
use telltale_node::grpc::GrpcOptions;
use telltale_schema::alert::VisibleAlerts;
use telltale_schema::clock::Timestamp;
use telltale_schema::history::HistoryQuery;

use crate::served::{Served, TIMEOUT, snapshot, wait};

#[test]
fn a_client_gets_the_machine_and_each_change_of_it() {
    let served = Served::with(&GrpcOptions::default());
    wait(async {
        let mut client = connect(&served.socket()).await.unwrap();
        assert_eq!(client.snapshot(false).await.unwrap(), *snapshot(1));
        assert_eq!(client.devices().await.unwrap().taken_at, snapshot(1).taken_at);
        let mut updates = client.watch(Duration::ZERO).await.unwrap();
        let first = updates.next().await.unwrap().unwrap();
        assert_eq!(first.snapshot, Some((*snapshot(1)).clone()));
        served.publish(snapshot(2));
        let second = updates.next().await.unwrap().unwrap();
        assert_eq!(second.snapshot, Some((*snapshot(2)).clone()));
        assert_eq!((second.sequence, second.skipped), (first.sequence + 1, 0));
    });
}

#[test]
fn alerts_health_and_what_is_refused_are_typed() {
    let served = Served::with(&GrpcOptions::default());
    let connector = Connector::new(ServiceAddress::Unix(served.socket())).with_timeout(TIMEOUT);
    wait(async {
        assert_eq!(connector.health().await.unwrap(), Health::Serving);
        let mut client = connector.connect().await.unwrap();
        assert_eq!(client.alerts().await.unwrap(), VisibleAlerts::default());
        let error = client.selected("nonsense >", false).await.unwrap_err();
        assert!(error.is_of_the_request(), "{error}");
        // This one keeps no history.
        let query = HistoryQuery::over(Timestamp(0), Timestamp(1));
        let error = client.history(&query).await.unwrap_err();
        assert!(matches!(error, CallError::Refused(_)), "{error}");
    });
}

#[test]
fn an_answer_that_takes_too_long_is_given_up() {
    // It is asked for a collection, and nothing collects here.
    let served = Served::with(&GrpcOptions::default());
    let timeout = Duration::from_millis(200);
    let connector = Connector::new(ServiceAddress::Unix(served.socket())).with_timeout(timeout);
    wait(async {
        let mut client = connector.connect().await.unwrap();
        let error = client.snapshot(true).await.unwrap_err();
        assert!(matches!(error, CallError::Late(late) if late == timeout), "{error}");
        client.snapshot(false).await.expect("the connection is still good");
    });
}

#[test]
fn a_stream_says_that_its_service_has_ended() {
    let mut served = Served::with(&GrpcOptions::default());
    let socket = served.socket();
    wait(async {
        let mut updates = connect(&socket).await.unwrap().watch(Duration::ZERO).await.unwrap();
        updates.next().await.unwrap().unwrap();
        served.end();
        let error = updates.next().await.unwrap_err();
        assert!(error.is_of_an_ended_service(), "{error}");
    });
    let error = wait(connect(&socket)).unwrap_err();
    assert!(error.is_missing(), "{error}");
}
