//! This process's metrics endpoint: one Unix socket, one thread, which sleeps until someone asks.
//!
//! The thread reads the session and never changes it. A client that connects is admitted by the
//! user id that the kernel names, and can at worst cost one bounded error: connections, lengths and
//! times are limited.

mod answer;
mod connection;
mod counts;
mod serve;
mod socket;

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, eventfd};
use telltale_ledger::directory::{EntryStatus, RuntimeDirectory};

use crate::problem::{DeferredProblem, ProblemStep};
use crate::process_hooks;
use crate::session::Session;
use crate::shared::RuntimeShared;
use answer::Answering;
pub(crate) use answer::{Ask, OpenDevice, RuntimeReport};
use serve::{Admission, EndpointServer};
use socket::{Published, publish};

/// Stack of the thread: it builds one answer at a time, all of it on the heap.
const STACK_BYTES: usize = 256 << 10;

/// A published endpoint.
pub(crate) struct Endpoint {
    directory: RuntimeDirectory,
    name: String,
    /// The socket's own entry, so that no other's is removed under its name.
    status: Option<EntryStatus>,
    wake: OwnedFd,
    thread: JoinHandle<()>,
}

/// Why a thread is unavailable.
#[derive(Debug, thiserror::Error)]
enum ThreadError {
    #[error("cannot make an event descriptor; raise the limit on open files (ulimit -n)")]
    Event(#[source] std::io::Error),
    #[error("cannot start the endpoint's thread; raise the limit on processes (ulimit -u)")]
    Spawn(#[source] std::io::Error),
    #[error("the endpoint's thread panicked")]
    Panicked,
}

/// The plain name was not to be had.
#[derive(Debug, thiserror::Error)]
#[error("user {uid} holds the name {plain}, so this endpoint is {name}")]
struct NameHeld {
    uid: u32,
    plain: String,
    name: String,
}

impl Endpoint {
    /// Publishes the endpoint in `directory` and starts its thread.
    pub(crate) fn start(
        directory: RuntimeDirectory,
        shared: &Arc<RuntimeShared>,
        session: &Arc<Session>,
        ask: Ask,
        troubles: &mut Vec<DeferredProblem>,
    ) -> Option<Self> {
        let published = match publish(&directory, &session.owner.identity) {
            Ok(published) => published,
            Err(error) => {
                let remedy = "mend the directory; the workload runs on";
                troubles.push(DeferredProblem::new(ProblemStep::Endpoint, error, remedy));
                return None;
            }
        };
        let Published { listener, name, held } = published;
        if let Some((plain, uid)) = held {
            let error = NameHeld { uid, plain, name: name.clone() };
            let remedy = "remove that entry if it serves no process";
            troubles.push(DeferredProblem::new(ProblemStep::EndpointName, error, remedy));
        }
        let status = directory.entry_status(&name).ok();
        let owner = directory.owner();
        match start_thread(
            listener,
            owner,
            Answering { shared: Arc::clone(shared), session: Arc::clone(session), ask },
        ) {
            Ok((wake, thread)) => Some(Self { directory, name, status, wake, thread }),
            Err(error) => {
                remove(&directory, &name, status);
                let remedy = "the workload runs on without one";
                troubles.push(DeferredProblem::new(ProblemStep::Endpoint, error, remedy));
                None
            }
        }
    }

    /// Removes the socket's name now; the thread still answers who is connected.
    pub(crate) fn remove_file(&mut self) {
        remove(&self.directory, &self.name, self.status.take());
    }

    /// Ends the thread and waits for it; it never blocks for long.
    pub(crate) fn stop(self, troubles: &mut Vec<DeferredProblem>) {
        // The counter of a fresh event descriptor cannot overflow by one.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
        // Closing the last device from a hook on the thread itself must not wait for it.
        if self.thread.thread().id() == std::thread::current().id() {
            return;
        }
        if self.thread.join().is_err() {
            let remedy = "report it; the workload is not concerned";
            troubles.push(DeferredProblem::new(
                ProblemStep::Answering,
                ThreadError::Panicked,
                remedy,
            ));
        }
    }
}

fn remove(directory: &RuntimeDirectory, name: &str, status: Option<EntryStatus>) {
    let still_ours = |found: EntryStatus| {
        status.is_some_and(|ours| (ours.device, ours.inode) == (found.device, found.inode))
    };
    if directory.entry_status(name).is_ok_and(still_ours) {
        // What cannot be removed is what a killed process leaves, and is cleaned the same way.
        let _ = directory.remove(name);
    }
}

fn start_thread(
    listener: OwnedFd,
    directory_owner: u32,
    answering: Answering,
) -> Result<(OwnedFd, JoinHandle<()>), ThreadError> {
    let event = |error: rustix::io::Errno| ThreadError::Event(error.into());
    let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(event)?;
    let woken = wake.try_clone().map_err(ThreadError::Event)?;
    let admission = Admission { own_uid: answering.session.owner.uid, directory_owner };
    let mut server = EndpointServer::new(listener, woken, admission, answering);
    let builder = std::thread::Builder::new().name("telltale".to_owned()).stack_size(STACK_BYTES);
    let thread = process_hooks::with_signals_blocked(|| builder.spawn(move || server.run()))
        .map_err(ThreadError::Spawn)?;
    Ok((wake, thread))
}
