//! tt-metal's regions: which layouts are there, and what the later ones lack beside the first.

use std::collections::BTreeMap;
use std::path::Path;

use telltale_ledger::region::{Now, RegionReadError, scan};

use super::finding::Finding;

/// Checks the regions below `root`.
pub(super) fn check(root: &Path, findings: &mut Vec<Finding>) {
    // Ages are not checked.
    let Ok(found) = scan(&root.join("dev/shm"), Now { monotonic_ns: 0, epoch_ns: 0 }) else {
        return;
    };
    let mut versions: BTreeMap<u32, usize> = BTreeMap::new();
    let mut closed = 0;
    for result in &found.regions {
        match result {
            Ok(reading) => *versions.entry(reading.region.version).or_default() += 1,
            Err(RegionReadError::PermissionDenied { .. }) => closed += 1,
            Err(_) => {}
        }
    }
    let count = |number: usize| match number {
        1 => "1 region".to_owned(),
        number => format!("{number} regions"),
    };
    for (version, number) in versions {
        let lacks = match version {
            1 | 2 => String::new(),
            _ => ": no bytes of kernels, and only its user and root may read it; a program \
                  that keeps one with TELLTALE_SHM_LAYOUT=1 has both"
                .to_owned(),
        };
        let what = format!("{} of tt-metal in layout {version}{lacks}", count(number));
        findings.push(Finding::works("regions", what));
    }
    if closed > 0 {
        let what =
            format!("{} of tt-metal belong to other users, who alone may read them", count(closed));
        findings.push(Finding::partly("regions", what, "sudo telltale doctor"));
    }
}
