//! Between the messages of `cluster.proto` and the plain data of the machines.
//!
//! [`decode`] believes nothing: what breaks a limit or makes no sense is refused with a reason, whole.
//! [`encode`] cannot fail. Whether a message is stale is for the machines to see.

pub mod decode;
pub mod encode;

use telltale_wire::cluster::decode::MessageError;
use thiserror::Error;

use telltale_cluster::node::NodeNameError;
use telltale_cluster::policy::MAX_JOB_NAME_BYTES;

/// Why a message is not taken.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProtocolError {
    /// The bytes are no message of the protocol, or too much of one.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// A field that must be there is not.
    #[error("{0} is missing, or of a kind that only a newer version knows")]
    Missing(&'static str),
    /// A value is outside its range.
    #[error("{field} is {value}, which is not in {range}")]
    OutOfRange {
        /// Of which field.
        field: &'static str,
        /// The value.
        value: u64,
        /// What is allowed.
        range: &'static str,
    },
    /// Two values contradict each other.
    #[error("{0}")]
    Contradiction(&'static str),
    /// The name of a job is none.
    #[error("the job's name must have 1 to {MAX_JOB_NAME_BYTES} bytes and no control characters")]
    Job,
    /// The name or address of a node is none.
    #[error(transparent)]
    Name(#[from] NodeNameError),
}

// What is kept must fit into the report.
const _: () = {
    use telltale_wire::cluster as reported;
    assert!(telltale_cluster::incident::MAX_EVENTS <= reported::MAX_SIGNS);
    assert!(telltale_cluster::rank::MAX_SLOTS as usize <= reported::MAX_EVICTED);
    assert!(telltale_cluster::rank::MAX_WORKERS as usize <= reported::MAX_WORKERS);
};
