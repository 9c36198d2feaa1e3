//! What a thread does, by the functions that it has called: two tables of names, one for Python's and
//! one for native ones.
//!
//! A thread is in many functions at once. The rules are in the order of how much they say: one that waits
//! for another rank does so whatever called it, and one in a debugger does nothing else.

use serde::{Deserialize, Serialize};

use crate::evidence::{NativeFrame, PythonFrame, ThreadEvidence};

/// What a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// A debugger has it, or it waits at a breakpoint.
    Debugger,
    /// It has ended, and its parent has not asked how.
    Ended,
    /// It waits for the interpreter's lock.
    WaitsForGil,
    /// It waits while it holds the interpreter's lock, so no other Python thread goes on.
    HoldsGil,
    /// It takes part in a collective operation.
    Collective,
    /// It sends to one other rank, or receives from it.
    Transfer,
    /// It compiles a program.
    Compiles,
    /// It waits for the data of the next step, or makes them.
    LoadsData,
    /// It writes or reads a checkpoint.
    Checkpoints,
    /// It waits for a device.
    WaitsForDevice,
    /// It waits for a thread or a process to end.
    Joins,
    /// It waits for an entry of a queue, or to be notified.
    WaitsForSignal,
    /// It waits for a lock.
    WaitsForLock,
    /// It computes gradients.
    Backward,
    /// It reads from or writes to a file.
    UsesFile,
    /// It sleeps.
    Sleeps,
    /// It waits for a terminal's user.
    ReadsTerminal,
    /// It waits for the network.
    UsesNetwork,
    /// It is in the kernel for another reason.
    Waits,
    /// It runs.
    Runs,
}

/// The name of each, as it is serialized.
const NAMES: [(Activity, &str); 20] = [
    (Activity::Debugger, "debugger"),
    (Activity::Ended, "ended"),
    (Activity::WaitsForGil, "waits_for_gil"),
    (Activity::HoldsGil, "holds_gil"),
    (Activity::Collective, "collective"),
    (Activity::Transfer, "transfer"),
    (Activity::Compiles, "compiles"),
    (Activity::LoadsData, "loads_data"),
    (Activity::Checkpoints, "checkpoints"),
    (Activity::WaitsForDevice, "waits_for_device"),
    (Activity::Joins, "joins"),
    (Activity::WaitsForSignal, "waits_for_signal"),
    (Activity::WaitsForLock, "waits_for_lock"),
    (Activity::Backward, "backward"),
    (Activity::UsesFile, "uses_file"),
    (Activity::Sleeps, "sleeps"),
    (Activity::ReadsTerminal, "reads_terminal"),
    (Activity::UsesNetwork, "uses_network"),
    (Activity::Waits, "waits"),
    (Activity::Runs, "runs"),
];

impl Activity {
    /// Its name, such as `waits_for_lock`.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(activity, _)| *activity == self).map_or("waits", |(_, name)| name)
    }

    /// The one of this name; one that this version does not know only waits.
    #[must_use]
    pub fn named(name: &str) -> Self {
        NAMES
            .iter()
            .find(|(_, known)| *known == name)
            .map_or(Self::Waits, |(activity, _)| *activity)
    }

    /// What follows "rank 3": `waits for a lock`.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Debugger => "is in a debugger",
            Self::Ended => "has ended",
            Self::WaitsForGil => "waits for the interpreter's lock (GIL)",
            Self::HoldsGil => "holds the interpreter's lock (GIL) and waits",
            Self::Collective => "waits in a collective",
            Self::Transfer => "waits in a transfer",
            Self::Compiles => "compiles",
            Self::LoadsData => "loads data",
            Self::Checkpoints => "reads or writes a checkpoint",
            Self::WaitsForDevice => "waits for a device",
            Self::Joins => "waits for a thread or process to end (join)",
            Self::WaitsForSignal => "waits for a queue or a notification",
            Self::WaitsForLock => "waits for a lock",
            Self::Backward => "computes gradients",
            Self::UsesFile => "uses a file",
            Self::Sleeps => "sleeps",
            Self::ReadsTerminal => "waits for input from a terminal",
            Self::UsesNetwork => "waits for the network",
            Self::Waits => "waits",
            Self::Runs => "runs",
        }
    }
}

/// A Python function: the end of its file's name, the start of its own, and what it does.
struct PythonRule(&'static str, &'static str, Activity);

