//! The proposal's two experiments on the software accelerator: a training, which waits for the
//! device, and many tiny operations followed by a wait, which the device waits for. Each with keys
//! and updates made by the cache, with hand-written ones, with checking, and without a cache.
//!
//! What is taken is processor time, of the thread that dispatches and of the whole process: it does
//! not count what other processes were given meanwhile. A second run of the automatic way is
//! a contender as well: how far it is from the first is the noise.

use std::error::Error;
use std::sync::Arc;

use rustix::time::ClockId;
use telltale_emulator::{Accelerator, AcceleratorOptions, Emulator, EmulatorOptions, MachineKind};
use telltale_gpt::text::Text;
use telltale_gpt::{Config, Training};
use telltale_operations::{
    Binary, BinaryAttributes, BinaryOperation, HandWrittenBinary, OperationError, Session, Style,
    Tensor, row_major,
};
use telltale_program_cache::{
    Argument, CacheMode, CacheOptions, DataFormat, FactoryError, Hybrid, OperandSpecs, Operation,
    ProgramCache, ProgramDescriptor,
};
use telltale_runtime::{Options, Runtime};

use crate::rundir::RunDirectory;
use crate::sample::{Effort, Measurements, reading_ns};
use crate::table::{Row, Table, Target, Unit};

/// The training's first weights and windows of text.
const SEED: u64 = 7;
/// Unmeasured steps that make all programs and compile all kernels.
const WARM_UP_STEPS: usize = 2;
/// Repeats of a full run: a step is long, and other processes disturb it.
const STEPS: usize = 31;
/// Operations before a wait.
const TINY_OPERATIONS: usize = 1_000;
/// Shapes of these, each of which has a program of its own.
const TINY_SHAPES: u32 = 8;
/// A model that shows that everything works.
const SMALLEST: Config = Config { layers: 1, heads: 2, width: 8, context: 4, batch: 1 };

/// A device on which the contenders take turns.
struct Bench {
    accelerator: Arc<Accelerator>,
    _runtime: Runtime,
    _emulator: Emulator,
    _run: RunDirectory,
}

/// What one turn took of processors, in nanoseconds.
#[derive(Debug, Clone, Copy)]
struct ProcessorTimes {
    by_caller: f64,
    by_process: f64,
}

/// Whose time of a turn.
type Whose = fn(&ProcessorTimes) -> f64;

/// One way to have programs, taken in turns with the others.
struct Contender<'a> {
    name: &'static str,
    turn: Box<dyn FnMut() -> Result<(), OperationError> + 'a>,
    taken: Vec<ProcessorTimes>,
}

/// [`BinaryOperation`] with its own key; its words are written by the patch plan.
struct OwnKey;

impl Operation for OwnKey {
    const NAME: &'static str = "binary_with_its_own_key";
    type Attributes = BinaryAttributes;
    const HYBRID: Hybrid<BinaryAttributes> =
        Hybrid { key: HandWrittenBinary::HYBRID.key, update: None };

    fn create(
        attributes: &BinaryAttributes,
        operands: OperandSpecs<'_>,
    ) -> Result<ProgramDescriptor<Argument>, FactoryError> {
        BinaryOperation::create(attributes, operands)
    }
}

// === impl Bench ===

impl Bench {
    fn new() -> Result<Self, Box<dyn Error>> {
        let run = RunDirectory::create()?;
        let machine = run.path().join("machine");
        let emulator = Emulator::start(&machine, MachineKind::N300, EmulatorOptions::default())?;
        let runtime =
            Runtime::start(Options { root: Some(machine.clone()), ..Options::new("experiments") });
        let options = AcceleratorOptions {
            root: Some(machine),
            kernel_cache: Some(run.path().join("kernels")),
            ..AcceleratorOptions::default()
        };
        let accelerator = Accelerator::open(&options, &runtime)?;
        Ok(Self { accelerator, _runtime: runtime, _emulator: emulator, _run: run })
    }

    fn session(&self, mode: CacheMode) -> Session {
        let options = CacheOptions { mode, ..CacheOptions::default() };
        Session::new(ProgramCache::new(Arc::clone(&self.accelerator), options))
    }

    fn training(
        &self,
        mode: CacheMode,
        style: Style,
        config: Config,
    ) -> Result<Training, Box<dyn Error>> {
        let session = self.session(mode).with_style(style);
        Ok(Training::begin(session, config, SEED, Text::documentation())?)
    }
}

/// Fills the table.
///
/// # Errors
/// When the software accelerator or an operation on it fails.
pub fn table(effort: Effort) -> Result<Table, Box<dyn Error>> {
    let bench = Bench::new()?;
    let mut rows = training_rows(&bench, effort)?;
    rows.extend(tiny_rows(&bench, effort)?);
    Ok(Table {
        heading: "experiments: processor time; ours is automatic, the baseline is named last"
            .to_owned(),
        rows,
        remarks: vec![
            "ours and baseline took turns; `again` is automatic once more, which shows the noise"
                .to_owned(),
            "all trainings end with the same bits in all weights".to_owned(),
        ],
    })
}

