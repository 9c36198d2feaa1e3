//! Taking dead processes out of tt-metal's regions, for `smi --clean` alone.
//!
//! The rules by which a row is taken out are those of a process that attaches
//! ([`telltale_ledger::region::writer`]). Only the main `/dev/shm` is checked.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rustix::fs::{FsWord, statfs};
use telltale_ledger::region::writer::{Abandoned, AttachError, Ended, clear_dead, ended_pids};
use telltale_ledger::region::{
    FileIdentity, FileName, Now, Region, RegionReadError, RegionReading, file_name,
    parse_file_name, read, scan,
};
use telltale_ledger::{FileNumber, LedgerReader, RegionMirror};
use telltale_schema::text::with_causes;

use super::evidence::{FileKind, Mappings};
use super::identity::Standing;
use super::{Holders, Processes};
use crate::clean::{CleanReport, Cleaned};
use crate::reconcile::region_of;
use crate::tree::Tree;

/// How long one region's lock is waited for. Others hold it for microseconds.
const LOCK_WAIT: Duration = Duration::from_secs(1);

/// Regions of one owner for which the processes are scanned. What is left is there for the next time.
const MAX_SCANS: u32 = 16;

/// `TMPFS_MAGIC` of `linux/magic.h`.
const TMPFS_MAGIC: FsWord = 0x0102_1994;

/// What a ledger says of one device: its process is in the device's region.
#[derive(Debug, Clone)]
pub(super) struct RegionMembership {
    /// What became of the process.
    standing: Standing,
    /// The names that the region can have. The ledger does not say which one, nor which file.
    names: Vec<u64>,
    /// The pid and name of its row; none where it is in the totals alone.
    row: Option<(u32, String)>,
    bytes: u64,
    /// Whose process it is: what other users' ledgers say of a region decides nothing there.
    uid: u32,
}

/// What a ledger says of regions.
pub(super) fn kept(reader: &mut LedgerReader, standing: &Standing) -> Vec<RegionMembership> {
    let Ok(reading) = reader.read() else { return Vec::new() };
    let devices = reading.devices.iter().enumerate();
    let mirrored = devices.filter(|(_, device)| device.mirror != RegionMirror::None);
    let one = |(index, device): (usize, &telltale_ledger::DeviceEntry)| {
        let of_it = reading.usage.iter().filter(|(slot, _, _)| slot.index() == index);
        let bytes = of_it.map(|(_, _, usage)| usage.live_bytes).fold(0, u64::saturating_add);
        let has_row = device.mirror == RegionMirror::TotalsAndRow;
        RegionMembership {
            standing: standing.clone(),
            names: region_of(&device.identity).collect(),
            row: has_row.then(|| (reading.owner.pid, reading.name.clone())),
            bytes,
            uid: reading.uid,
        }
    };
    mirrored.map(one).collect()
}

/// The regions of `/dev/shm`, after the dead were taken out.
#[derive(Default)]
pub(super) struct Regions {
    found: BTreeMap<u64, ClearedRegion>,
}

struct ClearedRegion {
    path: String,
    /// What is in it; none where this user may not read it.
    region: Option<Region>,
    /// Why it could not be changed.
    refused: Option<AttachError>,
    /// A living process that uses it, so that it was not reset.
    user: Option<u32>,
    /// Not all processes can be seen from here.
    in_doubt: bool,
}

// === impl Regions ===

impl Regions {
    pub(super) fn are_none(&self) -> bool {
        self.found.is_empty()
    }

    /// Why the ledger that says this stays, if it does: a region may still have its process.
    pub(super) fn why_kept(&self, kept: &[RegionMembership]) -> Option<String> {
        let found = kept.iter().find_map(|one| {
            one.names.iter().filter_map(|name| self.found.get(name)).find(|found| found.has(one))
        })?;
        let user = found.user.map(|pid| format!("; process {pid} uses that region"));
        let user = user.unwrap_or_default();
        Some(format!("it stays while {} has what the process had{user}", found.path))
    }

    /// Why rows of the dead are still in a region.
    pub(super) fn why_left(&self, name_id: u64) -> String {
        let Some(found) = self.found.get(&name_id) else {
            return "it is a container's, and a process there can take them out".to_owned();
        };
        match &found.refused {
            Some(error) => with_causes(error),
            None if found.in_doubt => {
                "whether their pids are those of other PID namespaces is unknown here; run \
                 this on the host"
                    .to_owned()
            }
            None => "a living process has one of their pids in another PID namespace; remove the \
                      file when the device is unused"
                .to_owned(),
        }
    }
}

