//! Processes that speak the allocation server's protocol, which a service listens to: its own collector reads them from
//! it, another one asks the service of the runtime directory.

mod asking;

use std::fmt;

use telltale_schema::snapshot::RecordingFaults;

pub use crate::observation::DeviceClaim;
pub use asking::{LegacyError, PassedOn, ask};

/// Clients that a service has at a time.
pub const MAX_CLIENTS: usize = 256;

/// The message that ends a service's answer.
pub const END: &[u8] = &[];

/// The clients of a service of this program.
pub trait LegacyClients: fmt::Debug + Send + Sync {
    /// All that are connected; nothing while there is no socket here.
    fn processes(&self) -> Option<Vec<LegacyProcess>>;
}

/// One process that reports so.
#[derive(Debug, Clone)]
pub struct LegacyProcess {
    /// Its pid, in the PID namespace of the service.
    pub pid: u32,
    /// When it was started, which distinguishes it from a later one with the same pid.
    pub start_time_ticks: u64,
    /// Its user.
    pub uid: u32,
    /// What it has on which device.
    pub devices: Vec<DeviceClaim>,
    /// What was wrong in what it reported.
    pub faults: RecordingFaults,
}
