//! How ranks find each other. Each says to rank 0 who it is, where it listens and which checkpoint it
//! has; when all have, rank 0 tells each where its next neighbour listens, and who passes its
//! checkpoint round. Then neighbours connect.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rapidhash::v3::rapidhash_v3;

use super::door::{Door, Visitor};
use super::link::{Link, LinkDeadline, LinkError, POLL_INTERVAL};
use super::ring::Ring;
use super::words::{
    HELLO_BYTES, Hello, RankCheckpoint, RankRefusal, Round, TO_MASTER, TO_NEIGHBOUR, decode_answer,
    decode_hello, encode_answer, encode_hello,
};
use super::{JOIN_TIMEOUT, Master, ParallelRank};
use crate::checkpoint::{Checkpoint, DecodeError, Identity};

/// How long one attempt to connect may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// A ring, and where its training goes on.
#[derive(Debug)]
pub struct Joined {
    /// The ring.
    pub ring: Ring,
    /// The most recent checkpoint of all ranks, which now all have; none at the very beginning.
    pub checkpoint: Option<Checkpoint>,
    /// Whose it was, if it had to be passed round.
    pub passed_by: Option<u32>,
}

/// Why a rank is not part of a ring.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// Rank 0's name has no address.
    #[error("the address of rank 0, {host}, cannot be found; check MASTER_ADDR")]
    Resolve {
        /// Its name.
        host: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It cannot listen.
    #[error(
        "rank {rank} cannot listen at {address}; rank 0 needs MASTER_ADDR and MASTER_PORT to be its own, and free"
    )]
    Listen {
        /// Which.
        rank: u32,
        /// Where.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Rank 0 or a neighbour does not answer.
    #[error("connecting to rank {peer} at {address} failed")]
    Connect {
        /// Which.
        peer: u32,
        /// Where.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A peer did not come.
    #[error(
        "gave up waiting for {waits_for}; see whether it was started, and with the same MASTER_ADDR and MASTER_PORT"
    )]
    Late {
        /// Who.
        waits_for: String,
    },
    /// Rank 0 does not take it.
    #[error("rank 0 refuses this rank: {0}")]
    Refused(RankRefusal),
    /// The connection was lost.
    #[error("joining failed at {step}")]
    Lost {
        /// What failed.
        step: &'static str,
        /// Why.
        #[source]
        source: LinkError,
    },
    /// An answer is none.
    #[error(
        "what answers as rank 0 is something else, or of another version; check MASTER_ADDR and MASTER_PORT"
    )]
    Answer,
    /// What was passed round is no checkpoint of this training.
    #[error("what rank {giver} passed round is no checkpoint of this training")]
    Checkpoint {
        /// Who passed it.
        giver: u32,
        /// Why.
        #[source]
        source: DecodeError,
    },
    /// This process was asked to end.
    #[error("this rank was asked to end")]
    Stopped,
}

/// What joining goes by.
struct Joining<'a> {
    member: ParallelRank,
    training: u64,
    stop: &'a AtomicBool,
    until: Instant,
}

/// Joins the ring of a training. `held` is the checkpoint that this rank has; `stop` ends waiting,
/// here and in the ring.
pub(super) fn join(
    member: ParallelRank,
    master: &Master,
    identity: &Identity,
    held: Option<Checkpoint>,
    stop: Arc<AtomicBool>,
) -> Result<Joined, JoinError> {
    if member.world_size() == 1 {
        let ring = Ring::alone(stop);
        return Ok(Joined { ring, checkpoint: held, passed_by: None });
    }
    let bytes = held.as_ref().map(Checkpoint::encode);
    let reported = held.as_ref().zip(bytes.as_deref()).map(|(checkpoint, bytes)| RankCheckpoint {
        steps: checkpoint.steps,
        digest: rapidhash_v3(bytes),
    });
    let until = Instant::now() + JOIN_TIMEOUT;
    let joining = Joining { member, training: identity.digest(), stop: &stop, until };
    let (mut door, round) = match member.rank() {
        0 => joining.lead(master, reported)?,
        _ => joining.follow(master, reported)?,
    };
    let next = joining.connect_next(round.next)?;
    let previous = joining.accept_previous(&mut door)?;
    let mut ring = Ring::new(member, next, previous, stop);
    let Some(giver) = round.giver else {
        return Ok(Joined { ring, checkpoint: held, passed_by: None });
    };
    let own = if giver == member.rank() { bytes } else { None };
    let length = usize::try_from(identity.file_bytes()).map_err(|_| JoinError::Answer)?;
    let lost = |source| JoinError::Lost { step: "passing the checkpoint round", source };
    let bytes = ring.pass_round(giver, own, length).map_err(lost)?;
    let checkpoint = Checkpoint::decode(&bytes, identity)
        .map_err(|source| JoinError::Checkpoint { giver, source })?;
    Ok(Joined { ring, checkpoint: Some(checkpoint), passed_by: Some(giver) })
}

