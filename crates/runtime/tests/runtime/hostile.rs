//! Peers that send too much, too little, too slowly or nonsense.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::runtime::asking::{Asked, TIMEOUT, ask, connect, exchange, numbered, started};
use telltale_harness::{Scratch, wait_until};
use telltale_schema::snapshot::MetricValue;
use telltale_wire::{FrameReader, Query, QueryKind, RefusalReason, Reply, Report, frame};

/// Whether the endpoint closes the connection.
fn closes(stream: &mut UnixStream) -> bool {
    let mut buffer = [0; 64];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() == ErrorKind::ConnectionReset,
        }
    }
}

fn errors(report: &Report) -> u64 {
    let own = report.metrics.iter().filter(|it| it.name == "telltale_endpoint_errors_total");
    own.map(|metric| match metric.value {
        MetricValue::Counter(count) => count,
        _ => panic!("a total is a counter"),
    })
    .sum()
}

#[test]
fn hostile_peers_cost_one_error_each_and_others_are_served() {
    let scratch = Scratch::new();
    let runtime = started(&scratch);
    let _device = runtime.open_device(numbered(0));

    let mut endless = connect(&scratch);
    endless.write_all(&u32::MAX.to_le_bytes()).unwrap();
    let mut wrong_length = connect(&scratch);
    wrong_length.write_all(&100u32.to_le_bytes()).unwrap();
    wrong_length.write_all(&[0; 10]).unwrap();
    let mut silent = connect(&scratch);
    let mut gone = connect(&scratch);
    gone.write_all(&[1]).unwrap();
    drop(gone);
    let mut deaf = connect(&scratch);
    // Far more answers than the socket holds, none of them read.
    let query = frame(&Query::of(QueryKind::All).encode()).unwrap();
    deaf.set_nonblocking(true).unwrap();
    wait_until("the socket to be full of answers", TIMEOUT, || deaf.write_all(&query).is_err());

    ask(&scratch, Query::of(QueryKind::All));
    let mut garbage = connect(&scratch);
    let Asked { reply: Reply::Refused(refusal), .. } = exchange(&mut garbage, &[0xFF; 20]) else {
        panic!("garbage was answered")
    };
    assert_eq!(refusal.reason, RefusalReason::Malformed);
    for stream in [&mut endless, &mut wrong_length, &mut silent] {
        assert!(closes(stream));
    }
    // The endless one, the two that kept waiting, the deaf one, and the garbage.
    wait_until("the endpoint to count its errors", TIMEOUT, || {
        errors(&ask(&scratch, Query::of(QueryKind::Performance))) >= 5
    });
}

#[test]
fn a_peer_that_drips_bytes_does_not_get_longer() {
    let scratch = Scratch::new();
    let runtime = started(&scratch);
    let _device = runtime.open_device(numbered(0));
    let mut dripping = connect(&scratch);
    dripping.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let query = frame(&[0; 200]).unwrap();
    let mut bytes = query.iter();
    let mut buffer = [0; 8];
    wait_until("the endpoint to give up", TIMEOUT, || {
        let sent = bytes.next().is_none_or(|byte| dripping.write_all(&[*byte]).is_ok());
        !sent || matches!(dripping.read(&mut buffer), Ok(0))
    });
    assert!(bytes.next().is_some(), "the whole query was taken");
}

#[test]
fn more_connections_than_places_wait_their_turn() {
    let scratch = Scratch::new();
    let runtime = started(&scratch);
    let _device = runtime.open_device(numbered(0));
    let idle: Vec<_> = (0..20).map(|_| connect(&scratch)).collect();
    ask(&scratch, Query::of(QueryKind::Uptime));
    drop(idle);
    ask(&scratch, Query::of(QueryKind::Uptime));
}

#[test]
fn queries_sent_in_one_go_are_each_answered_and_the_last_one_ends_it() {
    let scratch = Scratch::new();
    let runtime = started(&scratch);
    let _device = runtime.open_device(numbered(0));
    let mut stream = connect(&scratch);
    // More bytes than the endpoint reads at once, and then half a query, so that a piece is left over
    // wherever it stops.
    let query = Query::of(QueryKind::Uptime);
    let one = frame(&query.encode()).unwrap();
    let last = frame(&Query { is_last: true, ..query }.encode()).unwrap();
    let many = 1_000 / one.len();
    stream.write_all(&[one.repeat(many), last[..6].to_vec()].concat()).unwrap();
    for _ in 0..many {
        answer(&mut stream);
    }
    stream.write_all(&last[6..]).unwrap();
    answer(&mut stream);
    assert!(closes(&mut stream));
}

/// Takes the answer to one query that was sent before.
fn answer(stream: &mut UnixStream) {
    let mut reader = FrameReader::default();
    while !reader.is_complete() {
        let mut buffer = vec![0; reader.wanted_bytes()];
        stream.read_exact(&mut buffer).expect("the endpoint answers");
        reader.push(&buffer).expect("a frame within the limit");
    }
    let message = reader.take().expect("the frame is complete");
    assert!(matches!(Reply::decode(&message), Ok(Reply::Report(_))));
}
