//! `telltale demo`: an emulated n300, two processes that train a GPT or replay real traces on it,
//! and the table that `telltale smi -w` shows; or a cluster ([`cluster`]). Whatever it started or made is gone when it ends.

mod cluster;
mod losses;
mod stage;

use std::time::{Duration, Instant};

use telltale_collector::{Collector, EndpointUse};
use telltale_schema::snapshot::Snapshot;

use crate::arguments::{DemoArguments, LocationArguments, Workload};
use crate::exit::{Failure, Status};
use crate::interrupt::Interrupt;
use crate::output::StandardOutput;
use crate::smi::{self, OutputFormat, SnapshotView, WatchOptions};
use stage::Stage;

/// Time between two snapshots.
const PERIOD: Duration = Duration::from_secs(1);
/// How long the demo runs without a terminal.
const UNWATCHED: Duration = Duration::from_secs(10);

/// Runs the command.
pub(crate) fn run(arguments: &DemoArguments) -> Result<Status, Failure> {
    if arguments.cluster {
        return cluster::run(arguments);
    }
    let output = StandardOutput::detect();
    let mut interrupt = Interrupt::listen().map_err(|error| Failure::because(&error))?;
    let mut stage = Stage::build(arguments.workload)?;
    let form =
        if arguments.json { OutputFormat::Json } else { OutputFormat::Tables { details: false } };
    let place = LocationArguments { root: Some(stage.root().to_path_buf()), runtime_dir: None };
    let view = SnapshotView::whole(form);
    let mut options = smi::options(&place, view);
    let trains = arguments.workload == Workload::Gpt;
    if trains {
        // Losses are reported by endpoints alone.
        options.endpoints = EndpointUse::Always;
    }
    let mut collector = Collector::new(options).map_err(|error| Failure::because(&error))?;
    stage.wait_for_workloads(&mut collector, &interrupt);
    let mut span = arguments.seconds;
    if span.is_none() && !output.is_repainted() {
        if trains {
            stage.wait_for_losses(&mut collector, &interrupt)?;
        }
        span = Some(UNWATCHED);
    }
    let until = span.map(|span| Instant::now() + span);
    let below = if trains { losses::lines } else { |_: &Snapshot| None };
    let watch =
        WatchOptions { period: PERIOD, until, view, title: title(arguments.workload), below };
    let watched = watch.run(&mut collector, &output, &interrupt, |_| {
        stage.check_workloads(&interrupt).map(|()| None)
    });
    interrupt.finish_undisturbed();
    stage.strike()?;
    let last = watched?;
    if !arguments.json {
        let table = telltale_smi::summary(&last, &output.style());
        output.print(&format!(
            "At the end:\n{table}The emulated machine and both processes are gone.\n"
        ))?;
    }
    Ok(Status::Fine)
}

/// What is being shown; the way out comes first, because narrow terminals cut the end.
fn title(workload: Workload) -> &'static str {
    match workload {
        Workload::Gpt => "Ctrl-C ends this demo: emulated n300, two small GPTs in training",
        Workload::Trace => "Ctrl-C ends this demo: emulated n300, two real traces replayed",
    }
}
