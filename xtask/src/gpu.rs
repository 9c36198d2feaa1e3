//! Telltale beside NVIDIA's own tools, on a machine with a GPU: each value of `nvidia-smi`, the memory that
//! `telltale run` records of PyTorch, and the plugin in a real NCCL.
//!
//! Nothing is changed on the GPUs. It runs from a folder without the repository and without a network.

mod agent;
mod child;
mod fields;
mod memory;
mod nccl;
mod nvidia_smi;
pub mod programs;
mod python;
mod readings;
pub mod report;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use telltale_harness::Scratch;
use telltale_schema::calendar;
use telltale_schema::clock::Timestamp;
use telltale_schema::snapshot::Snapshot;

use programs::Programs;
use report::{Report, Verdict};

/// How long `telltale smi` may take: where no process keeps the GPUs awake, NVML starts them first.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Why there is no comparison.
#[derive(Debug, thiserror::Error)]
#[error("cannot compare {step}: {cause}; {remedy}")]
pub struct GpuError {
    step: &'static str,
    cause: String,
    remedy: &'static str,
}

/// What the heading says of the GPUs.
struct Gpus {
    count: usize,
    words: String,
}

const FOLDER: &str = "run this where NVIDIA's driver and nvidia-smi are; cargo xtask gpu --into DIR fills a folder to take there";

/// Whether `nvidia-smi` shows a GPU here.
///
/// # Errors
/// Why it does not, and what to do.
pub fn find() -> Result<(), GpuError> {
    gpus().map(|_| ())
}

/// Compares everything. Says on stderr what it is at. A part that fails is a row, so that the others are not lost.
///
/// # Errors
/// Why no value could be read, and what to do.
pub fn compare(programs: &Programs) -> Result<Report, GpuError> {
    let gpus = gpus()?;
    // Of these processes alone.
    let (ledgers, place) = (Scratch::new(), Scratch::new());
    eprintln!("comparing values of {} with nvidia-smi", gpus.words);
    let mut rows = readings::compare(|| snapshot(programs, None)).map_err(|cause| GpuError {
        step: "values with nvidia-smi",
        cause,
        remedy: "see whether nvidia-smi and telltale smi --json work here",
    })?;
    eprintln!("comparing memory of a process with PyTorch");
    let shown = || snapshot(programs, Some(ledgers.path()));
    let of_memory = memory::compare(programs, place.path(), ledgers.path(), shown);
    let (more, torch) = of_memory.unwrap_or_else(|cause| {
        let remedy = "free the first GPU, and see whether PyTorch works there";
        (vec![memory::alone(Verdict::Differs(format!("{cause}; {remedy}")))], None)
    });
    rows.extend(more);
    eprintln!("loading the plugin into NCCL");
    let of_nccl = nccl::compare(programs, place.path(), gpus.count);
    let (more, nccl) = of_nccl.unwrap_or_else(|cause| {
        let remedy = "see whether a job of torch.distributed with NCCL works here";
        (vec![nccl::alone(Verdict::Differs(format!("{cause}; {remedy}")))], None)
    });
    rows.extend(more);
    let heading = heading(programs, &gpus, torch, nccl);
    Ok(Report { heading, rows, not_compared: fields::not_compared() })
}

fn gpus() -> Result<Gpus, GpuError> {
    let look = nvidia_smi::look(&["name", "driver_version", nvidia_smi::ADDRESS]);
    let look = look.map_err(|cause| GpuError { step: "with a GPU", cause, remedy: FOLDER })?;
    let values = |field| -> String {
        let texts = look.gpus.values().filter_map(|gpu| gpu.fields.get(field));
        let texts: BTreeSet<&str> = texts.map(String::as_str).collect();
        texts.into_iter().collect::<Vec<_>>().join(" and ")
    };
    let count = look.gpus.len();
    let words = format!("{count} × {}, driver {}", values("name"), values("driver_version"));
    Ok(Gpus { count, words })
}

fn heading(
    programs: &Programs,
    gpus: &Gpus,
    torch: Option<String>,
    nccl: Option<String>,
) -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = calendar::format(Timestamp(u64::try_from(since.as_nanos()).unwrap_or(0)));
    let date = now.split(['T', ' ']).next().unwrap_or_default();
    let parts =
        [Some(gpus.words.clone()), torch, nccl, Some(format!("Telltale {}", programs.commit))];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let parts = parts.join(", ");
    format!("{parts}, {date}. A value of `nvidia-smi` is that from before to after Telltale's.")
}

/// What `telltale smi` shows, by the ledgers in this directory where one is given.
fn snapshot(programs: &Programs, ledgers: Option<&Path>) -> Result<Snapshot, String> {
    let mut command = Command::new(&programs.telltale);
    command.args(["smi", "--json"]);
    if let Some(ledgers) = ledgers {
        command.arg("--runtime-dir").arg(ledgers);
    }
    let output = child::run(&mut command, TIMEOUT)?;
    // 1 is that some source failed in part, and all that is known is there.
    if !matches!(output.status.code(), Some(0 | 1)) {
        return Err(format!("telltale smi failed: {}", output.complaint()));
    }
    serde_json::from_str(&output.out)
        .map_err(|error| format!("telltale smi --json is not understood: {error}"))
}
