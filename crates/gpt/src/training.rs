//! A training: weights and moments on the device, and the steps that change them. A step depends
//! on the seed, the text, the weights and its number alone.

use rapidhash::v3::rapidhash_v3;
use telltale_operations::{AdamW, AdamWState, OperationError, Session, Tensor, row_major};
use telltale_program_cache::DataFormat;

use crate::activation::Activations;
use crate::checkpoint::{Checkpoint, Identity, Moments};
use crate::config::{Config, ConfigError};
use crate::model::{self, Gradients};
use crate::parallel::{ParallelRank, Ring, RingError};
use crate::text::Text;
use crate::weights::{Weight, Weights};

/// Steps over which the learning rate rises to its full size.
const WARM_UP_STEPS: u64 = 20;
/// The constants of the optimiser at the full learning rate, for weights that decay.
const OPTIMISER: AdamW =
    AdamW { learning_rate: 3e-3, beta1: 0.9, beta2: 0.99, epsilon: 1e-8, weight_decay: 0.01 };

/// A model that is being trained.
#[derive(Debug)]
pub struct Training {
    session: Session,
    text: Text,
    identity: Identity,
    described: Weights<Weight>,
    weights: Weights<Tensor>,
    /// The first and second moments.
    moments: Weights<[Tensor; 2]>,
    steps: u64,
}

/// Windows of text on the device, and what follows each of their tokens.
#[derive(Debug)]
pub struct Batch {
    inputs: Tensor,
    targets: Tensor,
}

