//! Calls that wait return when the process's host language asks for it.

use std::cell::Cell;
use std::time::Duration;

use telltale_emulator::{ExecutionError, interrupt_waits};
use telltale_program_cache::ProgramDescriptor;

use crate::accelerator::bench::{Bench, cores, kernel};

thread_local! {
    /// Whether this thread has something to handle: other tests have nothing.
    static PENDING: Cell<bool> = const { Cell::new(false) };
}

#[test]
fn waiting_for_a_kernel_ends_and_the_kernel_goes_on() {
    interrupt_waits(|| PENDING.replace(false));
    let bench = Bench::with(|options| options.kernel_timeout = Some(Duration::from_secs(1)));
    let endless = "KERNEL_MAIN { for (volatile int i = 0;; i++) {} }";
    let program = ProgramDescriptor::new([kernel("endless", endless, &cores(1, 1))]);
    let program = bench.accelerator.compile(&program).unwrap();
    bench.accelerator.enqueue(&program, &[]).unwrap();
    PENDING.set(true);
    let error = bench.accelerator.finish().unwrap_err();
    assert!(matches!(error, ExecutionError::Interrupted), "{error}");
    // What went wrong is reported to the next one.
    let error = bench.accelerator.finish().unwrap_err();
    assert!(matches!(error, ExecutionError::Kernel { .. }), "{error}");
}