/// In no order; an empty function's name is any.
const PYTHON_RULES: [PythonRule; 37] = [
    PythonRule("pdb.py", "interaction", Activity::Debugger),
    PythonRule("bdb.py", "", Activity::Debugger),
    PythonRule("debugpy/", "", Activity::Debugger),
    PythonRule("pydevd/", "wait", Activity::Debugger),
    PythonRule("code.py", "interact", Activity::Debugger),
    PythonRule("torch/distributed/distributed_c10d.py", "send", Activity::Transfer),
    PythonRule("torch/distributed/distributed_c10d.py", "recv", Activity::Transfer),
    PythonRule("torch/distributed/distributed_c10d.py", "isend", Activity::Transfer),
    PythonRule("torch/distributed/distributed_c10d.py", "irecv", Activity::Transfer),
    PythonRule("torch/distributed/distributed_c10d.py", "batch_isend_irecv", Activity::Transfer),
    PythonRule("torch/distributed/distributed_c10d.py", "_", Activity::Runs),
    PythonRule("torch/distributed/distributed_c10d.py", "init_process_group", Activity::Collective),
    PythonRule("torch/distributed/distributed_c10d.py", "", Activity::Collective),
    PythonRule("torch/_dynamo/", "compile", Activity::Compiles),
    PythonRule("torch/_inductor/", "", Activity::Compiles),
    PythonRule("torch/utils/cpp_extension.py", "", Activity::Compiles),
    PythonRule("triton/compiler/", "", Activity::Compiles),
    PythonRule("triton/backends/", "", Activity::Compiles),
    PythonRule("neuronxcc/", "", Activity::Compiles),
    PythonRule("torch/utils/data/", "", Activity::LoadsData),
    PythonRule("datasets/", "__getitem__", Activity::LoadsData),
    PythonRule("torch/serialization.py", "", Activity::Checkpoints),
    PythonRule("torch/distributed/checkpoint/", "", Activity::Checkpoints),
    PythonRule("safetensors/", "", Activity::Checkpoints),
    PythonRule("threading.py", "join", Activity::Joins),
    PythonRule("threading.py", "_shutdown", Activity::Joins),
    PythonRule("threading.py", "_wait_for_tstate_lock", Activity::Joins),
    PythonRule("multiprocessing/process.py", "join", Activity::Joins),
    PythonRule("multiprocessing/util.py", "_exit_function", Activity::Joins),
    PythonRule("subprocess.py", "wait", Activity::Joins),
    PythonRule("subprocess.py", "communicate", Activity::Joins),
    PythonRule("concurrent/futures/thread.py", "shutdown", Activity::Joins),
    PythonRule("concurrent/futures/_base.py", "result", Activity::WaitsForSignal),
    PythonRule("queue.py", "get", Activity::WaitsForSignal),
    PythonRule("queue.py", "put", Activity::WaitsForSignal),
    PythonRule("threading.py", "wait", Activity::WaitsForSignal),
    PythonRule("torch/autograd/", "backward", Activity::Backward),
];

