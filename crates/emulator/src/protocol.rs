//! The messages between a device's socket and who has it open.
//!
//! One packet each way, little-endian, of a fixed size, so that neither side has anything to
//! allocate or to wait for. A request is 40 bytes:
//!
//! | offset | size | what |
//! |---|---|---|
//! | 0 | 2 | [`VERSION`] |
//! | 2 | 2 | operation |
//! | 4 | 4 | sequence number, repeated in the reply |
//! | 8 | 2 | chip: 0 is the one with the PCI link, 1 the one reached through it |
//! | 10 | 2 | code of the memory kind |
//! | 12 | 4 | pid |
//! | 16 | 24 | three numbers of 64 bits |
//!
//! A reply is 256 bytes: version, outcome, sequence number, then what the outcome has to tell.
//! `Free` and `Activity` have no reply. Anything else than what is described here is a reason to
//! close the connection.

use telltale_schema::chip::{
    Architecture, AsicId, BoardId, ChipFacts, ChipIdentity, FactSource, GalaxyPosition, PciAddress,
};
use telltale_schema::memory::{MemoryKind, MemorySpace};

use crate::chip::{AllocateError, KindUsage, Usage};
use crate::machine::ChipDescription;

/// The version of these messages.
const VERSION: u16 = 1;
/// The size of a request.
pub(crate) const REQUEST_BYTES: usize = 40;
/// The size of a reply.
pub(crate) const REPLY_BYTES: usize = 256;
/// Chips that one device can have.
const MAX_CHIPS: usize = 2;
/// Stands for "none" where a number is expected.
const NONE_U64: u64 = u64::MAX;
const NONE_U32: u32 = u32::MAX;

/// What a device was used for: the emulated sensors follow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeviceActivity {
    /// The time in which the chip's cores worked.
    pub busy_ns: u64,
    /// Bytes that went to the device.
    pub host_to_device_bytes: u64,
    /// Bytes that came from it.
    pub device_to_host_bytes: u64,
}

/// What a client asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Request {
    Describe,
    Allocate { chip: u16, kind: MemoryKind, bytes: u64 },
    Free { chip: u16, kind: MemoryKind, address: u64 },
    Usage { chip: u16, pid: Option<u32> },
    Activity(DeviceActivity),
}

/// What the device answers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Reply {
    Chips(Vec<ChipDescription>),
    Allocated(u64),
    Refused(AllocateError),
    Usage { usage: Usage, invalid_frees: u64 },
    NoSuchChip,
}

/// A packet that is no message of this version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a message of version {VERSION} of the device protocol")]
pub(crate) struct Malformed;

/// Fills a packet from the front.
struct PacketWriter<'a>(&'a mut [u8]);

impl PacketWriter<'_> {
    fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        let packet = std::mem::take(&mut self.0);
        let (head, rest) = packet.split_at_mut(N);
        head.copy_from_slice(&bytes);
        self.0 = rest;
    }

    fn u16(&mut self, value: u16) {
        self.put(value.to_le_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.put(value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.put(value.to_le_bytes());
    }
}

/// Reads a packet from the front.
struct PacketReader<'a>(&'a [u8]);

impl PacketReader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (head, rest) = self.0.split_first_chunk::<N>().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*head)
    }

    fn u16(&mut self) -> Result<u16, Malformed> {
        self.take().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, Malformed> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, Malformed> {
        self.take().map(u64::from_le_bytes)
    }
}

// === impl Request ===

impl Request {
    pub(crate) fn encode(&self, sequence: u32) -> [u8; REQUEST_BYTES] {
        let (operation, chip, kind, pid, numbers) = match *self {
            Self::Describe => (1, 0, 0, 0, [0; 3]),
            Self::Allocate { chip, kind, bytes } => (2, chip, kind.code(), 0, [bytes, 0, 0]),
            Self::Free { chip, kind, address } => (3, chip, kind.code(), 0, [address, 0, 0]),
            Self::Usage { chip, pid } => (4, chip, 0, pid.unwrap_or(NONE_U32), [0; 3]),
            Self::Activity(activity) => {
                let DeviceActivity { busy_ns, host_to_device_bytes, device_to_host_bytes } =
                    activity;
                (5, 0, 0, 0, [busy_ns, host_to_device_bytes, device_to_host_bytes])
            }
        };
        let mut packet = [0; REQUEST_BYTES];
        let mut writer = PacketWriter(&mut packet);
        writer.u16(VERSION);
        writer.u16(operation);
        writer.u32(sequence);
        writer.u16(chip);
        writer.u16(kind);
        writer.u32(pid);
        numbers.into_iter().for_each(|number| writer.u64(number));
        packet
    }

