//! Devices, the processes on them, and the directory in which those tell of themselves.

use std::path::Path;

use telltale_ledger::directory::{DirectoryEnvironment, RuntimeDirectory};
use telltale_schema::device::DeviceClass;
use telltale_schema::snapshot::{Accounting, ProcessState, Snapshot, SourceError};
use telltale_schema::text::with_causes;

use super::finding::{Finding, Verdict};
use crate::arguments::Place;

/// Free bytes of a file system below which ledgers may not fit.
const LITTLE_BYTES: u64 = 16 << 20;

/// Looks at what a snapshot tells of the machine below `root`.
///
/// A source without devices is told with its reason, and is no fault.
pub(super) fn look(
    snapshot: &Snapshot,
    root: &Path,
    absent: &[(&'static str, String)],
    findings: &mut Vec<Finding>,
) {
    findings.push(devices(snapshot, root));
    for (source, why) in absent {
        findings.push(Finding::new("hardware", Verdict::NotHere, format!("{source}: {why}")));
    }
    findings.extend(nvml(snapshot));
    findings.extend(processes(snapshot));
    for source in &snapshot.sources {
        let is_absence = |error: &&SourceError| {
            absent.iter().any(|(name, why)| *name == source.name && *why == error.detail)
        };
        for error in source.errors.iter().filter(|error| !is_absence(error)) {
            let what = format!("{}: {}: {}", source.name, error.subject, error.detail);
            findings.push(Finding::new("source", Verdict::Partly, what));
        }
        if source.errors_dropped > 0 {
            let what = format!("{}: {} more errors", source.name, source.errors_dropped);
            findings.push(Finding::new("source", Verdict::Partly, what));
        }
    }
}

fn devices(snapshot: &Snapshot, root: &Path) -> Finding {
    let count = snapshot.devices.iter().filter(|device| !device.identity.is_host()).count();
    if count == 0 {
        let driver = root.join("sys/class/tenstorrent");
        return match driver.exists() {
            true => Finding::new(
                "devices",
                Verdict::Broken,
                "the Tenstorrent driver is loaded and shows no device",
            )
            .mended_by("sudo dmesg | grep -i tenstorrent")
            .mended_by("lspci -d 1e52:"),
            false => Finding::new(
                "devices",
                Verdict::NotHere,
                "no accelerator was found; the machine itself is shown",
            ),
        };
    }
    let mute = snapshot.devices.iter().filter(|device| {
        device.identity.chip().is_some_and(|chip| !chip.remote)
            && device.telemetry.temperature_celsius.value().is_none()
    });
    match mute.count() {
        0 => Finding::new("devices", Verdict::Works, format!("{count} found, all with sensors")),
        mute => Finding::new(
            "devices",
            Verdict::Partly,
            format!("{count} found, {mute} without a temperature; telltale smi -d says why"),
        ),
    }
}

/// What it means for the machine that NVIDIA's library is asked.
fn nvml(snapshot: &Snapshot) -> Option<Finding> {
    let by_nvml = snapshot.sources.iter().any(|source| source.name == "nvidia");
    let gpus = snapshot.devices.iter().filter(|device| {
        let identity = &device.identity;
        identity.vendor() == "nvidia"
            && identity.other().is_some_and(|other| other.class == DeviceClass::Gpu)
    });
    let count = gpus.count();
    (by_nvml && count > 0).then(|| {
        let what = format!(
            "nvidia: {count} by NVML, whose library opens /dev/nvidiactl and each GPU's node for as \
             long as telltale runs"
        );
        Finding::new("hardware", Verdict::Works, what)
    })
}

fn processes(snapshot: &Snapshot) -> Vec<Finding> {
    let mut findings = Vec::new();
    let alive =
        snapshot.processes.iter().filter(|process| process.state != ProcessState::Dead).count();
    let dead = snapshot.processes.len() - alive;
    let unknown = snapshot.processes.iter().filter(|process| {
        process.state != ProcessState::Dead
            && process.devices.iter().any(|held| held.accounting == Accounting::Unknown)
    });
    findings.push(match (alive, unknown.count()) {
        (0, _) => Finding::new("processes", Verdict::Works, "none holds a device"),
        (alive, 0) => {
            Finding::new("processes", Verdict::Works, format!("{alive}, all with known memory"))
        }
        (alive, unknown) => Finding::new(
            "processes",
            Verdict::Partly,
            format!(
                "{alive}, of which {unknown} record nothing; link the runtime into them, or see \
                 that TELLTALE_DISABLED is not set (docs/integrate.md)"
            ),
        ),
    });
    if snapshot.closed_processes > 0 {
        let what = format!(
            "{} of other users cannot be read by this one and are in no figure",
            snapshot.closed_processes
        );
        let closed = Finding::new("processes", Verdict::Partly, what);
        findings.push(closed.mended_by("sudo telltale doctor"));
    }
    if dead > 0 {
        let what = format!("{dead} ended without taking their files along");
        let left = Finding::new("leftovers", Verdict::Partly, what);
        findings.push(left.mended_by("telltale smi --clean"));
    }
    findings
}

/// Looks at the directories in which processes leave ledgers and endpoints.
pub(super) fn look_at_directories(place: &Place, findings: &mut Vec<Finding>) {
    let root = place.root.as_deref().filter(|root| *root != Path::new("/"));
    let environment = DirectoryEnvironment::of_this_process();
    let explicit = place.runtime_dir.as_deref();
    let found = RuntimeDirectory::for_reading(explicit, root, &environment);
    if found.is_empty() {
        let places = RuntimeDirectory::places_for_reading(explicit, root, &environment);
        let places: Vec<_> = places.iter().map(|path| path.display().to_string()).collect();
        findings.push(Finding::new(
            "directory",
            Verdict::NotHere,
            format!("there is none yet of {}; the first process makes one", places.join(", ")),
        ));
    }
    for directory in found {
        findings.push(match directory {
            Ok(directory) => of_directory(&directory),
            Err(error) => Finding::new("directory", Verdict::Broken, with_causes(&error)),
        });
    }
}

fn of_directory(directory: &RuntimeDirectory) -> Finding {
    let path = directory.path().display();
    let free = rustix::fs::statvfs(directory.path())
        .map(|status| status.f_bavail.saturating_mul(status.f_frsize));
    match free {
        Ok(free) if free < LITTLE_BYTES => Finding::new(
            "directory",
            Verdict::Broken,
            format!(
                "{path}: {} are free; processes that start are not accounted",
                telltale_schema::quantity::bytes(free)
            ),
        )
        .mended_by(format!("df -h {path}"))
        .mended_by("telltale smi --clean"),
        _ => {
            let what = format!("{path}, kept by user {}", directory.owner());
            Finding::new("directory", Verdict::Works, what)
        }
    }
}
