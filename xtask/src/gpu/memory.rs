//! What `telltale run` records of a PyTorch process, beside PyTorch's allocator and NVML.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde::Deserialize;
use telltale_schema::memory::{MemoryKind, MemorySpace};
use telltale_schema::snapshot::{Device, HeldDevice, Snapshot};

use super::child::Running;
use super::nvidia_smi;
use super::programs::Programs;
use super::python::{self, CANNOT};
use super::report::{ComparedValue, Verdict};

const SCRIPT: &str = include_str!("memory.py");

/// Importing PyTorch and its first allocation may take this long.
const TIMEOUT: Duration = Duration::from_secs(300);

/// How far apart two values may be, as a share of the larger one.
const SHARE: f64 = 0.01;

/// What the script prints.
#[derive(Debug, Deserialize)]
struct Printed {
    pid: u32,
    reserved: u64,
    torch: String,
}

/// What Telltale shows of the process, and of its device.
struct Recorded {
    ledger: u64,
    unattributed: u64,
    device: usize,
}

/// Compares, with its script in `place` and ledgers in `ledgers`, of which `snapshot` is made. Gives PyTorch's version
/// where there is one.
pub(super) fn compare(
    programs: &Programs,
    place: &Path,
    ledgers: &Path,
    snapshot: impl Fn() -> Result<Snapshot, String>,
) -> Result<(Vec<ComparedValue>, Option<String>), String> {
    let script = python::write(place, "memory.py", SCRIPT)?;
    let earlier = snapshot()?;
    let earlier_look = nvidia_smi::look(&["memory.used", "pci.bus_id", "index"])?;
    let mut command = Command::new(&programs.telltale);
    command.arg("run").arg("--library").arg(&programs.preload).arg("--runtime-dir").arg(ledgers);
    command.arg("--").arg(python::program()).arg(script);
    let mut running = Running::start(&mut command)?;
    let Some(line) = running.line("memory: ", TIMEOUT)? else {
        let output = running.finish(TIMEOUT)?;
        let why = output.complaint();
        return match output.status.code() {
            Some(CANNOT) => Ok((vec![alone(Verdict::NotChecked(why))], None)),
            _ => Err(format!("the process with PyTorch failed: {why}")),
        };
    };
    let printed: Printed = serde_json::from_str(&line)
        .map_err(|error| format!("the process with PyTorch is not understood: {error}"))?;
    let shown = snapshot()?;
    let look = nvidia_smi::look(&["memory.used", "pci.bus_id", "index"])?;
    let output = running.finish(TIMEOUT)?;
    if !output.status.success() {
        return Err(format!("the process with PyTorch failed: {}", output.complaint()));
    }
    let rows = match recorded(&shown, printed.pid) {
        Some(recorded) => rows(&printed, &recorded, (&earlier, &shown), (&earlier_look, &look)),
        None => vec![alone(Verdict::Differs(format!(
            "telltale smi shows no device memory of process {}, which is recorded",
            printed.pid
        )))],
    };
    Ok((rows, Some(format!("PyTorch {}", printed.torch))))
}

/// A row that stands for all of this part.
pub(super) fn alone(verdict: Verdict) -> ComparedValue {
    ComparedValue {
        gpu: None,
        theirs: String::from("PyTorch's memory_reserved()"),
        their_value: String::new(),
        ours: String::from("ledger of telltale run"),
        our_value: String::new(),
        verdict,
    }
}

/// What is shown of the process on the device where it has most.
fn recorded(shown: &Snapshot, pid: u32) -> Option<Recorded> {
    let process = shown.processes.iter().find(|process| process.pid == Some(pid))?;
    let bytes = |held: &HeldDevice| held.live_bytes(MemorySpace::Dram).unwrap_or(0);
    let held = process.devices.iter().max_by_key(|held| bytes(held))?;
    let device = shown.devices.get(held.device)?;
    device.identity.pci()?;
    Some(Recorded { ledger: bytes(held), unattributed: unattributed(device), device: held.device })
}

fn unattributed(device: &Device) -> u64 {
    device.kind(MemoryKind::Dram).map_or(0, |parts| parts.unattributed_bytes)
}

fn rows(
    printed: &Printed,
    recorded: &Recorded,
    (earlier, shown): (&Snapshot, &Snapshot),
    (earlier_look, look): (&nvidia_smi::Look, &nvidia_smi::Look),
) -> Vec<ComparedValue> {
    let Some(device) = shown.devices.get(recorded.device) else { return Vec::new() };
    let address = device.identity.pci();
    let gpu = device.identity.other().and_then(|other| other.driver_ordinal).map(u64::from);
    let earlier = earlier.devices.iter().find(|one| one.id == device.id);
    // What is in the remainder beside this process was there before it.
    let remainder = recorded.unattributed.saturating_sub(earlier.map_or(0, unattributed));
    let all = recorded.ledger.saturating_add(remainder);
    let row = |theirs: &str, their: Result<u64, String>, ours: &str, value: u64| ComparedValue {
        gpu,
        theirs: theirs.to_owned(),
        their_value: their.as_ref().map_or_else(|_| String::new(), |bytes| mebibytes(*bytes)),
        ours: ours.to_owned(),
        our_value: mebibytes(value),
        verdict: their.map_or_else(Verdict::Skipped, |bytes| within(bytes, value)),
    };
    let text = |look: &nvidia_smi::Look| {
        let gpu = look.gpus.get(&address?)?;
        let used = gpu.fields.get("memory.used").and_then(|text| nvidia_smi::value(text))?;
        used.parse::<u64>().ok()?.checked_mul(1 << 20)
    };
    let of_process = || {
        let gpu = look.gpus.get(&address?)?;
        gpu.processes.get(&printed.pid).copied().flatten()
    };
    let grown = || text(look)?.checked_sub(text(earlier_look)?);
    let hidden =
        "nvidia-smi has no memory of this process: another PID namespace, or a driver without it";
    let sum = "ledger + unattributed of the device, without what was there before";
    vec![
        row(
            "PyTorch's memory_reserved()",
            Ok(printed.reserved),
            "ledger of telltale run",
            recorded.ledger,
        ),
        row(
            "compute-apps: used_gpu_memory",
            of_process().ok_or_else(|| hidden.to_owned()),
            sum,
            all,
        ),
        row(
            "memory.used, more than before",
            grown().ok_or_else(|| String::from("nvidia-smi has no memory.used")),
            sum,
            all,
        ),
    ]
}

/// Whether both are the same within [`SHARE`].
fn within(theirs: u64, ours: u64) -> Verdict {
    let apart = theirs.abs_diff(ours);
    match as_number(apart) <= SHARE * as_number(theirs.max(ours)) {
        true => Verdict::Agrees,
        false => Verdict::Differs(format!("by {}, more than 1 %", mebibytes(apart))),
    }
}

/// Exact up to 2⁵³ bytes, which no device has.
#[allow(clippy::cast_precision_loss)]
fn as_number(bytes: u64) -> f64 {
    bytes as f64
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", as_number(bytes) / 1_048_576.0)
}

#[cfg(test)]
mod tests {
    use super::{Verdict, within};

    #[test]
    fn one_percent_of_the_larger_one_is_the_limit() {
        assert_eq!(within(1_000_000, 990_000), Verdict::Agrees);
        assert_eq!(within(990_000, 1_000_000), Verdict::Agrees);
        assert!(matches!(within(1_000_000, 989_999), Verdict::Differs(_)));
        assert!(matches!(within(0, 1), Verdict::Differs(_)));
        assert_eq!(within(0, 0), Verdict::Agrees);
    }
}
