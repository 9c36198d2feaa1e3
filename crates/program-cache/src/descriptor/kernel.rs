//! One kernel of a program: where its source is, what it is compiled with, where it runs.

use std::borrow::Cow;

use crate::arguments::RuntimeArguments;
use crate::cores::CoreRanges;
use crate::key::ProgramKey;

/// Text that is mostly known when the factory is compiled, and then costs no allocation.
pub type Text = Cow<'static, str>;

/// A kernel.
///
/// The order of `named_compile_time_arguments` and of `defines` does not matter: they are found by
/// name. All other orders do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelDescriptor<A = u32> {
    /// What errors and tables call it.
    pub name: Text,
    /// What is compiled.
    pub source: KernelSource,
    /// Where it runs.
    pub core_ranges: CoreRanges,
    /// Constants that the source asks for by position.
    pub compile_time_arguments: Vec<u32>,
    /// Constants that the source asks for by name; a name stands once.
    pub named_compile_time_arguments: Vec<(Text, u32)>,
    /// Macros and what they stand for; a name stands once.
    pub defines: Vec<(Text, Text)>,
    /// Words that each core is given with each dispatch.
    pub runtime_arguments: RuntimeArguments<A>,
    /// Words that all cores are given with each dispatch.
    pub common_runtime_arguments: Vec<A>,
    /// How hard the compiler tries; none leaves the choice to the back end.
    pub optimisation_level: Option<OptimisationLevel>,
    /// Which of a core's processors runs it, and how that is set up.
    pub config: KernelConfig,
}

/// Where a kernel's source is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, ProgramKey)]
pub enum KernelSource {
    /// In this file. What the file holds is not part of the program's key: at each hit the back end
    /// looks whether it has changed ([`Backend::is_current`](crate::Backend::is_current)).
    Path(Text),
    /// Here.
    Text(Text),
}

/// How hard the compiler tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ProgramKey)]
pub enum OptimisationLevel {
    /// As the compiler's `-O0`.
    O0,
    /// As `-O1`.
    O1,
    /// As `-O2`.
    O2,
    /// As `-O3`.
    O3,
    /// As `-Os`: small code.
    Os,
}

/// Which processor runs a kernel, and how that is set up.
#[derive(Debug, Clone, PartialEq, Eq, Hash, ProgramKey)]
pub enum KernelConfig {
    /// Brings data to the core, with the usual processor and network for that.
    Reader(ReaderConfig),
    /// Takes data from the core, with the usual processor and network for that.
    Writer(WriterConfig),
    /// Moves data with a processor and network that the operation chooses.
    DataMovement(DataMovementConfig),
    /// Computes.
    Compute(ComputeConfig),
}

/// A reader needs no choices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, ProgramKey)]
pub struct ReaderConfig {}

/// A writer needs no choices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, ProgramKey)]
pub struct WriterConfig {}

/// The choices of a kernel that moves data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, ProgramKey)]
pub struct DataMovementConfig {
    /// Which of the core's two data processors.
    pub processor: DataProcessor,
    /// Which of the two networks.
    pub network: Network,
    /// How the two data kernels of a core share the networks.
    pub network_mode: NetworkMode,
}

/// A data processor of a core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, ProgramKey)]
pub enum DataProcessor {
    /// The first.
    #[default]
    First,
    /// The second.
    Second,
}

/// A network on the chip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, ProgramKey)]
pub enum Network {
    /// The first.
    #[default]
    First,
    /// The second.
    Second,
}

/// How the data kernels of a core share the networks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, ProgramKey)]
pub enum NetworkMode {
    /// Each has its own.
    #[default]
    Dedicated,
    /// Each may use both.
    Dynamic,
}

/// The choices of a kernel that computes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, ProgramKey)]
pub struct ComputeConfig {
    /// How many passes the multiplier makes.
    pub math_fidelity: MathFidelity,
    /// Whether sums are kept in 32 bits.
    pub fp32_accumulate: bool,
    /// Whether the whole destination register is handed over at once.
    pub full_destination_sync: bool,
    /// How each circular buffer is unpacked, by buffer index; what is missing is the default.
    pub unpack_modes: Vec<UnpackMode>,
    /// Whether block floats are packed precisely.
    pub precise_block_pack: bool,
    /// Whether functions may be approximated.
    pub approximate_math: bool,
}

/// How many passes the multiplier makes over the bits of its inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, ProgramKey)]
pub enum MathFidelity {
    /// One pass.
    LoFi,
    /// Two passes.
    HiFi2,
    /// Three passes.
    HiFi3,
    /// Four passes: every bit.
    #[default]
    HiFi4,
}

/// How a circular buffer's data is unpacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, ProgramKey)]
pub enum UnpackMode {
    /// Into the source registers.
    #[default]
    Default,
    /// Straight to the destination register, in 32 bits.
    ToDestinationFp32,
}

impl<A> KernelDescriptor<A> {
    /// A kernel without arguments, to be filled in.
    #[must_use]
    pub fn new(
        name: impl Into<Text>,
        source: KernelSource,
        core_ranges: impl Into<CoreRanges>,
        config: KernelConfig,
    ) -> Self {
        Self {
            name: name.into(),
            source,
            core_ranges: core_ranges.into(),
            compile_time_arguments: Vec::new(),
            named_compile_time_arguments: Vec::new(),
            defines: Vec::new(),
            runtime_arguments: RuntimeArguments::default(),
            common_runtime_arguments: Vec::new(),
            optimisation_level: None,
            config,
        }
    }
}

impl<A: Copy> KernelDescriptor<A> {
    /// The same kernel with other values in the places of dispatch words.
    pub fn map<B>(&self, mut value_of: impl FnMut(&A) -> B) -> KernelDescriptor<B> {
        KernelDescriptor {
            name: self.name.clone(),
            source: self.source.clone(),
            core_ranges: self.core_ranges.clone(),
            compile_time_arguments: self.compile_time_arguments.clone(),
            named_compile_time_arguments: self.named_compile_time_arguments.clone(),
            defines: self.defines.clone(),
            runtime_arguments: self.runtime_arguments.map(&mut value_of),
            common_runtime_arguments: self
                .common_runtime_arguments
                .iter()
                .map(&mut value_of)
                .collect(),
            optimisation_level: self.optimisation_level,
            config: self.config.clone(),
        }
    }
}
