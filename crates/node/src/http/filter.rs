//! The `filter` of an address, as docs/query.md has it, and the snapshot with only the rows that it
//! wants. It is asked of what the reader may see, and of nothing else.

use axum::body::Bytes;
use axum::http::StatusCode;
use telltale_query::Query;

use super::App;
use crate::access::{TooSlow, Visibility};
use crate::service::Published;
use telltale_server::problem::Problem;

/// The query among the parameters of an address; none where there is none, or an empty one.
///
/// # Errors
/// With the column where it stops making sense, and for parameters that there are not.
pub(super) fn read(pairs: &[(String, String)]) -> Result<Option<Query>, Problem> {
    let refused = |detail: String| Problem::new(StatusCode::BAD_REQUEST, detail);
    let mut found = None;
    for (name, value) in pairs {
        if name != "filter" {
            return Err(refused(format!("there is no parameter {name}; there is filter")));
        }
        if found.replace(value).is_some() {
            return Err(refused(String::from("filter is there twice; join both by `and`")));
        }
    }
    let Some(text) = found.filter(|text| !text.trim().is_empty()) else { return Ok(None) };
    let unreadable = |error: telltale_query::QueryError| {
        refused(format!("filter, {error}")).member("column", error.column + 1)
    };
    Query::parse(text).map(Some).map_err(unreadable)
}

/// The snapshot as JSON, in one line; with a filter, the rows that it wants.
pub(super) fn json(
    app: &App,
    of: &Published,
    visibility: Visibility,
    filter: Option<&Query>,
) -> Result<Bytes, TooSlow> {
    match filter {
        None => Ok(app.cache.json(app, of, visibility)),
        Some(query) => {
            let rows = app.policy.chosen(&of.snapshot, visibility, query)?;
            Ok(super::cache::whole(app, of, visibility, &rows))
        }
    }
}

pub(super) fn too_slow(error: TooSlow) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string())
}
