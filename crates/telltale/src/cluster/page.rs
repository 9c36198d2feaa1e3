//! A report of a job's training steps as a page in one file.

use std::path::Path;

use telltale_collector::clock::SystemClock;
use telltale_control_plane::server::report_page;
use telltale_control_plane::view::{JobStepsView, StatusView};
use telltale_schema::calendar;
use telltale_schema::clock::Clock;

use super::{ClusterQuery, replacing, report};
use crate::exit::{Failure, Status};

/// Asks the coordinator and writes the page. A file that was there is replaced once the page is whole.
pub(super) fn write(asking: &ClusterQuery, file: &Path) -> Result<Status, Failure> {
    let asked = asking
        .ask(async |client| Ok((client.status().await?, client.steps().await?)))
        .map_err(|error| Failure::because(&error))?;
    let (status, steps) = (StatusView::from(&asked.0), JobStepsView::from(&asked.1));
    if steps.latest.is_none() {
        return asking.printer.refused(report::NONE);
    }
    let now = calendar::format(SystemClock.now());
    let about = format!("{}; epoch {}. As of {now}.", status.sentence(), status.epoch);
    let page = report_page(&format!("Telltale · job {}", status.job), &about, &steps);
    replacing::replace(file, ("page", "--page"), |to| to.write_all(page.as_bytes()))?;
    Ok(Status::Fine)
}