// === impl ClearedRegion ===

impl ClearedRegion {
    /// Whether what a dead process had can still be in the region.
    fn has(&self, kept: &RegionMembership) -> bool {
        let Some(region) = &self.region else { return true };
        match &kept.row {
            Some((pid, name)) => {
                let mut rows = region.processes.iter();
                rows.any(|row| row.pid == *pid && (row.name.is_empty() || row.name == *name))
            }
            None => region.reference_count > 0,
        }
    }
}

/// How a region's file is called in what is said of it.
pub(super) fn region_path(tree: &Tree, name_id: u64) -> String {
    tree.display(&format!("dev/shm/{}", file_name(name_id)))
}

/// One cleaning of the regions, with what is known of their processes.
pub(super) struct Clearing<'a> {
    processes: &'a Processes,
    kept: &'a [RegionMembership],
    holders: &'a Holders,
    /// For how many regions of each owner the processes were scanned.
    scans: ScanBudget,
}

// === impl Clearing ===

impl<'a> Clearing<'a> {
    /// A cleaning that believes what ledgers said, and the driver's holders.
    pub(super) fn new(
        processes: &'a Processes,
        kept: &'a [RegionMembership],
        holders: &'a Holders,
    ) -> Self {
        Self { processes, kept, holders, scans: ScanBudget::default() }
    }

    /// Takes the dead out of all regions that this user may change.
    pub(super) fn clear_regions(mut self, cleaned: &mut CleanReport) -> Regions {
        let Processes { tree, standpoint, .. } = self.processes;
        let mut regions = Regions::default();
        let Ok(scan) = scan(&tree.path().join("dev/shm"), self.now()) else {
            return regions;
        };
        let in_doubt = !standpoint.sees_all;
        for result in scan.regions {
            let (name_id, found) = match result {
                Ok(reading) => (reading.name_id, self.clear_region(reading, cleaned)),
                Err(RegionReadError::PermissionDenied { name, .. }) => {
                    let FileName::Region(id) = parse_file_name(name.as_bytes()) else { continue };
                    let path = region_path(tree, id);
                    (id, ClearedRegion { path, region: None, refused: None, user: None, in_doubt })
                }
                Err(_) => continue,
            };
            regions.found.insert(name_id, found);
        }
        regions
    }

    /// Takes the dead out of one region. One with nothing to take out is not even locked.
    fn clear_region(&mut self, reading: RegionReading, cleaned: &mut CleanReport) -> ClearedRegion {
        let Processes { tree, standpoint, .. } = self.processes;
        let (name_id, owner) = (reading.name_id, reading.owner_uid);
        let sees_all = standpoint.sees_all;
        let ended = |pids: &BTreeSet<u32>| match sees_all {
            // Our own pid says nothing: a process that calls this may have a row itself.
            true => ended_pids(pids).into_iter().filter(|pid| *pid != std::process::id()).collect(),
            false => BTreeSet::new(),
        };
        let accounted = match sees_all {
            true => abandoned(self.kept, name_id, owner),
            false => Abandoned::default(),
        };
        // More than the dead account for, and it is not reset while in use.
        let accounted =
            if explains(accounted, &reading.region) { accounted } else { Abandoned::default() };
        let pids: BTreeSet<u32> = reading.region.processes.iter().map(|row| row.pid).collect();
        let mut found = ClearedRegion {
            path: region_path(tree, name_id),
            region: Some(reading.region),
            refused: None,
            user: None,
            in_doubt: !sees_all,
        };
        if accounted.processes == 0 && ended(&pids).is_empty() {
            return found;
        }
        let directory = tree.path().join("dev/shm");
        let who_ended = |file: FileIdentity, pids: &BTreeSet<u32>| {
            let abandoned = match accounted.processes {
                0 => Ok(accounted),
                _ if !self.scans.may_scan(owner) => Err(None),
                _ => self.unused(file, name_id).map(|()| accounted),
            };
            found.user = abandoned.err().flatten();
            Ended { pids: ended(pids), abandoned: abandoned.unwrap_or_default() }
        };
        match clear_dead(&directory, name_id, LOCK_WAIT, who_ended) {
            Ok(cleared) if cleared.is_nothing() => {}
            Ok(cleared) => {
                let of = match cleared.pids.len() {
                    0 => "what ended processes had".to_owned(),
                    1 => "the rows of 1 ended process".to_owned(),
                    count => format!("the rows of {count} ended processes"),
                };
                let why = format!("took out {of}, and {} bytes", cleared.bytes);
                cleaned.mended.push(Cleaned { path: found.path.clone(), why });
            }
            Err(error) => found.refused = Some(error),
        }
        if let Ok(after) = read(&directory, name_id, self.now()) {
            found.region = Some(after.region);
        }
        found
    }

