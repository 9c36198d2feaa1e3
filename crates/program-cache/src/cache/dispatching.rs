//! The two ways to a program: an operation's factory, or a description in full.

use std::any::TypeId;
use std::borrow::Cow;
use std::cell::Cell;
use std::sync::Arc;
use std::time::Instant;

use super::counters::{CacheEvent, Phase, PhaseTimer, ThreadNumber, nanoseconds};
use super::entry::{Made, WantedKey};
use super::error::{CheckError, DispatchError, Failure};
use super::{CacheMode, ProgramCache, SideData};
use crate::argument::Argument;
use crate::backend::Backend;
use crate::check::{compare_descriptions, compare_words, first_other_word, resolve};
use crate::descriptor::ProgramDescriptor;
use crate::descriptor::kernel::Text;
use crate::dispatch::Dispatch;
use crate::flat::FlatProgram;
use crate::key::{Key, KeyEncoder, KeyKind, ProgramKey};
use crate::operation::{FactoryError, OperandSpecs, Operation};
use crate::plan::PatchPlan;
use crate::update::{UpdateError, Updates};

thread_local! {
    /// Where keys are written. It is taken out while in use, so a dispatch within a dispatch
    /// finds none and makes its own.
    static ENCODER: Cell<Option<Box<KeyEncoder>>> = const { Cell::new(None) };
}

/// This thread's encoder, until it is dropped.
struct Borrowed(Option<Box<KeyEncoder>>);

impl Borrowed {
    #[inline]
    fn take() -> Self {
        Self(Some(ENCODER.take().unwrap_or_default()))
    }

    #[inline]
    fn encoder(&mut self) -> &mut KeyEncoder {
        self.0.as_mut().expect("it is there until it is dropped")
    }
}

impl Drop for Borrowed {
    #[inline]
    fn drop(&mut self) {
        ENCODER.set(self.0.take());
    }
}

fn wanted<'a>(key: Key<'a>, operation: Option<TypeId>) -> WantedKey<'a> {
    WantedKey { hash: key.hash(), operation, bytes: key.bytes(), collided: Cell::new(false) }
}

// === impl ProgramCache: operations ===

impl<B: Backend> ProgramCache<B> {
    /// Dispatches an operation: finds its program by attributes and operand specifications, or has
    /// it described and compiled, writes this dispatch's words into it, and hands it to `run`,
    /// which should enqueue it and return.
    ///
    /// # Errors
    /// When there is no such program, or something is missing for this dispatch; `run` is then not
    /// called.
    #[inline]
    pub fn dispatch<O: Operation, R>(
        &self,
        attributes: &O::Attributes,
        dispatch: &Dispatch<'_>,
        run: impl FnOnce(&mut B::Program) -> R,
    ) -> Result<R, DispatchError<B::Error>> {
        let thread = ThreadNumber::current();
        let make = || self.make::<O>(attributes, dispatch);
        if !self.is_enabled() {
            self.counters.count(thread, CacheEvent::Miss);
            return self.use_alone(thread, make, |using| Ok(run(using.program)));
        }
        let mut watch = PhaseTimer::start();
        let mut borrowed = Borrowed::take();
        let key = operation_key::<O>(borrowed.encoder(), attributes, dispatch);
        let wanted = wanted(key, Some(TypeId::of::<O>()));
        watch.mark(Phase::Key);
        let result = self.obtain(&wanted, thread, &mut watch, make, |using, watch| {
            if !using.is_fresh {
                self.update::<O>(using.side, using.program, attributes, dispatch)?;
                watch.mark(Phase::Update);
                if self.mode == CacheMode::Check {
                    let check = || self.check::<O>(using.side, using.program, attributes, dispatch);
                    self.counted_check(thread, check)?;
                }
            }
            Ok(run(using.program))
        });
        watch.finish(&self.counters, thread);
        result
    }

    /// Whether the program of this dispatch is in the cache at this moment, so that dispatching it
    /// would compile nothing. Counts no hit and spares no entry from eviction.
    #[must_use]
    pub fn holds<O: Operation>(&self, attributes: &O::Attributes, dispatch: &Dispatch<'_>) -> bool {
        let mut borrowed = Borrowed::take();
        let key = operation_key::<O>(borrowed.encoder(), attributes, dispatch);
        let wanted = wanted(key, Some(TypeId::of::<O>()));
        self.table.index.find(&wanted, &self.table.index.pin()).is_some()
    }

