//! What is reported while the first step compiles its kernels: how many are ready, of how many.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use telltale_emulator::Accelerator;
use telltale_runtime::{Gauge, Registry};

/// The metric that has the number of kernels of the first step.
const KERNELS: &str = "gpt_kernels";
/// The metric that has how many of them are compiled, or were found compiled.
const KERNELS_READY: &str = "gpt_kernels_ready";

/// How often it is reported. Where all kernels are on disk, the step is over before the first time.
const EVERY: Duration = Duration::from_millis(250);

/// Reports how many kernels are ready until it is dropped: as metrics, and on one line of standard error where
/// that is a terminal.
pub(super) struct CompilingProgress {
    ended: Arc<AtomicBool>,
    reporter: Option<JoinHandle<()>>,
}

impl CompilingProgress {
    /// Of a first step with this many kernels.
    pub(super) fn begin(accelerator: &Arc<Accelerator>, registry: &Registry, kernels: u64) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let mut report = KernelReport::begin(Arc::clone(accelerator), registry, kernels);
        let seen = Arc::clone(&ended);
        let reporter = thread::Builder::new().name("compiling".to_owned()).spawn(move || {
            loop {
                thread::park_timeout(EVERY);
                let is_over = seen.load(Ordering::Acquire);
                report.update(is_over);
                if is_over {
                    break;
                }
            }
        });
        // Without a thread the step is as good.
        Self { ended, reporter: reporter.ok() }
    }
}

impl Drop for CompilingProgress {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        if let Some(reporter) = self.reporter.take() {
            reporter.thread().unpark();
            let _ = reporter.join();
        }
    }
}

/// What was reported last.
struct KernelReport {
    accelerator: Arc<Accelerator>,
    all: Gauge,
    ready: Gauge,
    kernels: u64,
    is_written: bool,
}

impl KernelReport {
    fn begin(accelerator: Arc<Accelerator>, registry: &Registry, kernels: u64) -> Self {
        let gauge = |name, help| registry.gauge(name).help(help).register();
        let all = gauge(KERNELS, "Kernels of the first step");
        let ready = gauge(KERNELS_READY, "Kernels of the first step that are compiled");
        all.set(kernels as f64);
        ready.set(0.0);
        Self { accelerator, all, ready, kernels, is_written: false }
    }

    fn update(&mut self, is_over: bool) {
        let counters = self.accelerator.kernel_counters();
        let ready = counters.compiled + counters.found_on_disk;
        self.kernels = self.kernels.max(ready);
        self.all.set(self.kernels as f64);
        self.ready.set(ready as f64);
        // Kernels that are found on disk are ready at once, and need no line.
        let is_wanted = !is_over && counters.compiled > 0 && ready < self.kernels;
        if !io::stderr().is_terminal() || !(is_wanted || self.is_written) {
            return;
        }
        // A terminal that has gone needs no output.
        let _ = match is_wanted {
            true => write!(io::stderr(), "\rcompiling kernel {} of {}", ready + 1, self.kernels),
            false => write!(io::stderr(), "\r\x1b[K"),
        };
        self.is_written = is_wanted;
    }
}
