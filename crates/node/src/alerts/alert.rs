//! What the rules of alerts bring about: an alert fires, or is resolved.

use telltale_schema::alert::Alert;

/// What changed.
#[derive(Debug, Clone, PartialEq)]
pub enum Transition {
    /// The alert fires from now on.
    Fired(Alert),
    /// It no longer does; the alert as it last was.
    Resolved(Alert),
}