    /// Makes sure that no living process uses a region's file: each of its processes maps it.
    ///
    /// # Errors
    /// With the process that does; without one where that is unknown.
    fn unused(&self, file: FileIdentity, name_id: u64) -> Result<(), Option<u32>> {
        let Self { processes: Processes { tree, procfs, .. }, kept, holders, .. } = self;
        // Checked now: who joins later is seen by the region's references.
        let mappings = Mappings::scan(procfs);
        let file = FileNumber { device: file.device, inode: file.inode };
        let has_one_device = statfs(tree.path().join("dev/shm").as_path())
            .is_ok_and(|system| system.f_type == TMPFS_MAGIC);
        let user = match has_one_device {
            true => mappings.user_of_exactly(file),
            false => mappings.user_of(file, FileKind::Region),
        };
        if user.is_some() {
            return Err(user);
        }
        // A member holds the chip or says so in its ledger; what it maps may be for root to see.
        let unseen = |one: &RegionMembership| match one.standing {
            Standing::Alive { pid, .. } => mappings.is_unread(pid),
            Standing::Hidden => true,
            Standing::Dead | Standing::Refused(_) => false,
        };
        let mut members = kept.iter().filter(|one| one.names.contains(&name_id));
        let in_doubt = holders.some_hidden
            || (holders.some_untold && !mappings.is_whole())
            || holders.pids.iter().any(|pid| mappings.is_unread(*pid))
            || members.any(unseen);
        if in_doubt { Err(None) } else { Ok(()) }
    }

    fn now(&self) -> Now {
        let clock = &self.processes.clock;
        Now { monotonic_ns: clock.monotonic_ns(), epoch_ns: clock.now().0 }
    }
}

/// For how many regions of each owner the processes were scanned.
#[derive(Debug, Default)]
struct ScanBudget(BTreeMap<u32, u32>);

// === impl Looks ===

impl ScanBudget {
    /// Whether there may be another search for a region of this user, who can make any number of them.
    fn may_scan(&mut self, owner: u32) -> bool {
        let scans = self.0.entry(owner).or_default();
        *scans += 1;
        *scans <= MAX_SCANS
    }
}

/// Whether a region has nothing beside its rows but what the dead without rows account for. Its rows may be taken out.
fn explains(accounted: Abandoned, region: &Region) -> bool {
    let rows = u32::try_from(region.processes.len()).unwrap_or(u32::MAX);
    let in_rows: u128 = region.processes.iter().map(|row| row.bytes.sum()).sum();
    region.reference_count.saturating_sub(rows) <= accounted.processes
        && region.totals.sum().saturating_sub(in_rows) <= u128::from(accounted.bytes)
}

/// What dead processes without rows left in this region of `owner`.
fn abandoned(kept: &[RegionMembership], name_id: u64, owner: u32) -> Abandoned {
    let is_dead = |one: &&RegionMembership| one.standing == Standing::Dead && one.row.is_none();
    let is_reported = |one: &&RegionMembership| is_dead(one) && [0, owner].contains(&one.uid);
    let here = kept.iter().filter(is_reported).filter(|one| one.names.contains(&name_id));
    here.fold(Abandoned::default(), |sum, one| Abandoned {
        processes: sum.processes.saturating_add(1),
        bytes: sum.bytes.saturating_add(one.bytes),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_user_cannot_have_the_processes_scanned_for_each_of_many_regions() {
        let mut scans = ScanBudget::default();
        let mut of_owner = |owner| (0..100).filter(|_| scans.may_scan(owner)).count();
        assert_eq!([of_owner(1000), of_owner(1001)], [16, 16]);
    }
}
