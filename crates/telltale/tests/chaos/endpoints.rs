//! Endpoints that misbehave, each under the name of a process that lives.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use telltale_harness::ChildGuard;

/// What it does with clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manners {
    /// It listens and says nothing.
    Silent,
    /// It says one byte at a time, and takes its time.
    Dribbling,
    /// It talks nonsense and hangs up.
    Nonsense,
    /// It never ends.
    Endless,
}

/// One such endpoint; it goes when this is dropped.
#[derive(Debug)]
pub(crate) struct BadEndpoint {
    path: PathBuf,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    _namesake: ChildGuard,
}

impl BadEndpoint {
    /// Opens one in the runtime directory.
    pub(crate) fn open(directory: &Path, manners: Manners) -> Self {
        let namesake = ChildGuard::spawn(Command::new("sleep").arg("600"));
        let path = directory.join(format!("metrics_{}.sock", namesake.id()));
        let listener = UnixListener::bind(&path).unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&over);
        let thread = std::thread::spawn(move || serve(&listener, manners, &seen));
        Self { path, over, thread: Some(thread), _namesake: namesake }
    }

    /// Its name in the directory.
    pub(crate) fn name(&self) -> String {
        self.path.file_name().unwrap().to_str().unwrap().to_owned()
    }
}

impl Drop for BadEndpoint {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // Wakes the thread up, which then sees that it is over.
        let _ = UnixStream::connect(&self.path);
        let _ = std::fs::remove_file(&self.path);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Answers one caller after the other; those to whom nothing is said are kept.
fn serve(listener: &UnixListener, manners: Manners, over: &AtomicBool) {
    let mut kept = Vec::new();
    for caller in listener.incoming() {
        if over.load(Ordering::Relaxed) {
            return;
        }
        let Ok(mut caller) = caller else { continue };
        if manners == Manners::Silent {
            kept.push(caller);
            continue;
        }
        let _ = caller.set_read_timeout(Some(Duration::from_millis(100)));
        let _ = caller.set_write_timeout(Some(Duration::from_secs(1)));
        let _ = caller.read(&mut [0; 64]);
        speak(&mut caller, manners, over);
    }
}

/// Says what it says until the caller has enough of it.
fn speak(caller: &mut UnixStream, manners: Manners, over: &AtomicBool) {
    match manners {
        Manners::Silent => {}
        Manners::Nonsense => {
            let _ =
                caller.write_all(b"HTTP/1.1 200 OK\r\n\r\n\xff\xfe\0\0 this is not what you want");
        }
        Manners::Dribbling => {
            // A length that is allowed, and then nothing but hope.
            let words = [0x40u8, 0, 0, 0, 8, 1, 18, 3].into_iter().chain(std::iter::repeat(0));
            for byte in words {
                if over.load(Ordering::Relaxed) || caller.write_all(&[byte]).is_err() {
                    return;
                }
                // What dribbles does so at a pace: this is the fault itself, nothing waits for it.
                std::thread::park_timeout(Duration::from_millis(20));
            }
        }
        Manners::Endless => {
            let words = [1u8; 4096];
            while !over.load(Ordering::Relaxed) && caller.write_all(&words).is_ok() {}
        }
    }
}
