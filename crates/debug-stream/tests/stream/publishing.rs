//! What publishers receive, what consumers get, and what the counters say of both.

use telltale_debug_stream::{
    ConnectError, EventKind, Filter, LossCause, Losses, NextEvent, Published, StreamCounters,
    TensorEvent,
};

use crate::stream::{number, publish, stream};

fn text_of(next: Option<NextEvent>) -> String {
    match next {
        None => "-".to_owned(),
        Some(NextEvent::Lost(losses)) => format!("lost {}", losses.sum()),
        Some(NextEvent::Event(event)) => {
            let iteration = event.iteration.map_or("?".to_owned(), |n| n.to_string());
            format!("{} {}#{iteration} {}B", event.kind.name(), event.prefix, event.data.len())
        }
    }
}

#[test]
fn events_before_a_connection_are_dropped_and_each_kind_arrives_after_it() {
    let stream = stream(100);
    let publisher = stream.publisher();
    assert_eq!(publish(&publisher, "early", 1), Published::Disconnected);
    let mut consumer = stream.connect().unwrap();
    assert!(matches!(stream.connect(), Err(ConnectError::Occupied)));
    let nine = TensorEvent { prefix: "", dtype: "", shape: &[1; 9], data: &[], pipe: 0 };
    for (published, expected) in [
        (publish(&publisher, "loss", 1), Published::Queued),
        (publisher.text("log", 1, "hello"), Published::Queued),
        (publisher.breakpoint("loss", "here"), Published::Queued),
        (publisher.user(300, "mine", b"xyz"), Published::Queued),
        (publisher.user(3, "mine", b"xyz"), Published::Unrepresentable),
        (publisher.tensor(&nine), Published::Unrepresentable),
        (publish(&publisher, "loss", 2), Published::Queued),
    ] {
        assert_eq!(published, expected);
    }
    let got = [(); 6].map(|()| text_of(consumer.try_next().unwrap()));
    let expected = [
        "tensor loss#0 4B",
        "text log#0 5B",
        "breakpoint loss#1 4B",
        "user mine#0 3B",
        "tensor loss#2 4B",
        "-",
    ];
    assert_eq!(got, expected);
    assert_eq!(consumer.malformed(), 0);
}

#[test]
fn sequence_numbers_count_what_is_lost_and_times_do_not_go_back() {
    let stream = stream(2);
    let publisher = stream.publisher();
    let mut consumer = stream.connect().unwrap();
    let mut seen = Vec::new();
    let mut newest_ns = 0;
    for round in 0..3 {
        let published = [0, 1, 2].map(|index| publish(&publisher, "x", 10 * round + index));
        assert_eq!(published[2], Published::Lost(LossCause::Events));
        while let Some(next) = consumer.try_next().unwrap() {
            match next {
                NextEvent::Event(event) => {
                    assert!(event.time_ns >= newest_ns);
                    newest_ns = event.time_ns;
                    assert_eq!((event.core, event.kind), (7, EventKind::Tensor));
                    seen.push((event.sequence, u64::from(number(&event.data))));
                }
                NextEvent::Lost(losses) => seen.push((u64::MAX, losses.events)),
            }
        }
    }
    let lost = (u64::MAX, 1);
    assert_eq!(seen, [(0, 0), (1, 1), lost, (3, 10), (4, 11), lost, (6, 20), (7, 21), lost]);
}

#[test]
fn counters_add_up() {
    let stream = stream(4);
    let publisher = stream.publisher();
    let mut consumer = stream.connect().unwrap();
    stream.set_filter(Some(Filter::new().prefix("a*")));
    for round in 0..3 {
        let _ = publish(&publisher, "a", round);
        assert_eq!(publish(&publisher, "b", round), Published::Filtered);
    }
    stream.set_filter(None);
    let _ = consumer.try_next().unwrap();
    for round in 0..4 {
        let _ = publish(&publisher, "b", round);
    }
    let lost = Losses { events: 2, ..Losses::default() };
    stream.count_unsaved(1);
    let counters = stream.counters();
    let expected = StreamCounters {
        connected: true,
        unsaved: 1,
        produced: 7,
        delivered: 1,
        unread: 0,
        waiting: 4,
        waiting_bytes: counters.waiting_bytes,
        high_water: 4,
        lost,
        filtered: 3,
        idle_bytes: 0,
        descriptor_writes: 1,
    };
    assert_eq!(counters, expected);
    drop(consumer);
    let counters = stream.counters();
    assert_eq!((counters.unread, counters.waiting, counters.waiting_bytes), (4, 0, 0));
    assert_eq!((counters.produced, counters.delivered), (7, 1));
}

#[test]
fn a_drain_gets_all_that_was_published_before_it_and_no_more_than_there_is() {
    let stream = stream(1_000);
    let publisher = stream.publisher();
    let mut consumer = stream.connect().unwrap();
    for burst in [0, 1, 500] {
        for index in 0..burst {
            assert_eq!(publish(&publisher, "x", index), Published::Queued);
        }
        let mut got = 0;
        consumer.drain(|_| got += 1).unwrap();
        assert_eq!(got, burst);
    }
}

#[test]
fn an_event_reader_sees_events_only_and_in_place() {
    let stream = stream(2);
    let publisher = stream.publisher();
    let mut reader = stream.connect_for_events().unwrap();
    for index in 0..5 {
        let _ = publish(&publisher, "x", index);
    }
    let mut read = || {
        reader.read(|event| {
            assert!(event.data.as_ptr().addr().is_multiple_of(16));
            (event.sequence, number(event.data), event.shape, event.rank)
        })
    };
    let shape = [1, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(read().unwrap(), Some((0, 0, shape, 1)));
    assert_eq!(read().unwrap(), Some((1, 1, shape, 1)));
    assert_eq!(read().unwrap(), None);
    assert_eq!(stream.counters().lost.events, 3);
}
