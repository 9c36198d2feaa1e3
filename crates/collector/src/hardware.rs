//! Devices as their drivers show them, of any vendor.
//!
//! Tenstorrent's chips have a source of their own ([`crate::tenstorrent`]), which is asked first.
//! The others are asked one after the other; each bounds its own time, so that one that hangs or
//! fails costs its own devices and no other's. A source whose hardware is not there says why to
//! clients (`telltale doctor`) and is in no snapshot.

mod bus;
mod descriptors;
mod drm;
mod host;
mod inquiry;
mod link;
mod neuron;
mod nvidia;
mod options;
mod parts;
mod topology;

use serde::{Deserialize, Serialize};

pub(crate) use bus::driver_at;
pub use bus::{DriverlessBoard, driverless_boards};
pub use drm::DrmSource;
pub use host::HostSource;
pub(crate) use host::kibibytes;
pub(crate) use link::Links;
pub use neuron::NeuronSource;
pub use nvidia::{NvidiaSource, NvmlUse};
pub use options::HardwareOptions;
pub use parts::{HostPart, HostPartKind, HostParts, PartsReading};
pub use topology::topology;

/// When the machine itself is shown as a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostUse {
    /// Never.
    Never,
    /// Where there is no other device.
    #[default]
    LastResort,
    /// Always.
    Always,
}
