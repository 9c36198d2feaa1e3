//! `telltale replay`: a recorded trace on an emulated chip, recorded as a runtime would.

mod chip;
mod measure;
mod paced;
mod steps;

use std::borrow::Cow;
use std::io::BufReader;

use telltale_runtime::{Options, Runtime};
use telltale_trace::Trace;

use crate::arguments::{ReplayArguments, Speed};
use crate::exit::{Failure, Status};
use crate::interrupt::Interrupt;
use crate::output::StandardOutput;
use crate::parent;

/// Runs the command.
pub(crate) fn run(arguments: &ReplayArguments) -> Result<Status, Failure> {
    let interrupt = Interrupt::listen().map_err(|error| Failure::because(&error))?;
    if arguments.end_with_parent.is_some_and(|parent| !parent::tie_to(parent)) {
        return Ok(Status::Fine);
    }
    let output = StandardOutput::detect();
    let (name, trace) = load(arguments)?;
    let mut chip = chip::ReplayedChip::open(arguments.place.root.as_deref(), arguments.device)?;
    let runtime = Runtime::start(Options {
        directory: arguments.place.runtime_dir.clone(),
        root: arguments.place.root.clone(),
        ..Options::new(concat!("telltale replay ", env!("CARGO_PKG_VERSION")))
    });
    let device = runtime.open_device(chip.description());
    output.print(&format!(
        "{name}: {} records over {:.1} s, peak {}, on {}\n",
        trace.summary().records,
        trace.summary().duration_ns as f64 / 1e9,
        telltale_schema::quantity::bytes(trace.summary().peak_live_bytes),
        chip.name(),
    ))?;
    let report = match arguments.speed {
        Speed::Max => {
            let steps = steps::resolve(&trace, arguments.l1_up_to, &mut chip)?;
            measure::run(&steps, &device, &interrupt)
        }
        Speed::Times(times) => {
            let pace = paced::Pace { times, repeat: arguments.repeat };
            paced::run(&trace, pace, arguments.l1_up_to, &mut chip, &device, &interrupt)?
        }
    };
    output.print(&report)?;
    Ok(Status::Fine)
}

fn load(arguments: &ReplayArguments) -> Result<(Cow<'_, str>, Trace), Failure> {
    let name = arguments.trace.to_string_lossy();
    let shipped = telltale_trace::shipped().into_iter().find(|shipped| shipped.name == name);
    let trace = match shipped {
        Some(shipped) => Trace::read(shipped.bytes),
        None => {
            let file = telltale_sources::open(&arguments.trace).map_err(|error| {
                Failure::Message(format!(
                    "opening the trace {name} failed: {error}; give a file, `train` or `generate`"
                ))
            })?;
            Trace::read(BufReader::new(file))
        }
    };
    match trace {
        Ok(trace) => Ok((name, trace)),
        Err(error) => Err(Failure::Message(format!(
            "{name} is no usable trace: {}; docs/traces.md shows how to record one",
            Failure::because(&error)
        ))),
    }
}
