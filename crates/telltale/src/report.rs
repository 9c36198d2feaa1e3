//! `telltale report`: one process over its whole life, finished or not.

use telltale_sources::PastSource;

use crate::arguments::ReportArguments;
use crate::exit::{Failure, Status};
use crate::output::StandardOutput;

/// Runs the command.
pub(crate) fn run(arguments: &ReportArguments) -> Result<Status, Failure> {
    let output = StandardOutput::detect();
    let reports = PastSource::find(&arguments.history.of(&arguments.place))
        .and_then(|past| past.report(&arguments.process))
        .map_err(|error| Failure::because(&error))?;
    let style = output.style();
    let (text, status) = match (reports.as_slice(), arguments.json) {
        ([one], true) => (line(serde_json::to_string(one)), Status::Fine),
        (several, true) => (line(serde_json::to_string(several)), Status::Partial),
        ([one], false) => (telltale_smi::report(one, &style), Status::Fine),
        (several, false) => {
            let words = format!("{} processes are called so; choose one:\n", several.len());
            (words + &telltale_smi::choices(several, &style), Status::Partial)
        }
    };
    output.print(&text)?;
    Ok(status)
}

fn line(json: serde_json::Result<String>) -> String {
    json.expect("reports have only string keys") + "\n"
}
