//! What a kernel does wrong in its own C never ends the process: it is an error that names
//! operation, kernel and core, and what follows runs.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};
use telltale_harness::compile_c;

use crate::operations::kernel_process::Kernels;

/// A small budget, so that tests need not wait for the usual one.
const BUDGET: (&str, &str) = ("TELLTALE_KERNEL_TIMEOUT", "0.2");

/// The same for the kernels of a program together.
const PROGRAM_BUDGET: (&str, &str) = ("TELLTALE_PROGRAM_TIMEOUT", "0.5");

/// What a kernel does, and what is said of it.
const FAULTS: [(&str, &str, &str); 24] = [
    ("null_read", "value = *(volatile float *)zero;", "it reads memory at a null pointer"),
    ("null_write", "*(volatile float *)zero = 1;", "it writes to memory at a null pointer"),
    ("null_member", "((volatile float *)zero)[1000] = 1;", "at a null pointer"),
    (
        "one_past",
        "((volatile float *)get_write_ptr(0))[1024] = 1;",
        "it writes to memory at byte 1 behind the end of its circular buffers",
    ),
    (
        "16_kib_past",
        "((volatile char *)get_write_ptr(0))[4096 + 16384] = 1;",
        "it writes to memory at byte 16385 behind the end of its circular buffers",
    ),
    (
        "before",
        "((volatile char *)get_write_ptr(0))[-20000] = 1;",
        "it writes to memory before its circular buffers",
    ),
    ("wild", "*(volatile char *)(0x700000000000 + zero) = 1;", "where nothing is mapped"),
    ("impossible", "*(volatile char *)(0xdeadbeefdeadbeef + zero) = 1;", "that cannot be"),
    (
        "end_of_file",
        "extern int memfd_create(const char *, unsigned); \
         extern void *mmap(void *, unsigned long, int, int, int, long); \
         value = *(volatile float *)mmap(0, 4096, 1, 1, memfd_create(\"empty\", 0), 0);",
        "it reads memory behind the end of a mapped file",
    ),
    ("stack", "value = deep(1 << 30, &value);", "its stack of 256 KiB is full"),
    (
        "stack_in_a_call",
        "value = deep_calls(core, 1 << 30, &value);",
        "its stack of 256 KiB is full",
    ),
    (
        "stack_smashed",
        "char own[16]; for (int i = 0; i < 1000; i++) ((volatile char *)own)[i] = 0x55; ",
        "",
    ),
    (
        "stack_left",
        "char own[16]; for (int i = 0; i < 70000; i++) ((volatile char *)own)[i] = 0x55; ",
        "behind its own variables on the stack",
    ),
    ("division", "value = 100 / (int)zero;", "it divides a whole number by zero"),
    ("trap", "__builtin_trap();", "an instruction that is none"),
    ("jump", "((void (*)(void))(get_write_ptr(0)))();", "it jumps to memory"),
    ("failed_assertion", "abort();", "it called abort"),
    ("exit", "exit(3);", "it called exit with the status 3"),
    ("exit_at_once", "_exit(-1);", "it called exit with the status -1"),
    ("exit_of_c11", "_Exit(0);", "it called exit with the status 0"),
    ("exit_quickly", "quick_exit(4);", "it called exit with the status 4"),
    ("exit_of_thread", "pthread_exit(0);", "it called exit with the status 0"),
    (
        "blocked",
        "sigset_t all, before; sigfillset(&all); if (sigprocmask(SIG_BLOCK, &all, &before)) value = 1; \
         if (sigismember(&before, SIGSEGV)) value = 2; \
         *(volatile float *)zero = 1;",
        "it writes to memory at a null pointer",
    ),
    (
        "blocked_by_mask",
        "sigset_t all; sigfillset(&all); if (pthread_sigmask(SIG_SETMASK, &all, 0)) value = 1; \
         value = 100 / (int)zero;",
        "it divides a whole number by zero",
    ),
];

fn write(kernels: &Kernels, name: &str, body: &str) -> String {
    let file = format!("{name}.c");
    let text = format!(
        "#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
static __attribute__((noinline)) float deep(int depth, volatile float *value) {{
  volatile float own[64];
  own[depth % 64] = *value;
  return depth == 0 ? 0 : deep(depth - 1, own) + own[1];
}}
static __attribute__((noinline)) float deep_calls(core_t *core, int depth, volatile float *value) {{
  volatile float own[8];
  own[depth % 8] = *value;
  float number;
  noc_read_bytes(get_arg_val(0), 0, 4, &number);
  return depth == 0 ? 0 : deep_calls(core, depth - 1, own) + own[1];
}}
KERNEL_MAIN {{
  volatile uintptr_t zero = 0;
  volatile float value = 0;
  {body}
  float given = value;
  noc_write_bytes(get_arg_val(0), 0, 4, &given);
}}"
    );
    kernels.write(&file, &text);
    file
}

