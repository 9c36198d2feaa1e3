//! The incidents that a coordinator's journal keeps, also once the coordinator has ended.

use std::path::Path;

use telltale_control_plane::server::Incidents;
use telltale_control_plane::view::ExplanationView;
use telltale_schema::text::with_causes;

use super::Printer;
use crate::exit::{Failure, Status};

/// Lists the latest incidents of the journal at `path`.
pub(super) fn incidents(
    printer: &Printer,
    path: &Path,
    limit: Option<u32>,
) -> Result<Status, Failure> {
    let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    printer.print(&printer.incidents(&read(path)?.list(limit)))
}

/// Shows an incident of the journal at `path`: the one with this number, or the newest.
pub(super) fn explain(
    printer: &Printer,
    path: &Path,
    incident: Option<&str>,
) -> Result<Status, Failure> {
    match read(path)?.get(incident.unwrap_or_default()) {
        Some(found) => printer.print(&printer.explanation(&ExplanationView::from(&found))),
        None => printer.refused(&match incident {
            Some(id) => format!("the journal keeps no incident {id}; `incidents` lists them"),
            None => String::from("the journal keeps no incident"),
        }),
    }
}

fn read(path: &Path) -> Result<Incidents, Failure> {
    Incidents::of_journal(path).map_err(|error| {
        let remedy = "--journal names the directory that the coordinator has as --journal";
        Failure::Message(format!("{}; {remedy}", with_causes(&error)))
    })
}
