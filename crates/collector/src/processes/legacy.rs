//! Processes that report by the allocation server's protocol: found by who is connected, which the
//! kernel reports. A collector without a socket of its own asks the service of the runtime directory.

use std::collections::BTreeMap;

use telltale_schema::clock::Timestamp;
use telltale_schema::process::ProcessIdentity;
use telltale_schema::text::with_causes;
use telltale_wire as wire;

use super::status::StatusLookup as Seen;
use super::{Discovery, Processes, claims, described};
use crate::legacy::{self, LegacyProcess};
use crate::observation::{LegacyObservation, ProcessObservation};
use crate::report::SourceReport;
use crate::sockets;

impl Processes {
    /// Adds what is reported, and processes that nothing else reported. `pids` are those of the
    /// processes that were found alive, in their order.
    pub(super) fn read_legacy(
        &mut self,
        found: &mut Discovery,
        pids: &mut Vec<Option<u32>>,
        now: (Timestamp, u64),
    ) {
        let own = self.places.legacy.as_ref().and_then(|clients| clients.processes());
        let reported = own.unwrap_or_else(|| self.ask_legacy(found));
        for reported in reported {
            let LegacyProcess { pid, start_time_ticks, devices, faults, .. } = reported;
            let descriptions = &mut self.descriptions;
            // One that has ended since, or whose pid another has by now, is left out.
            let Some(description) =
                described(descriptions, pid, start_time_ticks, &self.procfs, now)
            else {
                continue;
            };
            let identity = description.identity(pid, &self.standpoint);
            let known = pids.iter().position(|other| *other == Some(pid));
            let process = known.unwrap_or_else(|| {
                // What it counted stays with its row when it ends.
                let process = description.process(pid, identity, now.0);
                found.processes.push(ProcessObservation::bare(process));
                pids.push(Some(pid));
                found.processes.len() - 1
            });
            // The history keeps series of those alone that have one.
            let observed = &mut found.processes[process].process;
            observed.identity = observed.identity.or(identity);
            found.legacy.push(LegacyObservation { process, devices, faults });
        }
    }

    /// What the services of the runtime directories say of their clients, each process once.
    fn ask_legacy(&mut self, found: &mut Discovery) -> Vec<LegacyProcess> {
        let started_ns = self.clock.monotonic_ns();
        let (mut report, mut has_service) = (SourceReport::default(), false);
        let mut all: BTreeMap<(u32, u64), LegacyProcess> = BTreeMap::new();
        for directory in &self.main_directories {
            match legacy::ask(directory, self.places.timeout) {
                Ok(None) => {}
                Ok(Some(answers)) => {
                    has_service = true;
                    for process in self.believed(answers) {
                        all.entry((process.pid, process.start_time_ticks)).or_insert(process);
                    }
                }
                Err(error) => {
                    has_service = true;
                    let subject =
                        directory.path().join(sockets::LEGACY_CLIENTS).display().to_string();
                    let (reason, detail) = (error.absence(), with_causes(&error));
                    match error.culprit() {
                        Some(user) => report.odd_entry(user, subject, reason, detail),
                        None => report.error(subject, reason, detail),
                    }
                }
            }
        }
        if has_service {
            found.statuses.push(report.finish("legacy", &*self.clock, started_ns));
        }
        all.into_values().collect()
    }

    /// What of a service's answer is believed: what it says of processes of this boot and PID
    /// namespace, for which it may speak.
    fn believed(&self, answers: legacy::PassedOn) -> Vec<LegacyProcess> {
        let legacy::PassedOn { only_of, reports } = answers;
        let own = self.standpoint.boot_id.zip(self.standpoint.namespace);
        let process = |report: wire::Report| {
            let ProcessIdentity { boot_id, pid_namespace, pid, start_time_ticks } = report.identity;
            if own != Some((boot_id, pid_namespace)) {
                return None;
            }
            let Seen::Process(_, status) = self.procfs.find(pid) else { return None };
            let uid = status.uids[0];
            let faults = report.faults;
            let devices = claims::of_report(&report).devices;
            let may_speak = only_of.is_none_or(|of| of == uid);
            may_speak.then_some(LegacyProcess { pid, start_time_ticks, uid, devices, faults })
        };
        reports.into_iter().filter_map(process).collect()
    }
}