fn training_rows(bench: &Bench, effort: Effort) -> Result<Vec<Row>, Box<dyn Error>> {
    let config = if effort == Effort::Once { SMALLEST } else { Config::default() };
    let kinds = [
        ("automatic", CacheMode::On, Style::Automatic),
        ("again", CacheMode::On, Style::Automatic),
        ("by hand", CacheMode::On, Style::HandWritten),
        ("checked", CacheMode::Check, Style::Automatic),
        ("no cache", CacheMode::Off, Style::Automatic),
    ];
    let mut trainings = Vec::new();
    for (_, mode, style) in kinds {
        trainings.push(bench.training(mode, style, config)?);
    }
    let ways = kinds.iter().zip(&mut trainings).map(|((name, ..), training)| {
        let turn = || training.step().map(|_| ());
        Contender { name, turn: Box::new(turn), taken: Vec::new() }
    });
    let rows = rows_of("training step", take_turns(ways.collect(), repeats(effort))?, 1.0);
    let digests = trainings.iter().map(Training::weights_digest);
    let digests = digests.collect::<Result<Vec<u64>, OperationError>>()?;
    if digests.iter().any(|digest| *digest != digests[0]) {
        return Err("the trainings ended with different weights".into());
    }
    Ok(rows)
}

fn tiny_rows(bench: &Bench, effort: Effort) -> Result<Vec<Row>, Box<dyn Error>> {
    let sessions =
        [CacheMode::On, CacheMode::Check, CacheMode::Off].map(|mode| bench.session(mode));
    let [on, check, off] = &sessions;
    let mut tensors = Vec::new();
    for columns in 1..=TINY_SHAPES {
        let spec = row_major(&[1, 32 * columns], DataFormat::Float32);
        tensors.push([on.zeros(&spec)?, on.zeros(&spec)?, on.zeros(&spec)?]);
    }
    let count = if effort == Effort::Once { TINY_SHAPES as usize } else { TINY_OPERATIONS };
    let tensors = &tensors;
    let ways = vec![
        tiny::<BinaryOperation>("automatic", on, tensors, count),
        tiny::<BinaryOperation>("again", on, tensors, count),
        tiny::<OwnKey>("own key", on, tensors, count),
        tiny::<HandWrittenBinary>("by hand", on, tensors, count),
        tiny::<BinaryOperation>("checked", check, tensors, count),
        tiny::<BinaryOperation>("no cache", off, tensors, count),
    ];
    Ok(rows_of("tiny operation", take_turns(ways, repeats(effort))?, count as f64))
}

/// `count` additions of small tensors, one shape after the other, and then a wait for all of them.
fn tiny<'a, O: Operation<Attributes = BinaryAttributes>>(
    name: &'static str,
    session: &'a Session,
    tensors: &'a [[Tensor; 3]],
    count: usize,
) -> Contender<'a> {
    let attributes = BinaryAttributes { function: Binary::Add };
    let turn = move || {
        for [a, b, sum] in tensors.iter().cycle().take(count) {
            session.dispatch::<O>(&attributes, &[Some(a), Some(b), Some(sum)], &[])?;
        }
        session.finish()
    };
    Contender { name, turn: Box::new(turn), taken: Vec::new() }
}

fn repeats(effort: Effort) -> usize {
    match effort {
        Effort::Full => STEPS,
        _ => effort.repeats(),
    }
}

/// Lets each way warm up, and then takes all of them in turn, each once unmeasured and once
/// measured: what the one before left in the processor's caches and the allocator is charged to none.
fn take_turns(
    mut ways: Vec<Contender<'_>>,
    repeats: usize,
) -> Result<Vec<Contender<'_>>, OperationError> {
    for way in &mut ways {
        for _ in 0..WARM_UP_STEPS {
            (way.turn)()?;
        }
    }
    let count = ways.len();
    for repeat in 0..repeats {
        for place in 0..count {
            let way = &mut ways[(repeat + place) % count];
            (way.turn)()?;
            let before = ProcessorTimes::until_now();
            (way.turn)()?;
            way.taken.push(ProcessorTimes::until_now().since(before));
        }
    }
    Ok(ways)
}

/// A row for each way beside the first, for the caller's time and for the process's.
fn rows_of(what: &str, ways: Vec<Contender<'_>>, operations: f64) -> Vec<Row> {
    let values = |way: &Contender<'_>, of: Whose| {
        Measurements::new(way.taken.iter().map(|taken| of(taken) / operations).collect())
    };
    let kinds: [(&str, Whose); 2] = [
        ("dispatching thread", |taken| taken.by_caller),
        ("whole process", |taken| taken.by_process),
    ];
    let [automatic, others @ ..] = ways.as_slice() else { return Vec::new() };
    let mut rows = Vec::new();
    for (who, of) in kinds {
        rows.extend(others.iter().map(|other| Row {
            what: format!("{what}, {who}; {}", other.name),
            unit: Unit::Time,
            ours: Some(values(automatic, of)),
            baseline: Some(values(other, of)),
            target: Target::default(),
        }));
    }
    rows
}

// === impl ProcessorTimes ===

impl ProcessorTimes {
    fn until_now() -> Self {
        Self {
            by_caller: reading_ns(ClockId::ThreadCPUTime),
            by_process: reading_ns(ClockId::ProcessCPUTime),
        }
    }

    fn since(self, before: Self) -> Self {
        Self {
            by_caller: self.by_caller - before.by_caller,
            by_process: self.by_process - before.by_process,
        }
    }
}
