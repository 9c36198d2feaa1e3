//! The `filter` of a request, as docs/query.md has it.

use telltale_query::Query;
use tonic::Status;

use crate::access::TooSlow;

/// The query; none for an empty text, which is every client's that knows of no filter.
///
/// # Errors
/// With the column where it stops making sense.
pub(super) fn read(filter: &str) -> Result<Option<Query>, Status> {
    if filter.is_empty() {
        return Ok(None);
    }
    let refused = |error| Status::invalid_argument(format!("filter, {error}"));
    Query::parse(filter).map(Some).map_err(refused)
}

pub(super) fn too_slow(error: TooSlow) -> Status {
    Status::resource_exhausted(error.to_string())
}
