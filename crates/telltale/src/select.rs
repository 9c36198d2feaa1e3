//! `telltale select`: devices that a job can have, as the variable of its runtime.

use serde_json::json;
use telltale_collector::Collector;
use telltale_query::DeviceChoice;
use telltale_sources::{FOR_A_DECISION, Question};

use crate::arguments::SelectArguments;
use crate::exit::{Failure, Status};
use crate::output::StandardOutput;
use crate::smi::{self, OutputFormat, SnapshotView};

/// Runs the command.
pub(crate) fn run(arguments: &SelectArguments) -> Result<Status, Failure> {
    let view = SnapshotView {
        filter: arguments.filter.as_ref(),
        ..SnapshotView::whole(OutputFormat::List)
    };
    let options = arguments.hardware.limit(smi::configured(&arguments.place, view));
    let question = Question::ask(arguments.place.sockets(), FOR_A_DECISION);
    let mut collector = Collector::new(options).map_err(|error| Failure::because(&error))?;
    // A service knows of failures that one look cannot find.
    question.teach(&mut collector);
    let snapshot = collector.collect();
    let choice = DeviceChoice {
        count: usize::from(arguments.count),
        min_free: arguments.min_free.unwrap_or(0),
        max_processes: arguments.max_processes,
        filter: arguments.filter.clone(),
    };
    let chosen = choice.choose(&snapshot, |name| std::env::var(name).ok());
    let chosen = chosen.map_err(|error| Failure::because(&error))?;
    let text = match (arguments.json, arguments.export) {
        (true, _) => {
            let ids: Vec<_> = chosen.places.iter().map(|at| &snapshot.devices[*at].id).collect();
            json!({ "variable": chosen.variable, "value": chosen.value, "devices": ids })
                .to_string()
        }
        (_, true) => format!("export {}={}", chosen.variable, chosen.value),
        (false, false) => chosen.value,
    };
    StandardOutput::detect().print(&(text + "\n"))?;
    Ok(Status::Fine)
}