#[test]
fn a_fault_is_an_error_with_operation_kernel_and_core_and_what_follows_runs() {
    let kernels = Kernels::new();
    kernels.write_value("good.c", "", "7");
    // One process for all: each fault leaves an accelerator that works.
    let mut process = kernels.start("on");
    for (name, body, expected) in FAULTS {
        let said = process.run(&write(&kernels, name, body));
        let place = "operation from_file failed: kernel from_file on core (1, 2) was stopped: it";
        assert!(said.contains(place), "{name}: {said}");
        assert!(said.contains(expected), "{name}: {said}");
        assert!(!said.contains("0x"), "{name}: no address is told: {said}");
        assert_eq!(process.run("good.c"), "7", "after {name}");
    }
    process.ends_well();
}

#[test]
fn a_fresh_process_for_each_fault_ends_well() {
    let kernels = Kernels::new();
    for (name, body, expected) in FAULTS {
        let said = kernels.run_once(&write(&kernels, name, body));
        assert!(said.contains(expected), "{name}: {said}");
    }
}

#[test]
fn an_endless_kernel_is_stopped_when_its_time_is_over() {
    let kernels = Kernels::new();
    kernels.write_value("good.c", "", "7");
    let mut process = kernels.start_with("on", |command| {
        command.env(BUDGET.0, BUDGET.1);
    });
    for (name, body) in [
        ("endless", "for (;;) value++;"),
        // Most of the time it is not in its own code.
        ("endless_calls", "for (;;) value += (float)get_arg_count() + sinf(value);"),
        ("endless_reads", "for (;;) { float own; noc_read_bytes(get_arg_val(0), 0, 4, &own); }"),
        (
            "endless_blocked",
            "sigset_t all; sigfillset(&all); sigprocmask(SIG_BLOCK, &all, 0); for (;;) value++;",
        ),
    ] {
        let said = process.run(&write(&kernels, name, body));
        let expected = "kernel from_file on core (1, 2) was stopped: it ran for 0.2 s without \
                        ending or waiting";
        assert!(said.contains(expected), "{name}: {said}");
        assert!(said.contains(BUDGET.0), "{name}: {said}");
        assert_eq!(process.run("good.c"), "7", "after {name}");
    }
    process.ends_well();
}

/// The two ends of circular buffer 0, for ever.
const PRODUCER: &str = "for (;;) { cb_reserve_back(0, 1); cb_push_back(0, 1); }";
const CONSUMER: &str = "for (;;) { cb_wait_front(0, 1); cb_pop_front(0, 1); }";

#[test]
fn two_endless_kernels_that_exchange_pages_are_stopped_when_the_programs_time_is_over() {
    let kernels = Kernels::new();
    kernels.write_value("good.c", "", "7");
    let copy = "static char bytes[1 << 16]; memcpy(bytes + zero, bytes + (1 << 15), 1 << 15);";
    let copying = |end: &str| end.replace("for (;;) {", &format!("for (;;) {{ {copy}"));
    for (name, producer, consumer) in [
        ("exchange", PRODUCER.to_owned(), CONSUMER.to_owned()),
        // Most of the time they are not in their own code.
        ("exchange_copies", copying(PRODUCER), copying(CONSUMER)),
    ] {
        let files =
            [write(&kernels, "producer", &producer), write(&kernels, "consumer", &consumer)];
        let mut process = kernels.start_with("on", |command| {
            command.envs([BUDGET, PROGRAM_BUDGET]);
        });
        for _ in 0..2 {
            let said = process.run(&files.join(" "));
            let expected = "operation from_file failed: kernel from_file on core (1, 2) was stopped: \
                            its program ran for 0.5 s without ending";
            assert!(said.contains(expected), "{name}: {said}");
            assert!(said.contains(PROGRAM_BUDGET.0), "{name}: {said}");
            assert_eq!(process.run("good.c"), "7", "after {name}");
        }
        process.ends_well();
    }
}