// === impl Joining ===

impl Joining<'_> {
    /// Gathers all others, and tells each its neighbour.
    fn lead(
        &self,
        master: &Master,
        held: Option<RankCheckpoint>,
    ) -> Result<(Door, Round), JoinError> {
        let mut door = self.open_at_one_of(resolve(master)?)?;
        let own = self.address_of(&door)?;
        let count = self.member.world_size() as usize;
        let mut others: Vec<Option<(Link, SocketAddr, Option<RankCheckpoint>)>> = Vec::new();
        others.resize_with(count - 1, || None);
        while let Some(missing) = others.iter().position(Option::is_none) {
            let waits_for = || format!("rank {}", missing + 1);
            let visitor = door.next(self.stop, self.until, waits_for)?;
            if let Some((hello, link, from)) = self.take(visitor) {
                let place = hello.member.rank() as usize - 1;
                // A rank that comes again has lost its first connection.
                others[place] = Some((link, SocketAddr::new(from, hello.port), hello.held));
            }
        }
        let others: Vec<_> = others.into_iter().flatten().collect();
        let all: Vec<_> =
            std::iter::once(held).chain(others.iter().map(|(_, _, held)| *held)).collect();
        let giver = giver(&all);
        let addresses: Vec<_> = others.iter().map(|(_, address, _)| *address).collect();
        for (place, (link, ..)) in others.iter().enumerate() {
            let next = addresses.get(place + 1).copied().unwrap_or(own);
            let answer = encode_answer(Ok(Round { next, giver }));
            link.send(&answer, self.limits()).map_err(lost("telling ranks their neighbours"))?;
        }
        Ok((door, Round { next: addresses[0], giver }))
    }

    /// Admits a peer that belongs here, and tells one that almost does why not.
    fn take(&self, visitor: Visitor) -> Option<(Hello, Link, IpAddr)> {
        // A peer that says something else has mistaken the port.
        let hello = decode_hello(&visitor.words)?;
        let link = Link::new(visitor.stream, hello.member.rank()).ok()?;
        let refusal = if hello.member.epoch() != self.member.epoch() {
            RankRefusal::Epoch
        } else if hello.member.world_size() != self.member.world_size() {
            RankRefusal::WorldSize
        } else if hello.training != self.training {
            RankRefusal::Training
        } else {
            return Some((hello, link, visitor.from));
        };
        // It goes wherever it wants with that.
        let _ = link.send(&encode_answer(Err(refusal)), self.limits());
        None
    }

    /// Says to rank 0 who this is, and learns who is next.
    fn follow(
        &self,
        master: &Master,
        held: Option<RankCheckpoint>,
    ) -> Result<(Door, Round), JoinError> {
        let stream = self.connect_master(master)?;
        let link = Link::new(stream.0, 0).map_err(|source| JoinError::Connect {
            peer: 0,
            address: stream.1,
            source,
        })?;
        // Where rank 0 reaches it, the others do as well.
        let door = self.open_at_one_of(vec![SocketAddr::new(stream.2, 0)])?;
        let port = self.address_of(&door)?.port();
        let hello = Hello { member: self.member, training: self.training, port, held };
        link.send(&encode_hello(TO_MASTER, &hello), self.limits())
            .map_err(lost("telling rank 0 of this one"))?;
        let mut answer = [0; HELLO_BYTES];
        link.receive(&mut answer, self.limits()).map_err(lost("waiting for rank 0's answer"))?;
        let round = decode_answer(&answer).ok_or(JoinError::Answer)?;
        Ok((door, round.map_err(JoinError::Refused)?))
    }

    /// A connection to rank 0, its address, and our own address on it. Rank 0 may not listen yet.
    fn connect_master(
        &self,
        master: &Master,
    ) -> Result<(TcpStream, SocketAddr, IpAddr), JoinError> {
        loop {
            let mut failed = None;
            for address in resolve(master)? {
                match connect_to_other(address) {
                    Ok((stream, own)) => return Ok((stream, address, own)),
                    Err(source) => failed = Some((address, source)),
                }
            }
            if self.stop.load(Ordering::Relaxed) {
                return Err(JoinError::Stopped);
            }
            if let Some((address, source)) = failed.filter(|_| Instant::now() > self.until) {
                return Err(JoinError::Connect { peer: 0, address, source });
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    fn connect_next(&self, address: SocketAddr) -> Result<Link, JoinError> {
        let peer = self.member.next();
        // It listens already: one attempt shows whether it is there.
        let link = TcpStream::connect_timeout(&address, CONNECT_TIMEOUT)
            .and_then(|stream| Link::new(stream, peer))
            .map_err(|source| JoinError::Connect { peer, address, source })?;
        let hello = Hello { member: self.member, training: self.training, port: 0, held: None };
        link.send(&encode_hello(TO_NEIGHBOUR, &hello), self.limits())
            .map_err(lost("connecting to the next rank"))?;
        Ok(link)
    }

    fn accept_previous(&self, door: &mut Door) -> Result<Link, JoinError> {
        let peer = self.member.previous();
        let waits_for = || format!("rank {peer}");
        loop {
            let visitor = door.next(self.stop, self.until, waits_for)?;
            let ParallelRank { world_size, epoch, .. } = self.member;
            let member = ParallelRank { rank: peer, world_size, epoch };
            let expected = Hello { member, training: self.training, port: 0, held: None };
            if visitor.words != encode_hello(TO_NEIGHBOUR, &expected) {
                continue;
            }
            if let Ok(link) = Link::new(visitor.stream, peer) {
                return Ok(link);
            }
        }
    }

    /// A door at the first address at which there can be one.
    fn open_at_one_of(&self, addresses: Vec<SocketAddr>) -> Result<Door, JoinError> {
        let rank = self.member.rank();
        let mut failed = None;
        for address in addresses {
            match Door::open(address) {
                Ok(door) => return Ok(door),
                Err(source) => failed = Some(JoinError::Listen { rank, address, source }),
            }
        }
        Err(failed.expect("a name that was resolved has an address"))
    }

    fn address_of(&self, door: &Door) -> Result<SocketAddr, JoinError> {
        let unknown = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 0);
        let rank = self.member.rank();
        door.address().map_err(|source| JoinError::Listen { rank, address: unknown, source })
    }

    fn limits(&self) -> LinkDeadline<'_> {
        LinkDeadline {
            stop: self.stop,
            still: self.until.saturating_duration_since(Instant::now()),
        }
    }
}

