//! A kernel that goes wrong in a library that it has called: the library may hold a lock there that
//! cannot be given back, so the accelerator says that the process may be damaged. Where no lock can
//! be held, everything can be used afterwards.

use std::fs;
use std::os::unix::process::ExitStatusExt;

use rustix::process::Signal;

use crate::operations::kernel_process::Kernels;

fn write(kernels: &Kernels, name: &str, body: &str) -> String {
    let file = format!("{name}.c");
    let text = format!(
        "#include <assert.h>\n#include <stdio.h>\n#include <stdlib.h>
KERNEL_MAIN {{
  volatile uintptr_t zero = 0;
  char *volatile wild = (char *)0x700000000000;
  volatile float value = 0;
  {body}
}}"
    );
    kernels.write(&file, &text);
    file
}

#[test]
fn a_fault_where_a_library_may_hold_a_lock_ends_the_accelerator_and_reports_it() {
    let kernels = Kernels::new();
    kernels.write_value("good.c", "", "7");
    for (name, body, expected) in [
        // It holds the lock of the standard output.
        ("print", "printf(\"%s\\n\", wild);", "it reads memory where nothing is mapped"),
        // Its calls end in the library.
        ("sort", "qsort(wild, 100, 4, (int (*)(const void *, const void *))strcmp);", "mapped"),
    ] {
        let mut process = kernels.start("on");
        assert_eq!(process.run("good.c"), "7");
        let damaged = "operation from_file failed: kernel from_file on core (1, 2) was stopped in a \
                       library that it had called, so this process may be damaged, and the \
                       accelerator does nothing more: start a new process: ";
        let said = process.run(&write(&kernels, name, body));
        assert!(said.contains(damaged) && said.contains(expected), "{name}: {said}");
        for _ in 0..2 {
            let after = process.run("good.c");
            assert!(after.contains(damaged) && after.contains(expected), "after {name}: {after}");
        }
    }
}

/// The allocator holds its lock then, so that any thread that allocates would wait for ever.
#[test]
fn an_allocator_that_finds_its_heap_damaged_ends_the_process_and_the_kernel_is_named() {
    let kernels = Kernels::new();
    kernels.write_value("good.c", "", "7");
    let log = kernels.path("log");
    let mut process = kernels.start_with("on", |command| {
        command.stderr(fs::File::create(&log).unwrap());
    });
    assert_eq!(process.run("good.c"), "7");
    let body = "char *volatile own = malloc(5000); free(own); free(own);";
    assert_eq!(process.run(&write(&kernels, "free", body)), "");
    assert_eq!(process.end().signal(), Some(Signal::ABORT.as_raw()));
    let log = fs::read_to_string(log).unwrap();
    let expected = "telltale: kernel from_file on core (1, 2) went wrong in a library that it had \
                    called, so this process may be damaged: it called abort";
    assert!(log.contains(expected), "{log}");
}

#[test]
fn a_fault_where_no_lock_can_be_held_leaves_everything_usable() {
    let kernels = Kernels::new();
    kernels.write_value("good.c", "", "7");
    let mut process = kernels.start("on");
    for (name, body, expected) in [
        ("copy", "memcpy(wild, &value, 4); value++;", "it writes to memory where nothing"),
        ("copy_last", "memcpy(get_write_ptr(0), wild, 1 << 20);", "it reads memory where nothing"),
        (
            "fill",
            "char *own = get_write_ptr(0); memset(own, 1, 5000 + zero); value++;",
            "behind the end of its circular buffers",
        ),
        (
            // The compiler makes a call of `memset` of it.
            "loop",
            "char *own = get_write_ptr(0); for (int i = 0; i < 5000; i++) own[i] = 0;",
            "behind the end of its circular buffers",
        ),
        ("length", "value = strlen(wild); value++;", "it reads memory where nothing is mapped"),
        ("read", "noc_read_bytes(get_arg_val(0), 0, 4, wild);", "it writes to memory where"),
        ("write", "noc_write_bytes(get_arg_val(0), 0, 4, wild);", "it reads memory where"),
        ("jump", "((void (*)(void))wild)();", "it jumps to memory where nothing is mapped"),
        ("abort", "abort();", "it called abort"),
        ("assertion", "assert(value > 0); value++;", "an assertion of its own failed"),
    ] {
        let said = process.run(&write(&kernels, name, body));
        let place = "kernel from_file on core (1, 2) was stopped: it";
        assert!(said.contains(place) && said.contains(expected), "{name}: {said}");
        assert_eq!(process.run("good.c"), "7", "after {name}");
    }
    process.ends_well();
}