    /// The sequence number and the request in a packet.
    pub(crate) fn decode(packet: &[u8]) -> Result<(u32, Self), Malformed> {
        if packet.len() != REQUEST_BYTES {
            return Err(Malformed);
        }
        let mut reader = PacketReader(packet);
        if reader.u16()? != VERSION {
            return Err(Malformed);
        }
        let operation = reader.u16()?;
        let sequence = reader.u32()?;
        let chip = reader.u16()?;
        let kind = MemoryKind::from_code(reader.u16()?).ok_or(Malformed)?;
        let pid = reader.u32()?;
        let first = reader.u64()?;
        let request = match operation {
            1 => Self::Describe,
            2 => Self::Allocate { chip, kind, bytes: first },
            3 => Self::Free { chip, kind, address: first },
            4 => Self::Usage { chip, pid: (pid != NONE_U32).then_some(pid) },
            5 => Self::Activity(DeviceActivity {
                busy_ns: first,
                host_to_device_bytes: reader.u64()?,
                device_to_host_bytes: reader.u64()?,
            }),
            _ => return Err(Malformed),
        };
        Ok((sequence, request))
    }
}

// === impl Reply ===

impl Reply {
    pub(crate) fn encode(&self, sequence: u32) -> [u8; REPLY_BYTES] {
        let mut packet = [0; REPLY_BYTES];
        let mut writer = PacketWriter(&mut packet);
        writer.u16(VERSION);
        let outcome = match self {
            Self::Chips(_) => 1,
            Self::Allocated(_) => 2,
            Self::Refused(AllocateError::OutOfMemory { .. }) => 3,
            Self::Refused(AllocateError::TooManyBuffers) => 4,
            Self::Refused(AllocateError::Empty) => 5,
            Self::Usage { .. } => 6,
            Self::NoSuchChip => 7,
        };
        writer.u16(outcome);
        writer.u32(sequence);
        match self {
            Self::Chips(chips) => {
                assert!(chips.len() <= MAX_CHIPS, "no board has more chips behind one link");
                writer.u64(chips.len() as u64);
                chips.iter().for_each(|chip| write_chip(&mut writer, chip));
            }
            Self::Allocated(address) => writer.u64(*address),
            Self::Refused(AllocateError::OutOfMemory {
                space,
                requested_bytes,
                free_bytes,
                largest_bytes,
            }) => {
                writer.u64(space_code(*space));
                [requested_bytes, free_bytes, largest_bytes]
                    .into_iter()
                    .for_each(|bytes| writer.u64(*bytes));
            }
            Self::Usage { usage, invalid_frees } => {
                writer.u64(*invalid_frees);
                for kind in usage.0 {
                    writer.u64(kind.requested_bytes);
                    writer.u64(kind.reserved_bytes);
                    writer.u64(kind.buffers);
                }
            }
            Self::Refused(AllocateError::TooManyBuffers | AllocateError::Empty)
            | Self::NoSuchChip => {}
        }
        packet
    }

    /// The sequence number and the reply in a packet.
    pub(crate) fn decode(packet: &[u8]) -> Result<(u32, Self), Malformed> {
        if packet.len() != REPLY_BYTES {
            return Err(Malformed);
        }
        let mut reader = PacketReader(packet);
        if reader.u16()? != VERSION {
            return Err(Malformed);
        }
        let outcome = reader.u16()?;
        let sequence = reader.u32()?;
        let reply = match outcome {
            1 => {
                let count = usize::try_from(reader.u64()?).map_err(|_| Malformed)?;
                if count == 0 || count > MAX_CHIPS {
                    return Err(Malformed);
                }
                Self::Chips((0..count).map(|_| read_chip(&mut reader)).collect::<Result<_, _>>()?)
            }
            2 => Self::Allocated(reader.u64()?),
            3 => {
                let code = reader.u64()?;
                let space = MemorySpace::ALL
                    .into_iter()
                    .find(|space| space_code(*space) == code)
                    .ok_or(Malformed)?;
                Self::Refused(AllocateError::OutOfMemory {
                    space,
                    requested_bytes: reader.u64()?,
                    free_bytes: reader.u64()?,
                    largest_bytes: reader.u64()?,
                })
            }
            4 => Self::Refused(AllocateError::TooManyBuffers),
            5 => Self::Refused(AllocateError::Empty),
            6 => {
                let invalid_frees = reader.u64()?;
                let mut usage = Usage::default();
                for kind in &mut usage.0 {
                    *kind = KindUsage {
                        requested_bytes: reader.u64()?,
                        reserved_bytes: reader.u64()?,
                        buffers: reader.u64()?,
                    };
                }
                Self::Usage { usage, invalid_frees }
            }
            7 => Self::NoSuchChip,
            _ => return Err(Malformed),
        };
        Ok((sequence, reply))
    }
}

fn space_code(space: MemorySpace) -> u64 {
    match space {
        MemorySpace::Dram => 0,
        MemorySpace::L1 => 1,
        MemorySpace::Host => 2,
    }
}