/// Why a training does not begin, or not where a checkpoint says.
#[derive(Debug, thiserror::Error)]
pub enum ResumeError {
    /// The sizes make no model.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The text is shorter than a window.
    #[error("the text has {tokens} characters, and a window and what follows it has {needed}")]
    ShortText {
        /// What it has.
        tokens: usize,
        /// What it must have at least.
        needed: usize,
    },
    /// The device did not take the weights.
    #[error("the weights did not get to the device")]
    Device(#[from] OperationError),
}

/// Why a step of several ranks was not done.
#[derive(Debug, thiserror::Error)]
pub enum SharedStepError {
    /// The device failed; the training cannot go on.
    #[error(transparent)]
    Device(#[from] OperationError),
    /// The other ranks are not there any more; the training is as it was before the step.
    #[error(transparent)]
    Ring(#[from] RingError),
}

// === impl Training ===

impl Training {
    /// A training at its beginning.
    ///
    /// # Errors
    /// When the sizes make no model, the text is too short, or the device fails.
    pub fn begin(
        session: Session,
        config: Config,
        seed: u64,
        text: Text,
    ) -> Result<Self, ResumeError> {
        let identity = Self::identity_of(config, seed, &text)?;
        let described = Weights::of(&config);
        let weights = described
            .try_map(|weight| session.tensor(&spec(weight), &weight.initial_values(seed)))?;
        let moments = described.try_map(|weight| {
            Ok::<_, OperationError>([session.zeros(&spec(weight))?, session.zeros(&spec(weight))?])
        })?;
        Ok(Self { session, text, identity, described, weights, moments, steps: 0 })
    }

    /// A training where a checkpoint left it. The checkpoint has been compared with
    /// [`Training::identity_of`] when it was read.
    ///
    /// # Errors
    /// As [`begin`](Self::begin).
    pub fn resume(
        session: Session,
        checkpoint: &Checkpoint,
        text: Text,
    ) -> Result<Self, ResumeError> {
        let Identity { config, seed, .. } = checkpoint.identity;
        let identity = Self::identity_of(config, seed, &text)?;
        let described = Weights::of(&config);
        let mut saved = checkpoint.weights.iter();
        let mut moments = Vec::with_capacity(checkpoint.weights.len());
        let weights = described.try_map(|weight| {
            let saved = saved.next().expect("a checkpoint has all weights of its sizes");
            let put = |values: &[f32]| session.tensor(&spec(weight), values);
            moments.push([put(&saved.first)?, put(&saved.second)?]);
            put(&saved.value)
        })?;
        let mut moments = moments.into_iter();
        let next = |_: &Weight| Ok::<_, ResumeError>(moments.next().expect("one for each weight"));
        let moments = described.try_map(next)?;
        let steps = checkpoint.steps;
        Ok(Self { session, text, identity, described, weights, moments, steps })
    }

    /// What distinguishes a training of these sizes from others.
    ///
    /// # Errors
    /// When the sizes make no model or the text is too short.
    pub fn identity_of(config: Config, seed: u64, text: &Text) -> Result<Identity, ResumeError> {
        config.check()?;
        let (tokens, needed) = (text.len(), config.context as usize + 1);
        if tokens < needed {
            return Err(ResumeError::ShortText { tokens, needed });
        }
        Ok(Identity { config, seed, text_digest: text.digest() })
    }

    /// Learns from the next batch, and gives the mean loss before it did. The training cannot go on
    /// after an error: some weights may have changed and others not.
    ///
    /// # Errors
    /// When an operation fails.
    pub fn step(&mut self) -> Result<f32, OperationError> {
        self.step_looking(|_, _| Ok(()))
    }

    /// The same, and shows `look` what was computed on the way to the loss. Operations that it
    /// dispatches must change none of it.
    ///
    /// # Errors
    /// When an operation or `look` fails.
    pub fn step_looking(
        &mut self,
        inspect: impl FnOnce(&Session, &Activations<'_>) -> Result<(), OperationError>,
    ) -> Result<f32, OperationError> {
        let (loss, gradients) = self.gradients(ParallelRank::alone(), inspect)?;
        self.learn(&gradients)?;
        let loss = self.session.read(&loss)?;
        Ok(loss.first().copied().unwrap_or(f32::NAN))
    }

    /// The same with all ranks of a ring, which each take their share of a batch that is as many times
    /// as large. Gives the mean loss of all. When the ring fails, the training is as it was before
    /// the step.
    ///
    /// # Errors
    /// When an operation, `look` or the ring fails.
    pub fn step_shared(
        &mut self,
        ring: &mut Ring,
        inspect: impl FnOnce(&Session, &Activations<'_>) -> Result<(), OperationError>,
    ) -> Result<f32, SharedStepError> {
        let member = ring.member();
        let (loss, gradients) = self.gradients(member, inspect)?;
        // Reading waits for all of it.
        self.session.finish()?;
        let mut numbers = Vec::with_capacity(self.parameter_count() + 1);
        for gradient in gradients.iter() {
            numbers.extend(self.session.read(gradient)?);
        }
        numbers.extend(self.session.read(&loss)?);
        ring.all_reduce(&mut numbers)?;
        let mut rest = numbers.as_slice();
        for (described, gradient) in self.described.iter().zip(gradients.iter()) {
            let (values, after) = rest.split_at(described.element_count());
            self.session.write(gradient, values)?;
            rest = after;
        }
        self.learn(&gradients)?;
        let loss = rest.first().copied().unwrap_or(f32::NAN);
        Ok(loss / member.world_size() as f32)
    }

    /// The mean loss of a rank's part of the next batch, and its share of the gradient of the whole.
    fn gradients(
        &self,
        member: ParallelRank,
        inspect: impl FnOnce(&Session, &Activations<'_>) -> Result<(), OperationError>,
    ) -> Result<(Tensor, Gradients), OperationError> {
        let batch = self.next_batch(member)?;
        let session = &self.session;
        let inspect = |found: &Activations<'_>| inspect(session, found);
        let share = 1.0 / member.world_size() as f32;
        let config = &self.identity.config;
        model::forward_and_backward(session, config, &self.weights, &batch, share, inspect)
    }

    /// Changes the weights, and waits until that is done.
    fn learn(&mut self, gradients: &Gradients) -> Result<(), OperationError> {
        let session = &self.session;
        let step = self.steps + 1;
        let optimiser = optimiser(step);
        let all = self.described.iter().zip(self.weights.iter()).zip(self.moments.iter());
        for (((described, parameter), [first, second]), gradient) in all.zip(gradients.iter()) {
            let decay = if described.decays() { optimiser.weight_decay } else { 0.0 };
            let constants = AdamW { weight_decay: decay, ..optimiser };
            let number = u32::try_from(step).unwrap_or(u32::MAX);
            let state = AdamWState { parameter, first, second };
            session.adamw(&constants, number, state, gradient)?;
        }
        session.finish()?;
        self.steps = step;
        Ok(())
    }

    /// How many steps were done, those before a checkpoint included.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The sizes.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.identity.config
    }

    /// How many numbers the model learns.
    #[must_use]
    pub fn parameter_count(&self) -> usize {
        self.described.iter().map(Weight::element_count).sum()
    }

    /// Where the operations go.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Everything that going on later takes.
    ///
    /// # Errors
    /// When the device fails.
    pub fn checkpoint(&self) -> Result<Checkpoint, OperationError> {
        let read = |tensor: &Tensor| self.session.read(tensor);
        let weights =
            self.weights.iter().zip(self.moments.iter()).map(|(value, [first, second])| {
                Ok(Moments { value: read(value)?, first: read(first)?, second: read(second)? })
            });
        let weights = weights.collect::<Result<_, OperationError>>()?;
        Ok(Checkpoint { identity: self.identity, steps: self.steps, weights })
    }

    /// A digest of the bits of all weights: equal weights have equal digests.
    ///
    /// # Errors
    /// When the device fails.
    pub fn weights_digest(&self) -> Result<u64, OperationError> {
        let mut bytes = Vec::new();
        for tensor in self.weights.iter() {
            bytes.extend(self.session.read(tensor)?.iter().flat_map(|value| value.to_le_bytes()));
        }
        Ok(rapidhash_v3(&bytes))
    }

    fn next_batch(&self, member: ParallelRank) -> Result<Batch, OperationError> {
        let Identity { config, seed, .. } = self.identity;
        let window = config.context as usize + 1;
        let batches = self.steps * u64::from(member.world_size()) + u64::from(member.rank());
        let first = batches * u64::from(config.batch);
        let windows = (first..first + u64::from(config.batch)).map(|number| {
            self.text.window(seed, number, window).expect("checked when the training began")
        });
        Batch::new(&self.session, &config, windows)
    }
}

// === impl Batch ===

impl Batch {
    /// A batch of windows, each one token longer than the context.
    ///
    /// # Errors
    /// When there are more or fewer, or the device fails.
    pub fn new<'a>(
        session: &Session,
        config: &Config,
        windows: impl Iterator<Item = &'a [u32]>,
    ) -> Result<Self, OperationError> {
        let (mut inputs, mut targets) = (Vec::new(), Vec::new());
        for window in windows {
            inputs.extend_from_slice(&window[..window.len() - 1]);
            targets.extend_from_slice(&window[1..]);
        }
        let inputs_spec = row_major(&[config.batch, config.context], DataFormat::UInt32);
        let targets_spec = row_major(&[config.tokens_in_step()], DataFormat::UInt32);
        Ok(Self {
            inputs: session.indices(&inputs_spec, &inputs)?,
            targets: session.indices(&targets_spec, &targets)?,
        })
    }

    /// The tokens: `[batch, context]`.
    #[must_use]
    pub fn inputs(&self) -> &Tensor {
        &self.inputs
    }

    /// What follows each: `[batch × context]`.
    #[must_use]
    pub fn targets(&self) -> &Tensor {
        &self.targets
    }
}

fn spec(weight: &Weight) -> telltale_program_cache::OperandSpec {
    row_major(&weight.shape, DataFormat::Float32)
}

/// The optimiser's constants in a step. They depend on nothing but its number, so that a training
/// may be stopped and resumed anywhere.
fn optimiser(step: u64) -> AdamW {
    let share = step.min(WARM_UP_STEPS) as f32 / WARM_UP_STEPS as f32;
    AdamW { learning_rate: OPTIMISER.learning_rate * share, ..OPTIMISER }
}
