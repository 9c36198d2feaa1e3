//! All clients of the legacy socket and their books, shared by the socket's tasks, which write, and
//! the collector, which reads. No socket and no file.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use telltale_schema::chip::ChipIdentity;
use telltale_schema::memory::MemorySpace;
use telltale_schema::snapshot::{KindUsage, RecordingFaults};

use super::book::{Book, BookRefusal, Room, place};
use super::message::{Request, Verb};
use crate::service::{LegacyMetrics, LegacySocket};
use telltale_collector::legacy::{DeviceClaim, LegacyClients, LegacyProcess, MAX_CLIENTS};

/// Clients of one user at a time, root's included.
pub(super) const MAX_CLIENTS_OF_USER: usize = 16;
/// Buffers of all clients: some 10 MB of books.
const MAX_BUFFERS: usize = 1 << 17;
/// Buffers of all clients of one user.
const MAX_BUFFERS_OF_USER: usize = 1 << 16;
/// Reasons for which something is refused; all are literals.
const MAX_REASONS: usize = 32;

/// All clients. Clones are the same roster.
#[derive(Debug, Clone, Default)]
pub struct Roster(Arc<Mutex<RosterState>>);

/// Who is at the other end of a connection, as the kernel says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LegacyClient {
    pub(crate) pid: u32,
    pub(crate) start_time_ticks: u64,
    pub(crate) uid: u32,
}

/// A client's place in the roster, as long as it is connected.
#[derive(Debug)]
pub(super) struct ClientSlot {
    roster: Roster,
    number: u64,
}

#[derive(Debug, Default)]
struct RosterState {
    /// There is a socket.
    is_open: bool,
    next: u64,
    clients: BTreeMap<u64, (LegacyClient, Book)>,
    messages: [u64; Verb::ALL.len()],
    refused: BTreeMap<&'static str, u64>,
}

impl LegacyClients for Roster {
    fn processes(&self) -> Option<Vec<LegacyProcess>> {
        self.is_open().then(|| self.all())
    }
}

impl LegacySocket for Roster {
    fn metrics(&self) -> Option<LegacyMetrics> {
        self.state().metrics()
    }
}

// === impl Roster ===

impl Roster {
    /// Takes note that there is a socket.
    pub(super) fn open(&self) {
        self.state().is_open = true;
    }

    /// Whether there is a socket here, so that no other need be asked for clients.
    fn is_open(&self) -> bool {
        self.state().is_open
    }

    /// Counts something that was refused.
    pub(super) fn refuse(&self, reason: &'static str) {
        self.state().refuse(reason);
    }

    /// Lets a client in, if there is room for its user.
    pub(super) fn slot(&self, client: LegacyClient) -> Option<ClientSlot> {
        let mut state = self.state();
        let same = state.clients.values().filter(|(other, _)| other.uid == client.uid).count();
        if state.clients.len() >= MAX_CLIENTS || same >= MAX_CLIENTS_OF_USER {
            state.refuse("too_many_connections");
            return None;
        }
        let number = state.next;
        state.next += 1;
        state.clients.insert(number, (client, Book::default()));
        Some(ClientSlot { roster: self.clone(), number })
    }

    /// All processes that have ever entered something, each once.
    pub(crate) fn all(&self) -> Vec<LegacyProcess> {
        let state = self.state();
        let mut all: BTreeMap<(u32, u64), LegacyProcess> = BTreeMap::new();
        for (client, book) in state.clients.values() {
            let key = (client.pid, client.start_time_ticks);
            for (device, kinds) in book.devices() {
                let process = all.entry(key).or_insert_with(|| LegacyProcess {
                    pid: client.pid,
                    start_time_ticks: client.start_time_ticks,
                    uid: client.uid,
                    devices: Vec::new(),
                    faults: RecordingFaults::default(),
                });
                process.devices.push(claim(device, kinds));
            }
            if let Some(process) = all.get_mut(&key) {
                add_faults(&mut process.faults, &book.faults());
            }
        }
        all.into_values().collect()
    }

    fn state(&self) -> MutexGuard<'_, RosterState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl RosterState ===

impl RosterState {
    /// What happened so far; none where there is no socket.
    fn metrics(&self) -> Option<LegacyMetrics> {
        self.is_open.then(|| LegacyMetrics {
            connections: u64::try_from(self.clients.len()).unwrap_or(u64::MAX),
            messages: Verb::ALL.map(Verb::name).into_iter().zip(self.messages).collect(),
            refused: self.refused.iter().map(|(reason, count)| (*reason, *count)).collect(),
        })
    }

    fn refuse(&mut self, reason: &'static str) {
        let room = self.refused.len() < MAX_REASONS;
        assert!(room || self.refused.contains_key(reason), "reasons are literals, few of them");
        *self.refused.entry(reason).or_default() += 1;
    }

