//! What a training reports: lines on standard output, and its own metrics on the endpoint.

use std::time::{Duration, Instant};

use serde_json::json;
use telltale_gpt::parallel::{LinkError, RingError};
use telltale_gpt::{Activations, KERNELS_OF_A_STEP, SharedStepError, Training};
use telltale_operations::Session;
use telltale_runtime::{Gauge, Registry, Runtime};

use super::compiling::CompilingProgress;
use super::prints::Prints;
use super::ranks::Ranks;
use crate::exit::Failure;
use crate::output::StandardOutput;

/// The metric that has the loss of the last step.
const LOSS: &str = "gpt_loss";
/// The metric that has the number of the last step.
const STEP: &str = "gpt_step";
/// The metric that has the tokens learned from in a second; a token is a character.
const SPEED: &str = "gpt_tokens_per_second";

/// Tells of a training as it goes on.
pub(super) struct TrainingProgress {
    output: StandardOutput,
    json: bool,
    registry: Registry,
    prints: Prints,
    /// From the first step on: before it there is no value to show.
    gauges: Option<Gauges>,
}

/// What became of a step.
pub(super) enum Stepped {
    /// It is done.
    Done,
    /// This process was asked to end in the middle of it; the training is as it was before.
    Asked,
    /// The other ranks are gone; the training is as it was before.
    Parted(Failure),
}

struct Gauges {
    loss: Gauge,
    step: Gauge,
    tokens_per_second: Gauge,
}

impl TrainingProgress {
    pub(super) fn begin(
        output: StandardOutput,
        json: bool,
        runtime: &Runtime,
        prints: Prints,
    ) -> Self {
        Self { output, json, registry: runtime.registry(), prints, gauges: None }
    }

    /// What is trained, and where.
    pub(super) fn report_start(
        &self,
        training: &Training,
        ranks: Option<&Ranks>,
        chip: &str,
    ) -> Result<(), Failure> {
        let numbers = training.parameter_count();
        let (sizes, mode) = (training.config(), training.session().cache().mode().to_string());
        let line = if self.json {
            let sizes: serde_json::Map<_, _> = sizes
                .named()
                .map(|(name, size)| (name.to_owned(), size.into()))
                .into_iter()
                .collect();
            let mut line = json!({"chip": chip, "parameters": numbers, "sizes": sizes,
                "cache": mode, "steps_before": training.steps()});
            if let Some(ranks) = ranks {
                let member = ranks.ring.member();
                line["rank"] = member.rank().into();
                line["ranks"] = member.world_size().into();
                line["epoch"] = member.epoch().into();
                line["checkpoint_of"] = ranks.passed_by.into();
            }
            line.to_string()
        } else {
            let sizes = sizes.named().map(|(name, size)| format!("{name} {size}")).join(", ");
            let before = match training.steps() {
                0 => String::new(),
                steps => format!(", resumed after step {steps}"),
            };
            let place = ranks.map_or_else(String::new, Ranks::in_words);
            format!(
                "{numbers} parameters ({sizes}) on chip {chip}, program cache {mode}{place}{before}"
            )
        };
        self.line(&line)
    }

    /// Does a step and reports it.
    pub(super) fn step(
        &mut self,
        training: &mut Training,
        ranks: Option<&mut Ranks>,
    ) -> Result<Stepped, Failure> {
        let started = Instant::now();
        let step = training.steps() + 1;
        let compiling = self.gauges.is_none().then(|| {
            let kernels = KERNELS_OF_A_STEP + self.prints.count_due(step);
            CompilingProgress::begin(training.session().accelerator(), &self.registry, kernels)
        });
        let prints = &self.prints;
        let look = |session: &Session, found: &Activations<'_>| prints.print(step, session, found);
        let loss = match ranks {
            None => training.step_looking(look).map_err(SharedStepError::Device),
            Some(ranks) => training.step_shared(&mut ranks.ring, look),
        };
        drop(compiling);
        let loss = match loss {
            Ok(loss) => loss,
            Err(SharedStepError::Ring(RingError::Link(LinkError::Stopped))) => {
                return Ok(Stepped::Asked);
            }
            Err(SharedStepError::Ring(error)) => {
                return Ok(Stepped::Parted(Failure::because(&error)));
            }
            Err(error) => return Err(Failure::because(&error)),
        };
        let took = started.elapsed();
        self.prints.print_loss(loss);
        let printed = self.prints.take(self.json)?;
        self.report_step(training, loss, took)?;
        self.output.print(&printed)?;
        Ok(Stepped::Done)
    }

    fn report_step(
        &mut self,
        training: &Training,
        loss: f32,
        took: Duration,
    ) -> Result<(), Failure> {
        let step = training.steps();
        let tokens_per_second =
            f64::from(training.config().tokens_in_step()) / took.as_secs_f64().max(1e-9);
        let registry = &self.registry;
        let gauges = self.gauges.get_or_insert_with(|| Gauges::register(registry));
        gauges.loss.set(f64::from(loss));
        gauges.step.set(step as f64);
        gauges.tokens_per_second.set(tokens_per_second);
        let line = if self.json {
            json!({"step": step, "loss": loss, "seconds": took.as_secs_f64(),
                "tokens_per_second": tokens_per_second})
            .to_string()
        } else {
            let milliseconds = took.as_secs_f64() * 1e3;
            format!(
                "step {step}  loss {loss:.4}  {milliseconds:.0} ms  {tokens_per_second:.0} tokens/s"
            )
        };
        self.line(&line)
    }

    /// What is left of it.
    pub(super) fn report_end(&self, training: &Training, digest: bool) -> Result<(), Failure> {
        if !digest {
            return Ok(());
        }
        let digest = training.weights_digest().map_err(|error| Failure::because(&error))?;
        let steps = training.steps();
        self.line(&if self.json {
            json!({"steps": steps, "weights_digest": format!("{digest:016x}")}).to_string()
        } else {
            format!("weights after step {steps}: {digest:016x}")
        })
    }

    fn line(&self, text: &str) -> Result<(), Failure> {
        Ok(self.output.print(&format!("{text}\n"))?)
    }
}

impl Gauges {
    fn register(registry: &Registry) -> Self {
        Self {
            loss: registry.gauge(LOSS).help("Mean loss of the last step, in nats").register(),
            step: registry.gauge(STEP).help("Number of the last step").register(),
            tokens_per_second: registry
                .gauge(SPEED)
                .help("Tokens learned from in the last step, by its time")
                .register(),
        }
    }
}
