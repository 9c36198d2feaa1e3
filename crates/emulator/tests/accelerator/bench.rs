//! A machine with one open accelerator, and short ways to describe programs.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use telltale_emulator::{
    Accelerator, AcceleratorOptions, Buffer, Emulator, EmulatorOptions, MachineKind,
};
use telltale_harness::Scratch;
use telltale_ledger::LedgerReader;
use telltale_ledger::directory::{Purpose, RuntimeDirectory};
use telltale_program_cache::{
    CircularBufferDescriptor, CircularBufferFormat, ComputeConfig, CoreCoord, CoreRange,
    CoreRanges, CoreType, DataFormat, KernelConfig, KernelDescriptor, KernelSource, ReaderConfig,
    SemaphoreDescriptor, WriterConfig,
};
use telltale_runtime::{Options, Runtime};
use telltale_schema::memory::MemoryKind;

/// Bytes of a tile of floats.
pub(crate) const TILE_BYTES: u32 = 4_096;

pub(crate) struct Bench {
    pub(crate) accelerator: Arc<Accelerator>,
    pub(crate) emulator: Emulator,
    _runtime: Runtime,
    pub(crate) scratch: Scratch,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut AcceleratorOptions)) -> Self {
        let scratch = Scratch::new();
        let root = scratch.join("m");
        let emulator =
            Emulator::start(&root, MachineKind::N300, EmulatorOptions::default()).unwrap();
        let runtime =
            Runtime::start(Options { root: Some(root.clone()), ..Options::new("a test") });
        let mut options = AcceleratorOptions {
            root: Some(root),
            kernel_root: Some(scratch.path().to_path_buf()),
            kernel_cache: Some(scratch.join("kernels")),
            kernel_timeout: Some(Duration::from_secs(30)),
            ..AcceleratorOptions::default()
        };
        change(&mut options);
        let accelerator = Accelerator::open(&options, &runtime).unwrap();
        Self { accelerator, emulator, _runtime: runtime, scratch }
    }

    /// A buffer of DRAM with these numbers, in pages of a tile.
    pub(crate) fn buffer(&self, numbers: &[f32]) -> Arc<Buffer> {
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        let length = bytes.len() as u64;
        let buffer = self.accelerator.allocate(MemoryKind::Dram, length, TILE_BYTES).unwrap();
        self.accelerator.write(&buffer, &bytes).unwrap();
        buffer
    }

    pub(crate) fn numbers(&self, buffer: &Arc<Buffer>) -> Vec<f32> {
        let bytes = self.accelerator.read(buffer).unwrap();
        bytes.chunks_exact(4).map(|one| f32::from_le_bytes(*one.first_chunk().unwrap())).collect()
    }

    /// What the emulator says is allocated on the first chip, by kind; the ledger says the same.
    pub(crate) fn allocated(&self) -> Vec<(MemoryKind, u64)> {
        // The queue first: what it holds is not free yet. Then an impossible wish,
        // which the device refuses after the frees before it.
        self.accelerator.finish().unwrap();
        self.accelerator.allocate(MemoryKind::Dram, 1 << 50, 1 << 20).unwrap_err();
        let usage = self.emulator.usage();
        let allocated: Vec<_> =
            usage[0].total.kinds().map(|(kind, usage)| (kind, usage.requested_bytes)).collect();
        assert_eq!(allocated, self.recorded(), "the ledger is wrong");
        allocated
    }

    /// What the process's ledger says.
    fn recorded(&self) -> Vec<(MemoryKind, u64)> {
        let directory = self.emulator.root().join("run/tt");
        let directory = RuntimeDirectory::open(&directory, Purpose::Reading).unwrap();
        let listing = directory.list().unwrap();
        let [ledger] = listing.ledgers.as_slice() else { panic!("{:?}", listing.ledgers) };
        let mut reader = LedgerReader::open_at(&directory, &ledger.name).unwrap();
        let usage = &reader.read().unwrap().usage;
        let live = usage.iter().filter(|(.., usage)| usage.live_bytes > 0);
        live.map(|(_, kind, usage)| (*kind, usage.live_bytes)).collect()
    }
}

pub(crate) fn cores(columns: u16, rows: u16) -> CoreRanges {
    CoreRange::new(CoreCoord::new(0, 0), CoreCoord::new(columns - 1, rows - 1)).into()
}

pub(crate) fn kernel(
    name: &'static str,
    text: impl Into<Cow<'static, str>>,
    cores: &CoreRanges,
) -> KernelDescriptor {
    let config = match name {
        "reader" => KernelConfig::Reader(ReaderConfig {}),
        "writer" => KernelConfig::Writer(WriterConfig {}),
        _ => KernelConfig::Compute(ComputeConfig::default()),
    };
    KernelDescriptor::new(name, KernelSource::Text(text.into()), cores.clone(), config)
}

/// A circular buffer of tiles of floats.
pub(crate) fn tiles(index: u8, pages: u32, cores: &CoreRanges) -> CircularBufferDescriptor {
    let format = CircularBufferFormat {
        buffer_index: index,
        data_format: DataFormat::Float32,
        page_bytes: TILE_BYTES,
        tile: None,
    };
    CircularBufferDescriptor::own(cores.clone(), pages, format)
}

pub(crate) fn semaphore(id: u32, initial_value: u32, cores: &CoreRanges) -> SemaphoreDescriptor {
    let core_ranges = cores.clone();
    SemaphoreDescriptor { id, core_type: CoreType::Worker, core_ranges, initial_value }
}
