//! `telltale history`: series over time, or what was wrong, from what a service has recorded.

use std::time::Duration;

use telltale_collector::clock::SystemClock;
use telltale_schema::clock::Clock;
use telltale_schema::history::{HistoryQuery, Subjects};
use telltale_sources::PastSource;

use crate::arguments::HistoryArguments;
use crate::exit::{Failure, Status};
use crate::output::StandardOutput;

/// Runs the command.
pub(crate) fn run(arguments: &HistoryArguments) -> Result<Status, Failure> {
    let output = StandardOutput::detect();
    let now = SystemClock.now();
    let (from, to) = (arguments.since.at(now), arguments.until.at(now));
    if from >= to {
        return Err(Failure::Usage(String::from("--since is not before --until; swap them")));
    }
    let query = HistoryQuery {
        from,
        to,
        step_ms: arguments.step.map(milliseconds),
        subjects: if arguments.faults { Subjects::Faults } else { Subjects::All },
        devices: arguments.device.clone(),
        processes: arguments.process.clone(),
        metrics: arguments.metric.clone(),
    };
    let answer = PastSource::find(&arguments.history.of(&arguments.place))
        .and_then(|past| past.query(&query))
        .map_err(|error| Failure::because(&error))?;
    let text = match (arguments.json, arguments.csv, arguments.faults) {
        (true, ..) => serde_json::to_string(&answer).expect("it has only string keys") + "\n",
        (_, true, false) => telltale_smi::csv::history(&answer),
        (_, true, true) => telltale_smi::csv::past_faults(&answer),
        (.., false) => telltale_smi::history(&answer, &output.style()),
        (.., true) => telltale_smi::past_faults(&answer, &output.style()),
    };
    output.print(&text)?;
    Ok(Status::Fine)
}

fn milliseconds(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
