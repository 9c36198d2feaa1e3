//! The devices' sockets: one thread for all devices and all who have them open.
//!
//! Connecting is opening a device, closing is closing it. No client is waited for: one that
//! sends anything but requests, or does not read its replies, loses its connection, and a full
//! house is refused. What a request does is the device's business, not this file's.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, SocketFlags, accept_with, bind, listen, recv, send};

use crate::device::{ChipUsage, DriverDevice};
use crate::machine::{ChipLoad, Machine};
use crate::protocol::{REQUEST_BYTES, Request};
use crate::socket::{packet_socket, with_address};

/// Connections at a time: 32 chips that 128 processes have open.
const MAX_CLIENTS: usize = 4_096;
/// Connections that wait to be accepted, for each device.
const BACKLOG: i32 = 128;
/// Requests that are read from one connection, or connections from one listener, before the
/// next has its turn.
const TURN: usize = 64;
/// Events that are taken at a time.
const EVENTS: usize = 64;
/// How long no connection is accepted, at most, after the process ran out of descriptors.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// The token of the descriptor that ends the thread.
const STOP: u64 = 0;

/// What the server did unasked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ServerCounters {
    /// Connections accepted.
    pub accepted: u64,
    /// Connections refused because there were too many.
    pub refused: u64,
    /// Connections closed because of a packet that is no request.
    pub closed_for_garbage: u64,
    /// Connections closed because replies were not read.
    pub closed_for_not_reading: u64,
    /// Times that accepting connections stopped for up to a tenth of a second because the process had no descriptors
    /// left.
    pub pauses: u64,
    /// Times that a file of the tree could not be brought up to date.
    pub tree_errors: u64,
}

/// The sockets of all devices, shared by the serving thread and the injector of faults.
#[derive(Debug)]
pub(crate) struct EmulatorServer {
    epoll: OwnedFd,
    stop: OwnedFd,
    state: Mutex<ServerState>,
}

#[derive(Debug)]
struct ServerState {
    machine: Arc<Mutex<Machine>>,
    devices: Vec<DriverDevice>,
    listeners: BTreeMap<u64, Listener>,
    clients: BTreeMap<u64, ConnectedClient>,
    /// Tokens are never used again, so a late event of something closed finds nothing.
    next_token: u64,
    /// No descriptors are left: listeners are not watched.
    paused: bool,
    counters: ServerCounters,
}

#[derive(Debug)]
struct Listener {
    socket: OwnedFd,
    path: PathBuf,
    /// The chip's place in the machine's list.
    place: usize,
}

#[derive(Debug)]
struct ConnectedClient {
    socket: OwnedFd,
    place: usize,
}

/// Locks what a panic elsewhere cannot have left half done.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The pid of who connected; 0, as the driver has it, for a process that is not visible from here.
fn peer_pid(socket: &OwnedFd) -> u32 {
    getsockopt(socket, PeerCredentials)
        .ok()
        .and_then(|peer| peer.pid().try_into().ok())
        .unwrap_or(0)
}

// === impl EmulatorServer ===