    /// Describes and compiles the program of an operation.
    fn make<O: Operation>(
        &self,
        attributes: &O::Attributes,
        dispatch: &Dispatch<'_>,
    ) -> Result<Made<B::Program, SideData>, Failure<B::Error>> {
        let operation = || Text::Borrowed(O::name(attributes));
        let specs = OperandSpecs::new(dispatch.operands, O::ALIASING);
        let symbolic = O::create(attributes, specs).map_err(|error| Failure::Factory {
            operation: operation(),
            source: Arc::new(error),
        })?;
        let resolved = resolve(&symbolic, dispatch)
            .map_err(|source| Failure::Symbol { operation: operation(), source })?;
        let program = self.compile(&resolved).map_err(|error| Failure::Compile {
            operation: operation(),
            source: Arc::new(error),
        })?;
        let plan = Some(PatchPlan::of(&symbolic));
        let symbolic = (self.mode == CacheMode::Check).then_some(symbolic);
        Ok(self.made(program, SideData { name: operation(), plan, symbolic }))
    }

    /// Writes the words of a dispatch into a program that was found.
    #[inline]
    fn update<O: Operation>(
        &self,
        side: &SideData,
        program: &mut B::Program,
        attributes: &O::Attributes,
        dispatch: &Dispatch<'_>,
    ) -> Result<(), DispatchError<B::Error>> {
        let result = match (O::HYBRID.update, &side.plan) {
            (Some(update), _) => {
                let write = |arguments: &mut _| update(attributes, dispatch, arguments);
                self.backend.apply(program, Updates::custom(&write))
            }
            (None, Some(plan)) => self.backend.apply(program, Updates::planned(plan, dispatch)),
            // An operation's entries all have a plan; without one there is nothing to write.
            (None, None) => Ok(()),
        };
        result.map_err(|source| update_error(O::name(attributes), source))
    }

    /// Compares a program, ready to run, with what the operation describes now.
    fn check<O: Operation>(
        &self,
        side: &SideData,
        program: &B::Program,
        attributes: &O::Attributes,
        dispatch: &Dispatch<'_>,
    ) -> Result<(), DispatchError<B::Error>> {
        let operation = || Text::Borrowed(O::name(attributes));
        let specs = OperandSpecs::new(dispatch.operands, O::ALIASING);
        let rebuilt = O::create(attributes, specs).map_err(|error| DispatchError::Factory {
            operation: operation(),
            source: Arc::new(error),
        })?;
        let described = side.symbolic.as_ref();
        let difference = described.and_then(|found| compare_descriptions(found, &rebuilt));
        let in_words = || {
            let written = self.backend.arguments(program);
            compare_words(written, &rebuilt, dispatch)
        };
        let error = match difference {
            Some(difference) => Some(CheckError::Description(difference)),
            None => in_words().map(CheckError::Word),
        };
        error.map_or(Ok(()), |source| Err(DispatchError::Check { operation: operation(), source }))
    }

    fn counted_check(
        &self,
        thread: ThreadNumber,
        check: impl FnOnce() -> Result<(), DispatchError<B::Error>>,
    ) -> Result<(), DispatchError<B::Error>> {
        let started = Instant::now();
        let checked = check();
        self.counters.add_time(thread, Phase::Check, nanoseconds(started.elapsed()));
        self.counters.count(thread, CacheEvent::Check);
        if checked.is_err() {
            self.counters.count(thread, CacheEvent::FailedCheck);
        }
        checked
    }
}

/// Writes the key of an operation's dispatch.
#[inline]
fn operation_key<'a, O: Operation>(
    encoder: &'a mut KeyEncoder,
    attributes: &O::Attributes,
    dispatch: &Dispatch<'_>,
) -> Key<'a> {
    let specs = OperandSpecs::new(dispatch.operands, O::ALIASING);
    encoder.begin(KeyKind::Operation);
    encoder.text(O::NAME);
    match O::HYBRID.key {
        Some(write) => write(attributes, specs, encoder),
        // The operation's type is compared too, and says what type the attributes are.
        None => {
            attributes.encode_value(encoder);
            specs.encode(encoder);
        }
    }
    encoder.key()
}

fn update_error<E: std::error::Error>(
    operation: impl Into<Text>,
    source: UpdateError,
) -> DispatchError<E> {
    DispatchError::Update { operation: operation.into(), source }
}

// === impl ProgramCache: descriptions in full ===

