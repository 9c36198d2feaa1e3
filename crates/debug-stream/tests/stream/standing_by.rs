//! The consumer of last resort makes room for clients and comes back after them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::event::{EventfdFlags, eventfd};
use telltale_debug_stream::{ConnectError, Consumer, NextEvent, Published};

use crate::stream::{publish, stream};

/// Takes what waits, and reports how many events that was.
fn take_all(consumer: &mut Consumer) -> u64 {
    let mut events = 0;
    consumer.drain(|next| events += u64::from(matches!(next, NextEvent::Event(_)))).unwrap();
    events
}

#[test]
fn a_client_gets_the_place_and_the_standby_gets_it_back() {
    let stream = stream(1_000);
    let publisher = stream.publisher();
    let wake_up = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).unwrap());
    let by_standby = AtomicU64::new(0);
    const CLIENTS: u32 = 200;
    let standby = || {
        let mut consumer = stream.connect_standby(&wake_up).ok();
        let mut goes = 0;
        while goes < CLIENTS || consumer.is_none() {
            // Blocks until it is rung: a lost ring would hang this test.
            rustix::io::read(&*wake_up, &mut [0; 8]).unwrap();
            if stream.is_wanted()
                && let Some(mut leaving) = consumer.take()
            {
                by_standby.fetch_add(take_all(&mut leaving), Ordering::Relaxed);
                goes += 1;
            }
            consumer = consumer.or_else(|| stream.connect_standby(&wake_up).ok());
        }
        consumer
    };
    let mut by_clients = 0;
    let last = std::thread::scope(|scope| {
        let standby = scope.spawn(standby);
        for number in 0..CLIENTS {
            // The standby is there before each client.
            while !publisher.is_connected() {
                std::thread::yield_now();
            }
            assert_eq!(publish(&publisher, "before", number), Published::Queued);
            let mut client = stream.connect().expect("the standby makes room");
            assert!(matches!(stream.connect(), Err(ConnectError::Occupied)), "one client");
            assert_eq!(publish(&publisher, "after", number), Published::Queued);
            by_clients += take_all(&mut client);
        }
        standby.join().unwrap()
    });
    assert!(last.is_some(), "the standby is back");
    let clients = u64::from(CLIENTS);
    assert_eq!((by_standby.into_inner(), by_clients), (clients, clients));
    assert_eq!(stream.counters().unread, 0);
}

#[test]
fn a_standby_that_does_not_leave_keeps_its_place() {
    let stream = stream(10);
    let wake_up = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).unwrap());
    let standby = stream.connect_standby(&wake_up).unwrap();
    assert!(matches!(stream.connect(), Err(ConnectError::Occupied)));
    assert!(!stream.is_wanted(), "nobody waits any more");
    drop(standby);
    let client = stream.connect().unwrap();
    assert!(matches!(stream.connect_standby(&wake_up), Err(ConnectError::Occupied)));
    drop(client);
    assert!(stream.connect_standby(&wake_up).is_ok());
}

#[test]
fn one_bell_reports_the_events_of_many_streams() {
    let streams = [(); 5].map(|()| stream(100));
    let wake_up = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).unwrap());
    let mut standbys = streams.each_ref().map(|stream| stream.connect_standby(&wake_up).unwrap());
    const ROUNDS: u32 = 2_000;
    std::thread::scope(|scope| {
        for stream in &streams {
            let publisher = stream.publisher();
            scope.spawn(move || {
                for number in 0..ROUNDS {
                    while publish(&publisher, "x", number) != Published::Queued {
                        std::thread::yield_now();
                    }
                }
            });
        }
        let mut events = [0; 5];
        while events != [ROUNDS; 5] {
            rustix::io::read(&*wake_up, &mut [0; 8]).unwrap();
            for (standby, events) in standbys.iter_mut().zip(&mut events) {
                while let Some(next) = standby.try_next().unwrap() {
                    *events += u32::from(matches!(next, NextEvent::Event(_)));
                }
            }
        }
    });
}