/// A native function: a part of its name, and what it does.
struct NativeRule(&'static str, Activity);

const NATIVE_RULES: [NativeRule; 25] = [
    NativeRule("take_gil", Activity::WaitsForGil),
    NativeRule("c10d::Work::wait", Activity::Collective),
    NativeRule("AsyncWork::wait", Activity::Collective),
    NativeRule("ProcessGroupNCCL::WorkNCCL::wait", Activity::Collective),
    NativeRule("ProcessGroupGloo::SendWork::wait", Activity::Transfer),
    NativeRule("ProcessGroupGloo::RecvWork::wait", Activity::Transfer),
    NativeRule("UnboundBuffer::waitSend", Activity::Transfer),
    NativeRule("UnboundBuffer::waitRecv", Activity::Transfer),
    NativeRule("ncclGroupEnd", Activity::Collective),
    NativeRule("MPI_Wait", Activity::Collective),
    NativeRule("MPI_Allreduce", Activity::Collective),
    NativeRule("cudaStreamSynchronize", Activity::WaitsForDevice),
    NativeRule("cudaDeviceSynchronize", Activity::WaitsForDevice),
    NativeRule("cudaEventSynchronize", Activity::WaitsForDevice),
    NativeRule("cuStreamSynchronize", Activity::WaitsForDevice),
    NativeRule("hipStreamSynchronize", Activity::WaitsForDevice),
    NativeRule("hipDeviceSynchronize", Activity::WaitsForDevice),
    NativeRule("nrt_execute", Activity::WaitsForDevice),
    NativeRule("nrta_", Activity::WaitsForDevice),
    NativeRule("tt::tt_metal::", Activity::WaitsForDevice),
    NativeRule("tt::umd::", Activity::WaitsForDevice),
    NativeRule("PyThread_acquire_lock_timed", Activity::WaitsForLock),
    NativeRule("PyMutex_LockTimed", Activity::WaitsForLock),
    NativeRule("pthread_mutex_lock", Activity::WaitsForLock),
    NativeRule("torch::autograd::Engine::execute", Activity::Backward),
];

/// Device files; a call on one waits for the device.
const DEVICE_FILES: [&str; 5] =
    ["/dev/nvidia", "/dev/tenstorrent", "/dev/neuron", "/dev/kfd", "/dev/dri/"];
/// Names of operations in the functions that libraries run them by.
const NATIVE_OPERATIONS: [(&str, &str); 12] = [
    ("Allreduce", "all_reduce"),
    ("allreduce", "all_reduce"),
    ("Broadcast", "broadcast"),
    ("broadcast", "broadcast"),
    ("Allgather", "all_gather"),
    ("allgather", "all_gather"),
    ("Barrier", "barrier"),
    ("Alltoall", "all_to_all"),
    ("Reduce", "reduce"),
    ("Gather", "gather"),
    ("Scatter", "scatter"),
    ("barrier", "barrier"),
];

/// What a thread does.
#[must_use]
pub fn of(thread: &ThreadEvidence) -> Activity {
    if matches!(thread.state, 'Z' | 'X') {
        return Activity::Ended;
    }
    let python = thread.python.iter().flat_map(|stack| &stack.frames);
    let of_python = python.filter_map(by_python).min();
    let of_native = thread.native.iter().filter_map(by_native).min();
    let named = of_python.into_iter().chain(of_native).min();
    match named.unwrap_or_else(|| by_kernel(thread)) {
        Activity::Sleeps | Activity::Waits | Activity::Runs if keeps_gil(thread) => {
            Activity::HoldsGil
        }
        activity => activity,
    }
}

/// The name of the collective operation or transfer that a process is in: the Python function's, or else
/// that of the library's thread which runs it.
#[must_use]
pub fn operation(threads: &[ThreadEvidence]) -> Option<String> {
    let stacks = threads.iter().filter_map(|thread| thread.python.as_ref());
    let python = stacks
        .flat_map(|stack| &stack.frames)
        .find(|frame| matches!(by_python(frame), Some(Activity::Collective | Activity::Transfer)));
    let native = || {
        let frames = threads.iter().flat_map(|thread| &thread.native);
        let functions = frames.filter_map(|frame| frame.function.as_deref());
        let libraries = functions.filter(|name| name.contains("gloo::") || name.contains("c10d::"));
        libraries.into_iter().find_map(|name| {
            NATIVE_OPERATIONS.iter().find(|(part, _)| name.contains(part)).map(|(_, known)| *known)
        })
    };
    match python {
        Some(frame) => Some(last_part(&frame.function).to_owned()),
        None => native().map(str::to_owned),
    }
}

fn by_python(frame: &PythonFrame) -> Option<Activity> {
    let function = last_part(&frame.function);
    PYTHON_RULES
        .iter()
        .find(|rule| is_in(&frame.file, rule.0) && function.starts_with(rule.1))
        .map(|rule| rule.2)
}

fn by_native(frame: &NativeFrame) -> Option<Activity> {
    let function = frame.function.as_deref()?;
    NATIVE_RULES.iter().find(|rule| function.contains(rule.0)).map(|rule| rule.1)
}

/// Whether a file is one of a rule: a folder anywhere in its path, or the end of it.
fn is_in(file: &str, part: &str) -> bool {
    match part.strip_suffix('/') {
        Some(_) => file.split_once(part).is_some_and(|(before, _)| before.ends_with('/')),
        None => {
            file.strip_suffix(part).is_some_and(|before| before.is_empty() || before.ends_with('/'))
        }
    }
}

/// `join` of `Thread.join`.
fn last_part(function: &str) -> &str {
    function.rsplit('.').next().unwrap_or(function)
}

/// Whether it waits with the interpreter's lock. Python gives it away before it waits, so one that sleeps
/// with it is in a library that does not.
#[must_use]
pub fn keeps_gil(thread: &ThreadEvidence) -> bool {
    let has_gil = thread.python.as_ref().is_some_and(|stack| stack.has_gil);
    has_gil && matches!(thread.state, 'S' | 'D')
}

fn by_kernel(thread: &ThreadEvidence) -> Activity {
    if thread.state == 'R' {
        return Activity::Runs;
    }
    let Some(call) = &thread.system_call else { return Activity::Waits };
    let file = call.file.as_deref().unwrap_or_default();
    match call.name.as_str() {
        "clock_nanosleep" | "nanosleep" => Activity::Sleeps,
        _ if DEVICE_FILES.iter().any(|device| file.starts_with(device)) => Activity::WaitsForDevice,
        "read" if file.starts_with("/dev/pts/") || file.starts_with("/dev/tty") => {
            Activity::ReadsTerminal
        }
        "openat" | "open" | "statx" | "stat" | "newfstatat" | "unlink" | "unlinkat"
        | "renameat2" | "mkdirat" | "fsync" | "fdatasync" | "flock" => Activity::UsesFile,
        _ if file.starts_with('/') => Activity::UsesFile,
        _ if file.starts_with("socket:") => Activity::UsesNetwork,
        "connect" | "accept4" | "recvfrom" | "recvmsg" | "sendto" | "sendmsg" => {
            Activity::UsesNetwork
        }
        "wait4" | "waitid" => Activity::Joins,
        _ => Activity::Waits,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_activity_has_one_name_and_serde_has_the_same() {
        for (activity, name) in NAMES {
            assert_eq!((activity.name(), Activity::named(name)), (name, activity));
            assert_eq!(serde_json::to_string(&activity).unwrap(), format!("{name:?}"));
        }
        assert_eq!(Activity::named("of a later version"), Activity::Waits);
    }
}
