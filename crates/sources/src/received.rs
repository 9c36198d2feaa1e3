//! A snapshot that another program wrote as JSON: bounded and checked before it is used.

use telltale_schema::snapshot::{Snapshot, UnfitSnapshot};

/// Bytes of one snapshot at most. A process takes some 500 as JSON, more with its memory, so that
/// 100,000 fit in. What is made of the text may take several times as much: a device that a process
/// holds has 44 bytes there and 96 in memory.
pub(crate) const MAX_SNAPSHOT_BYTES: u64 = 64 << 20;

/// Why a line is no snapshot.
#[derive(Debug, thiserror::Error)]
pub enum ReceivedError {
    /// It is no JSON, or another object.
    #[error("this is no snapshot as `telltale smi --json` writes it")]
    Form(#[from] serde_json::Error),
    /// It contradicts itself, or is of another version.
    #[error(transparent)]
    Unfit(#[from] UnfitSnapshot),
}

/// The snapshot in a line.
///
/// # Errors
/// When it is no JSON of a snapshot, or contradicts itself.
pub fn snapshot_in(line: &[u8]) -> Result<Snapshot, ReceivedError> {
    let snapshot: Snapshot = serde_json::from_slice(line)?;
    snapshot.check()?;
    Ok(snapshot)
}
