//! A machine with one open accelerator and a session on it, and the reference data.

use std::path::{Path, PathBuf};
use std::time::Duration;

use telltale_emulator::{Accelerator, AcceleratorOptions, Emulator, EmulatorOptions, MachineKind};
use telltale_harness::Scratch;
use telltale_operations::{Session, Style, Tensor, bfloat, row_major, tiled};
use telltale_program_cache::{CacheMode, CacheOptions, DataFormat, OperandSpec, ProgramCache};
use telltale_runtime::{Options, Runtime};

/// A session with what it stands on.
pub(crate) struct Bench {
    pub(crate) session: Session,
    _emulator: Emulator,
    _runtime: Runtime,
    _scratch: Scratch,
}

/// How a test stores its tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) format: DataFormat,
    pub(crate) tiled: bool,
}

/// All four ways in which numbers are stored.
pub(crate) const FORMS: [Form; 4] = [
    Form { format: DataFormat::Float32, tiled: false },
    Form { format: DataFormat::Float32, tiled: true },
    Form { format: DataFormat::BFloat16, tiled: false },
    Form { format: DataFormat::BFloat16, tiled: true },
];

/// A file of reference data.
pub(crate) struct Case {
    pub(crate) name: String,
    /// The words after the operation's name in the first line.
    pub(crate) parameters: Vec<String>,
    tensors: Vec<(String, Vec<u32>, Vec<Number>)>,
}

#[derive(Debug, Clone, Copy)]
enum Number {
    Float(f32),
    Whole(u32),
}

// === impl Bench ===

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with(CacheOptions { mode: CacheMode::Check, ..CacheOptions::default() })
    }

    /// One whose operations have keys and updates by hand where they exist so.
    pub(crate) fn by_hand(mode: CacheMode) -> Self {
        let bench = Self::with(CacheOptions { mode, ..CacheOptions::default() });
        Self { session: bench.session.with_style(Style::HandWritten), ..bench }
    }

    pub(crate) fn with(options: CacheOptions) -> Self {
        let scratch = Scratch::new();
        let root = scratch.join("m");
        let emulator =
            Emulator::start(&root, MachineKind::N300, EmulatorOptions::default()).unwrap();
        let runtime =
            Runtime::start(Options { root: Some(root.clone()), ..Options::new("a test") });
        let accelerator = AcceleratorOptions {
            root: Some(root),
            // One for all tests: what one has compiled the next one finds.
            kernel_cache: Some(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("kernels")),
            kernel_timeout: Some(Duration::from_secs(60)),
            ..AcceleratorOptions::default()
        };
        let accelerator = Accelerator::open(&accelerator, &runtime).unwrap();
        let session = Session::new(ProgramCache::new(accelerator, options));
        Self { session, _emulator: emulator, _runtime: runtime, _scratch: scratch }
    }

    /// A tensor of a case, stored in this form.
    pub(crate) fn tensor(&self, case: &Case, name: &str, form: Form) -> Tensor {
        let (shape, values) = case.floats(name);
        self.session.tensor(&form.spec(shape), &values).unwrap()
    }

    /// The same for whole numbers.
    pub(crate) fn indices(&self, case: &Case, name: &str) -> Tensor {
        let (_, shape, numbers) = case.find(name);
        let values: Vec<u32> = numbers
            .iter()
            .map(|number| match number {
                Number::Whole(value) => *value,
                Number::Float(_) => panic!("{name} of {} is no whole number", case.name),
            })
            .collect();
        self.session.indices(&row_major(shape, DataFormat::UInt32), &values).unwrap()
    }

    /// Compares a result with a tensor of the case, in shape and values.
    #[track_caller]
    pub(crate) fn check(&self, result: &Tensor, case: &Case, name: &str, tolerance: f64) {
        let (shape, expected) = case.floats(name);
        let what = || format!("{name} of {} as {:?}", case.name, result.spec());
        assert_eq!(result.shape(), shape, "{}", what());
        let values = self.session.read(result).unwrap_or_else(|e| panic!("{}: {e:?}", what()));
        assert_close(&values, &expected, tolerance, &what());
    }
}

