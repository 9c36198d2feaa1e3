//! Snapshots that another process took: the service of this host or of others, a shell there, a recording, a history.
//!
//! What comes from there is bounded and checked before it is used. [`telltale_collector`] takes those of this process.
#![forbid(unsafe_code)]

mod addresses;
mod hosts;
mod known;
mod open_file;
mod past;
mod received;
mod recording;
mod tls_files;

pub use addresses::{
    AddressesError, Destination, HostAddress, HostError, HostItem, HostRoute, read_all,
};
pub use hosts::{GRACE, Inquiry, Terms};
pub use known::{FOR_A_DECISION, FOR_A_LOOK, Question, ServiceFindings};
pub use open_file::open;
pub use past::{PastError, PastPlace, PastSource, candidates};
pub use received::{ReceivedError, snapshot_in};
pub use recording::{Frame, RecordError, Recorder, Recording, RecordingError, ReplayError};
pub use tls_files::{ClientTlsFiles, TlsError};