#[test]
fn a_program_may_run_ten_times_as_long_as_a_kernel() {
    let kernels = Kernels::new();
    let files = [write(&kernels, "producer", PRODUCER), write(&kernels, "consumer", CONSUMER)];
    let mut process = kernels.start_with("on", |command| {
        command.envs([BUDGET]);
    });
    let said = process.run(&files.join(" "));
    assert!(said.contains("its program ran for 2 s without ending"), "{said}");
    process.ends_well();
}

#[test]
fn a_kernel_that_sleeps_again_and_again_is_named_with_its_operation_soon() {
    let kernels = Kernels::new();
    let timeout = Duration::from_secs(2);
    let sleeper = write(&kernels, "sleeper", "for (;;) usleep(100);");
    let mut process = kernels.start_with("on", |command| {
        command.env(BUDGET.0, timeout.as_secs().to_string());
    });
    let start = Instant::now();
    let said = process.run(&sleeper);
    let elapsed = start.elapsed();
    assert!(
        said.contains("operation from_file failed: kernel from_file on core (1, 2) has run for"),
        "{said}"
    );
    // Three times on a machine that is not busy; the rest is for one that is.
    assert!(elapsed < 8 * timeout, "{elapsed:?}");
    process.ends_well();
}

#[test]
fn two_kernels_that_exchange_pages_and_sleep_are_named() {
    let kernels = Kernels::new();
    let sleeping = |end: &str| end.replace("for (;;) {", "for (;;) { usleep(100);");
    let ends = [("producer", PRODUCER), ("consumer", CONSUMER)];
    let files = ends.map(|(name, end)| write(&kernels, name, &sleeping(end)));
    let mut process = kernels.start_with("on", |command| {
        command.envs([BUDGET, PROGRAM_BUDGET]);
    });
    let said = process.run(&files.join(" "));
    let expected = "operation from_file failed: the program has run for";
    assert!(said.contains(expected), "{said}");
    assert!(said.contains("it is in kernel from_file on core (1, 2)"), "{said}");
    process.ends_well();
}

