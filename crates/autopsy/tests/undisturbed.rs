//! What is looked at goes on as if it were not looked at: no call of its own is interrupted, no signal is lost, nothing
//! stays stopped.

use std::process::Command;
use std::thread;
use std::time::Duration;

use telltale_harness::{Scratch, wait_until};

use crate::fixture::{compiled, is_free, sampled, start};

/// Counts real-time signals that it sends to itself, and calls that were interrupted by nothing of its own.
const COUNTS: &str = r#"
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static volatile int got, interrupted;
static void on_signal(int number) { (void)number; got++; }
static void *waits(void *unused) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, 0);
    for (;;)
        if (poll(0, 0, 1000) < 0 && errno == EINTR) interrupted++;
    return unused;
}
int main(void) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGRTMIN + 3, &action, 0);
    pthread_t thread;
    pthread_create(&thread, 0, waits, 0);
    puts("begun");
    fflush(stdout);
    int sent = 0;
    for (; sent < 40000; sent++) {
        union sigval value = {0};
        sigqueue(getpid(), SIGRTMIN + 3, value);
        if (sent % 100 == 0) { struct timespec pause = {0, 2000000}; nanosleep(&pause, 0); }
    }
    return sent != got ? 1 : interrupted ? 2 : 0;
}
"#;

#[test]
fn no_signal_is_lost_and_no_call_interrupted() {
    let scratch = Scratch::new();
    let (mut program, _) = start(&mut Command::new(compiled(&scratch, "counts", COUNTS)));
    let mut samples = 0;
    while program.is_running() {
        samples += u32::from(sampled(program.id()).is_ok_and(|evidence| {
            evidence.samples[0].threads.iter().any(|thread| !thread.native.is_empty())
        }));
    }
    let status = program.wait_within("the program", Duration::from_secs(60));
    assert_eq!(status.code(), Some(0), "1: a signal was lost, 2: a call was interrupted");
    assert!(samples > 3, "{samples} samples");
}

#[test]
fn nothing_stays_stopped_and_what_was_stopped_stays_so() {
    let (mut program, _) = start(Command::new("sh").args(["-c", "echo begun; exec sleep 1000"]));
    for _ in 0..20 {
        let evidence = sampled(program.id()).unwrap();
        assert!(evidence.samples[0].stopped_us < 200_000, "{evidence:?}");
        wait_until("it is let go", Duration::from_secs(5), || is_free(program.id()));
    }
    program.pause();
    let stopped = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", program.id())).unwrap();
        status.contains("State:\tT")
    };
    wait_until("it is stopped", Duration::from_secs(5), stopped);
    let evidence = sampled(program.id()).unwrap();
    assert_eq!(evidence.samples[0].threads[0].state, 'T');
    thread::sleep(Duration::from_millis(100));
    assert!(stopped(), "a stopped process goes on only when it is continued");
}
