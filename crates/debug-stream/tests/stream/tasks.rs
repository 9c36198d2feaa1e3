//! The consumer as a task on tokio: no wake-up is lost, whatever the producer does meanwhile.

use std::thread;
use std::time::Duration;

use telltale_debug_stream::{AsyncConsumer, NextEvent, Published};

use crate::stream::{number, publish, stream};

const TIMEOUT: Duration = Duration::from_secs(60);

#[test]
fn every_event_wakes_the_task_that_awaits_it() {
    let count = telltale_harness::rounds(5_000, 500_000);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let stream = stream(u64::from(count));
    let publisher = stream.publisher();
    let consumer = stream.connect().unwrap();
    let producer = thread::spawn(move || {
        for index in 0..count {
            assert_eq!(publish(&publisher, "x", index), Published::Queued);
            if index % 7 == 0 {
                thread::yield_now();
            }
        }
    });
    runtime.block_on(async {
        let mut consumer = AsyncConsumer::new(consumer).unwrap();
        for expected in 0..count {
            let next = tokio::time::timeout(TIMEOUT, consumer.next()).await;
            let NextEvent::Event(event) = next.expect("a lost wake-up").unwrap() else {
                panic!("there was room for all")
            };
            assert_eq!(number(&event.data), expected);
        }
        let nothing = tokio::time::timeout(Duration::from_millis(1), consumer.next()).await;
        assert!(nothing.is_err());
        let mut consumer = consumer.into_consumer();
        assert!(consumer.try_next().unwrap().is_none());
    });
    producer.join().unwrap();
}
