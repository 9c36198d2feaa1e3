//! Processes, what they record, and what dead ones left.

use telltale_schema::snapshot::{Accounting, ProcessState, Snapshot};
use telltale_schema::text::printable;

use super::finding::Finding;

/// Checks what a snapshot reports about processes.
pub(super) fn check(snapshot: &Snapshot, findings: &mut Vec<Finding>) {
    let alive =
        snapshot.processes.iter().filter(|process| process.state != ProcessState::Dead).count();
    let dead = snapshot.processes.len() - alive;
    let unknown = snapshot.processes.iter().filter(|process| {
        process.state != ProcessState::Dead
            && process
                .devices
                .iter()
                .any(|held| held.accounting == Accounting::Unknown && held.refused.is_none())
    });
    for process in &snapshot.processes {
        for why in process.devices.iter().filter_map(|held| held.refused.as_ref()) {
            let pid = process.pid.map(|pid| format!("pid {pid}, ")).unwrap_or_default();
            let (name, why) = (printable(&process.name), printable(why));
            let what = format!("{pid}{name}: it {why}; none of that is counted");
            findings.push(Finding::partly("processes", what, "telltale smi --details"));
        }
    }
    // Of those whose files may not be opened that is not known.
    let closed = usize::try_from(snapshot.closed_processes).unwrap_or(usize::MAX);
    findings.push(match (alive, unknown.count().saturating_sub(closed)) {
        (0, _) => Finding::works("processes", "none holds a device"),
        (alive, 0) if closed > 0 => Finding::works("processes", format!("{alive} hold devices")),
        (alive, 0) => Finding::works("processes", format!("{alive}, all with known memory")),
        (alive, unknown) => Finding::partly(
            "processes",
            format!(
                "{alive}, of which {unknown} record nothing; link the runtime into them, or see \
                 that TELLTALE_DISABLED is not set (docs/integrate.md)"
            ),
            "telltale run -- COMMAND",
        ),
    });
    if snapshot.closed_processes > 0 {
        let what = format!(
            "{} of other users cannot be read by this one and are not counted",
            snapshot.closed_processes
        );
        findings.push(Finding::partly("processes", what, "sudo telltale doctor"));
    }
    if dead > 0 {
        let what = format!("{dead} ended without taking their files along");
        findings.push(Finding::partly("leftovers", what, "telltale smi --clean"));
    }
}
