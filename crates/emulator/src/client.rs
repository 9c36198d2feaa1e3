//! Opening a device, and allocating on it: what a workload on the emulated machine links.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::io::{Errno, retry_on_intr};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{RecvFlags, SendFlags, SocketFlags, connect, recv, send};
use telltale_schema::memory::MemoryKind;

use crate::chip::{AllocateError, Usage};
use crate::machine::ChipDescription;
use crate::protocol::{DeviceActivity, REPLY_BYTES, Reply, Request};
use crate::socket::{packet_socket, with_address};

/// How long a device may take to answer: a live one takes microseconds.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Why a device could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenDeviceError {
    /// Nothing listens there.
    #[error("cannot open the device {path}: is `telltale emulate` running with this --root?")]
    NotThere {
        /// The device's socket.
        path: PathBuf,
        /// What connecting said.
        #[source]
        source: io::Error,
    },
    /// The device was opened, but did not say what it is.
    #[error("the device {path} was opened and does not answer: restart the emulator")]
    Silent {
        /// The device's socket.
        path: PathBuf,
        /// What went wrong.
        #[source]
        source: DeviceError,
    },
}

/// Why a device did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The allocator refused.
    #[error(transparent)]
    Allocate(#[from] AllocateError),
    /// The device has no such chip.
    #[error("the device has no chip {0}")]
    NoSuchChip(usize),
    /// The device is gone: the emulator ended, or the chip fell off the bus.
    #[error("the device is gone: close it and open it again once it is back")]
    Gone(#[source] io::Error),
    /// The other side speaks another language.
    #[error("the device answered with no message that this version knows")]
    Confused,
}

/// A device that this process has open. Dropping it closes the device, which frees everything
/// that was allocated through it. May be shared between threads.
#[derive(Debug)]
pub struct DeviceClient {
    /// Also the lock that keeps a reply with its request.
    sequence: Mutex<u32>,
    socket: OwnedFd,
    chips: Vec<ChipDescription>,
}

/// What is allocated, and what this client did wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceUsage {
    /// What is allocated, by kind.
    pub usage: Usage,
    /// Frees of this connection that named no buffer of its own.
    pub invalid_frees: u64,
}

impl DeviceClient {
    /// Opens device `ordinal` of the machine under `root`. From then on this process is in the
    /// device's list of pids.
    ///
    /// # Errors
    /// When no emulator has such a device there, or it does not answer.
    pub fn open(root: &Path, ordinal: u32) -> Result<Self, OpenDeviceError> {
        let path = root.join(format!("dev/tenstorrent/{ordinal}"));
        let socket = connected(&path)
            .map_err(|source| OpenDeviceError::NotThere { path: path.clone(), source })?;
        let mut client = Self { sequence: Mutex::new(0), socket, chips: Vec::new() };
        match client.ask(Request::Describe) {
            Ok(Reply::Chips(chips)) => client.chips = chips,
            Ok(_) => return Err(OpenDeviceError::Silent { path, source: DeviceError::Confused }),
            Err(source) => return Err(OpenDeviceError::Silent { path, source }),
        }
        Ok(client)
    }

    /// The chips of the device: the one with the PCI link, then those reached through it.
    pub fn chips(&self) -> &[ChipDescription] {
        &self.chips
    }

    /// Allocates on a chip (an index into [`Self::chips`]) and gives the address.
    ///
    /// # Errors
    /// When the chip's memory is full, there is no such chip, or the device is gone.
    pub fn allocate(&self, chip: usize, kind: MemoryKind, bytes: u64) -> Result<u64, DeviceError> {
        let request = Request::Allocate { chip: self.index(chip)?, kind, bytes };
        match self.ask(request)? {
            Reply::Allocated(address) => Ok(address),
            Reply::Refused(error) => Err(error.into()),
            Reply::NoSuchChip => Err(DeviceError::NoSuchChip(chip)),
            Reply::Chips(_) | Reply::Usage { .. } => Err(DeviceError::Confused),
        }
    }

    /// Frees a buffer. Does not wait: a free of what is not there is counted by the device, see
    /// [`DeviceUsage::invalid_frees`].
    ///
    /// # Errors
    /// When there is no such chip or the device is gone.
    pub fn free(&self, chip: usize, kind: MemoryKind, address: u64) -> Result<(), DeviceError> {
        self.tell(Request::Free { chip: self.index(chip)?, kind, address }, 0)
    }

    /// Tells the device what it was used for, so that its sensors move. Does not wait.
    ///
    /// # Errors
    /// When the device is gone.
    pub fn report_activity(&self, activity: DeviceActivity) -> Result<(), DeviceError> {
        self.tell(Request::Activity(activity), 0)
    }

    /// What all processes have allocated on a chip.
    ///
    /// # Errors
    /// When there is no such chip or the device is gone.
    pub fn usage(&self, chip: usize) -> Result<DeviceUsage, DeviceError> {
        self.ask_usage(chip, None)
    }

    /// What one process has allocated on a chip; zeros if it has not opened the device.
    ///
    /// # Errors
    /// When there is no such chip or the device is gone.
    pub fn usage_of(&self, chip: usize, pid: u32) -> Result<DeviceUsage, DeviceError> {
        self.ask_usage(chip, Some(pid))
    }

    fn ask_usage(&self, chip: usize, pid: Option<u32>) -> Result<DeviceUsage, DeviceError> {
        match self.ask(Request::Usage { chip: self.index(chip)?, pid })? {
            Reply::Usage { usage, invalid_frees } => Ok(DeviceUsage { usage, invalid_frees }),
            Reply::NoSuchChip => Err(DeviceError::NoSuchChip(chip)),
            _ => Err(DeviceError::Confused),
        }
    }

    fn index(&self, chip: usize) -> Result<u16, DeviceError> {
        let index = u16::try_from(chip).map_err(|_| DeviceError::NoSuchChip(chip))?;
        if chip < self.chips.len() { Ok(index) } else { Err(DeviceError::NoSuchChip(chip)) }
    }

    fn tell(&self, request: Request, sequence: u32) -> Result<(), DeviceError> {
        let packet = request.encode(sequence);
        retry_on_intr(|| send(&self.socket, &packet, SendFlags::NOSIGNAL))
            .map(|_| ())
            .map_err(|error| DeviceError::Gone(error.into()))
    }

    fn ask(&self, request: Request) -> Result<Reply, DeviceError> {
        let mut sequence = self.sequence.lock().unwrap_or_else(PoisonError::into_inner);
        *sequence = sequence.wrapping_add(1);
        self.tell(request, *sequence)?;
        // One byte more, so that a packet that is too long is not taken for a right one.
        let mut packet = [0; REPLY_BYTES + 1];
        let (size, _) = retry_on_intr(|| recv(&self.socket, &mut packet, RecvFlags::empty()))
            .map_err(|error| DeviceError::Gone(error.into()))?;
        if size == 0 {
            return Err(DeviceError::Gone(Errno::CONNRESET.into()));
        }
        match Reply::decode(packet.get(..size).ok_or(DeviceError::Confused)?) {
            Ok((answered, reply)) if answered == *sequence => Ok(reply),
            _ => Err(DeviceError::Confused),
        }
    }
}

fn connected(path: &Path) -> io::Result<OwnedFd> {
    let socket = packet_socket(SocketFlags::empty())?;
    for timeout in [Timeout::Recv, Timeout::Send] {
        set_socket_timeout(&socket, timeout, Some(TIMEOUT))?;
    }
    with_address(path, |address| connect(&socket, address))?;
    Ok(socket)
}
