//! A machine with trainings on it, and the losses that PyTorch computes.

use std::path::PathBuf;
use std::sync::Arc;

use telltale_emulator::{Accelerator, AcceleratorOptions, Emulator, EmulatorOptions, MachineKind};
use telltale_gpt::text::Text;
use telltale_gpt::{Config, Training};
use telltale_harness::Scratch;
use telltale_operations::Session;
use telltale_program_cache::{CacheMode, CacheOptions, ProgramCache};
use telltale_runtime::{Options, Runtime};

/// A small model, for tests in which the numbers do not matter.
pub(crate) const SMALL: Config = Config { layers: 1, heads: 2, width: 16, context: 8, batch: 2 };

/// An open accelerator with what it stands on.
pub(crate) struct Bench {
    accelerator: Arc<Accelerator>,
    _runtime: Runtime,
    _emulator: Emulator,
    _scratch: Scratch,
}

/// What `tools/gpt_reference.py` wrote.
pub(crate) struct Reference {
    pub(crate) config: Config,
    pub(crate) seed: u64,
    pub(crate) text: Text,
    pub(crate) losses: Vec<f64>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let scratch = Scratch::new();
        let root = scratch.join("m");
        let emulator =
            Emulator::start(&root, MachineKind::N300, EmulatorOptions::default()).unwrap();
        let runtime =
            Runtime::start(Options { root: Some(root.clone()), ..Options::new("a test") });
        let options = AcceleratorOptions {
            root: Some(root),
            // One for all tests: what one has compiled the next one finds.
            kernel_cache: Some(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("kernels")),
            ..AcceleratorOptions::default()
        };
        let accelerator = Accelerator::open(&options, &runtime).unwrap();
        Self { accelerator, _runtime: runtime, _emulator: emulator, _scratch: scratch }
    }

    /// A session with a program cache of its own.
    pub(crate) fn session(&self, mode: CacheMode) -> Session {
        let options = CacheOptions { mode, ..CacheOptions::default() };
        Session::new(ProgramCache::new(Arc::clone(&self.accelerator), options))
    }

    /// A training of the small model on the documentation.
    pub(crate) fn training(&self, mode: CacheMode) -> Training {
        Training::begin(self.session(mode), SMALL, 7, Text::documentation()).unwrap()
    }
}

impl Reference {
    pub(crate) fn read() -> Self {
        let lines = include_str!("../reference/losses.txt").lines();
        let pairs: Vec<(&str, &str)> = lines
            .filter(|line| !line.starts_with('#'))
            .map(|line| line.split_once(' ').unwrap())
            .collect();
        let all = |name: &'static str| {
            let named = pairs.iter().filter(move |(found, _)| *found == name);
            named.map(|(_, value)| *value)
        };
        let one = |name| all(name).next().unwrap_or_else(|| panic!("{name} is missing"));
        let size = |name| one(name).parse().unwrap();
        Self {
            config: Config {
                layers: size("layers"),
                heads: size("heads"),
                width: size("width"),
                context: size("context"),
                batch: size("batch"),
            },
            seed: one("seed").parse().unwrap(),
            text: Text::new(one("text")),
            losses: all("loss").map(|loss| loss.parse().unwrap()).collect(),
        }
    }
}
