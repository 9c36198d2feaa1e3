//! `telltale demo`: an emulated n300, two processes that train a GPT or replay real traces on it, and on a
//! terminal the view of `telltale top`, else the tables of `telltale smi -w`; or a cluster ([`cluster`]).
//! Whatever it started or made is gone when it ends.

mod cluster;
mod losses;
mod next;
mod stage;

use std::time::{Duration, Instant};

use telltale_collector::{Collector, EndpointUse};
use telltale_emulator::check_compiler;
use telltale_schema::snapshot::Snapshot;
use telltale_schema::text::with_causes;
use telltale_smi::screen::Pane;

use crate::arguments::{DemoArguments, LocationArguments, Workload};
use crate::exit::{self, Failure, Status};
use crate::interrupt::Interrupt;
use crate::output::StandardOutput;
use crate::smi::{self, OutputFormat, SnapshotView, WatchOptions};
use crate::top::{self, StagedView};
use stage::Stage;

/// What the machine is called in the view.
const MACHINE: &str = "emulated n300";
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
    let mut stage = Stage::build(arguments.workload.unwrap_or_else(usual_workload))?;
    let place = LocationArguments { root: Some(stage.root().to_path_buf()), runtime_dir: None };
    let form =
        if arguments.json { OutputFormat::Json } else { OutputFormat::Tables { details: false } };
    let view = SnapshotView::whole(form);
    let mut options = smi::options(&place, view);
    if stage.workload == Workload::Gpt {
        // Losses are reported by endpoints alone.
        options.endpoints = EndpointUse::Always;
    }
    let mut collector = Collector::new(options).map_err(|error| Failure::because(&error))?;
    stage.wait_for_workloads(&mut collector, &interrupt);
    let shown = if !arguments.json && top::fits(&output) {
        show_view(arguments, place, &mut stage, &interrupt)
    } else {
        show_pages(arguments, view, &mut stage, &mut collector, &output, &interrupt)
    };
    let last = shown.map(|()| collector.collect());
    interrupt.finish_undisturbed();
    stage.strike()?;
    let last = last?;
    if !arguments.json {
        let table = telltale_smi::summary(&last, &output.style());
        let losses = losses::lines(&last).map(|lines| lines + "\n").unwrap_or_default();
        let next = next::words(&next::AFTER_MACHINE);
        output.print(&format!(
            "At the end:\n{table}{losses}The emulated machine and both processes are gone.\n{next}"
        ))?;
    }
    Ok(Status::Fine)
}

/// What is shown unless it is said: trainings, which need a C compiler.
fn usual_workload() -> Workload {
    match check_compiler() {
        Ok(()) => Workload::Gpt,
        Err(error) => {
            let causes = with_causes(&error);
            exit::tell(&format!(
                "telltale: recorded traces are replayed instead of a training: {causes}"
            ));
            Workload::Trace
        }
    }
}

/// Shows the machine full-screen until it is asked to end.
fn show_view(
    arguments: &DemoArguments,
    place: LocationArguments,
    stage: &mut Stage,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let trains = stage.workload == Workload::Gpt;
    let view = StagedView {
        place,
        period: PERIOD,
        pane: if trains { Pane::Losses } else { Pane::default() },
        host: MACHINE,
        welcome: format!("Demo: {}. h: the keys, q: end.", title(stage.workload)),
        until: arguments.seconds.map(|span| Instant::now() + span),
    };
    view.run(&mut || {
        stage.check_workloads(interrupt)?;
        Ok(interrupt.asked())
    })
}

/// Prints or repaints tables until it is asked to end, or for a while where it does not repaint.
fn show_pages(
    arguments: &DemoArguments,
    view: SnapshotView<'_>,
    stage: &mut Stage,
    collector: &mut Collector,
    output: &StandardOutput,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let trains = stage.workload == Workload::Gpt;
    let mut span = arguments.seconds;
    if span.is_none() && !output.is_repainted() {
        if trains {
            stage.wait_for_losses(collector, interrupt)?;
        }
        span = Some(UNWATCHED);
    }
    let until = span.map(|span| Instant::now() + span);
    let below = if trains { losses::lines } else { |_: &Snapshot| None };
    // The way out comes first, because narrow terminals cut the end.
    let title = format!("Ctrl-C ends this demo: {}", title(stage.workload));
    let watch = WatchOptions { period: PERIOD, until, view, title: &title, below };
    let check = |_: &mut Collector| stage.check_workloads(interrupt).map(|()| None);
    watch.run(collector, output, interrupt, check).map(|_| ())
}

/// What is being shown.
fn title(workload: Workload) -> &'static str {
    match workload {
        Workload::Gpt => "emulated n300, two small GPTs in training",
        Workload::Trace => "emulated n300, two real traces replayed",
    }
}
