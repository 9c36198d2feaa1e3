//! `telltale gpt`: a small GPT that is trained on an emulated chip.
//!
//! Everything that computes is in `telltale-gpt`; here are the machine, the loop, what is printed
//! and what is written.

mod compiling;
mod keeping;
mod machine;
mod prints;
mod progress;
mod ranks;
mod reporting;

use std::sync::Arc;
use std::time::Instant;

use telltale_emulator::{Accelerator, AcceleratorOptions};
use telltale_gpt::checkpoint::Checkpoint;
use telltale_gpt::text::Text;
use telltale_gpt::{Config, Training};
use telltale_operations::Session;
use telltale_program_cache::{CacheMode, CacheOptions, ProgramCache};
use telltale_runtime::{Options, Runtime, debug_output};

use crate::arguments::{GptArguments, GptSizes};
use crate::exit::{Failure, Status};
use crate::interrupt::Interrupt;
use crate::output::StandardOutput;
use crate::parent;
use keeping::Keeper;
use machine::TrainingMachine;
use prints::Prints;
use progress::{Stepped, TrainingProgress};
use ranks::{RankEnvironment, Ranks};

/// Runs the command.
pub(crate) fn run(arguments: &GptArguments) -> Result<Status, Failure> {
    let mut interrupt = Interrupt::listen().map_err(|error| Failure::because(&error))?;
    if arguments.end_with_parent.is_some_and(|parent| !parent::tie_to(parent)) {
        return Ok(Status::Fine);
    }
    let mode = mode(arguments)?;
    let config = config(&arguments.sizes);
    arguments.print.iter().try_for_each(|print| print.check(&config))?;
    let text = Text::documentation();
    let identity = Training::identity_of(config, arguments.seed, &text)
        .map_err(|error| Failure::because(&error))?;
    let place = arguments.parallel.then(RankEnvironment::from_environment).transpose()?;
    // A failure to keep checkpoints is reported before anything starts.
    let mut keeper = Keeper::open(arguments, &identity, place.as_ref().map(RankEnvironment::rank))?;
    let mut checkpoint = keeper.take_checkpoint();
    let mut ranks = None;
    if let Some(place) = place {
        let Some(joined) = place.join(&identity, checkpoint, interrupt.flag())? else {
            return Ok(Status::Partial);
        };
        (ranks, checkpoint) = (Some(joined.0), joined.1);
    }
    let machine = TrainingMachine::open(arguments.place.root.as_deref())?;
    let job = TrainingJob { mode, text, checkpoint, ranks, keeper };
    let trained = train(arguments, job, &machine, &mut interrupt);
    let struck = machine.strike();
    let status = trained?;
    struck?;
    Ok(status)
}

/// What is trained from where on, and with whom.
struct TrainingJob {
    mode: CacheMode,
    text: Text,
    checkpoint: Option<Checkpoint>,
    ranks: Option<Ranks>,
    keeper: Keeper,
}

fn train(
    arguments: &GptArguments,
    job: TrainingJob,
    machine: &TrainingMachine,
    interrupt: &mut Interrupt,
) -> Result<Status, Failure> {
    let TrainingJob { mode, text, checkpoint, mut ranks, mut keeper } = job;
    let runtime = Runtime::start(Options {
        directory: arguments.place.runtime_dir.clone(),
        root: arguments.place.root.clone(),
        ..Options::new(concat!("telltale gpt ", env!("CARGO_PKG_VERSION")))
    });
    if let Some(directory) = &arguments.debug_output_dir {
        debug_output::write_below(directory);
    }
    let (session, name) = session(arguments, mode, machine, &runtime)?;
    let training = match checkpoint {
        Some(checkpoint) => Training::resume(session, &checkpoint, text),
        None => Training::begin(session, config(&arguments.sizes), arguments.seed, text),
    };
    let mut training = training.map_err(|error| Failure::because(&error))?;
    // Where events are written to files, nothing is read here.
    let reads = !debug_output::start();
    let stream = Prints::stream(training.session());
    let prints = Prints::begin(&arguments.print, stream, reads, runtime.registry())?;
    let mut progress =
        TrainingProgress::begin(StandardOutput::detect(), arguments.json, &runtime, prints);
    progress.report_start(&training, ranks.as_ref(), &name)?;
    let wanted = arguments.steps.unwrap_or(u64::MAX);
    while training.steps() < wanted && !interrupt.asked() {
        let begun = Instant::now();
        match progress.step(&mut training, ranks.as_mut()) {
            Ok(Stepped::Done) => {}
            Ok(Stepped::Asked) => break,
            // The viewer or the training has ended; what was learned is kept as at any
            // other end.
            Err(failure @ Failure::ReaderGone) | Ok(Stepped::Parted(failure)) => {
                interrupt.finish_undisturbed();
                keeper.keep(&training)?;
                return Err(failure);
            }
            Err(failure) => return Err(failure),
        }
        if keeper.is_due(&training) {
            match &ranks {
                Some(ranks) => ranks.excused(|| keeper.keep(&training))?,
                None => keeper.keep(&training)?,
            }
        }
        if let Some(pace) = arguments.pace {
            interrupt.sleep(pace.saturating_sub(begun.elapsed()));
        }
    }
    interrupt.finish_undisturbed();
    keeper.keep(&training)?;
    progress.report_end(&training, arguments.weights_digest)?;
    // The other ranks cannot go on without one that was asked to end.
    let left_early = ranks.is_some() && training.steps() < wanted;
    Ok(Status::Fine.after(keeper.failed() || left_early))
}

/// A session on the chip that was asked for, and the chip's name.
fn session(
    arguments: &GptArguments,
    mode: CacheMode,
    machine: &TrainingMachine,
    runtime: &Runtime,
) -> Result<(Session, String), Failure> {
    let (ordinal, chip) = machine.chip(arguments.device)?;
    let options = AcceleratorOptions {
        root: Some(machine.root().to_owned()),
        ordinal,
        chip,
        ..Default::default()
    };
    let accelerator =
        Accelerator::open(&options, runtime).map_err(|error| Failure::because(&error))?;
    let name = accelerator.description().identity.display_id();
    let cache = ProgramCache::new(accelerator, CacheOptions { mode, ..CacheOptions::default() });
    let cache = Arc::new(cache);
    runtime.show_program_cache(&cache);
    Ok((Session::new(cache), name))
}

/// What the command line says of the cache, else the environment.
fn mode(arguments: &GptArguments) -> Result<CacheMode, Failure> {
    let mode = match &arguments.cache {
        Some(mode) => mode.parse(),
        None => CacheMode::from_environment(),
    };
    mode.map_err(|error| Failure::because(&error))
}

fn config(sizes: &GptSizes) -> Config {
    let usual = Config::default();
    Config {
        layers: sizes.layers.unwrap_or(usual.layers),
        heads: sizes.heads.unwrap_or(usual.heads),
        width: sizes.width.unwrap_or(usual.width),
        context: sizes.context.unwrap_or(usual.context),
        batch: sizes.batch.unwrap_or(usual.batch),
    }
}
