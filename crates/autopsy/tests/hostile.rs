//! Processes that forge what is read of them, are too large, or end meanwhile.

use std::process::Command;
use std::time::{Duration, Instant};

use telltale_autopsy::take::TakeError;
use telltale_harness::{ChildGuard, Scratch};

use crate::fixture::{compiled, sampled, start};

/// How long a process may take to be sampled here: five times as long as promised, because machines are busy.
const LONGEST: Duration = Duration::from_secs(15);

/// A program that calls itself CPython, and whose structures lead in circles: every pointer is the one to
/// their beginning.
const FORGED: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
uint64_t _PyRuntime[65536];
int main(int count, char **arguments) {
    for (int place = 0; place < 65536; place++) _PyRuntime[place] = (uint64_t)_PyRuntime;
    if (count > 1) {
        memcpy(_PyRuntime, "xdebugpy", 8);
        _PyRuntime[1] = 0x030d00f0;
        _PyRuntime[2] = 0;
        for (int place = 3; place < 64; place++) _PyRuntime[place] = arguments[1][0] == 'z' ? 0 : 512 * place;
    }
    puts("begun");
    fflush(stdout);
    for (;;) pause();
}
"#;

#[test]
fn forged_interpreters_cost_no_more_than_others_and_are_named() {
    let scratch = Scratch::new();
    for name in ["python3.8", "python3.10", "python3.11", "python3.12", "python3.99"] {
        let path = compiled(&scratch, name, FORGED);
        for arguments in [&[][..], &["described"], &["zeros"]] {
            let (program, _) = start(Command::new(&path).args(arguments));
            let began = Instant::now();
            let evidence = sampled(program.id()).unwrap();
            assert!(began.elapsed() < LONGEST, "{name} {arguments:?}");
            let has_frames =
                evidence.samples[0].threads.iter().any(|thread| thread.python.is_some());
            let names = evidence.missing.iter().any(|missing| missing.what == "Python stacks");
            assert!(names || has_frames, "{name} {arguments:?}: {:?}", evidence.missing);
            // What it is in natively is there all the same.
            assert!(!evidence.samples[0].threads[0].native.is_empty(), "{name} {arguments:?}");
        }
    }
}

const MANY_THREADS: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static void *waits(void *unused) { for (;;) pause(); return unused; }
int main(void) {
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    for (int number = 0; number < 4000; number++) {
        pthread_t thread;
        if (pthread_create(&thread, &small, waits, 0)) return 1;
    }
    puts("begun");
    fflush(stdout);
    for (;;) pause();
}
"#;

#[test]
fn four_thousand_threads_are_bounded_and_counted() {
    let scratch = Scratch::new();
    let (program, _) = start(&mut Command::new(compiled(&scratch, "many", MANY_THREADS)));
    let began = Instant::now();
    let evidence = sampled(program.id()).unwrap();
    assert!(began.elapsed() < LONGEST);
    let sample = &evidence.samples[0];
    assert_eq!(sample.threads_left_out + u64::try_from(sample.threads.len()).unwrap(), 4001);
    assert_eq!(sample.threads[0].tid, program.id(), "the main thread comes first");
    assert!(sample.threads.len() >= 256);
}

#[test]
fn a_process_that_ends_meanwhile_is_named() {
    let mut ended = 0;
    for number in 0..60 {
        let pause = format!("{:.3}", f64::from(number) * 0.000_3);
        let program = ChildGuard::spawn(Command::new("sleep").arg(pause));
        match sampled(program.id()) {
            Ok(evidence) => assert_eq!(evidence.pid, program.id()),
            Err(TakeError::Ended(pid)) => {
                assert_eq!(pid, program.id());
                ended += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(ended < 60);
    assert!(matches!(sampled(u32::MAX), Err(TakeError::Ended(u32::MAX))));
}

#[test]
fn endless_recursion_is_cut() {
    const CODE: &str = r#"
#include <stdio.h>
#include <unistd.h>
__attribute__((noinline)) int deeper(int depth) {
    if (depth <= 0) { puts("begun"); fflush(stdout); for (int waits = 1; waits;) pause(); }
    return depth < 0 ? 0 : deeper(depth - 1) + 1;
}
int main(void) { return deeper(100000); }
"#;
    let scratch = Scratch::new();
    let (program, _) = start(&mut Command::new(compiled(&scratch, "deep", CODE)));
    let evidence = sampled(program.id()).unwrap();
    let native = &evidence.samples[0].threads[0].native;
    assert_eq!(native.len(), 128);
    let deeper = native.iter().filter(|frame| frame.function.as_deref() == Some("deeper"));
    assert!(deeper.count() > 100, "{native:?}");
}