/// Whether values are the expected ones but for a relative error: of each against its own size and
/// the root mean square of all, since cancellation leaves errors of that size.
#[track_caller]
pub(crate) fn assert_close(values: &[f32], expected: &[f32], tolerance: f64, what: &str) {
    assert_eq!(values.len(), expected.len(), "{what}");
    let squares: f64 = expected.iter().map(|value| f64::from(*value).powi(2)).sum();
    let root = (squares / expected.len() as f64).sqrt();
    for (index, (value, expected)) in values.iter().zip(expected).enumerate() {
        let error = (f64::from(*value) - f64::from(*expected)).abs();
        let size = f64::from(expected.abs()).max(root);
        assert!(error <= tolerance * size, "{what}: [{index}] is {value}, not {expected}");
    }
}

// === impl Form ===

impl Form {
    pub(crate) fn spec(self, shape: &[u32]) -> OperandSpec {
        if self.tiled { tiled(shape, self.format) } else { row_major(shape, self.format) }
    }

    /// What rounding allows: of sums in 32 bits, or of results to 8 bits.
    pub(crate) fn tolerance(self) -> f64 {
        if self.format == DataFormat::BFloat16 { 1.0 / 250.0 } else { 4e-6 }
    }
}

// === impl Case ===

impl Case {
    /// All cases whose name begins like this; at least one.
    pub(crate) fn all(prefix: &str) -> Vec<Self> {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference");
        let mut names: Vec<String> = std::fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter_map(|name| Some(name.strip_suffix(".bin")?.to_owned()))
            .filter(|name| name.starts_with(prefix))
            .collect();
        names.sort();
        assert!(!names.is_empty(), "no reference data for {prefix}");
        names.iter().map(|name| Self::read(name)).collect()
    }

    pub(crate) fn read(name: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference");
        let bytes = std::fs::read(path.join(format!("{name}.bin"))).unwrap();
        let end = bytes.windows(2).position(|two| two == b"\n\n").unwrap();
        let head = std::str::from_utf8(&bytes[..end]).unwrap();
        let mut rest = &bytes[end + 2..];
        let mut lines = head.lines();
        let first = lines.next().unwrap();
        let mut tensors = Vec::new();
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            let ["tensor", name, format, shape @ ..] = words.as_slice() else {
                panic!("{line} is no tensor")
            };
            let shape: Vec<u32> = shape.iter().map(|size| size.parse().unwrap()).collect();
            let count = shape.iter().product::<u32>() as usize;
            let size = if *format == "bf16" { 2 } else { 4 };
            let (own, after) = rest.split_at(count * size);
            rest = after;
            let numbers = own.chunks_exact(size).map(|bytes| Number::of(format, bytes)).collect();
            tensors.push(((*name).to_owned(), shape, numbers));
        }
        assert!(rest.is_empty(), "{name} is longer than its tensors");
        let parameters = first.split(' ').skip(1).map(str::to_owned).collect();
        Self { name: name.to_owned(), parameters, tensors }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.tensors.iter().any(|(own, ..)| own == name)
    }

    pub(crate) fn floats(&self, name: &str) -> (&[u32], Vec<f32>) {
        let (_, shape, numbers) = self.find(name);
        let values = numbers.iter().map(|number| match number {
            Number::Float(value) => *value,
            Number::Whole(_) => panic!("{name} of {} is whole numbers", self.name),
        });
        (shape, values.collect())
    }

    pub(crate) fn parameter<T: std::str::FromStr<Err: std::fmt::Debug>>(&self, index: usize) -> T {
        self.parameters[index].parse().unwrap()
    }

    fn find(&self, name: &str) -> &(String, Vec<u32>, Vec<Number>) {
        let found = self.tensors.iter().find(|(own, ..)| own == name);
        found.unwrap_or_else(|| panic!("{} has no {name}", self.name))
    }
}

impl Number {
    fn of(format: &str, bytes: &[u8]) -> Self {
        match (format, bytes) {
            ("bf16", &[low, high]) => Self::Float(bfloat::widen(u16::from_le_bytes([low, high]))),
            ("f32", &[a, b, c, d]) => Self::Float(f32::from_le_bytes([a, b, c, d])),
            ("u32", &[a, b, c, d]) => Self::Whole(u32::from_le_bytes([a, b, c, d])),
            _ => panic!("unknown format {format}"),
        }
    }
}
