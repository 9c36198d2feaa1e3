//! A snapshot with only the rows that a query wants.

use telltale_schema::snapshot::{LeftOut, Process, Snapshot};

use crate::expression::{Expression, Stopped};
use crate::subject::Subject;
use crate::{ALWAYS, Query};

impl Query {
    /// The snapshot with the processes, and of each the devices, for which the query holds; and with
    /// the devices that those are on, or for which it holds for any user. A device's values
    /// stay what they are: they are not only of the processes that are left.
    #[must_use]
    pub fn select(&self, snapshot: &Snapshot) -> Snapshot {
        self.select_while(snapshot, |_| true).expect(ALWAYS)
    }

    /// The same, as long as `goes_on`, which is asked after each device and process, with 0, and before
    /// each search for a pattern, with the most steps that it can take: the bytes of the compiled
    /// pattern times those of the text. None where it does not. So who stops it need not wait for a
    /// search.
    pub fn select_while(
        &self,
        snapshot: &Snapshot,
        mut goes_on: impl FnMut(u64) -> bool,
    ) -> Option<Snapshot> {
        if matches!(self.expression, Expression::All) {
            return Some(snapshot.clone());
        }
        let mut wanted = Vec::with_capacity(snapshot.devices.len());
        for device in &snapshot.devices {
            wanted.push(self.holds(&Subject::of_device_alone(device), &mut goes_on).ok()?);
            if !goes_on(0) {
                return None;
            }
        }
        let mut processes = Vec::new();
        for process in &snapshot.processes {
            if !goes_on(0) {
                return None;
            }
            if let Some(process) = self.selected(snapshot, process, &mut goes_on).ok()? {
                for held in &process.devices {
                    if let Some(wanted) = wanted.get_mut(held.device) {
                        *wanted = true;
                    }
                }
                processes.push(process);
            }
        }
        Some(restricted(snapshot, &wanted, processes))
    }

    /// The process with the devices for which the query holds; none where it holds for none of them.
    fn selected(
        &self,
        snapshot: &Snapshot,
        process: &Process,
        goes_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Option<Process>, Stopped> {
        let mut holds =
            |held, device| self.holds(&Subject { process: Some(process), held, device }, goes_on);
        if process.devices.is_empty() {
            return Ok(holds(None, None)?.then(|| process.clone()));
        }
        let mut devices = Vec::new();
        for held in &process.devices {
            if holds(Some(held), snapshot.devices.get(held.device))? {
                devices.push(held.clone());
            }
        }
        Ok((!devices.is_empty()).then(|| Process { devices, ..process.clone() }))
    }
}

/// The snapshot with the devices that are wanted and with these of its processes, which have nothing on others.
pub(crate) fn restricted(
    snapshot: &Snapshot,
    wanted: &[bool],
    mut processes: Vec<Process>,
) -> Snapshot {
    let mut places = Vec::with_capacity(wanted.len());
    let mut next = 0;
    for wanted in wanted {
        places.push(next);
        next += usize::from(*wanted);
    }
    for held in processes.iter_mut().flat_map(|process| &mut process.devices) {
        if let Some(place) = places.get(held.device) {
            held.device = *place;
        }
    }
    let kept = snapshot.devices.iter().zip(wanted).filter(|(_, wanted)| **wanted);
    let devices: Vec<_> = kept.map(|(device, _)| device.clone()).collect();
    let before = snapshot.left_out.unwrap_or_default();
    let left_out = LeftOut {
        devices: before.devices.saturating_add(less(&snapshot.devices, &devices)),
        processes: before.processes.saturating_add(less(&snapshot.processes, &processes)),
    };
    Snapshot {
        schema_version: snapshot.schema_version,
        taken_at: snapshot.taken_at,
        collected_in_ns: snapshot.collected_in_ns,
        devices,
        processes,
        host: snapshot.host.clone(),
        closed_processes: snapshot.closed_processes,
        withheld_processes: snapshot.withheld_processes,
        left_out: Some(left_out),
        faults: snapshot.faults.clone(),
        sources: snapshot.sources.clone(),
    }
}

/// By how many one list is shorter than another.
fn less<T>(all: &[T], some: &[T]) -> u64 {
    u64::try_from(all.len().saturating_sub(some.len())).unwrap_or(u64::MAX)
}
