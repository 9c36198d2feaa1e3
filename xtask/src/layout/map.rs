//! The map: one line for each crate with what it may use, and the absences that the design promises.
//!
//! Data only. ARCHITECTURE.md explains it; `cargo xtask layout` enforces it.

/// One package of the workspace.
#[derive(Debug, Clone, Copy)]
pub struct Member {
    /// The package's name.
    pub package: &'static str,
    /// Workspace packages that it may depend on, for building and running; tests may use any.
    pub may_use: MayUse,
}

/// What a package may depend on within the workspace.
#[derive(Debug, Clone, Copy)]
pub enum MayUse {
    /// These packages, and nothing that they use.
    Only(&'static [&'static str]),
    /// Every library of the product, which excludes what is for tests and chores.
    Product,
    /// Anything.
    Anything,
}

const fn here(package: &'static str, only: &'static [&'static str]) -> Member {
    Member { package, may_use: MayUse::Only(only) }
}

/// The map.
pub const MEMBERS: [Member; 37] = [
    here("telltale-schema", &[]),
    here("telltale-ledger", &["telltale-schema"]),
    here("telltale-wire", &["telltale-schema"]),
    here("telltale-debug-stream", &["telltale-schema"]),
    here("telltale-program-cache", &["telltale-schema", "telltale-program-key-derive"]),
    here(
        "telltale-runtime",
        &[
            "telltale-ledger",
            "telltale-wire",
            "telltale-debug-stream",
            "telltale-program-cache",
            "telltale-schema",
        ],
    ),
    // The C border names kinds and devices, so it needs the vocabulary beside the runtime.
    here("telltale-capi", &["telltale-runtime", "telltale-schema"]),
    // The default consumer and its signals are the runtime's.
    here("telltale-nrt", &["telltale-debug-stream", "telltale-runtime"]),
    here(
        "telltale-emulator",
        &["telltale-runtime", "telltale-debug-stream", "telltale-program-cache", "telltale-schema"],
    ),
    here("telltale-collector", &["telltale-ledger", "telltale-wire", "telltale-schema"]),
    here(
        "telltale-node",
        &[
            "telltale-collector",
            "telltale-ledger",
            "telltale-wire",
            "telltale-schema",
            "telltale-query",
            "telltale-server",
        ],
    ),
    // Whatever asks the service goes through it; the ledger knows where the service's socket is.
    here("telltale-client", &["telltale-ledger", "telltale-wire", "telltale-schema"]),
    here("telltale-cluster", &["telltale-steps", "telltale-wire"]),
    here(
        "telltale-control-plane",
        &[
            // How a server is called, and what is in the way to it.
            "telltale-client",
            "telltale-autopsy",
            "telltale-cluster",
            "telltale-pickle",
            "telltale-steps",
            "telltale-wire",
            "telltale-schema",
            "telltale-server",
        ],
    ),
    here("telltale-steps", &[]),
    here("telltale-autopsy", &[]),
    here("telltale-pickle", &[]),
    here("telltale-query", &["telltale-schema"]),
    here("telltale-smi", &["telltale-schema", "telltale-query"]),
    here(
        "telltale-sources",
        &[
            "telltale-client",
            "telltale-collector",
            "telltale-node",
            "telltale-query",
            "telltale-schema",
            "telltale-server",
        ],
    ),
    Member { package: "telltale", may_use: MayUse::Product },
    Member { package: "telltale-python", may_use: MayUse::Product },
    // The small ones; docs/decisions/0001-small-crates.md says why each is a crate.
    here("telltale-server", &["telltale-schema"]),
    here("telltale-trace", &[]),
    here("telltale-recorder", &["telltale-trace"]),
    // It is loaded into programs that know nothing of it: a ledger, and nothing that starts a thread.
    here("telltale-preload", &["telltale-ledger", "telltale-schema"]),
    here(
        "telltale-operations",
        &["telltale-emulator", "telltale-program-cache", "telltale-schema"],
    ),
    here("telltale-gpt", &["telltale-operations", "telltale-program-cache"]),
    here("telltale-cluster-simulation", &["telltale-cluster"]),
    // NCCL loads it into a foreign program, so it brings along as little as possible.
    here("telltale-nccl-profiler", &[]),
    here("telltale-program-key-derive", &[]),
    here("telltale-harness", &[]),
    here("telltale-ledger-models", &[]),
    here("telltale-debug-stream-models", &[]),
    here("telltale-program-cache-models", &[]),
    Member { package: "telltale-bench", may_use: MayUse::Anything },
    here("xtask", &["telltale-autopsy", "telltale-harness", "telltale-query", "telltale-schema"]),
];

/// Packages that the shipped program must not contain.
pub const NOT_PRODUCT: [&str; 12] = [
    "telltale",
    "telltale-bench",
    "telltale-cluster-simulation",
    "telltale-debug-stream-models",
    "telltale-harness",
    "telltale-ledger-models",
    "telltale-nccl-profiler",
    "telltale-preload",
    "telltale-program-cache-models",
    "telltale-python",
    "telltale-recorder",
    "xtask",
];

/// What `telltale-schema` may use from outside the workspace: nothing that does I/O.
pub const SCHEMA_DEPENDENCIES: [&str; 3] = ["jiff", "serde", "thiserror"];

/// What `telltale-schema` may use besides, behind a feature that the shipped program leaves off.
pub const SCHEMA_OPTIONAL_DEPENDENCIES: [&str; 1] = ["schemars"];

/// Packages that a workload links, what `smi` needs, and the machines of the cluster: whatever they pull in must start no async runtime.
pub const NO_ASYNC_RUNTIME: [&str; 8] = [
    "telltale-cluster",
    "telltale-collector",
    "telltale-runtime",
    "telltale-capi",
    "telltale-nccl-profiler",
    "telltale-nrt",
    "telltale-preload",
    "telltale-recorder",
];

/// Async runtimes and the reactors below them.
pub const ASYNC_RUNTIMES: [&str; 10] = [
    "tokio",
    "mio",
    "async-std",
    "async-io",
    "async-executor",
    "smol",
    "futures-executor",
    "monoio",
    "glommio",
    "embassy-executor",
];

/// Where unsafe code may be: a crate's directory, or one file or module of a crate.
pub const UNSAFE_ALLOWED: [(&str, &str); 15] = [
    ("crates/ledger/", "memory shared between processes"),
    ("crates/autopsy/src/native/stopped.rs", "threads of other processes, stopped"),
    ("crates/autopsy/src/mapped.rs", "files that other processes have mapped"),
    ("crates/capi/", "the C border"),
    ("crates/nrt/", "the C border of the debug stream"),
    ("crates/debug-stream/src/queue", "the event queue"),
    ("crates/nccl-profiler/src/border", "NCCL's calls"),
    ("tools/preload/", "the preloaded library's symbols"),
    ("tools/recorder/", "the preloaded allocator's symbols"),
    ("crates/emulator/src/kernels/", "compiled kernels, their fibres and their memory"),
    ("crates/python/src/debug/dlpack.rs", "tensors lent to other libraries"),
    ("crates/python/src/debug/library.rs", "calls of a library that provides a debug stream"),
    ("crates/runtime/src/process_hooks", "fork and signal hooks"),
    ("crates/collector/src/hardware/nvidia/raw_calls.rs", "calls of NVML that its wrapper lacks"),
    ("crates/bench/src/seed.rs", "calls to the C++ baseline"),
];

/// Something a crate's sources must not contain, outside its inline tests.
#[derive(Debug, Clone, Copy)]
pub struct SourceAbsence {
    /// The directory it holds for.
    pub directory: &'static str,
    /// What must not be there.
    pub absent: Absent,
    /// The sentence of the design that it breaks.
    pub promise: &'static str,
}

/// What must not be there.
#[derive(Debug, Clone, Copy)]
pub enum Absent {
    /// A path, imported or used, or anything below it.
    Path(&'static str),
    /// A string literal that contains this.
    Literal(&'static str),
}

const NO_INPUT_OUTPUT: &str = "schema and the machines of cluster do no I/O";
const NO_CLOCK: &str = "schema and the machines of cluster read no clock";

/// Directories whose code is given all that it knows.
const PURE: [&str; 2] = ["crates/schema/src/", "crates/cluster/src/"];

const NOT_IN_PURE: [(&str, &str); 9] = [
    ("std::fs", NO_INPUT_OUTPUT),
    ("std::net::TcpListener", NO_INPUT_OUTPUT),
    ("std::net::TcpStream", NO_INPUT_OUTPUT),
    ("std::net::UdpSocket", NO_INPUT_OUTPUT),
    ("std::env", NO_INPUT_OUTPUT),
    ("std::process", NO_INPUT_OUTPUT),
    ("std::thread", "schema and the machines of cluster start no thread"),
    ("Instant::now", NO_CLOCK),
    ("SystemTime::now", NO_CLOCK),
];

/// The absences that sources are searched for.
pub fn source_absences() -> impl Iterator<Item = SourceAbsence> {
    let pure = PURE.into_iter().flat_map(|directory| {
        NOT_IN_PURE.into_iter().map(move |(path, promise)| SourceAbsence {
            directory,
            absent: Absent::Path(path),
            promise,
        })
    });
    pure.chain([SourceAbsence {
        directory: "crates/collector/src/",
        absent: Absent::Literal("/dev/tenstorrent"),
        promise: "the collector never opens a device node",
    }])
}

/// Top modules that are still in a circle of their crate's, by the crate's directory. No other may be in one.
pub const MODULES_IN_CIRCLES: [(&str, &[&str]); 8] = [
    ("crates/bench", &["machine", "program", "seed", "sweep", "workers"]),
    ("crates/gpt", &["activation", "layer", "model", "training"]),
    ("crates/operations", &["elementwise", "hand_written", "matmul", "softmax"]),
    ("crates/program-cache", &["plan", "update"]),
    ("crates/query", &["field", "subject"]),
    ("crates/steps", &["clocks", "meeting", "step"]),
    ("crates/wire", &["reply", "report"]),
    ("tools/preload", &["cuda", "recording", "session"]),
];

/// Types that more files implement than others may, by the crate's directory, and why.
pub const IN_MANY_FILES: [(&str, &str, &str); 2] = [
    (
        "crates/operations",
        "Session",
        "an operation is one file, with the call that a session has for it",
    ),
    (
        "crates/cluster-simulation",
        "World",
        "each kind of event is one file, with what it does to the world",
    ),
];
