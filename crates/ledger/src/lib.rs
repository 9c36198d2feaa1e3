//! One process's accounting in shared memory: layout, writer, reader; foreign tt-metal regions.
//!
//! A process makes a [`Ledger`] in the [`directory::RuntimeDirectory`] and counts through one
//! [`Recorder`] for each thread; any process that may open the file gets the values with a
//! [`LedgerReader`]. The format is described in docs/ledger.md. Nothing here knows which processes
//! live or which chips there are, and no device address is ever stored.
#![deny(clippy::cast_possible_truncation)]

mod bias;
mod biased;
mod cell;
mod claims;
mod device;
pub mod directory;
mod file;
mod hold;
pub mod layout;
mod mapping;
mod owner;
pub mod peer;
mod posting;
mod reader;
pub mod region;
mod sealed;
mod sweep;
mod sync;
mod writer;

pub use biased::{BiasedShards, ThreadAccess};
pub use device::{DeviceEntry, DeviceSlot, RegionMirror};
pub use file::CreateError;
pub use layout::POSTING_THRESHOLD_BYTES;
pub use owner::{IdentityError, LedgerOwner, identity_of_this_process};
pub use reader::{
    FileNumber, LedgerReader, LedgerReading, OpenError, ReadError, WriterLock, is_locked,
};
pub use sealed::{Account, SEALED_DEVICES, SealedLedger};
pub use sweep::{LedgerSweep, SweepKey};
pub use writer::{AddDeviceError, Faults, Ledger, Recorder};