/// Who passes a checkpoint round: the first of those who are furthest, unless all are as far.
fn giver(all: &[Option<RankCheckpoint>]) -> Option<u32> {
    let furthest = all.iter().flatten().map(|held| held.steps).max()?;
    let is_furthest =
        |held: &Option<RankCheckpoint>| held.is_some_and(|held| held.steps == furthest);
    let giver = all.iter().position(is_furthest)?;
    let differs = all.iter().any(|held| *held != all[giver]);
    differs.then(|| u32::try_from(giver).expect("MAX_WORLD_SIZE"))
}

/// A connection, and our own address on it. Where nothing listens at an address of this host, Linux may
/// connect a socket to itself: when the port that it gives out is that of the address.
fn connect_to_other(address: SocketAddr) -> io::Result<(TcpStream, IpAddr)> {
    let stream = TcpStream::connect_timeout(&address, CONNECT_TIMEOUT)?;
    let own = stream.local_addr()?;
    if own == address {
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    Ok((stream, own.ip()))
}

fn resolve(master: &Master) -> Result<Vec<SocketAddr>, JoinError> {
    let Master { host, port } = master;
    let unknown = |source| JoinError::Resolve { host: host.clone(), source };
    let addresses: Vec<_> =
        (host.as_str(), port.get()).to_socket_addrs().map_err(unknown)?.collect();
    match addresses.is_empty() {
        true => Err(unknown(io::ErrorKind::NotFound.into())),
        false => Ok(addresses),
    }
}

fn lost(step: &'static str) -> impl FnOnce(LinkError) -> JoinError {
    move |source| match source {
        LinkError::Stopped => JoinError::Stopped,
        source => JoinError::Lost { step, source },
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::{RankCheckpoint, connect_to_other, giver};

    fn held(steps: u64, digest: u64) -> Option<RankCheckpoint> {
        Some(RankCheckpoint { steps, digest })
    }

    #[test]
    fn the_first_of_the_furthest_passes_its_checkpoint_round() {
        let cases = [
            (vec![None, None], None),
            (vec![held(3, 1), held(3, 1)], None),
            (vec![held(3, 1), None], Some(0)),
            (vec![None, held(3, 1), held(4, 2), held(4, 2)], Some(2)),
            // They differ, although they should not: one is taken, whichever.
            (vec![held(3, 1), held(3, 2)], Some(0)),
        ];
        for (all, expected) in cases {
            assert_eq!(giver(&all), expected, "{all:?}");
        }
    }

    #[test]
    fn nobody_is_taken_for_rank_0_where_none_listens() {
        // Linux gives listeners odd ports and connections even ones, of 28,000.
        let free = |port| TcpListener::bind(("127.0.0.1", port)).and_then(|it| it.local_addr());
        let address = std::iter::repeat_with(|| free(free(0).unwrap().port() ^ 1));
        let address = address.flatten().next().unwrap();
        for attempt in 0..100_000 {
            assert!(connect_to_other(address).is_err(), "attempt {attempt}");
        }
    }
}
