//! What an endpoint is asked.

use prost::Message;

use crate::limits::MAX_QUERY_BYTES;
use crate::{PROTOCOL_VERSION, message};

/// One question to an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Query {
    /// What is asked for.
    pub kind: QueryKind,
    /// About which devices.
    pub device: DeviceSelector,
    /// Whether the answer shall carry the ledger's read-only descriptor (SCM_RIGHTS).
    pub want_ledger: bool,
    /// Whether nothing else will be asked on this connection. The process that answers then closes it
    /// first, and need not wake once more for that.
    pub is_last: bool,
    /// Whether the asker has memory from the ledger. Then it is left out of the answer, whatever its
    /// kind, and so are devices of which nothing else would be reported. Who does not know this field
    /// answers as if it were not set.
    pub knows_memory: bool,
}

/// What is asked for. The numbers are those on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueryKind {
    /// Memory by device and kind.
    Memory = 1,
    /// Who the process is and how long it has been recording; always part of an answer.
    Uptime = 2,
    /// Programs, kernel cache and the devices' kernel ring buffers.
    Kernels = 3,
    /// Operations, traffic, quotas, throttling and the application's own metrics.
    Performance = 4,
    /// Everything.
    All = 255,
}

/// Which devices a question is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceSelector {
    /// All that the process has opened; -1 on the wire.
    All,
    /// The one with this logical number in the runtime.
    One(u32),
}

/// Why bytes are no query.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// They are too many.
    #[error("a query of {0} bytes, {MAX_QUERY_BYTES} are allowed")]
    TooLong(usize),
    /// They are no protobuf message.
    #[error("not a query message")]
    Malformed(#[source] prost::DecodeError),
    /// The asker speaks a version that is not spoken here.
    #[error("protocol version {0} is not spoken here; ask with version {PROTOCOL_VERSION}")]
    Version(u32),
    /// The type is none of those known here.
    #[error("query type {0} is not known here")]
    UnknownKind(i32),
    /// The device's number is negative and not -1.
    #[error("device {0} cannot exist; -1 asks for all devices")]
    ImpossibleDevice(i32),
}

impl QueryKind {
    /// All kinds.
    pub const ALL: [Self; 5] =
        [Self::Memory, Self::Uptime, Self::Kernels, Self::Performance, Self::All];

    fn from_wire(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as i32 == number)
    }

    /// Whether an answer to this kind has memory by device.
    pub fn includes_memory(self) -> bool {
        matches!(self, Self::Memory | Self::All)
    }

    /// Whether an answer to this kind has programs, kernel cache and ring buffers.
    pub fn includes_kernels(self) -> bool {
        matches!(self, Self::Kernels | Self::All)
    }

    /// Whether an answer to this kind has operations, traffic, quotas, throttling and metrics.
    pub fn includes_performance(self) -> bool {
        matches!(self, Self::Performance | Self::All)
    }
}

impl Query {
    /// Whether its answer has memory by device.
    pub fn includes_memory(&self) -> bool {
        self.kind.includes_memory() && !self.knows_memory
    }

    /// A query for all devices, without the ledger.
    pub fn of(kind: QueryKind) -> Self {
        let device = DeviceSelector::All;
        Self { kind, device, want_ledger: false, is_last: false, knows_memory: false }
    }

    /// The message's bytes, to be framed.
    pub fn encode(&self) -> Vec<u8> {
        let device_id = match self.device {
            DeviceSelector::All => -1,
            DeviceSelector::One(id) => i32::try_from(id).unwrap_or(i32::MAX),
        };
        message::Query {
            version: PROTOCOL_VERSION,
            r#type: self.kind as i32,
            device_id: Some(device_id),
            want_ledger: self.want_ledger,
            is_last: self.is_last,
            knows_memory: self.knows_memory,
        }
        .encode_to_vec()
    }

    /// The query that these bytes are.
    ///
    /// # Errors
    /// When they are none, or one that this version cannot answer.
    pub fn decode(bytes: &[u8]) -> Result<Self, QueryError> {
        if bytes.len() > MAX_QUERY_BYTES {
            return Err(QueryError::TooLong(bytes.len()));
        }
        let query = message::Query::decode(bytes).map_err(QueryError::Malformed)?;
        if query.version != PROTOCOL_VERSION {
            return Err(QueryError::Version(query.version));
        }
        let kind =
            QueryKind::from_wire(query.r#type).ok_or(QueryError::UnknownKind(query.r#type))?;
        let device = match query.device_id {
            None | Some(-1) => DeviceSelector::All,
            Some(id) => DeviceSelector::One(
                u32::try_from(id).map_err(|_| QueryError::ImpossibleDevice(id))?,
            ),
        };
        let message::Query { want_ledger, is_last, knows_memory, .. } = query;
        Ok(Self { kind, device, want_ledger, is_last, knows_memory })
    }
}
