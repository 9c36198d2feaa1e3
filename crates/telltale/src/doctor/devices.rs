//! Devices, the sources that report them, and boards that no driver has.

use std::path::Path;

use rustix::process::geteuid;
use telltale_collector::hardware::{DriverlessBoard, driverless_boards};
use telltale_schema::device::DeviceClass;
use telltale_schema::health::{FaultKind, HealthState, RuleSubject};
use telltale_schema::reading::Absence;
use telltale_schema::snapshot::{Snapshot, SourceError, SourceStatus};

use super::finding::Finding;

/// Checks what a snapshot reports about the devices of the machine below `root`.
///
/// A source without devices is shown with its reason, and is no fault.
pub(super) fn check(
    snapshot: &Snapshot,
    root: &Path,
    absent: &[(&'static str, String)],
    findings: &mut Vec<Finding>,
) {
    let boards = driverless_boards(root);
    findings.push(devices(snapshot, root, &boards));
    findings.extend(faults(snapshot));
    findings.extend(boards.iter().map(driverless));
    for (source, why) in absent {
        findings.push(without_devices(source, why, root));
    }
    findings.extend(nvml(snapshot));
    for source in &snapshot.sources {
        let is_absence = |error: &&SourceError| {
            absent.iter().any(|(name, why)| *name == source.name && *why == error.detail)
        };
        let errors = source.errors.iter().filter(|error| !is_absence(error));
        findings.extend(errors.map(|error| failed(source, error)));
        for note in &source.notes {
            let what =
                format!("{}: {} of {}: {}", source.name, note.count, note.subject, note.detail);
            findings.push(Finding::not_here("note", what));
        }
        if source.errors_dropped > 0 {
            let what = format!("{}: {} more errors", source.name, source.errors_dropped);
            findings.push(Finding::partly("source", what, "telltale smi -d"));
        }
    }
}

fn devices(snapshot: &Snapshot, root: &Path, boards: &[DriverlessBoard]) -> Finding {
    let count = snapshot.devices.iter().filter(|device| !device.identity.is_host()).count();
    if count == 0 {
        let driver = root.join("sys/class/tenstorrent");
        if driver.exists() {
            let what = "the Tenstorrent driver is loaded and shows no device";
            return Finding::broken("devices", what, "sudo dmesg | grep -i tenstorrent")
                .mended_by("lspci -d 1e52:");
        }
        let what = match boards.iter().any(|board| board.held_by.is_none()) {
            true => "no accelerator has a driver; the machine itself is shown",
            false => "no accelerator was found; the machine itself is shown",
        };
        return Finding::not_here("devices", what);
    }
    let with = |kind| snapshot.devices.iter().filter(move |device| device.fault(kind).is_some());
    let stopped = with(FaultKind::HeartbeatStopped).count();
    let vanished = with(FaultKind::Vanished).count();
    let mute = snapshot.devices.iter().filter(|device| {
        device.identity.chip().is_some_and(|chip| !chip.remote)
            && device.fault(FaultKind::Vanished).is_none()
            && device.telemetry.temperature_celsius.value().is_none()
    });
    let mute = mute.count();
    let parts = [
        (stopped, format!("the firmware of {stopped} has stopped")),
        (vanished, format!("{vanished} of them vanished")),
        (mute, format!("{mute} without a temperature")),
    ];
    let parts: Vec<String> =
        parts.into_iter().filter(|(count, _)| *count > 0).map(|(_, part)| part).collect();
    if parts.is_empty() {
        let remote = snapshot.devices.iter().filter(|device| device.identity.is_remote()).count();
        let with = match remote {
            0 => String::from("all with sensors"),
            1 => String::from("all with sensors but 1 remote chip"),
            _ => format!("all with sensors but {remote} remote chips"),
        };
        return Finding::works("devices", format!("{count} found, {with}"));
    }
    let what = format!("{count} found, {}", parts.join(", "));
    match stopped + vanished {
        0 => Finding::partly("devices", what, "telltale smi -d"),
        _ => Finding::broken("devices", what, "telltale smi -d"),
    }
}

/// What is wrong with devices and parts of the machine. Each text ends with what to do.
fn faults(snapshot: &Snapshot) -> impl Iterator<Item = Finding> {
    let number = |id: &str| {
        let device = snapshot.devices.iter().find(|device| device.id == id)?;
        device.identity.chip()?.driver_ordinal
    };
    snapshot.wrong().map(move |(name, fault)| {
        let what = format!("{name}: {}", fault.detail);
        let (subject, remedy) = match fault.kind.rule().about {
            RuleSubject::Device => ("device", "telltale smi -d"),
            RuleSubject::Source | RuleSubject::Part(_) => ("machine", "sudo dmesg"),
        };
        let finding = match fault.kind.state() {
            HealthState::Failed => Finding::broken(subject, what, remedy),
            _ => Finding::partly(subject, what, remedy),
        };
        match (fault.kind, number(name)) {
            (FaultKind::HeartbeatStopped, Some(number)) => {
                finding.mended_by(format!("tt-smi -r {number}"))
            }
            _ => finding,
        }
    })
}

/// A board of which nothing is known.
fn driverless(board: &DriverlessBoard) -> Finding {
    let DriverlessBoard { pci, vendor, module, held_by } = board;
    match held_by {
        Some(driver) => Finding::not_here(
            "hardware",
            format!("{vendor} at {pci} is {driver}'s, for a virtual machine; it is reported there"),
        ),
        None => Finding::broken(
            "hardware",
            format!("{vendor} at {pci} has no driver; install its kernel module and load it"),
            format!("sudo modprobe {module}"),
        )
        .mended_by(format!("sudo dmesg | grep -i {module}")),
    }
}

/// A source without devices; where its driver is there and the rest of it is not, that is a fault.
fn without_devices(source: &str, why: &str, root: &Path) -> Finding {
    let what = format!("{source}: {why}");
    let has_driver = source == "nvidia" && root.join("proc/driver/nvidia/version").exists();
    if has_driver && root == Path::new("/") && why.contains("install") {
        return Finding::partly("hardware", what, "ldconfig -p | grep libnvidia-ml");
    }
    Finding::not_here("hardware", what)
}

/// One thing that a source could not read.
fn failed(source: &SourceStatus, error: &SourceError) -> Finding {
    let what = format!("{}: {}: {}", source.name, error.subject, error.detail);
    let finding = |remedy: &str| Finding::partly("source", what.clone(), remedy);
    let is_root = geteuid().is_root();
    match (source.name.as_str(), error.reason) {
        (_, Absence::Permission) if !is_root => finding("sudo telltale doctor"),
        ("tenstorrent", Absence::TimedOut | Absence::Resetting) => {
            finding("sudo dmesg | grep -i tenstorrent").mended_by("tt-smi -r")
        }
        ("tenstorrent", _) => finding("sudo dmesg | grep -i tenstorrent"),
        ("nvidia", _) => finding("sudo dmesg | grep -i nvrm").mended_by("nvidia-smi"),
        ("neuron", _) => finding("sudo dmesg | grep -i neuron"),
        ("drm", _) => finding("sudo dmesg | grep -i drm"),
        // What is wrong with it, and what to run, is in the words of the refusal.
        ("ledgers" | "endpoints" | "regions", Absence::Refused) => finding("telltale smi -d"),
        ("pods" | "kubelet", _) => finding("telltale config show | grep pods"),
        _ => finding("telltale smi -d"),
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
             long as telltale runs; --no-nvml leaves it alone"
        );
        Finding::works("hardware", what)
    })
}
