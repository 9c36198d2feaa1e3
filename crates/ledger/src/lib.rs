#![doc = include_str!("../README.md")]
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
mod taken;
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
pub use taken::{OwnPeaks, TakenPeak};
pub use writer::{AddDeviceError, Faults, Ledger, Recorder};