/// 64 bytes. The board's type and the place on a Galaxy follow from the board id and the bus.
fn write_chip(writer: &mut PacketWriter<'_>, chip: &ChipDescription) {
    let ChipDescription { identity, facts } = chip;
    writer.u64(identity.board_id.map_or(NONE_U64, |id| id.0));
    writer.u64(identity.asic_id.map_or(NONE_U64, |id| id.0));
    writer.u64(identity.pci.map_or(NONE_U64, PciAddress::to_bits));
    writer.u32(identity.driver_ordinal.unwrap_or(NONE_U32));
    let architecture = match facts.architecture {
        Architecture::Grayskull => 0,
        Architecture::WormholeB0 => 1,
        Architecture::Blackhole => 2,
    };
    writer.put([identity.location, u8::from(identity.remote), architecture, 0]);
    writer.u64(facts.dram_capacity_bytes);
    writer.u64(facts.l1_per_core_bytes);
    writer.u32(facts.dram_channels);
    writer.u32(facts.worker_cores);
    writer.u32(facts.grid.0);
    writer.u32(facts.grid.1);
}

fn read_chip(reader: &mut PacketReader<'_>) -> Result<ChipDescription, Malformed> {
    let some = |number: u64| (number != NONE_U64).then_some(number);
    let board_id = some(reader.u64()?).map(BoardId);
    let asic_id = some(reader.u64()?).map(AsicId);
    let pci = some(reader.u64()?).and_then(PciAddress::from_bits);
    let ordinal = reader.u32()?;
    let [location, remote, architecture, _] = reader.take()?;
    let architecture = match architecture {
        0 => Architecture::Grayskull,
        1 => Architecture::WormholeB0,
        2 => Architecture::Blackhole,
        _ => return Err(Malformed),
    };
    let board_type = board_id.map(BoardId::board_type).unwrap_or_default();
    let identity = ChipIdentity {
        driver_ordinal: (ordinal != NONE_U32).then_some(ordinal),
        pci,
        asic_id,
        board_id,
        board_type,
        location,
        galaxy: pci.and_then(|pci| GalaxyPosition::from_bus(board_type, pci.bus)),
        remote: remote != 0,
    };
    let facts = ChipFacts {
        architecture,
        dram_capacity_bytes: reader.u64()?,
        l1_per_core_bytes: reader.u64()?,
        dram_channels: reader.u32()?,
        worker_cores: reader.u32()?,
        grid: (reader.u32()?, reader.u32()?),
        source: FactSource::BoardTable,
    };
    Ok(ChipDescription { identity, facts })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert_eq, proptest};
    use telltale_schema::memory::{MemoryKind, MemorySpace};

    use super::{DeviceActivity, REPLY_BYTES, REQUEST_BYTES, Reply, Request};
    use crate::chip::{AllocateError, KindUsage, Usage};
    use crate::machine::{DriverVersion, MachineKind, chips_of};

    #[test]
    fn messages_survive_the_packet() {
        let requests = [
            Request::Describe,
            Request::Allocate { chip: 1, kind: MemoryKind::SystemMemory, bytes: u64::MAX },
            Request::Free { chip: 0, kind: MemoryKind::Dram, address: 0x1_0000 },
            Request::Usage { chip: 0, pid: None },
            Request::Usage { chip: 1, pid: Some(77) },
            Request::Activity(DeviceActivity {
                busy_ns: 1,
                host_to_device_bytes: 2,
                device_to_host_bytes: 3,
            }),
        ];
        for request in requests {
            assert_eq!(Request::decode(&request.encode(9)), Ok((9, request)));
        }
        let kind = KindUsage { requested_bytes: 1, reserved_bytes: 2, buffers: 3 };
        let mut replies = vec![
            Reply::Allocated(4),
            Reply::Refused(AllocateError::OutOfMemory {
                space: MemorySpace::L1,
                requested_bytes: 1,
                free_bytes: 2,
                largest_bytes: 3,
            }),
            Reply::Refused(AllocateError::TooManyBuffers),
            Reply::Refused(AllocateError::Empty),
            Reply::Usage { usage: Usage([kind; 9]), invalid_frees: 5 },
            Reply::NoSuchChip,
        ];
        for kind in MachineKind::ALL {
            replies.extend(chips_of(kind, 3, DriverVersion::default()).map(Reply::Chips));
        }
        for reply in replies {
            assert_eq!(Reply::decode(&reply.encode(9)), Ok((9, reply)));
        }
    }

    proptest! {
        #[test]
        fn any_packet_is_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            for size in [bytes.len(), REQUEST_BYTES, REPLY_BYTES] {
                let mut packet = bytes.clone();
                packet.resize(size, 0);
                let _ = Request::decode(&packet);
                let _ = Reply::decode(&packet);
                // With a right beginning, so that the rest is checked.
                if let Some(head) = packet.get_mut(..4) {
                    head.copy_from_slice(&[1, 0, head[2] % 8, 0]);
                }
                if let Ok((sequence, request)) = Request::decode(&packet) {
                    let again = Request::decode(&request.encode(sequence));
                    prop_assert_eq!(again, Ok((sequence, request)));
                }
                let _ = Reply::decode(&packet);
            }
        }
    }
}