impl<B: Backend> ProgramCache<B> {
    /// Dispatches a program that was described for this dispatch: finds one with the same
    /// structure or has this one compiled, copies all words into it, and hands it to `run`, which
    /// should enqueue it and return.
    ///
    /// # Errors
    /// When the program cannot be compiled; `run` is then not called.
    pub fn dispatch_described<R>(
        &self,
        descriptor: &ProgramDescriptor,
        run: impl FnOnce(&mut B::Program) -> R,
    ) -> Result<R, DispatchError<B::Error>> {
        let mut watch = PhaseTimer::start();
        let mut borrowed = Borrowed::take();
        let key = descriptor.key(borrowed.encoder());
        watch.mark(Phase::Key);
        let make = || self.make_described(descriptor);
        self.dispatch_keyed(key, &mut watch, make, Updates::described(descriptor), run)
    }

    /// The same for a program that was described flat: its key is written already, and its words
    /// are copied in one piece.
    ///
    /// # Errors
    /// As of [`ProgramCache::dispatch_described`].
    #[inline]
    pub fn dispatch_flat<R>(
        &self,
        program: &FlatProgram<'_>,
        run: impl FnOnce(&mut B::Program) -> R,
    ) -> Result<R, DispatchError<B::Error>> {
        let mut watch = PhaseTimer::start();
        let make = || {
            let nested = program.to_descriptor().map_err(|error| Failure::Factory {
                operation: Text::Borrowed("a flat description"),
                source: Arc::new(FactoryError::Unsupported(error.to_string().into())),
            })?;
            self.make_described(&nested)
        };
        self.dispatch_keyed(program.key(), &mut watch, make, Updates::words(program.words()), run)
    }

    /// What both have in common.
    #[inline]
    fn dispatch_keyed<R>(
        &self,
        key: Key<'_>,
        watch: &mut PhaseTimer,
        make: impl FnOnce() -> Result<Made<B::Program, SideData>, Failure<B::Error>>,
        updates: Updates<'_>,
        run: impl FnOnce(&mut B::Program) -> R,
    ) -> Result<R, DispatchError<B::Error>> {
        let thread = ThreadNumber::current();
        if !self.is_enabled() {
            self.counters.count(thread, CacheEvent::Miss);
            return self.use_alone(thread, make, |using| Ok(run(using.program)));
        }
        let wanted = wanted(key, None);
        let result = self.obtain(&wanted, thread, watch, make, |using, watch| {
            if !using.is_fresh {
                let applied = self.backend.apply(using.program, updates);
                applied.map_err(|source| update_error(using.side.name.clone(), source))?;
                watch.mark(Phase::Update);
                if self.mode == CacheMode::Check {
                    let check = || self.check_words(using.side, using.program, &updates);
                    self.counted_check(thread, check)?;
                }
            }
            Ok(run(using.program))
        });
        watch.finish(&self.counters, thread);
        result
    }

    fn make_described(
        &self,
        descriptor: &ProgramDescriptor,
    ) -> Result<Made<B::Program, SideData>, Failure<B::Error>> {
        let program = self.compile(descriptor).map_err(|error| Failure::Compile {
            operation: name_of(descriptor),
            source: Arc::new(error),
        })?;
        let symbolic =
            (self.mode == CacheMode::Check).then(|| descriptor.map(|word| Argument::Word(*word)));
        Ok(self.made(program, SideData { name: name_of(descriptor), plan: None, symbolic }))
    }

    /// The structure of a program that is described in full is its key, so only words can differ:
    /// those of the program from those that were to be written.
    fn check_words(
        &self,
        side: &SideData,
        program: &B::Program,
        updates: &Updates<'_>,
    ) -> Result<(), DispatchError<B::Error>> {
        let Some(described) = &side.symbolic else { return Ok(()) };
        let operation = || side.name.clone();
        let written = self.backend.arguments(program);
        let mut wanted = written.clone();
        updates.write_to(&mut wanted).map_err(|source| update_error(operation(), source))?;
        first_other_word(written, &wanted, described).map_or(Ok(()), |difference| {
            let source = CheckError::Word(difference);
            Err(DispatchError::Check { operation: operation(), source })
        })
    }
}

/// What people call a program that was described in full.
fn name_of(descriptor: &ProgramDescriptor) -> Text {
    descriptor.kernels.first().map_or(Cow::Borrowed("empty program"), |one| one.name.clone())
}
