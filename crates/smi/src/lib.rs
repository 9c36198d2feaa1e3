//! What a person or a script sees of a snapshot: tables, details, CSV. Nothing here measures,
//! adds up or reads anything: every figure is in the snapshot already.
#![forbid(unsafe_code)]

pub mod csv;
mod details;
mod devices;
mod processes;
pub mod quantity;
mod style;
mod table;

pub use details::details;
pub use style::{Style, Tone};

use telltale_schema::snapshot::Snapshot;

/// The two tables that `telltale smi` prints: devices, then the processes that hold them. Ends
/// with a line for each source that failed in part.
pub fn overview(snapshot: &Snapshot, style: &Style) -> String {
    let mut page = devices::table(snapshot).render(style);
    page.push('\n');
    page.push_str(&processes::section(snapshot, style));
    page.push_str(&details::complaints(snapshot, style));
    page
}
