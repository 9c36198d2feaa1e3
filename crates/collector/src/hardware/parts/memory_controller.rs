//! Memory controllers, from `/sys/devices/system/edac/mc` (the kernel's
//! `Documentation/ABI/testing/sysfs-devices-edac`).

use telltale_schema::clock::Timestamp;

use super::HostPartKind;
use super::entry::{Answer, Found, cleaned};
use super::value::PartFiles;
use crate::tree::{Directory, Unreadable};

const NAMES: &[&str] = &["corrected_errors_total", "uncorrected_errors_total"];

/// The controller of this name.
#[expect(clippy::unnecessary_wraps, reason = "other classes read files to find parts")]
pub(super) fn survey(_: &Directory, name: &str) -> Result<Vec<Found>, Unreadable> {
    let is_controller = name.strip_prefix("mc").is_some_and(|it| it.parse::<u16>().is_ok());
    Ok(is_controller
        .then(|| Found {
            kind: HostPartKind::MemoryController,
            item: 1,
            owner: cleaned(name),
            place: None,
            channel: None,
            gids: None,
            names: NAMES,
            read,
        })
        .into_iter()
        .collect())
}

fn read(directory: &Directory, _: &Found, now: Timestamp) -> Answer {
    let files = PartFiles { directory, now };
    [
        ("corrected_errors_total", files.counter("ce_count")),
        ("uncorrected_errors_total", files.counter("ue_count")),
    ]
    .into()
}