/// A library of a host that has a fault of its own when it gets SIGUSR1, and a handler for it if
/// `HOST_HANDLES` is set. It stops at a breakpoint when it gets SIGUSR2, and goes on behind it.
fn host(kernels: &Kernels) -> PathBuf {
    let text = "#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
static volatile int *volatile nowhere;
static void on_fault(int signal, siginfo_t *info, void *context) {
  (void)signal, (void)context;
  const char said[] = \"the host's handler\\n\";
  int wrote = info->si_addr == (void *)nowhere && write(1, said, sizeof said - 1) > 0;
  _exit(wrote ? 42 : 43);
}
static void on_request(int signal) { *nowhere = signal; }
static void on_breakpoint(int signal) {
  (void)signal;
#ifdef __x86_64__
  __asm__ volatile(\"int3\");
#else
  __asm__ volatile(\"brk #0\");
#endif
}
__attribute__((constructor)) static void install(void) {
  struct sigaction fault = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
  if (getenv(\"HOST_HANDLES\")) sigaction(SIGSEGV, &fault, 0);
  signal(SIGUSR1, on_request);
  signal(SIGUSR2, on_breakpoint);
}
";
    library(kernels, text)
}

/// A library that a host has beside us.
fn library(kernels: &Kernels, text: &str) -> PathBuf {
    let source = kernels.path("host.c");
    fs::write(&source, text).unwrap();
    compile_c(&source, &kernels.path("host.so"), &["-shared", "-fPIC"])
}

#[test]
fn the_hosts_own_handlers_still_get_what_is_theirs() {
    let kernels = Kernels::new();
    kernels.write_value("good.c", "", "7");
    let null = write(&kernels, "null", "*(volatile float *)zero = 1;");
    let host = host(&kernels);
    let mut process = kernels.start_with("on", |command| {
        command.env("LD_PRELOAD", &host).env("HOST_HANDLES", "1");
    });
    let said = process.run(&null);
    assert!(said.contains("at a null pointer"), "{said}");
    assert_eq!(process.run("good.c"), "7");
    kill_process(process.id(), Signal::USR1).unwrap();
    assert_eq!(process.next_line(), "the host's handler");
    assert_eq!(process.end().code(), Some(42));
}

#[test]
fn the_handlers_that_flush_the_debug_stream_do_not_see_a_kernels_fault() {
    let kernels = Kernels::new();
    kernels.write_value("good.c", "", "7");
    let null = write(&kernels, "null", "*(volatile float *)zero = 1;");
    let output = kernels.path("debug");
    fs::create_dir(&output).unwrap();
    let mut process = kernels.start_with("on", |command| {
        command.env("NEURON_RT_DEBUG_OUTPUT_DIR", &output);
    });
    for _ in 0..2 {
        let said = process.run(&null);
        assert!(said.contains("at a null pointer"), "{said}");
        assert_eq!(process.run("good.c"), "7");
    }
    process.ends_well();
}

#[test]
fn a_fault_of_the_host_without_a_handler_ends_it_as_ever() {
    let kernels = Kernels::new();
    kernels.write_value("good.c", "", "7");
    let host = host(&kernels);
    let mut process = kernels.start_with("on", |command| {
        command.env("LD_PRELOAD", &host);
    });
    assert_eq!(process.run("good.c"), "7");
    kill_process(process.id(), Signal::USR1).unwrap();
    assert_eq!(process.end().signal(), Some(Signal::SEGV.as_raw()));
}

#[test]
fn a_breakpoint_of_the_host_ends_it_as_ever() {
    let kernels = Kernels::new();
    kernels.write_value("good.c", "", "7");
    let host = host(&kernels);
    let mut process = kernels.start_with("on", |command| {
        command.env("LD_PRELOAD", &host);
    });
    assert_eq!(process.run("good.c"), "7");
    kill_process(process.id(), Signal::USR2).unwrap();
    assert_eq!(process.end().signal(), Some(Signal::TRAP.as_raw()));
}

/// A library of a host that blocks a signal of real time and waits until it came 100 times. SIGUSR1
/// makes it send this signal to the process so often.
const WAITING_HOST: &str = "#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>
static sigset_t awaited;
static void *wait_for_it(void *nothing) {
  (void)nothing;
  struct signalfd_siginfo info;
  int signals = signalfd(-1, &awaited, 0);
  const char said[] = \"the host's signal\\n\";
  for (int i = 0; i < 100; i++)
    if (read(signals, &info, sizeof info) != sizeof info) _exit(43);
  _exit(write(1, said, sizeof said - 1) > 0 ? 42 : 44);
}
static void on_request(int signal) {
  (void)signal;
  alarm(60);
  for (int i = 0; i < 100; i++) kill(getpid(), SIGRTMAX - 1);
}
__attribute__((constructor)) static void install(void) {
  pthread_t thread;
  sigemptyset(&awaited);
  sigaddset(&awaited, SIGRTMAX - 1);
  pthread_sigmask(SIG_BLOCK, &awaited, 0);
  pthread_create(&thread, 0, wait_for_it, 0);
  signal(SIGUSR1, on_request);
}
";

#[test]
fn a_signal_that_the_host_waits_for_still_comes() {
    let kernels = Kernels::new();
    kernels.write_value("good.c", "", "7");
    let endless = write(&kernels, "endless", "for (;;) value++;");
    let host = library(&kernels, WAITING_HOST);
    let mut process = kernels.start_with("on", |command| {
        command.env("LD_PRELOAD", &host).env(BUDGET.0, BUDGET.1);
    });
    assert_eq!(process.run("good.c"), "7");
    let said = process.run(&endless);
    assert!(said.contains("without ending or waiting"), "{said}");
    // Who is quicker than the host's wait would take it.
    let threads = format!("/proc/{}/task", process.id().as_raw_pid());
    for thread in fs::read_dir(threads).unwrap() {
        let status = fs::read_to_string(thread.unwrap().path().join("status")).unwrap();
        let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:\t")).unwrap();
        assert!(u64::from_str_radix(blocked, 16).unwrap() & 1 << 62 != 0, "{status}");
    }
    kill_process(process.id(), Signal::USR1).unwrap();
    assert_eq!(process.next_line(), "the host's signal");
    assert_eq!(process.end().code(), Some(42));
}

#[test]
fn a_signal_of_real_time_that_somebody_else_sends_ends_the_process_as_ever() {
    let kernels = Kernels::new();
    kernels.write_value("good.c", "", "7");
    // It neither blocks the signal nor waits for it: who waits could take it before it is delivered.
    let host = WAITING_HOST
        .replace("pthread_sigmask", "if (0) pthread_sigmask")
        .replace("pthread_create", "if (0) pthread_create");
    let host = library(&kernels, &host);
    let mut process = kernels.start_with("on", |command| {
        command.env("LD_PRELOAD", &host);
    });
    assert_eq!(process.run("good.c"), "7");
    kill_process(process.id(), Signal::USR1).unwrap();
    assert_eq!(process.end().signal(), Some(63));
}
