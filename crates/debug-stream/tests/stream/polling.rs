//! A consumer thread that sleeps until it is woken gets everything, with poll, with epoll level-
//! and edge-triggered, and with select.

use std::os::fd::{AsFd, BorrowedFd};
use std::thread;

use nix::sys::select::FdSet;
use nix::sys::time::{TimeVal, TimeValLike};
use rustix::event::{PollFd, PollFlags, Timespec, epoll};
use telltale_debug_stream::{Consumer, NextEvent, Published};

use crate::stream::{number, publish, stream};

/// Longer than any machine needs; a lost wake-up ends the test here.
const TIMEOUT: Timespec = Timespec { tv_sec: 60, tv_nsec: 0 };

/// Whether the wait ended because the descriptor is readable.
type Wait<'descriptor> = Box<dyn FnMut() -> bool + 'descriptor>;

fn poll(descriptor: BorrowedFd<'_>) -> Wait<'_> {
    Box::new(move || {
        let mut set = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
        rustix::event::poll(&mut set, Some(&TIMEOUT)).unwrap() == 1
    })
}

fn epoll_with(descriptor: BorrowedFd<'_>, flags: epoll::EventFlags) -> Wait<'_> {
    let set = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    let data = epoll::EventData::new_u64(1);
    epoll::add(&set, descriptor, data, flags | epoll::EventFlags::IN).unwrap();
    Box::new(move || {
        let mut found = Vec::with_capacity(4);
        epoll::wait(&set, rustix::buffer::spare_capacity(&mut found), Some(&TIMEOUT)).unwrap() == 1
    })
}

fn level(descriptor: BorrowedFd<'_>) -> Wait<'_> {
    epoll_with(descriptor, epoll::EventFlags::empty())
}

fn edge(descriptor: BorrowedFd<'_>) -> Wait<'_> {
    epoll_with(descriptor, epoll::EventFlags::ET)
}

fn select(descriptor: BorrowedFd<'_>) -> Wait<'_> {
    Box::new(move || {
        let mut set = FdSet::new();
        set.insert(descriptor);
        let mut timeout = TimeVal::seconds(TIMEOUT.tv_sec);
        nix::sys::select::select(None, &mut set, None, None, &mut timeout).unwrap() == 1
    })
}

/// How many events a consumer takes after each wait.
#[derive(Clone, Copy)]
enum Takes {
    One,
    All,
}

fn everything_arrives(wait: fn(BorrowedFd<'_>) -> Wait<'_>, takes: Takes) {
    let count = telltale_harness::rounds(3_000, 300_000);
    let stream = stream(u64::from(count));
    let publisher = stream.publisher();
    let mut consumer = stream.connect().unwrap();
    let descriptor = consumer.as_fd().try_clone_to_owned().unwrap();
    let mut wait = wait(descriptor.as_fd());
    let mut expected = 0;
    thread::scope(|scope| {
        scope.spawn(move || {
            for index in 0..count {
                assert_eq!(publish(&publisher, "x", index), Published::Queued);
                if index % 3 == 0 {
                    thread::yield_now();
                }
            }
        });
        while expected < count {
            assert!(wait(), "event {expected} did not wake the consumer");
            match takes {
                Takes::One => assert!(take(&mut consumer, &mut expected), "readable for nothing"),
                Takes::All => while take(&mut consumer, &mut expected) {},
            }
        }
    });
    assert!(!take(&mut consumer, &mut expected));
}

fn take(consumer: &mut Consumer, expected: &mut u32) -> bool {
    match consumer.try_next().unwrap() {
        None => false,
        Some(NextEvent::Event(event)) => {
            assert_eq!(number(&event.data), *expected);
            *expected += 1;
            true
        }
        Some(NextEvent::Lost(losses)) => panic!("there was room for all: {losses:?}"),
    }
}

#[test]
fn with_poll() {
    everything_arrives(poll, Takes::One);
    everything_arrives(poll, Takes::All);
}

#[test]
fn with_level_triggered_epoll() {
    everything_arrives(level, Takes::One);
    everything_arrives(level, Takes::All);
}

#[test]
fn with_edge_triggered_epoll() {
    everything_arrives(edge, Takes::All);
}

#[test]
fn with_select() {
    everything_arrives(select, Takes::One);
    everything_arrives(select, Takes::All);
}