    /// The room for a client's message on a device whose capacities are these: what other
    /// connections of the same process have there is taken.
    fn room(&self, number: u64, client: &LegacyClient, device: i32, capacity: [u64; 3]) -> Room {
        let (mut all, mut of_user) = (0, 0);
        let mut bytes = capacity;
        for (other_number, (other, book)) in &self.clients {
            all += book.buffers();
            of_user += if other.uid == client.uid { book.buffers() } else { 0 };
            let same = (other.pid, other.start_time_ticks) == (client.pid, client.start_time_ticks);
            let Ok(device) = u32::try_from(device) else { continue };
            if same && *other_number != number {
                for space in MemorySpace::ALL {
                    let left = &mut bytes[place(space)];
                    *left = left.saturating_sub(book.live_bytes(device, space));
                }
            }
        }
        Room { bytes, buffer: all < MAX_BUFFERS && of_user < MAX_BUFFERS_OF_USER }
    }
}

// === impl ClientSlot ===

impl ClientSlot {
    /// Takes note of a message; `capacity` is that of each space of its device, if the machine
    /// has it. Tells whether it is the first thing in the book.
    pub(super) fn note(&self, request: &Request, capacity: Option<[u64; 3]>) -> bool {
        let mut state = self.roster.state();
        let place = Verb::ALL.iter().position(|verb| *verb == request.verb);
        state.messages[place.expect("all types are in it")] += 1;
        let Some((client, _)) = state.clients.get(&self.number) else { return false };
        let client = *client;
        // It may be in a PID namespace of its own, so this is counted and nothing else.
        if u32::try_from(request.process).ok().filter(|pid| *pid != 0) != Some(client.pid)
            && !matches!(request.verb, Verb::Query | Verb::DeviceInfo)
        {
            state.refuse("pid_ignored");
        }
        let room = capacity.map(|one| state.room(self.number, &client, request.device, one));
        let Some((_, book)) = state.clients.get_mut(&self.number) else { return false };
        let was_empty = book.buffers() == 0;
        let outcome = book.note(request, room);
        let is_first = was_empty && book.buffers() > 0;
        if let Err(refusal) = outcome {
            state.refuse(BookRefusal::name(refusal));
        }
        is_first
    }

    /// Whether anything is in the book.
    pub(super) fn is_used(&self) -> bool {
        let state = self.roster.state();
        state.clients.get(&self.number).is_some_and(|(_, book)| book.buffers() > 0)
    }

    /// What is in the book, in words.
    pub(super) fn remaining(&self) -> String {
        let state = self.roster.state();
        let Some((client, book)) = state.clients.get(&self.number) else { return String::new() };
        format!("process {} has {} buffers left", client.pid, book.buffers())
    }
}

impl Drop for ClientSlot {
    fn drop(&mut self) {
        self.roster.state().clients.remove(&self.number);
    }
}

/// What a book says of a device: the number is tt-metal's, which is the driver's where all devices
/// are visible.
fn claim(device: u32, kinds: Vec<KindUsage>) -> DeviceClaim {
    let chip = ChipIdentity { driver_ordinal: Some(device), ..ChipIdentity::default() };
    DeviceClaim { device: chip.into(), kinds, ..DeviceClaim::default() }
}

fn add_faults(sum: &mut RecordingFaults, more: &RecordingFaults) {
    let RecordingFaults { double_frees, unknown_frees, reused_live_addresses, unrecorded_events } =
        *more;
    sum.double_frees = sum.double_frees.saturating_add(double_frees);
    sum.unknown_frees = sum.unknown_frees.saturating_add(unknown_frees);
    sum.reused_live_addresses = sum.reused_live_addresses.saturating_add(reused_live_addresses);
    sum.unrecorded_events = sum.unrecorded_events.saturating_add(unrecorded_events);
}

#[cfg(test)]
mod tests {
    use super::{LegacyClient, MAX_CLIENTS_OF_USER, Roster};
    use crate::legacy::message::{Request, Verb};
    use crate::service::LegacySocket;
    use telltale_collector::legacy::DeviceClaim;

    fn client(pid: u32, uid: u32) -> LegacyClient {
        LegacyClient { pid, start_time_ticks: 7, uid }
    }

    fn alloc(size: u64) -> Request {
        Request { verb: Verb::Alloc, device: 0, size, buffer_type: 0, process: 1, buffer: size }
    }

    const CAPACITY: Option<[u64; 3]> = Some([100; 3]);

    #[test]
    fn two_processes_with_the_same_address_are_two_and_two_connections_of_one_are_one() {
        let roster = Roster::default();
        let one = roster.slot(client(1, 5)).unwrap();
        let again = roster.slot(client(1, 5)).unwrap();
        let other = roster.slot(client(2, 5)).unwrap();
        assert!(one.note(&alloc(60), CAPACITY) && !one.note(&alloc(1), CAPACITY));
        assert!(other.note(&alloc(60), CAPACITY));
        assert!(!again.note(&alloc(60), CAPACITY), "the process would have more than the device");
        assert!(again.note(&alloc(30), CAPACITY));
        let seen = |roster: &Roster| {
            let of = |claim: &DeviceClaim| claim.kinds[0].usage.live_bytes;
            let processes = roster.all();
            let sum = processes.iter().map(|it| (it.pid, it.devices.iter().map(of).sum::<u64>()));
            sum.collect::<Vec<_>>()
        };
        assert_eq!(seen(&roster), [(1, 91), (2, 60)]);
        drop(one);
        assert_eq!(seen(&roster), [(1, 30), (2, 60)], "what a connection has goes with it");
        drop((again, other));
        assert_eq!(seen(&roster), []);
        assert_eq!(roster.metrics(), None);
        roster.open();
        let metrics = roster.metrics().unwrap();
        assert_eq!((metrics.connections, metrics.messages[0]), (0, ("alloc", 5)));
        assert_eq!(metrics.refused, [("pid_ignored", 1), ("too_large", 1)]);
    }

    #[test]
    fn one_user_does_not_take_all_places() {
        let roster = Roster::default();
        let slots: Vec<_> = (0..).map_while(|pid| roster.slot(client(pid, 5))).collect();
        assert_eq!(slots.len(), MAX_CLIENTS_OF_USER);
        assert!(roster.slot(client(99, 6)).is_some());
        drop(slots);
        assert!(roster.slot(client(1, 5)).is_some());
    }
}
