//! Prints what a step of the usual training costs in CPU time, with the program cache on, with keys
//! and updates by hand, checked, and off; and a tiny model's, where dispatching is most of it.
//!
//!     cargo run --release -p telltale-gpt --example step_cost [ROUNDS]
//!
//! The four take turns step by step, each round from another one on, so that whatever else the
//! machine does meets all of them alike. Time is that of the whole process: a training waits for
//! its device, and nothing else runs.
#![allow(clippy::unwrap_used, reason = "a failed step ends the program with its reason")]

use std::sync::Arc;

use rustix::time::{ClockId, clock_gettime};
use telltale_emulator::{Accelerator, AcceleratorOptions, Emulator, EmulatorOptions, MachineKind};
use telltale_gpt::text::Text;
use telltale_gpt::{Config, Training};
use telltale_operations::{Session, Style};
use telltale_program_cache::{CacheMode, CacheOptions, ProgramCache};
use telltale_runtime::{Options, Runtime};

/// Rounds unless said otherwise.
const ROUNDS: usize = 40;
/// Steps before anything is measured.
const WARM_UP: usize = 3;
/// Steps of one turn with the tiny model, whose steps are short.
const TINY_TURN: usize = 10;
const TINY: Config = Config { layers: 2, heads: 2, width: 16, context: 8, batch: 1 };

/// What is compared.
const KINDS: [(&str, CacheMode, Style); 4] = [
    ("cache on", CacheMode::On, Style::Automatic),
    ("cache on, by hand", CacheMode::On, Style::HandWritten),
    ("cache checked", CacheMode::Check, Style::Automatic),
    ("cache off", CacheMode::Off, Style::Automatic),
];

fn main() {
    let rounds = std::env::args().nth(1).map_or(ROUNDS, |count| count.parse().unwrap());
    let root = std::env::temp_dir().join(format!("step-cost-{}", std::process::id()));
    std::fs::create_dir_all(&root).unwrap();
    let machine = root.join("machine");
    let emulator = Emulator::start(&machine, MachineKind::N300, EmulatorOptions::default());
    let emulator = emulator.unwrap();
    let runtime =
        Runtime::start(Options { root: Some(machine.clone()), ..Options::new("step cost") });
    let options = AcceleratorOptions { root: Some(machine), ..AcceleratorOptions::default() };
    let accelerator = Accelerator::open(&options, &runtime).unwrap();
    compare("the usual model", &accelerator, Config::default(), 1, rounds);
    compare("a tiny model", &accelerator, TINY, TINY_TURN, rounds);
    drop(accelerator);
    drop(emulator);
    std::fs::remove_dir_all(root).unwrap();
}

fn compare(name: &str, accelerator: &Arc<Accelerator>, config: Config, turn: usize, rounds: usize) {
    let mut trainings = KINDS.map(|(_, mode, style)| {
        let options = CacheOptions { mode, ..CacheOptions::default() };
        let cache = ProgramCache::new(Arc::clone(accelerator), options);
        let session = Session::new(cache).with_style(style);
        Training::begin(session, config, 1, Text::documentation()).unwrap()
    });
    for training in &mut trainings {
        take_turn(training, WARM_UP);
    }
    let mut costs: [Vec<f64>; KINDS.len()] = Default::default();
    for round in 0..rounds {
        for index in 0..KINDS.len() {
            let kind = (round + index) % KINDS.len();
            costs[kind].push(take_turn(&mut trainings[kind], turn));
        }
    }
    let digests = trainings.each_ref().map(|training| training.weights_digest().unwrap());
    assert!(digests.iter().all(|digest| *digest == digests[0]), "bits differ: {digests:x?}");
    let dispatches = trainings[0].session().cache().counts();
    let dispatches = (dispatches.hits + dispatches.misses) / trainings[0].steps();
    println!("{name}: {dispatches} dispatches a step, {rounds} rounds, equal weights at the end");
    println!("  CPU ms a step          median  quartiles      against cache on, round by round");
    for ((kind, ..), own) in KINDS.iter().zip(&costs) {
        let ratios = own.iter().zip(&costs[0]).map(|(own, on)| own / on - 1.0).collect();
        let ([low, middle, high], [ratio_low, ratio, ratio_high]) =
            (quartiles(own.clone()), quartiles(ratios));
        println!(
            "  {kind:20} {:8.2}  {:6.2}-{:<6.2}  {:+6.2} % ({:+.2} to {:+.2})",
            middle * 1e3,
            low * 1e3,
            high * 1e3,
            ratio * 1e2,
            ratio_low * 1e2,
            ratio_high * 1e2,
        );
    }
}

/// Does some steps and gives the CPU seconds of one.
fn take_turn(training: &mut Training, steps: usize) -> f64 {
    let before = cpu_seconds();
    for _ in 0..steps {
        training.step().unwrap();
    }
    (cpu_seconds() - before) / steps as f64
}

fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn quartiles(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| values[(values.len() - 1) * quarter / 4])
}
