//! Whether a snapshot that came from elsewhere can be used: it may have been written by anybody.

use std::cmp::Reverse;

use super::{SCHEMA_VERSION, Snapshot};

/// Devices in one snapshot at most.
pub const MAX_DEVICES: usize = 1024;
/// Processes in one snapshot at most. Each takes less than a kilobyte beside its texts, so as many
/// as this, with nothing on any device, cost 128 MiB at most.
pub const MAX_PROCESSES: usize = 131_072;
/// Faults of the machine's parts and of sources in one snapshot at most.
pub const MAX_PART_FAULTS: usize = 1024;

/// Why a snapshot cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnfitSnapshot {
    /// A newer telltale wrote it.
    #[error(
        "the snapshot is of version {version}, and {SCHEMA_VERSION} is known here; a newer telltale \
         reads it"
    )]
    Newer {
        /// Its version.
        version: u32,
    },
    /// It has more of something than any machine.
    #[error("the snapshot has {count} {what}, and at most {most} are believed")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many.
        count: usize,
        /// How many there may be.
        most: usize,
    },
    /// A process has a device that is not there.
    #[error("a process of the snapshot has device {device} of {devices}")]
    NoSuchDevice {
        /// The device's place.
        device: usize,
        /// How many devices there are.
        devices: usize,
    },
}

impl Snapshot {
    /// Of more faults of parts than a snapshot may have, keeps those that are worst; gives how many
    /// it left out.
    pub fn bound_faults(&mut self) -> usize {
        let surplus = self.faults.len().saturating_sub(MAX_PART_FAULTS);
        if surplus > 0 {
            self.faults.sort_by_key(|fault| Reverse(fault.kind.state()));
            self.faults.truncate(MAX_PART_FAULTS);
        }
        surplus
    }

    /// Whether it can be used, wherever it comes from.
    ///
    /// # Errors
    /// When it is of a newer version, too large, or refers to what is not in it.
    pub fn check(&self) -> Result<(), UnfitSnapshot> {
        if self.schema_version > SCHEMA_VERSION {
            return Err(UnfitSnapshot::Newer { version: self.schema_version });
        }
        let counts = [
            ("devices", self.devices.len(), MAX_DEVICES),
            ("processes", self.processes.len(), MAX_PROCESSES),
            ("faults of parts", self.faults.len(), MAX_PART_FAULTS),
        ];
        for (what, count, most) in counts {
            if count > most {
                return Err(UnfitSnapshot::TooMany { what, count, most });
            }
        }
        let devices = self.devices.len();
        let held = self.processes.iter().flat_map(|process| &process.devices);
        match held.map(|held| held.device).find(|device| *device >= devices) {
            Some(device) => Err(UnfitSnapshot::NoSuchDevice { device, devices }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_PART_FAULTS, MAX_PROCESSES, UnfitSnapshot};
    use crate::clock::Timestamp;
    use crate::health::{Fault, FaultKind};
    use crate::snapshot::Snapshot;

    fn snapshot(version: u32, held: &str, processes: usize) -> Snapshot {
        let process = format!(
            r#"{{"identity":null,"pid":1,"name":"a","command":{{"absent":"gone"}},
            "uid":{{"absent":"gone"}},"user":{{"absent":"gone"}},"container":null,"state":"alive",
            "known_by":null,"uptime_seconds":{{"absent":"gone"}},"devices":[{held}],
            "faults":{{"double_frees":0,"unknown_frees":0,"reused_live_addresses":0,
            "unrecorded_events":0}},"metrics":[]}}"#
        );
        let processes = vec![process; processes].join(",");
        serde_json::from_str(&format!(
            r#"{{"schema_version":{version},"taken_at":1,"collected_in_ns":1,"devices":[],
            "processes":[{processes}],"sources":[]}}"#
        ))
        .unwrap()
    }

    #[test]
    fn what_refers_to_nothing_or_comes_from_the_future_is_refused() {
        let held = r#"{"device":3,"open_descriptors":1,"kinds":[]}"#;
        assert_eq!(snapshot(1, "", 1).check(), Ok(()));
        assert_eq!(snapshot(2, "", 1).check(), Err(UnfitSnapshot::Newer { version: 2 }));
        let none = UnfitSnapshot::NoSuchDevice { device: 3, devices: 0 };
        assert_eq!(snapshot(1, held, 1).check(), Err(none));
        let many = snapshot(1, "", MAX_PROCESSES + 1).check().unwrap_err();
        assert!(matches!(many, UnfitSnapshot::TooMany { what: "processes", .. }), "{many}");
    }
    #[test]
    fn of_too_many_faults_the_worst_stay() {
        let fault = |kind| Fault {
            kind,
            part: String::from("a"),
            since: Timestamp(1),
            detail: String::new(),
            evidence: Vec::new(),
        };
        let mut all = Snapshot::empty(Timestamp(2));
        all.faults = vec![fault(FaultKind::NetworkSpeedLow); MAX_PART_FAULTS];
        assert_eq!((all.bound_faults(), all.check()), (0, Ok(())));
        all.faults.push(fault(FaultKind::NetworkLinkDown));
        assert!(matches!(all.check(), Err(UnfitSnapshot::TooMany { count: 1025, .. })));
        assert_eq!((all.bound_faults(), all.check()), (1, Ok(())));
        assert_eq!(all.faults[0].kind, FaultKind::NetworkLinkDown);
    }
}
