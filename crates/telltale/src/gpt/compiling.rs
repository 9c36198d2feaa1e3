//! What a terminal shows while the first step compiles its kernels.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use telltale_emulator::Accelerator;

/// How often the line is rewritten. Where all kernels are on disk, the step is over before the first time.
const EVERY: Duration = Duration::from_millis(250);

/// Writes how many kernels were compiled, on one line of standard error, until it is dropped. Nothing where that
/// is no terminal.
pub(super) struct CompilingLine {
    ended: Arc<AtomicBool>,
    writer: Option<JoinHandle<()>>,
}

impl CompilingLine {
    pub(super) fn begin(accelerator: &Arc<Accelerator>) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let (accelerator, seen) = (Arc::clone(accelerator), Arc::clone(&ended));
        let writer = io::stderr().is_terminal().then(|| {
            thread::Builder::new().name("compiling".to_owned()).spawn(move || {
                let mut written = 0;
                loop {
                    thread::park_timeout(EVERY);
                    if seen.load(Ordering::Acquire) {
                        break;
                    }
                    let compiled = accelerator.kernel_counters().compiled;
                    if compiled > written {
                        // A terminal that has gone needs no output.
                        let _ = write!(io::stderr(), "\rcompiling kernels: {compiled} so far");
                        written = compiled;
                    }
                }
                if written > 0 {
                    let _ = write!(io::stderr(), "\r\x1b[K");
                }
            })
        });
        // Without a thread the step is as good.
        Self { ended, writer: writer.and_then(Result::ok) }
    }
}

impl Drop for CompilingLine {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        if let Some(writer) = self.writer.take() {
            writer.thread().unpark();
            let _ = writer.join();
        }
    }
}