impl EmulatorServer {
    /// Sockets for all chips of a machine that are there.
    pub(crate) fn new(machine: Arc<Mutex<Machine>>) -> io::Result<Self> {
        let devices = {
            let machine = locked(&machine);
            (0..machine.chip_count())
                .map(|place| DriverDevice::new(machine.descriptions(place)))
                .collect()
        };
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let stop = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &stop, EventData::new_u64(STOP), EventFlags::IN)?;
        let state = Mutex::new(ServerState {
            machine,
            devices,
            listeners: BTreeMap::new(),
            clients: BTreeMap::new(),
            next_token: STOP + 1,
            paused: false,
            counters: ServerCounters::default(),
        });
        let server = Self { epoll, stop, state };
        server.follow_machine()?;
        Ok(server)
    }

    /// Opens and closes sockets until they are those of the chips that are there.
    pub(crate) fn follow_machine(&self) -> io::Result<()> {
        let mut state = locked(&self.state);
        let (ordinals, root): (Vec<Option<u32>>, PathBuf) = {
            let machine = locked(&state.machine);
            let ordinals = (0..machine.chip_count()).map(|place| machine.ordinal(place)).collect();
            (ordinals, machine.root().to_path_buf())
        };
        for (place, ordinal) in ordinals.into_iter().enumerate() {
            let path = ordinal.map(|ordinal| root.join(format!("dev/tenstorrent/{ordinal}")));
            let found = state.listeners.iter().find(|(_, listener)| listener.place == place);
            let found = found.map(|(token, listener)| (*token, listener.path.clone()));
            match (found, path) {
                (Some((_, now)), Some(path)) if now == path => {}
                (found, path) => {
                    if let Some((token, _)) = found {
                        state.close_device(token);
                    }
                    if let Some(path) = path {
                        state.open_device(&self.epoll, place, path)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Serves until [`Self::stop`] is called.
    pub(crate) fn serve(&self) {
        let mut events: Vec<epoll::Event> = Vec::with_capacity(EVENTS);
        loop {
            events.clear();
            let paused = locked(&self.state).paused;
            let timeout = paused.then_some(&PAUSE);
            match epoll::wait(&self.epoll, spare_capacity(&mut events), timeout) {
                Ok(_) | Err(Errno::INTR) => {}
                // Nothing that this loop could do would make the descriptor valid again.
                Err(_) => return,
            }
            let mut state = locked(&self.state);
            if paused {
                state.resume(&self.epoll);
            }
            for event in &events {
                match event.data.u64() {
                    STOP => return,
                    token if state.listeners.contains_key(&token) => {
                        state.accept(&self.epoll, token);
                    }
                    token => state.serve_client(token),
                }
            }
        }
    }

    /// Makes [`Self::serve`] return.
    pub(crate) fn stop(&self) {
        // A counter that is full already wakes the thread as well.
        let _ = rustix::io::write(&self.stop, &1u64.to_ne_bytes());
    }

    /// What each device did in the `elapsed_seconds` since the last call, in which the links carried
    /// so many bytes at most.
    pub(crate) fn take_loads(&self, elapsed_seconds: f64, carried_bytes: &[u64]) -> Vec<ChipLoad> {
        let mut state = locked(&self.state);
        let devices = state.devices.iter_mut().zip(carried_bytes);
        devices.map(|(device, carried)| device.take_load(elapsed_seconds, *carried)).collect()
    }

    /// What is allocated on every chip.
    pub(crate) fn usage(&self) -> Vec<ChipUsage> {
        locked(&self.state).devices.iter().flat_map(DriverDevice::usage).collect()
    }

    pub(crate) fn counters(&self) -> ServerCounters {
        locked(&self.state).counters
    }

    pub(crate) fn count_tree_error(&self) {
        locked(&self.state).counters.tree_errors += 1;
    }
}

// === impl ServerState ===

impl ServerState {
    fn token(&mut self) -> u64 {
        self.next_token += 1;
        self.next_token
    }

    fn open_device(&mut self, epoll: &OwnedFd, place: usize, path: PathBuf) -> io::Result<()> {
        let socket = packet_socket(SocketFlags::NONBLOCK)?;
        with_address(&path, |address| bind(&socket, address))?;
        // Everybody may open a device, as the driver's udev rule has it.
        std::fs::set_permissions(&path, Permissions::from_mode(0o666))?;
        listen(&socket, BACKLOG)?;
        let token = self.token();
        epoll::add(epoll, &socket, EventData::new_u64(token), EventFlags::IN)?;
        let descriptions = locked(&self.machine).descriptions(place);
        self.devices[place] = DriverDevice::new(descriptions);
        self.listeners.insert(token, Listener { socket, path, place });
        Ok(())
    }

    /// Closes a device under all who have it open.
    fn close_device(&mut self, token: u64) {
        let Some(Listener { path, place, .. }) = self.listeners.remove(&token) else {
            return;
        };
        let of_device = self.clients.iter().filter(|(_, client)| client.place == place);
        let tokens: Vec<u64> = of_device.map(|(token, _)| *token).collect();
        tokens.into_iter().for_each(|token| self.close_client(token));
        // It may be gone already, with the whole tree.
        let _ = std::fs::remove_file(path);
    }

    fn accept(&mut self, epoll: &OwnedFd, token: u64) {
        for _ in 0..TURN {
            let Some(listener) = self.listeners.get(&token) else {
                return;
            };
            let place = listener.place;
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            match accept_with(&listener.socket, flags) {
                Ok(_) if self.clients.len() >= MAX_CLIENTS => self.counters.refused += 1,
                Ok(socket) => self.open_client(epoll, socket, place),
                Err(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS) => {
                    return self.pause(epoll);
                }
                // No client waits any more, or the one that did has gone.
                Err(_) => return,
            }
        }
    }

    fn open_client(&mut self, epoll: &OwnedFd, socket: OwnedFd, place: usize) {
        let pid = peer_pid(&socket);
        let token = self.token();
        let interest = EventFlags::IN | EventFlags::RDHUP;
        if epoll::add(epoll, &socket, EventData::new_u64(token), interest).is_err() {
            self.counters.refused += 1;
            return;
        }
        self.counters.accepted += 1;
        self.clients.insert(token, ConnectedClient { socket, place });
        self.devices[place].open(token, pid);
        self.show_holders(place);
    }

    fn close_client(&mut self, token: u64) {
        if let Some(ConnectedClient { place, .. }) = self.clients.remove(&token) {
            self.devices[place].close(token);
            self.show_holders(place);
        }
    }

    fn show_holders(&mut self, place: usize) {
        let pids = self.devices[place].pids();
        if locked(&self.machine).set_holders(place, &pids).is_err() {
            self.counters.tree_errors += 1;
        }
    }

    fn serve_client(&mut self, token: u64) {
        for _ in 0..TURN {
            let Some(client) = self.clients.get(&token) else {
                return;
            };
            // One byte more, so that a packet that is too long is not taken for a right one.
            let mut packet = [0; REQUEST_BYTES + 1];
            let size = match recv(&client.socket, &mut packet, RecvFlags::empty()) {
                Ok((size, _)) if size > 0 => size,
                Err(Errno::AGAIN | Errno::INTR) => return,
                Ok(_) | Err(_) => return self.close_client(token),
            };
            let Ok((sequence, request)) = Request::decode(&packet[..size.min(packet.len())]) else {
                self.counters.closed_for_garbage += 1;
                return self.close_client(token);
            };
            let Some(reply) = self.devices[client.place].handle(token, request) else {
                continue;
            };
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            if send(&client.socket, &reply.encode(sequence), flags).is_err() {
                self.counters.closed_for_not_reading += 1;
                return self.close_client(token);
            }
        }
    }

    /// Stops watching the listeners, which would otherwise be ready repeatedly.
    fn pause(&mut self, epoll: &OwnedFd) {
        self.paused = true;
        self.counters.pauses += 1;
        for listener in self.listeners.values() {
            // What is not watched needs no removal.
            let _ = epoll::delete(epoll, &listener.socket);
        }
    }

    fn resume(&mut self, epoll: &OwnedFd) {
        self.paused = false;
        for (token, listener) in &self.listeners {
            let data = EventData::new_u64(*token);
            // A listener that was opened meanwhile is watched already.
            let _ = epoll::add(epoll, &listener.socket, data, EventFlags::IN);
        }
    }
}
